"""Conditions and witnesses in words: signs, sides, and the simplest rows that still fail."""

from fractions import Fraction

import pytest

from specref.proofs.everywhere import polynomials, signs
from specref.proofs.everywhere.proof import DENOMINATORS, simplified
from specref.proofs.everywhere.rows import Row, Space, clause
from specref.proofs.everywhere.words import MOST_READINGS, in_words
from specref.vocabulary import Vocabulary

SPACE = Space(Vocabulary("ab"), Vocabulary("ab"), 0)
ROW = Row("p", ())
P = SPACE.entries(ROW)


@pytest.mark.parametrize("bound", [Fraction(1, 3), Fraction(4, 7)])
@pytest.mark.parametrize("allowed", [signs.POSITIVE, signs.opposite(signs.POSITIVE)])
@pytest.mark.parametrize("index", [0, 1])
def test_a_bound_of_one_entry(index: int, allowed: int, bound: Fraction) -> None:
    difference = polynomials.difference(P[index], polynomials.constant(bound))
    said = in_words(clause(difference, allowed), SPACE)
    more = allowed == signs.POSITIVE
    # The same, of the entry or of the other one.
    assert said in (
        f"p({'ab'[index]}) {'>' if more else '<'} {bound}",
        f"p({'ba'[index]}) {'<' if more else '>'} {1 - bound}",
    )


def test_only_some_of_many_readings_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """In rows of nine tokens each entry may be left out: of two rows, there are 81 readings."""
    space = Space(Vocabulary("abcdefghi"), Vocabulary("abcdefghi"), 0)
    (*_, last), (*_, other) = (space.entries(Row(letter, ())) for letter in "pq")
    compared, substituted = list[int](), polynomials.substituted
    monkeypatch.setattr(
        polynomials, "substituted", lambda *given: compared.append(1) or substituted(*given)
    )
    said = in_words(clause(polynomials.difference(last, other), signs.POSITIVE), space)
    assert len(compared) == MOST_READINGS
    assert said == "p(i) > q(i)"


@pytest.mark.parametrize("size", DENOMINATORS[1:])
def test_the_smallest_denominator_that_fails_is_found(size: int) -> None:
    """An entry that fails only within 1 / 4,000,000 of one fraction is that fraction."""
    wanted = Fraction(1 if size < 3 else size // 2 + 1 if size % 2 else size // 2 - 1, size)
    if wanted.denominator != size:
        wanted = Fraction(1, size)
    near = wanted + Fraction(1, 9_999_991)

    def fails(rows: dict[Row, list[Fraction]]) -> bool:
        return abs(rows[ROW][0] - wanted) < Fraction(1, 4_000_000)

    assert simplified({ROW: [near, 1 - near]}, fails) == {ROW: [wanted, 1 - wanted]}


def test_no_simpler_rows_are_kept_if_none_fails() -> None:
    rows = {ROW: [Fraction(89, 97), Fraction(8, 97)]}
    assert simplified(rows, lambda other: other == rows) == rows


def test_rows_are_not_replaced_by_others_that_are_as_long() -> None:
    """In thirtieths, the row of p becomes one of as many digits; the row of q is not to change."""
    p = [Fraction(1, 11), Fraction(2, 11), Fraction(8, 11)]
    other = [Fraction(1, 10), Fraction(1, 6), Fraction(11, 15)]
    q = [Fraction(1, 7), Fraction(2, 7), Fraction(4, 7)]
    rows = {ROW: p, Row("q", ()): q}
    fails = [rows, {**rows, ROW: other}]
    assert simplified(rows, lambda found: found in fails) == rows
