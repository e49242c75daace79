"""Stage smoke, randomness: whether it differs from call to call, and from row to row."""

import math
from collections import Counter
from functools import partial

import numpy as np

from specref.arrays import NO_TOKEN, Floats, Ints
from specref.conformance.checks.check import CALLS, DRAFTS, Check, failed, not_applicable, passed
from specref.conformance.judge import Judge
from specref.conformance.status import Finding, Outcome
from specref.conformance.texts.argmax import departures, likeliest
from specref.conformance.texts.greedy import first_departure
from specref.contracts.batch import Answer, Batch
from specref.contracts.fixtures import CHAIN_FIXTURES
from specref.contracts.sampling import LARGE_BATCH
from specref.contracts.timeout import Deadline, within
from specref.models import as_float

ROWS, TIMES = 16, 256
SINGLE, TEXTS, SAMPLE = 1_024, 64, 64
LEAST = 20
# Of the first token, whose law every lossless rule has in common.
COLLISIONS = (3**2 + 1 + 1 + 1) / 6**2
RARE = 1e-12


def identical_rows(rows: int) -> Batch:
    """Rows in which every draft is certain, and no token of the target is.

    The first token of every lossless rule is random then, and has the target's law.
    """
    p = np.array([[3, 1, 1, 1], [1, 3, 1, 1], [1.5, 1.5, 1.5, 1.5]]) / 6
    q = np.eye(4)[:2]
    tile, none = (rows, 1, 1), np.zeros(rows, dtype=np.int64)
    return Batch(np.tile(p, tile), np.tile(q, tile), np.tile([0, 1], (rows, 1)), none + 2, none)


def answers(judge: Judge, rows: int, times: int) -> list[Answer]:
    """The answers to the same batch in repeated calls."""
    batch, rng, verifier = identical_rows(rows), judge.rng("varying"), judge.verifier
    deadline = Deadline()

    def calls() -> list[Answer]:
        return [verifier.answer(batch, rng, deadline=deadline) for _ in range(times)]

    return within(verifier.timeout, calls, deadline)


def calls_vary(judge: Judge) -> Outcome:
    """Other randomness gives other blocks, and no call repeats an earlier one's."""
    given = answers(judge, 1, SINGLE)
    tokens = np.concatenate([answer.tokens for answer in given])
    distinct, blocks = np.unique(tokens, axis=0, return_inverse=True)
    if len(distinct) > 1:
        distance = repeats(blocks.ravel())
        if distance:
            return failed(f"calls repeat the random numbers of {distance} calls before")
        return passed(_seen(len(distinct), SINGLE))
    batch = judge.sample(judge.fixtures[0], SAMPLE, "argmax")
    tokens = judge.verifier(batch, judge.rng("argmax")).tokens
    eos = judge.fixture(judge.fixtures[0]).eos
    own = departures(batch, likeliest(judge.verifier, batch), tokens, eos)
    return failed(_never(SINGLE, greedy=not own.size))


def texts_vary(judge: Judge) -> Outcome:
    """Other randomness gives other tokens."""
    _, blocks, _ = judge.calls(judge.fixture("wide").only(0))(TEXTS, judge.rng("varying"))
    distinct = len(np.unique(blocks, axis=0))
    if distinct > 1:
        return passed(_seen(distinct, TEXTS))
    return failed(_never(TEXTS, greedy=all(map(partial(_is_argmax, judge), CHAIN_FIXTURES))))


def _is_argmax(judge: Judge, name: str) -> bool:
    """Whether the tokens at each place of a fixture are those of greedy decoding."""
    fixture = judge.fixture(name)
    _, blocks, _ = judge.calls(fixture)(len(fixture.places), judge.rng("argmax"))
    drawn = [tuple(token for token in block if token >= 0) for block in blocks.tolist()]
    target = as_float(fixture.target)
    return all(
        first_departure(target, place.context, block) is None
        for place, block in zip(fixture.places, drawn, strict=True)
    )


def _seen(distinct: int, times: int) -> str:
    return f"{distinct} different answers in {times:,} calls"


