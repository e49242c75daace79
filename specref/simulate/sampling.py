"""Blocks by the million: simulate, count in bounded memory, count in parallel."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from specref.arrays import Floats
from specref.models import Model
from specref.simulate.tables import Integers, Tables, tabulate
from specref.vocabulary import Tokens

CHUNK = 1 << 14
BATCH = 1 << 20
Coins: TypeAlias = Callable[[int, Integers], Floats]


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


def simulate(
    algorithm: str,
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
    """Simulate independent iterations of an algorithm, all in the same context.

    Parameters
    ----------
    algorithm, target, drafter, context, lookahead
        As `tabulate`.
    trials : int
        How many iterations.
    rng : numpy.random.Generator, optional
        Where uniforms come from.
    uniforms : array_like, shape (trials, sites), optional
        The uniforms themselves, instead of `rng`. Column j feeds the site
        ``tabulate(...).columns[j]``, in the convention of `Sampled`: a draw scales u by the
        total and passes what it reaches, an accept says yes iff u < probability. Sites that
        an iteration does not come to leave their column unused.
    chunk : int
        How many iterations to walk at once.

    Returns
    -------
    Simulation

    Raises
    ------
    TypeError
        Not exactly one of `rng` and `uniforms` is given.
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
    >>> tabulate("standard", target, drafter).columns
    ('draft[0]', 'accept[0]', 'bonus', 'residual')
    >>> coins = [[0.3, 0.4, 0.9, 0.0], [0.3, 0.6, 0.9, 0.0]]
    >>> simulate("standard", target, drafter, trials=2, uniforms=coins).blocks
    array([[ 0,  1],
           [ 1, -1]])
    """
    tables = tabulate(algorithm, target, drafter, context, lookahead)
    return _simulated(tables, trials, coins_of(rng, uniforms, (trials, len(tables.sites))), chunk)


def draw_blocks(
    tables: Tables, trials: int, rng: np.random.Generator, chunk: int = CHUNK
) -> Simulation:
    """Simulate from compiled tables, which are numbers only, and picklable.

    Examples
    --------
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> target = iid_model(Vocabulary("a"), [1])
    >>> draw_blocks(tabulate("slem", target, target, (), 2), 1, np.random.default_rng(1)).blocks
    array([[0, 0, 0]])
    """
    return _simulated(tables, trials, fresh_coins(rng), chunk)


def count_blocks(
    algorithm: str,
    target: Model,
    drafter: Model,
    context: Tokens = (),
    lookahead: int = 1,
    *,
    trials: int,
    rng: np.random.Generator,
    chunk: int = CHUNK,
) -> dict[Tokens, int]:
    """Simulate as `simulate`, and count each block; memory does not grow with `trials`.

    Returns
    -------
    dict
        {block: how often}, for the blocks that came out, in ascending order.

    Examples
    --------
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> target = iid_model(Vocabulary("a"), [1])
    >>> rng = np.random.default_rng(1)
    >>> count_blocks("standard", target, target, (), 2, trials=10**5, rng=rng)
    {(0, 0, 0): 100000}
    """
    return tally(tabulate(algorithm, target, drafter, context, lookahead), trials, rng, chunk)


def tally(
    tables: Tables, trials: int, rng: np.random.Generator, chunk: int = CHUNK
) -> dict[Tokens, int]:
    """Count blocks as `count_blocks`, from compiled tables.

    Examples
    --------
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> target = iid_model(Vocabulary("a"), [1])
    >>> tally(tabulate("slem", target, target, (), 3), 100, np.random.default_rng(1))
    {(0, 0, 0, 0): 100}
    """
    return _named(tables, _counted(tables, trials, rng, chunk))


def simulate_counts(
    algorithm: str,
    target: Model,
    drafter: Model,
    context: Tokens = (),
    lookahead: int = 1,
    *,
    trials: int,
    seed: int,
    executor: Executor | None = None,
    batch: int = BATCH,
) -> dict[Tokens, int]:
    """Count blocks as `count_blocks`, in batches that an executor may run in parallel.

    Batch i has its own generator, from child i of ``SeedSequence(seed)``: the result depends
    on `seed` and `batch`, not on the executor or its number of workers. Workers are sent
    tables of numbers only, never models.

    Parameters
    ----------
    algorithm, target, drafter, context, lookahead
        As `tabulate`.
    trials : int
        How many iterations.
    seed : int
        Non-negative.
    executor : concurrent.futures.Executor, optional
        Processes, threads, or anything else with `map`; without one, this process works.
    batch : int
        How many iterations make a batch.

    Returns
    -------
    dict
        {block: how often}, for the blocks that came out, in ascending order.

    Raises
    ------
    ValueError
        As `tabulate`; `trials` < 0, `batch` < 1 or `seed` < 0.

    Examples
    --------
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> target = iid_model(Vocabulary("a"), [1])
    >>> simulate_counts("autoregressive", target, target, trials=10, seed=1)
    {(0,): 10}
    """
    _check_at_least(0, seed, "seed")
    tables = tabulate(algorithm, target, drafter, context, lookahead)
    sizes = [len(rows) for rows in chunks(trials, batch, "batch")]
    rngs = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(len(sizes)))
    run = map if executor is None else executor.map
    totals = np.zeros(len(tables.blocks), dtype=np.int64)
    for counts in run(partial(_counted, tables, chunk=CHUNK), sizes, rngs):
        totals += counts
    return _named(tables, totals)


def _counted(tables: Tables, trials: int, rng: np.random.Generator, chunk: int) -> Integers:
    totals = np.zeros(len(tables.blocks), dtype=np.int64)
    for indices in _walked(tables, trials, fresh_coins(rng), chunk):
        totals += np.bincount(indices, minlength=len(totals))
    return totals


def _named(tables: Tables, counts: Integers) -> dict[Tokens, int]:
    pairs = zip(tables.outcomes, counts.tolist(), strict=True)
    return {block: count for block, count in pairs if count}


def _simulated(tables: Tables, trials: int, coins: Coins, chunk: int) -> Simulation:
    nothing = np.empty(0, dtype=np.intp)
    indices = np.concatenate([nothing, *_walked(tables, trials, coins, chunk)])
    return Simulation(tables.blocks[indices], tables.counts[indices])


def _walked(tables: Tables, trials: int, coins: Coins, chunk: int) -> Iterator[Integers]:
    """The index of each trial's block: site by site, every trial that is there moves on."""
    for part in chunks(trials, chunk, "chunk"):
        rows = np.arange(part.start, part.stop)
        states = np.zeros(len(rows), dtype=np.intp)
        for column, site in enumerate(tables.sites):
            moving = np.flatnonzero(states < site.beyond)
            states[moving] = site.follow(states[moving], coins(column, rows[moving]))
        yield states - tables.sites[-1].beyond


