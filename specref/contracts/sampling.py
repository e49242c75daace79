"""Samplers: blocks and texts of an implementation on a fixture, for the statistics."""

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Protocol, TypeAlias

import numpy as np

from specref.arrays import NO_TOKEN, Ints
from specref.chance import Sampled
from specref.contracts.calling import Verifier
from specref.contracts.errors import BrokenContractError
from specref.contracts.fixtures import Fixture, Place, rows
from specref.contracts.process_state import global_randomness
from specref.contracts.signature import accepted_keywords
from specref.contracts.timeout import Deadline, user_code, within
from specref.models import as_float
from specref.supervised import end_a_copy_of
from specref.vocabulary import Tokens

Call: TypeAlias = Callable[[Place, np.random.Generator], Any]


AFTER_EOS = "tokens after EOS: does the adapter stop there?"
MOST_SHOWN = 16


def until_end(fixture: Fixture, tokens: Tokens) -> Tokens:
    """Tokens up to the first EOS."""
    return tokens[: tokens.index(fixture.eos) + 1] if fixture.eos in tokens else tokens


def check_end(fixture: Fixture, tokens: Tokens, place: str = "") -> None:
    """Raise if a block or text goes on after EOS."""
    if until_end(fixture, tokens) != tokens:
        where = f" ({place})" if place else ""
        shown = f"{tokens[:MOST_SHOWN]}" + ", …" * (len(tokens) > MOST_SHOWN)
        end = tokens.index(fixture.eos)
        raise BrokenContractError(
            f"{AFTER_EOS} EOS, id {fixture.eos}, is token {end} of {len(tokens)}: {shown}{where}"
        )


def read_tokens(raw: Any, longest: int, fixture: Fixture) -> Tokens:
    """Check and convert a block or text."""
    try:
        values = raw.tolist() if hasattr(raw, "tolist") else raw
        # One more is enough to see that it is too long, even if it is infinite.
        tokens = tuple(itertools.islice(values, longest + 1))
    except TypeError:
        raise BrokenContractError(f"returned a {type(raw).__name__}: expected tokens") from None
    size = len(fixture.target.vocabulary)
    for index, token in enumerate(tokens):
        known = isinstance(token, Integral) and not isinstance(token, bool)
        if not known or not 0 <= int(token) < size:
            raise BrokenContractError(f"token {index} is {token!r}: expected 0 <= id < {size}")
    if not 1 <= len(tokens) <= longest:
        number = len(tokens) if len(tokens) <= longest else f"more than {longest}"
        why = f" ({AFTER_EOS})" if len(until_end(fixture, tokens)) < len(tokens) else ""
        raise BrokenContractError(f"returned {number} tokens: expected 1 to {longest}{why}")
    return tuple(int(token) for token in tokens)


def call_of_models(
    implementation: Callable[..., Any], fixture: Fixture, tokens: int | None = None
) -> Call:
    """(place, rng) -> a text of so many tokens, or a block with the lookahead of the place."""
    models, give = (as_float(fixture.target), as_float(fixture.drafter)), giver(implementation)

    def call(place: Place, rng: np.random.Generator) -> Any:
        count = place.lookahead if tokens is None else tokens
        return give((*models, place.context, count), rng)

    return call


def giver(implementation: Callable[..., Any]) -> Callable[..., Any]:
    """(arguments, rng, more by name) -> result of the function, called with `chance` or `rng`.

    If it takes neither, the global generators are seeded.
    """
    given = drawn_from(implementation)

    def give(arguments: tuple[Any, ...], rng: np.random.Generator, **more: Any) -> Any:
        process = os.getpid()
        try:
            if keywords := given(rng):
                return implementation(*arguments, **keywords, **more)
            with global_randomness(rng):
                return implementation(*arguments, **more)
        finally:
            end_a_copy_of(process)

    return give


def drawn_from(
    implementation: Callable[..., Any],
) -> Callable[[np.random.Generator], dict[str, Any]]:
    """rng -> the keyword argument by which a function draws from it; none if it takes none."""
    keywords = accepted_keywords(implementation)
    if "chance" in keywords:
        return lambda rng: {"chance": Sampled(rng)}
    return lambda rng: {"rng": rng} if "rng" in keywords else {}


