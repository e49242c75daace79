"""Mutants of string-level rejection sampling: psi is not the law of what is submitted."""

from fractions import Fraction
from functools import lru_cache
from math import prod

import numpy as np

from specref.distributions import Probabilities, Probability
from specref.models import Model
from specref.vocabulary import Text, Tokens, Vocabulary
from specref.zoo.entry import Entry
from specref.zoo.parts.by_token import Submission, each, first, submitted
from specref.zoo.parts.standard import Verification, one_hot

HALF = Fraction(1, 2)


@lru_cache(maxsize=256)
def exact_decompositions(
    vocabulary: Vocabulary, drafter: Model, seen: Tokens, lookahead: int
) -> Probabilities:
    """For each target token, the mass of the drafts that spell exactly it."""
    masses: dict[Text, Probability] = {}
    pending: list[tuple[Tokens, Probability]] = [((), Fraction(1))]
    for drafts, weight in pending:
        text = drafter.vocabulary.decode(drafts)
        masses[text] = masses.get(text, 0) + weight
        if len(drafts) < lookahead and not drafter.vocabulary.ends(drafts):
            row = drafter.next_token((*seen, *drafts))
            pending += [((*drafts, d), weight * q) for d, q in enumerate(row) if q > 0]
    zero = 0 * sum(masses.values())
    return np.array([masses.get(text, zero) for text in vocabulary.tokens])


@lru_cache(maxsize=256)
def frozen(drafter: Model, seen: Tokens) -> Model:
    """A drafter that ignores its own drafts."""
    return Model(drafter.vocabulary, lambda context: drafter.next_token(seen))


def of_path(s: Submission) -> Probabilities:
    """The probability of the very drafts that cover the first token, on that token alone."""
    token = s.tokens[0]
    length, decode = len(s.vocabulary.tokens[token]), s.drafter.vocabulary.decode
    covering = next(k for k in range(len(s.drafts) + 1) if len(decode(s.drafts[:k])) >= length)
    rows = (s.drafter.next_token((*s.seen, *s.drafts[:k])) for k in range(covering))
    weight = prod(row[d] for row, d in zip(rows, s.drafts, strict=False))
    path: Probabilities = one_hot(token, s.psi()) * weight
    return path


def estimated(s: Submission) -> Probabilities:
    """An unbiased estimate of psi: half or three halves of it."""
    high = s.chance.accept(HALF, "estimate")
    estimate: Probabilities = s.psi() * (3 * HALF if high else HALF)
    return estimate


def fall_through(v: Verification) -> Tokens:
    """Line 8 without "otherwise": the token is drawn from the residual in either case."""
    if not v.n:
        return v.block(0)
    v.accepts(0)
    return (v.recovered(0),)


decompositions = submitted(
    first(lambda s: exact_decompositions(s.vocabulary, s.drafter, s.seen, s.lookahead))
)
"""Algorithm 3 of Timor et al. 2025 with the terms of psi that the paper counts, to be refuted."""

ENTRIES = (
    Entry(
        "slrs-exact-decompositions",
        "vocabulary",
        formula="psi(t) = mass of the drafts that spell exactly t, instead of T(drafts)_1 = t",
        symptom="Tokens that drafts overshoot pass too often.",
        hint="Push the distribution of the drafted texts forward through the target's tokeniser.",
        step=decompositions,
        rule="slrs",
        cites=("arXiv:2502.05202",),
        blind=frozenset({"unread"}),
        note="The one draft of unread overshoots nothing. The count of Lemma 3.1 and its tree.",
    ),
    Entry(
        "slrs-fixed-q",
        "vocabulary",
        formula="psi from products of one row q(. | context), for drafts that see each other",
        symptom="Right only while the draft model ignores its own drafts.",
        hint="Multiply q(d_j | context, d_1 … d_(j-1)).",
        step=submitted(first(lambda s: s.psi(drafter=frozen(s.drafter, s.seen)))),
        rule="slrs",
        cites=("arXiv:2502.05202",),
        blind=frozenset({"unread"}),
        note="The one draft of unread sees no other. Theorem 3.2, if q is one distribution.",
    ),
    Entry(
        "slrs-lookahead-off-by-one",
        "vocabulary",
        formula="n + 1 drafts are drawn, psi is that of n",
        symptom="Tokens longer than n drafts pass too often.",
        hint="Compute psi with the very rule that stops the draft model.",
        step=submitted(first(lambda s: s.psi()), extra=1),
        rule="slrs",
        cites=("arXiv:2502.05202",),
        blind=frozenset({"letters", "pieces", "text end"}),
        note="S_1(i) = 1[i > n] as printed. Two drafts determine the first token elsewhere.",
    ),
    Entry(
        "slrs-fall-through",
        "vocabulary",
        formula="the token is drawn from norm((p - psi)+) even if the draft was accepted",
        symptom="Tokens that the draft model likes never come out.",
        hint="Return at an acceptance.",
        step=submitted(first(lambda s: s.psi()), verify=fall_through),
        rule="slrs",
        cites=("arXiv:2502.05202",),
        note="Algorithm 3, lines 6 to 8, if to accept is not to return.",
    ),
    Entry(
        "slrs-q-of-drafts",
        "vocabulary",
        formula="psi(t_1) replaced by q(d_1) q(d_2) … of the drafts that were drawn",
        symptom="Texts with several spellings pass too often.",
        hint="Sum over every drafted text that the tokeniser reads as t_1.",
        step=submitted(first(of_path)),
        rule="slrs",
    ),
    Entry(
        "slrs-estimated-psi",
        "vocabulary",
        formula="psi replaced by an unbiased estimate: half or three halves of it, one random "
        "number for each",
        symptom="Right on average over nothing: min(1, p / psi) is not linear.",
        hint="Compute psi exactly, or bound it until the decision is certain.",
        step=submitted(first(estimated)),
        rule="slrs",
    ),
    Entry(
        "slrs-psi-of-first-token",
        "vocabulary",
        formula="t_k is tested with psi(. | nothing) instead of psi(. | t_1 … t_(k-1))",
        symptom="First token exact, later ones biased.",
        hint="Condition psi on the tokens that were accepted.",
        step=submitted(each(lambda s, before: s.psi())),
        rule="slrs",
        blind=frozenset({"unread"}),
        note="The one draft of unread is one token.",
    ),
    Entry(
        "slrs-end-ignored",
        "vocabulary",
        formula="t_k is tested with psi(. | t_1 … t_(k-1)), the token after the last is ~ p",
        symptom="Longer texts than the drafted one have too little mass at its end.",
        hint="Give psi the text's end as an outcome, or normalise without it.",
        step=submitted(each(lambda s, before: s.psi(before))),
        rule="slrs",
        blind=frozenset({"letters", "text end", "unread"}),
        note="Mixes the two endings of `slrs.step`. Drafts of letters spell texts of one length.",
    ),
)
