"""Completed blocks and the first tokens of loops, by hand."""

from fractions import Fraction

import pytest

from specref.chance import TooManyPathsError
from specref.laws import completed, first_tokens, first_tokens_carrying
from specref.models import Model, iid_model
from specref.vocabulary import Vocabulary

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
AB = Vocabulary("ab")
ENDING = Vocabulary("ab", eos="b")
COIN = iid_model(AB, [THIRD, 2 * THIRD])


def test_blocks_are_completed_by_the_target_after_their_context() -> None:
    asked: list[tuple[int, ...]] = []

    def next_token(context: tuple[int, ...]) -> list[Fraction]:
        asked.append(context)
        return [THIRD, 2 * THIRD] if context[-1] == 0 else [Fraction(1), Fraction(0)]

    law = completed({(0,): HALF, (1,): HALF / 2, (1, 0): HALF / 2}, Model(AB, next_token), (1,), 2)
    assert law == {(0, 0): HALF * THIRD, (0, 1): HALF * 2 * THIRD, (1, 0): HALF}
    assert list(law) == sorted(law)
    assert sorted(asked) == [(1, 0), (1, 1)]  # nothing after whole texts, and no impossible ones


def test_a_block_that_ends_is_complete() -> None:
    coin = iid_model(ENDING, [THIRD, 2 * THIRD])
    assert completed({(1,): HALF, (0,): HALF}, coin, (), 2) == {
        (0, 0): HALF * THIRD,
        (0, 1): HALF * 2 * THIRD,
        (1,): HALF,
    }


def test_blocks_of_the_whole_length_stay_and_longer_ones_are_refused() -> None:
    def unasked(context: tuple[int, ...]) -> list[Fraction]:
        raise AssertionError(f"was asked after {context}")

    target, blocks = Model(AB, unasked), {(0, 1): HALF, (1, 1): HALF}
    assert completed(blocks, target, (), 2) == blocks
    with pytest.raises(ValueError, match=r"length = 1: block \(0, 1\) has 2 tokens"):
        completed({(0, 1): HALF, (1,): HALF}, target, (), 1)


def test_texts_are_counted() -> None:
    assert len(completed({(0,): HALF, (1,): HALF}, COIN, (), 2, max_texts=4)) == 4
    with pytest.raises(TooManyPathsError, match="more than 3 texts of 2 tokens"):
        completed({(0,): HALF, (1,): HALF}, COIN, (), 2, max_texts=3)


def test_a_loop_asks_once_after_each_text_and_cuts_the_last_block() -> None:
    asked: list[tuple[int, ...]] = []

    def after(text: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
        asked.append(text)
        return {(0,): HALF, (1,): HALF / 2, (1, 0, 1): HALF / 2}

    law = first_tokens(after, AB, 2)
    assert law == {
        (0, 0): HALF * HALF,
        (0, 1): HALF * HALF,
        (1, 0): HALF / 2 + HALF / 2 * HALF,
        (1, 1): HALF / 2 * HALF,
    }
    assert asked == [(), (0,), (1,)]


def test_a_loop_ends_at_eos() -> None:
    assert first_tokens(lambda text: {(0,): HALF, (1,): HALF}, ENDING, 3) == {
        (1,): HALF,
        (0, 1): HALF**2,
        (0, 0, 0): HALF**3,
        (0, 0, 1): HALF**3,
    }


def test_an_iteration_that_emits_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"step returned an empty block after \(0,\)"):
        first_tokens(lambda text: {(): HALF, (0,): HALF} if text else {(0,): HALF * 2}, AB, 2)


def test_what_is_carried_keeps_texts_apart() -> None:
    asked: list[tuple[tuple[int, ...], int]] = []

    def after(text: tuple[int, ...], owed: int) -> dict[tuple[tuple[int, ...], int], Fraction]:
        asked.append((text, owed))
        if not text:
            return {((0,), 1): HALF, ((0,), 2): HALF}
        return {((owed - 1,), 0): HALF * 2}

    assert first_tokens_carrying(after, AB, 2, 7) == {(0, 0): HALF, (0, 1): HALF}
    assert sorted(asked) == [((), 7), ((0,), 1), ((0,), 2)]
