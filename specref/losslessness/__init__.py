"""Is a sampler lossless? Exact proofs, and tests on samples with stated error rates."""

from specref.losslessness.campaign import Campaign, CampaignCase
from specref.losslessness.driver import InconclusiveWarning, assert_lossless, run
from specref.losslessness.exact import (
    Difference,
    Proof,
    completed,
    is_lossless,
    is_lossless_loop,
    output_distribution,
)
from specref.losslessness.verdict import CampaignReport, Conformance, Verdict

__all__ = [
    "Campaign",
    "CampaignCase",
    "CampaignReport",
    "Conformance",
    "Difference",
    "InconclusiveWarning",
    "Proof",
    "Verdict",
    "assert_lossless",
    "completed",
    "is_lossless",
    "is_lossless_loop",
    "output_distribution",
    "run",
]
