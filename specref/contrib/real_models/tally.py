"""What is known of a row of the table: bets on its tokens, and sums that grow from run to run.

Bets are on tokens of a large vocabulary, many rows at once, in few passes over a row. A bet has
mean 1 if the token has law p given all tokens before it. Texts have random numbers of their own,
so products over all tokens of all texts have mean 1 as well, and so has their average over
components: that it ever reaches 1 / alpha has probability at most alpha.

The components are those of `specref.statistics.campaign.large`, which knows one row at a time: the
next token's law under known bugs, at four strengths, and tilts; and those of the surprise of a
token (`specref.contrib.real_models.entropy`).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from specref.arrays import Floats
from specref.contrib.real_models.deciding import Decided
from specref.contrib.real_models.entropy import STAKES as SURPRISE_STAKES
from specref.statistics.campaign.bets import RARE, STAKES, STRENGTHS, log_mean
from specref.statistics.campaign.large import LENIENCE, POINTWISE

Take: TypeAlias = Callable[[Tensor], Tensor]

TINY = 1e-300
"""Makes 0 / 0 a 0, and changes no other quotient of float64 probabilities."""
ROUNDED = 1e-9
"""Sums over 10^5 tokens below it may be rounding alone: no bet is made on them."""
ALPHA = 1e-9
COUNT_ALPHA = 1e-6
COUNT_STAKES = tuple(s * x for x in (2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01) for s in (1, -1))
BET_BUGS = ("residual is p", "lenient", "bonus from q")
MIXTURES = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0)


class Rows(NamedTuple):
    """p and q [N, V] in float64, tokens [N], and where nothing was drafted [N]."""

    p: Tensor
    q: Tensor
    tokens: Tensor
    last: Tensor

    def at(self, values: Tensor) -> Tensor:
        """What some rows [N, V] have at the tokens."""
        return values.gather(1, self.tokens[:, None])[:, 0]


def log_bets(rows: Rows) -> Tensor:
    """What each component wins on each token, shape (N, components); inf where p excludes it."""
    won = torch.cat([_bugs(rows), _tilts(rows), _surprise(rows)], 1)
    return won.masked_fill((rows.at(rows.p) <= 0)[:, None], torch.inf)


def bug_ratios(rows: Rows, take: Take) -> Iterator[Tensor]:
    """law / p of each bug of `POINTWISE` at what `take` takes; 1 where it says nothing."""
    here = take(rows.p)
    for law, total, last in _laws(rows, take):
        known = (rows.last == last)[:, None] & (total > 0) & (here > 0)
        yield torch.where(known, law / (total * here + TINY), 1)


def _bugs(rows: Rows) -> Tensor:
    strengths = torch.tensor(STRENGTHS, dtype=rows.p.dtype, device=rows.p.device)
    ratios = torch.cat([*bug_ratios(rows, lambda values: rows.at(values)[:, None])], 1)[..., None]
    return torch.log(1 - strengths + strengths * ratios).flatten(1)


def _laws(rows: Rows, take: Take) -> Iterator[tuple[Tensor, Tensor, bool]]:
    """Each bug's weights at what `take` takes, their sum over p's support, and its place.

    Sums over the vocabulary are taken of few tensors: Python's `where` on them costs most.
    """
    p, q = rows.p, rows.q
    here, there = take(p), take(q)
    overlap, all_q = _sum(torch.minimum(p, q)), _sum(q)
    inside = _sum(q * (p > 0))
    one, rejected = torch.ones_like(overlap), (1 - overlap).clamp(min=0)
    gaps = 1 + all_q - 2 * overlap
    low, gap = torch.minimum(here, there), (here - there).abs()
    left = torch.where(rejected > ROUNDED, (here - there).clamp(min=0) / rejected, here)
    apart = torch.where(gaps > ROUNDED, gap / gaps, here)
    reached = torch.where(gaps > ROUNDED, (gaps - (all_q - inside)) / gaps, one)
    yield low + rejected * here, one, False
    yield low + rejected * apart, overlap + rejected * reached, False
    yield low + rejected * there, overlap + rejected * inside, False
    yield there, inside, False
    lenient = torch.minimum(LENIENCE * p, q)
    yield _completed(take(lenient), _sum(lenient), left)
    best = (q == q.amax(1, keepdim=True)).double()
    greedy = best * (p / (q + TINY)).clamp(max=1) / _sum(best)
    yield _completed(take(greedy), _sum(greedy), left)
    inverted = torch.minimum(q, q * q / (p + TINY))
    missing = (1 - _sum(inverted)).clamp(min=0)
    yield take(inverted) + missing * left, _sum(inverted * (p > 0)) + missing, False
    yield left, one, True
    yield there, inside, True


def _completed(accepted: Tensor, mass: Tensor, left: Tensor) -> tuple[Tensor, Tensor, bool]:
    missing = (1 - mass).clamp(min=0)
    return accepted + missing * left, mass + missing, False


def _sum(values: Tensor) -> Tensor:
    return values.sum(1, keepdim=True)


def _tilts(rows: Rows) -> Tensor:
    """1 + stake (f - mean of f) / reach, for features f of a token between 0 and 1."""
    p, q = rows.p, rows.q
    stakes = torch.as_tensor(np.asarray(STAKES), device=p.device)
    share = q / (p + q + TINY)
    rare = p < RARE * _sum(p * p)
    flags = (q > p, None, p == p.amax(1, keepdim=True), q == q.amax(1, keepdim=True), rare)
    won = []
    for flag in flags:
        feature = share if flag is None else flag
        mean, taken = (p * feature).sum(1), rows.at(feature)
        # A share is nowhere farther than 1 from its mean, a flag as far as its mean says.
        reach = torch.ones_like(mean) if flag is None else torch.maximum(mean, 1 - mean)
        unit = (taken.double() - mean) / reach
        constant = (mean <= ROUNDED) | (mean >= 1 - ROUNDED)
        won.append(torch.log1p(stakes * unit.masked_fill(constant, 0)[:, None]))
    return torch.cat(won, 1)


def _surprise(rows: Rows) -> Tensor:
    log_p = rows.p.log()
    taken, rounded = rows.at(log_p), log_p.float()  # twelve passes, at a relative error of 1e-7
    stakes = np.asarray(SURPRISE_STAKES).tolist()
    sums = [((1 - s) * rounded).logsumexp(1).double() for s in stakes]
    return torch.stack([-s * taken - one for s, one in zip(stakes, sums, strict=True)], 1)


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
    * `bug_gains`: The same towards the law of the next token under bugs of `BET_BUGS`, by name.
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
