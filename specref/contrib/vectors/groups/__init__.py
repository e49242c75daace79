"""Cases of the published vectors, as they are written down: exact laws, drafts, coins, places.

The modules here hold them in groups, one for each question.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from specref.models import Model
from specref.vocabulary import Tokens, Vocabulary

Row: TypeAlias = tuple[Fraction, ...]
NO_DRAFT = -1


def row(text: str) -> Row:
    """A law of fractions with spaces between them."""
    return tuple(map(Fraction, text.split()))


@dataclass(frozen=True)
class Coins:
    """All randomness of one verification, as doubles.

    * `accept`: A uniform in [0, 1) for each place of a draft.
    * `final`: A uniform in [0, 1) for the last token.
    * `race`: Noise for each token, for those who draw the last one by a race: positive, or 0.
      Groups name it where it matters.
    """

    accept: tuple[float, ...]
    final: float
    race: tuple[float, ...] = ()


@dataclass(frozen=True)
class VerifyCase:
    """Laws, drafts and coins: what one row of a rejection sampler is given.

    * `rule`: One with `verify`.
    * `p`: K + 1 laws of the target.
    * `q`: K laws of the drafter. None: every draft is certain.
    * `drafts`: K draft tokens; -1 after the last.
    """

    id: str
    rule: str
    comment: str
    cites: tuple[str, ...]
    p: tuple[Row, ...]
    q: tuple[Row, ...] | None
    drafts: Tokens
    coins: Coins

    @property
    def drafted(self) -> Tokens:
        """The drafts that exist."""
        return tuple(token for token in self.drafts if token != NO_DRAFT)

    @property
    def laws(self) -> tuple[Row, ...]:
        """q, or certain laws in its place."""
        if self.q is not None:
            return self.q
        tokens = range(len(self.p[0]))
        return tuple(tuple(Fraction(t == draft) for t in tokens) for draft in self.drafts)


@dataclass(frozen=True)
class Toy:
    """A model over a toy vocabulary: one law, or one for each last token.

    * `rows`: {last token of the context: law}, None for the empty context; None alone: any
      context.
    """

    tokens: tuple[str, ...]
    rows: Mapping[int | None, Row]
    eos: str | None = None

    @property
    def order(self) -> int:
        """How many tokens of its context the model looks at."""
        return int(len(self.rows) > 1)

    def model(self) -> Model:

        def next_token(context: Tokens) -> Row:
            return self.rows[context[-1] if context and self.order else None]

        return Model(Vocabulary(self.tokens, self.eos), next_token)


@dataclass(frozen=True)
class StepCase:
    """Two models and a context: what one iteration of an algorithm is given."""

    id: str
    algorithm: str
    comment: str
    cites: tuple[str, ...]
    target: Toy
    drafter: Toy
    context: Tokens
    lookahead: int


Case: TypeAlias = VerifyCase | StepCase
