"""Union and TLI in parts: what is drafted in the drafter's ids, and how it becomes target ids."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

from specref.algorithms import union
from specref.algorithms.decoding import Step
from specref.algorithms.lookahead import positions
from specref.algorithms.standard import Draft
from specref.chance import Chance
from specref.distributions import Probabilities, normalise, relabel
from specref.models import Model
from specref.vocabulary import Tokens, Vocabulary, intersection
from specref.zoo.parts.standard import ratio, residual_or_p, verified


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
