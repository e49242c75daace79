"""Mutants of block verification: lossy by exactly so much, or blind; controls: exact."""

import pytest

from specref.algorithms import block, block_slrs, slrs, standard
from specref.distributions import total_variation
from specref.zoo import ALL
from specref.zoo.block import block_step, products_of_uniforms
from specref.zoo.fixtures import BLOCK_PAIRS as FIXTURES
from specref.zoo.fixtures import BLOCK_TEXTS, BLOCK_TOKENS

CLEAN = {**dict.fromkeys(BLOCK_TOKENS, block.step), **dict.fromkeys(BLOCK_TEXTS, block_slrs.step)}
TOKEN_RULE = {
    **dict.fromkeys(BLOCK_TOKENS, standard.step),
    **dict.fromkeys(BLOCK_TEXTS, slrs.step),
}


def distance(step, fixture):
    return total_variation(fixture.output(step), fixture.continued())


def expected_length(step, fixture):
    return sum(len(b) * weight for b, weight in fixture.blocks(step).items())


@pytest.mark.parametrize("name", FIXTURES)
def test_the_parts_together_are_the_clean_rule(name):
    fixture = FIXTURES[name]
    assert fixture.blocks(block_step()) == fixture.blocks(CLEAN[name])
    assert distance(CLEAN[name], fixture) == 0


def test_the_product_of_uniforms_has_no_closed_form_for_more_drafts():
    step = block_step(choose=products_of_uniforms)
    with pytest.raises(ValueError, match="3 drafts: expected at most 2"):
        BLOCK_TOKENS["deep"].blocks(step)


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