SMALL_BATCHES, LARGE_BATCH = (1, 2, 3, 5, 8, 13), 4096
SMALL_SHARE = 32
TEXT = 4
"""The number of tokens of a text that are drawn."""

Drawn: TypeAlias = tuple[Ints, Ints, Ints]


class Sampler(Protocol):
    """(trials, rng) -> the place of each trial, its block and its drafts, padded with -1."""

    def __call__(self, trials: int, rng: np.random.Generator) -> Drawn: ...


def until_eos(fixture: Fixture, blocks: Ints) -> Ints:
    """Blocks without the tokens after the first EOS."""
    if fixture.eos is None:
        return blocks
    ends = blocks == fixture.eos
    late = (np.cumsum(ends, axis=1) - ends) > 0
    return np.where(late, NO_TOKEN, blocks)


def batch_sizes(trials: int, largest: int | None = None) -> Sequence[int]:
    """One trial in 32 in small batches of changing sizes, then large ones.

    Examples
    --------
    >>> batch_sizes(300), batch_sizes(300, largest=100)
    ((1, 2, 3, 5, 289), (1, 2, 3, 5, 100, 100, 89))
    """
    sizes: list[int] = []
    small = itertools.cycle(SMALL_BATCHES)
    while sum(sizes) < trials // SMALL_SHARE:
        sizes.append(next(small))
    size, left = largest or LARGE_BATCH, trials - sum(sizes)
    return *sizes, *[size] * (left // size), *[left % size] * (left % size > 0)


class Batches(ABC):
    """Trials of all places in turn, two of each, cut into batches of many sizes."""

    def __init__(self, verifier: Verifier, fixture: Fixture, before: int) -> None:
        self.verifier, self.fixture = verifier, fixture
        self.tables = rows(fixture, before)

    def __call__(self, trials: int, rng: np.random.Generator) -> Drawn:
        deadline = Deadline()

        def draw() -> Drawn:
            parts = []
            for place in self._places(trials):
                parts.append(self._batch(place, rng, deadline))  # noqa: PERF401
            place, blocks, drafts = map(np.concatenate, zip(*parts, strict=True))
            return place, blocks, drafts

        return within(self.verifier.timeout, draw, deadline)

    def _places(self, trials: int) -> Sequence[Ints]:
        # Neighbours have equal and different places: rows that share noise show in either case.
        place = (np.arange(trials) // 2) % len(self.fixture.places)
        sizes = batch_sizes(trials, self.verifier.capabilities.batch)
        return np.split(place, np.cumsum(sizes)[:-1])

    @abstractmethod
    def _batch(self, place: Ints, rng: np.random.Generator, deadline: Deadline) -> Drawn:
        """Draw one batch, a trial at each of these places."""


class Steps:
    """One block, or a text of several, from a user function of two models.

    * `drafted`: Whether a call may return no more than one for each draft of its place, and one
      after them.
    """

    def __init__(
        self,
        call: Call,
        fixture: Fixture,
        longest: int,
        timeout: float | None = None,
        advance: Callable[[int], None] = lambda trials: None,
        *,
        drafted: bool = False,
    ) -> None:
        self.call, self.fixture, self.longest, self.timeout = call, fixture, longest, timeout
        self.advance, self.drafted = advance, drafted

    def __call__(self, trials: int, rng: np.random.Generator) -> Drawn:
        place, deadline = np.arange(trials) % len(self.fixture.places), Deadline()
        blocks = np.full((trials, self.longest), NO_TOKEN)

        def draw() -> None:
            for row, index in enumerate(place.tolist()):
                tokens = self._one(self.fixture.places[index], rng)
                blocks[row, : len(tokens)] = tokens
                deadline.restart()
                self.advance(1)

        within(self.timeout, draw, deadline)
        return place, blocks, np.full((trials, 1), NO_TOKEN)

    def _one(self, place: Place, rng: np.random.Generator) -> Tokens:
        with user_code(lambda what: f"{what} (at {place.name})"):
            longest = place.lookahead + 1 if self.drafted else self.longest
            return read_tokens(self.call(place, rng), longest, self.fixture)
