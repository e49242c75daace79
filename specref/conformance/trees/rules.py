"""The rules of tree verification that may be declared, and what each does at a place, exactly."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from types import MappingProxyType

from specref.algorithms import traversal, trees
from specref.chance import Chance
from specref.conformance.trees.nodes import Verify
from specref.conformance.trees.places import Grove, TreePlace, grown
from specref.losslessness.lazy import Enumerator, ReadableModel
from specref.models import Model
from specref.vocabulary import Tokens

RULES: Mapping[str, Verify] = MappingProxyType(
    {"topdown": trees.verify, "traversal": traversal.verify}
)
MAX_PATHS = 100_000


@dataclass(frozen=True)
class Planted:
    """A step with right drafts and this verification, for the tree of a place.

    Examples
    --------
    >>> from specref.chance import Replayed
    >>> from specref.conformance.trees.places import grown
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> model = iid_model(Vocabulary("ab"), [0.5, 0.5])
    >>> Planted(trees.verify)(model, model, (), 1, Replayed([0, 1, 1]), place=grown((), (1,)))
    (0, 1)
    """

    verify: Verify

    def __call__(
        self,
        target: Model,
        drafter: Model,
        context: Tokens,
        lookahead: int,
        chance: Chance,
        *,
        place: TreePlace | None = None,
    ) -> Tokens:
        """One iteration; by default with two siblings at each depth."""
        where = place or grown(context, (2,) * lookahead)
        return self.verify(target, context, where.tree(drafter, chance), chance)


@cache
def law(grove: Grove, place: TreePlace, rule: str) -> Mapping[Tokens, float]:
    """The law of the block that a rule emits at a place.

    Examples
    --------
    >>> from specref.conformance.trees.places import GROVES
    >>> grove = GROVES["likeliest"]
    >>> round(sum(law(grove, grove.places[0], "traversal").values()), 12)
    1.0
    """
    target, drafter = ReadableModel(grove.target), ReadableModel(grove.drafter)
    step = partial(Planted(RULES[rule]), place=place)
    found = Enumerator(MAX_PATHS).law(step, target, drafter, place.context, place.lookahead)
    return {block: float(weight) for block, weight in found.items()}


def lengths(grove: Grove, place: TreePlace, rule: str) -> tuple[float, ...]:
    """The probability of a block of 1, 2, … tokens; an EOS ends it.

    Examples
    --------
    >>> from specref.conformance.trees.places import GROVES
    >>> grove = GROVES["siblings"]
    >>> [[round(x, 3) for x in lengths(grove, grove.places[0], rule)] for rule in RULES]
    [[0.333, 0.248, 0.419], [0.333, 0.133, 0.533]]
    """
    counted = [0.0] * (place.lookahead + 1)
    for block, weight in law(grove, place, rule).items():
        counted[len(block) - 1] += weight
    return tuple(counted)
