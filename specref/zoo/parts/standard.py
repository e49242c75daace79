"""Standard speculative decoding in parts. With no part replaced it is `standard.step`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from specref.algorithms import standard
from specref.algorithms.decoding import Step
from specref.algorithms.lookahead import positions
from specref.algorithms.standard import Draft
from specref.chance import Chance
from specref.distributions import (
    Probabilities,
    Probability,
    corrected,
    residual,
    with_temperature,
)
from specref.models import Model
from specref.vocabulary import Tokens


@dataclass(frozen=True)
class Position:
    """Position i of a verification, with everything a sampler could misread there.

    Position n, after the last draft, is where the bonus token is drawn: it has a p and a q
    (the drafter's own next row), and no token.
    """

    target: Model
    drafter: Model
    context: Tokens
    drafts: Sequence[Draft]
    chance: Chance
    i: int = 0

    def to(self, i: int) -> "Position":
        """Another position, clamped to 0 … n."""
        i = max(0, min(i, len(self.drafts)))
        return Position(self.target, self.drafter, self.context, self.drafts, self.chance, i)

    @property
    def next(self) -> "Position":
        return self.to(self.i + 1)

    @property
    def previous(self) -> "Position":
        return self.to(self.i - 1)

    @property
    def last(self) -> "Position":
        return self.to(len(self.drafts))

    @property
    def before(self) -> Tokens:
        """The drafted tokens before position i."""
        return tuple(cast(int, token) for token, _ in self.drafts[: self.i])

    @property
    def token(self) -> int:
        """The drafted token x."""
        return cast(int, self.drafts[self.i].token)

    @property
    def p(self) -> Probabilities:
        """The target's row, given the first i drafts."""
        return self.target.next_token((*self.context, *self.before))

    @property
    def q(self) -> Probabilities:
        """The declared law of draft i; at position n the drafter's next row."""
        if self.i < len(self.drafts):
            return self.drafts[self.i].q
        return self.drafter.next_token((*self.context, *self.before))

    @property
    def px(self) -> Probability:
        """The target's probability of the drafted token."""
        return cast(Probability, self.p[self.token])

    @property
    def qx(self) -> Probability:
        """The declared probability of the drafted token."""
        return cast(Probability, self.q[self.token])


@dataclass(frozen=True)
class Verification:
    """Submitted drafts, and the rules that decide on them."""

    first: Position
    accept: Callable[[Position], Probability]
    recover: Callable[[Position], Probabilities]
    bonus: Callable[[Position], Probabilities]

    @property
    def n(self) -> int:
        return len(self.first.drafts)

    def accepts(self, i: int) -> bool:
        """Accept draft i or not, at random; a None draft is rejected without asking chance."""
        at = self.first.to(i)
        if at.drafts[i].token is None:
            return False
        return at.chance.accept(self.accept(at), f"accept[{i}]")

    def recovered(self, i: int) -> int:
        """Draw the token that replaces draft i."""
        return self.first.chance.draw(self.recover(self.first.to(i)), "residual")

    def bonus_token(self) -> int:
        """Draw the token after the last draft."""
        return self.first.chance.draw(self.bonus(self.first.last), "bonus")

    def prefix(self) -> int:
        """How many drafts are accepted before the first rejection."""
        return next((i for i in range(self.n) if not self.accepts(i)), self.n)

    def block(self, accepted: int) -> Tokens:
        """The accepted drafts and the token after them, if they do not end with EOS."""
        tokens = self.first.to(accepted).before
        if accepted < self.n:
            return (*tokens, self.recovered(accepted))
        return tokens if self.ends(tokens) else (*tokens, self.bonus_token())

    def ends(self, tokens: Tokens) -> bool:
        """Whether tokens end with EOS."""
        return self.first.target.vocabulary.ends(tokens)

    def until_eos(self, tokens: Tokens) -> Tokens:
        """The tokens up to the first EOS."""
        ends = (k for k in range(1, len(tokens)) if self.ends(tokens[:k]))
        return tokens[: next(ends, len(tokens))]


Propose: TypeAlias = Callable[[Probabilities, Chance, str], Draft]
Stop: TypeAlias = Callable[[list[Draft], Chance], bool]
DraftRule: TypeAlias = Callable[[Model, Model, Tokens, int, Chance], list[Draft]]


def sampled(q: Probabilities, chance: Chance, site: str) -> Draft:
    """A token drawn from q, declared as such."""
    return Draft(chance.draw(q, site), q)


def acceptance(at: Position) -> Probability:
    """min(1, p / q) of the drafted token."""
    return standard.acceptance(at.p, at.q, at.token)


def speculative(
    *,
    propose: Propose = sampled,
    stop: Stop = lambda drafts, chance: False,
    submit: Callable[[list[Draft]], list[Draft]] = lambda drafts: drafts,
    accept: Callable[[Position], Probability] = acceptance,
    recover: Callable[[Position], Probabilities] = lambda at: corrected(at.p, at.q),
    bonus: Callable[[Position], Probabilities] = lambda at: at.p,
    verify: Callable[[Verification], Tokens] = lambda v: v.block(v.prefix()),
) -> Step:
    """A step of speculative decoding in which some parts are replaced.

    Parameters
    ----------
    propose : callable
        (q, chance, site) -> Draft: draw a token, and declare the distribution it came from.
    stop : callable
        (drafts, chance) -> bool: whether to stop early; asked between two drafts.
    submit : callable
        drafts -> drafts: what the verifier is given.
    accept, recover, bonus, verify : callable
        As `verified`.

    Returns
    -------
    callable
        A step with the signature, sites and errors of `standard.step`.

    Examples
    --------
    >>> from specref import Vocabulary, exact_distribution
    >>> from specref.models import iid_model
    >>> target = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
    >>> drafter = iid_model(Vocabulary("ab"), ["3/4", "1/4"])
    >>> always = speculative(accept=lambda at: 1, bonus=lambda at: at.q)
    >>> exact_distribution(lambda chance: always(target, drafter, (), 1, chance))[0, 0]
    Fraction(9, 16)
    """

    def drafts(
        target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> list[Draft]:
        if target.vocabulary.tokens != drafter.vocabulary.tokens:
            raise ValueError("drafter has another vocabulary than target")
        return submit(draft(drafter, context, lookahead, chance, propose, stop))

    return verified(drafts, accept=accept, recover=recover, bonus=bonus, verify=verify)


def verified(
    drafts: DraftRule,
    *,
    accept: Callable[[Position], Probability] = acceptance,
    recover: Callable[[Position], Probabilities] = lambda at: corrected(at.p, at.q),
    bonus: Callable[[Position], Probabilities] = lambda at: at.p,
    verify: Callable[[Verification], Tokens] = lambda v: v.block(v.prefix()),
) -> Step:
    """A step with a drafting rule of its own, for any two vocabularies.

    * `drafts`: (target, drafter, context, lookahead, chance) -> list of Draft, in target ids.
    * `accept`: Position -> probability that the draft there is accepted.
    * `recover`, `bonus`: Position -> distribution of the token that replaces a rejected draft, or
      that follows the last one.
    * `verify`: Verification -> block: the order in which the three are asked.

    >>> from specref import Vocabulary, exact_distribution
    >>> from specref.algorithms import union
    >>> from specref.models import iid_model
    >>> target = iid_model(Vocabulary("ab"), ["2/3", "1/3"])
    >>> drafter = iid_model(Vocabulary("abc"), ["1/3", "1/3", "1/3"])
    >>> step = verified(union.draft)
    >>> exact_distribution(lambda chance: step(target, drafter, (), 1, chance))[0, 0]
    Fraction(2, 9)
    """

    def step(
        target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> Tokens:
        submitted = drafts(target, drafter, context, lookahead, chance)
        first = Position(target, drafter, context, submitted, chance)
        return verify(Verification(first, accept, recover, bonus))

    return step


def draft(
    drafter: Model, context: Tokens, lookahead: int, chance: Chance, propose: Propose, stop: Stop
) -> list[Draft]:
    """Draft up to `lookahead` tokens, EOS, a None draft, or an early stop."""
    drafts: list[Draft] = []
    for i in positions(lookahead):
        if drafts and stop(drafts, chance):
            break
        token, q = propose(drafter.next_token(context), chance, f"draft[{i}]")
        drafts.append(Draft(token, q))
        if token is None or drafter.vocabulary.ends((token,)):
            break
        context = (*context, token)
    return drafts


def argmax(p: Probabilities) -> Probabilities:
    """All mass on the likeliest token."""
    return with_temperature(p, 0)


def one_hot(token: int, like: Probabilities) -> Probabilities:
    """All mass on one token."""
    vector: Probabilities = like * 0
    vector[token] += 1
    return vector


def ratio(numerator: Probability, denominator: Probability) -> Probability:
    """min(1, a / b) as floating point has it: a / 0 accepts, 0 / 0 is NaN and rejects."""
    if denominator == 0:
        return int(numerator > 0)
    return 1 if numerator >= denominator else numerator / denominator


def residual_or_p(p: Probabilities, q: Probabilities) -> Probabilities:
    """The residual, or p where it would be 0 / 0: the usual guard in samplers."""
    return residual(p, q) if (p > q).any() else p
