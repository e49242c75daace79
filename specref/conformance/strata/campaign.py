"""Bets on the tokens that a stratum yields, round after round, and what they have shown."""

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from specref.arrays import Bools, Floats, Ints
from specref.conformance.strata.laws import FEATURES, WORDS, Pool
from specref.conformance.strata.shape import Sized
from specref.contracts.capabilities import Capabilities
from specref.statistics.campaign.bets import log_mean
from specref.statistics.features import FeatureSums

SUSPECT, LONGER = math.log(100), 4
"""From this evidence on a campaign goes on for so many times its tokens, unless it decides."""
TOLD = math.log(100)
"""How much more evidence than anywhere a place has that is named."""
ROW_PLACES: Mapping[str, Callable[["Tokens"], Bools]] = MappingProxyType(
    {
        "in row 0": lambda at: at.row == 0,
        "in the last row": lambda at: at.row == at.rows - 1,
        "in odd rows": lambda at: at.row % 2 == 1,
        "from row 8": lambda at: at.row >= 8,
        "from row 64": lambda at: at.row >= 64,
        "from row 256": lambda at: at.row >= 256,
        "from row 1,024": lambda at: at.row >= 1_024,
    }
)
PLACES: Mapping[str, Callable[["Tokens"], Bools]] = MappingProxyType(
    {
        "anywhere": lambda at: np.ones_like(at.row, dtype=bool),
        "at position 0": lambda at: at.position == 0,
        "from position 1": lambda at: at.position > 0,
        "from position 3": lambda at: at.position > 2,
        "from position 8": lambda at: at.position > 7,
        "after all drafts": lambda at: at.position == at.drafts,
        **ROW_PLACES,
        "in rows with fewer drafts": lambda at: at.drafts < at.lookahead,
        "in the first call": lambda at: at.call == 0,
        "in odd calls": lambda at: at.call % 2 == 1,
    }
)


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of answers to calls of one shape, and where each of them is.

    * `token`, `pair`, `position`, `drafts`: The token, the pair of laws at its position, that
      position, the drafts of its row.
    * `row`, `call`: The row of its call, and the number of the call in the stratum.
    """

    token: Ints
    pair: Ints
    position: Ints
    drafts: Ints
    row: Ints
    call: Ints
    rows: int
    lookahead: int


@dataclass(frozen=True)
class Found:
    """What a stratum has shown.

    * `shift`: The observed shift of that feature: a mean over tokens.
    * `before`: Earlier calls, as far as they were counted.
    * `detectable`: The shift of any of the features, anywhere, that would have been found.
    * `temperatures`: Of the requests; empty if the sampler is given none.
    * `by_place`: {place: log10 of the evidence of its tokens alone}.
    """

    log10_evidence: float
    log10_threshold: float
    worst: str
    shift: float
    impossible: str
    calls: int
    rows: int
    tokens: int
    before: int
    detectable: float
    by_shape: Mapping[Sized, float]
    dtype: str
    temperatures: Set[float] = frozenset()
    by_place: Mapping[str, float] = field(default_factory=dict)

    @property
    def lossy(self) -> bool:
        """Whether the law is not the target's."""
        return bool(self.impossible) or self.log10_evidence >= self.log10_threshold


