"""The benchmark of false alarms counts what campaigns say, at every alpha."""

import math

import numpy as np
import pytest

from proofs_tests.benchmarks.false_alarms import (
    ALPHAS,
    LOOKS,
    alarms,
    counted,
    template,
    watched,
)
from proofs_tests.benchmarks.power import block_law
from specref.statistics.campaign.campaign import Campaign
from specref.statistics.campaign.verdict import Verdict
from specref.zoo import FIXTURES, MUTANTS

# Weak and strong bugs, so that campaigns are LOSSY at some alphas, from some look on.
BUGS = ("lenience-5-4", "shared-u", "residual-is-q", "always-accept-u0")


def one_alpha(blocks: np.ndarray, alpha: float) -> tuple[bool, bool]:
    """Whether one campaign at this alpha crosses 1/alpha, and ever says LOSSY."""
    campaign, lossy = Campaign(alpha=alpha, eps=None), False
    case = campaign.adopt(template("eos"))
    for batch in np.split(blocks, LOOKS[:-1]):
        campaign.add(case, batch)
        lossy |= campaign.report().verdict == Verdict.LOSSY
    return campaign.peak >= -math.log(alpha), lossy


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("bug", BUGS)
def test_one_watched_campaign_stands_for_one_at_each_alpha(bug: str) -> None:
    blocks, weights = block_law(FIXTURES["eos"], MUTANTS[bug])
    rng = np.random.default_rng(1)
    for _ in range(3):
        drawn = blocks[rng.choice(len(blocks), size=LOOKS[-1], p=weights / weights.sum())]
        separate = np.array([one_alpha(drawn, alpha) for alpha in ALPHAS]).T
        assert (watched(template("eos"), drawn) == separate).all()


def test_total_variation_alone_counts_as_lossy() -> None:
    # Without bets only the distance is left: the evidence stays at 1.
    blocks, weights = block_law(FIXTURES["eos"], MUTANTS["always-accept-u0"])
    rows = np.random.default_rng(2).choice(len(blocks), size=LOOKS[-1], p=weights)
    campaign = Campaign(alpha=1e-4, eps=None)
    case = campaign.adopt(template("eos"))
    campaign.evidence.bet = lambda *arguments: None  # type: ignore[method-assign]
    campaign.evidence.tolerance = 1e-9  # no Dirichlet bets either
    campaign.add(case, blocks[rows])
    assert campaign.peak == pytest.approx(0)
    assert campaign.report().verdict == Verdict.LOSSY


@pytest.mark.deep
def test_counts_do_not_depend_on_the_number_of_processes(monkeypatch) -> None:
    alone = alarms("m", 40, (3, 0, 0))
    assert (alone == alarms("m", 40, (3, 0, 0))).all()
    monkeypatch.setattr("proofs_tests.benchmarks.false_alarms.SHARE", 20)
    one, two = (counted(["m", "c"], 40, processes, seed=3) for processes in (1, 2))
    assert one.keys() == two.keys() == {"m", "c"}
    for fixture, (campaigns, found) in one.items():
        assert campaigns == two[fixture][0] == 40
        assert (found == two[fixture][1]).all()
