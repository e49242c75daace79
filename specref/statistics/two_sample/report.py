"""The report of a two-sample test."""

import math
from dataclasses import dataclass

from specref.statistics.campaign.verdict import (
    Suspect,
    Verdict,
    in_bounds,
    indented,
    would_be_found,
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
