"""Blocks by the million: one iteration is explored once, and all trials walk through it.

`enumerate_paths` finds every decision that a step may take. Each is a row of thresholds in a
table, and NumPy walks all trials from table to table, one number in [0, 1) a decision, as
`Sampled` spends them. So a block is the one that the step itself returns for these numbers.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from numbers import Integral
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from specref.algorithms.decoding import Step
from specref.arrays import NO_TOKEN, Floats, Integers
from specref.chance import (
    MAX_PATHS,
    Chance,
    OutsideChanceError,
    Replayed,
    Traced,
    enumerate_paths,
)
from specref.chance import Step as Decision
from specref.distributions import Probability
from specref.models import Model, as_model, watched
from specref.proofs.exact import check_step, program_of
from specref.rules import rule_of
from specref.spoiled import unspoiled
from specref.vocabulary import Tokens

__all__ = [
    "CHUNK",
    "Level",
    "Simulation",
    "Tables",
    "count_blocks",
    "draw_blocks",
    "inverse_cdf",
    "simulate",
    "tabulate",
]

CHUNK = 1 << 14
"""Trials that walk at once: their numbers stay in a processor's cache."""
NOWHERE = np.iinfo(np.intp).min
"""What follows an impossible choice: no table has such a row, and no block such a number."""
Numbers: TypeAlias = Callable[[int, Integers], Floats]


@dataclass(frozen=True, eq=False)
class Level:
    """The decisions that may come after a given number of others, one in each row.

    Attributes
    ----------
    thresholds : ndarray of float64, shape (decisions, width)
        Ascending in each row; outcome i is the number of entries that a uniform reaches. Of an
        accept, outcome 0 is yes. The width is a power of two.
    after : ndarray of int, shape (decisions, width)
        The row of the next level after each outcome, or ~i for the end of an iteration with
        block i.
    """

    thresholds: Floats
    after: Integers

    def follow(self, rows: Integers, uniforms: Floats) -> Integers:
        """Where each trial goes: a bisection of its row, the same steps for all."""
        half = self.after.shape[1]
        cells = rows * half
        while half := half // 2:
            cells += half * (uniforms >= self.thresholds.take(cells + (half - 1)))
        after: Integers = self.after.take(cells)
        return after


@dataclass(frozen=True, eq=False)
class Tables:
    """One iteration as numbers alone: it can be sent to other processes.

    Attributes
    ----------
    levels : tuple of Level
        The first holds the first decision alone.
    outcomes : list of tuple of int
        Every possible block, in ascending order.
    """

    levels: tuple[Level, ...]
    outcomes: list[Tokens]

    def padded(self) -> tuple[Integers, Integers]:
        """The blocks, padded with -1, and the number of tokens in each."""
        counts = np.array([len(block) for block in self.outcomes])
        blocks = np.full((len(counts), counts.max()), NO_TOKEN)
        tokens = chain.from_iterable(self.outcomes)
        blocks[np.arange(counts.max()) < counts[:, None]] = list(tokens)
        return blocks, counts


@dataclass(frozen=True, eq=False)
class Simulation:
    """The blocks of independent iterations.

    Attributes
    ----------
    blocks : ndarray of int, shape (trials, longest)
        One block in each row, padded with -1 to the longest that is possible.
    counts : ndarray of int, shape (trials,)
        The number of tokens in each.
    """

    blocks: Integers
    counts: Integers


class Row(NamedTuple):
    """A decision: its weights, whether it is an accept, and what follows each branch."""

    weights: tuple[Probability, ...]
    accepts: bool
    after: tuple[int, ...]


