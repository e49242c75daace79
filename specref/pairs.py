"""Toy pairs: the family of targets and drafters over which a rule is proved or refuted."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from specref.distributions import Row
from specref.models import Model, hashed_model, iid_model, markov_model, table_model, text_model
from specref.vocabulary import Tokens, Vocabulary

Profile: TypeAlias = Literal["quick", "standard", "thorough"]
LOOKAHEADS: dict[Profile, Sequence[int]] = {
    "quick": (1, 2),
    "standard": (1, 2, 3),
    "thorough": (1, 2, 3, 4),
}
SEEDED_PAIRS: dict[Profile, int] = {"quick": 10, "standard": 40, "thorough": 150}


@dataclass(frozen=True)
class Pair:
    """A target and a drafter to try a rule on.

    * `target`, `drafter`: With exact probabilities.
    * `contexts`: Contexts to start from, target ids.
    * `by_text`: Whether each tokeniser reads every text of the other: what SLEM and SLRS need.
    * `longest_lookahead`: Beyond it the joint law of a block gets too large to enumerate.
    """

    name: str
    target: Model
    drafter: Model
    contexts: tuple[Tokens, ...] = ((), (1, 0))
    by_text: bool = True
    longest_lookahead: int = 4

    @property
    def same_vocabulary(self) -> bool:
        """Whether both have the same tokens: what standard speculative decoding needs."""
        return self.target.vocabulary.tokens == self.drafter.vocabulary.tokens


@dataclass(frozen=True)
class Case:
    """A pair with a context to start from and a lookahead."""

    pair: Pair
    context: Tokens
    lookahead: int

    def __str__(self) -> str:
        return f"{self.pair.name}, context {self.context}, lookahead {self.lookahead}"


def cases(pairs: Sequence[Pair], profile: Profile) -> Iterator[Case]:
    """Every pair, lookahead and context of a profile, the smallest first."""
    by_size = sorted(pairs, key=lambda pair: len(pair.target.vocabulary))
    for lookahead in LOOKAHEADS[profile]:
        for pair in by_size:
            if lookahead <= pair.longest_lookahead:
                yield from (Case(pair, context, lookahead) for context in pair.contexts)


def toy_pairs(profile: Profile = "quick") -> tuple[Pair, ...]:
    """Equal, disjoint, nested and overlapping vocabularies; zeros, ties, point masses, EOS.

    * `profile` ({"quick", "standard", "thorough"}): The larger ones add pairs with pseudo-random
      rows, reproducible by name.
    """
    pairs = [*same_vocabulary_pairs(), *other_vocabulary_pairs()]
    three = Vocabulary("abc")
    pieces = Vocabulary(["a", "b", "ba"]), Vocabulary(["b", "a", "ab", "bb"])
    for seed in range(SEEDED_PAIRS[profile]):
        pairs.append(Pair(f"same vocabulary #{seed}", *_hashed(f"same {seed}", three)))
        pairs.append(Pair(f"two vocabularies #{seed}", *_hashed(f"other {seed}", *pieces)))
    return tuple(pairs)


def same_vocabulary_pairs() -> Iterator[Pair]:
    """Hand-made pairs whose drafter has the target's vocabulary."""
    two, three, four = Vocabulary("ab"), Vocabulary("abc"), Vocabulary("abcd")
    yield _iid("biased coin", two, ["1/2", "1/2"], ["3/4", "1/4"])
    yield _iid("swapped coin", two, ["1/3", "2/3"], ["2/3", "1/3"])
    p, q = ["5/12", "1/6", "1/12", "1/3"], ["1/12", "1/6", "1/2", "1/4"]
    yield _iid("four tokens", four, p, q)
    yield Pair("order 1, zeros", *order_one(three))
    yield Pair("equal", hashed_model(three, "equal"), hashed_model(three, "equal"))
    yield Pair("disjoint supports", *_disjoint_supports(four))
    yield Pair("point masses", *_point_masses(three))
    yield Pair("EOS", *_hashed("EOS", Vocabulary("abc", eos="c")))
    letters = Vocabulary("abrcd")
    one_back, memoryless = (text_model(letters, "abracadabra", order) for order in (1, 0))
    yield Pair("one text", one_back, memoryless, contexts=((),))


