"""Transformers without what it prints when it is called as it has to be."""

# Annotations of the libraries differ between their versions.
# mypy: disallow-untyped-calls=False

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from transformers.utils import logging as transformers_logging

LOGGER = "transformers.generation.utils"


@contextmanager
def without_progress() -> Iterator[None]:
    """Load models without a progress bar."""
    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers_logging.enable_progress_bar()


@contextmanager
def errors_only() -> Iterator[None]:
    """Log errors alone, and show no progress."""
    before = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    try:
        with without_progress():
            yield
    finally:
        transformers_logging.set_verbosity(before)


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
