"""Speculative against plain sampling of the same system: the target's law is not known.

Half of alpha pays for one e-process (`bets`); the other half, in three parts, for a
lower and an upper bound on total variation that hold at every number of texts, and for a test
whose power is proved (`bounds`).
"""

import math
import time
from dataclasses import dataclass

from specref.arrays import Ints
from specref.statistics.campaign.least import Least, least_of
from specref.statistics.campaign.levels import ALPHA
from specref.statistics.campaign.verdict import (
    Suspect,
    Verdict,
    in_bounds,
    indented,
    would_be_found,
)
from specref.statistics.two_sample.bets import Bets, Texts, as_texts
from specref.statistics.two_sample.bounds import (
    PARTS,
    Distance,
    least_trials,
    measure,
    trials_to_find,
    width,
)

REPEATING = 0.5


@dataclass(frozen=True)
class TwoSampleReport:
    """The verdict on whether both samplers have one distribution of texts, and its evidence.

    Attributes
    ----------
    trials, tokens : int
        Texts on each side; tokens on both.
    log10_evidence : float
        Of the e-process, its highest; LOSSY at -log10(alpha / 2).
    estimate : float
        Total variation of the two samples; positive even if both have one distribution.
    noise : float
        Its mean over all deals of the same texts to the two sides.
    lower, upper : float
        The true total variation is between them at every number of texts, but for a chance of
        alpha / 3 in all.
    threshold : float
        An estimate above it decides for LOSSY.
    detectable : float or None
        Samplers at least this far apart are found LOSSY with probability 0.999, whatever their
        distributions: the chance that total variation is at least `detectable` and yet the verdict
        is not LOSSY is at most 0.001, for independent texts. It depends on how many different
        texts were seen; None while no distance below 1 would be detected. Before sampling,
        `detectable_distance` bounds it.
    suspects : tuple of Suspect
        Where the samplers differ: a view, a token and its place, and a direction.
    needed : int or None
        Texts on each side that would certify two samplers of one distribution within `eps`, if
        inconclusive and there is an `eps`. Roughly: as if noise fell with the square root of
        their number, which it does once texts repeat; before, more are needed.
    to_find : (float, int) or None
        If inconclusive: a total variation (`eps`, or 0.05 without), and the texts on each side
        from which samplers that far apart would be found LOSSY with probability 0.999, as
        roughly.
    stopped : str or None
        Why a sampler gave fewer texts than asked for; if it raised, with its traceback.
    """

    verdict: Verdict
    trials: int
    tokens: int
    alpha: float
    eps: float | None
    log10_evidence: float
    estimate: float
    noise: float
    lower: float
    upper: float
    threshold: float
    detectable: float | None
    suspects: tuple[Suspect, ...]
    needed: int | None
    to_find: tuple[float, int] | None
    seed: int | None
    seconds: float
    stopped: str | None = None

    @property
    def anytime_p(self) -> float:
        """min(1, 1 / E): valid however often one has looked."""
        return float(min(1.0, 10.0**-self.log10_evidence))

    @property
    def passed(self) -> bool:
        """Whether the verdict is LOSSLESS_WITHIN_EPS; so is the truth value of a report."""
        return self.verdict == Verdict.LOSSLESS_WITHIN_EPS

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        power = "" if self.verdict == Verdict.LOSSY else f"; {would_be_found(self.detectable)}"
        lines = [
            f"{self.verdict}: {self.trials:,} texts on each side, {self.tokens:,} tokens, "
            f"alpha {self.alpha:g}, seed {self.seed}, {self.seconds:.1f} s",
            f"  evidence 10^{self.log10_evidence:.1f} (LOSSY at "
            f"10^{-math.log10(self.alpha / 2):.1f}), anytime p {self.anytime_p:.2g}",
            f"  compared whole texts: "
            f"{in_bounds(self.lower, self.upper, self.estimate, self.noise)}{power}",
        ]
        if self.stopped:
            lines.insert(2, f"  stopped early: {indented(self.stopped)}")
        if self.verdict == Verdict.LOSSY:
            lines += [f"  suspect {s.component}: 10^{s.log10_evidence:.1f}" for s in self.suspects]
        return "\n".join(lines + _needed(self))


def _needed(report: TwoSampleReport) -> list[str]:
    # Noise has not begun to fall with the square root while it is that large.
    about = "at least" if report.noise > REPEATING or not report.trials else "about"
    lines = []
    if report.needed is not None:
        lines.append(
            f"  {about} {report.needed:,} texts on each side would certify one distribution "
            "within "
            f"{report.eps:g}"
        )
    if report.to_find is not None:
        tv, trials = report.to_find
        lines.append(
            f"  {about} {trials:,} texts on each side would find a total variation of {tv:g}"
        )
    if report.to_find is not None and report.eps is None:
        lines.append("  without eps no number of texts certifies one distribution")
    return lines


__all__ = ["TwoSample", "TwoSampleReport"]

EPS = 0.05
FIRST_SLICE = 32
GROWTH = 1.5


