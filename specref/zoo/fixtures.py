"""Small exact model pairs, and the law of a completed block on them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from specref.chance import Chance, exact_distribution
from specref.distributions import Probability
from specref.laws import Law, completed
from specref.models import Model, hashed_model, iid_model
from specref.pairs import order_one
from specref.vocabulary import Tokens, Vocabulary


@dataclass(frozen=True)
class ExactFixture:
    """A target, a drafter, a context and a lookahead, all exact.

    Attributes
    ----------
    name : str
    target, drafter : Model
        What a step is given.
    lookahead : int
    context : tuple of int
        Target token ids.
    longest : int, optional
        How many tokens a completed block has; lookahead + 1 by default. Steps that draft
        text need more.
    plain : Model, optional
        What plain sampling draws from, if that is not the target's own row.
    options : mapping
        What a step is told besides: {keyword: value}.
    """

    name: str
    target: Model
    drafter: Model
    lookahead: int
    context: Tokens = ()
    longest: int | None = None
    plain: Model | None = None
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def reference(self) -> Model:
        """The model whose law the text should have."""
        return self.plain or self.target

    @property
    def length(self) -> int:
        """How many tokens a completed block has, if EOS does not end it."""
        return self.longest or self.lookahead + 1

    def blocks(self, step: Callable[..., Tokens]) -> Law:
        """The law of one block of a step, which is told the options of the pair."""

        def run(chance: Chance) -> Tokens:
            case = self.target, self.drafter, self.context, self.lookahead
            return tuple(step(*case, chance, **self.options))

        return exact_distribution(run)

    def output(self, step: Callable[..., Tokens]) -> Law:
        """The law of a block completed by the target to `length` tokens, or EOS.

        Raises
        ------
        ValueError
            A block is longer, or as `exact_distribution`.
        """
        return self.completed(self.blocks(step))

    def continued(self, block: Tokens = ()) -> Law:
        """The law of `block` extended by the target; of the target's own text by default."""
        return self.completed({block: Fraction(1)})

    def completed(self, blocks: Mapping[Tokens, Probability]) -> Law:
        """Every block extended by the target to `length` tokens, or EOS."""
        return completed(blocks, self.reference, self.context, self.length)


def by_name(*fixtures: ExactFixture) -> Mapping[str, ExactFixture]:
    """A read-only {name: fixture}."""
    return MappingProxyType({fixture.name: fixture for fixture in fixtures})


def hashed_fixture(
    name: str,
    key: int,
    target: Vocabulary,
    drafter: Vocabulary | None,
    lookahead: int,
    context: Tokens = (),
    longest: int | None = None,
) -> ExactFixture:
    """A target and a drafter with pseudo-random rows; None: the drafter has the same tokens."""
    p = hashed_model(target, f"{name} target {key}")
    q = hashed_model(drafter or target, f"{name} drafter {key}")
    return ExactFixture(name, p, q, lookahead, context, longest)


# The keys were found by search: rows with p = q, zeros on either side, ratios above 1 after
# ratios below 1, residuals of three tokens ("wide", "eos"), an EOS of real mass ("eos").
FIXTURES: Mapping[str, ExactFixture] = by_name(
    ExactFixture(
        "m",
        iid_model(Vocabulary("abcd"), ["5/12", "1/6", "1/12", "1/3"]),
        iid_model(Vocabulary("abcd"), ["1/12", "1/6", "1/2", "1/4"]),
        1,
    ),
    ExactFixture("c", *order_one(Vocabulary("abc")), 2),
    hashed_fixture("wide", 939, Vocabulary("abcde"), None, 2),
    hashed_fixture("deep", 44, Vocabulary("abc"), None, 3),
    hashed_fixture("eos", 10, Vocabulary(["a", "b", "c", "</s>"], eos="</s>"), None, 2),
)
