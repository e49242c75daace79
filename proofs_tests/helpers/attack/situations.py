"""Ordinary situations of serving, and how far a sampler is from the target in one of them.

In a situation the law of each place is fixed, whatever was emitted before, so that token i of the
completed block has to have the law of row i. Calls are drawn directly: drafts from the drafter's
laws, missing tokens from the target's.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from proofs_tests.helpers.attack.parts import Floats, Ints, Verify


@dataclass(frozen=True)
class Batch:
    """What a call is given: laws of each row and place, and how many drafts each row has.

    Attributes
    ----------
    target : ndarray, shape (B, K + 1, V)
    draft : ndarray, shape (B, K, V)
        The laws that drafts are drawn from.
    lens : ndarray of int, shape (B,)
    declared : bool
        Whether the sampler is given `draft`; otherwise None.
    """

    target: Floats
    draft: Floats
    lens: Ints
    declared: bool = True

    @cached_property
    def target_sums(self) -> list[Floats]:
        return sums(self.target)

    @cached_property
    def draft_sums(self) -> list[Floats]:
        return sums(self.draft)

    def drafts(self, rng: np.random.Generator) -> Ints:
        tokens = drawn(self.draft_sums, self.draft.shape[:2], rng)
        return np.where(np.arange(tokens.shape[1]) < self.lens[:, None], tokens, -1)

    def completed(self, tokens: Ints, counts: Ints, rng: np.random.Generator) -> Ints:
        """The block with target draws in the places after its last token."""
        return np.where(
            np.arange(tokens.shape[1]) < np.asarray(counts)[:, None],
            tokens,
            drawn(self.target_sums, self.target.shape[:2], rng),
        )

    def ideal(self, rng: np.random.Generator) -> Ints:
        return drawn(self.target_sums, self.target.shape[:2], rng)


def sums(laws: Floats) -> list[Floats]:
    """Cumulative sums of each row and place; rows that are the same memory share them."""
    known: dict[tuple[int, ...], Floats] = {}
    ends = []
    for row in laws:
        for law in row:
            key = (law.__array_interface__["data"][0], *law.strides)
            if key not in known:
                known[key] = np.cumsum(law)
            ends.append(known[key])
    return ends


def drawn(ends: list[Floats], shape: tuple[int, ...], rng: np.random.Generator) -> Ints:
    tokens = [
        min(int(np.searchsorted(law, u * law[-1], side="right")), len(law) - 1)
        for law, u in zip(ends, rng.random(len(ends)), strict=True)
    ]
    return np.array(tokens, dtype=int).reshape(shape)


@dataclass(frozen=True)
class Situation:
    """Calls of a sampler, one after another.

    Attributes
    ----------
    batches : sequence of Batch
        The calls go round them.
    calls : int
        How many calls are looked at, in each half.
    warm : int
        Calls before that.
    judged : int
        The batch whose calls are looked at.
    rows : sequence of int, or None
        The rows that are looked at; None: all.
    among : callable, or None
        From a law to a mask of tokens, the event that is measured at every place; None: the
        first half of the calls chooses one.
    event : callable, or None
        From the completed blocks of a call, and of the one `lag` calls later, to a bool; None:
        the law of each place.
    layout : callable
        How arrays lie in memory when they are given.
    kept_for : int
        How many calls later an answer is read.
    threads : bool
        The batches are verified at once, in a thread each.
    """

    batches: Sequence[Batch]
    calls: int
    warm: int = 0
    judged: int = 0
    rows: Sequence[int] | None = None
    among: Callable[[Floats], Floats] | None = None
    lag: int = 0
    event: Callable[[Ints, Ints], bool] | None = None
    layout: Callable[[Floats], Floats] = np.asarray
    kept_for: int = 0
    threads: bool = False


@dataclass(frozen=True)
class Distance:
    """A lower estimate of the total variation in a situation, and its standard error."""

    tv: float
    error: float


def distance(make: Callable[[], Verify], situation: Situation, seed: int) -> Distance:
    """The change of the probability of one event, which total variation is at least.

    For laws the event is a set of tokens at one place, chosen by the first half of the calls and
    measured in the second.
    """
    rng = np.random.default_rng(seed)
    if situation.event is not None:
        return shift_of_event(make(), situation, rng)
    batch = situation.batches[situation.judged]
    rows = list(range(len(batch.target))) if situation.rows is None else list(situation.rows)
    calls = completed_calls(make(), situation, rng)
    halves = [[next(calls)[rows] for _ in range(situation.calls)] for _ in range(2)]
    places = batch.target.shape[1]
    shifts = []
    for place in range(places):
        law = batch.target[rows, place].mean(axis=0)
        first = frequencies([h[:, place] for h in halves[0]], len(law))
        likely = first > law if situation.among is None else situation.among(law)
        second = np.concatenate([h[:, place] for h in halves[1]])
        expected = float(law[likely].sum())
        seen = float(likely[second].mean())
        size = abs(float((first - law)[likely].sum()))
        shifts.append((size, abs(seen - expected), np.sqrt(0.25 / len(second))))
    _, shift, error = max(shifts)
    return Distance(shift, float(error))


def frequencies(tokens: list[Ints], v: int) -> Floats:
    counts = np.bincount(np.concatenate(tokens), minlength=v)
    return counts / counts.sum()


def shift_of_event(verify: Verify, situation: Situation, rng: np.random.Generator) -> Distance:
    """Its probability in the sampler's calls, less that in calls drawn from the target."""
    assert situation.event is not None
    batch, n = situation.batches[situation.judged], situation.calls
    drawn_calls = completed_calls(verify, situation, rng)
    seen = how_often(situation, drawn_calls, n)
    ideal = how_often(situation, (batch.ideal(rng) for _ in iter(int, 1)), 4 * n)
    variance = seen * (1 - seen) / n + ideal * (1 - ideal) / (4 * n) + 1 / n**2
    return Distance(abs(seen - ideal), float(np.sqrt(variance)))


