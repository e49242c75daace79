"""Blocks that the listing decides again, on the loop's own random numbers."""

import numpy as np
import pytest

pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch

from specref.contrib.real_models import judging
from specref.contrib.real_models.deciding import NEAR, Decided, FromCoins
from specref.contrib.real_models.generating import Generator
from specref.contrib.real_models.judging import judge
from specref.contrib.real_models.planted import BUGS
from specref.contrib.real_models.record import PLAIN
from specref.contrib.real_models.running import prompts_of
from specref.contrib.real_models.settings import Setting
from specref.contrib.real_models.tally import Tally
from specref.torch_backend import Coins


def judged(pairs, method, planted=None, setting=PLAIN):
    pair, tally = pairs[method], Tally()
    made = Generator(pair, method, setting)(prompts_of(pair)[:8], range(8), 12, planted or {})
    judge(tally, made, method, setting, pair.target)
    return tally


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("bug", ["residual is p", "bonus from q", "row before", "lenient"])
def test_bugs_of_the_rule_decide_otherwise(pairs, bug):
    assert judged(pairs, "standard", BUGS[bug]()).decided.unexplained > 0


def test_a_proposal_keeps_no_tree_of_laws(pairs):
    """A batch of the published pairs held gigabytes of them."""
    made = Generator(pairs["slrs"], "slrs", Setting())(prompts_of(pairs["slrs"])[:2], range(2), 6)
    assert made.proposals
    assert all(one.by_drafter and one.drafts.verifier is None for one in made.proposals)


def test_a_lenient_slrs_decides_otherwise(pairs):
    """Its drafts are decided by bounds of psi."""
    assert judged(pairs, "slrs").decided.unexplained == 0
    assert judged(pairs, "slrs", BUGS["lenient"]()).decided.unexplained > 0


def test_a_number_between_the_bounds_of_a_probability_decides_nothing():
    numbers = chance([0.3, 0.3, 0.3], 0.5, drafted=3)
    shares = [(0.31, 0.4), (0.1, 0.3), (0.29, 0.4)]
    sites = [f"accept[{place}]" for place in range(3)]
    found = [numbers.accept_within(*one, site) for one, site in zip(shares, sites, strict=True)]
    assert found == [True, False, None]


def test_a_law_that_is_off_in_the_fourth_digit_differs_only_near_borders(pairs, monkeypatch):
    """What rounding can do is told from what it cannot."""
    law = Setting.law

    def moved(self, logits):
        p = law(self, logits) * (1 + 1e-5 * np.cos(np.arange(len(logits))))
        return p / p.sum()

    monkeypatch.setattr(Setting, "law", moved)
    monkeypatch.setattr(judging, "SAME", 1e-3)
    assert judged(pairs, "tli").decided.unexplained == 0


def test_a_wrong_filter_of_the_loop_is_noticed(pairs, monkeypatch):
    """Temperature 0.7 in the loop and 0.71 in the judge."""
    law = Setting.law
    monkeypatch.setattr(Setting, "law", lambda self, row: law(Setting(0.71), row))
    tally = judged(pairs, "tli", setting=Setting(0.7))
    assert tally.misshaped == tally.shaped > 20


def chance(accept, final, drafted):
    numbers = (
        torch.tensor([accept], dtype=torch.float64),
        torch.tensor([final], dtype=torch.float64),
    )
    return FromCoins(Coins(*numbers), drafted)


def test_numbers_are_spent_as_the_loop_spends_them():
    decides = chance([0.3, 0.9], 0.55, drafted=1)
    assert decides.accept(0.31, "accept[0]")
    assert decides.narrowest == (pytest.approx(0.01), "accept[0]")
    law = np.array([0.0, 0.25, 0.25, 0.5])
    assert decides.draw(law, "target[0]") == 2
    assert decides.draw(law, "target[1]") == decides.draw(law, "bonus") == 3
    assert decides.narrowest[0] == pytest.approx(0.01)


@pytest.mark.parametrize("final", [0.0, 1 - 2.0**-53])
def test_what_has_no_probability_is_not_drawn(final):
    assert chance([], final, 0).draw(np.array([0.0, 0.3, 0.7, 0.0]), "bonus") in (1, 2)


def test_a_difference_is_explained_only_near_a_border():
    decided = Decided()
    decided.add((1,), (1,), (0.5, "bonus"))
    decided.add((1,), (2,), (NEAR / 2, "bonus"))
    decided.add((1,), (2,), (NEAR * 2, "accept[0]"))
    assert (decided.iterations, decided.different, decided.unexplained) == (3, 2, 1)
    assert "accept[0] is 2.0e-04 from its border, UNEXPLAINED" in decided.examples[1]


def test_a_filter_s_cut_explains_what_it_may_move_and_no_more():
    decided = Decided()
    for undecided in (2e-4, 5e-4):
        decided.add((1,), (2,), (4e-4, "bonus"), lambda moved=undecided: moved)
    assert (decided.different, decided.unexplained) == (2, 1)
