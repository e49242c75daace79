"""Fixtures for tree verifiers: shapes of trees, pairs of models, and how trees are drawn."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from specref.algorithms.trees.topdown import Branching, Node, Tree, draft
from specref.arrays import NO_TOKEN, Floats, Ints
from specref.chance import Chance, enumerate_paths
from specref.contracts.batch import NO_NODE, ROOT, TreeBatch
from specref.contracts.fixtures import Fixture, Place, Rows, rows
from specref.contracts.verify import draw_tokens
from specref.distributions import Probabilities
from specref.models import Model, hashed_model
from specref.vocabulary import Tokens, Vocabulary

Way: TypeAlias = Literal["with replacement", "without replacement", "likeliest"]

WITH: Way = "with replacement"
TOP: Way = "likeliest"


@dataclass(frozen=True)
class TreePlace(Place):
    """A context, the number of siblings at each depth, and how they are chosen.

    * `way` ({"with replacement", "without replacement", "likeliest"}): With "likeliest" nothing is
      drawn: the laws are one-hot.
    """

    branching: Branching = ()
    way: Way = "without replacement"

    @property
    def name(self) -> str:
        return f"context {self.context}, branching {self.branching}, {self.way}"

    @property
    def options(self) -> tuple[tuple[str, Any], ...]:
        return (("place", self),)

    @cached_property
    def template(self) -> tuple[tuple[int, ...], ...]:
        """The parent and elder siblings of each node of the full tree, by depth.

        Examples
        --------
        >>> tree_place((), (2, 1)).template
        ((-1,), (-1, 0), (0,), (1,))
        """
        found: list[tuple[int, ...]] = []
        level = [-1]
        for width in self.branching:
            start = len(found)
            for parent in level:
                first = len(found)
                found += [(parent, *range(first, first + j)) for j in range(width)]
            level = list(range(start, len(found)))
        return tuple(found)

    def tree(self, drafter: Model, chance: Chance) -> Tree:
        if self.way == TOP:
            return likeliest(drafter, self.context, self.branching)
        replacement = self.way == WITH
        return draft(drafter, self.context, self.branching, chance, replacement=replacement)


def tree_place(
    context: Tokens, branching: Branching, way: Way = "without replacement"
) -> TreePlace:
    """A place whose trees have this shape."""
    return TreePlace(context, len(branching), branching, way)


def likeliest(drafter: Model, context: Tokens, branching: Branching) -> Tree:
    """The tree of the likeliest tokens after each node, ties by id; its laws are one-hot.

    Examples
    --------
    >>> from specref.models import iid_model
    >>> model = iid_model(Vocabulary("abc"), [0.25, 0.5, 0.25])
    >>> [node.token for node in likeliest(model, (), (2,))]
    [1, 0]
    """
    if not branching or drafter.vocabulary.ends(context):
        return ()
    q = drafter.next_token(context)
    certain, deeper = np.eye(len(q), dtype=q.dtype), branching[1:]
    tokens = ranked(q)[: branching[0]].tolist()
    return tuple(Node(x, certain[x], likeliest(drafter, (*context, x), deeper)) for x in tokens)


def ranked(q: Probabilities) -> Ints:
    """Token ids along the last axis, the likeliest first."""
    return np.asarray(np.argsort(-q, axis=-1, kind="stable"))


@dataclass(frozen=True)
class TreeFixture(Fixture):
    """A pair of models and the trees that are drafted on it, all in the same batch."""

    places: tuple[TreePlace, ...]

    @property
    def one_hot(self) -> bool:
        """Whether drafts are not drawn, and have no laws."""
        return all(place.way == TOP or not place.branching for place in self.places)

    @property
    def nodes(self) -> int:
        """The largest number of nodes of a row."""
        return max(len(place.template) for place in self.places)

    def distinct(self) -> "TreeFixture":
        """The same without places where siblings may repeat."""
        return replace(self, places=tuple(place for place in self.places if place.way != WITH))

    def with_drafts(self) -> "TreeFixture":
        """The same without places where nothing is drafted."""
        return replace(self, places=tuple(place for place in self.places if place.branching))

    def even(self) -> "TreeFixture":
        """The same with trees of one shape."""
        whole = [place for place in self.places if self._whole(place)]
        largest = max(whole, key=lambda place: len(place.template)).branching
        places = tuple(place for place in whole if place.branching == largest)
        return replace(self, places=places, ragged=False)

    def _whole(self, place: TreePlace) -> bool:
        """Whether no node is missing, by EOS or for want of tokens; asked without replacement."""
        paths = enumerate_paths(lambda chance: place.tree(self.drafter, chance))
        size = len(place.template)
        return place.way in (WITH, TOP) or all(_size(path.outcome) == size for path in paths)


def _size(tree: Tree) -> int:
    return sum(1 + _size(node.children) for node in tree)


def _trees(name: str, key: int, vocabulary: Vocabulary, *places: TreePlace) -> TreeFixture:
    target = hashed_model(vocabulary, f"{name} target {key}")
    return TreeFixture(name, target, hashed_model(vocabulary, f"{name} drafter {key}"), places)


ENDING = Vocabulary(["a", "b", "c", "</s>"], eos="</s>")
# Keys were found by search: every bug differs by at least TV 0.06 on some fixture.
TREE_FIXTURES: Mapping[str, TreeFixture] = MappingProxyType(
    {
        "siblings": _trees(
            "siblings",
            6,
            Vocabulary("abcd"),
            tree_place((), (2, 1)),
            tree_place((1,), (3,), WITH),
            tree_place((2,), (3,)),
            tree_place((0,), (1, 2)),
            tree_place((1,), (2, 2), WITH),
            tree_place((0,), (2, 1)),
            tree_place((2,), ()),
            tree_place((3,), (1, 1)),
        ),
        "ending": _trees(
            "ending",
            10,
            ENDING,
            tree_place((), (2, 2)),
            tree_place((1,), (2, 1), WITH),
            tree_place((0,), (2, 2), WITH),
        ),
        "likeliest": _trees(
            "likeliest",
            0,
            Vocabulary("abcd"),
            tree_place((), (2, 1), TOP),
            tree_place((1,), (3,), TOP),
            tree_place((0,), (2, 2), TOP),
            tree_place((2,), ()),
        ),
    }
)


def draw_trees(
    fixture: TreeFixture, tables: Rows, node: Ints, place: Ints, rng: np.random.Generator
) -> TreeBatch:
    """Draft a tree after each of the given nodes; code that reads missing nodes fails.

    Their laws put all mass on the last token. Nothing is drafted after EOS, and no sibling where
    the drafter has no token left, so that batches are ragged.
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

    * `tokens` (ndarray of int, shape (rows, T)): -1 where a node is missing.
    * `order` (ndarray of int, shape (rows, T)): The column of each node in the batch; the missing
      ones come last.
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
