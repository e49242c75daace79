"""Exact laws of steps and of decode loops, drafts included."""

from itertools import count
from typing import Any

import numpy as np
import pytest

from specref.algorithms import standard, union
from specref.algorithms.decoding import decode
from specref.chance import exact_distribution
from specref.examples.correct import verify as correct
from specref.laws import completed
from specref.models import iid_model
from specref.pairs import Pair, toy_pairs
from specref.probing.blocks import probe_tokens
from specref.probing.probe import probe_verify
from specref.rules import RULES
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo import MUTANTS

PAIRS = [pair for pair in toy_pairs("quick") if pair.same_vocabulary]
STEPS = {name: RULES[name].step for name in ("standard", "block", "slem", "lazy-slrs", "topdown")}


def close(found: dict[Tokens, float], law: dict[Tokens, Any]) -> bool:
    return all(
        abs(found.get(block, 0) - law.get(block, 0)) < 1e-9 for block in found.keys() | law.keys()
    )


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("pair", PAIRS[:4], ids=lambda pair: pair.name)
def test_the_law_is_that_of_the_enumeration(name: str, pair: Pair) -> None:
    step, models = STEPS[name], (pair.target, pair.drafter)
    found = probe_tokens(step, *models, (), 2, 3)
    law = exact_distribution(lambda chance: step(*models, (), 2, chance))
    assert found.uninterpreted is None
    assert close(found.output, completed(law, pair.target, (), 3))
    assert found.total_variation < 1e-9


def test_of_a_bug_too() -> None:
    step, pair = MUTANTS["residual-is-p"].step, PAIRS[1]
    found = probe_tokens(step, pair.target, pair.drafter, (), 2, 3)
    law = exact_distribution(lambda chance: step(pair.target, pair.drafter, (), 2, chance))
    assert close(found.output, completed(law, pair.target, (), 3))
    assert found.total_variation > 0.01


def test_a_loop_may_end_early_and_its_drafter_have_another_vocabulary() -> None:
    target = iid_model(Vocabulary("abc", eos="c"), ["1/4", "1/4", "1/2"])
    drafter = iid_model(Vocabulary("bcx", eos="c"), ["1/2", "1/4", "1/4"])

    def generate(target: Any, drafter: Any, context: Tokens, tokens: int, chance: Any) -> Tokens:
        return decode(union.step, target, drafter, context, 2, tokens, chance)

    found = probe_tokens(generate, target, drafter, (0,), 3, 3)
    assert found.total_variation < 1e-9
    assert found.output[2,] == pytest.approx(1 / 2)
    assert found.output[0, 1, 0] == pytest.approx(1 / 64)


COIN = iid_model(Vocabulary("ab"), ["1/4", "3/4"])


def test_numbers_may_come_from_the_global_generator() -> None:
    def step(target: Any, drafter: Any, context: Tokens, lookahead: int) -> Tokens:
        return (int(np.random.random() >= target.next_token(context)[0]),)  # noqa: NPY002

    assert probe_tokens(step, COIN, COIN, (), 0, 1).output == {(0,): 0.25, (1,): 0.75}


def test_failures_have_their_probability() -> None:
    def step(target: Any, drafter: Any, context: Tokens, lookahead: int, rng: Any) -> Tokens:
        if rng.random() < 0.125:
            raise KeyError("cache")
        return (int(rng.random() >= 0.25),)

    found = probe_tokens(step, COIN, COIN, (), 0, 1)
    assert found.failures == {"KeyError: 'cache'": 0.125}
    assert found.total_variation == pytest.approx(0.125)


def test_one_that_always_raises_fails() -> None:
    def step(target: Any, drafter: Any, context: Tokens, lookahead: int, rng: Any) -> Tokens:
        raise TypeError("no floats, please")

    assert probe_tokens(step, COIN, COIN, (), 0, 1).failures == {"TypeError: no floats, please": 1}


def test_too_many_tokens_are_a_failure() -> None:
    def longer(target: Any, drafter: Any, context: Tokens, lookahead: int, chance: Any) -> Tokens:
        return (*standard.step(target, drafter, context, lookahead, chance), 0)

    (told,) = probe_tokens(longer, COIN, COIN, (), 0, 1).failures
    assert told == "BrokenContractError: returned more than 1 tokens: expected 1 to 1"


def test_numbers_that_are_kept_between_calls_are_told() -> None:
    kept: list[float] = []

    def step(target: Any, drafter: Any, context: Tokens, lookahead: int, rng: Any) -> Tokens:
        if not kept:
            kept.extend(rng.random(40))
        return (int(kept.pop() >= 0.25),)

    found = probe_tokens(step, COIN, COIN, (), 0, 1)
    assert found.uninterpreted
    assert "between calls" in found.uninterpreted


def test_what_is_made_at_the_first_call_is_made_before() -> None:
    made: dict[Any, float] = {}

    def step(target: Any, drafter: Any, context: Tokens, lookahead: int, rng: Any) -> Tokens:
        made.setdefault(target, rng.random())
        return (int(rng.random() >= target.next_token(context)[0]),)

    assert probe_tokens(step, COIN, COIN, (), 0, 1).total_variation < 1e-9


def test_code_that_is_known_runs_less_and_what_it_keeps_is_seen() -> None:
    p, q = np.array([[0.25, 0.75], [0.5, 0.5]]), np.array([[0.5, 0.5]])
    calls = count()

    def keeps(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        tokens, counts = correct(target_probs, draft_probs, draft_tokens, rng=rng)
        return tokens ^ (next(calls) % 2 * (tokens >= 0)), counts

    first, again = (probe_verify(correct, p, q, (0,), known=known) for known in (False, True))
    assert again.distribution == first.distribution
    assert again.runs < first.runs / 2
    assert probe_verify(keeps, p, q, (0,), known=True).uninterpreted