def chunks(trials: int, size: int, name: str) -> list[range]:
    """Ranges of at most `size` trials that cover all of them."""
    _check_at_least(0, trials, "trials")
    _check_at_least(1, size, name)
    return [range(first, min(first + size, trials)) for first in range(0, trials, size)]


def _check_at_least(least: int, value: int, name: str) -> None:
    if not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} = {value!r}: expected an integer >= {least}")


def coins_of(
    rng: np.random.Generator | None, uniforms: ArrayLike | None, shape: tuple[int, int]
) -> Coins:
    """Coins drawn when they are needed, or those that are given: exactly one of both.

    Raises
    ------
    TypeError
        Both are given, or neither.
    ValueError
        `uniforms` has another shape, or an entry outside [0, 1).
    """
    if rng is not None and uniforms is None:
        return fresh_coins(rng)
    if rng is not None or uniforms is None:
        raise TypeError("expected either rng or uniforms, and not both")
    given = np.asarray(uniforms, dtype=np.float64)
    if given.shape != shape:
        raise ValueError(f"uniforms has shape {given.shape}: expected (trials, sites) = {shape}")
    outside = np.argwhere(~((given >= 0) & (given < 1)))
    if len(outside):
        row, column = outside[0].tolist()
        raise ValueError(
            f"uniforms[{row}, {column}] = {given[row, column]}: expected a number in [0, 1)"
        )
    return lambda column, rows: given[rows, column]


def fresh_coins(rng: np.random.Generator) -> Coins:
    """Coins drawn when they are needed."""
    return lambda column, rows: rng.random(len(rows))
