"""Mutants that use one random number twice."""

from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from specref.algorithms import standard
from specref.chance import Chance
from specref.distributions import Probabilities, Probability, residual
from specref.models import Model
from specref.vocabulary import Tokens
from specref.zoo.entry import Entry
from specref.zoo.parts.standard import Position, acceptance, ratio, speculative


def under_one_uniform(at: Position) -> Probability:
    """P(u < r_i | u < r_0, …, u < r_(i-1)), where r are the ratios."""
    below = min((acceptance(at.to(j)) for j in range(at.i)), default=1)
    return ratio(acceptance(at), below)


def drafting_if_lucky(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    """Draw u before drafting; draft if u < 1/2, and test x_0 with that u."""
    if not chance.accept(HALF, "coin"):
        return standard.step(target, drafter, context, 0, chance)
    return UNDER_HALF(target, drafter, context, lookahead, chance)


HALF = Fraction(1, 2)
UNDER_HALF = speculative(
    accept=lambda at: acceptance(at) if at.i else ratio(at.px, HALF * at.qx),
)


def from_rejecting_uniform(at: Position) -> Probabilities:
    """The residual's inverse CDF at u, uniform on [h, 1) because u >= h rejected x."""
    h: Any = acceptance(at)
    ends = np.maximum(np.cumsum(residual(at.p, at.q)), h)
    recovered: Probabilities = np.diff(ends, prepend=h) / (1 - h)
    return recovered


def won_by_same_clocks(at: Position) -> Probabilities:
    """The law of y = argmin E / r given x = argmin E / q, for one vector E of exponentials.

    As r(x) = 0 after a rejection, P(y = j | x) is r_j times the integral of 1 / f^2 from
    q_j / r_j on, where f(v) = sum max(q, v r). It does not depend on x.
    """
    q, r = at.q, residual(at.p, at.q)
    starts = [q[j] / r[j] if r[j] > 0 else None for j in range(len(r))]
    knots = sorted(one for one in starts if one is not None)
    f = [np.maximum(q, knot * r).sum() for knot in knots]
    steps = zip(pairwise(knots), pairwise(f), strict=True)
    pieces = [(v - u) / (f_u * f_v) for (u, v), (f_u, f_v) in steps]
    # f is linear between knots, and has slope 1 beyond the last.
    integrals = [*accumulate([1 / f[-1], *reversed(pieces)])][::-1]

    first = [next((k for k, knot in enumerate(knots) if knot == one), 0) for one in starts]
    return np.array([r[j] * integrals[first[j]] for j in range(len(r))])


ENTRIES = (
    Entry(
        "shared-u",
        "randomness",
        formula="one u for all drafts: accept[i] iff u < min(r_0, …, r_i), r_i = min(1, p / q)",
        symptom="First token exact; blocks tend to be accepted or rejected whole.",
        hint="Draw one uniform for each position.",
        step=speculative(accept=under_one_uniform),
        cites=("flashinfer-ai/flashinfer#424", "raullenchai/Rapid-MLX#3294"),
        blind=frozenset({"m"}),
        note="With one draft there is one uniform anyway.",
    ),
    Entry(
        "recovery-reuses-accept-u",
        "randomness",
        formula="recovered token = inverse CDF of (p - q)+ at the u that rejected, u ~ U[h, 1)",
        symptom="Acceptance exact, recovered tokens biased to the end of the id order.",
        hint="Draw a fresh uniform for the recovered token.",
        step=speculative(recover=from_rejecting_uniform),
        cites=("vllm-project/vllm-ascend#16370", "vllm-project/vllm-ascend#16920"),
    ),
    Entry(
        "gumbel-draft-equals-recovery",
        "randomness",
        formula="x = argmax log q + g, recovered token = argmax log (p - q)+ + g with the same g",
        symptom="Residual tokens with a large q come out too rarely, by a few parts in a hundred.",
        hint="Key the recovery noise differently from the draft noise.",
        step=speculative(recover=won_by_same_clocks),
        cites=(
            "vllm-project/vllm#47386",
            "vllm-project/vllm#54282",
            "local-inference-lab/vllm#205",
        ),
    ),
    Entry(
        "lookahead-sees-coin",
        "randomness",
        formula="drafts are made only if u < 1/2, and x_0 is tested with that u",
        symptom="Drafted tokens pass too often: the random number was chosen for them.",
        hint="Choose the lookahead from emitted tokens and drafts, never from the random "
        "numbers to come.",
        step=drafting_if_lucky,
    ),
)
