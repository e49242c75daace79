"""The exact laws of rules of tree verification at a place."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial

from specref.algorithms.trees.topdown import Verify
from specref.chance import Chance
from specref.contracts.tree.fixtures import TreeFixture, TreePlace, tree_place
from specref.models import Model
from specref.proofs.lazy import Enumerator, ReadableModel
from specref.rules import RULES, declarable
from specref.vocabulary import Tokens

MAX_PATHS = 100_000


@dataclass(frozen=True)
class TreeStep:
    """A step with correct drafts and a given verification, for the tree of a place.

    Examples
    --------
    >>> from specref.algorithms import topdown
    >>> from specref.chance import Replayed
    >>> from specref.contracts.tree.fixtures import tree_place
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> model = iid_model(Vocabulary("ab"), [0.5, 0.5])
    >>> step, place = TreeStep(topdown.verify), tree_place((), (1,))
    >>> step(model, model, (), 1, Replayed([0, 1, 1]), place=place)
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
        where = place or tree_place(context, (2,) * lookahead)
        return self.verify(target, context, where.tree(drafter, chance), chance)


def tree_step(rule: str) -> TreeStep:
    """The step of a rule of trees.

    Raises
    ------
    ValueError
        It is not a rule of trees.
    """
    verify = RULES[rule].verify_tree
    if verify is None:
        raise ValueError(f"rule = {rule!r}: expected one of {declarable(tree=True)}")
    return TreeStep(verify)


@cache
def law(fixture: TreeFixture, place: TreePlace, rule: str) -> Mapping[Tokens, float]:
    """The law of the block of a rule at a place.

    Examples
    --------
    >>> from specref.contracts.tree.fixtures import TREE_FIXTURES
    >>> fixture = TREE_FIXTURES["likeliest"]
    >>> round(sum(law(fixture, fixture.places[0], "traversal").values()), 12)
    1.0
    """
    target, drafter = ReadableModel(fixture.target), ReadableModel(fixture.drafter)
    step = partial(tree_step(rule), place=place)
    found = Enumerator(MAX_PATHS).law(step, target, drafter, place.context, place.lookahead)
    return {block: float(weight) for block, weight in found.items()}


def lengths(fixture: TreeFixture, place: TreePlace, rule: str) -> tuple[float, ...]:
    """The probability of a block of 1, 2, … tokens; an EOS ends it.

    Examples
    --------
    >>> from specref.contracts.tree.fixtures import TREE_FIXTURES
    >>> from specref.rules import declarable
    >>> fixture, rules = TREE_FIXTURES["siblings"], declarable(tree=True)
    >>> [[round(x, 3) for x in lengths(fixture, fixture.places[0], rule)] for rule in rules]
    [[0.333, 0.248, 0.419], [0.333, 0.133, 0.533]]
    """
    counted = [0.0] * (place.lookahead + 1)
    for block, weight in law(fixture, place, rule).items():
        counted[len(block) - 1] += weight
    return tuple(counted)