class TwoSample:
    """Compares texts of two samplers, batch by batch, at any time.

    Texts of N tokens (or up to EOS) are drawn from one prompt, independently, by the system
    with speculation and by the same system without. Memory grows with the number of different
    prefixes.

    Parameters
    ----------
    alpha : float
        The chance to call two samplers with one distribution LOSSY, however often one looks.
    eps : float, optional
        LOSSLESS_WITHIN_EPS needs a provable bound on total variation of at most this. None:
        only look for differences; what is not LOSSY stays INCONCLUSIVE.
    seed : int, optional
        Reported with the verdict.

    Raises
    ------
    ValueError
        `alpha` or `eps` is not in (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(3)
    >>> test = TwoSample()
    >>> test.add(rng.integers(0, 3, (5000, 2)), rng.choice(3, (5000, 2), p=[0.5, 0.3, 0.2]))
    >>> report = test.report()
    >>> str(report.verdict), report.suspects[0].component
    ('LOSSY', 'prefix: token 0 after (0,), less often')
    """

    def __init__(
        self, *, alpha: float = ALPHA, eps: float | None = EPS, seed: int | None = None
    ) -> None:
        for name, value in (("alpha", alpha), ("eps", 0.5 if eps is None else eps)):
            if not 0 < value < 1:
                raise ValueError(f"{name} = {value}: expected a number in (0, 1)")
        self.alpha, self.eps, self.seed = alpha, eps, seed
        self.trials, self.tokens = 0, 0
        self.stopped: str | None = None
        self._bets = Bets()
        self._lower, self._upper = 0.0, 1.0
        self._looks, self._too_far = 0, False
        self._cut = FIRST_SLICE
        self._started = time.perf_counter()

    def add(self, speculative: Texts, plain: Texts) -> None:
        """Count equally many texts of both samplers, in the order in which they were drawn.

        Bets are learned after 32 texts, then whenever their number has grown by half, and
        after each call. No text may be left out, or moved, for what is in it.

        Parameters
        ----------
        speculative, plain : list of tuple, or ndarray of int, shape (trials, longest)
            Token ids; a text that ended early is shorter, or padded with -1.

        Raises
        ------
        TypeError
            Tokens are not integers.
        ValueError
            The numbers of texts differ, or a text is empty or malformed.
        """
        left, right = as_texts(speculative, "speculative"), as_texts(plain, "plain")
        if len(left) != len(right):
            raise ValueError(
                f"{len(left)} speculative and {len(right)} plain texts: expected as many"
            )
        start = 0
        while start < len(left):
            end = min(len(left), start + self._cut - self.trials)
            self._slice(left[start:end], right[start:end])
            start = end

    @property
    def peak(self) -> float:
        """The logarithm of the evidence, its highest."""
        return self._bets.peak

    @property
    def evidence(self) -> float:
        """The logarithm of the evidence now: that of independent tests may be added up."""
        return self._bets.evidence

    @property
    def decided_lossy(self) -> bool:
        """Whether evidence, a bound, or an earlier report has decided already."""
        return self.peak >= -math.log(self.alpha / 2) or self._lower > 0 or self._too_far

    def least(self) -> Least:
        """How far the distributions are apart at least, by beginnings of texts or by one token.

        A number with its standard error, which is no bound: `report` has one.
        """
        return least_of(self._bets.views(), max(self.trials, 1), both=True)

    def report(self) -> TwoSampleReport:
        """The verdict.

        Evidence and bounds may be evaluated whenever one likes. For `threshold` and
        `detectable` each call is a look, and they pay for every one; they hold for looks at
        numbers of texts that were not chosen from the texts.

        Raises
        ------
        ValueError
            No text was added, and nothing stopped a sampler.
        """
        if not (self.trials or self.stopped):
            raise ValueError("nothing to report: add texts first")
        self._looks += 1
        found = measure(self._bets.text_counts(), self.alpha / PARTS, self._looks)
        self._too_far |= found.estimate > found.threshold
        reach = found.estimate + width(self.trials, self.alpha / PARTS)
        self._upper = min(self._upper, reach)
        verdict, needed, to_find = self._verdict(), None, None
        if verdict == Verdict.INCONCLUSIVE:
            needed, tv = self._needed(found), self.eps or EPS
            trials = trials_to_find(tv, self.trials, found, self.alpha / PARTS, self._looks + 1)
            to_find = tv, trials
        return TwoSampleReport(
            verdict=verdict,
            trials=self.trials,
            tokens=self.tokens,
            alpha=self.alpha,
            eps=self.eps,
            log10_evidence=self.peak / math.log(10),
            estimate=found.estimate,
            noise=found.noise,
            lower=self._lower,
            upper=self._upper,
            threshold=found.threshold,
            detectable=found.detectable if found.detectable < 1 else None,
            suspects=self._bets.suspects(),
            needed=needed,
            to_find=to_find,
            seed=self.seed,
            seconds=time.perf_counter() - self._started,
            stopped=self.stopped,
        )

    def _slice(self, speculative: Ints, plain: Ints) -> None:
        self._bets.bet(speculative, plain)
        self.trials += len(plain)
        self.tokens += int((speculative >= 0).sum() + (plain >= 0).sum())
        lower = self._bets.hits / self.trials - width(self.trials, self.alpha / PARTS)
        self._lower = max(self._lower, lower)
        if self.trials == self._cut:
            self._cut = math.ceil(self._cut * GROWTH)

    def _verdict(self) -> Verdict:
        if self.decided_lossy:
            return Verdict.LOSSY
        if self.stopped or self.eps is None or self._upper > self.eps:
            return Verdict.INCONCLUSIVE
        return Verdict.LOSSLESS_WITHIN_EPS

    def _needed(self, found: Distance) -> int | None:
        if self.eps is None:
            return None
        least = least_trials(self.eps, self.alpha / PARTS)
        noise = max(found.estimate, found.noise) + width(self.trials, self.alpha / PARTS)
        return max(least, math.ceil(self.trials * (noise / self.eps) ** 2))
