"""The samplers that come with the package: one right, one wrong in the way that it says."""

import pytest

from specref import check
from specref.examples import correct, lossy
from specref.probing import probe_block
from specref.zoo import FIXTURES, MUTANTS, total_variation_on


def test_the_correct_one_is_exact() -> None:
    pair = FIXTURES["c"]
    found = probe_block(correct.verify, pair.target, pair.drafter, (), pair.lookahead)
    assert found.uninterpreted is None
    assert found.total_variation < 1e-9


def test_the_lossy_one_has_the_law_of_its_bug() -> None:
    pair = FIXTURES["c"]
    found = probe_block(lossy.verify, pair.target, pair.drafter, (), pair.lookahead)
    exact = total_variation_on(MUTANTS["residual-is-p"], pair)
    assert found.total_variation == pytest.approx(float(exact), abs=1e-6)


def test_the_correct_one_survives_the_deterministic_stages() -> None:
    report = check(correct.verify, only=["smoke", "boundary", "joint/probed"], rule="standard")
    assert report.exit_code == 0, report
    assert report.counts["failed"] == 0


def test_the_lossy_one_does_not() -> None:
    report = check(lossy.verify, only=["joint/probed"], one_hot=False)
    assert report.exit_code == 1
    assert report.lossy
