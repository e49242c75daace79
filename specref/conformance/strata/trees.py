"""Strata of the contract `tree`: shapes of trees, batches, laws and ways of drawing siblings."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from specref.algorithms.trees.topdown import Branching
from specref.arrays import Bools, Ints
from specref.conformance.strata.campaign import ROW_PLACES, Tokens
from specref.conformance.strata.laws import Pool
from specref.conformance.strata.shape import TreeShape
from specref.conformance.strata.stratum import Drawing, Stratum, pools
from specref.contracts.batch import TreeBatch
from specref.contracts.calling import Verifier
from specref.contracts.fixtures import Rows
from specref.contracts.tree_fixtures import TreeFixture, draw_trees, tree_place
from specref.contracts.tree_rules import numbered
from specref.models import Model

ROWS = 16
"""Rows of the calls of one shape in the first round, if a batch has fewer."""
OTHERS = 0.25
"""The share of rows with another tree than the shape's, mostly a smaller one."""
PLACES: Mapping[str, Callable[[Tokens], Bools]] = MappingProxyType(
    {
        "anywhere": lambda at: np.ones_like(at.row, dtype=bool),
        "at depth 0": lambda at: at.position == 0,
        "from depth 1": lambda at: at.position > 0,
        "from depth 2": lambda at: at.position > 1,
        "from depth 3": lambda at: at.position > 2,
        "below the deepest nodes": lambda at: at.position == at.drafts,
        **ROW_PLACES,
        "in the first call": lambda at: at.call == 0,
        "in odd calls": lambda at: at.call % 2 == 1,
    }
)


def others(stratum: Stratum[TreeShape], shape: TreeShape) -> tuple[Branching, ...]:
    """The branchings of the other rows of a call of this shape."""
    return stratum.beside or (shape.branching[:-1] or (1,),)


def tree_fixture(stratum: Stratum[TreeShape], shape: TreeShape, *, ragged: bool) -> TreeFixture:
    """The trees of one shape, one way of drawing after the other; then those beside them."""
    trees = (shape.branching, *(others(stratum, shape) if ragged else ()))
    places = [tree_place((), tree, way) for tree in trees for way in stratum.ways]
    nothing = Model(numbered(shape.vocabulary), lambda context: ())  # laws are those of tables
    return TreeFixture(stratum.name, nothing, nothing, tuple(places), ragged)


def tables_of(pool: Pool, rng: np.random.Generator) -> Rows:
    """A pool as tables: after each pair and token, a random pair follows, the same at all times.

    So siblings of one token have one law, and the law after a path is that of the path alone.

    Examples
    --------
    >>> from specref.conformance.strata.laws import drawn_pool
    >>> pool = drawn_pool(np.random.default_rng(1), 5, 3)
    >>> tables_of(pool, np.random.default_rng(2)).child.shape
    (3, 5)
    """
    pairs = len(pool.p)
    return Rows(np.arange(pairs), pool.p, pool.q, rng.integers(pairs, size=pool.p.shape))


def tree_tokens(
    batch: TreeBatch, blocks: Ints, start: Ints, child: Ints, rows: int, call: int
) -> Tokens:
    """The tokens of a batch that was cut into calls of so many rows, the first numbered `call`.

    Parameters
    ----------
    start : ndarray of int, shape (B,)
        The pair of laws at the root of each row.
    child : ndarray of int, shape (pairs, V)
        The pair after each pair and token.
    """
    pairs = np.empty_like(blocks)
    here = start
    for position, token in enumerate(blocks.T):
        pairs[:, position] = here
        here = child[here, token]  # where there is no token, neither is a later one
    row, at = np.nonzero(blocks >= 0)
    return Tokens(
        blocks[row, at], pairs[row, at], at, batch.most[row] - 1, row % rows, call + row // rows,
        rows, blocks.shape[1] - 1,
    )  # fmt: skip


class Trees(Drawing[TreeShape]):
    """Draws trees of a stratum, and puts them to a verifier."""

    places = PLACES

    def __init__(
        self, stratum: Stratum[TreeShape], verifier: Verifier, rng: np.random.Generator
    ) -> None:
        super().__init__(stratum, verifier.timeout, rng)
        self.pools = pools(stratum, rng)
        self.tables = {size: tables_of(pool, rng) for size, pool in self.pools.items()}
        self.verifier, self.claims = verifier, verifier.capabilities

    def turns(self, shape: TreeShape) -> int:
        return max(1, ROWS // shape.batch)

    def fixture(self, shape: TreeShape) -> TreeFixture:
        """The trees of one shape."""
        return tree_fixture(self.stratum, shape, ragged=self.claims.ragged)

    def ask(self, shape: TreeShape, calls: int, first: int) -> Tokens:
        known, rows, rng = self.tables[shape.vocabulary], calls * shape.batch, self.rng
        fixture = self.fixture(shape)
        start = rng.integers(len(known.p), size=rows)
        ways = len(self.stratum.ways)
        place = rng.integers(ways, size=rows)
        if self.claims.ragged:
            other, more = np.flatnonzero(rng.random(rows) < OTHERS), len(fixture.places) // ways
            place[other] += ways * rng.integers(1, more, size=len(other))
        batch = draw_trees(fixture, known, start, place, rng)
        answer = self.verifier.answers(batch, shape.batch, rng, self.deadline)
        blocks = answer.tokens[:, : shape.depth + 1]
        return tree_tokens(batch, blocks, start, known.child, shape.batch, first)
