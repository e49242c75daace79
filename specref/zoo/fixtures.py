"""Small exact model pairs, and the law of a completed block on them."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from specref.algorithms import Step
from specref.chance import Chance, exact_distribution
from specref.distributions import Probability, total_variation
from specref.models import Model, hashed_model, iid_model, markov_model
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo.entry import Entry


@dataclass(frozen=True)
class Fixture:
    """A target, a drafter with the same vocabulary, and a lookahead, all exact."""

    name: str
    target: Model
    drafter: Model
    lookahead: int

    def output(self, step: Step) -> dict[Tokens, Probability]:
        """The law of a block completed by the target to lookahead + 1 tokens, or EOS.

        Raises
        ------
        ValueError
            A block is longer, or as `exact_distribution`.
        """

        def run(chance: Chance) -> Tokens:
            return tuple(step(self.target, self.drafter, (), self.lookahead, chance))

        law: dict[Tokens, Probability] = {}
        for block, weight in exact_distribution(run).items():
            for tokens, probability in self.continued(block).items():
                law[tokens] = law.get(tokens, 0) + weight * probability
        return law

    def continued(self, block: Tokens = ()) -> dict[Tokens, Probability]:
        """The law of `block` extended by the target; of the target's own text by default."""
        if len(block) > self.lookahead + 1:
            raise ValueError(f"block {block}: expected at most {self.lookahead + 1} tokens")

        def run(chance: Chance) -> Tokens:
            tokens = block
            while len(tokens) <= self.lookahead and not self.target.vocabulary.ends(tokens):
                row = self.target.next_token(tokens)
                tokens = (*tokens, chance.draw(row, f"target[{len(tokens)}]"))
            return tokens

        return exact_distribution(run)


def total_variation_on(entry: Entry, fixture: Fixture) -> Probability:
    """How far the completed block of an entry is from the target's own tokens, exactly."""
    return total_variation(fixture.output(entry.step), fixture.continued())


def _hashed(name: str, key: int, vocabulary: Vocabulary, lookahead: int) -> Fixture:
    target = hashed_model(vocabulary, f"{name} target {key}")
    return Fixture(name, target, hashed_model(vocabulary, f"{name} drafter {key}"), lookahead)


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
FIXTURES: Mapping[str, Fixture] = MappingProxyType(
    {
        fixture.name: fixture
        for fixture in (
            _m(),
            _c(),
            _hashed("wide", 939, Vocabulary("abcde"), 2),
            _hashed("deep", 44, Vocabulary("abc"), 3),
            _hashed("eos", 10, Vocabulary(["a", "b", "c", "</s>"], eos="</s>"), 2),
        )
    }
)
