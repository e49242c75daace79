"""Fixtures whose rows differ by position and context, with zeros, ties and ragged lengths."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from specref.arrays import NO_TOKEN, Floats, Ints
from specref.models import Model
from specref.vocabulary import Tokens
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
