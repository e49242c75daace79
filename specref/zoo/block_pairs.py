"""Exact pairs on which block verification is told from its mutants, and what one is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from specref.algorithms import Step
from specref.distributions import Probability
from specref.models import iid_model
from specref.vocabulary import Vocabulary
from specref.zoo.block_parts import Drafting, drafted_text, drafted_tokens
from specref.zoo.entry import Described
from specref.zoo.fixtures import FIXTURES, Fixture, by_name


def memoryless(
    name: str, target: Vocabulary, p: Sequence[str], drafter: Vocabulary, q: Sequence[str]
) -> Fixture:
    """Two drafts, by models that ignore their context."""
    return Fixture(name, iid_model(target, p), iid_model(drafter, q), 2, longest=5)


AB, ABC, ABS = Vocabulary("ab"), Vocabulary("abc"), Vocabulary("ab$", eos="$")
TOKENS: Mapping[str, Fixture] = by_name(
    memoryless("coin", AB, ["1/3", "2/3"], AB, ["2/3", "1/3"]),
    *(FIXTURES[name] for name in ("m", "c", "deep", "eos")),
)
# Found by search: texts that end within others, so that END has mass; "ends" has EOS within words.
TEXTS: Mapping[str, Fixture] = by_name(
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


@dataclass(frozen=True, kw_only=True)
class BlockEntry(Described):
    """A rule that departs from block verification in one place.

    Attributes
    ----------
    rule : callable
        Drafting -> step.
    distances : mapping
        {pair: total variation of the completed block}; empty for a control. 0 where it survives.
    """

    rule: Callable[[Drafting], Step]
    distances: Mapping[str, Probability] = field(default_factory=dict)

    def step(self, fixture: Fixture) -> Step:
        """The rule, with drafts as the pair has them: tokens of the target, or text."""
        return self.rule(drafted_text if fixture.name in TEXTS else drafted_tokens)


def exactly(**distances: str) -> Mapping[str, Probability]:
    """Distances as fractions."""
    return {name: Fraction(distance) for name, distance in distances.items()}
