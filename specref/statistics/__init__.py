"""Is a sampler lossless? Tests on samples, with stated error rates."""

from specref.statistics.campaign.campaign import Campaign
from specref.statistics.campaign.cases import CampaignCase
from specref.statistics.campaign.driver import InconclusiveWarning, assert_lossless, run
from specref.statistics.campaign.planning import (
    min_detectable_tv,
    min_trials,
    plan_distance,
    plan_eps,
    plan_trials,
    typical_trials,
)
from specref.statistics.campaign.verdict import CampaignReport, Conformance, Verdict
from specref.statistics.floats.coupled import CoupledResult, coupled_replay
from specref.statistics.two_sample.bounds import detectable_distance
from specref.statistics.two_sample.driver import assert_same_law, run_two_sample
from specref.statistics.two_sample.test import TwoSample, TwoSampleReport

__all__ = [
    "Campaign",
    "CampaignCase",
    "CampaignReport",
    "Conformance",
    "CoupledResult",
    "InconclusiveWarning",
    "TwoSample",
    "TwoSampleReport",
    "Verdict",
    "assert_lossless",
    "assert_same_law",
    "coupled_replay",
    "detectable_distance",
    "min_detectable_tv",
    "min_trials",
    "plan_distance",
    "plan_eps",
    "plan_trials",
    "run",
    "run_two_sample",
    "typical_trials",
]
