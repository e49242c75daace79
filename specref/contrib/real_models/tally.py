"""What is known of a row of the table: sums over its tokens, which grow from run to run."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from specref.arrays import Floats
from specref.contrib.real_models.bets import TINY, Rows, bug_ratios
from specref.contrib.real_models.deciding import Decided
from specref.statistics.campaign.bets import log_mean
from specref.statistics.campaign.large import POINTWISE

ALPHA = 1e-9
COUNT_ALPHA = 1e-6
COUNT_STAKES = tuple(s * x for x in (2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01) for s in (1, -1))
BET_BUGS = ("residual is p", "lenient", "bonus from q")
MIXTURES = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0)


@dataclass
class Place:
    """The drafts that were reached at one place of the blocks.

    * `least`, `most`: The sum of their conditional probabilities, or bounds of it.
    * `low`, `high`: For each of `COUNT_STAKES` the sum of log E exp(stake * accepted) at these
      bounds.
    * `compared`: Drafts of SLRS on which exact match was computed, too: it accepts a draft with p.
    * `matched`, `gain`, `gain_squares`: On these the sum of p, of what SLRS accepts more at least,
      and of the squares of that.
    """

    reached: int = 0
    accepted: int = 0
    least: float = 0.0
    most: float = 0.0
    low: list[float] = field(default_factory=lambda: [0.0] * len(COUNT_STAKES))
    high: list[float] = field(default_factory=lambda: [0.0] * len(COUNT_STAKES))
    compared: int = 0
    matched: float = 0.0
    gain: float = 0.0
    gain_squares: float = 0.0

    def add(self, accepted: ArrayLike, least: ArrayLike, most: ArrayLike) -> None:
        """One draft, or some: whether accepted, and bounds of the probability of that."""
        taken, *bounds = (
            np.ravel(np.asarray(one, dtype=float)) for one in (accepted, least, most)
        )
        self.reached, self.accepted = self.reached + len(taken), self.accepted + int(taken.sum())
        self.low, self.high = map(_added, (self.low, self.high), bounds)
        self.least += float(bounds[0].sum())
        self.most += float(bounds[1].sum())

    def compare(self, matched: float, least: float) -> None:
        """One draft, by exact match and by SLRS at least."""
        self.compared, self.matched = self.compared + 1, self.matched + matched
        self.gain += least - matched
        self.gain_squares += (least - matched) ** 2

    @property
    def gained(self) -> tuple[float, float] | None:
        """What SLRS accepts more than exact match on the same drafts: mean, standard error."""
        if self.compared < 2:
            return None
        mean = self.gain / self.compared
        spread = max(0.0, self.gain_squares / self.compared - mean**2)
        return mean, math.sqrt(spread / (self.compared - 1))

    @property
    def interval(self) -> tuple[int, int]:
        """`accepted` is outside with probability at most `COUNT_ALPHA` if the rule is right."""
        low, high = (_inside(self.reached, sums) for sums in (self.low, self.high))
        return low[0], high[1]

    @property
    def conforms(self) -> bool:
        return self.interval[0] <= self.accepted <= self.interval[1]


def _added(sums: list[float], chances: Floats) -> list[float]:
    """Sums of log E exp(stake * accepted), with drafts of these probabilities."""
    won = np.log1p(np.outer(np.expm1(COUNT_STAKES), np.minimum(chances, 1))).sum(axis=1)
    return [float(one) for one in sums + won]


def _inside(reached: int, sums: list[float]) -> tuple[int, int]:
    """The counts that do not bring the average of the bets exp(stake * count) to 1 / alpha."""
    counts = np.arange(reached + 1)
    won = np.outer(COUNT_STAKES, counts) - np.array(sums)[:, None]
    highest = won.max(axis=0)
    means = highest + np.log(np.exp(won - highest).mean(axis=0))
    inside = np.flatnonzero(means < -math.log(COUNT_ALPHA))
    return int(inside[0]), int(inside[-1])


@dataclass
class Tally:
    """Sums over the tokens of a row of the table.

    * `seconds`, `wall`: Of generating; and with judging.
    * `gap`, `variance`: Sums of log p(x) + H(p), and of the variance of log p(x).
    * `wealth`: The logarithm of what each component of `bets` has won.
    * `peak`: The highest log10 of their average so far.
    * `found_at`, `counts_off_at`: The number of tokens at which it reached 1 / `ALPHA`; and at
      which, batch by batch, some count of accepted drafts first left its interval.
    * `impossible`: Tokens that p excludes, by more than rounding can.
    * `at_cut`: Tokens that p excludes by rounding of a filter's cut; nothing is bet on them.
    * `gains`: For each of `MIXTURES`, what a token of that mixture of p with the drafter's law
      would win.
    * `gained`: At how many tokens that was computed.
    * `bug_gains`: The same towards the law of the next token under bugs of `BET_BUGS`, by name.
    * `bug_tokens`: At how many tokens.
    * `decided`: Blocks that the listing in float64 has decided, too.
    * `shaped`, `misshaped`: Rows of logits that torch's filters and NumPy's have both shaped, and
      those of them that came out differently, beyond `SAME`.
    """

    tokens: int = 0
    texts: int = 0
    iterations: int = 0
    target_forwards: int = 0
    seconds: float = 0.0
    wall: float = 0.0
    gap: float = 0.0
    variance: float = 0.0
    wealth: list[float] = field(default_factory=list)
    peak: float = 0.0
    found_at: int | None = None
    counts_off_at: int | None = None
    impossible: list[str] = field(default_factory=list)
    at_cut: int = 0
    places: list[Place] = field(default_factory=list)
    gains: list[float] = field(default_factory=lambda: [0.0] * len(MIXTURES))
    gained: int = 0
    bug_gains: dict[str, list[float]] = field(default_factory=dict)
    bug_tokens: int = 0
    decided: Decided = field(default_factory=Decided)
    shaped: int = 0
    misshaped: int = 0

    @classmethod
    def read(cls, stored: dict[str, Any]) -> "Tally":
        """From what `dataclasses.asdict` made of one."""
        wealth = [float(one) for one in stored["wealth"]]  # JSON has infinity as a string
        places = [Place(**one) for one in stored["places"]]
        decided = Decided(**stored.get("decided", {}))
        return cls(**{**stored, "wealth": wealth, "places": places, "decided": decided})

    def bet(self, won: Tensor) -> None:
        """Take what each component won on some tokens, shape (N, components), in order."""
        sums = torch.tensor(self.wealth or [0.0] * won.shape[1], dtype=torch.float64)
        wealth = (sums + won.cpu().cumsum(0)).numpy()
        for number, after in enumerate(wealth, self.tokens + 1):
            evidence = log_mean(after) / math.log(10)
            self.peak = max(self.peak, evidence)
            if self.found_at is None and evidence >= -math.log10(ALPHA):
                self.found_at = number
        self.wealth = wealth[-1].tolist()
        self.tokens += len(wealth)

    def place(self, position: int) -> Place:
        """Where drafts of a position are counted, the first being 0."""
        self.places += [Place() for _ in range(position + 1 - len(self.places))]
        return self.places[position]

    @property
    def z(self) -> float:
        """The gap in standard deviations, for information."""
        return self.gap / math.sqrt(self.variance) if self.variance else 0.0

    @property
    def lossy(self) -> bool:
        return self.found_at is not None or bool(self.impossible)

    def look(self) -> None:
        """Note whether the counts of accepted drafts are off by now."""
        if self.counts_off_at is None and not all(place.conforms for place in self.places):
            self.counts_off_at = self.tokens

    @property
    def detected_mixture(self) -> float | None:
        """The least of `MIXTURES` that so many tokens are expected to find; None for none."""
        return self._detected(self.gains, self.gained)

    @property
    def detected_bugs(self) -> dict[str, float | None]:
        """The same towards bugs: the share of the tokens that would have to be drawn by them."""
        return {bug: self._detected(won, self.bug_tokens) for bug, won in self.bug_gains.items()}

    def _detected(self, gains: list[float], tokens: int) -> float | None:
        if not tokens:
            return None
        needed = math.log(max(len(self.wealth), 1) / ALPHA)
        won = np.array(gains) * self.tokens / tokens
        return next((m for m, one in zip(MIXTURES, won, strict=True) if one >= needed), None)

    def gain(self, rows: Rows) -> None:
        """Add what mixtures would win on some tokens."""
        apart = (rows.p != rows.q).any(1)
        if not apart.any():
            return
        inside = rows.q * (rows.p > 0)
        mass = inside.sum(1, keepdim=True)
        # without a shared token there is nothing to bet on: what q draws there is impossible
        law = torch.where(mass > 0, inside / mass, rows.p)
        won = mixture_gains(rows.p, law / (rows.p + TINY))[apart.cpu().numpy()].sum(0)
        self.gains = (np.array(self.gains) + won).tolist()
        self.gained += int(apart.sum())
        self.bug_tokens += len(rows.p)
        for name, ratio in zip(POINTWISE, bug_ratios(rows, lambda values: values), strict=True):
            if name in BET_BUGS:
                known = np.array(self.bug_gains.get(name, [0.0] * len(MIXTURES)))
                added = mixture_gains(rows.p, ratio).sum(0)
                self.bug_gains[name] = (known + added).tolist()


def mixture_gains(p: Tensor, ratio: Tensor) -> Floats:
    """KL divergence of (1 - m) p + m ratio p from p, for each m of `MIXTURES`; rows [N, V]."""
    gains = []
    for m in MIXTURES:
        mixed = (1 - m) + m * ratio
        gains.append((p * mixed * (mixed + TINY).log()).sum(1))
    return np.asarray(torch.stack(gains, 1).cpu().numpy())
