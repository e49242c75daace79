"""The main job: every algorithm over the family of toy pairs, proved, compared and sampled."""

from specref.verification.exact import accepted_lengths, applies, cases_of, check_case
from specref.verification.main_job import verify
from specref.verification.reports import AlgorithmReport, Verification
from specref.verification.rules import Refutation, RuleReport, prove, rule_cases
from specref.verification.sampled import TwinSampler, sample

__all__ = [
    "AlgorithmReport",
    "Refutation",
    "RuleReport",
    "TwinSampler",
    "Verification",
    "accepted_lengths",
    "applies",
    "cases_of",
    "check_case",
    "prove",
    "rule_cases",
    "sample",
    "verify",
]
