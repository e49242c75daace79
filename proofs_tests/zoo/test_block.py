"""Mutants of block verification: lossy by exactly so much, or blind; controls: exact."""

from fractions import Fraction

import pytest

from specref import is_lossless
from specref.algorithms import block, block_slrs, slrs, standard
from specref.distributions import total_variation
from specref.zoo import ALL, fixtures_for
from specref.zoo.block import CONTROLS
from specref.zoo.block import ENTRIES as MUTANTS
from specref.zoo.fixtures import BLOCK_PAIRS as FIXTURES
from specref.zoo.fixtures import BLOCK_TEXTS, BLOCK_TOKENS
from specref.zoo.parts.block import block_step, products_of_uniforms

IRRATIONAL = "block-product-of-uniforms"
RATIONAL = [entry for entry in MUTANTS if entry.id != IRRATIONAL]
CLEAN = {**dict.fromkeys(BLOCK_TOKENS, block.step), **dict.fromkeys(BLOCK_TEXTS, block_slrs.step)}
TOKEN_RULE = {
    **dict.fromkeys(BLOCK_TOKENS, standard.step),
    **dict.fromkeys(BLOCK_TEXTS, slrs.step),
}


def distance(step, fixture):
    return total_variation(fixture.output(step), fixture.continued())


def proof(entry, name):
    fixture = FIXTURES[name]
    case = (fixture.target, fixture.drafter, fixture.context, fixture.lookahead)
    return is_lossless(entry.step, *case)


def expected_length(step, fixture):
    return sum(len(b) * weight for b, weight in fixture.blocks(step).items())


def ids(entries):
    return {"argvalues": entries, "ids": [entry.id for entry in entries]}


@pytest.mark.parametrize("name", FIXTURES)
def test_the_parts_together_are_the_clean_rule(name):
    fixture = FIXTURES[name]
    assert fixture.blocks(block_step()) == fixture.blocks(CLEAN[name])
    assert distance(CLEAN[name], fixture) == 0


@pytest.mark.parametrize("entry", **ids(RATIONAL))
def test_a_mutant_is_lossy_by_its_exact_distances(entry):
    found = {name: proof(entry, name).total_variation for name in entry.distances}
    assert found == entry.distances
    large = [d for name, d in found.items() if len(FIXTURES[name].target.vocabulary) >= 3]
    assert max(large) > Fraction(1, 100)


def test_the_product_of_uniforms_is_lossy_by_an_irrational_distance():
    """To 1e-12, where rounding is at most 1e-15 and the smallest distance 0.16."""
    entry = ALL[IRRATIONAL]
    for name, expected in entry.distances.items():
        found = distance(entry.step, FIXTURES[name])
        assert found == pytest.approx(expected, abs=1e-12)
        assert found > 0.16


def test_the_product_of_uniforms_has_no_closed_form_for_more_drafts():
    step = block_step(choose=products_of_uniforms)
    with pytest.raises(ValueError, match="3 drafts: expected at most 2"):
        BLOCK_TOKENS["deep"].blocks(step)


@pytest.mark.parametrize("entry", **ids(CONTROLS))
@pytest.mark.parametrize("name", FIXTURES)
def test_a_control_is_exact(entry, name):
    assert proof(entry, name).lossless


SAME_LAW = {
    "block-in-one-draw": CLEAN,
    "block-tossed-forwards": CLEAN,
    "block-zero-over-zero-is-one": CLEAN,
    "block-by-tokens": TOKEN_RULE,
}


@pytest.mark.parametrize("name", FIXTURES)
@pytest.mark.parametrize("control", SAME_LAW)
def test_a_control_emits_the_blocks_of_a_rule(control, name):
    """The law of the block itself, lengths included, and not only of the completed one."""
    fixture = FIXTURES[name]
    step = ALL[control].step
    assert fixture.blocks(step) == fixture.blocks(SAME_LAW[control][name])


@pytest.mark.parametrize("control", ["block-drafts-are-certain", "block-given-more"])
def test_other_controls_accept_less(control):
    fixture = BLOCK_TEXTS["spelled"]
    assert expected_length(ALL[control].step, fixture) < expected_length(block_slrs.step, fixture)


@pytest.mark.parametrize(
    ("mutants", "name", "below"),
    [
        (("block-stops-at-first", "block-survival-of-tokens"), "c", True),
        (("block-uncapped-at-the-end", "block-greedy-without-its-target"), "c", False),
    ],
)
def test_symptoms_are_what_they_are_said_to_be(mutants, name, below):
    """Less than token verification; more than block verification, which accepts the most."""
    fixture = FIXTURES[name]
    bound = expected_length((TOKEN_RULE if below else CLEAN)[name], fixture)
    for mutant in mutants:
        length = expected_length(ALL[mutant].step, fixture)
        assert length < bound if below else length > bound


def test_pinned_distances_of_the_survey():
    """Computed once by an independent program, over three tokens after two drafts."""
    pins = {
        "block-tokenwise-residual": ("0", "1/24"),
        "block-stops-at-first": ("1/3", "1/9"),
        "block-uncapped-at-the-end": ("1/9", "1/18"),
        "block-greedy-without-its-target": ("1/9", "5/84"),
    }
    for mutant, (coin, c) in pins.items():
        distances = ALL[mutant].distances
        assert (str(distances["coin"]), str(distances["c"])) == (coin, c)
    product = ALL[IRRATIONAL].distances["c"]
    assert product == pytest.approx(0.1684297688761877, abs=1e-12)


def test_survivors_are_named():
    """One draft leaves nothing to get wrong jointly; two tokens hide the residual."""
    for entry in RATIONAL:
        assert entry.distances.get("m", 0) == 0
    blind = {name for name, d in ALL["block-tokenwise-residual"].distances.items() if d == 0}
    assert blind == {"coin", "m", "deep"}
    ends = [entry.id for entry in RATIONAL if entry.distances["c"] == 0]
    assert ends == [
        "block-end-is-full-acceptance",
        "block-psi-given-more",
        "block-psi-normalised-at-the-end",
        "block-end-is-never-refused",
    ]


def test_entries_are_tried_on_their_pairs():
    for entry in (*MUTANTS, *CONTROLS):
        assert entry.lossless == (not entry.distances)
        assert fixtures_for(entry.rule) is FIXTURES
        assert entry.distances.keys() <= FIXTURES.keys()
