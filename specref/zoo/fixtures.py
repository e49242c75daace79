"""Small exact model pairs, and the law of a completed block on them."""

from collections.abc import Callable, Mapping, Sequence
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
    """A target, a draft model, a context and a lookahead, all exact.

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
        What a step is told, too: {keyword: value}.
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
        """The model whose distribution the text should have."""
        return self.plain or self.target

    @property
    def length(self) -> int:
        """How many tokens a completed block has, if EOS does not end it."""
        return self.longest or self.lookahead + 1

    def blocks(self, step: Callable[..., Tokens]) -> Law:
        """The distribution of one block of a step, which is told the options of the pair."""

        def run(chance: Chance) -> Tokens:
            case = self.target, self.drafter, self.context, self.lookahead
            return tuple(step(*case, chance, **self.options))

        return exact_distribution(run)

    def output(self, step: Callable[..., Tokens]) -> Law:
        """The distribution of a block completed by the target to `length` tokens, or EOS.

        Raises
        ------
        ValueError
            A block is longer, or as `exact_distribution`.
        """
        return self.completed(self.blocks(step))

    def continued(self, block: Tokens = ()) -> Law:
        """The distribution of `block` extended by the target; by default, of the target's text."""
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
"""Pairs over one vocabulary."""

# The keys were found by search: as many mutants as possible show on a fixture, none of them
# with a total variation below 1/125, and the worst of them with as little as possible. On
# "overlap" and "ends" both models have mass on tokens that the other lacks.
TOKEN_FIXTURES: Mapping[str, ExactFixture] = by_name(
    hashed_fixture("permuted", 349, Vocabulary("abcd"), Vocabulary("cadb"), 2),
    hashed_fixture("overlap", 2567, Vocabulary("abcd"), Vocabulary("xcay"), 2),
    hashed_fixture(
        "ends",
        740,
        Vocabulary(["a", "b", "c", "$"], eos="$"),
        Vocabulary(["$", "x", "c", "a"], eos="$"),
        2,
    ),
)
"""Pairs for drafts that are mapped by token."""
TEXT_FIXTURES: Mapping[str, ExactFixture] = by_name(
    hashed_fixture(
        "pieces", 88, Vocabulary(["a", "b", "ab"]), Vocabulary(["b", "a", "ba"]), 2, (), 5
    ),
    hashed_fixture("letters", 7, Vocabulary(["a", "ab", "b"]), Vocabulary(["b", "a"]), 3),
    hashed_fixture("unread", 3, Vocabulary(["a", "ab", "b"]), Vocabulary(["b", "a"]), 1, (0, 2)),
    hashed_fixture(
        "text end",
        178,
        Vocabulary(["a", "b", "ab", "$"], eos="$"),
        Vocabulary(["$", "a", "b"], eos="$"),
        2,
    ),
)
"""Pairs for drafts that are read as text."""


def memoryless(
    name: str, target: Vocabulary, p: Sequence[str], drafter: Vocabulary, q: Sequence[str]
) -> ExactFixture:
    """Two drafts, by models that ignore their context."""
    return ExactFixture(name, iid_model(target, p), iid_model(drafter, q), 2, longest=5)


AB, ABC, ABS = Vocabulary("ab"), Vocabulary("abc"), Vocabulary("ab$", eos="$")
BLOCK_TOKENS: Mapping[str, ExactFixture] = by_name(
    memoryless("coin", AB, ["1/3", "2/3"], AB, ["2/3", "1/3"]),
    *(FIXTURES[name] for name in ("m", "c", "deep", "eos")),
)
# Found by search: texts that end within others, so that END has mass; "ends" has EOS within words.
BLOCK_TEXTS: Mapping[str, ExactFixture] = by_name(
    memoryless(
        "spelled",
        ABC,
        ["1/6", "1/2", "1/3"],
        Vocabulary(["a", "b", "c", "bc"]),
        ["1/3", "1/3", "1/6", "1/6"],
    ),
    memoryless(
        "ends",
        ABS,
        ["1/3", "1/3", "1/3"],
        Vocabulary(["$", "a", "b", "b$", "a$"], eos="$"),
        ["1/6", "1/6", "5/12", "1/12", "1/6"],
    ),
)
BLOCK_PAIRS: Mapping[str, ExactFixture] = MappingProxyType({**BLOCK_TOKENS, **BLOCK_TEXTS})
"""Pairs on which block verification is told from its mutants."""
