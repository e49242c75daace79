"""The table of rules: what it says, and what it refuses to say."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest

from specref.algorithms.companion.companion import between, verified_length_for_proofs
from specref.chance import Exact, Traced, exact_distribution
from specref.models import Model, hashed_model, iid_model
from specref.rule import Rule
from specref.rules import RULES, declarable, rule_of
from specref.vocabulary import Vocabulary
from specref.zoo import ALL

VECTORS = Path(__file__).resolve().parent.parent / "specref" / "vectors" / "v1"
ABC = Vocabulary("abc")
TARGET, DRAFTER = hashed_model(ABC, "p"), hashed_model(ABC, "q")
TARGET_OF_TWO = iid_model(ABC, ["1/2", "1/2", 0])
NEVER = iid_model(ABC, [0, 0, 1])  # what it drafts is impossible for the target above
WITH_LENGTHS = [name for name, rule in RULES.items() if rule.accepted_lengths]


def test_the_rules_that_say_so_have_published_vectors() -> None:
    published = {file.stem for file in VECTORS.glob("*.json")} & set(RULES)
    assert published == {name for name, rule in RULES.items() if rule.vectors}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_what_is_printed_is_in_the_zoo_as_a_variant_of_its_rule(rule: Rule) -> None:
    assert {ALL[name].rule for name in rule.printed} <= {rule.name}


@pytest.mark.parametrize("name", WITH_LENGTHS)
def test_figures_of_acceptance_are_those_of_the_lengths_of_one_draft(name: str) -> None:
    rule = RULES[name]
    lengths = rule.accepted_lengths(TARGET, DRAFTER, (), 1)
    assert sum(lengths) == 1
    assert lengths[-1] > 0
    assert rule.accepted_lengths(TARGET_OF_TWO, NEVER)[-1] > 0
    assert rule.accepted_lengths(TARGET, DRAFTER) == lengths
    assert rule.acceptance_rate(TARGET, DRAFTER) == 1 - lengths[0]
    assert rule.acceptance_by_position(TARGET, DRAFTER) == (1 - lengths[0],) * (len(lengths) > 1)
    longer = rule.accepted_lengths(TARGET, DRAFTER, (0,), 2)
    assert math.prod(rule.acceptance_by_position(TARGET, DRAFTER, (0,), 2)) == (
        longer[-1] if len(longer) > 1 else 1
    )


@pytest.mark.parametrize("name", [name for name in RULES if name not in WITH_LENGTHS])
def test_what_has_no_closed_form_is_not_computed(name: str) -> None:
    for figure in (RULES[name].acceptance_rate, RULES[name].acceptance_by_position):
        with pytest.raises(ValueError, match=f"rule '{name}': no closed form of the number"):
            figure(TARGET, DRAFTER)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_equal_rows_are_accepted_by_the_rules_that_say_so(rule: Rule) -> None:
    rows = ["1/6", "1/3", "1/2"], ["1/5", "3/5", "1/5"], [0, "1/4", "3/4"]
    model = Model(ABC, lambda context: rows[len(context) % 3])
    law = exact_distribution(lambda chance: rule.step(model, model, (), 2, chance))
    assert (min(map(len, law)) == 3) == rule.accepts_equals


@pytest.mark.parametrize("name", ["recursive-rejection", "matching", "k-seq"])
def test_rules_for_several_drafts_of_a_token_are_given_two(name: str) -> None:
    chance = Traced(Exact())
    even = iid_model(ABC, ["1/3"] * 3)
    RULES[name].step(TARGET, even, (), 1, chance)
    drafted = [step.site for step in chance.steps if step.site.startswith("draft[0]")]
    assert drafted == ["draft[0][0]", "draft[0][1]"]


def test_a_companion_for_proofs_is_halfway() -> None:
    target, drafter = iid_model(ABC, ["1/2", "1/2", 0]), iid_model(ABC, [0, "1/4", "3/4"])
    assert between(target, drafter).next_token((1,)).tolist() == [
        Fraction(1, 4),
        Fraction(3, 8),
        Fraction(3, 8),
    ]


def test_names_that_are_no_rule_are_refused() -> None:
    assert rule_of("block") is RULES["block"]
    with pytest.raises(ValueError, match="algorithm = 'blocks': expected one of autoregressive"):
        rule_of("blocks")


def test_lossless_rules_may_be_declared() -> None:
    lossless = [name for name, rule in RULES.items() if rule.lossless]
    assert list(declarable()) == lossless
    assert set(RULES) - set(lossless) == {"companion-published"}
    trees = [name for name in lossless if RULES[name].verify_tree]
    assert list(declarable(tree=True)) == trees
    assert list(declarable(tree=False)) == [name for name in lossless if name not in trees]


def test_a_verifier_says_how_it_reads_its_coins() -> None:
    standard = RULES["standard"]
    for change in ({"verify": None}, {"coins": None}):
        with pytest.raises(ValueError, match=r"coins = .*: expected with `verify`, and only then"):
            replace(standard, **change)


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.accepts_first])
def test_a_first_draft_is_accepted_as_often_as_the_closed_form_says(name: str) -> None:
    rule = RULES[name]
    assert rule.accepts_first is not None
    for target, drafter in ((TARGET, DRAFTER), (iid_model(ABC, ["1/6", "1/3", "1/2"]), TARGET)):
        law = exact_distribution(partial(rule.step, target, drafter, (), 1))
        accepted = sum(mass for block, mass in law.items() if len(block) == 2)
        assert accepted == rule.accepts_first(target.next_token(()), drafter.next_token(()))


def test_a_likely_draft_is_accepted_three_times_in_four() -> None:
    exactly, less = Fraction(3, 4), Fraction(7, 10)
    asked = [], [exactly], [less], [1, exactly, less, 1]
    assert [verified_length_for_proofs(rates) for rates in asked] == [0, 1, 0, 2]
