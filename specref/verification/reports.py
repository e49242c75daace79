"""The reports of the main job: one for each algorithm, and all of them together."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from specref.pairs import Profile
from specref.rule import Rule
from specref.rules import RULES
from specref.statistics.campaign.acceptance import MeasuredAcceptance
from specref.statistics.campaign.verdict import CampaignReport, Conformance, Verdict
from specref.zoo.standard.printed import algorithm_5

PRINTED = Rule(
    "algorithm-5-printed",
    ("Timor et al. 2025, Algorithm 5, line 12 as printed",),
    algorithm_5,
    lossless=False,
)
TRIED: Mapping[str, Rule] = MappingProxyType({**RULES, PRINTED.name: PRINTED})


@dataclass(frozen=True)
class AlgorithmReport:
    """The checks of one algorithm, and the failures.

    Attributes
    ----------
    cases, paths : int
        Exact proofs of one iteration, and the random paths enumerated for them.
    not_applicable : int
        Cases whose vocabularies the algorithm is not defined for.
    loops, acceptances : int
        Exact proofs of the decode loop; exact comparisons of the number of accepted tokens.
    failures : tuple of str
        One line for each case that failed.
    monte_carlo : CampaignReport
        The joint distribution of sampled blocks, and their numbers of accepted tokens.
    acceptance : tuple of MeasuredAcceptance
        Acceptance of the same blocks with exact intervals, and the closed forms.
    seconds : float
        Of work, summed over workers.
    refuted : int
        Cases on which a rule that is published and lossy is refuted.
    """

    algorithm: str
    cases: int = 0
    paths: int = 0
    not_applicable: int = 0
    loops: int = 0
    acceptances: int = 0
    failures: tuple[str, ...] = ()
    monte_carlo: CampaignReport | None = None
    acceptance: tuple[MeasuredAcceptance, ...] = ()
    seconds: float = 0.0
    refuted: int = 0

    def __add__(self, other: "AlgorithmReport") -> "AlgorithmReport":
        """The report on the cases of both."""
        return AlgorithmReport(
            self.algorithm,
            self.cases + other.cases,
            self.paths + other.paths,
            self.not_applicable + other.not_applicable,
            self.loops + other.loops,
            self.acceptances + other.acceptances,
            self.failures + other.failures,
            other.monte_carlo if self.monte_carlo is None else self.monte_carlo,
            self.acceptance + other.acceptance,
            self.seconds + other.seconds,
            self.refuted + other.refuted,
        )

    @property
    def ok(self) -> bool:
        """Whether something was checked and nothing failed."""
        return not self.problems

    @property
    def problems(self) -> tuple[str, ...]:
        """One line for each thing that failed, or was not done."""
        found, rule = list(self.failures), TRIED[self.algorithm]
        if not self.cases:
            found.append("nothing was proved")
        if not rule.lossless and not self.refuted:
            found.append("published as it is, and not refuted")
        if self.monte_carlo is None and rule.sampled:
            found.append("nothing was sampled")
        if self.monte_carlo is not None and not self.sampled_ok:
            sampled = self.monte_carlo
            lengths = f"numbers of accepted tokens {sampled.conformance}"
            wrong = [f"; {measured}" for measured in self.acceptance if not measured.agrees]
            found.append(f"Monte Carlo {sampled.verdict}, {lengths}{''.join(wrong[:1])}")
        return tuple(f"{self.algorithm}: {problem}" for problem in found)

    @property
    def sampled_ok(self) -> bool:
        """Whether the samples certify losslessness, and accepted lengths their closed form."""
        sampled, law = self.monte_carlo, TRIED[self.algorithm].accepted_lengths
        return (
            sampled is not None
            and sampled.verdict == Verdict.LOSSLESS_WITHIN_EPS
            and sampled.conformance == (Conformance.CONFORMS if law else Conformance.NOT_RUN)
            and all(measured.agrees for measured in self.acceptance)
        )


@dataclass(frozen=True)
class Verification:
    """The reports of all algorithms, and how to repeat the run."""

    profile: Profile
    seed: int
    pairs: int
    reports: tuple[AlgorithmReport, ...]

    @property
    def ok(self) -> bool:
        """Whether every algorithm passed every check."""
        return all(report.ok for report in self.reports)
