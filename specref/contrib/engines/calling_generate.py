"""What callers of Transformers' `generate` share: no needless logs, and what its loop drafted."""

# Annotations of the libraries differ between their versions.
# mypy: disallow-untyped-calls=False

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

LOGGER = "transformers.generation.utils"
CACHE_NAMES = ("cache", "past_key_values")
"""What Transformers calls keys and values: since 5.24, and before."""


@contextmanager
def without_progress() -> Iterator[None]:
    """Load models without a progress bar."""
    from transformers.utils import logging as theirs

    shown = theirs.is_progress_bar_enabled()
    theirs.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            theirs.enable_progress_bar()


@contextmanager
def errors_only() -> Iterator[None]:
    """Log errors alone, and show no progress."""
    from transformers.utils import logging as theirs

    before = theirs.get_verbosity()
    theirs.set_verbosity_error()
    try:
        with without_progress():
            yield
    finally:
        theirs.set_verbosity(before)


@contextmanager
def without_deprecations() -> Iterator[None]:
    """Suppress deprecation warnings about the library's own calls, in this thread.

    With an assistant, `generate` calls `generate` in a deprecated way; its caller cannot change
    that.
    """
    logger, thread = logging.getLogger(LOGGER), threading.get_ident()

    def others(record: logging.LogRecord) -> bool:
        return record.thread != thread or "is deprecated" not in record.getMessage()

    logger.addFilter(others)
    try:
        yield
    finally:
        logger.removeFilter(others)


def cache_of(arguments: Mapping[str, Any]) -> Any:
    """The keys and values in the arguments of a forward pass, under either name; None without."""
    return next((arguments[name] for name in CACHE_NAMES if arguments.get(name) is not None), None)


class Forward(NamedTuple):
    """One forward pass: the number of cached tokens, and of tokens fed."""

    cached: int
    fed: int


class Block(NamedTuple):
    """One iteration of the loop, after so many generated tokens."""

    start: int
    drafted: int
    accepted: int


def blocks(forwards: Sequence[Forward], prompt: int) -> tuple[Block, ...]:
    """The block that each pass of the target verified, from the number of tokens fed and kept.

    A pass is fed one known token (the first: the prompt) and the drafts; what is cached
    at the next pass was accepted. The last block has no next pass and is left out.
    """
    known = [prompt, *(forward.cached + 1 for forward in forwards[1:])]
    drafted = [
        forward.cached + forward.fed - start
        for forward, start in zip(forwards, known, strict=True)
    ]
    return tuple(
        Block(start - prompt, count, after - start - 1)
        for start, after, count in zip(known, known[1:], drafted, strict=False)
    )