class Seen:
    """The tokens of each pair of a pool that were emitted before."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.before = np.zeros(pool.p.shape, dtype=bool)
        self.mass = np.zeros(len(pool.p))

    def add(self, pair: Ints, token: Ints) -> tuple[Bools, Floats]:
        """Whether each token was emitted before, and how probable it was that it would be."""
        place = pair * self.pool.size + token
        new = ~self.before.take(place)
        (open_,) = new.nonzero()
        _, first = np.unique(place[open_], return_index=True)
        new[:] = False
        new[open_[first]] = True
        won = np.where(new, self.pool.p.take(place), 0.0)
        # A row for each pair, in which its tokens come one after the other.
        order = pair.argsort(kind="stable")
        pairs, starts, many = np.unique(pair[order], return_index=True, return_counts=True)
        row = np.arange(len(pairs)).repeat(many)
        at = row, np.arange(len(pair)) - starts[row]
        more = np.zeros((len(pairs), many.max(initial=0)))
        more[at] = won[order]
        total = np.hstack([self.mass[pairs, None], more]).cumsum(axis=1)
        chance = np.empty(len(token))
        chance[order] = total[:, :-1][at]
        self.mass[pairs] = total[:, -1]
        self.before.put(place, True)
        return ~new, np.clip(chance, 0, 1)


class Campaign:
    """Bets on the tokens of a stratum: in each feature, at each place, and in each shape.

    * `places`: {name: tokens -> which of them are there}; the first is everywhere.
    """

    def __init__(
        self,
        shapes: Sequence[Sized],
        pools: Mapping[int, Pool],
        claims: Capabilities,
        places: Mapping[str, Callable[[Any], Bools]] = PLACES,
    ) -> None:
        self.dtype, self.places = claims.dtype, places
        self.pools, self.seen = pools, {size: Seen(pool) for size, pool in pools.items()}
        self.index = {shape: len(places) + i for i, shape in enumerate(dict.fromkeys(shapes))}
        self.sums = FeatureSums((len(places) + len(self.index), len(FEATURES)), claims.tolerance)
        self.impossible = ""
        self.calls = self.rows = self.before = 0

    def add(self, shape: Sized, tokens: Tokens) -> None:
        """Bet on the tokens of a call."""
        pool = self.pools[shape.vocabulary]
        chance = pool.p[tokens.pair, tokens.token]  # raises for ids that do not exist
        for at in np.flatnonzero(chance <= 0)[:1].tolist():
            self.impossible = self.impossible or (
                f"row {tokens.row[at]}: token {tokens.token[at]} at position "
                f"{tokens.position[at]} has p = 0 ({shape})"
            )
        again, seen = self.seen[shape.vocabulary].add(tokens.pair, tokens.token)
        values = pool.features(tokens.pair, tokens.token, again)
        mean, variance = pool.expected(tokens.pair, seen)
        chosen = np.zeros((len(self.places) + len(self.index), len(again)), dtype=bool)
        for index, place in enumerate(self.places.values()):
            chosen[index] = place(tokens)
        chosen[self.index[shape]] = True
        self.sums.add(values, mean, variance, chosen)

    def decided(self, alpha: float) -> bool:
        """Whether what it has found so far is lossy."""
        return bool(self.impossible) or self.sums.log_evidence >= -math.log(alpha)

    @property
    def longer(self) -> int:
        """How many times the usual number of tokens are drawn, by the evidence so far.

        When evidence is weighed is free: that it ever reaches 1 / alpha has probability alpha.
        """
        return LONGER if self.sums.log_evidence >= SUSPECT else 1

    @property
    def _worst(self) -> tuple[int, int, bool]:
        """A place, a feature, and whether there are too many such tokens.

        What acts anywhere acts, by chance, a little more at some place. So a place is named
        only if the evidence there is 100 times that of all places.
        """
        wealth = self.sums.log_wealth.max(axis=-1)
        anywhere = wealth[0].max()
        if wealth.max() < anywhere + TOLD:
            wealth[1:] = -np.inf
        place, feature, sign = np.unravel_index(int(wealth.argmax()), wealth.shape)
        return int(place), int(feature), sign == 0

    def found(self, alpha: float) -> Found:
        """The evidence so far, and the shifts that so many tokens would have shown."""
        sums = self.sums
        place, chosen, more = self._worst
        where = [*self.places, *(f"with {shape}" for shape in self.index)][place]
        detectable = sums.detectable(alpha)
        # A feature that is the same for all possible tokens shifts by impossible ones alone.
        shifts = np.where(sums.variance > 0, detectable, 0.0)
        return Found(
            sums.log_evidence / math.log(10),
            -math.log10(alpha),
            f"too {'many' if more else 'few'} tokens {WORDS[FEATURES[chosen]]}, {where}",
            float(sums.excess[place, chosen] / max(sums.tokens[place, chosen], 1)),
            self.impossible,
            self.calls,
            self.rows,
            int(sums.tokens[0, 0]),
            self.before,
            float(shifts[0].max()),
            {shape: float(shifts[index].max()) for shape, index in self.index.items()},
            self.dtype,
            by_place={
                name: log_mean(wealth) / math.log(10)
                for name, wealth in zip(self.places, sums.log_wealth, strict=False)
            },
        )
