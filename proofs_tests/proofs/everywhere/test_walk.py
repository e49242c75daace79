"""The paths of a rule at one sample: beginnings that may be empty, and rules that keep state."""

import re
from contextlib import suppress
from fractions import Fraction
from typing import Any

import pytest

from specref import Vocabulary
from specref.chance import OutsideChanceError
from specref.proofs.everywhere.number import NotForAllError, Reading
from specref.proofs.everywhere.rows import Chart, Models, Row, Sample, Space
from specref.proofs.everywhere.walk import Walk, paths

TWO = Vocabulary("ab")


def followed(step: Any, beginning: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """The choices of all paths, p = (1/3, 2/3)."""
    space = Space(TWO, TWO, 0)
    space.entries(Row("p", ()))
    chart = Chart(space, {})
    sample = Sample(chart, {0: Fraction(1, 3)}, "")
    models = Models(chart, Reading(space.prime, sample.value))
    found = paths(step, models, 1, set(), lambda: None, beginning)
    return [path.choices for path in found]


def two_draws(target: Any, drafter: Any, context: Any, lookahead: int, chance: Any) -> Any:
    p = target.next_token(())
    return (chance.draw(p, "first"), chance.draw(p, "second"))


def test_all_paths_or_those_with_a_beginning() -> None:
    assert set(followed(two_draws)) == {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert set(followed(two_draws, (1,))) == {(1, 0), (1, 1)}


def test_there_may_be_no_path_with_a_beginning() -> None:
    def sure(target: Any, drafter: Any, context: Any, lookahead: int, chance: Any) -> Any:
        return (chance.draw([0, 1], "sure"),)

    assert followed(sure, (0,)) == []
    assert followed(sure, (1,)) == [(1,)]


@pytest.mark.parametrize(("from_run", "sure"), [(2, [0, 1]), (4, [1, 0])])
def test_a_branch_that_was_possible_in_another_run_is_no_empty_beginning(
    from_run: int, sure: list[int]
) -> None:
    """From some run on the token is certain; two runs repeat the first, with token 0."""
    runs = [0]

    def step(target: Any, drafter: Any, context: Any, lookahead: int, chance: Any) -> Any:
        runs[0] += 1
        return (chance.draw(target.next_token(()) if runs[0] < from_run else sure, "token"),)

    with pytest.raises(OutsideChanceError, match="was possible in one run"):
        followed(step)


def test_the_first_path_is_run_with_fractions_too() -> None:
    def otherwise(target: Any, drafter: Any, context: Any, lookahead: int, chance: Any) -> Any:
        p = target.next_token(())
        return (chance.draw(p[::-1] if isinstance(p[0], Fraction) else p, "token"),)

    def raising(target: Any, drafter: Any, context: Any, lookahead: int, chance: Any) -> Any:
        token = chance.draw(target.next_token(()), "token")
        return (token if type(chance) is Walk else [][token],)

    message = "returns (0,) with probability 2/3 with fractions, and (0,) with 1/3"
    with pytest.raises(NotForAllError, match=re.escape(message)):
        followed(otherwise)
    with pytest.raises(NotForAllError, match="with fractions it raises IndexError"):
        followed(raising)


def test_a_rule_that_changed_meanwhile_is_not_taken_for_one_that_asks_for_the_kind() -> None:
    runs = [0]

    def step(target: Any, drafter: Any, context: Any, lookahead: int, chance: Any) -> Any:
        runs[0] += 1
        return (chance.draw(target.next_token(()) if runs[0] < 3 else [1, 0], "token"),)

    with pytest.raises(OutsideChanceError, match="of two runs with the same choices"):
        followed(step)


@pytest.mark.parametrize("weights", [[0.5, 0.5], [None, 1]])
def test_an_error_of_chance_that_is_hidden_is_raised_all_the_same(weights: list[Any]) -> None:
    def step(target: Any, drafter: Any, context: Any, lookahead: int, chance: Any) -> Any:
        with suppress(TypeError):
            chance.choose(weights, "hidden")
        return (chance.draw(target.next_token(()), "token"),)

    with pytest.raises(TypeError, match="asked at hidden"):
        followed(step)


@pytest.mark.parametrize("weights", [[1, 1], [2, -1], [Fraction(1, 2)]])
def test_weights_that_are_none_are_refused_past_the_checks_of_chance(weights: list[Any]) -> None:
    def step(target: Any, drafter: Any, context: Any, lookahead: int, chance: Any) -> Any:
        return (chance.choose(weights, "unchecked"),)

    with pytest.raises(NotForAllError, match="asked at unchecked, not by draw or accept"):
        followed(step)


EVEN, THIRDS = [Fraction(1, 2)] * 2, [Fraction(1, 3), Fraction(2, 3)]


@pytest.mark.parametrize(
    ("laws", "block", "shown"),
    [
        ((EVEN, EVEN), (1,), r"one has block \(0,\), the other has block \(1,\)"),
        ((EVEN, THIRDS), (0,), r"one has requests \(.+\), the other has requests \(.+\)$"),
    ],
)
def test_what_differs_between_two_runs_is_shown(laws: Any, block: Any, shown: str) -> None:
    runs = iter(zip(laws, ((0,), block), strict=True))

    def step(target: Any, drafter: Any, context: Any, lookahead: int, chance: Any) -> Any:
        law, returned = next(runs)
        chance.draw(law, "token")
        return returned

    with pytest.raises(OutsideChanceError, match=f"with the same choices, {shown}"):
        followed(step)