def tabulate(
    step: Step | str,
    target: Model,
    drafter: Model,
    context: Tokens = (),
    lookahead: int = 1,
    *,
    limit: int = MAX_PATHS,
) -> Tables:
    """Explore one iteration of a step: every decision that it may take, and every block.

    Parameters
    ----------
    step : callable or str
        `(target, drafter, context, lookahead, chance)` -> block, or a rule in
        `specref.rules.RULES`.
    target, drafter : Model
        With exact probabilities, or floats.
    context : tuple of int
        Target token ids.
    lookahead : int
        Passed to `step`.
    limit : int
        The most random paths that an iteration may have.

    Returns
    -------
    Tables

    Raises
    ------
    TypeError
        `step` is no function of five arguments, or a block no tuple of token ids.
    TooManyPathsError
        More than `limit` paths, or 1,000 decisions on one.
    OutsideChanceError
        `step` is no function of its chance, or asks it by neither `draw` nor `accept`.
    ValueError
        An unknown rule, an empty block, or an argument that the step refuses.

    Examples
    --------
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> target = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
    >>> def greedy(target, drafter, context, lookahead, chance):
    ...     return (int(chance.accept(1 / 4, "accept[0]")),)
    >>> tables = tabulate(greedy, target, target)
    >>> tables.outcomes, tables.levels[0].thresholds
    ([(0,), (1,)], array([[0.25,  inf]]))
    """
    decisions, blocks = _explored(step, target, drafter, tuple(context), lookahead, limit)
    outcomes = sorted(set(blocks.values()))
    ends = {block: ~number for number, block in enumerate(outcomes)}
    rows = {choices: ends[block] for choices, block in blocks.items()}
    levels: list[Level] = []
    for some in reversed(decisions):
        # Decisions with the same thresholds, after which the same may happen, are one row.
        same: dict[Row, int] = {}
        for choices, one in some.items():
            after = tuple(rows.get((*choices, i), NOWHERE) for i in range(len(one.weights)))
            row = Row(one.weights, isinstance(one.choice, bool), after)
            rows[choices] = same.setdefault(row, len(same))
        levels.insert(0, _level(list(same)))
    return Tables(tuple(levels), outcomes)


def _explored(
    step: Step | str,
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    limit: int,
) -> tuple[list[dict[Tokens, Decision]], dict[Tokens, Tokens]]:
    """The decisions after so many choices, by these choices; and the block of each path."""
    step = rule_of(step).step if isinstance(step, str) else step
    check_step(step)
    target, drafter = as_model(target, "target"), as_model(drafter, "drafter")
    program = program_of(step, target, drafter, context, lookahead)
    decisions: list[dict[Tokens, Decision]] = []
    blocks: dict[Tokens, Tokens] = {}
    traced = Traced(Replayed(()))

    def run(chance: Chance) -> Tokens:
        nonlocal traced
        traced = Traced(chance)
        return program(traced)

    with unspoiled(), watched(target, drafter, context, lookahead):
        for path in enumerate_paths(run, limit, twice=True):
            blocks[path.choices] = path.outcome
            if len(traced.steps) < len(path.choices):
                raise OutsideChanceError("step calls chance.choose: expected draw or accept")
            decisions += ({} for _ in range(len(decisions), len(traced.steps)))
            for depth, one in enumerate(traced.steps):
                decisions[depth].setdefault(path.choices[:depth], one)
    return decisions, blocks


def _level(rows: list[Row]) -> Level:
    width = 1 << (max(len(row.weights) for row in rows) - 1).bit_length()
    thresholds = np.full((len(rows), width), np.inf)
    after = np.full((len(rows), width), NOWHERE)
    for number, row in enumerate(rows):
        size = len(row.weights)
        if row.accepts:
            thresholds[number, 0] = _at_least(row.weights[1])
            after[number, :size] = row.after[::-1]
        else:
            thresholds[number, :size] = inverse_cdf(np.array(row.weights, dtype=np.float64))
            after[number, :size] = row.after
    return Level(thresholds, after)


def inverse_cdf(weights: Floats) -> Floats:
    """The least u that pass each token in the convention of `Sampled`, rounding included.

    Token k is passed iff u * total >= cumulative[k] in floating point. From the last possible
    token on that is 1: for u < 1 the product rounds to less than the total.

    Examples
    --------
    >>> inverse_cdf(np.array([0.25, 0.0, 0.75, 0.0]))
    array([0.25, 0.25, 1.  , 1.  ])
    """
    cumulative = np.cumsum(weights)
    total = cumulative[-1]
    least: Floats = cumulative / total
    # The quotient is rounded: step to the neighbouring floats until it is the least.
    while (low := least * total < cumulative).any():
        least[low] = np.nextafter(least[low], np.inf)
    while (high := (least > 0) & (np.nextafter(least, 0) * total >= cumulative)).any():
        least[high] = np.nextafter(least[high], 0)
    return least


def _at_least(probability: Probability) -> float:
    """The least float that is not below `probability`: u < probability iff u is below it."""
    rounded = float(probability)
    return rounded if rounded >= probability else math.nextafter(rounded, math.inf)


