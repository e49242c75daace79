"""Is a sampler lossless? Exact proofs, and tests on samples with stated error rates."""

from specref.losslessness.campaign import Campaign
from specref.losslessness.cases import CampaignCase
from specref.losslessness.coupled import CoupledResult, coupled_replay
from specref.losslessness.driver import InconclusiveWarning, assert_lossless, run
from specref.losslessness.exact import (
    Difference,
    Proof,
    completed,
    is_lossless,
    is_lossless_loop,
    output_distribution,
)
from specref.losslessness.planning import min_detectable_tv, min_trials, typical_trials
from specref.losslessness.two_sample import TwoSample, TwoSampleReport
from specref.losslessness.verdict import CampaignReport, Conformance, Verdict

__all__ = [
    "Campaign",
    "CampaignCase",
    "CampaignReport",
    "Conformance",
    "CoupledResult",
    "Difference",
    "InconclusiveWarning",
    "Proof",
    "TwoSample",
    "TwoSampleReport",
    "Verdict",
    "assert_lossless",
    "completed",
    "coupled_replay",
    "is_lossless",
    "is_lossless_loop",
    "min_detectable_tv",
    "min_trials",
    "output_distribution",
    "run",
    "typical_trials",
]
