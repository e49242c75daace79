"""The sampled part of the main job: one campaign over blocks of each rule."""

import numpy as np
from numpy.typing import NDArray

from specref.pairs import Pair, toy_pairs
from specref.rules import RULES
from specref.statistics.campaign.acceptance import MeasuredAcceptance, measure_acceptance
from specref.statistics.campaign.campaign import Campaign
from specref.statistics.campaign.driver import run
from specref.statistics.campaign.verdict import CampaignReport
from specref.tables import Tables, draw_blocks, tabulate
from specref.verification.exact import LOOP_LOOKAHEAD, applies
from specref.zoo import MUTANTS

SAMPLED_PAIRS = ("order 1, zeros", "same vocabulary #0", "reordered", "two vocabularies #0")


class BlockSampler:
    """Blocks of a rule, by the name of the pair; picklable."""

    def __init__(self, tables: dict[str, Tables]) -> None:
        self.tables = tables

    def __call__(self, name: str, trials: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return draw_blocks(self.tables[name], trials, rng).blocks


def sample(
    algorithm: str, trials: int, eps: float, seed: int
) -> tuple[CampaignReport, tuple[MeasuredAcceptance, ...]]:
    """One campaign over blocks of a rule, on pairs it is defined for.

    * `trials`: Blocks on each pair.
    * `eps`: What is to be certified.
    * returns: Their intervals fail with the campaign's alpha, all together.

    Examples
    --------
    >>> report, _ = sample("autoregressive", 100_000, 0.05, seed=1)
    >>> str(report.verdict)
    'LOSSLESS_WITHIN_EPS'
    """
    campaign = Campaign(eps=eps, seed=seed)
    tables: dict[str, Tables] = {}
    for pair in sampled_pairs(algorithm):
        arguments = (pair.target, pair.drafter, (), LOOP_LOOKAHEAD)
        campaign.case(*arguments, algorithm=algorithm, name=pair.name, mutants=MUTANTS)
        tables[pair.name] = tabulate(algorithm, *arguments)
    report = run(campaign, BlockSampler(tables), budget=trials, seed=seed)
    alpha = campaign.alpha / len(campaign.cases)
    measured = tuple(
        measure_acceptance(case.name, case.lengths, case.accepted, alpha)
        for case in campaign.cases
        if case.accepted is not None and case.trials
    )
    return report, measured


def sampled_pairs(algorithm: str) -> tuple[Pair, ...]:
    """The toy pairs that are sampled: two over one vocabulary, two over two."""
    pairs = [pair for pair in toy_pairs("quick") if pair.name in SAMPLED_PAIRS]
    return tuple(pair for pair in pairs if applies(RULES[algorithm], pair))