def other_vocabulary_pairs() -> Iterator[Pair]:
    """Pairs whose drafter has a vocabulary of its own."""
    two, three = Vocabulary("ab"), Vocabulary(["a", "b", "ab"])
    yield Pair("drafter nested", *_hashed("drafter nested", three, two))
    yield Pair("target nested", *_hashed("target nested", two, three))
    yield Pair("overlapping", *_hashed("overlapping", three, Vocabulary(["a", "b", "bb"])))
    yield Pair("reordered", *_hashed("reordered", three, Vocabulary(["ab", "b", "a"])))
    ends = Vocabulary(["a", "b", "$"], eos="$"), Vocabulary(["$", "ab", "a", "b"], eos="$")
    yield Pair("two vocabularies, EOS", *_hashed("EOS", *ends))
    mixed_case = Vocabulary(["a", "A", "b"]), Vocabulary("ab", normalise=str.lower)
    yield Pair("lower-casing drafter", *_hashed("lower", *mixed_case))
    merged = Vocabulary([" ", "b", " b"]), Vocabulary([" ", "b"], normalise=_merge_spaces)
    yield Pair("space-merging drafter", *_hashed("spaces", *merged))
    spelled, drafted = Vocabulary([*"abrcd", "abra"]), Vocabulary([*"abrcd", "ra"])
    texts = text_model(spelled, "abracadabra"), text_model(drafted, "cadabraabra")
    yield Pair("two texts", *texts, contexts=((),), longest_lookahead=2)
    abc, bcx, xy = Vocabulary("abc"), Vocabulary("bcx"), Vocabulary("xy")
    yield Pair("partly shared", *_hashed("partly", abc, bcx), by_text=False)
    yield Pair("disjoint vocabularies", *_hashed("disjoint", abc, xy), by_text=False)
    unshared = iid_model(Vocabulary("xa"), [1, 0])
    yield Pair("no mass shared", hashed_model(abc, "no mass"), unshared, by_text=False)
    half_shared = table_model(bcx, {(): [0, 0, 1]}, otherwise=["1/2", "1/2", 0])
    yield Pair("mass shared later", hashed_model(abc, "later"), half_shared, by_text=False)


def _hashed(
    key: str, target: Vocabulary, drafter: Vocabulary | None = None
) -> tuple[Model, Model]:
    return hashed_model(target, f"{key} p"), hashed_model(drafter or target, f"{key} q")


def _iid(name: str, vocabulary: Vocabulary, p: Row, q: Row) -> Pair:
    return Pair(name, iid_model(vocabulary, p), iid_model(vocabulary, q), contexts=((),))


def order_one(vocabulary: Vocabulary) -> tuple[Model, Model]:
    """Two models of three tokens that look one token back, each with zeros."""
    p = ["1/2", "1/2", 0], ["1/6", "1/2", "1/3"], ["1/3", "2/3", 0]
    q = ["2/3", "1/3", 0], ["5/6", 0, "1/6"], ["1/2", "1/3", "1/6"]
    target = markov_model(vocabulary, ["1/3", "1/3", "1/3"], p)
    return target, markov_model(vocabulary, ["1/6", "2/3", "1/6"], q)


def _disjoint_supports(vocabulary: Vocabulary) -> tuple[Model, Model]:
    low, high = ["1/3", "2/3", 0, 0], [0, 0, "1/4", "3/4"]
    target = markov_model(vocabulary, low, [low, high, low, high])
    return target, markov_model(vocabulary, high, [high, low, high, low])


def _point_masses(vocabulary: Vocabulary) -> tuple[Model, Model]:
    a, b, c = [1, 0, 0], [0, 1, 0], [0, 0, 1]
    target = markov_model(vocabulary, b, [b, c, ["1/2", 0, "1/2"]])
    return target, markov_model(vocabulary, b, [b, a, a])


def _merge_spaces(text: str) -> str:
    return re.sub(" +", " ", text)
