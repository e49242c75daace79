"""The report of a campaign: its verdict, evidence and intervals, and what would decide it."""

import math
from dataclasses import dataclass
from enum import StrEnum

from specref.statistics.campaign.least import Least
from specref.vocabulary import Tokens

LITTLE = 0.5
"""Of a distance that nothing bounds from below, no larger bound is worth saying."""


class Verdict(StrEnum):
    """The verdict of a campaign: LOSSY is a finding, only LOSSLESS_WITHIN_EPS is a pass."""

    LOSSY = "LOSSY"
    LOSSLESS_WITHIN_EPS = "LOSSLESS_WITHIN_EPS"
    INCONCLUSIVE = "INCONCLUSIVE"


class Conformance(StrEnum):
    """Whether numbers of accepted tokens follow the closed form; not part of the verdict."""

    CONFORMS = "conforms"
    INFLATED = "inflated"
    DEFLATED = "deflated"
    DEVIATES = "deviates"
    NOT_RUN = "not_run"


@dataclass(frozen=True)
class Interval:
    """The total variation of the completed block on one case, for blocks of one law.

    The attributes hold at numbers of trials that were fixed without a look at the counts. If
    evidence decided when to stop, as `run` does with a sampler that is LOSSY, they are estimates.

    Attributes
    ----------
    estimate : float
        Of the observed blocks; positive even for a lossless sampler.
    lower, upper : float
        The truth is between them, but for a chance of at most alpha in all cases together.
    threshold : float
        An estimate above it decides for LOSSY.
    detectable : float
        Any sampler at least this far is found LOSSY with probability 0.999 after so many
        trials: proved, for every alternative. The bets usually need a tenth of that many trials.
    noise : float
        The mean of the estimate of as many whole blocks of a lossless sampler.
    """

    case: str
    trials: int
    estimate: float
    lower: float
    upper: float
    threshold: float
    detectable: float
    noise: float

    def __str__(self) -> str:
        return in_bounds(self.lower, self.upper, self.estimate, self.noise)


def in_bounds(lower: float, upper: float, estimate: float, noise: float) -> str:
    """The words of all messages: an estimate is never told without its noise.

    Bounds that leave everything open are not told as if they were a result.

    >>> in_bounds(0.01, 0.1, 0.05, 0.04)
    'TV from 0.0100 to 0.1000 (seen 0.0500; 0.0400 is sampling noise alone)'
    >>> in_bounds(0.0, 0.1, 0.05, 0.04)
    'TV at most 0.1000 (seen 0.0500; 0.0400 is sampling noise alone)'
    >>> in_bounds(0.0, 0.998, 0.969, 0.968)
    'TV not told from sampling noise (seen 0.9690; 0.9680 is sampling noise alone)'
    """
    told = f"seen {estimate:.4f}; {noise:.4f} is sampling noise alone"
    if lower > 0:
        return f"TV from {lower:.4f} to {upper:.4f} ({told})"
    if upper <= LITTLE:
        return f"TV at most {upper:.4f} ({told})"
    return f"TV not told from sampling noise ({told})"


def would_be_found(detectable: float | None) -> str:
    """What a test of so many samples finds, in words.

    >>> would_be_found(0.06), would_be_found(None)
    ('TV >= 0.0600 would be detected', 'no difference would surely have been found yet')
    """
    if detectable is None or detectable >= 1:
        return "no difference would surely have been found yet"
    return f"TV >= {detectable:.4f} would be detected"


@dataclass(frozen=True)
class Suspect:
    """A betting strategy that won: a known bug at a strength, or a tilted feature."""

    component: str
    log10_evidence: float


@dataclass(frozen=True)
class AcceptanceResult:
    """Accepted lengths of one case against the closed form."""

    case: str
    conformance: Conformance
    mean: float
    expected: float
    largest_gap: float
    allowed_gap: float


