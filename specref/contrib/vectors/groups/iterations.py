"""Groups of whole iterations: two toy models, and other contexts and lookaheads."""

from dataclasses import dataclass
from typing import get_args

from specref.contrib.vectors.groups import Toy, row
from specref.rule import Vocabularies
from specref.rules import RULES
from specref.vocabulary import Tokens


def _published(vocabularies: Vocabularies) -> tuple[str, ...]:
    rules = (rule for rule in RULES.values() if rule.vectors)
    return tuple(rule.name for rule in rules if rule.vocabularies == vocabularies)


ONE_VOCABULARY, BY_TOKEN, BY_TEXT = map(_published, get_args(Vocabularies))
ALL = (*BY_TOKEN, *BY_TEXT)


@dataclass(frozen=True)
class StepGroup:
    """Two models, and a case for each (context, lookahead): add at the end, places are ids."""

    slug: str
    comment: str
    target: Toy
    drafter: Toy
    places: tuple[tuple[Tokens, int], ...]
    algorithms: tuple[str, ...]


def toy(tokens: str, *rows: str, eos: str | None = None) -> Toy:
    """A toy model: one law, or the law of the start and those after each token."""
    first, *others = map(row, rows)
    return Toy(tuple(tokens.split()), {None: first, **dict(enumerate(others))}, eos)


START, THREE = (((), 1), ((), 2)), (((), 1), ((), 2), ((), 3))
AB, ABC = "a b", "a b c"
ORDER_ONE = toy(ABC, "1/3 1/3 1/3", "1/2 1/2 0/1", "1/6 1/2 1/3", "1/3 2/3 0/1")
ORDER_ONE_DRAFTER = toy(ABC, "1/6 2/3 1/6", "2/3 1/3 0/1", "5/6 0/1 1/6", "1/2 1/3 1/6")
EOS = toy("a b $", "1/2 1/4 1/4", "1/4 1/4 1/2", "1/2 0/1 1/2", "1/1 0/1 0/1", eos="$")
EOS_DRAFTER = toy("a b $", "1/4 1/4 1/2", "1/2 1/4 1/4", "1/3 1/3 1/3", "1/1 0/1 0/1", eos="$")
EOS_MOVED = toy("$ b a", "1/2 1/4 1/4", "1/1 0/1 0/1", "1/3 1/3 1/3", "1/4 1/4 1/2", eos="$")
MERGES = toy("a b ab", "1/4 1/4 1/2")


SAME = (
    StepGroup(
        "step-swapped-coin",
        "Two tokens, p and q swapped.",
        toy(AB, "1/3 2/3"),
        toy(AB, "2/3 1/3"),
        THREE,
        ONE_VOCABULARY,
    ),
    StepGroup(
        "step-order-one",
        "Laws depend on the last token, and have zeros on either side.",
        ORDER_ONE,
        ORDER_ONE_DRAFTER,
        (((), 1), ((), 2), ((1, 0), 2)),
        ONE_VOCABULARY,
    ),
    StepGroup(
        "step-eos",
        "A drafted EOS ends drafting; an accepted one ends the block without a bonus token.",
        EOS,
        EOS_DRAFTER,
        (((), 1), ((), 2), ((0,), 2)),
        ONE_VOCABULARY,
    ),
    StepGroup(
        "step-disjoint-support",
        "p and q share no token.",
        toy(AB, "1/1 0/1"),
        toy(AB, "0/1 1/1"),
        START,
        ONE_VOCABULARY,
    ),
    StepGroup(
        "step-lookahead-zero",
        "Nothing is drafted: one token of p.",
        toy(AB, "1/3 2/3"),
        toy(AB, "2/3 1/3"),
        (((), 0),),
        ONE_VOCABULARY,
    ),
)


