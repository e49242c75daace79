"""What is known of a rule of verification: a row of the table of all.

Each rule has a `step`. What else there is of it is optional: a closed form of what is accepted, a
verification of drafts that are given. Where a part is asked for that a rule lacks, it is reported
as not applicable.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from specref.algorithms.decoding import Step
from specref.algorithms.standard import Draft
from specref.algorithms.trees import topdown
from specref.chance import Chance
from specref.distributions import Probabilities, Probability
from specref.models import Model
from specref.theory import acceptance
from specref.vocabulary import Tokens

Vocabularies: TypeAlias = Literal["one", "two", "two by text"]
CoinOrder: TypeAlias = Literal["token by token", "jointly"]
First: TypeAlias = Callable[[Probabilities, Probabilities], Probability]
Verify: TypeAlias = Callable[[Model, Tokens, list[Draft], Chance], Tokens]


class Lengths(Protocol):
    """A closed form: P(accepted length = 0), P(= 1), … of one iteration."""

    def __call__(
        self, target: Model, drafter: Model, context: Tokens = (), lookahead: int = 1
    ) -> tuple[Probability, ...]:
        """As far as it is positive."""
        ...


@dataclass(frozen=True)
class Rule:
    """A rule of verification, with whatever it drafts by.

    Attributes
    ----------
    name : str
        What it is called everywhere.
    papers : tuple of str
        Where it is from, with numbers of algorithms.
    step : callable
        One iteration, as all of them: `step(target, drafter, context, lookahead, chance)`.
    vocabularies : {"one", "two", "two by text"}
        Whether the draft model has the target's vocabulary; if not, whether each has to read the
        other's text.
    restricts : bool
        Whether the draft model never drafts what the target lacks, but draws from the rest of q,
        renormalised.
    accepts_equals : bool
        Whether a draft that is verified is accepted at every position where p = q.
    accepted_lengths : callable, optional
        `(target, drafter, context, lookahead)` -> P(number of accepted tokens = 0), P(= 1), ….
    accepts_first : callable, optional
        (p, q) -> the probability that a draft of the first position is accepted; for rules
        without `accepted_lengths`.
    sampled : bool
        Whether the main job draws blocks of it by the million, too.
    verify : callable, optional
        (target, context, drafts, chance) -> block, for drafts over the target's vocabulary that
        are given: what samplers of the contract ``verify`` do.
    coins : {"token by token", "jointly"}, optional
        How `verify` decides by one random number for each draft: it keeps drafts up to the first
        random number that fails, or up to the last that succeeds.
    verify_tree : callable, optional
        (target, context, tree, chance) -> block. Drafts of such a rule form a tree.
    draws_from_q : bool
        Whether a position has one draft, drawn from the draft model's distribution. No lossless
        rule keeps the first of such drafts more often than sum min(p, q).
    vectors : bool
        Whether test vectors of it are published; they cite its first paper.
    lossless : bool
        False for one that is published, and refuted.
    formula : str
        The probability `A` that what is drafted up to a position is accepted, as lines of Python;
        its page typesets them. `A` is 1 before the first position. p and q map a token to its
        probability, x is the draft token of the position, or x_1 and x_2 or S are its siblings.
    when : str
        When to use it.
    differs : str
        What differs from the paper; empty if nothing does.
    printed : tuple of str
        Entries of `specref.zoo` that run what its paper prints, to the letter.
    """

    name: str
    papers: tuple[str, ...]
    step: Step
    vocabularies: Vocabularies = "one"
    restricts: bool = False
    accepts_equals: bool = False
    accepted_lengths: Lengths | None = None
    accepts_first: First | None = None
    sampled: bool = False
    verify: Verify | None = None
    coins: CoinOrder | None = None
    verify_tree: topdown.Verify | None = None
    draws_from_q: bool = True
    vectors: bool = False
    lossless: bool = True
    formula: str = ""
    when: str = ""
    differs: str = ""
    printed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.verify is None) != (self.coins is None):
            raise ValueError(f"coins = {self.coins!r}: expected with `verify`, and only then")

    @property
    def tree(self) -> bool:
        """Whether drafts form a tree."""
        return self.verify_tree is not None

    @property
    def same_vocabulary(self) -> bool:
        """Whether it is for draft models with the target's vocabulary alone."""
        return self.vocabularies == "one"

    @property
    def by_text(self) -> bool:
        """Whether target and draft model have to read each other's text."""
        return self.vocabularies == "two by text"

    def acceptance_rate(
        self, target: Model, drafter: Model, context: Tokens = (), lookahead: int = 1
    ) -> Probability:
        """The probability that the first submitted token is accepted, in closed form.

        0 where nothing can be submitted: an empty intersection, lookahead 0. Any other lookahead
        matters for rules by text alone.

        Raises
        ------
        ValueError
            No closed form is known; or models, context or lookahead are bad.

        Examples
        --------
        >>> from specref.models import iid_model
        >>> from specref.rules import RULES
        >>> from specref.vocabulary import Vocabulary
        >>> target = iid_model(Vocabulary("ab"), ["2/3", "1/3"])
        >>> drafter = iid_model(Vocabulary("abc"), ["1/3", "1/3", "1/3"])
        >>> [str(RULES[name].acceptance_rate(target, drafter)) for name in ("union", "tli")]
        ['2/3', '5/6']
        """
        return acceptance.rate(self._lengths(target, drafter, context, lookahead))

    def acceptance_by_position(
        self, target: Model, drafter: Model, context: Tokens = (), lookahead: int = 1
    ) -> tuple[Probability, ...]:
        """The probability of each acceptance given the earlier ones, while it is positive.

        Errors as `acceptance_rate`.

        Examples
        --------
        >>> from specref.models import iid_model
        >>> from specref.rules import RULES
        >>> from specref.vocabulary import Vocabulary
        >>> vocabulary = Vocabulary("ab")
        >>> p, q = iid_model(vocabulary, ["1/3", "2/3"]), iid_model(vocabulary, ["2/3", "1/3"])
        >>> RULES["standard"].acceptance_by_position(p, q, lookahead=2)
        (Fraction(2, 3), Fraction(2, 3))
        """
        return acceptance.by_position(self._lengths(target, drafter, context, lookahead))

    def _lengths(
        self, target: Model, drafter: Model, context: Tokens, lookahead: int
    ) -> tuple[Probability, ...]:
        if self.accepted_lengths is None:
            raise ValueError(
                f"rule {self.name!r}: no closed form of the number of accepted tokens is known"
            )
        return self.accepted_lengths(target, drafter, context, lookahead)
