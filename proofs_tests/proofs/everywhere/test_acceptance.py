"""What a rule accepts at given rows, as the closed forms say; no test is statistical."""

from fractions import Fraction

import pytest

from specref import Vocabulary
from specref.algorithms import block, greedy_block, standard
from specref.models import iid_model
from specref.proofs.everywhere.acceptance import Formula, Verified, agree
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


def block_of(*sites: str):
    """A step that draws a token, the first one, at each of these sites."""

    def step(target, drafter, context, lookahead, chance):
        return tuple(chance.draw([Fraction(1), Fraction(0)], site) for site in sites)

    return step


@pytest.mark.parametrize(
    ("sites", "iterations", "counted"),
    [
        (("draft[0]", "draft[1]", "bonus"), 1, 2),
        (("residual", "modified", "modified"), 1, 0),
        (("draft[0]", "bonus"), 2, 4),
    ],
)
def test_the_last_token_is_no_accepted_draft_and_what_is_owed_is_none(sites, iterations, counted):
    texts = [[(0,) * size] for size in range(1, 8)]
    sums = Verified(block_of(*sites), iterations).sums(P, Q, 1, texts)
    assert sums == [1] * counted + [0] * (7 - counted)


def test_what_others_owe_between_iterations_is_not_counted_but_refused() -> None:
    """The tokens that the first iteration owes would be taken for those of the second."""

    def same_rule(*arguments):
        return greedy_block.step(*arguments)

    for step in (block_of("residual", "modified"), same_rule):
        with pytest.raises(TypeError, match="sites called modified: expected none in several"):
            Verified(step, 2).sums(P, Q, 2, TEXTS)


@pytest.mark.parametrize("step", [standard.step, block.step, greedy_block.step])
def test_iterations_follow_each_other(step) -> None:
    """Texts of two tokens are the target's: each iteration goes on where the other ends."""
    texts = [[(first, second)] for first in range(2) for second in range(2)]
    sums = Verified(step, 2).sums(P, Q, 1, texts)
    assert sums == [p * q for p in map(Fraction, ("1/3", "2/3")) for q in (P.next_token(()))]


def test_texts_agree_as_far_as_they_go() -> None:
    assert agree((), (0, 1))
    assert agree((0, 1), (0,))
    assert not agree((0, 1), (1,))
    assert Formula(by_token).sums(P, Q, 1, [((0,), (1,))]) == [Fraction(2, 3)]
