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
from specref.losslessness.planning import (
    min_detectable_tv,
    min_trials,
    plan_distance,
    plan_eps,
    plan_trials,
    typical_trials,
)
from specref.losslessness.two_sample import TwoSample, TwoSampleReport
from specref.losslessness.two_sample_bounds import detectable_distance
from specref.losslessness.two_sample_driver import assert_same_law, run_two_sample
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
    "assert_same_law",
    "completed",
    "coupled_replay",
    "detectable_distance",
    "is_lossless",
    "is_lossless_loop",
    "min_detectable_tv",
    "min_trials",
    "output_distribution",
    "plan_distance",
    "plan_eps",
    "plan_trials",
    "run",
    "run_two_sample",
    "typical_trials",
]