@dataclass(frozen=True)
class CampaignReport:
    """The verdict of a campaign, and everything needed to judge and repeat it.

    Attributes
    ----------
    log10_evidence : float
        Of the e-process, its highest; LOSSY at -log10(alpha / 2).
    impossible : str or None
        A token that the target excludes, where it was first seen. It decides at once.
    needed : int or None
        Trials on each case that would decide, if inconclusive and there is an `eps`.
    stopped : str or None
        Why the sampler gave fewer blocks than asked for; if it raised, with its traceback.
    left_out : int
        How many known bugs are not bet on, over all cases; each case says which, and why.
    least : Least or None
        If LOSSY, how far off the distribution is at least, about, on the case where that is
        surest.
    suspects : tuple of Suspect
        The strongest components, in order.
    """

    verdict: Verdict
    trials: int
    tokens: int
    alpha: float
    eps: float | None
    tolerance: float
    view: str
    log10_evidence: float
    impossible: str | None
    intervals: tuple[Interval, ...]
    suspects: tuple[Suspect, ...]
    acceptance: tuple[AcceptanceResult, ...]
    needed: int | None
    seed: int | None
    seconds: float
    stopped: str | None = None
    left_out: int = 0
    least: Least | None = None

    @property
    def anytime_p(self) -> float:
        """min(1, 1 / E): valid however often one has looked."""
        return float(min(1.0, 10.0**-self.log10_evidence))

    @property
    def detectable(self) -> float | None:
        """The distance that would be detected on every case, or None without cases."""
        return max((interval.detectable for interval in self.intervals), default=None)

    @property
    def conformance(self) -> Conformance:
        """The first deviation of numbers of accepted tokens, if any."""
        results = [result.conformance for result in self.acceptance]
        wrong = [result for result in results if result != Conformance.CONFORMS]
        return (wrong or results or [Conformance.NOT_RUN])[0]

    @property
    def passed(self) -> bool:
        """Whether the verdict is LOSSLESS_WITHIN_EPS; so is the truth value of a report."""
        return self.verdict == Verdict.LOSSLESS_WITHIN_EPS

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        lines = [
            f"{self.verdict}: {self.trials:,} trials, {self.tokens:,} tokens, view {self.view}, "
            f"alpha {self.alpha:g}, seed {self.seed}, {self.seconds:.1f} s",
            f"  evidence 10^{self.log10_evidence:.1f} (LOSSY at "
            f"10^{-math.log10(self.alpha / 2):.1f}), anytime p {self.anytime_p:.2g}",
        ]
        for found in self.intervals:
            power = f"; {would_be_found(found.detectable)}"
            lines.append(f"  {found.case}: {found}" + power * (self.verdict != Verdict.LOSSY))
        if self.verdict == Verdict.LOSSY:
            lines += [f"  suspect {s.component}: 10^{s.log10_evidence:.1f}" for s in self.suspects]
        lines += [
            f"  numbers of accepted tokens of {result.case}: {result.conformance}, mean "
            f"{result.mean:.4f}, "
            f"closed form {result.expected:.4f}"
            for result in self.acceptance
        ]
        return "\n".join(lines + _remarks(self))


BY_EVIDENCE = "LOSSY by the evidence: bounds on TV take more blocks before they exclude 0"


def _remarks(report: CampaignReport) -> list[str]:
    lines = {
        f"  stopped early: {indented(report.stopped)}": report.stopped,
        f"  impossible: {report.impossible}": report.impossible,
        f"  {report.left_out} known bugs not bet on (left_out of the cases)": report.left_out,
    }
    if report.needed is not None:
        lines |= {f"  {report.needed:,} trials on each case would decide (eps {report.eps})": True}
    by_evidence = report.verdict == Verdict.LOSSY and not any(x.lower for x in report.intervals)
    lines |= {f"  {BY_EVIDENCE}": by_evidence and report.impossible is None}
    searched = report.verdict == Verdict.INCONCLUSIVE and report.eps is None
    lines |= {"  without eps no number of trials certifies the distribution": searched}
    return [line for line, said in lines.items() if said]


def indented(text: str | None) -> str:
    """Indent the later lines of a text below its first."""
    return str(text).replace("\n", "\n    ")


def describe(prefix: Tokens, token: int, case: str) -> str:
    """Message: a token came out that the target excludes."""
    return f"token {token} after {prefix} on {case}: the target excludes it"
