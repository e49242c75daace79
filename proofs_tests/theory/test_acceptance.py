"""The closed forms of acceptance equal what enumeration counts."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs_tests.helpers.bugs import planted
from specref import Traced, Vocabulary, exact_distribution, is_lossless
from specref.algorithms import slrs, standard
from specref.models import iid_model
from specref.rules import RULES
from specref.strategies import (
    distributions,
    heterogeneous_pairs,
    iterations,
    lookaheads,
    model_pairs,
    non_injective_pairs,
    token_level_pairs,
)
from specref.theory import (
    acceptance,
    at_most_n_max,
    expected_tokens,
    until_determined,
)
from specref.theory.block import length_law, survival, tokens_emitted

SAME = iterations(model_pairs(), max_lookahead=3)
TOKEN_LEVEL = iterations(token_level_pairs())
STRINGS = iterations(heterogeneous_pairs() | non_injective_pairs())
CASES = {
    "autoregressive": TOKEN_LEVEL,
    "standard": SAME,
    "union": TOKEN_LEVEL,
    "tli": TOKEN_LEVEL,
    "slem": STRINGS,
    "slrs": STRINGS,
    "block": SAME,
}


def count_accepted(algorithm, target, drafter, block, steps):
    if algorithm != "slem":
        accepts = [s.site for s in steps if s.site.startswith("accept") and s.choice]
        return max((int(site[7:-1]) + 1 for site in accepts), default=0)
    drafts = [step.choice for step in steps if step.site.startswith("draft")]
    proposal = target.vocabulary.encode(drafter.vocabulary.decode(drafts))
    agreeing = [token == proposed for token, proposed in zip(block, proposal, strict=False)]
    return [*agreeing, False].index(False)


def enumerated(algorithm, step, case):
    """The law of the accepted length, from every random path."""
    target, drafter, context, lookahead = case

    def program(chance):
        traced = Traced(chance)
        block = step(target, drafter, context, lookahead, traced)
        return count_accepted(algorithm, target, drafter, block, traced.steps)

    law = exact_distribution(program)
    return tuple(law.get(length, 0) for length in range(max(law) + 1))


def formula_holds(algorithm, step, case):
    return RULES[algorithm].accepted_lengths(*case) == enumerated(algorithm, step, case)


def test_eleven_rules_have_closed_forms():
    """Of those outside `CASES`, `check_case` compares them on the toy pairs."""
    assert [name for name, rule in RULES.items() if rule.accepted_lengths] == [
        *CASES,
        "block-slrs",
        "lazy-slrs",
        "topdown",
        "traversal",
    ]


@pytest.mark.deep(one_in=7)
@pytest.mark.parametrize("algorithm", CASES)
@given(data=st.data())
def test_closed_forms_equal_enumeration(algorithm, data):
    case = data.draw(CASES[algorithm])
    law = enumerated(algorithm, RULES[algorithm].step, case)
    assert RULES[algorithm].accepted_lengths(*case) == law
    assert RULES[algorithm].acceptance_rate(*case) == 1 - law[0]
    by_position = RULES[algorithm].acceptance_by_position(*case)
    reached = [sum(law[length:]) for length in range(len(law))]
    assert [math.prod(by_position[:length]) for length in range(len(law))] == reached


@pytest.mark.parametrize("algorithm", ["union", "tli"])
def test_drafter_eos_that_the_target_does_not_share_ends_the_draft(algorithm):
    target = iid_model(Vocabulary("a"), [1])
    drafter = iid_model(Vocabulary("a", eos="a"), [1])
    assert formula_holds(algorithm, RULES[algorithm].step, (target, drafter, (), 2))


@given(iterations(heterogeneous_pairs()), st.sampled_from([until_determined, at_most_n_max]))
def test_closed_forms_for_other_lookahead_rules(case, rule):
    def step(*arguments):
        return slrs.step(*arguments, rule=rule)

    assert acceptance.slrs(*case, rule=rule) == enumerated("slrs", step, case)


@pytest.mark.parametrize(
    ("algorithm", "formula"),
    [
        ("standard", "slem"),
        ("union", "tli"),
        ("tli", "union"),
        ("slem", "slrs"),
        ("slrs", "slem"),
        ("block", "standard"),
        ("standard", "block"),
    ],
)
def test_formula_of_another_algorithm_is_rejected(algorithm, formula, counterexample):
    step = RULES[algorithm].step

    def holds(case):
        return RULES[formula].accepted_lengths(*case) == enumerated(algorithm, step, case)

    assert counterexample(CASES[algorithm], holds)


@pytest.mark.parametrize("name", ["accepts_half", "always_accepted", "lenient", "one_coin"])
def test_step_that_accepts_too_much_or_too_little_is_rejected(name, counterexample):
    step = getattr(planted, name)
    assert counterexample(SAME, lambda case: formula_holds("standard", step, case))


@given(SAME)
def test_lossless_step_can_accept_too_little(case):
    assert is_lossless(planted.accepts_half, *case)


def mean_block_length(step, target, drafter, lookahead):
    blocks = exact_distribution(lambda chance: step(target, drafter, (), lookahead, chance))
    return sum(len(block) * probability for block, probability in blocks.items())


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("algorithm", ["standard", "union", "tli"])
@given(p=distributions(3), q=distributions(3), lookahead=lookaheads())
def test_expected_tokens_for_models_that_ignore_context(algorithm, p, q, lookahead):
    target = iid_model(Vocabulary("abc"), p)
    drafter = iid_model(Vocabulary("abc" if algorithm == "standard" else "xba"), q)
    rate = RULES[algorithm].acceptance_rate(target, drafter)
    mean = mean_block_length(RULES[algorithm].step, target, drafter, lookahead)
    assert expected_tokens(rate, lookahead) == mean


@pytest.mark.parametrize("lookahead", range(4))
def test_expected_tokens_when_everything_is_accepted(lookahead):
    model = iid_model(Vocabulary("ab"), ["1/3", "2/3"])
    mean = mean_block_length(standard.step, model, model, lookahead)
    assert expected_tokens(Fraction(1), lookahead) == mean == lookahead + 1


def test_expected_tokens_without_the_bonus_token_is_rejected():
    """(1 - a^n) / (1 - a), as an explainer prints it for the loop with a bonus token."""
    p, q = ["1/3", "2/3"], ["2/3", "1/3"]
    target, drafter = (iid_model(Vocabulary("ab"), row) for row in (p, q))
    rate = RULES["standard"].acceptance_rate(target, drafter)
    assert (1 - rate**2) / (1 - rate) != mean_block_length(standard.step, target, drafter, 2)


@pytest.mark.parametrize(("acceptance", "lookahead"), [(-0.1, 1), (0.5, -1), (0.5, 1.0)])
def test_expected_tokens_names_the_bad_argument(acceptance, lookahead):
    name = "lookahead" if 0 <= acceptance <= 1 else "acceptance"
    with pytest.raises(ValueError, match=f"{name} = "):
        expected_tokens(acceptance, lookahead)


ACCEPTED = {(): 1, (0,): 0.5, (1,): 0.25, (0, 1): 0.25}


def test_a_prefix_that_eos_does_not_end_is_followed_by_a_token() -> None:
    assert tokens_emitted(ACCEPTED, Vocabulary("ab")) == 2
    assert tokens_emitted(ACCEPTED, Vocabulary("ab", eos="b")) == 1.5
    assert tokens_emitted({(): 1}, Vocabulary("ab")) == 1


def test_rounding_makes_no_length_impossibly_rare() -> None:
    rounded = {(): 1.0, (0,): 0.3, (0, 0): 0.1 + 0.2}  # more than 0.3, by rounding
    assert rounded[0, 0] > rounded[0,]
    assert survival(rounded) == (1.0, 0.3, 0.1 + 0.2)
    assert length_law(rounded) == (0.7, 0, 0.1 + 0.2)