MAPPED = (
    StepGroup(
        "partly-shared",
        "b and c are shared; a is the target's alone, x the drafter's.",
        toy(ABC, "1/2 1/3 1/6"),
        toy("b c x", "1/3 1/3 1/3"),
        (((), 1), ((), 2), ((1,), 2)),
        BY_TOKEN,
    ),
    StepGroup(
        "intersection-empty",
        "No token is shared: every block is one token of p.",
        toy(AB, "1/3 2/3"),
        toy("x y", "1/2 1/2"),
        START,
        BY_TOKEN,
    ),
    StepGroup(
        "nothing-shared-likely",
        "a is shared, and the drafter never says it.",
        toy(ABC, "1/2 1/4 1/4"),
        toy("x a", "1/1 0/1"),
        START,
        BY_TOKEN,
    ),
    StepGroup(
        "nothing-shared-later",
        "After b, the drafter says x alone, which the target lacks.",
        toy(ABC, "1/2 1/4 1/4"),
        toy("b c x", "1/2 1/4 1/4", "0/1 0/1 1/1", "1/2 1/2 0/1", "1/3 1/3 1/3"),
        START,
        BY_TOKEN,
    ),
    StepGroup(
        "unreadable-context",
        "The drafter can neither name nor spell c: nothing is drafted after it.",
        toy(ABC, "1/2 1/4 1/4"),
        toy("a b x", "1/2 1/4 1/4"),
        (((2,), 2), ((0, 2), 1)),
        BY_TOKEN,
    ),
    StepGroup(
        "spelled-context",
        "The drafter lacks ab, and reads it in the context as a, b.",
        toy("a b ab", "1/4 1/4 1/2"),
        toy(AB, "1/2 1/2", "1/4 3/4", "3/4 1/4"),
        (((2,), 1), ((2,), 2)),
        BY_TOKEN,
    ),
    StepGroup(
        "drafter-nested",
        "Every token of the drafter is the target's, with other ids.",
        toy(ABC, "1/2 1/4 1/4"),
        toy("c a", "1/3 2/3"),
        START,
        BY_TOKEN,
    ),
    StepGroup(
        "target-nested",
        "Every token of the target is the drafter's, with other ids.",
        toy(AB, "2/3 1/3"),
        toy("b x a", "1/2 1/4 1/4"),
        THREE,
        BY_TOKEN,
    ),
    StepGroup(
        "same-vocabulary",
        "One vocabulary: all is as in standard speculative decoding.",
        ORDER_ONE,
        ORDER_ONE_DRAFTER,
        START,
        BY_TOKEN,
    ),
    StepGroup(
        "equal-distributions",
        "The same laws of the same tokens in another order: every draft is accepted.",
        toy(AB, "1/3 2/3"),
        toy("b a", "2/3 1/3"),
        START,
        BY_TOKEN,
    ),
)


SPELLED = (
    StepGroup(
        "swapped-coin",
        "One vocabulary of two letters, p and q swapped.",
        toy(AB, "1/3 2/3"),
        toy(AB, "2/3 1/3"),
        THREE,
        BY_TEXT,
    ),
    StepGroup(
        "target-merges",
        "The drafter writes a, b; the target reads ab.",
        MERGES,
        toy(AB, "1/2 1/2"),
        THREE,
        BY_TEXT,
    ),
    StepGroup(
        "drafter-merges",
        "The drafter writes ab; the target reads a, b.",
        toy(AB, "1/2 1/2"),
        toy("a b ab", "1/4 1/4 1/2"),
        START,
        BY_TEXT,
    ),
    StepGroup(
        "overlapping",
        "Each has a pair that the other lacks; laws depend on the last token.",
        toy("a b ab", "1/4 1/4 1/2", "1/2 1/4 1/4", "1/3 1/3 1/3", "0/1 1/2 1/2"),
        toy("a b bb", "1/2 1/4 1/4", "1/4 1/4 1/2", "1/2 1/2 0/1", "1/3 1/3 1/3"),
        (((), 1), ((), 2), ((2,), 1)),
        BY_TEXT,
    ),
    StepGroup(
        "one-vocabulary-retokenised",
        "Both have a and aa: drafted a, aa is read as aa, a.",
        toy("a aa", "1/2 1/2"),
        toy("a aa", "1/3 2/3"),
        START,
        BY_TEXT,
    ),
    StepGroup(
        "one-long-token",
        "The drafter writes aa, the target reads a, a.",
        toy("a", "1/1"),
        toy("aa", "1/1"),
        START,
        BY_TEXT,
    ),
    StepGroup(
        "disjoint-support",
        "The target says a, the drafter b.",
        toy(AB, "1/1 0/1"),
        toy(AB, "0/1 1/1"),
        START,
        BY_TEXT,
    ),
    StepGroup(
        "same-vocabulary",
        "One vocabulary of letters, and zeros on either side.",
        ORDER_ONE,
        ORDER_ONE_DRAFTER,
        (((), 1), ((), 2), ((1, 0), 1)),
        BY_TEXT,
    ),
)


SHARED = (
    StepGroup(
        "reordered",
        "The same tokens with other ids.",
        toy("a b ab", "1/4 1/4 1/2"),
        toy("ab b a", "1/4 1/4 1/2"),
        START,
        ALL,
    ),
    StepGroup(
        "zero-draft-mass",
        "The drafter never says b; the target does, half of the time.",
        toy("a b c", "1/4 1/2 1/4"),
        toy("c b a", "1/3 0/1 2/3"),
        START,
        ALL,
    ),
    StepGroup(
        "point-mass",
        "Both are certain: of the same token, then of others.",
        toy(AB, "0/1 1/1", "1/1 0/1", "1/1 0/1"),
        toy("b a", "1/1 0/1", "1/1 0/1", "1/2 1/2"),
        START,
        ALL,
    ),
    StepGroup(
        "eos",
        "EOS has another id; drafted, it ends drafting; accepted, it ends the block.",
        EOS,
        EOS_MOVED,
        (((), 1), ((), 2), ((0,), 2)),
        ALL,
    ),
    StepGroup(
        "lookahead-zero",
        "Nothing is drafted: one token of p.",
        toy(AB, "1/3 2/3"),
        toy("b a", "1/2 1/2"),
        (((), 0), ((1,), 0)),
        ALL,
    ),
)


ITERATIONS = (*SAME, *MAPPED, *SPELLED, *SHARED)
