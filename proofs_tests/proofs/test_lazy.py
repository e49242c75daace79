"""The lazy enumerator: undecided tokens, the limit that laws share, blocks drawn from laws."""

import math
import operator
from collections import Counter
from fractions import Fraction
from functools import partial
from typing import Any, cast

import numpy as np
import pytest

from specref.algorithms import standard
from specref.algorithms.decoding import Step
from specref.chance import MAX_SITES, TooManyPathsError, exact_distribution
from specref.models import iid_model
from specref.proofs.lazy import DrawnFromLaws, Enumerator, ReadableModel, Unseen
from specref.vocabulary import Vocabulary
from specref.zoo import FIXTURES

AB = Vocabulary("ab")
TARGET, DRAFTER = iid_model(AB, [0.25, 0.75]), iid_model(AB, [0.5, 0.5])


def insists(target, drafter, context, lookahead, chance):
    """Draws the target's tokens, the same block in two ways, and wants them as integers."""
    chance.draw(drafter.next_token(context), "unused")
    token = chance.draw(target.next_token(context), "token")
    if not isinstance(token, int):
        raise TypeError(f"token = {token!r}: expected an integer")
    return (token,)


def test_a_step_that_insists_on_integers_has_its_law() -> None:
    enumerator = Enumerator(1_000)
    models = ReadableModel(TARGET), ReadableModel(DRAFTER)
    law = enumerator.law(insists, *models, (), 1)
    assert law == {(0,): 0.25, (1,): 0.75}
    tried = enumerator.paths
    assert 4 < tried < 10  # the four paths, and those that were tried lazily
    assert enumerator.law(insists, *models, (0,), 1) == law
    assert enumerator.paths == 2 * tried


@pytest.mark.parametrize("step", [insists, standard.step])
def test_laws_share_one_limit(step: Step) -> None:
    def paths(limit: int) -> int:
        enumerator = Enumerator(limit)
        for context in ((), (0,)):
            enumerator.law(step, ReadableModel(TARGET), ReadableModel(DRAFTER), context, 1)
        return enumerator.paths

    needed = paths(1_000)
    assert paths(needed) == needed
    with pytest.raises(TooManyPathsError):
        paths(needed - 1)


@pytest.mark.parametrize("asked", ["draw", "choose"])
@pytest.mark.parametrize("more", [0, 1])
def test_tokens_that_nothing_looks_at_are_limited_too(more: int, asked: str) -> None:
    def forgetful(target, drafter, context, lookahead, chance):
        ask = getattr(chance, asked)
        drawn = [ask(target.next_token(context), "t") for _ in range(MAX_SITES + more)]
        return (drawn[0],)

    def law() -> object:
        models = ReadableModel(TARGET), ReadableModel(DRAFTER)
        return Enumerator(1_000).law(forgetful, *models, (), 1)

    if not more:
        assert law() == {(0,): 0.25, (1,): 0.75}
        return
    with pytest.raises(TooManyPathsError, match=r"more than 1000 random decisions \(at t\)"):
        law()


OTHERS = (0, 1, 3, 1.0, 1.5, math.nan, np.float64(1), np.int64(1), Fraction(1), Fraction(1, 2))
OPERATIONS = operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("other", OTHERS, ids=repr)
def test_an_unseen_token_is_compared_as_its_value_is(operation, other):
    assert operation(Unseen((), lambda: 1), other) == operation(1, other)
    if not isinstance(other, Fraction):  # which asks integers for their numerator
        assert operation(other, Unseen((), lambda: 1)) == operation(other, 1)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("pair", [(0, 1), (1, 1), (1, 0)])
def test_unseen_tokens_are_compared_with_each_other(operation, pair):
    one, two = (Unseen((), lambda value=value: value) for value in pair)
    assert operation(one, two) == operation(*pair)


def test_an_unseen_token_is_written_hashed_and_sorted_as_its_value_is() -> None:
    tokens = [Unseen((), lambda value=value: value) for value in (2, 0, 1)]
    assert [int(token) for token in sorted(tokens)] == [0, 1, 2]
    assert {2: "two"}[cast(int, tokens[0])] == "two"
    assert (repr(tokens[0]), str(tokens[1]), f"{tokens[2]:03d}") == ("2", "0", "001")
    assert (bool(tokens[0]), bool(tokens[1])) == (True, False)


EACH = 1_000


class Even:
    """The middles of so many intervals of [0, 1), in turn."""

    def __init__(self) -> None:
        self.next = 0

    def random(self) -> float:
        self.next += 1
        return (self.next - 0.5) / EACH


def test_blocks_are_drawn_from_their_law() -> None:
    pair, runs = FIXTURES["m"], []

    def step(*arguments: Any) -> Any:
        runs.append(arguments)
        return standard.step(*arguments)

    drawn, models = DrawnFromLaws(step), (pair.target, pair.drafter)
    for context, lookahead in (((), 1), ((0,), 1), ((), 2)):
        rng: Any = Even()
        found = Counter(drawn(*models, context, lookahead, rng) for _ in range(EACH))
        law = exact_distribution(partial(standard.step, *models, context, lookahead))
        assert set(found) <= set(law)
        assert all(abs(found[block] - EACH * mass) <= 1 for block, mass in law.items())
    enumerated = len(runs)
    rng = Even()
    drawn(*models, (0,), 1, rng)
    assert len(runs) == enumerated
