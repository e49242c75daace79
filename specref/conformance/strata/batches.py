"""Strata of batches, of chains and of trees: how they are drawn, and put to a sampler."""

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from specref.arrays import NO_TOKEN, Bools, Ints
from specref.conformance.strata.calling import Called
from specref.conformance.strata.campaign import PLACES, ROW_PLACES, Campaign, Tokens
from specref.conformance.strata.laws import Pool, drawn_pool
from specref.conformance.strata.shape import Shape, TreeShape
from specref.conformance.strata.stratum import Drawing, Stratum, pools
from specref.contracts.batch import Batch, TreeBatch, joined
from specref.contracts.calling import Verifier
from specref.contracts.fixtures import Rows, TreeFixture, tree_place
from specref.contracts.tree import draw_trees, numbered
from specref.models import Model

ROWS = 64
"""Of the calls of one shape in the first round, if batches are smaller."""
WARM_UP = Shape(4, 1, 1)


def drawn(
    shape: Shape, pool: Pool, rng: np.random.Generator, *, ragged: bool, steady: bool = False
) -> Batch:
    """A batch whose rows have laws of the pool, any pair at any position; or one at all of a row.

    Its `place` says which pair: shape (B, K + 1). One row in four is shorter if it may be. In the
    rows of laws after the last draft, the last token is certain, as in `draw_batch`.
    """
    size, most, rows = shape.vocabulary, shape.lookahead, shape.batch
    pair = rng.integers(len(pool.p), size=(rows, most + 1))
    if steady:
        pair[:] = pair[:, :1]
    lens = np.full(rows, most)
    if ragged:
        shorter = rng.random(rows) < 0.25
        lens[shorter] = rng.integers(most, size=int(shorter.sum()))
    drafts = pool.drafted(pair[:, :most].ravel(), rng).reshape(rows, most)
    p, q = pool.p.take(pair, axis=0), pool.q.take(pair[:, :most], axis=0)
    missing = np.arange(most) >= lens[:, None]
    if missing.any():
        p[:, 1:][missing] = q[missing] = np.arange(size) == size - 1
        drafts[missing] = NO_TOKEN
    return Batch(p, q, drafts, lens, pair)


def tokens_of(batch: Batch, blocks: Ints, rows: int, call: int) -> Tokens:
    """The tokens of a batch that was cut into calls of so many rows, the first numbered `call`."""
    row, position = np.nonzero(blocks >= 0)
    return Tokens(
        blocks[row, position], batch.place[row, position], position, batch.lens[row], row % rows,
        call + row // rows, rows, batch.draft_tokens.shape[1],
    )  # fmt: skip


class Batches(Drawing[Shape]):
    """Draws batches of a stratum.

    * `before`: How often the sampler was called before; up to `stratum.after` calls are made
      first.
    * `most_before`: Seconds after which there are no more calls before.
    """

    def __init__(
        self,
        stratum: Stratum[Shape],
        verifier: Called,
        rng: np.random.Generator,
        before: int = 0,
        most_before: float | None = None,
    ) -> None:
        super().__init__(stratum, verifier.timeout, rng)
        self.pools = pools(stratum, rng)
        self.warm = drawn_pool(rng, WARM_UP.vocabulary, 4)
        # What follows must not depend on how many calls there were before.
        (self.spare,) = rng.spawn(1)
        self.verifier, self.claims = verifier, verifier.capabilities
        self.places = {**PLACES, **verifier.places}
        self.ragged = self.claims.ragged and stratum.ragged
        self.before, self.most_before = before, most_before
        # Small batches are called more often, so that every shape has its share of the rows.
        self.most = min(ROWS, max(shape.batch for shape in stratum.shapes))

    def turns(self, shape: Shape) -> int:
        return max(1, self.most // shape.batch)

    def ask(self, shape: Shape, calls: int, first: int) -> Tokens:
        stratum, rows = self.stratum, shape.batch
        whole, pool = shape._replace(batch=rows * calls), self.pools[shape.vocabulary]
        batch = drawn(whole, pool, self.rng, ragged=self.ragged, steady=stratum.steady)
        many = calls if not stratum.in_turn else 1
        answers = []
        for call in range(0, calls, many):
            part = batch[call * rows : (call + many) * rows]
            with_laws = stratum.laws and not (stratum.in_turn and (first + call) % 2)
            given = part if with_laws else part.without_q()
            answers.append(self.verifier.answers(given, rows, self.rng, self.deadline))
        return tokens_of(batch, joined(answers).tokens, rows, first)

    def begin(self, campaign: Campaign) -> None:
        begun, campaign.before = time.perf_counter(), self.before
        warming = drawn(
            WARM_UP._replace(batch=self.stratum.after), self.warm, self.rng, ragged=self.ragged
        )
        for call in range(self.before, self.stratum.after):
            if self.most_before is not None and time.perf_counter() - begun > self.most_before:
                break
            self.verifier.raw(warming[call : call + 1], self.spare)
            campaign.before = call + 1
            self.deadline.restart()
        for shape in dict.fromkeys(self.stratum.shapes) if self.stratum.greedy_first else ():
            greedy = drawn_pool(self.spare, shape.vocabulary, 4, ("certain",), ("same",))
            self.verifier.raw(drawn(shape, greedy, self.spare, ragged=self.ragged), self.spare)
            self.deadline.restart()

    @property
    def temperatures(self) -> frozenset[float]:
        return frozenset(self.verifier.temperatures_met)


TREE_ROWS = 16
"""Rows of the calls of one shape in the first round, if a batch has fewer."""
OTHERS = 0.25
"""The share of rows with another tree than the shape's, mostly a smaller one."""
TREE_PLACES: Mapping[str, Callable[[Tokens], Bools]] = MappingProxyType(
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


def tables_of(pool: Pool, rng: np.random.Generator) -> Rows:
    """A pool as tables: after each pair and token, a random pair follows, the same at all times.

    So siblings of one token have one law, and the law after a path is that of the path alone.
    """
    pairs = len(pool.p)
    return Rows(np.arange(pairs), pool.p, pool.q, rng.integers(pairs, size=pool.p.shape))


def tree_tokens(
    batch: TreeBatch, blocks: Ints, start: Ints, child: Ints, rows: int, call: int
) -> Tokens:
    """The tokens of a batch that was cut into calls of so many rows, the first numbered `call`.

    `start` is the pair at the root of each row, `child` the one after each pair and token.
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

    places = TREE_PLACES

    def __init__(
        self, stratum: Stratum[TreeShape], verifier: Verifier, rng: np.random.Generator
    ) -> None:
        super().__init__(stratum, verifier.timeout, rng)
        self.pools = pools(stratum, rng)
        self.tables = {size: tables_of(pool, rng) for size, pool in self.pools.items()}
        self.verifier, self.claims = verifier, verifier.capabilities

    def turns(self, shape: TreeShape) -> int:
        return max(1, TREE_ROWS // shape.batch)

    def fixture(self, shape: TreeShape) -> TreeFixture:
        """The trees of one shape, one way of drawing after the other; then those beside them."""
        stratum, ragged = self.stratum, self.claims.ragged
        beside = (stratum.beside or (shape.branching[:-1] or (1,),)) if ragged else ()
        trees = (shape.branching, *beside)
        places = [tree_place((), tree, way) for tree in trees for way in stratum.ways]
        nothing = Model(numbered(shape.vocabulary), lambda context: ())  # laws are those of tables
        return TreeFixture(stratum.name, nothing, nothing, tuple(places), ragged)

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
