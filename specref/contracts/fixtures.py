"""Fixtures whose rows differ by position and context, with zeros, ties and ragged lengths.

Those for trees have shapes of trees, and say how their nodes are chosen.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from specref.algorithms.trees.topdown import Branching, Node, Tree, draft
from specref.arrays import NO_TOKEN, Floats, Ints
from specref.chance import Chance, enumerate_paths
from specref.distributions import Probabilities
from specref.models import Model, hashed_model
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo import FIXTURES

CONTEXTS: tuple[Tokens, ...] = ((), (1,), (2, 0), (0,))


@dataclass(frozen=True)
class Place:
    """The place of a row of a batch: its context, and the most drafts it may have."""

    context: Tokens
    lookahead: int

    @property
    def name(self) -> str:
        return f"context {self.context}, lookahead {self.lookahead}"

    @property
    def options(self) -> tuple[tuple[str, Any], ...]:
        """Further arguments of rules."""
        return ()


@dataclass(frozen=True)
class Fixture:
    """A pair of models and the places at which a sampler is tried, all in the same batch.

    * `places`: Places with different numbers of drafts, including 0, so that batches are ragged.
    * `drafter_known`: False if the drafter stands in for one of which nothing is known.
    """

    name: str
    target: Model = field(repr=False)
    drafter: Model = field(repr=False)
    places: tuple[Place, ...]
    ragged: bool = True
    drafter_known: bool = True

    @cached_property
    def lookahead(self) -> int:
        """The largest number of drafts of a row."""
        return max(place.lookahead for place in self.places)

    @cached_property
    def lookaheads(self) -> Ints:
        """The most drafts at each place."""
        found = np.array([place.lookahead for place in self.places])
        found.setflags(write=False)
        return found

    @cached_property
    def eos(self) -> int | None:
        """The id of the token that ends a text."""
        vocabulary = self.target.vocabulary
        return None if vocabulary.eos is None else vocabulary.ids[vocabulary.eos]

    def even(self) -> "Fixture":
        """The same with equally many drafts in every row."""
        places = tuple(Place(place.context, self.lookahead) for place in self.drafted().places)
        return replace(self, places=places, ragged=False)

    def drafted(self) -> "Fixture":
        """The same without places that have no drafts, for contracts that draft themselves."""
        return replace(self, places=tuple(place for place in self.places if place.lookahead))

    def only(self, index: int) -> "Fixture":
        """The same with one place."""
        return replace(self, places=(self.places[index],))


def _chains(name: str) -> Fixture:
    fixture = FIXTURES[name]
    most = fixture.lookahead
    lookaheads = (most, most, most - 1, 0)
    places = tuple(map(Place, CONTEXTS, lookaheads))
    return Fixture(name, fixture.target, fixture.drafter, places)


CHAIN_FIXTURES: Mapping[str, Fixture] = MappingProxyType(
    {n: _chains(n) for n in ("wide", "deep", "eos")}
)


@dataclass(frozen=True, eq=False)
class Rows:
    """The laws after every prefix of every place, as tables.

    * `root` (ndarray of int, shape (places,)): The node of each place.
    * `p`, `q` (ndarray, shape (nodes, V)): NaN for q where the tables end: nothing is drafted
      there.
    * `child` (ndarray of int, shape (nodes, V)): -1 where the tables end.
    """

    root: Ints
    p: Floats
    q: Floats
    child: Ints

    @cached_property
    def ends(self) -> Floats:
        """Cumulative sums of q."""
        return np.cumsum(self.q, axis=1)


@cache
def rows(fixture: Fixture, before: int) -> Rows:
    """Tabulate both models after all drafts of a place, and up to `before` tokens before them."""
    size = len(fixture.target.vocabulary)
    root: list[int] = []
    contexts: list[Tokens] = []
    child: list[list[int]] = []
    for place in fixture.places:
        root.append(len(contexts))
        depth = before + place.lookahead
        queue: list[Tokens] = [()]
        for prefix in queue:
            deeper = len(prefix) < depth
            first = root[-1] + len(queue)
            child.append([first + x if deeper else NO_TOKEN for x in range(size)])
            queue += [(*prefix, x) for x in range(size)] if deeper else []
        contexts += [(*place.context, *prefix) for prefix in queue]
    children = np.array(child)
    p = np.array([fixture.target.next_token(context) for context in contexts], dtype=np.float64)
    q = np.full_like(p, np.nan)
    for node in np.flatnonzero(children[:, 0] >= 0).tolist():
        q[node] = fixture.drafter.next_token(contexts[node])
    tables = np.array(root), p, q, children
    for table in tables:
        table.setflags(write=False)
    return Rows(*tables)


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
