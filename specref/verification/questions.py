"""Steps of the zoo that are asked for every p and q in another way than as they are.

Their law is not the target's own, they take further arguments, they act after a context only, or
they compute with logarithms, which no rational function of the rows is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from specref.algorithms.decoding import Step
from specref.chance import Chance
from specref.distributions import Probabilities, Probability
from specref.models import Model
from specref.proofs.everywhere.slices import Plain
from specref.vocabulary import Tokens
from specref.zoo import ALL, block
from specref.zoo.entry import Entry
from specref.zoo.fixtures import ExactFixture
from specref.zoo.parts.standard import argmax, speculative
from specref.zoo.sampling_parameters import warped

Shape: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], int]
"""The target's tokens, the drafter's, and the lookahead."""
TWO, FOUR = ("a", "b"), ("a", "b", "c", "d")
WRITTEN = (0, 0)
"""A context of the tokens a and aa that the tokeniser would not write."""
LEAST = 0.09
"""Of Medusa's test: over at most 3 tokens exp(-H(p)) >= 1/3, so that its other bound is more."""


@dataclass(frozen=True)
class Question:
    """How a step of the zoo is asked.

    * `words`: How that differs from the entry as it is.
    * `shapes` (sequence of (tuple of str, tuple of str, int)): Where it is asked until it is
      refuted: the vocabularies, and the lookahead.
    * `plain`: Target -> the model whose law the text should have.
    """

    words: str
    step: Step
    shapes: Sequence[Shape]
    plain: Plain | None = None


def with_companion(
    step: Callable[..., Tokens],
    options: Mapping[str, Any],
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
) -> Tokens:
    """One iteration with a companion whose rows are free: the drafter's after longer texts."""
    before = (0,) * (lookahead + 1)
    companion = Model(target.vocabulary, lambda text: drafter.next_token((*before, *text)))
    told = {**options, "companion": companion}
    return step(target, drafter, context, lookahead, chance, **told)


def after_unwritten(
    step: Step, target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    """One iteration after `WRITTEN`; rows after any other text are free, too.

    The target's row after that context and x is the one that is called p(·|x); a row after a text
    that does not begin so is called that of a longer text.
    """
    start = len(WRITTEN)
    before = (0,) * (lookahead + start + 1)

    def next_token(text: Tokens) -> Probabilities:
        rest = text[start:] if text[:start] == WRITTEN else (*before, *text)
        return target.next_token(rest)

    return step(Model(target.vocabulary, next_token), drafter, WRITTEN, lookahead, chance)


def on_face(target: Model) -> Model:
    """The target with p(·|x) = (1, 0) after any x."""
    sure = [Fraction(1), *(Fraction(0) for _ in range(len(target.vocabulary) - 1))]
    return Model(target.vocabulary, lambda text: sure if text else target.next_token(text))


def without_logarithms(
    rows: Sequence[block.Row], coins: Sequence[Probability], chance: Chance
) -> int:
    """As `block.products_of_uniforms` where P_2 is 0 or 1: P(u_1 u_2 <= c) = c - c log c is c."""
    one, two = (*(row.survival for row in rows[1:]), 0, 0)[:2]
    if 0 < two < 1:
        raise ValueError(f"P_2 = {two}: expected 0 or 1, where no logarithm is needed")
    both = min(one, two)
    return chance.draw(np.array([1 - two - one + both, one - both, two]), "accept")


def products_on_face(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    """One iteration of "block-product-of-uniforms" where P_2 is 0 or 1.

    Of the rows p(·) alone is free: p(·|x) = (1, 0), q(·) = (1, 0), and q(·|x) = p(·).
    """
    target = on_face(target)
    sure, free = target.next_token((0,)), target.next_token(())
    drafter = Model(drafter.vocabulary, lambda text: free if text else sure)
    return EXACT_PRODUCTS(target, drafter, context, lookahead, chance)


EXACT_PRODUCTS = block.block_step(choose=without_logarithms, weights=block.tokenwise)


def _guided(entry: Entry, case: ExactFixture) -> Question:
    before = " ".join("a" * (case.lookahead + 1))
    return Question(
        "with the estimate and the latencies of its case in the zoo, and a companion whose rows "
        f"are free: that after x is called q(·|{before} x)",
        partial(with_companion, entry.step, case.options),
        ((TWO, TWO, case.lookahead),),
    )


def _with_drafts(entry: Entry, case: ExactFixture) -> Question:
    return Question(
        "with the drafts of its case in the zoo; with those that the draft model's bigrams give "
        "it is "
        "lossless over two tokens at lookahead 2",
        partial(entry.step, **case.options),
        ((TWO, TWO, 1),),
    )


def _warped(entry: Entry) -> Question:
    return Question(
        "against the distribution of the target with the request's parameters (penalty, "
        "temperature, "
        "top-k, top-p, min-p), which is what plain sampling draws from",
        entry.step,
        ((TWO, TWO, 1), (FOUR, FOUR, 0)),
        warped,
    )


UNWRITTEN = Question(
    "after the context a a, which the tokeniser would write aa. After a text that is as the "
    "tokeniser writes it, so is every beginning of the draft, and the bug does nothing. p(·|x) is "
    "the row after a a x; the row after another text x is called p(·|a a a a x)",
    partial(after_unwritten, ALL["slem-context-retokenised"].step),
    ((("a", "aa"), ("a",), 1),),
)
TYPICAL = Question(
    "with the bound 0.09 in place of min(0.09, 0.3 exp(-H(p))): over at most three tokens H(p) <= "
    "log 3, and 0.3 exp(-H(p)) >= 0.1. Over more tokens the bound is no rational function",
    speculative(accept=lambda at: int(at.px > LEAST), recover=lambda at: argmax(at.p)),
    ((TWO, TWO, 2),),
)
PRODUCTS = Question(
    "at rows where no logarithm is needed: p(·|x) = (1, 0), q(·) = (1, 0) and q(·|x) = p(·) for "
    "all x, so that P_2 is 0 or 1. Elsewhere it draws with probabilities c - c log c, which are "
    "no rational functions",
    products_on_face,
    ((TWO, TWO, 2),),
    on_face,
)
BY_OPTION = {"companion": _guided, "propose": _with_drafts}
QUESTIONS: Mapping[str, Question] = MappingProxyType(
    {
        **{one.id: _warped(one) for one in ALL.values() if one.rule == "warped"},
        **{
            one.id: BY_OPTION[option](one, one.case)
            for one in ALL.values()
            if one.is_step and one.case
            for option in BY_OPTION.keys() & one.case.options
        },
        "slem-context-retokenised": UNWRITTEN,
        "typical-acceptance": TYPICAL,
        "block-product-of-uniforms": PRODUCTS,
    }
)
"""By ids of the zoo."""
