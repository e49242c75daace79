"""What adapters of whole engines share: a pair of models whose laws are known, as checkpoints."""

import tempfile
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from specref.contracts.sampling import TEXT
from specref.contracts.text import Engine, Respond
from specref.contrib.checkpoints import Law, build, named_pair, shaped
from specref.vocabulary import Tokens

# The second repeats itself, so that what is looked up proposes something.
PROMPTS: tuple[Tokens, ...] = ((), (0, 1, 2, 0, 1, 2, 0, 1), (3, 2, 1, 0))
MANY: tuple[Tokens, ...] = (
    *product(range(4), repeat=3),
    *((a, b, c, d, a, b) for a, b in product(range(4), repeat=2) for c, d in [(a ^ 1, b ^ 1)]),
)
"""For greedy texts, of which each prompt has one. The longer ones begin again: with the law
`ending`, what is looked up in them is right for some tokens, and some of those texts end then."""
LONG = 24


class Pair(NamedTuple):
    """Two laws, and the folders of their checkpoints, which are deleted after loading."""

    target: Law
    drafter: Law
    target_folder: Path
    drafter_folder: Path


Modes: TypeAlias = Callable[[Pair], tuple[Respond, Respond]]
"""Loads an engine: its texts by speculative decoding, and its texts without."""


def on_pair(
    modes: Modes,
    law: str,
    settings: Mapping[str, float],
    file_format: str = "hf",
    *,
    greedy: bool = False,
    prompts: tuple[Tokens, ...] = PROMPTS,
    has_drafter: bool = True,
    same_text: bool = False,
    long: bool = False,
) -> Engine:
    """An engine on a pair of `named_pair`, with the law of its texts under sampler settings.

    * `settings`: As for `shaped`; `modes` passes them on to the engine.
    * `greedy`: It decodes by argmax: long texts, one after each of 80 prompts.
    * `has_drafter`: Whether drafts are the drafter's.
    * `long`: Texts have `LONG` tokens, too many to know the law of all: plain mode is what there
      is.

    >>> def a_word(prompt, budget, seed):
    ...     return (0, 1, 4)
    >>> engine = on_pair(lambda pair: (a_word, a_word), "order-1", {}, same_text=True)
    >>> engine.speculative((), 3, 7), engine.end, engine.prompts[-1]
    ((0, 1, 4), 4, (3, 2, 1, 0))
    """
    pair, long = named_pair(law), long or greedy
    target, drafter = pair.values()
    known = shaped(target.model, settings) if not long else None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        paths = build(pair, Path(folder) / "pair", [file_format])
        speculative, plain = modes(Pair(target, drafter, *paths.values()))
    return Engine(
        speculative,
        MANY if greedy else prompts,
        known,
        plain,
        drafter.model if has_drafter else None,
        LONG if long else TEXT,
        eos=None if known else target.eos,
        same_text=same_text,
    )


def up_to(end: int | None, steps: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The steps up to the token that ends a text; no further one is asked for."""
    found = []
    for step in steps:
        found.append(step)
        if int(step[0]) == end:
            break
    return found


def ids_of(text: str, law: Law) -> list[int]:
    """The ids of a text whose tokens are single characters."""
    for letter in text:
        if letter not in law.vocabulary.ids:
            raise ValueError(
                f"the text has {letter!r}, which is no token: expected those of the checkpoint's "
                "tokenizer"
            )
    return [law.vocabulary.ids[letter] for letter in text]
