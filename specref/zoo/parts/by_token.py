"""Union, TLI and SLRS in parts: what is drafted, and how it becomes tokens of the target."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

from specref.algorithms import slem, union
from specref.algorithms.decoding import Step
from specref.algorithms.lookahead import fixed, positions
from specref.algorithms.standard import Draft
from specref.algorithms.text.push_forward import conditional_psi
from specref.chance import Chance
from specref.distributions import Probabilities, normalise, relabel
from specref.models import Model
from specref.vocabulary import Tokens, Vocabulary, intersection
from specref.zoo.parts.standard import Verification, ratio, residual_or_p, verified
from specref.zoo.slem import reencoded


@dataclass(frozen=True)
class Dictionary:
    """Two vocabularies, and the tokens they share."""

    target: Vocabulary
    drafter: Vocabulary

    @property
    def shared(self) -> Mapping[int, int]:
        """{drafter id: target id}."""
        return intersection(self.target, self.drafter)

    def moved(self, q: Probabilities) -> Probabilities:
        """The row in target ids; what the target lacks is left out."""
        return relabel(q, self.shared, len(self.target))

    def unmoved(self, q: Probabilities) -> Probabilities:
        """The row with drafter ids taken for target ids, cut or filled with 0."""
        ids = range(min(len(self.target), len(self.drafter)))
        return relabel(q, dict(zip(ids, ids, strict=True)), len(self.target))

    def restricted(self, q: Probabilities) -> Probabilities:
        """The row in drafter ids, 0 for what the target lacks."""
        return relabel(q, {token: token for token in self.shared}, len(q))


Read: TypeAlias = Callable[[Model, Model, Tokens], Tokens | None]


@dataclass(frozen=True)
class Drafted:
    """One draft in the drafter's ids: the token, the row it was drawn from, the drafter's row."""

    dictionary: Dictionary
    token: int
    q: Probabilities
    row: Probabilities

    @property
    def target_id(self) -> int | None:
        """The token in target ids, None if T lacks it."""
        return self.dictionary.shared.get(self.token)


def mapped(drafted: Drafted) -> Draft:
    """Token and row in target ids, None for a token outside T."""
    return Draft(drafted.target_id, drafted.dictionary.moved(drafted.q))


def whole(dictionary: Dictionary, q: Probabilities) -> Probabilities | None:
    """The row to draw from in union: q itself."""
    return q


def confined(dictionary: Dictionary, q: Probabilities) -> Probabilities | None:
    """The row to draw from in TLI: q restricted to shared tokens, and renormalised."""
    shared = dictionary.restricted(q)
    return normalise(shared) if shared.any() else None


@dataclass(frozen=True)
class Drafting:
    """The drafting of union or TLI, replaceable part by part; a rule for `verified`.

    * `confine`: (dictionary, q) -> the row to draw from, or None to draft nothing; in drafter ids.
    * `translate`: Drafted -> what the verifier is given.
    * `read`: (target, drafter, context) -> the context in drafter ids, or None.
    * `remember`: Drafted -> the token that the drafter's context grows by.
    * `stop`: Drafted -> whether nothing is drafted after it.
    """

    confine: Callable[[Dictionary, Probabilities], Probabilities | None]
    translate: Callable[[Drafted], Draft] = mapped
    read: Read = union.read
    remember: Callable[[Drafted], int] = lambda drafted: drafted.token
    stop: Callable[[Drafted], bool] = lambda drafted: False

    def __call__(
        self, target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> list[Draft]:
        """Draft until `lookahead`, EOS, a token outside T, or no row to draw from."""
        dictionary = Dictionary(target.vocabulary, drafter.vocabulary)
        drafts: list[Draft] = []
        seen = self.read(target, drafter, context)
        for i in positions(0 if seen is None else lookahead):
            row = drafter.next_token(cast(Tokens, seen))
            q = self.confine(dictionary, row)
            if q is None:
                break
            drafted = Drafted(dictionary, chance.draw(q, f"draft[{i}]"), q, row)
            drafts.append(self.translate(drafted))
            if drafts[-1].token is None or drafter.vocabulary.ends((drafted.token,)):
                break
            if self.stop(drafted):
                break
            seen = (*cast(Tokens, seen), self.remember(drafted))
        return drafts


UNION = Drafting(whole)
TLI = Drafting(confined)


def guarded(drafting: Drafting) -> Step:
    """A verification that survives a row in which the drafted token is impossible."""
    return verified(
        drafting,
        accept=lambda at: ratio(at.px, at.qx),
        recover=lambda at: residual_or_p(at.p, at.q),
    )


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
