"""A stratum: one kind of situation, how its calls are drawn, and the runner of all of them."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic

import numpy as np

from specref.algorithms.trees.topdown import Branching
from specref.arrays import Bools
from specref.conformance.strata.campaign import Campaign, Found, Tokens
from specref.conformance.strata.laws import ORDINARY, USUAL, Pool, drawn_pool, ending_pool
from specref.conformance.strata.shape import Box, CallShape, S, Shape, Sized, TreeShape, of_box
from specref.contracts.capabilities import Capabilities
from specref.contracts.contract import ignored
from specref.contracts.fixtures import TOP, WITH, Way
from specref.contracts.timeout import Deadline, within

POOL_CELLS, MOST_PAIRS = 1 << 20, 42
MOST_CELLS = 1 << 20
"""Numbers in laws that are held at once, unless one call takes more."""
WITHOUT: Way = "without replacement"
# Laws under which no token is excluded: then every sibling can be drawn.
WHOLE = tuple(name for name in ORDINARY if name != "truncated")
WIDE = ("near", "sharp", "wide", "wrong", "other")


@dataclass(frozen=True)
class Stratum(Generic[S]):
    """One kind of situation.

    * `shapes`: Of the calls, in turn.
    * `targets`, `drafters`: The families of laws; see `laws`.
    * `kind`: Of its shapes, by which it is drawn: batches of drafts, calls of functions, or trees.
    * `box`: Of what more shapes are drawn, by the seed; for trees its lookaheads are depths.
    * `cost`: Factor on the tokens; of batches, also on the numbers that are passed.
    * `alone`: Whether it is never one of a pair of strata.
    * `way`: Of batches: how the sampler is called; see `calling`.
    * `laws`: Of batches: whether `draft_probs` are passed.
    * `in_turn`: Of batches: whether every other call has none.
    * `padding`: How many of the last ids have no probability.
    * `ragged`: Of batches: whether some rows have fewer drafts, if the sampler takes that.
    * `endings`: Whether the laws are those of `ending_pool` instead.
    * `pairs`: How many pairs of laws there are, if not as many as usual.
    * `after`: Of batches: how many calls there are before.
    * `greedy_first`: Of batches: whether all laws of the first call in each shape are certain;
      nothing is bet on it.
    * `steady`: Of batches: whether all positions of a row have the same pair of laws.
    * `ends`: Of calls: whether the last token of the vocabulary ends a text; inside of a context
      it may come.
    * `related`: Of calls: whether contexts resemble those before them; see `Calling`.
    * `memory`: Of calls: how many tokens of the context the laws depend on; None for all.
    * `ways`: Of trees: how siblings are drawn, in turn.
    * `beside`: Of trees: those of the other rows of a call, if a verifier takes that; by default
      one level is missing.
    """

    name: str
    shapes: tuple[S, ...]
    targets: tuple[str, ...] = ORDINARY
    drafters: tuple[str, ...] = USUAL
    kind: type[Sized] = Shape
    box: Box | None = None
    cost: float = 1.0
    alone: bool = False
    way: str = "plain"
    laws: bool = True
    in_turn: bool = False
    padding: int = 0
    ragged: bool = True
    endings: bool = False
    pairs: int | None = None
    after: int = 0
    greedy_first: bool = False
    steady: bool = False
    ends: bool = False
    related: bool = False
    memory: int | None = None
    ways: tuple[Way, ...] = (WITHOUT, WITH)
    beside: tuple[Branching, ...] = ()

    def with_drawn(self, rng: np.random.Generator) -> "Stratum[S]":
        """The stratum with shapes of its box."""
        if self.box is None:
            return self
        text = any(getattr(shape, "text", False) for shape in self.shapes)
        shapes: list[Any] = [*self.shapes]
        shapes += [of_box(self.kind, sizes, rng, text) for sizes in self.box.drawn(rng)]
        return replace(self, shapes=tuple(shapes), box=None)

    def refusal(self, claims: Capabilities) -> str:
        """Why a sampler with these claims is not tried; empty if it is."""
        if (self.in_turn or not self.laws or TOP in self.ways) and not claims.one_hot:
            return "does not take draft_probs=None"
        if set(self.ways) == {WITH} and not claims.repeats:
            return "does not take siblings that repeat"
        if self.beside and not claims.ragged:
            return "does not take ragged batches: different trees in one call"
        if self.beside and claims.batch == 1:
            return "does not take different trees in one call"
        return ""

    def fitted(self, claims: Capabilities) -> "Stratum[S]":
        """The same for a sampler with these claims: calls as large as it takes, and its trees."""
        shapes: list[Any] = [
            shape
            if isinstance(shape, CallShape)
            else shape._replace(batch=min(shape.batch, claims.batch or shape.batch))
            for shape in self.shapes
        ]
        ways = tuple(way for way in self.ways if way != WITH or claims.repeats)
        fitted = replace(self, shapes=tuple(dict.fromkeys(shapes)), ways=ways)
        narrow = self.kind is TreeShape and not claims.ragged
        return replace(fitted, targets=WHOLE, drafters=WIDE) if narrow else fitted


def most_pairs(size: int) -> int:
    """How many pairs of laws there are over so many tokens, if nothing else is said."""
    return max(4, min(MOST_PAIRS, POOL_CELLS // size))


def pools(stratum: Stratum[S], rng: np.random.Generator) -> dict[int, Pool]:
    """Pairs of laws for each size of the vocabulary."""
    sizes = dict.fromkeys(shape.vocabulary for shape in stratum.shapes)
    if stratum.endings:
        return {size: ending_pool(rng, size, stratum.pairs or most_pairs(size)) for size in sizes}
    families = stratum.targets, stratum.drafters
    return {
        size: drawn_pool(
            rng,
            size,
            stratum.pairs or most_pairs(size),
            *families,
            min(stratum.padding, size // 2),
        )
        for size in sizes
    }


class Drawing(ABC, Generic[S]):
    """How the calls of a stratum are drawn, and asked for their answers.

    * `places`: {name: tokens -> which of them are there}: where bets are made.
    * `each_timed`: Whether each call is timed by itself, not by the deadline.
    """

    places: Mapping[str, Callable[[Any], Bools]]
    pools: Mapping[int, Pool]
    claims: Capabilities
    each_timed: ClassVar[bool] = False

    def __init__(
        self, stratum: Stratum[S], timeout: float | None, rng: np.random.Generator
    ) -> None:
        self.stratum: Stratum[S] = stratum
        self.timeout, self.deadline, self.rng = timeout, Deadline(), rng

    @abstractmethod
    def turns(self, shape: S) -> int:
        """How many calls of a shape the first round has."""

    @abstractmethod
    def ask(self, shape: S, calls: int, first: int) -> Tokens:
        """The tokens of so many calls of a shape, the first of which has this number."""

    def begin(self, campaign: Campaign) -> None:
        """Make the calls on which nothing is bet."""

    @property
    def temperatures(self) -> frozenset[float]:
        """What requests had so far; empty if the sampler is given none."""
        return frozenset()


@dataclass(frozen=True)
class Effort:
    """How far a campaign goes.

    * `tokens`: After so many it ends, at the end of a round; after more where it suspects.
    * `cells`: After so many numbers in laws it ends in any case, at the end of a round; or as
      above.
    * `seconds`: If given, they end it instead, after at least one round; calls before are not
      counted.
    """

    alpha: float
    tokens: int
    cells: float
    advance: Callable[[int], None] = ignored
    seconds: float | None = None


def run(drawing: Drawing[S], effort: Effort) -> Found:
    """What a campaign finds in a stratum, when it has decided or seen enough."""
    shapes = tuple(dict.fromkeys(drawing.stratum.shapes))
    campaign = Campaign(shapes, drawing.pools, drawing.claims, drawing.places)

    def work() -> Found:
        drawing.begin(campaign)
        run_rounds(campaign, shapes, drawing, effort)
        return replace(campaign.found(effort.alpha), temperatures=drawing.temperatures)

    return work() if drawing.each_timed else within(drawing.timeout, work, drawing.deadline)


def run_rounds(
    campaign: Campaign, shapes: Sequence[S], drawing: Drawing[S], effort: Effort
) -> None:
    """Draw rounds of calls in every shape, each as long as those before it together.

    So evidence is weighed seldom.
    """
    started = time.perf_counter()
    each = sum(shape.cells * drawing.turns(shape) for shape in shapes)
    done, rounds = 0, 1
    while True:
        for shape in shapes:
            ahead = drawing.turns(shape) * rounds
            while ahead:
                calls = min(ahead, max(1, MOST_CELLS // shape.cells))
                found = drawing.ask(shape, calls, campaign.calls)
                campaign.add(shape, found)
                campaign.calls += calls
                campaign.rows += calls * found.rows
                effort.advance(calls * found.rows)
                ahead -= calls
        done += rounds
        seen, more = int(campaign.sums.tokens[0, 0]), campaign.longer
        left = min(
            (more * effort.tokens - seen) * done / max(seen, 1),
            (more * effort.cells - done * each) / each,
        )
        if effort.seconds is not None:
            spent = time.perf_counter() - started
            left = math.floor((effort.seconds - spent) * done / spent)
        if campaign.decided(effort.alpha) or left <= 0:
            return
        rounds = min(done, math.ceil(left))
