"""Which rule accepts more: theorems, planted differences on few rows, wrong formulas, misuse.

Random rows have fixed seeds; no test is statistical.
"""

from dataclasses import replace
from fractions import Fraction

import pytest

from proofs_tests.helpers.bugs.everywhere.planted import in_corner
from specref import Vocabulary
from specref.algorithms import autoregressive, block, greedy_block, standard
from specref.chance import TooManyPathsError
from specref.models import iid_model
from specref.proofs.everywhere import comparison, is_lossless_everywhere
from specref.proofs.everywhere.acceptance import Formula, Verified, agree
from specref.proofs.everywhere.comparison import compare_everywhere
from specref.proofs.everywhere.rows import Row
from specref.proofs.everywhere.walk import paths
from specref.rules import RULES
from specref.theory import block as block_theory
from specref.theory import greedy_block as greedy_theory
from specref.verification.dominance import by_token, greedily, jointly

START = Row("p", ()), Row("q", ())


def first_entries(gap):
    """Of p and q in the corner, where a witness has to be."""
    p, q = (gap.rows[row][0] for row in START)
    assert all(Fraction(7, 10) < x < Fraction(7001, 10000) for x in (p, q))
    return p, q


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize(
    ("inside", "outside", "relation"),
    [(autoregressive.step, standard.step, "less"), (standard.step, autoregressive.step, "more")],
)
def test_a_rule_that_is_worse_or_better_on_few_rows_has_a_witness(inside, outside, relation):
    def step(target, drafter, context, lookahead, chance):
        chosen = inside if in_corner(target, drafter) else outside
        return chosen(target, drafter, context, lookahead, chance)

    found = compare_everywhere(step, outside, "ab", lookahead=1, budget=60)
    gap = found.less or found.more
    p, q = first_entries(gap)
    assert (found.relation, found.at_least.proved) == (relation, relation == "more")
    assert (gap.left > gap.right) == (relation == "more")
    assert {gap.left, gap.right} == {0, 1 - abs(p - q)}


@pytest.mark.deep
def test_a_rule_that_is_worse_at_an_isolated_point_has_that_witness() -> None:
    """Where a sum of squares is 0, an equation that is linear in no variable."""

    def worse(target, drafter, context, lookahead, chance):
        p, q = target.next_token(())[0], drafter.next_token(())[0]
        at_point = (p - Fraction(1, 3)) ** 2 + (q - Fraction(2, 7)) ** 2 <= 0
        step = autoregressive.step if at_point else standard.step
        return step(target, drafter, context, lookahead, chance)

    found = compare_everywhere(worse, standard.step, "ab", lookahead=1)
    assert [found.less.rows[row][0] for row in START] == [Fraction(1, 3), Fraction(2, 7)]


def test_neither_has_two_witnesses_and_no_proof() -> None:
    step = RULES["matching"].step
    found = compare_everywhere(standard.step, step, "abc", lookahead=1)
    assert found.relation == "neither"
    assert found.more.left > found.more.right
    assert found.less.left < found.less.right
    assert (found.at_least.parts, found.at_most.parts) == ((), ())


def test_nothing_is_proved_of_a_rule_that_is_lossy() -> None:
    """It accepts nothing, as does plain sampling; but it emits the drafter's token."""

    def lossy(target, drafter, context, lookahead, chance):
        return (chance.draw(drafter.next_token(context), "draw"),)

    found = compare_everywhere(autoregressive.step, lossy, "ab", lookahead=1)
    assert found.at_least.premise.verdict == "lossy"
    assert not found.at_least.proved
    assert found.at_most.proved
    assert found.relation == "at most"


@pytest.mark.deep
def test_the_sum_can_be_more_though_one_text_is_less() -> None:
    """Both draw from the target; a second token follows b, or follows a at times."""

    def after_b(target, drafter, context, lookahead, chance):
        first = chance.draw(target.next_token(context), "first")
        if first == 0:
            return (first,)
        return (first, chance.draw(target.next_token((*context, first)), "second"))

    def after_a(target, drafter, context, lookahead, chance):
        p = target.next_token(context)
        first = chance.draw(p, "first")
        if first == 1 or not chance.accept(p[1], "go on"):
            return (first,)
        return (first, chance.draw(target.next_token((*context, first)), "second"))

    found = compare_everywhere(after_b, after_a, "ab", lookahead=1, budget=60)
    assert found.relation == "more"
    assert not found.at_least.by_text


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("factor", [Fraction(1, 2), 2])
def test_a_formula_that_is_wrong_on_few_rows_has_a_witness(factor) -> None:
    def wrong(target, drafter, text, lookahead):
        right = by_token(target, drafter, text, lookahead)
        return right * factor if in_corner(target, drafter) else right

    found = compare_everywhere(standard.step, Formula(wrong), "ab", lookahead=1, budget=60)
    gap = found.more if factor < 1 else found.less
    assert found.relation == ("more" if factor < 1 else "less")
    assert gap.right == factor * gap.left
    assert found.at_least.by_text
    assert found.at_most.by_text


