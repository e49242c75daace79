"""Strata of the contract `tree`: shapes of trees, batches, laws and ways of drawing siblings."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from specref.algorithms.trees.topdown import Branching
from specref.arrays import Bools, Ints
from specref.conformance.strata.campaign import ROW_PLACES, Campaign, Found, Tokens, played
from specref.conformance.strata.laws import ORDINARY, USUAL, Pool, drawn_pool
from specref.conformance.strata.shape import Box, told
from specref.conformance.strata.stratum import most_pairs
from specref.contracts.batch import TreeBatch
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import Capabilities
from specref.contracts.fixtures import Rows
from specref.contracts.timeout import Deadline, within
from specref.contracts.tree_fixtures import TOP, WITH, TreeFixture, Way, draw_trees, tree_place
from specref.contracts.tree_rules import numbered
from specref.models import Model

WITHOUT: Way = "without replacement"
ROWS = 16
"""Rows of the calls of one shape in the first round, if a batch has fewer."""
DRAWN_NODES, MOST_DRAWN, MANY = 40, 9, 0.5
"""Of trees that are drawn: the most nodes, the most siblings, how often there are some."""
OTHERS = 0.25
"""The share of rows with another tree than the shape's, mostly a smaller one."""
# Laws under which no token is excluded: then every sibling can be drawn.
WHOLE = tuple(name for name in ORDINARY if name != "truncated")
WIDE = ("near", "sharp", "wide", "wrong", "other")


class TreeShape(NamedTuple):
    """The shape of a call of the contract `tree`.

    Attributes
    ----------
    vocabulary : int
    branching : tuple of int
        The siblings at each depth.
    batch : int
    """

    vocabulary: int
    branching: Branching
    batch: int

    @property
    def nodes(self) -> int:
        """The most nodes of a row.

        Examples
        --------
        >>> TreeShape(8, (3, 2), 4).nodes
        9
        """
        return sum(math.prod(self.branching[: depth + 1]) for depth in range(self.depth))

    @property
    def depth(self) -> int:
        """The most drafts on a path."""
        return len(self.branching)

    @property
    def sizes(self) -> Mapping[str, int]:
        return {
            "V": self.vocabulary,
            "siblings": max(self.branching),
            "depth": self.depth,
            "nodes": self.nodes,
            "batch": self.batch,
        }

    @property
    def parts(self) -> Mapping[str, int | str]:
        tree = "×".join(map(str, self.branching))
        return {"V": self.vocabulary, "siblings by level": tree, "batch": self.batch}

    @property
    def cells(self) -> int:
        """The numbers in both laws."""
        return self.batch * (2 * self.nodes + 1) * self.vocabulary

    def __str__(self) -> str:
        return told(self)


def drawn_tree(depth: int, most: int, rng: np.random.Generator) -> Branching:
    """A tree of a depth, with up to so many siblings at a level, and few nodes.

    Examples
    --------
    >>> drawn_tree(3, 1, np.random.default_rng(1))
    (1, 1, 1)
    """
    while True:
        tree = tuple(
            int(rng.integers(1, most + 1)) if rng.random() < MANY else 1 for _ in range(depth)
        )
        if TreeShape(2, tree, 1).nodes <= DRAWN_NODES:
            return tree


def tree_shapes(
    vocabularies: Iterable[int], branchings: Iterable[Branching], batches: Iterable[int]
) -> tuple[TreeShape, ...]:
    """Every combination.

    Examples
    --------
    >>> [str(one) for one in tree_shapes([8], [(4, 2)], [1])]
    ['V 8, siblings 4, depth 2, nodes 12, batch 1']
    """
    sizes = itertools.product(vocabularies, branchings, batches)
    return tuple(TreeShape(*one) for one in sizes)


