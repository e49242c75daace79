"""Coupled replay: an implementation and the float64 reference, fed the same coins.

However two samplers are coupled, TV(their laws) <= P(their outputs differ). The number of
trials that differ is binomial, so an exact upper bound on its rate bounds the total variation:
ln(1/alpha) / eps trials certify eps, whatever the vocabulary. The bound covers the arithmetic
of an implementation, not its random number generator, which the coins replace.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy

from specref.arrays import Floats, Ints
from specref.coins import Coins, draw_coins, race_winner
from specref.distributions import FLOAT_TOLERANCE
from specref.statistics.campaign.levels import ALPHA
from specref.statistics.floats.floats import verify_float64

Implementation: TypeAlias = Callable[[Floats, Floats, Ints, Coins], Ints]
CELLS = 1 << 21


class Inputs(NamedTuple):
    """The inputs of a verification, for a batch of trials."""

    p: Floats
    q: Floats
    drafts: Ints
    coins: Coins

    def copy(self) -> "Inputs":
        coins = Coins(self.coins.accept.copy(), self.coins.race.copy())
        return Inputs(self.p.copy(), self.q.copy(), self.drafts.copy(), coins)

    def trial(self, index: int) -> "Inputs":
        """One trial, as a batch of its own."""
        row = slice(index, index + 1)
        return Inputs(self.p[row], self.q[row], self.drafts[row], self.coins[row]).copy()


@dataclass(frozen=True, eq=False)
class Mismatch:
    """A trial whose outputs differ; ``implementation(*mismatch.inputs)`` replays it alone.

    * `inputs`: A batch of this one trial.
    * `expected`, `actual`: The blocks of the reference and of the implementation, padded with -1.
    """

    trial: int
    inputs: Inputs = field(repr=False)
    expected: tuple[int, ...]
    actual: tuple[int, ...]

    def __str__(self) -> str:
        drafts = tuple(self.inputs.drafts[0].tolist())
        return f"trial {self.trial}, drafts {drafts}: got {self.actual}, expected {self.expected}"


@dataclass(frozen=True, eq=False)
class CoupledResult:
    """How often an implementation differs from the reference, and what follows from it.

    Attributes
    ----------
    trials, mismatches : int
    upper_bound : float
        The total variation between the joint distributions of drafts and block, averaged over
        instances, is at most this, with confidence 1 - alpha.
    first_mismatch : Mismatch or None
    alpha : float
    """

    trials: int
    mismatches: int
    upper_bound: float
    first_mismatch: Mismatch | None
    alpha: float


def coupled_replay(
    implementation: Implementation,
    p: Floats,
    q: Floats,
    *,
    trials: int,
    rng: np.random.Generator,
    alpha: float = ALPHA,
    advance: Callable[[int], None] = lambda trials: None,
) -> CoupledResult:
    """Run an implementation and the reference on the same random numbers; bound their TV.

    Memory is bounded, about two million probabilities at a time. With a lookahead of 0 single
    draws are coupled, such as a draft model's.

    Parameters
    ----------
    implementation : callable
        `(p, q, drafts, coins)` -> blocks padded with -1, as `verify_float64`, with rows of
        p and q for each trial. It may overwrite its arguments.
    p : ndarray, shape (instances, lookahead + 1, V)
        Trials take the instances in turn.
    q : ndarray, shape (instances, lookahead, V)
        What drafts are drawn from.
    trials : int
    rng : numpy.random.Generator
        Of drafts and random numbers.
    alpha : float
        The chance that the bound fails.
    advance : callable
        Told how many trials are done, now and then.

    Returns
    -------
    CoupledResult

    Raises
    ------
    ValueError
        Shapes do not fit, a row is no distribution, `trials` < 1, `alpha` is not in (0, 1), or
        the implementation returns another shape.

    Examples
    --------
    >>> p, q = np.array([[[0.5, 0.5], [0.1, 0.9]]]), np.array([[[0.8, 0.2]]])
    >>> rng = np.random.default_rng(1)
    >>> result = coupled_replay(verify_float64, p, q, trials=10_000, rng=rng)
    >>> result.mismatches, round(result.upper_bound, 4)
    (0, 0.0021)
    """
    if not trials >= 1:
        raise ValueError(f"trials = {trials}: expected at least 1")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha = {alpha}: expected a number in (0, 1)")
    _check_rows(p, q)
    mismatches, first = 0, None
    for start, inputs in _batches(p, q, trials, rng):
        differing, found = _compared(implementation, inputs, start)
        mismatches += differing
        first = first or found
        advance(len(inputs.drafts))
    return CoupledResult(trials, mismatches, upper_rate(mismatches, trials, alpha), first, alpha)


def first_mismatch(
    implementation: Implementation, p: Floats, q: Floats, drafts: Ints, coins: Coins
) -> Mismatch | None:
    """The first trial on which an implementation and the reference differ, for given coins.

    For coins that chance hardly ever tosses: a uniform of 0, or the last one below 1.

    Parameters and errors as `verify_float64`; also `ValueError` for an output of another shape.
    """
    p, q = (np.broadcast_to(rows, (len(drafts), *rows.shape[1:])) for rows in (p, q))
    return _compared(implementation, Inputs(p, q, drafts, coins), 0)[1]


def upper_rate(events: int, trials: int, alpha: float) -> float:
    """The exact one-sided upper confidence bound on a rate (Clopper and Pearson 1934).

    It holds for the mean rate of independent trials with different rates as well (Hoeffding
    1956, Theorem 4).
    """
    if events == trials:
        return 1.0
    return float(scipy.special.betainccinv(events + 1, trials - events, alpha))


def _batches(
    p: Floats, q: Floats, trials: int, rng: np.random.Generator
) -> Iterator[tuple[int, Inputs]]:
    instances, lookahead, size = q.shape
    batch = max(1, CELLS // (2 * (lookahead + 1) * size))
    for start in range(0, trials, batch):
        turn = np.arange(start, min(start + batch, trials)) % instances
        drafts = np.empty((len(turn), lookahead), dtype=np.int64)
        for i in range(lookahead):
            race = rng.standard_exponential((len(turn), size))
            drafts[:, i] = race_winner(q[turn, i], race)
        yield start, Inputs(p[turn], q[turn], drafts, draw_coins(len(turn), lookahead, size, rng))


def _compared(
    implementation: Implementation, inputs: Inputs, start: int
) -> tuple[int, Mismatch | None]:
    """How many trials differ, and the first of them; `start` is the number of the first trial."""
    expected = verify_float64(*inputs)
    actual = np.asarray(implementation(*inputs.copy()))
    if actual.shape != expected.shape:
        shapes = f"shape {actual.shape}: expected {expected.shape}"
        raise ValueError(f"implementation returned {shapes}")
    rows = np.flatnonzero((expected != actual).any(axis=1))
    if not rows.size:
        return 0, None
    row = int(rows[0])
    blocks = (tuple(tokens[row].tolist()) for tokens in (expected, actual))
    return rows.size, Mismatch(start + row, inputs.trial(row), *blocks)


def _check_rows(p: Floats, q: Floats) -> None:
    if p.ndim != 3 or not len(p) or q.shape != (len(p), p.shape[1] - 1, p.shape[2]):
        raise ValueError(
            f"p has shape {p.shape} and q {q.shape}: expected (instances, lookahead + 1, V) and "
            "(instances, lookahead, V)"
        )
    for name, rows in (("p", p), ("q", q)):
        fair = (rows >= 0).all(axis=-1) & (np.abs(rows.sum(axis=-1) - 1) <= FLOAT_TOLERANCE)
        wrong = np.argwhere(~fair)
        if len(wrong):
            instance, position = wrong[0]
            row = rows[instance, position]
            raise ValueError(
                f"{name}[{instance}, {position}] has sum {row.sum()} and minimum {row.min()}: "
                "expected a distribution (normalise rows of low precision in float64)"
            )
