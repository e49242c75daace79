"""A loop that looks at the wrong context is told about which; others are not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from specref.algorithms import standard
from specref.chance import Sampled
from specref.conformance.options import CheckOptions
from specref.conformance.public import check
from specref.conformance.suite import prepare
from specref.conformance.watched import asked_elsewhere
from specref.contracts.table import contract_named
from specref.models import Model
from specref.vocabulary import Tokens

Loop = Callable[..., Any]


def draw(model: Model, context: Any, rng: np.random.Generator) -> int:
    row = model.next_token(tuple(context)).astype(np.float64)
    return int(rng.choice(len(row), p=row / row.sum()))


def loop(seen: Callable[[list[int]], list[int]]) -> Loop:
    """A loop that draws each token after what it sees of the text."""

    def generate(
        target: Model, drafter: Model, context: Tokens, tokens: int, rng: np.random.Generator
    ) -> list[int]:
        text = list(context)
        while len(text) < len(context) + tokens:
            text.append(draw(target, seen(text) if len(text) > len(context) + 2 else text, rng))
            if target.vocabulary.ends(text):
                break
        return text[len(context) :]

    return generate


def explained(loop: Loop, contract: str = "generate") -> str:
    judge, _ = prepare(loop, CheckOptions(contract=contract_named(contract)))
    return asked_elsewhere(judge)


BUGS = {
    "stale token": (lambda text: [*text[:-1], text[-2]], 0),
    "missing token": (lambda text: [*text[:-2], text[-1]], -1),
    "position before": (lambda text: text[:-1], -1),
    "token twice": (lambda text: [*text, text[-1]], 1),
}


@pytest.mark.parametrize("bug", BUGS)
def test_the_context_that_was_asked_about_instead_is_told(bug: str) -> None:
    seen, longer = BUGS[bug]
    said = explained(loop(seen))
    words = " the target was never asked about "
    position, own = said.split(words)[0].split(" after ")
    other = said.split(", but about ")[1].split(";")[0]
    assert position == "for the token at position 3"
    assert said.split(words)[1].startswith(f"{own}, but about {other}; ")
    own_, other_ = (eval(text) for text in (own, other))
    assert len(other_) == len(own_) + longer
    assert bug == "stale token" or other_ == tuple(seen(list(own_)))
    assert "the tokens before it have calls 1, 2, 3 of the target" in said


def test_loops_that_look_where_they_should_are_not_told_so() -> None:
    """Lossless or not; rows that are kept for the time of a call are asked about once."""

    def speculative(accept: float) -> Loop:
        def generate(
            target: Model, drafter: Model, context: Tokens, tokens: int, rng: Any
        ) -> Tokens:
            found: Tokens = ()
            while len(found) < tokens and not target.vocabulary.ends(found):
                here = (*context, *found)
                found += standard.step(target, drafter, here, 2, Sampled(rng))
                if rng.random() < accept and len(found) > 1:
                    found = (*found[:-1], draw(target, (*context, *found[:-1]), rng))
            return found[:tokens]

        return generate

    assert explained(speculative(0)) == ""
    assert explained(speculative(1)) == ""

    def kept(target: Model, drafter: Model, context: Tokens, tokens: int, rng: Any) -> list[int]:
        rows: dict[Tokens, Any] = {}
        text = list(context)
        for _ in range(tokens):
            here = tuple(text)
            rows[here] = rows[here] if here in rows else target.next_token(here)
            row = rows[here].astype(np.float64) ** 2
            text.append(int(rng.choice(len(row), p=row / row.sum())))
        return text[len(context) :]

    assert explained(kept) == ""

    def raises(*arguments: Any, rng: Any) -> Any:
        raise RuntimeError

    assert explained(raises) == ""


def test_steps_and_drafters_are_watched_too() -> None:
    def step(target: Model, drafter: Model, context: Tokens, lookahead: int, rng: Any) -> Tokens:
        return standard.step(target, drafter, context[:-1], lookahead, Sampled(rng))

    said = explained(step, "step")
    assert said.startswith("for the token at position 0 after (1,) the target was never asked ")

    def drafting(back: int) -> Loop:
        def draft(drafter: Model, context: Tokens, lookahead: int, rng: Any) -> Any:
            text, rows = list(context), []
            for number in range(lookahead):
                rows.append(drafter.next_token(text[: len(text) - back * (number == 3)]))
                text.append(int(rng.choice(len(rows[-1]), p=rows[-1].astype(np.float64))))
            return text[len(context) :], rows

        return draft

    assert explained(drafting(0), "drafter") == ""
    said = explained(drafting(1), "drafter")
    assert said.startswith("for the token at position 3 after ")
    assert " the drafter was never asked about " in said


def test_it_explains_the_first_failure_alone_and_is_no_verdict() -> None:
    only = ["end-to-end/wide", "end-to-end/deep"]
    asked = {"contract": "generate", "only": only, "detect_tv": 0.2}
    wrong, right = (
        check(loop(seen), **asked) for seen in (lambda text: text[:-1], lambda text: text)
    )
    told = ["never asked about" in result.message for result in wrong.failures]
    assert told[0]
    assert not any(told[1:])
    assert right.exit_code == 0

    def unasked(
        target: Model,
        drafter: Model,
        context: Tokens,
        tokens: int,
        rng: Any,
        rows: Any = {},  # noqa: B006
    ) -> list[int]:
        """Keeps rows of earlier calls, by model and context."""
        text = list(context)
        while len(text) < len(context) + tokens and not target.vocabulary.ends(
            text[len(context) :]
        ):
            key = target.next_token(()).tobytes(), tuple(text)
            rows[key] = rows[key] if key in rows else target.next_token(text).astype(np.float64)
            text.append(int(rng.choice(len(rows[key]), p=rows[key] / rows[key].sum())))
        return text[len(context) :]

    assert "never asked about" in explained(unasked)
    assert check(unasked, **asked).exit_code == 0
