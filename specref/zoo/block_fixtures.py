"""Exact pairs on which block verification is told from its mutants."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from specref.models import iid_model
from specref.vocabulary import Vocabulary
from specref.zoo.fixtures import FIXTURES, ExactFixture, by_name


def memoryless(
    name: str, target: Vocabulary, p: Sequence[str], drafter: Vocabulary, q: Sequence[str]
) -> ExactFixture:
    """Two drafts, by models that ignore their context."""
    return ExactFixture(name, iid_model(target, p), iid_model(drafter, q), 2, longest=5)


AB, ABC, ABS = Vocabulary("ab"), Vocabulary("abc"), Vocabulary("ab$", eos="$")
TOKENS: Mapping[str, ExactFixture] = by_name(
    memoryless("coin", AB, ["1/3", "2/3"], AB, ["2/3", "1/3"]),
    *(FIXTURES[name] for name in ("m", "c", "deep", "eos")),
)
# Found by search: texts that end within others, so that END has mass; "ends" has EOS within words.
TEXTS: Mapping[str, ExactFixture] = by_name(
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
PAIRS: Mapping[str, ExactFixture] = MappingProxyType({**TOKENS, **TEXTS})