@dataclass(frozen=True)
class TreeStratum:
    """One kind of situation of tree verifiers.

    Attributes
    ----------
    name : str
    shapes : tuple of TreeShape
    targets, drafters : tuple of str
        The families of laws; see `laws`.
    ways : tuple of str
        How siblings are drawn, in turn.
    beside : tuple of Branching
        Of the other rows of a call, if a verifier takes that; by default one level is missing.
    box : Box or None
        Of what more shapes are drawn, by the seed; its lookaheads are depths.
    cost : float
        Factor on the tokens.
    """

    name: str
    shapes: tuple[TreeShape, ...]
    targets: tuple[str, ...] = ORDINARY
    drafters: tuple[str, ...] = USUAL
    ways: tuple[Way, ...] = (WITHOUT, WITH)
    beside: tuple[Branching, ...] = ()
    box: Box | None = None
    cost: float = 0.7

    def with_drawn(self, rng: np.random.Generator) -> "TreeStratum":
        """The stratum with shapes of its box."""
        if self.box is None:
            return self
        drawn = (
            TreeShape(size, drawn_tree(depth, min(size - 1, MOST_DRAWN), rng), batch)
            for size, depth, batch in self.box.drawn(rng)
        )
        return replace(self, shapes=(*self.shapes, *drawn), box=None)

    def others(self, shape: TreeShape) -> tuple[Branching, ...]:
        """The branchings of the other rows of a call of this shape."""
        return self.beside or (shape.branching[:-1] or (1,),)

    @property
    def laws(self) -> bool:
        """Whether `draft_probs` are passed."""
        return TOP not in self.ways

    def refusal(self, claims: Capabilities) -> str:
        """Why a verifier with these claims is not tried; empty if it is."""
        if not self.laws and not claims.one_hot:
            return "does not take draft_probs=None"
        if set(self.ways) == {WITH} and not claims.repeats:
            return "does not take siblings that repeat"
        if self.beside and not claims.ragged:
            return "does not take ragged batches: different trees in one call"
        if self.beside and claims.batch == 1:
            return "does not take different trees in one call"
        return ""

    def fitted(self, claims: Capabilities) -> "TreeStratum":
        """The same for a verifier with these claims."""
        most = claims.batch or max(shape.batch for shape in self.shapes)
        shapes = (shape._replace(batch=min(shape.batch, most)) for shape in self.shapes)
        ways = tuple(way for way in self.ways if way != WITH or claims.repeats)
        fitted = replace(self, shapes=tuple(dict.fromkeys(shapes)), ways=ways)
        return fitted if claims.ragged else replace(fitted, targets=WHOLE, drafters=WIDE)


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


def tree_fixture(stratum: TreeStratum, shape: TreeShape, *, ragged: bool) -> TreeFixture:
    """The trees of one shape, one way of drawing after the other; then those beside them."""
    trees = (shape.branching, *(stratum.others(shape) if ragged else ()))
    places = [tree_place((), tree, way) for tree in trees for way in stratum.ways]
    nothing = Model(numbered(shape.vocabulary), lambda context: ())  # laws are those of tables
    return TreeFixture(stratum.name, nothing, nothing, tuple(places), ragged)


def tables_of(pool: Pool, rng: np.random.Generator) -> Rows:
    """A pool as tables: after each pair and token, a random pair follows, the same at all times.

    So siblings of one token have one law, and the law after a path is that of the path alone.

    Examples
    --------
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


def run_trees(
    stratum: TreeStratum,
    verifier: Verifier,
    alpha: float,
    tokens: int,
    cells: int,
    rng: np.random.Generator,
    advance: Callable[[int], None] = lambda trials: None,
    seconds: float | None = None,
) -> Found:
    """Put trees of a stratum to a verifier until it has decided, or enough was drawn.

    Parameters
    ----------
    tokens, cells, seconds
        As for `played`.

    Raises
    ------
    BrokenContractError
        It raises, or does not answer in the right form.
    """
    claims = verifier.capabilities
    sizes = dict.fromkeys(shape.vocabulary for shape in stratum.shapes)
    laws = (stratum.targets, stratum.drafters)
    pools = {size: drawn_pool(rng, size, most_pairs(size), *laws) for size in sizes}
    tables = {size: tables_of(pool, rng) for size, pool in pools.items()}
    campaign, deadline = Campaign(stratum.shapes, pools, claims, PLACES), Deadline()

    def ask(shape: TreeShape, calls: int) -> Tokens:
        known, rows = tables[shape.vocabulary], calls * shape.batch
        fixture = tree_fixture(stratum, shape, ragged=claims.ragged)
        start = rng.integers(len(known.p), size=rows)
        ways, others = len(stratum.ways), len(stratum.others(shape))
        place = rng.integers(ways, size=rows)
        if claims.ragged:
            other = np.flatnonzero(rng.random(rows) < OTHERS)
            place[other] += ways * rng.integers(1, others + 1, size=len(other))
        batch = draw_trees(fixture, known, start, place, rng)
        answer = verifier.answers(batch, shape.batch, rng, deadline)
        blocks = answer.tokens[:, : shape.depth + 1]
        return tree_tokens(batch, blocks, start, known.child, shape.batch, campaign.calls)

    def turns(shape: TreeShape) -> int:
        return max(1, ROWS // shape.batch)

    def rounds() -> Found:
        return played(campaign, stratum.shapes, ask, turns, alpha, tokens, cells, advance, seconds)

    return within(verifier.timeout, rounds, deadline)
