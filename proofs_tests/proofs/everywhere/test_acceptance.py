"""What a rule accepts at given rows, as the closed forms say; no test is statistical."""

from fractions import Fraction

import pytest

from specref import Vocabulary
from specref.algorithms import block, greedy_block, standard
from specref.models import iid_model
from specref.proofs.everywhere.acceptance import Formula, Verified, accepted, agree
from specref.theory import block as block_theory
from specref.theory import greedy_block as greedy_theory
from specref.verification.dominance import by_token, greedily, jointly

LETTERS = Vocabulary("ab")
P, Q = (iid_model(LETTERS, row) for row in (["1/3", "2/3"], ["2/3", "1/3"]))
TEXTS = [((0,),), ((1,),), ((0, 1),), ((1, 1),), ((0, 0), (1, 0))]


@pytest.mark.parametrize(
    ("step", "formula"),
    [(standard.step, by_token), (block.step, jointly), (greedy_block.step, greedily)],
)
def test_a_rule_accepts_what_its_formula_says(step, formula) -> None:
    """Tokens that greedy block verification owes are no accepted drafts."""
    by_paths = Verified(step).sums(P, Q, 2, TEXTS)
    assert by_paths == Formula(formula, 2).sums(P, Q, 2, TEXTS)


def test_formulas_are_those_of_the_theory() -> None:
    rows = block_theory.draft_rows(P, Q, (), 2)
    for theory, formula in ((block_theory, jointly), (greedy_theory, greedily)):
        for text, mass in theory.accepted_prefixes(P, (), rows).items():
            assert formula(P, Q, text, 2) == mass


def test_the_last_token_is_no_accepted_draft() -> None:
    assert accepted((0, 1, 1), ["draft[0]", "draft[1]", "bonus"]) == (0, 1)
    assert accepted((0, 1, 1), ["draft[0]", "residual", "modified", "modified"]) == ()


def test_texts_agree_as_far_as_they_go() -> None:
    assert agree((), (0, 1))
    assert agree((0, 1), (0,))
    assert not agree((0, 1), (1,))
    assert Formula(by_token).sums(P, Q, 1, [((0,), (1,))]) == [Fraction(2, 3)]
