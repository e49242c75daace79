"""What a loop drafted and accepted, derived from the lengths of the target's forward passes."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

CACHE_NAMES = ("cache", "past_key_values")
"""What Transformers calls keys and values: since 5.24, and before."""


def cache_of(arguments: Mapping[str, Any]) -> Any:
    """The keys and values in the arguments of a forward pass, under either name; None without."""
    return next((arguments[name] for name in CACHE_NAMES if arguments.get(name) is not None), None)


class Forward(NamedTuple):
    """One forward pass: the number of cached tokens, and of tokens fed."""

    cached: int
    fed: int


class Block(NamedTuple):
    """One iteration of the loop.

    * `start`: The number of tokens generated before.
    """

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
