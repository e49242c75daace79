"""Paths of a rule at one sample; rules that keep something between calls, and first calls."""

import os
import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from functools import partial
from itertools import count, cycle
from typing import Any

import numpy as np
import pytest

from proofs_tests.helpers.bugs.everywhere.states import FILE, STATES, Planned, lossy
from specref import Vocabulary
from specref.algorithms import standard
from specref.algorithms.decoding import Step
from specref.chance import OutsideChanceError
from specref.models import Model
from specref.proofs.everywhere import is_lossless_everywhere
from specref.proofs.everywhere.number import STALE, NotForAllError, Reading
from specref.proofs.everywhere.pristine import CAN_SPLIT, LostError, Pristine, apart
from specref.proofs.everywhere.rows import Chart, Models, Row, Sample, Space
from specref.proofs.everywhere.walk import Trace, Walk, paths, unlike

TWO = Vocabulary("ab")


def at_a_third() -> Models:
    """p = (1/3, 2/3) at the start."""
    space = Space(TWO, TWO, 0)
    space.entries(Row("p", ()))
    chart = Chart(space, {})
    sample = Sample(chart, {0: Fraction(1, 3)}, "")
    return Models(chart, Reading(space.prime, sample.value))


def followed(step: Any, beginning: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """The choices of all paths, p = (1/3, 2/3)."""
    found = paths(step, at_a_third(), 1, set(), lambda: None, beginning)
    return [path.choices for path in found]


def two_draws(target: Any, drafter: Any, context: Any, lookahead: int, chance: Any) -> Any:
    p = target.next_token(())
    return (chance.draw(p, "first"), chance.draw(p, "second"))


def test_all_paths_or_those_with_a_beginning() -> None:
    assert set(followed(two_draws)) == {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert set(followed(two_draws, (1,))) == {(1, 0), (1, 1)}


def test_there_may_be_no_path_with_a_beginning() -> None:
    def sure(target, drafter, context, lookahead, chance):
        return (chance.draw([0, 1], "sure"),)

    assert followed(sure, (0,)) == []
    assert followed(sure, (1,)) == [(1,)]


@pytest.mark.parametrize(("from_run", "sure"), [(2, [0, 1]), (4, [1, 0])])
def test_a_branch_that_was_possible_in_another_run_is_no_empty_beginning(from_run, sure):
    """From some run on the token is certain; two runs repeat the first, with token 0."""
    runs = [0]

    def step(target, drafter, context, lookahead, chance):
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

    def step(target, drafter, context, lookahead, chance):
        runs[0] += 1
        return (chance.draw(target.next_token(()) if runs[0] < 3 else [1, 0], "token"),)

    with pytest.raises(OutsideChanceError, match="of two runs with the same choices"):
        followed(step)


@pytest.mark.parametrize("weights", [[0.5, 0.5], [None, 1]])
def test_an_error_of_chance_that_is_hidden_is_raised_all_the_same(weights: list[Any]) -> None:
    def step(target, drafter, context, lookahead, chance):
        with suppress(TypeError):
            chance.choose(weights, "hidden")
        return (chance.draw(target.next_token(()), "token"),)

    with pytest.raises(TypeError, match="asked at hidden"):
        followed(step)


@pytest.mark.parametrize("weights", [[1, 1], [2, -1], [Fraction(1, 2)]])
def test_weights_that_are_none_are_refused_past_the_checks_of_chance(weights: list[Any]) -> None:
    def step(target, drafter, context, lookahead, chance):
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

    def step(target, drafter, context, lookahead, chance):
        law, returned = next(runs)
        chance.draw(law, "token")
        return returned

    with pytest.raises(OutsideChanceError, match=f"with the same choices, {shown}"):
        followed(step)


needs_split = pytest.mark.skipif(not CAN_SPLIT, reason="processes cannot be split here")


@pytest.fixture
def models() -> Models:
    return at_a_third()


@pytest.fixture(autouse=True)
def _without_file() -> Iterator[None]:
    yield
    FILE.unlink(missing_ok=True)


def outcome(name: str) -> str:
    try:
        found = is_lossless_everywhere(STATES[name].step, "ab", lookahead=1)
    except (OutsideChanceError, NotForAllError):
        return "error"
    return {"lossless": "proved"}.get(found.verdict, found.verdict)


@pytest.mark.deep(one_in=36)
@needs_split
@pytest.mark.parametrize("name", STATES)
def test_what_comes_of_state(name: str) -> None:
    assert outcome(name) in STATES[name].comes


def test_a_worker_is_not_spoiled_by_the_job_before() -> None:
    """Its first answer is kept in a module; each job starts where no answer was kept."""
    from specref.proofs.everywhere.proof import Job, cover_job

    job = Job(Planned(), TWO, TWO, 1, 1, 0, 60.0, False, {}, ((0,),))
    before = os.getpid()
    slices, _ = cover_job(job)
    assert (slices[0].open, os.getpid()) == (0, before)
    assert isinstance(job.step, Planned)
    assert job.step.p is None


def test_numbers_of_an_ended_path_are_refused(models: Models) -> None:
    kept: list[Any] = []

    def step(target, drafter, context, lookahead, chance):
        p = target.next_token(())
        kept.append(p)
        return (chance.draw(p, "token"),)

    list(paths(step, models, 1, set(), lambda: None))
    old, new = (row for row in kept[:2])
    assert old is not new
    for use in (lambda: old[0] < old[1], lambda: old[0] + new[0], lambda: bool(old[0])):
        with pytest.raises(NotForAllError, match=STALE):
            use()


def test_an_array_that_nobody_has_comes_again_and_one_that_is_kept_does_not(models):
    def ids(keeps: bool) -> int:
        kept, seen = [], []
        for _ in range(3):
            row = models.model("p").next_token(())
            seen.append(id(row))
            kept += [row] * keeps
            del row
        return len(set(seen))

    assert ids(keeps=False) == 1
    assert ids(keeps=True) == 3


@needs_split
def test_a_first_call_is_compared_with_a_later_one(models: Models) -> None:
    calls: list[int] = []

    def step(target, drafter, context, lookahead, chance):
        calls.append(1)
        p = target.next_token(())
        if len(calls) == 1 and p[0] > Fraction(1, 4):
            pass
        return (chance.draw(p, "token"),)

    with Pristine(lambda length: step) as pristine:
        calls.append(1)
        followed = list(paths(step, models, 1, set(), lambda: None))
        with pytest.raises(
            OutsideChanceError, match=r"its first call has 1 .*, a later one has 0"
        ):
            pristine.confirm(followed, models, 1, 1)


@needs_split
def test_a_first_call_that_ends_its_process_is_told(models: Models) -> None:
    calls: list[int] = []

    def step(target, drafter, context, lookahead, chance):
        if not calls:
            os._exit(0)
        return (chance.draw(target.next_token(()), "token"),)

    with Pristine(lambda length: step) as pristine:
        calls.append(1)
        followed = list(paths(step, models, 1, set(), lambda: None))
        with pytest.raises(OutsideChanceError, match="ends its process"):
            pristine.confirm(followed, models, 1, 1)


def test_no_two_sides_that_are_shown_are_equal() -> None:
    one = Trace((0,), (0,), (False,), (5,), (("sign", 7, 4),), (Fraction(1, 2),))
    others = [
        Trace((1,), (0,), (False,), (5,), (("sign", 7, 4),), (Fraction(1, 2),)),
        Trace((0,), (0, 1), (False,), (5,), (("sign", 7, 4),), (Fraction(1, 2),)),
        Trace((0,), (0,), (False,), (6,), (("sign", 7, 4),), (Fraction(1, 3),)),
        Trace((0,), (0,), (False,), (5,), (), (Fraction(1, 2),)),
        Trace((0,), (0,), (False,), (6,), (("sign", 7, 4),), (Fraction(1, 2),)),
        Trace((0,), (0,), (False,), (5,), (("sign", 8, 4),), (Fraction(1, 2),)),
    ]
    for other in others:
        assert other != one
        said = unlike(one, other, ("ONE", "OTHER"))
        if ", OTHER has " in said:
            left, right = said.removeprefix("ONE has ").split(", OTHER has ")
            assert left != right
        else:
            assert "OTHER does not" in said


@needs_split
def test_work_apart_returns_raises_or_is_lost() -> None:
    assert apart(partial(sum, [1, 2])) == 3
    with pytest.raises(ZeroDivisionError):
        apart(partial(divmod, 1, 0))
    with pytest.raises(LostError):
        apart(partial(os._exit, 0))

    class LocalError(Exception):
        pass

    def fail() -> None:
        raise LocalError("no pickle")

    with pytest.raises(RuntimeError, match="LocalError: no pickle"):
        apart(fail)


def test_without_splitting_paths_are_run_again_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specref.proofs.everywhere.pristine.CAN_SPLIT", False)
    assert is_lossless_everywhere(standard.step, "ab")
    with pytest.raises(OutsideChanceError):
        is_lossless_everywhere(STATES["every seventh"].step, "ab")


def test_a_call_can_be_sent(models: Models) -> None:
    models.numbers(Row("p", ()))
    assert pickle.loads(pickle.dumps(models.rows)).keys() == models.rows.keys()
    assert callable(lossy(lambda p, rank, target: False))


def later(turns: Callable[[Model], bool]) -> Step:
    """Standard decoding that draws from p after a rejection, as soon as its turn has come."""

    def step(target, drafter, context, lookahead, chance):
        p, q = target.next_token(context), drafter.next_token(context)
        wrong, x = turns(target), chance.draw(q, "draft[0]")
        if chance.accept(min(Fraction(1), p[x] / q[x]), "accept[0]"):
            return (x, chance.draw(target.next_token((*context, x)), "bonus"))
        residual = np.maximum(p - q, 0)
        return (chance.draw(p if wrong else residual / residual.sum(), "residual[0]"),)

    return step


def by_counter() -> Step:
    calls = count()
    return later(lambda target: next(calls) % 1_000 >= 960)


def by_generator() -> Step:
    turns = cycle([False] * 96 + [True])
    return later(lambda target: next(turns))


@pytest.mark.deep
@pytest.mark.parametrize("make", [by_counter, by_generator])
def test_a_rule_that_is_wrong_after_hundreds_of_calls_is_refused(make: Callable[[], Step]) -> None:
    with pytest.raises((OutsideChanceError, NotForAllError)):
        is_lossless_everywhere(make(), "ab")
    assert is_lossless_everywhere(later(lambda target: False), "ab")