@pytest.mark.deep
def test_a_formula_that_is_wrong_where_the_target_has_a_zero_has_a_witness() -> None:
    def wrong(target, drafter, text, lookahead):
        p, q = target.next_token(())[0], drafter.next_token(())[0]
        if text == (0,) and p == 0 and Fraction(7, 10) < q < Fraction(7001, 10000):
            return q
        return by_token(target, drafter, text, lookahead)

    found = compare_everywhere(standard.step, Formula(wrong), "ab", lookahead=1, budget=60)
    assert found.relation == "less"
    assert found.less.rows[START[0]][0] == found.less.left == 0 < found.less.right


def test_what_the_budget_leaves_is_open() -> None:
    found = compare_everywhere(block.step, standard.step, "ab", lookahead=2, budget=1e-9)
    assert found.relation == "open"
    assert found.at_least.open
    assert not found.at_least.proved
    assert not found.at_most.proved


@pytest.mark.deep
def test_one_seed_gives_one_result() -> None:
    one, other = (
        compare_everywhere(standard.step, autoregressive.step, "ab", seed=5) for _ in range(2)
    )
    assert one.at_least.regions == other.at_least.regions
    assert (one.more, one.bits) == (other.more, other.bits)
    assert one.bits >= 100
    assert all(part.mistakes >= 0 for side in (one.at_least, one.at_most) for part in side.parts)


@pytest.mark.deep
def test_ctrl_c_keeps_the_witnesses() -> None:
    def stop(part) -> None:
        raise KeyboardInterrupt

    found = compare_everywhere(standard.step, autoregressive.step, "ab", advance=stop)
    assert found.interrupted
    assert found.more is not None
    assert found.relation == "open"


@pytest.mark.deep
def test_longer_blocks_than_were_met_first_are_compared_too() -> None:
    def longer_in_a_corner(target, drafter, context, lookahead, chance):
        more = in_corner(target, drafter)
        return standard.step(target, drafter, context, lookahead + more, chance)

    found = compare_everywhere(longer_in_a_corner, standard.step, "ab", lookahead=1, budget=60)
    assert (found.relation, found.at_least.proved) == ("more", True)
    p, q = first_entries(found.more)
    assert found.more.right == 1 - abs(p - q)
    assert found.more.right < found.more.left <= 2


@pytest.mark.deep
def test_an_unfinished_proof_that_a_rule_is_lossless_is_no_premise() -> None:
    known = is_lossless_everywhere(standard.step, "ab")
    found = compare_everywhere(
        *(block.step, standard.step, "ab"), lookahead=1,
        known={standard.step: replace(known, interrupted=True)},
    )  # fmt: skip
    assert (found.interrupted, found.relation) == (True, "open")
    assert not found.at_least.proved


@pytest.mark.deep
def test_a_limit_on_paths(monkeypatch) -> None:
    monkeypatch.setattr("specref.proofs.everywhere.acceptance.MAX_PATHS", 1)
    with pytest.raises(TooManyPathsError, match="more than 1 paths at one sample"):
        compare_everywhere(block.step, standard.step, "ab", lookahead=1)


FORMULA = Formula(by_token)
SEVERAL = "expected rules for several iterations"
ENDING = Vocabulary("a$", eos="$")


@pytest.mark.parametrize(
    ("left", "right", "tokens", "options", "error"),
    [
        (
            block.step,
            standard.step,
            "ab",
            {"iterations": 0},
            "ValueError: iterations = 0: expected",
        ),
        (block.step, FORMULA, "ab", {"iterations": 2}, f"TypeError: {SEVERAL}"),
        (FORMULA, block.step, "ab", {"iterations": 2}, f"TypeError: {SEVERAL}"),
        (block.step, standard.step, ENDING, {}, "ValueError: target has the EOS"),
        (block.step, standard.step, "ab", {"budget": 0}, "ValueError: budget = 0"),
        (FORMULA, FORMULA, "ab", {}, "TypeError: expected at least one rule"),
        (block.step, lambda target: (0,), "ab", {}, "TypeError: step takes"),
    ],
)
def test_bad_arguments(left, right, tokens, options, error) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        compare_everywhere(left, right, tokens, **options)
    kind, _, message = error.partition(": ")
    assert raised.typename == kind
    assert message in str(raised.value)


def test_without_z3_it_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setattr(comparison, "is_installed", lambda: False)
    with pytest.raises(ModuleNotFoundError, match="pip install z3-solver"):
        compare_everywhere(block.step, standard.step, "ab")


@pytest.mark.deep
def test_paths_are_counted_as_they_are_followed(monkeypatch) -> None:
    followed = []

    def noted(*arguments, **options):
        for path in paths(*arguments, **options):
            followed.append(path)
            yield path

    monkeypatch.setattr("specref.proofs.everywhere.acceptance.paths", noted)
    found = compare_everywhere(standard.step, autoregressive.step, "ab")
    parts = (*found.at_least.parts, *found.at_most.parts)
    assert sum(part.paths for part in parts) == len(followed) > 0


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
