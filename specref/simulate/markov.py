"""Standard speculative decoding over models that look one token back, at any vocabulary size.

A tree of contexts has some V**(lookahead + 1) nodes; two models of this kind have V + 1 rows
each. Every trial carries the number of its row, and looks its uniforms up there.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from specref.algorithms.lookahead import positions
from specref.arrays import Floats
from specref.distributions import FLOAT_TOLERANCE, corrected
from specref.machines.states import inverse_cdf
from specref.simulate.sampling import (
    CHUNK,
    Coins,
    Simulation,
    chunks,
    coins_of,
)
from specref.simulate.tables import NOTHING, Integers

BUCKETS_PER_TOKEN = 4
Guides: TypeAlias = NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True, eq=False)
class Rows:
    """Distributions to draw from by inverse CDF, each draw in constant expected time.

    The method of guide tables (Chen and Asau 1974): [0, 1) is cut into equal buckets, and a
    uniform is compared only with the thresholds in its own bucket, by bisection between `low`
    and `high`.

    Attributes
    ----------
    thresholds : ndarray of float64, shape (rows, V)
        Ascending in each row; the token is the number of entries that a uniform reaches.
        In a row of zeros, where nothing can be drawn, that is V.
    guides : ndarray of unsigned int, shape (rows, buckets + 1)
        Entry j is the number of thresholds below j / buckets. The number of buckets is a
        power of two: multiplying by it does not round.
    """

    thresholds: Floats
    guides: Guides

    def draw(self, rows: Integers, uniforms: Floats) -> Integers:
        """The token that each uniform gives in its row."""
        size, width = self.thresholds.shape[1], self.guides.shape[1]
        cells = (uniforms * (width - 1)).astype(np.intp)
        cells += rows * width
        low: Integers = self.guides.take(cells).astype(np.intp)
        cells += 1
        high: Integers = self.guides.take(cells).astype(np.intp)
        apart = np.flatnonzero(low < high)
        while len(apart):
            least, most = low[apart], high[apart]
            middle = (least + most) // 2
            reached = uniforms[apart] >= self.thresholds.take(rows[apart] * size + middle)
            low[apart] = least = np.where(reached, middle + 1, least)
            high[apart] = most = np.where(reached, most, middle)
            apart = apart[least < most]
        return low


@dataclass(frozen=True, eq=False)
class MarkovTables:
    """A pair of models that look one token back, as numbers alone: it can be sent elsewhere.

    Attributes
    ----------
    target, drafter, residual : Rows
        The rows of p and q, and what a rejected draft is replaced from, row by row.
    acceptance : ndarray of float64, shape (V + 1, V)
        min(1, p / q); 1 where q is zero, which no draft meets.
    """

    target: Rows
    drafter: Rows
    residual: Rows
    acceptance: Floats

    @property
    def size(self) -> int:
        """V, the size of the vocabulary, and the number of the row without a last token."""
        size: int = self.acceptance.shape[1]
        return size


def markov_tables(p: ArrayLike, q: ArrayLike) -> MarkovTables:
    """Compile two models that look one token back, in time and memory of V * V.

    Parameters
    ----------
    p, q : array_like of float, shape (V + 1, V)
        The target's and the drafter's distributions: row t after token t, row V after the
        empty context. Floats as they are: nothing is renormalised.

    Returns
    -------
    MarkovTables

    Raises
    ------
    TypeError
        `p` or `q` does not hold real numbers.
    ValueError
        Another shape, a negative or NaN entry, or a row that does not sum to 1 within 1e-9.

    Examples
    --------
    >>> p, q = [[0.5, 0.5], [0.25, 0.75], [0, 1]], [[0.5, 0.5], [1, 0], [0.5, 0.5]]
    >>> markov_tables(p, q).acceptance
    array([[1.  , 1.  ],
           [0.25, 1.  ],
           [0.  , 1.  ]])
    """
    p, q = _as_rows(p, "p"), _as_rows(q, "q")
    if p.shape != q.shape:
        raise ValueError(f"q has shape {q.shape}: expected that of p, {p.shape}")
    after = np.stack([corrected(*rows) for rows in zip(p, q, strict=True)])
    with np.errstate(over="ignore"):
        acceptance = np.divide(p, q, out=np.ones_like(p), where=q > 0)
    np.minimum(acceptance, 1, out=acceptance)
    return MarkovTables(compiled_rows(p), compiled_rows(q), compiled_rows(after), acceptance)


def markov_columns(lookahead: int) -> tuple[str, ...]:
    """The sites of an iteration: column j of a matrix of uniforms feeds entry j.

    Raises
    ------
    ValueError
        `lookahead` is negative or not an integer.

    Examples
    --------
    >>> markov_columns(1)
    ('draft[0]', 'accept[0]', 'residual', 'bonus')
    """
    pairs = ((f"draft[{i}]", f"accept[{i}]") for i in positions(lookahead))
    return (*(site for pair in pairs for site in pair), "residual", "bonus")


def simulate_markov(
    p: ArrayLike,
    q: ArrayLike,
    lookahead: int = 1,
    *,
    trials: int,
    rng: np.random.Generator | None = None,
    uniforms: ArrayLike | None = None,
    start: ArrayLike | None = None,
    chunk: int = CHUNK,
) -> Simulation:
    """Simulate independent iterations of standard speculative decoding, tables included.

    Leviathan et al. 2023, Algorithm 1. No token ends a block. With lookahead 0 it is
    autoregressive decoding, and `q` is not used.

    Parameters
    ----------
    p, q
        As `markov_tables`.
    lookahead : int
        How many tokens to draft.
    trials : int
        How many iterations.
    rng : numpy.random.Generator, optional
        Where uniforms come from.
    uniforms : array_like, shape (trials, 2 * lookahead + 2), optional
        The uniforms themselves, instead of `rng`. Column j feeds the site
        ``markov_columns(lookahead)[j]``, in the convention of `Sampled`: a draw scales u by
        the total and passes what it reaches, an accept says yes iff u < probability. Sites
        that an iteration does not come to leave their column unused.
    start : array_like of int, shape () or (trials,), optional
        The row of `p` and `q` that an iteration begins in: the last token of its context, or
        V, which is what is meant if it is not given, for the empty context. The last tokens
        of these blocks are the start of the next iteration of a decoding loop.
    chunk : int
        How many iterations to walk at once.

    Returns
    -------
    Simulation
        Blocks of shape (trials, lookahead + 1).

    Raises
    ------
    TypeError
        As `markov_tables`, `start` does not hold integers, or not exactly one of `rng` and
        `uniforms` is given.
    ValueError
        As `markov_tables`; `lookahead` or `trials` < 0, `chunk` < 1, `start` or `uniforms` of
        another shape, a start not in 0 to V, or a uniform not in [0, 1).

    Examples
    --------
    >>> p, q = [[0, 1], [0.5, 0.5], [0.5, 0.5]], [[1, 0], [0.5, 0.5], [1, 0]]
    >>> coins = [[0.3, 0.4, 0.9, 0.9], [0.3, 0.6, 0.9, 0.0]]
    >>> simulate_markov(p, q, 1, trials=2, uniforms=coins).blocks
    array([[ 0,  1],
           [ 1, -1]])
    """
    return draw_markov(
        markov_tables(p, q),
        lookahead,
        trials=trials,
        rng=rng,
        uniforms=uniforms,
        start=start,
        chunk=chunk,
    )


def draw_markov(
    tables: MarkovTables,
    lookahead: int = 1,
    *,
    trials: int,
    rng: np.random.Generator | None = None,
    uniforms: ArrayLike | None = None,
    start: ArrayLike | None = None,
    chunk: int = CHUNK,
) -> Simulation:
    """Simulate as `simulate_markov`, from compiled tables.

    Raises
    ------
    TypeError, ValueError
        As `simulate_markov`.

    Examples
    --------
    >>> tables = markov_tables([[0, 1], [1, 0], [1, 0]], [[0, 1], [1, 0], [1, 0]])
    >>> rng = np.random.default_rng(1)
    >>> draw_markov(tables, 2, trials=2, rng=rng, start=[2, 0]).blocks
    array([[0, 1, 0],
           [1, 0, 1]])
    """
    parts = chunks(trials, chunk, "chunk")
    coins = coins_of(rng, uniforms, (trials, len(markov_columns(lookahead))))
    rows = _starts(start, trials, tables.size)
    out = Simulation(np.full((trials, lookahead + 1), NOTHING), np.empty(trials, dtype=np.intp))
    for part in parts:
        _walk(tables, np.arange(part.start, part.stop), rows[part.start : part.stop], coins, out)
    return out


def _walk(
    tables: MarkovTables, trials: Integers, rows: Integers, coins: Coins, out: Simulation
) -> None:
    """Draft and verify, position by position, the trials that no rejection has ended."""
    last = out.blocks.shape[1] - 1
    for i in range(last):
        drafts = tables.drafter.draw(rows, coins(2 * i, trials))
        kept = coins(2 * i + 1, trials) < tables.acceptance[rows, drafts]
        yes, no = np.flatnonzero(kept), np.flatnonzero(~kept)
        _end(out, trials[no], i, tables.residual.draw(rows[no], coins(2 * last, trials[no])))
        trials, rows = trials[yes], drafts[yes]
        out.blocks[trials, i] = rows
    _end(out, trials, last, tables.target.draw(rows, coins(2 * last + 1, trials)))


def _end(out: Simulation, trials: Integers, position: int, tokens: Integers) -> None:
    out.blocks[trials, position] = tokens
    out.counts[trials] = position + 1


def _as_rows(values: ArrayLike, name: str) -> Floats:
    rows = np.asarray(values)
    if rows.dtype.kind not in "fiu":
        raise TypeError(f"{name} has dtype {rows.dtype}: expected floats")
    if rows.ndim != 2 or not rows.size or len(rows) != rows.shape[1] + 1:
        raise ValueError(f"{name} has shape {rows.shape}: expected (V + 1, V) with V >= 1")
    rows = rows.astype(np.float64)
    negative = np.argwhere(~(rows >= 0))
    if len(negative):
        row, token = negative[0].tolist()
        value = rows[row, token]
        raise ValueError(f"{name}[{row}, {token}] = {value}: expected a non-negative probability")
    totals = rows.sum(axis=1)
    wrong = np.flatnonzero(~(abs(totals - 1) <= FLOAT_TOLERANCE))
    if len(wrong):
        raise ValueError(f"{name}[{wrong[0]}] sums to {totals[wrong[0]]}: expected 1")
    return rows


def compiled_rows(rows: Floats) -> Rows:
    """What draws from rows that sum to 1; in one of zeros nothing can be drawn."""
    size = rows.shape[1]
    buckets = 1 << (BUCKETS_PER_TOKEN * size - 1).bit_length()
    grid = np.arange(buckets + 1) / buckets
    thresholds = np.array([inverse_cdf(row) if row.any() else row for row in rows])
    guides = np.empty((len(rows), len(grid)), dtype=np.min_scalar_type(size))
    for guide, row in zip(guides, thresholds, strict=True):
        guide[:] = np.searchsorted(row, grid, side="left")
    return Rows(thresholds, guides)


def _starts(start: ArrayLike | None, trials: int, size: int) -> Integers:
    given = np.asarray(size if start is None else start)
    if given.dtype.kind not in "iu" and given.size:
        raise TypeError(f"start has dtype {given.dtype}: expected integers")
    if given.shape not in ((), (trials,)):
        raise ValueError(f"start has shape {given.shape}: expected () or (trials,) = ({trials},)")
    rows = np.broadcast_to(given, (trials,)).astype(np.intp)
    outside = np.flatnonzero((rows < 0) | (rows > size))
    if len(outside):
        trial = outside[0]
        raise ValueError(f"start[{trial}] = {rows[trial]}: expected a row, 0 to V = {size}")
    return rows
