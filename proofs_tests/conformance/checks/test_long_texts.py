"""Texts of 30 tokens and more: what only they show is found, and lines say how long they were."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from proofs_tests.helpers.engines import (
    ENDING,
    LAW,
    LOSSY,
    Speculating,
    engine,
    matching,
    sampling,
)
from specref.conformance.checks.long_texts import FEWEST, MOST, SETS, Next, budget_of, nexts
from specref.conformance.options import CheckOptions
from specref.conformance.public import check
from specref.conformance.status import CheckResult, Finding, Status
from specref.conformance.suite import prepare
from specref.contracts.text import Engine, Text
from specref.models import Model
from specref.vocabulary import Vocabulary

pytestmark = pytest.mark.usefixtures("undiagnosed")

ONLY = "end-to-end/texts-long"


def judged(one: Engine, **options: Any) -> CheckResult:
    (result,) = check(one, contract="text", only=[ONLY], **options).results
    return result


def late(after: int, wrong: Callable[..., Text]) -> Callable[..., Text]:
    """A right engine whose texts go wrong after so many tokens."""

    def respond(prompt: Any, budget: int, seed: int) -> Text:
        right = Speculating()(prompt, min(budget, after), seed)
        if budget <= after:
            return right
        more = wrong((*prompt, *right.tokens), budget - after, seed)
        return Text((*right.tokens, *more.tokens), 1, 1)

    return respond


def repeating(prompt: Any, budget: int, seed: int) -> Text:
    """Half of the time what followed the token before the last time."""
    rng, text = random.Random(seed), list(prompt)
    for _ in range(budget):
        before = [i for i in range(len(text) - 1) if text[i] == text[-1]]
        law = np.asarray(LAW.next_token(tuple(text)), dtype=float)
        again = before and rng.random() < 0.5
        text.append(text[before[-1] + 1] if again else rng.choices(range(3), law)[0])
    return Text(tuple(text[len(prompt) :]), 1, 1)


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("wrong", [LOSSY["residual is p"], repeating])
def test_a_bug_after_six_tokens_is_found_in_long_texts_alone(wrong: Any) -> None:
    one = engine(late(6, wrong), plain=sampling())
    found = judged(one)
    assert (found.status, found.finding) == (Status.FAILED, Finding.LAW), found.message
    (short,) = check(one, contract="text", only=["end-to-end/texts"], detect_tv=0.2).results
    assert short.status == Status.PASSED
    assert "; texts of 4 tokens, prompts of 2" in short.message


def test_a_lossless_engine_passes_and_its_line_says_how_long_texts_were() -> None:
    found = judged(engine(Speculating(law=ENDING), law=ENDING, drafter=None))
    assert found.status == Status.PASSED, found.message
    judge, _ = prepare(engine(Speculating()), CheckOptions(contract="text"))
    assert found.message.startswith(f"texts of {budget_of(judge)} tokens: ")
    lengths = {
        budget_of(prepare(engine(Speculating()), CheckOptions(contract="text", seed=seed))[0])
        for seed in range(200)
    }
    assert lengths == set(range(FEWEST, MOST + 1))


@pytest.mark.deep
def test_plain_mode_that_is_off_is_not_held_against_speculation() -> None:
    found = judged(engine(late(6, repeating), plain=late(6, repeating)))
    assert (found.status, found.finding) == (Status.FAILED, Finding.PLAIN)


def test_a_long_text_that_goes_on_after_eos_is_a_broken_contract() -> None:
    def on(prompt: Any, budget: int, seed: int) -> Text:
        text = Speculating(law=ENDING)(prompt, budget, seed)
        return text if budget < 20 else Text((*text.tokens[:-1], 2, 0), 1, 1)

    found = judged(engine(on, law=ENDING, drafter=None))
    assert (found.status, found.finding) == (Status.FAILED, Finding.LAW) or (
        found.finding == Finding.CONTRACT
    )
    assert "went on after EOS" in found.message


def test_texts_of_promised_seeds_are_compared() -> None:
    promising = replace(engine(matching, plain=sampling()), same_text=True)
    assert judged(promising).status == Status.PASSED

    def other(prompt: Any, budget: int, seed: int) -> Text:
        return matching(prompt, budget, seed if budget < 20 else seed + 1)

    found = judged(replace(promising, speculative=other))
    assert found.status == Status.FAILED
    assert "is not that of non-speculative decoding" in found.message


def test_sets_have_the_tokens_that_their_names_say() -> None:
    law = Model(Vocabulary("abcd"), lambda context: np.array([0.5, 0.49, 0.0095, 0.0005]))
    one = engine(Speculating(), law=law, drafter=None)
    *_, at = nexts(one, (0, 1), (2, 1, 0))
    assert at.before == (0, 1, 2, 1)
    assert (at.made, at.last, at.once) == (2, 1, 2)
    chosen = {name: np.flatnonzero(of(at)).tolist() for name, of in SETS.items()}
    assert list(chosen.values()) == [
        [0], [], [], [2, 3], [2, 3], [3], [0], [1, 3], [2, 3], [3], [1], [2], [0, 1, 2],
    ]  # fmt: skip
    first = Next(at.p, at.p, at.ids, (), 0)
    assert (first.last, first.once) == (-1, -1)
