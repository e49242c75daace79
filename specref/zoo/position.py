"""What the parts of a speculative step are shown: a position, and the verification around it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from specref.algorithms.standard import Draft
from specref.chance import Chance
from specref.distributions import Probabilities, Probability
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
        return replace(self, i=max(0, min(i, len(self.drafts))))

    @property
    def next(self) -> "Position":
        """Position i + 1."""
        return self.to(self.i + 1)

    @property
    def previous(self) -> "Position":
        """Position i - 1."""
        return self.to(self.i - 1)

    @property
    def last(self) -> "Position":
        """Position n."""
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
    """What is left to decide once the drafts are submitted."""

    first: Position
    accept: Callable[[Position], Probability]
    recover: Callable[[Position], Probabilities]
    bonus: Callable[[Position], Probabilities]

    @property
    def n(self) -> int:
        """How many drafts were submitted."""
        return len(self.first.drafts)

    def accepts(self, i: int) -> bool:
        """Toss the coin of draft i; a None draft is rejected without one."""
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
