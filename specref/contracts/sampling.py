"""Samplers: blocks of an implementation on a fixture, for the statistics."""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from specref.arrays import NO_TOKEN, Ints
from specref.contracts.calling import Verifier
from specref.contracts.fixtures import Fixture, Place, rows
from specref.contracts.model_calls import Call, read_tokens
from specref.contracts.timeout import Deadline, user_code, within
from specref.vocabulary import Tokens

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

    Parameters
    ----------
    call : callable
        (place, rng) -> token ids.
    fixture : Fixture
    longest : int
        The most tokens that a call may return.
    drafted : bool
        Whether a call may return no more than one for each draft of its place, and one after them.
    timeout : float or None
        Seconds for a call.
    advance : callable
        Called with 1 after each call.
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
