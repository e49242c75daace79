"""SLRS in parts: a drafted text, the law that is declared for its tokens, and the verification."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from specref.algorithms import slem
from specref.algorithms.decoding import Step
from specref.algorithms.lookahead import fixed
from specref.algorithms.standard import Draft
from specref.algorithms.text.push_forward import conditional_psi
from specref.chance import Chance
from specref.distributions import Probabilities
from specref.models import Model
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo.parts.standard import Verification, ratio, residual_or_p, verified
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
