"""Results of workers: errors of a user's own module arrive by name, since it may not be there."""

import pickle

import pytest

from specref.chance import TooManyPathsError
from specref.proofs.exact import Proof
from specref.spoiled import SpoiledError
from specref.verification.rules import DescribedError, Result, received, result_of, sent
from specref.verification.situations import situations


class OwnError(Exception):
    pass


class UnreadableError(Exception):
    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} {other}")


def test_an_error_of_a_users_module_is_sent_by_name_though_it_could_be_read_here() -> None:
    error = OwnError("no")
    assert isinstance(pickle.loads(pickle.dumps(error)), OwnError)
    arrived = pickle.loads(pickle.dumps(sent(Result("raised", error=error))))
    assert isinstance(arrived.error, DescribedError)
    again = received(arrived).error
    assert (type(again).__name__, str(again)) == ("OwnError", "no")
    assert received(arrived).paths == 0


@pytest.mark.parametrize("error", [ValueError("V = 3"), TooManyPathsError(1)])
def test_errors_that_every_worker_knows_are_sent_as_they_are(error: Exception) -> None:
    assert sent(Result("raised", error=error)).error is error


def test_an_error_that_cannot_be_read_again_is_sent_by_name() -> None:
    UnreadableError.__module__ = "builtins"
    found = sent(Result("raised", error=UnreadableError("a", "b"))).error
    assert isinstance(found, DescribedError)
    assert found.args == ("UnreadableError", "a b")


def test_a_judge_that_is_replaced_at_any_run_of_a_case_is_told() -> None:
    """Sure cases are run three times: for their law, to see that it is one, and for chance."""
    sure = next(
        case
        for situation in situations()
        for case in situation.cases
        if result_of(first_token, case).paths == 1
    )
    before = Proof.difference
    for run in (1, 2, 3):
        runs = iter(range(1, 100))

        def step(target, drafter, context, lookahead, chance, runs=runs, run=run):
            if next(runs) == run:
                Proof.difference = property(lambda self: None)  # type: ignore[method-assign,assignment]
            return first_token(target, drafter, context, lookahead, chance)

        assert isinstance(result_of(step, sure).error, SpoiledError), run
        assert Proof.difference is before


def first_token(target, drafter, context, lookahead, chance):
    return (chance.draw(target.next_token(context), "token"),)
