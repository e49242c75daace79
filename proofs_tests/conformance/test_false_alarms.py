"""The benchmark of false alarms counts what campaigns say, at every alpha."""

import math

import numpy as np
import pytest

from proofs_tests.benchmarks.false_alarms import (
    ALPHAS,
    LOOKS,
    SHARE,
    alarms,
    counted,
    null_laws,
    table,
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


def test_every_null_law_is_a_law() -> None:
    for blocks, weights in null_laws("wide"):
        assert len(blocks) == len(weights)
        assert weights.sum() == pytest.approx(1)
    assert len(null_laws("wide")) >= 12


def test_the_table_gives_rates_with_their_intervals() -> None:
    rows = list(table({"m": (SHARE, np.array([[5, 0, 0, 0], [1, 0, 0, 0]]))}))
    assert rows[2].startswith("| m | 500 | 0.1 | 1.0e-02 (")
    assert rows[3].startswith("| m | 500 | 0.01 | 0.0e+00 (0.0e+00 to 1.5e-02)")
