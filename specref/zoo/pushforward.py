"""Mutants of string-level rejection sampling: psi is not the law of what is submitted."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import prod
from typing import TypeAlias

import numpy as np

from specref.algorithms import Step, slem
from specref.algorithms.standard import Draft
from specref.chance import Chance
from specref.distributions import Probabilities, Probability
from specref.models import Model
from specref.theory.lookahead import fixed
from specref.theory.psi import conditional_psi
from specref.vocabulary import Text, Tokens, Vocabulary
from specref.zoo.clean import one_hot, ratio, residual_or_p, verified
from specref.zoo.entry import Entry
from specref.zoo.matching import reencoded
from specref.zoo.position import Verification

HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Submission:
    """A drafted text, and what its law depends on."""

    vocabulary: Vocabulary
    drafter: Model
    seen: Tokens
    lookahead: int
    drafts: Tokens
    chance: Chance

    @property
    def tokens(self) -> Tokens:
        """The drafted text in target ids."""
        return self.vocabulary.encode(self.drafter.vocabulary.decode(self.drafts))

    def psi(self, prefix: Tokens = (), drafter: Model | None = None) -> Probabilities:
        """psi(. | prefix), of the drafter or of another in its place."""
        laws = conditional_psi(
            self.vocabulary, drafter or self.drafter, self.seen, self.lookahead, fixed
        )
        return laws[prefix]


Declare: TypeAlias = Callable[[Submission], list[Draft]]
Law: TypeAlias = Callable[[Submission], Probabilities]


def submitted(
    declare: Declare,
    *,
    extra: int = 0,
    verify: Callable[[Verification], Tokens] = lambda v: v.block(v.prefix()),
) -> Step:
    """SLRS with other drafts declared, or with more drafter tokens than psi knows of."""

    def drafts(
        target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> list[Draft]:
        seen = reencoded(target, drafter, context)
        stop = fixed(target.vocabulary, drafter.vocabulary, lookahead + extra)
        drafted = slem.draft(drafter, seen, stop, chance)
        return declare(
            Submission(target.vocabulary, drafter, seen, lookahead, drafted, chance)
        )

    return verified(
        drafts,
        accept=lambda at: ratio(at.px, at.qx),
        recover=lambda at: residual_or_p(at.p, at.q),
        verify=verify,
    )


def first(law: Law) -> Declare:
    """The first target token of the text alone, with a law."""
    return lambda s: [Draft(token, law(s)) for token in s.tokens[:1]]


def each(law: Callable[[Submission, Tokens], Probabilities]) -> Declare:
    """Every target token of the text, with a law that may look at those before it."""
    return lambda s: [Draft(token, law(s, s.tokens[:k])) for k, token in enumerate(s.tokens)]


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
    zero = Fraction(0)
    return np.array([masses.get(text, zero) for text in vocabulary.tokens], dtype=object)


@lru_cache(maxsize=256)
def frozen(drafter: Model, seen: Tokens) -> Model:
    """A drafter that has one row for ever."""
    return Model(drafter.vocabulary, lambda context: drafter.next_token(seen))


def of_path(s: Submission) -> Probabilities:
    """The probability of the very drafts that cover the first token, on that token alone."""
    token = s.tokens[0]
    length, decode = len(s.vocabulary.tokens[token]), s.drafter.vocabulary.decode
    covering = next(k for k in range(len(s.drafts) + 1) if len(decode(s.drafts[:k])) >= length)
    rows = (s.drafter.next_token((*s.seen, *s.drafts[:k])) for k in range(covering))
    weight = prod(row[d] for row, d in zip(rows, s.drafts, strict=False))
    return one_hot(token, s.psi()) * weight


def estimated(s: Submission) -> Probabilities:
    """An unbiased estimate of psi: half or three halves of it."""
    return s.psi() * (3 * HALF if s.chance.accept(HALF, "estimate") else HALF)


def fall_through(v: Verification) -> Tokens:
    """Line 8 without "otherwise": the token is drawn from the residual in either case."""
    if not v.n:
        return v.block(0)
    v.accepts(0)
    return (v.recovered(0),)


ENTRIES = (
    Entry(
        "slrs-exact-decompositions",
        "vocabulary",
        formula="psi(t) = mass of the drafts that spell exactly t, instead of T(drafts)_1 = t",
        symptom="Tokens that drafts overshoot pass too often.",
        hint="Push the law of the drafted texts forward through the target's tokeniser.",
        step=submitted(
            first(lambda s: exact_decompositions(s.vocabulary, s.drafter, s.seen, s.lookahead))
        ),
        algorithm="slrs",
        cites=("arXiv:2502.05202",),
        note="The reading of Lemma 3.1 and its tree.",
    ),
    Entry(
        "slrs-fixed-q",
        "vocabulary",
        formula="psi from products of one row q(. | context), for drafts that see each other",
        symptom="Right only while the drafter ignores its own drafts.",
        hint="Multiply q(d_j | context, d_1 … d_(j-1)).",
        step=submitted(first(lambda s: s.psi(drafter=frozen(s.drafter, s.seen)))),
        algorithm="slrs",
        cites=("arXiv:2502.05202",),
        note="Theorem 3.2 as printed.",
    ),
    Entry(
        "slrs-lookahead-off-by-one",
        "vocabulary",
        formula="n + 1 drafts are drawn, psi is that of n",
        symptom="Tokens longer than n drafts pass too often.",
        hint="Compute psi with the very rule that stops the drafter.",
        step=submitted(first(lambda s: s.psi()), extra=1),
        algorithm="slrs",
        cites=("arXiv:2502.05202",),
        note="S_1(i) = 1[i > n] as printed.",
    ),
    Entry(
        "slrs-fall-through",
        "vocabulary",
        formula="the token is drawn from norm((p - psi)+) even if the draft was accepted",
        symptom="Tokens that the drafter likes never come out.",
        hint="Return at an acceptance.",
        step=submitted(first(lambda s: s.psi()), verify=fall_through),
        algorithm="slrs",
        cites=("arXiv:2502.05202",),
        note="Algorithm 3, line 8, as printed.",
    ),
    Entry(
        "slrs-q-of-drafts",
        "vocabulary",
        formula="psi(t_1) replaced by q(d_1) q(d_2) … of the drafts that were drawn",
        symptom="Texts with several spellings pass too often.",
        hint="Sum over every drafted text that the tokeniser reads as t_1.",
        step=submitted(first(of_path)),
        algorithm="slrs",
    ),
    Entry(
        "slrs-estimated-psi",
        "vocabulary",
        formula="psi replaced by an unbiased estimate: half or three halves of it, a coin each",
        symptom="Right on average over nothing: min(1, p / psi) is not linear.",
        hint="Compute psi exactly, or bound it until the decision is certain.",
        step=submitted(first(estimated)),
        algorithm="slrs",
    ),
    Entry(
        "slrs-psi-of-first-token",
        "vocabulary",
        formula="t_k is tested with psi(. | nothing) instead of psi(. | t_1 … t_(k-1))",
        symptom="First token exact, later ones biased.",
        hint="Condition psi on the tokens that were accepted.",
        step=submitted(each(lambda s, before: s.psi())),
        algorithm="slrs",
    ),
    Entry(
        "slrs-end-ignored",
        "vocabulary",
        formula="t_k is tested with psi(. | t_1 … t_(k-1)), the token after the last is ~ p",
        symptom="Longer texts than the drafted one have too little mass at its end.",
        hint="Give psi the text's end as an outcome, or normalise without it.",
        step=submitted(each(lambda s, before: s.psi(before))),
        algorithm="slrs",
        note="Mixes the two lossless endings of `slrs.step`.",
    ),
)
