"""Small exact model pairs, and the law of a completed block on them."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from specref.algorithms import Step
from specref.chance import Chance, exact_distribution
from specref.distributions import Probability, total_variation
from specref.models import Model, hashed_model, iid_model, markov_model
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo.entry import Entry

Law = dict[Tokens, Probability]


@dataclass(frozen=True)
class Fixture:
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
    """

    name: str
    target: Model
    drafter: Model
    lookahead: int
    context: Tokens = ()
    longest: int | None = None
    plain: Model | None = None

    @property
    def reference(self) -> Model:
        """The model whose text is the right one."""
        return self.plain or self.target

    @property
    def length(self) -> int:
        """How many tokens a completed block has, if EOS does not end it."""
        return self.longest or self.lookahead + 1

    def blocks(self, step: Step) -> Law:
        """The law of one block of a step."""

        def run(chance: Chance) -> Tokens:
            return tuple(step(self.target, self.drafter, self.context, self.lookahead, chance))

        return exact_distribution(run)

    def output(self, step: Step) -> Law:
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
        law: Law = {}
        shorter = dict(blocks)
        while shorter:
            block = min(shorter, key=len)
            weight = shorter.pop(block)
            if len(block) > self.length:
                raise ValueError(f"block {block}: expected at most {self.length} tokens")
            if len(block) == self.length or self.reference.vocabulary.ends(block):
                law[block] = law.get(block, 0) + weight
                continue
            for token, p in enumerate(self.reference.next_token((*self.context, *block))):
                if p > 0:
                    shorter[*block, token] = shorter.get((*block, token), 0) + weight * p
        return law


def total_variation_on(entry: Entry, fixture: Fixture) -> Probability:
    """How far the completed block of an entry is from the target's own tokens, exactly."""
    return total_variation(fixture.output(entry.step), fixture.continued())


def by_name(*fixtures: Fixture) -> Mapping[str, Fixture]:
    """A read-only {name: fixture}."""
    return MappingProxyType({fixture.name: fixture for fixture in fixtures})


def hashed_pair(
    name: str, key: int, target: Vocabulary, drafter: Vocabulary
) -> tuple[Model, Model]:
    """A target and a drafter with pseudo-random rows."""
    return hashed_model(target, f"{name} target {key}"), hashed_model(
        drafter, f"{name} drafter {key}"
    )


def _hashed(name: str, key: int, vocabulary: Vocabulary, lookahead: int) -> Fixture:
    return Fixture(name, *hashed_pair(name, key, vocabulary, vocabulary), lookahead)


def _m() -> Fixture:
    vocabulary = Vocabulary("abcd")
    target = iid_model(vocabulary, ["5/12", "1/6", "1/12", "1/3"])
    return Fixture("m", target, iid_model(vocabulary, ["1/12", "1/6", "1/2", "1/4"]), 1)


def _c() -> Fixture:
    vocabulary = Vocabulary("abc")
    target = markov_model(
        vocabulary,
        ["1/3", "1/3", "1/3"],
        [["1/2", "1/2", 0], ["1/6", "1/2", "1/3"], ["1/3", "2/3", 0]],
    )
    drafter = markov_model(
        vocabulary,
        ["1/6", "2/3", "1/6"],
        [["2/3", "1/3", 0], ["5/6", 0, "1/6"], ["1/2", "1/3", "1/6"]],
    )
    return Fixture("c", target, drafter, 2)


# The keys were found by search: rows with p = q, zeros on either side, ratios above 1 after
# ratios below 1, residuals of three tokens ("wide", "eos"), an EOS of real mass ("eos").
FIXTURES: Mapping[str, Fixture] = by_name(
    _m(),
    _c(),
    _hashed("wide", 939, Vocabulary("abcde"), 2),
    _hashed("deep", 44, Vocabulary("abc"), 3),
    _hashed("eos", 10, Vocabulary(["a", "b", "c", "</s>"], eos="</s>"), 2),
)
