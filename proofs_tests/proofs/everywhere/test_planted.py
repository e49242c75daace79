"""Bugs that act on few rows are found, each with rows at which the rule is lossy."""

import pytest

from proofs_tests.proofs.everywhere.planted import PLANTED
from specref import is_lossless
from specref.proofs.everywhere import is_lossless_everywhere
from specref.proofs.everywhere.proof import models_of
from specref.proofs.everywhere.rows import Space


@pytest.mark.parametrize("name", PLANTED)
def test_found_with_a_witness(name: str) -> None:
    bug = PLANTED[name]
    found = is_lossless_everywhere(bug.step, bug.tokens, lookahead=bug.lookahead, budget=120)
    assert found.verdict == "lossy"
    assert found.witness is not None
    space = Space(found.target, found.drafter, 0)
    proof = is_lossless(bug.step, *models_of(space, found.witness.rows), (), bug.lookahead)
    assert proof.total_variation == found.witness.proof.total_variation > 0  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "name", [n for n, bug in PLANTED.items() if (bug.tokens, bug.lookahead) == ("ab", 1)]
)
def test_the_same_rule_without_its_condition_is_proved(name: str) -> None:
    bug = PLANTED[name]
    never = bug.make(lambda at: False)
    assert is_lossless_everywhere(never, bug.tokens, lookahead=bug.lookahead).verdict == "lossless"
