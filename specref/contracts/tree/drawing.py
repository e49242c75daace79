"""Draws trees by the declared laws, in random orders with parents and elder siblings first."""

import numpy as np

from specref.arrays import NO_TOKEN, Floats, Ints
from specref.contracts.fixtures import Rows, rows
from specref.contracts.tree.batch import NO_NODE, ROOT, TreeBatch
from specref.contracts.tree.fixtures import TOP, WITH, TreeFixture, TreePlace, ranked
from specref.contracts.verify.drawing import draw_tokens


def draw_trees(
    fixture: TreeFixture, tables: Rows, node: Ints, place: Ints, rng: np.random.Generator
) -> TreeBatch:
    """Draft a tree after each of the given nodes; code that reads missing nodes fails.

    Their laws put all mass on the last token. Nothing is drafted after EOS, and no sibling where
    the drafter has no token left, so that batches are ragged.

    Parameters
    ----------
    node : ndarray of int, shape (B,)
        The node in the tables of each row of the batch.
    place : ndarray of int, shape (B,)
        The index in `fixture.places` of each row.
    """
    size, most, count = tables.p.shape[1], fixture.nodes, len(node)
    p, q = np.zeros((count, most + 1, size)), np.zeros((count, most, size))
    p[..., -1] = q[..., -1] = 1
    p[:, 0] = tables.p[node]
    tokens, parents = np.full((count, most), NO_TOKEN), np.full((count, most), NO_NODE)
    for index in np.unique(place).tolist():
        here = np.flatnonzero(place == index)
        drawn = Drawn(fixture, fixture.places[index], tables, node[here], rng)
        drawn.put(here, p, q, tokens, parents)
    lens = (tokens >= 0).sum(axis=1)
    return TreeBatch(p, None if fixture.one_hot else q, tokens, lens, place, parents)


def sample_trees(fixture: TreeFixture, size: int, rng: np.random.Generator) -> TreeBatch:
    """A batch with rows of every place."""
    tables = rows(fixture, 0)
    place = np.arange(size) % len(fixture.places)
    return draw_trees(fixture, tables, tables.root[place], place, rng)


class Drawn:
    """Drafted trees of one place, with a column for each node of its template.

    Attributes
    ----------
    node : ndarray of int, shape (rows, T)
        The node in the tables after the path to it.
    tokens : ndarray of int, shape (rows, T)
        -1 where a node is missing.
    laws : ndarray, shape (rows, T, V)
    order : ndarray of int, shape (rows, T)
        The column of each node in the batch; the missing ones come last.
    """

    def __init__(
        self,
        fixture: TreeFixture,
        place: TreePlace,
        tables: Rows,
        start: Ints,
        rng: np.random.Generator,
    ) -> None:
        self.fixture, self.place, self.tables, self.rng = fixture, place, tables, rng
        shape = len(start), len(place.template)
        self.start, self.tokens = start, np.full(shape, NO_TOKEN)
        self.node, self.laws = np.full(shape, NO_NODE), np.zeros((*shape, tables.p.shape[1]))
        for column, (parent, *elder) in enumerate(place.template):
            self._draw(column, parent, elder)
        self.order = self._order()

    def put(self, here: Ints, p: Floats, q: Floats, tokens: Ints, parents: Ints) -> None:
        """Write the trees into rows of a batch."""
        for column, (parent, *_) in enumerate(self.place.template):
            there = np.flatnonzero(self.tokens[:, column] >= 0)
            at = here[there], self.order[there, column]
            q[at], tokens[at] = self.laws[there, column], self.tokens[there, column]
            parents[at] = ROOT if parent == ROOT else self.order[there, parent]
            p[at[0], at[1] + 1] = self.tables.p[self.node[there, column]]

    def _draw(self, column: int, parent: int, elder: list[int]) -> None:
        if parent == ROOT:
            before, going = self.start, np.arange(len(self.start))
        else:
            before, above = self.node[:, parent], self.tokens[:, parent]
            going = np.flatnonzero((above >= 0) & (above != self.fixture.eos))
        law = self._law(self.tables.q[before[going]], going, elder)
        going, law = going[law.any(axis=1)], law[law.any(axis=1)]
        token = draw_tokens(law, self.rng)
        self.laws[going, column], self.tokens[going, column] = law, token
        self.node[going, column] = self.tables.child[before[going], token]

    def _law(self, q: Floats, going: Ints, elder: list[int]) -> Floats:
        if self.place.way == TOP:
            return np.eye(q.shape[1])[ranked(q)[:, len(elder)]]
        law = q.copy()
        for column in elder if self.place.way != WITH else ():
            law[np.arange(len(law)), self.tokens[going, column]] = 0
        total = law.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(law, total, out=np.zeros_like(law), where=total > 0))

    def _order(self) -> Ints:
        late = np.zeros(self.tokens.shape)
        for column, before in enumerate(self.place.template):
            known = [late[:, other] for other in before if other != ROOT]
            late[:, column] = np.max(known, axis=0, initial=0) if known else 0
            late[:, column] += self.rng.standard_exponential(len(late))
        late[self.tokens < 0] = np.inf
        return np.asarray(late.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable"))
