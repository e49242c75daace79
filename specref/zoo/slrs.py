"""Mutants of string-level rejection sampling: psi is not the law of what is submitted."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from math import prod
from typing import TypeAlias

import numpy as np

from specref.algorithms import slem, slrs
from specref.algorithms.decoding import Step
from specref.algorithms.lookahead import fixed, until_determined
from specref.algorithms.standard import Draft
from specref.algorithms.text.push_forward import conditional_psi
from specref.chance import Chance, exact_distribution
from specref.distributions import Probabilities, Probability
from specref.models import Model
from specref.vocabulary import Text, Tokens, Vocabulary
from specref.zoo.entry import Entry
from specref.zoo.parts.standard import Verification, one_hot, ratio, residual_or_p, verified
from specref.zoo.slem import reencoded


@dataclass(frozen=True)
class Submission:
    """A drafted text, and everything that its law depends on."""

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
        return declare(Submission(target.vocabulary, drafter, seen, lookahead, drafted, chance))

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


def exactly_spelled(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> list[Draft]:
    """The first token of the drafted text if some drafts spell exactly it, else nothing."""
    seen = reencoded(target, drafter, context)
    token = spelled(target.vocabulary, drafter, seen, lookahead, chance)
    return [Draft(token, law_of_spelled(target.vocabulary, drafter, seen, lookahead))]


def spelled(
    vocabulary: Vocabulary, drafter: Model, seen: Tokens, lookahead: int, chance: Chance
) -> int | None:
    """Draft; the first target token if the drafts up to its end spell exactly it."""
    stop, decode = fixed(vocabulary, drafter.vocabulary, lookahead), drafter.vocabulary.decode
    drafts = slem.draft(drafter, seen, stop, chance)
    starts = {decode(drafts[:k]) for k in range(1, len(drafts) + 1)}
    token = next(iter(vocabulary.encode(decode(drafts))), None)
    return token if token is not None and vocabulary.tokens[token] in starts else None


@lru_cache(maxsize=256)
def law_of_spelled(
    vocabulary: Vocabulary, drafter: Model, seen: Tokens, lookahead: int
) -> Probabilities:
    """What `spelled` returns, None left out."""
    law = exact_distribution(lambda c: spelled(vocabulary, drafter, seen, lookahead, c))
    zero = 0 * next(iter(law.values()))
    return np.array([law.get(token, zero) for token in range(len(vocabulary))])


of_slrs = partial(Entry, stage="vocabulary", rule="slrs")
ENTRIES = (
    of_slrs(
        "slrs-exact-decompositions",
        formula="psi(t) = mass of the drafts that spell exactly t, instead of T(drafts)_1 = t",
        symptom="Tokens that drafts overshoot pass too often.",
        hint="Push the distribution of the drafted texts forward through the target's tokeniser.",
        step=decompositions,
        cites=("arXiv:2502.05202",),
        blind=frozenset({"unread"}),
        note="The one draft of unread overshoots nothing. The count of Lemma 3.1 and its tree.",
    ),
    of_slrs(
        "slrs-fixed-q",
        formula="psi from products of one row q(. | context), for drafts that see each other",
        symptom="Right only while the draft model ignores its own drafts.",
        hint="Multiply q(d_j | context, d_1 … d_(j-1)).",
        step=submitted(first(lambda s: s.psi(drafter=frozen(s.drafter, s.seen)))),
        cites=("arXiv:2502.05202",),
        blind=frozenset({"unread"}),
        note="The one draft of unread sees no other. Theorem 3.2, if q is one distribution.",
    ),
    of_slrs(
        "slrs-lookahead-off-by-one",
        formula="n + 1 drafts are drawn, psi is that of n",
        symptom="Tokens longer than n drafts pass too often.",
        hint="Compute psi with the very rule that stops the draft model.",
        step=submitted(first(lambda s: s.psi()), extra=1),
        cites=("arXiv:2502.05202",),
        blind=frozenset({"letters", "pieces", "text end"}),
        note="S_1(i) = 1[i > n] as printed. Two drafts determine the first token elsewhere.",
    ),
    of_slrs(
        "slrs-fall-through",
        formula="the token is drawn from norm((p - psi)+) even if the draft was accepted",
        symptom="Tokens that the draft model likes never come out.",
        hint="Return at an acceptance.",
        step=submitted(first(lambda s: s.psi()), verify=fall_through),
        cites=("arXiv:2502.05202",),
        note="Algorithm 3, lines 6 to 8, if to accept is not to return.",
    ),
    of_slrs(
        "slrs-q-of-drafts",
        formula="psi(t_1) replaced by q(d_1) q(d_2) … of the drafts that were drawn",
        symptom="Texts with several spellings pass too often.",
        hint="Sum over every drafted text that the tokeniser reads as t_1.",
        step=submitted(first(of_path)),
    ),
    of_slrs(
        "slrs-estimated-psi",
        formula="psi replaced by an unbiased estimate: half or three halves of it, one random "
        "number for each",
        symptom="Right on average over nothing: min(1, p / psi) is not linear.",
        hint="Compute psi exactly, or bound it until the decision is certain.",
        step=submitted(first(estimated)),
    ),
    of_slrs(
        "slrs-psi-of-first-token",
        formula="t_k is tested with psi(. | nothing) instead of psi(. | t_1 … t_(k-1))",
        symptom="First token exact, later ones biased.",
        hint="Condition psi on the tokens that were accepted.",
        step=submitted(each(lambda s, before: s.psi())),
        blind=frozenset({"unread"}),
        note="The one draft of unread is one token.",
    ),
    of_slrs(
        "slrs-end-ignored",
        formula="t_k is tested with psi(. | t_1 … t_(k-1)), the token after the last is ~ p",
        symptom="Longer texts than the drafted one have too little mass at its end.",
        hint="Give psi the text's end as an outcome, or normalise without it.",
        step=submitted(each(lambda s, before: s.psi(before))),
        blind=frozenset({"letters", "text end", "unread"}),
        note="Mixes the two endings of `slrs.step`. Drafts of letters spell texts of one length.",
    ),
)
CONTROLS = (
    of_slrs(
        "slrs-single-token",
        formula="one token per iteration: t_1 with min(1, p / psi), or norm((p - psi)+)",
        symptom="Every block has one token.",
        hint="It is Algorithm 3 with its missing otherwise, once.",
        step=slrs.single_token_step,
        cites=("arXiv:2502.05202",),
        lossless=True,
    ),
    of_slrs(
        "slrs-ending-bonus",
        formula="psi normalised without the text's end, the token after the last ~ p",
        symptom="Looks like slrs-end-ignored: the text's end has no row.",
        hint="Given that the text goes on, t_k has exactly the normalised distribution.",
        step=lambda *arguments: slrs.step(*arguments, ending="bonus"),
        lossless=True,
    ),
    of_slrs(
        "slrs-stop-when-determined",
        formula="drafting stops once t_1 is determined",
        symptom="The number of drafts depends on the drafts.",
        hint="psi is the distribution of what that very rule lets through.",
        step=lambda *arguments: slrs.step(*arguments, rule=until_determined),
        cites=("arXiv:2502.05202",),
        lossless=True,
    ),
    of_slrs(
        "slrs-exact-decompositions-submitted",
        formula="t_1 is submitted only if drafts spell exactly it, with that sub-distribution",
        symptom="Looks like slrs-exact-decompositions: overshooting drafts are not summed over.",
        hint="Overshooting drafts submit nothing, so the sub-distribution is that of the "
        "submitted token.",
        step=verified(exactly_spelled),
        lossless=True,
    ),
)
