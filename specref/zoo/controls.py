"""Controls whose verifier or length is unusual, and whose output is exact all the same."""

from fractions import Fraction

import numpy as np

from specref.algorithms import standard
from specref.algorithms.standard import Draft
from specref.chance import Chance
from specref.models import Model
from specref.vocabulary import Tokens
from specref.zoo.clean import speculative
from specref.zoo.entry import Entry
from specref.zoo.length import P_MIN
from specref.zoo.position import Verification

HALF = Fraction(1, 2)


def unlikely(drafts: list[Draft], chance: Chance) -> bool:
    """Whether the latest draft had q(x) < 1/4."""
    token, q = drafts[-1]
    return bool(q[token] < P_MIN)


def sample_and_match(v: Verification) -> Tokens:
    """Draw the target's own tokens for as long as they are the drafted ones."""
    for i, token in enumerate(v.first.last.before):
        at = v.first.to(i)
        own = at.chance.draw(at.p, f"target[{i}]")
        if own != token:
            return (*at.before, own)
    return v.block(v.n)


def without_bonus(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    """The block cut to `lookahead` tokens, at least one."""
    return standard.step(target, drafter, context, lookahead, chance)[: max(lookahead, 1)]


def random_lookahead(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    """A lookahead of 0 to `lookahead`, uniformly, chosen before anything is drafted."""
    uniform = np.full(lookahead + 1, Fraction(1, lookahead + 1))
    return standard.step(target, drafter, context, chance.draw(uniform, "lookahead"), chance)


ENTRIES = (
    Entry(
        "sample-and-match",
        "accept",
        formula="t ~ p; accept iff t = x; emit t either way",
        symptom="There is no ratio, and acceptance is only sum p q.",
        hint="Every emitted token is a draw from the target.",
        step=speculative(verify=sample_and_match),
        cites=("lablup/mlxcel#992", "EricLBuehler/mistral.rs#1027"),
        lossless=True,
    ),
    Entry(
        "ratio-without-min",
        "accept",
        formula="accept iff u q(x) < p(x)",
        symptom="The ratio exceeds 1.",
        hint="u < 1, so a ratio above 1 accepts always.",
        step=speculative(accept=lambda at: 1 if at.px >= at.qx else at.px / at.qx),
        lossless=True,
    ),
    Entry(
        "no-bonus",
        "bonus",
        formula="the bonus token is dropped",
        symptom="Fully accepted blocks are one token short.",
        hint="The next iteration draws from the same row of the target.",
        step=without_bonus,
        lossless=True,
    ),
    Entry(
        "stop-after-low-probability",
        "length",
        formula="drafting stops after the first x with q(x) < 1/4, which is kept",
        symptom="The number of drafts depends on the drafts.",
        hint="Every submitted token is still distributed as its q, given those before it.",
        step=speculative(stop=unlikely),
        lossless=True,
    ),
    Entry(
        "random-stop",
        "length",
        formula="after each draft, stop with probability 1/2",
        symptom="The lookahead is random.",
        hint="The coin does not see the tokens.",
        step=speculative(stop=lambda drafts, chance: chance.accept(HALF, f"stop[{len(drafts)}]")),
        lossless=True,
    ),
    Entry(
        "random-lookahead",
        "length",
        formula="a lookahead of 0 … n, drawn before drafting",
        symptom="The lookahead is random, and 0 among its values.",
        hint="Each lookahead is lossless, so is their mixture.",
        step=random_lookahead,
        lossless=True,
    ),
)