def simulate(
    step: Step | str,
    target: Model,
    drafter: Model,
    context: Tokens = (),
    lookahead: int = 1,
    *,
    trials: int,
    rng: np.random.Generator | None = None,
    uniforms: ArrayLike | None = None,
    chunk: int = CHUNK,
) -> Simulation:
    """Simulate independent iterations of a step, all in the same context.

    Parameters
    ----------
    step, target, drafter, context, lookahead
        As `tabulate`.
    trials : int
        How many iterations.
    rng : numpy.random.Generator, optional
        Where numbers come from.
    uniforms : array_like, shape (trials, decisions), optional
        The numbers themselves, instead of `rng`: entry j of a row is the one that decides the
        j-th decision of an iteration. The longest iteration takes ``len(tabulate(...).levels)``
        decisions; a shorter one leaves the rest unused.
    chunk : int
        How many iterations to walk at once.

    Returns
    -------
    Simulation

    Raises
    ------
    TypeError
        As `tabulate`; or not exactly one of `rng` and `uniforms` is given.
    ValueError
        As `tabulate`; `trials` < 0, `chunk` < 1, or `uniforms` of another shape or not in
        [0, 1).

    Examples
    --------
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> vocabulary = Vocabulary("ab")
    >>> target = iid_model(vocabulary, ["1/2", "1/2"])
    >>> drafter = iid_model(vocabulary, [1, 0])
    >>> numbers = [[0.3, 0.4, 0.9], [0.3, 0.6, 0.9]]
    >>> simulate("standard", target, drafter, trials=2, uniforms=numbers).blocks
    array([[ 0,  1],
           [ 1, -1]])
    """
    tables = tabulate(step, target, drafter, context, lookahead)
    numbers = _numbers(rng, uniforms, (trials, len(tables.levels)))
    return _simulated(tables, trials, numbers, chunk)


def draw_blocks(
    tables: Tables, trials: int, rng: np.random.Generator, chunk: int = CHUNK
) -> Simulation:
    """Simulate from tables.

    Examples
    --------
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> target = iid_model(Vocabulary("a"), [1])
    >>> draw_blocks(tabulate("slem", target, target, (), 2), 1, np.random.default_rng(1)).blocks
    array([[0, 0, 0]])
    """
    return _simulated(tables, trials, _fresh(rng), chunk)


def count_blocks(
    tables: Tables, trials: int, rng: np.random.Generator, chunk: int = CHUNK
) -> dict[Tokens, int]:
    """How often each block comes out, in ascending order; memory does not grow with `trials`.

    Examples
    --------
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> target = iid_model(Vocabulary("a"), [1])
    >>> count_blocks(tabulate("slem", target, target, (), 3), 100, np.random.default_rng(1))
    {(0, 0, 0, 0): 100}
    """
    totals = np.zeros(len(tables.outcomes), dtype=np.intp)
    for blocks in _walked(tables, trials, _fresh(rng), chunk):
        totals += np.bincount(blocks, minlength=len(totals))
    pairs = zip(tables.outcomes, totals.tolist(), strict=True)
    return {block: count for block, count in pairs if count}


def _simulated(tables: Tables, trials: int, numbers: Numbers, chunk: int) -> Simulation:
    nothing = np.empty(0, dtype=np.intp)
    indices = np.concatenate([nothing, *_walked(tables, trials, numbers, chunk)])
    blocks, counts = tables.padded()
    return Simulation(blocks[indices], counts[indices])


def _walked(tables: Tables, trials: int, numbers: Numbers, chunk: int) -> Iterator[Integers]:
    """The number of each trial's block: decision by decision, all trials move on together."""
    for name, value, least in (("trials", trials, 0), ("chunk", chunk, 1)):
        if not isinstance(value, Integral) or value < least:
            raise ValueError(f"{name} = {value!r}: expected an integer >= {least}")
    for first in range(0, trials, chunk):
        trial = np.arange(first, min(first + chunk, trials))
        rows = np.zeros(len(trial), dtype=np.intp)
        if not tables.levels:
            rows = ~rows
        for depth, level in enumerate(tables.levels):
            going = np.flatnonzero(rows >= 0)
            rows[going] = level.follow(rows[going], numbers(depth, trial[going]))
        yield ~rows


def _numbers(
    rng: np.random.Generator | None, uniforms: ArrayLike | None, shape: tuple[int, int]
) -> Numbers:
    """Numbers drawn when they are needed, or those that are given: exactly one of both."""
    if rng is not None and uniforms is None:
        return _fresh(rng)
    if rng is not None or uniforms is None:
        raise TypeError("expected either rng or uniforms, and not both")
    given = np.asarray(uniforms, dtype=np.float64)
    if given.shape != shape:
        raise ValueError(
            f"uniforms has shape {given.shape}: expected (trials, decisions) = {shape}"
        )
    outside = np.argwhere(~((given >= 0) & (given < 1)))
    if len(outside):
        row, column = outside[0].tolist()
        raise ValueError(
            f"uniforms[{row}, {column}] = {given[row, column]}: expected a number in [0, 1)"
        )
    return lambda depth, trial: given[trial, depth]


def _fresh(rng: np.random.Generator) -> Numbers:
    return lambda depth, trial: rng.random(len(trial))
