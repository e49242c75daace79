"""Blocks of an implementation on a fixture, by contract: what the statistics are fed with."""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from specref.conformance.batch import BrokenContractError
from specref.conformance.calling import Verifier
from specref.conformance.contract import Ints
from specref.conformance.drawing import draw_batch
from specref.conformance.fixtures import NO_TOKEN, Place, Teeth, rows
from specref.conformance.patience import Pulse, described, within
from specref.conformance.stepping import Call, generate_call, read_tokens, step_call
from specref.vocabulary import Tokens

__all__ = [
    "Alone",
    "BesideIdle",
    "Blocks",
    "Iterations",
    "Sampler",
    "Steps",
    "generate_call",
    "step_call",
]

SMALL_BATCHES, LARGE_BATCH = (1, 2, 3, 5, 8, 13), 4096
SMALL_SHARE = 32

Drawn: TypeAlias = tuple[Ints, Ints, Ints]


class Sampler(Protocol):
    """(trials, rng) -> the place of each trial, its block and its drafts, padded with -1."""

    def __call__(self, trials: int, rng: np.random.Generator) -> Drawn:
        """Draw."""
        ...


def until_eos(teeth: Teeth, blocks: Ints) -> Ints:
    """Blocks with everything after the first EOS taken away."""
    if teeth.eos is None:
        return blocks
    ends = blocks == teeth.eos
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

    def __init__(self, verifier: Verifier, teeth: Teeth, depth: int) -> None:
        self.verifier, self.teeth = verifier, teeth
        self.tables = rows(teeth, depth)

    def __call__(self, trials: int, rng: np.random.Generator) -> Drawn:
        """Draw."""
        pulse = Pulse()
        return within(
            self.verifier.patience,
            lambda: _joined(self._batch(place, rng, pulse) for place in self._places(trials)),
            pulse,
        )

    def _places(self, trials: int) -> Sequence[Ints]:
        # Neighbours of one place and of several: rows that share noise are seen in both.
        place = (np.arange(trials) // 2) % len(self.teeth.places)
        sizes = batch_sizes(trials, self.verifier.capabilities.batch)
        return np.split(place, np.cumsum(sizes)[:-1])

    @abstractmethod
    def _batch(self, place: Ints, rng: np.random.Generator, pulse: Pulse) -> Drawn:
        """Draw one batch, a trial at each of these places."""


class Blocks(Batches):
    """One iteration of the contract ``verify``, rows of all places mixed in each batch.

    Attributes
    ----------
    cost : float
        How many trials give each place with drafts what it gets if all get equally many.
    """

    cost = 1.0

    def __init__(self, verifier: Verifier, teeth: Teeth, *, one_hot: bool = False) -> None:
        super().__init__(verifier, teeth, teeth.lookahead)
        self.one_hot = one_hot

    def _batch(self, place: Ints, rng: np.random.Generator, pulse: Pulse) -> Drawn:
        batch = draw_batch(self.teeth, self.tables, self.tables.root[place], place, rng)
        given = batch.without_q() if self.one_hot else batch
        answer = self.verifier.answer(given, rng, pulse=pulse)
        return place, until_eos(self.teeth, answer.tokens), batch.draft_tokens


class Alone(Blocks):
    """The same in batches of a single row, which may take a way of their own."""

    def _places(self, trials: int) -> Sequence[Ints]:
        return np.split(np.arange(trials) % len(self.teeth.places), trials)


class BesideIdle(Blocks):
    """The same in batches of two rows, one of which has no draft: the second, then the first."""

    cost = 1.5

    def _places(self, trials: int) -> Sequence[Ints]:
        lookaheads = [place.lookahead for place in self.teeth.places]
        idle = lookaheads.index(0)
        live = [index for index, lookahead in enumerate(lookaheads) if lookahead]
        pairs = np.array([pair for index in live for pair in ((index, idle), (idle, index))])
        return list(pairs[np.arange(max(1, trials // 2)) % len(pairs)])


class Iterations(Batches):
    """Texts from repeated calls of the contract ``verify``, each row going on from its own."""

    def __init__(self, verifier: Verifier, teeth: Teeth, tokens: int) -> None:
        super().__init__(verifier, teeth, tokens - 1 + teeth.lookahead)
        self.tokens = tokens

    def _batch(self, place: Ints, rng: np.random.Generator, pulse: Pulse) -> Drawn:
        texts = np.full((len(place), self.tokens + self.teeth.lookahead), NO_TOKEN)
        node, length = self.tables.root[place], np.zeros(len(place), dtype=np.int64)
        while (open_ := np.flatnonzero(self._open(texts, length))).size:
            batch = draw_batch(self.teeth, self.tables, node[open_], place[open_], rng)
            answer = self.verifier.answer(batch, rng, pulse=pulse)
            blocks = until_eos(self.teeth, answer.tokens)
            for j in range(blocks.shape[1]):
                more = (blocks[:, j] >= 0) & (length[open_] < self.tokens)
                row, token = open_[more], blocks[more, j]
                texts[row, length[row]] = token
                length[row] += 1
                node[row] = self.tables.child[node[row], token]
        return place, texts[:, : self.tokens], np.full((len(place), 1), NO_TOKEN)

    def _open(self, texts: Ints, length: Ints) -> Any:
        going = length < self.tokens
        if self.teeth.eos is not None:
            going &= ~(texts == self.teeth.eos).any(axis=1)
        return going


def _joined(parts: Iterable[Drawn]) -> Drawn:
    place, blocks, drafts = (np.concatenate(column) for column in zip(*parts, strict=True))
    return place, blocks, drafts


class Steps:
    """One block, or a text of several, from somebody's function of two models.

    Parameters
    ----------
    call : callable
        (place, rng) -> token ids.
    teeth : Teeth
    longest : int
        The most tokens of a call.
    patience : float or None
        Seconds for a call.
    """

    def __init__(
        self,
        call: Call,
        teeth: Teeth,
        longest: int,
        patience: float | None = None,
    ) -> None:
        self.call, self.teeth, self.longest, self.patience = call, teeth, longest, patience

    def __call__(self, trials: int, rng: np.random.Generator) -> Drawn:
        """Draw."""
        place, pulse = np.arange(trials) % len(self.teeth.places), Pulse()
        blocks = within(self.patience, lambda: self._blocks(place, rng, pulse), pulse)
        return place, blocks, np.full((trials, 1), NO_TOKEN)

    def _blocks(self, place: Ints, rng: np.random.Generator, pulse: Pulse) -> Ints:
        blocks = np.full((len(place), self.longest), NO_TOKEN)
        for row, index in enumerate(place.tolist()):
            tokens = self._one(self.teeth.places[index], rng)
            blocks[row, : len(tokens)] = tokens
            pulse.beat()
        return blocks

    def _one(self, place: Place, rng: np.random.Generator) -> Tokens:
        try:
            return read_tokens(self.call(place, rng), self.longest, self.teeth)
        except BrokenContractError as error:
            message, cause = str(error), error.__cause__
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # somebody's code may raise anything
            message, cause = f"raised {described(error)}", error
        raise BrokenContractError(f"{message} (at {place.name})") from cause