def _never(times: int, *, greedy: bool) -> str:
    hint = "; its tokens are those of argmax (greedy=true if it decodes so)" if greedy else ""
    return (
        f"{times:,} calls with other randomness gave one and the same answer: its generator is "
        f"seeded anew in every call, or it has none{hint}"
    )


def rows_vary(judge: Judge) -> Outcome:
    """Identical rows do not get the same random numbers, neither all of them nor distant ones.

    They do if, in every call, all rows agree, though not always on the same: for independent
    rows that has a chance below 1e-11, whatever the law of a row.
    """
    rows = min(judge.capabilities.batch or ROWS, ROWS)
    if rows < 2:
        return not_applicable("takes one row at a time")
    given = answers(judge, rows, TIMES)
    if agree([answer.counts for answer in given]):
        return failed(f"in {TIMES} calls all {rows} identical rows accepted equally many drafts")
    for count in (1, 2, 3):
        last = [answer.tokens[answer.counts == count, count - 1] for answer in given]
        if agree(last):
            return failed(
                f"in {TIMES} calls all identical rows with {count} tokens had the same last one"
            )
    (large,) = answers(judge, min(judge.capabilities.batch or LARGE_BATCH, LARGE_BATCH), 1)
    single = np.where(large.counts == 1, large.tokens[:, 0], NO_TOKEN)
    shares = np.bincount(large.counts) / len(large.counts)
    for values, most in ((single, COLLISIONS), (large.counts, 0.5 + float(shares @ shares))):
        distance = repeats(values, most)
        if distance:
            return failed(f"identical rows {distance} apart share random numbers")
    return passed()


def agree(calls: list[Ints]) -> bool:
    """Whether the values of each call are the same, and at least two values are frequent.

    Examples
    --------
    >>> agree([np.array([0, 0])] * LEAST + [np.array([1, 1])] * LEAST)
    True
    >>> agree([np.array([0, 0])] * LEAST + [np.array([1, 0])] * LEAST)
    False
    """
    shared = [values for values in calls if len(values) > 1]
    if any((values != values[0]).any() for values in shared):
        return False
    times = Counter(int(values[0]) for values in shared)
    return sum(count >= LEAST for count in times.values()) > 1


def repeats(values: Ints, most: float = COLLISIONS) -> int | None:
    """The shortest distance at which values agree more often than independent ones do.

    By Hoeffding's inequality, for the two halves of the pairs at a distance that have no value
    in common; over all distances it errs with probability at most 1e-12. Where values agree
    too often at every distance, their law is to blame.

    Parameters
    ----------
    values : ndarray of int, shape (n,)
        -1 where there is none.
    most : float
        An upper bound on the probability that two values agree.

    Examples
    --------
    >>> values = np.random.default_rng(1).integers(4, size=1000)
    >>> repeats(values), repeats(np.tile(values[:300], 4))
    (None, 300)
    """
    distinct, times = np.unique(values[values >= 0], return_counts=True)
    most = max(most, float((times**2).sum() / max(times.sum(), 1) ** 2))
    pairs = _at_distances(values >= 0)
    agreeing = sum(_at_distances(values == value) for value in distinct)
    slack = np.sqrt((math.log(2 * len(values) / RARE)) / np.maximum(pairs, 1))
    found = np.flatnonzero(agreeing > (most + slack) * pairs)
    return int(found[0]) + 1 if len(found) else None


def _at_distances(there: np.ndarray) -> Floats:
    """The number of pairs at distance 1, 2, … up to half the length that are both there."""
    size = len(there)
    spectrum = np.fft.rfft(there, 2 * size)
    counts = np.fft.irfft(spectrum * spectrum.conj(), 2 * size)[1 : size // 2 + 1]
    return np.asarray(np.rint(counts))


CHECKS = (
    Check("smoke/calls-vary", DRAFTS, calls_vary, finding=Finding.DEPENDENCE, law=True),
    Check("smoke/texts-vary", CALLS, texts_vary, finding=Finding.DEPENDENCE, law=True),
    Check("smoke/rows-vary", DRAFTS, rows_vary, finding=Finding.DEPENDENCE, law=True),
)