def how_often(situation: Situation, calls: Iterator[Ints], n: int) -> float:
    """How often the event is seen in n calls and those `lag` calls after them."""
    assert situation.event is not None
    window = deque((next(calls) for _ in range(situation.lag)), maxlen=situation.lag + 1)
    seen = 0
    for _ in range(n):
        window.append(next(calls))
        seen += bool(situation.event(window[0], window[-1]))
    return seen / n


def completed_calls(
    verify: Verify, situation: Situation, rng: np.random.Generator
) -> Iterator[Ints]:
    """Completed blocks of the judged batch, call by call; answers may be read some calls later."""
    if situation.threads:
        yield from completed_together(verify, situation, rng)
    kept: list[tuple[Batch, bool, Ints, Ints]] = []
    n = 0
    while True:
        turn = n % len(situation.batches)
        batch = situation.batches[turn]
        judged = turn == situation.judged and n >= situation.warm
        tokens, counts = called(verify, batch, situation, rng)
        kept.append((batch, judged, tokens, counts))
        n += 1
        if len(kept) > situation.kept_for:
            batch, judged, tokens, counts = kept.pop(0)
            if judged:
                yield batch.completed(np.array(tokens), np.array(counts), rng)


def completed_together(
    verify: Verify, situation: Situation, rng: np.random.Generator
) -> Iterator[Ints]:
    with ThreadPoolExecutor(len(situation.batches)) as workers:
        while True:
            streams = rng.spawn(len(situation.batches))
            answers = [
                workers.submit(called, verify, batch, situation, own)
                for batch, own in zip(situation.batches, streams, strict=True)
            ]
            results = [answer.result() for answer in answers]
            yield situation.batches[situation.judged].completed(*results[situation.judged], rng)


def called(
    verify: Verify, batch: Batch, situation: Situation, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    p = situation.layout(batch.target)
    q = situation.layout(batch.draft) if batch.declared else None
    return verify(p, q, batch.drafts(rng), rng=np.random.default_rng(rng.integers(2**63)))


def batch_of(
    target: Floats,
    draft: Floats,
    rows: int,
    lens: Sequence[int] | None = None,
    declared: bool = True,
) -> Batch:
    """The same laws in all rows; every row has all drafts unless `lens` says otherwise."""
    lookahead = len(draft)
    return Batch(
        np.broadcast_to(target, (rows, *target.shape)),
        np.broadcast_to(draft, (rows, *draft.shape)),
        np.full(rows, lookahead) if lens is None else np.array(lens),
        declared,
    )


def filtered(v: int, places: int, support: int, seed: int) -> Floats:
    """Laws after top-p: each place has mass on `support` random ids only, in falling shares."""
    rng = np.random.default_rng([seed, v, support])
    laws = np.zeros((places, v))
    for law in laws:
        law[rng.choice(v, support, replace=False)] = rng.dirichlet(np.ones(support))
    return laws


def zipf(v: int, places: int, exponent: float, seed: int) -> Floats:
    """Unfiltered laws of a large vocabulary: 1 / rank^exponent, ids in random order."""
    rng = np.random.default_rng([seed, v])
    shares = 1 / np.arange(1, v + 1) ** exponent
    return np.array([rng.permutation(shares / shares.sum()) for _ in range(places)])


def flat(v: int, places: int, support: int, seed: int) -> Floats:
    """High temperature: `support` random ids, equally likely."""
    rng = np.random.default_rng([seed, v, support])
    laws = np.zeros((places, v))
    for law in laws:
        law[rng.choice(v, support, replace=False)] = 1 / support
    return laws


def drafter_of(target: Floats, agreement: float, seed: int) -> Floats:
    """A drafter with `agreement` of the target's law; the rest is on its ids at random."""
    rng = np.random.default_rng(seed)
    laws = agreement * target[:-1]
    for law, p in zip(laws, target[:-1], strict=True):
        ids = np.flatnonzero(p)
        law[ids] += (1 - agreement) * rng.dirichlet(np.ones(len(ids)))
    return laws / laws.sum(axis=1, keepdims=True)
