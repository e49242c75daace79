"""The main job: every algorithm over the family of toy pairs, proved, compared and sampled."""

from specref.verification.exact import accepted_lengths, applies, cases_of, check_case
from specref.verification.main_job import verify
from specref.verification.reports import AlgorithmReport, Verification
from specref.verification.rules import (
    Enumerated,
    InterruptedProofError,
    Refutation,
    RuleReport,
    prove,
    rule_cases,
)
from specref.verification.sampled import TwinSampler, sample
from specref.verification.situations import SITUATIONS, Situation, situations

__all__ = [
    "SITUATIONS",
    "AlgorithmReport",
    "Enumerated",
    "InterruptedProofError",
    "Refutation",
    "RuleReport",
    "Situation",
    "TwinSampler",
    "Verification",
    "accepted_lengths",
    "applies",
    "cases_of",
    "check_case",
    "prove",
    "rule_cases",
    "sample",
    "situations",
    "verify",
]
