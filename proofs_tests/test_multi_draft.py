"""The page on multi-draft, tree and greedy block verification: its tables, and what it says."""

from fractions import Fraction

import pytest

from proofs_tests.pages.multi_draft import (
    markdown,
    one_path,
    stateless,
    tokens_of_iterations,
    written,
)
from specref.algorithms import block, greedy_block, standard
from specref.zoo.fixtures import BLOCK_TOKENS

F = Fraction


def test_a_page_without_a_place_for_a_table_is_refused():
    with pytest.raises(ValueError, match="the page has no <!-- siblings -->"):
        written("# Nothing")


def test_a_table_in_markdown():
    head, rule, first, *_ = markdown(one_path()).splitlines()
    assert head == "| pair, lookahead | token | block | greedy block |"
    assert rule == "| --- | ---: | ---: | ---: |"
    assert first == "| A, 2 | 10/9 | 11/9 | 4/3 |"


def totals(iterate, name, lookahead):
    """Expected tokens after one, two and three iterations."""
    means = tokens_of_iterations(iterate, BLOCK_TOKENS[name], lookahead, 3)
    return [sum(means[: i + 1]) for i in range(3)]


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize(("name", "lookahead"), [("coin", 2), ("coin", 3), ("c", 2), ("m", 2)])
def test_greedy_block_verification_is_ahead_once_and_behind_after_three(name, lookahead):
    greedy = totals(greedy_block.iterate, name, lookahead)
    blockwise = totals(stateless(block.step), name, lookahead)
    assert greedy[0] > blockwise[0]
    assert greedy[2] < blockwise[2]


@pytest.mark.deep
def test_greedy_block_verification_may_make_less_than_token_verification():
    """On A with two drafts the same from the second iteration on; on M less."""
    coin = tokens_of_iterations(greedy_block.iterate, BLOCK_TOKENS["coin"], 2, 6)
    assert coin == [F(7, 3)] + [F(19, 9)] * 5
    pair = BLOCK_TOKENS["m"], 2, 3
    by_token = tokens_of_iterations(stateless(standard.step), *pair)
    assert tokens_of_iterations(greedy_block.iterate, *pair)[2] < by_token[2]
