"""The strata that a run of checks judges, those that a user asks for, and what none tries."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from specref.algorithms.trees.topdown import branching_of
from specref.conformance.strata.laws import USUAL
from specref.conformance.strata.loops import LONGER_PROMPT, LOOP_STRATA
from specref.conformance.strata.shape import (
    Box,
    CallShape,
    Shape,
    Sized,
    TreeShape,
    call_shapes,
    shapes,
    tree_shapes,
)
from specref.conformance.strata.stratum import Stratum
from specref.contracts.fixtures import TOP, WITH
from specref.contracts.sampling import TEXT

alone = partial(Stratum[Shape], alone=True)
calls = partial(Stratum[CallShape], kind=CallShape, cost=0.7)
texts = partial(call_shapes, text=True)
trees = partial(Stratum[TreeShape], kind=TreeShape, cost=0.7)

SMALL = (5, 8, 37)
MIDDLE = (32_000, 32_768, 50_257, 65_537)
LARGE = (128_256, 151_936, 262_144)
# Few tokens are drawn from large vocabularies: from laws that show most.
APART = ("without",)
SHARPER, WIDER = ("sharp", "cut"), ("wide", "near")
ONE_TEMPERATURE, BESIDE_GREEDY = "one-temperature", "beside-greedy"
ODD_TEMPERATURES = "odd-temperatures"
SPREAD = ("zipf", "flat", "long tail", "steep")
PEAKS = ("peaked", "confident", "steep")
ZEROS = ("truncated",), ("cut", "sharp", "wrong", "without")
"""Targets that exclude tokens, and drafters that exclude others."""
OF_DRAWN = (*USUAL, "same", "trimmed", "sure")
"""The drafters where shapes are drawn."""
# Every lookahead from 4 to 9, with both vocabularies and both batches.
MANY_DRAFTS = tuple(
    shape
    for turn, lookahead in enumerate(range(4, 10))
    for shape in (Shape(6, lookahead, (4, 64)[turn % 2]), Shape(33, lookahead, (64, 4)[turn % 2]))
)
# Around the powers of two, at which kernels and integer formats change.
AROUND = tuple(power + more for power in (16, 32, 64, 128, 256) for more in (-1, 0, 1))
LOOKAHEADS = tuple(range(1, 10))
FULL_TREE = (4, 4, 4)
"""Of many nodes; as many siblings as there are tokens, where rows are compared with each other."""
TREE_SIZES = (3, 4, *AROUND)
SIZES, BATCHES = (2, 3, *AROUND, 511, 512, 513), (1, 2, 7, 8, 9, *AROUND)
STRATA: tuple[Stratum[Shape], ...] = (
    Stratum("one-draft", shapes(SMALL, [1], [1, 4, 32, 256])),
    Stratum("two-and-three-drafts", shapes(SMALL, [2, 3], [4, 64])),
    Stratum("many-drafts", MANY_DRAFTS, cost=2),
    alone(
        "long-drafts",
        shapes([6, 33], [9, 16, 17, 33], [4, 16]),
        ("peaked", "confident", "zipf"),
        ("near", "trimmed"),
        cost=4,
    ),
    Stratum("batches-to-16", shapes([7], [2], [2, 3, 5, 6, 7, 8, 9, 12, 15, 16]), cost=3),
    Stratum("batches-to-512", shapes([7], [2], [17, 31, 32, 48, 64, 100, 128, 256, 512]), cost=3),
    Stratum("batches-to-8192", shapes([7], [2], [600, 1_000, 1_024, 1_500, 4_097, 8_192])),
    Stratum("vocabulary-hundreds", shapes([100, 256, 257, 500, 1_000], [1, 3], [16, 64])),
    Stratum("vocabulary-thousands", shapes([1_024, 2_050, 4_096, 5_003], [1, 3], [8, 32]), cost=2),
    alone(
        "vocabulary-32k",
        (*shapes(MIDDLE, [1], [4]), Shape(32_000, 3, 4)),
        SPREAD,
        APART,
        ragged=False,
        pairs=12,  # each target in each order of ids
        cost=10,
    ),
    alone(
        "vocabulary-128k",
        shapes(LARGE, [1], [1, 4]),
        SPREAD,
        APART,
        ragged=False,
        padding=267,
        cost=14,
    ),
    alone(
        "vocabulary-ends",
        shapes([1_000, 50_257, 128_256, 151_936], [1], [4]),
        ragged=False,
        endings=True,
        pairs=2,
        cost=6,
    ),
    Stratum("no-laws", shapes([5, 40], [1, 3, 5], [1, 16, 64]), laws=False),
    Stratum("laws-flat", shapes([50, 300], [3], [64]), ("flat", "long tail")),
    Stratum("laws-fine", shapes([5_003], [1], [64]), ("flat",), ("near",), pairs=1, cost=4),
    Stratum("laws-peaked", shapes([8, 50], [3], [64]), PEAKS),
    Stratum("laws-confident", shapes([8, 50], [1, 3], [64]), ("peaked", "confident"), SHARPER),
    Stratum("laws-rare", shapes([2_000], [2], [64]), ("long tail", "zipf"), cost=3),
    Stratum("laws-zeros", shapes([8, 64], [3], [64]), ("truncated",), ("cut", "sharp", "wrong")),
    Stratum(
        "laws-mixed",
        shapes([8, 50], [1], [4, 16]),
        ("certain", "zipf", "confident"),
        WIDER,
        greedy_first=True,
    ),
    Stratum("drafter-wrong", shapes([8, 50], [1, 3], [64]), drafters=("wrong",)),
    Stratum("bare", shapes([3, 6, 40], [1, 3], [1, 16, 64]), way="bare", ragged=False),
    alone(
        "bare-no-laws", shapes([3, 40], [1, 3], [1, 16, 64]), way="bare", laws=False, ragged=False
    ),
    Stratum("int32-ids", shapes([6, 300], [3], [64]), way="int32"),
    Stratum("strided-arrays", shapes([6, 40], [1, 3], [64]), way="strided"),
    Stratum("transposed-arrays", shapes([6, 40], [1, 3], [64]), way="transposed"),
    Stratum("read-only-arrays", shapes([6, 40], [1, 3], [64]), way="read-only"),
    Stratum("arrays-filled-anew", shapes([8], [3], [32]), way="refilled"),
    Stratum("answers-kept", shapes([8], [1, 3], [32]), way="kept"),
    alone("large-logits", shapes([6, 40], [1, 3], [16, 64]), way="large-logits"),
    alone(ONE_TEMPERATURE, shapes([6, 40], [1, 3], [16, 64]), way=ONE_TEMPERATURE),
    alone(BESIDE_GREEDY, shapes([6, 40], [1, 3], [4, 16]), way=BESIDE_GREEDY),
    alone("generators-kept", shapes([6, 40], [1, 3], [1, 4, 16]), way="kept-generators"),
    alone("late-calls", shapes([8], [1], [2, 4]), after=20_000),
    alone("drawn-shapes", (), drafters=OF_DRAWN, box=Box(SIZES, LOOKAHEADS, BATCHES), cost=1.5),
    alone(
        "vocabulary-large-batches",
        (Shape(32_000, 1, 32), Shape(32_000, 4, 32), Shape(50_257, 1, 64), Shape(128_256, 1, 32)),
        ("zipf", "flat", "long tail"),
        APART,
        ragged=False,
        pairs=6,
        cost=6,
    ),
    alone("drafter-certain", shapes([8, 50], [1, 3], [64]), drafters=("sure", "astray")),
    alone("laws-repeated", shapes([8, 50], [3, 6], [8, 64]), steady=True),
    alone("laws-in-turn", shapes([5, 40], [1, 3], [4, 16]), in_turn=True),
    alone(ODD_TEMPERATURES, shapes([6, 40], [1, 3], [20, 65]), way=ODD_TEMPERATURES, cost=2),
)

# Of drafters that are nearly always right: many drafts in a row are kept.
EASY = ("same",) * 3 + ("trimmed",) * 8 + ("cut",)
# Of targets that are nearly certain of a token.
LIKELY = ("peaked", "confident")
STEP_STRATA: tuple[Stratum[CallShape], ...] = (
    calls("step-one-draft", call_shapes(SMALL, [0, 3], [1])),
    calls(
        "step-many-drafts", tuple(CallShape((6, 33)[k % 2], 2, k) for k in range(4, 10)), cost=1
    ),
    calls("step-long-drafts", call_shapes([6, 33], [2], [9, 16, 17, 33]), drafters=EASY),
    calls("step-contexts", call_shapes([8], [3, 41, 513, 600], [3])),
    calls("step-contexts-of-1100", call_shapes([8], [1_100], [1]), cost=0.2),
    calls("step-contexts-related", call_shapes([8], [16, 64], [3]), related=True, cost=1),
    calls("step-vocabulary-hundreds", call_shapes([100, 257, 1_000], [3], [1, 3]), cost=0.4),
    calls(
        "step-vocabulary-thousands",
        call_shapes([2_050, 5_003], [3], [2]),
        ("zipf", "close"),
        cost=0.3,
    ),
    calls("step-vocabulary-65k", call_shapes([65_600], [3], [1]), ("zipf", "flat"), cost=0.2),
    calls("step-last-id", call_shapes([65, 129], [3], [1, 2]), cost=0.4),
    calls("step-laws-flat", call_shapes([50], [3], [3]), ("flat", "long tail"), cost=0.5),
    calls("step-laws-peaked", call_shapes([8, 50], [3], [3]), PEAKS),
    calls("step-laws-rare", call_shapes([500], [3], [2]), ("long tail", "zipf"), cost=0.5),
    calls("step-laws-zeros", call_shapes([8, 50], [3], [3]), *ZEROS),
    calls("step-ending", call_shapes([5, 12], [3], [1, 3]), ends=True),
    calls("step-ending-late", call_shapes([12], [3], [12]), drafters=EASY, ends=True),
    calls("step-contexts-of-4100", call_shapes([8], [2_049, 4_100], [1]), cost=0.05),
    calls(
        "step-drawn-shapes",
        (),
        drafters=OF_DRAWN,
        box=Box(SIZES, LOOKAHEADS, (0, 1, *AROUND)),
    ),
)
TEXT_STRATA: tuple[Stratum[CallShape], ...] = (
    calls("text-prompts", texts(SMALL[:2], [0, 1, 3, 8, 17], [2, 24])),
    calls("text-budget-of-1", texts([8], [0, 1, 3, 40], [1]), cost=0.4),
    calls("text-budget-above-500", texts([8], [3], [530])),
    calls("text-easy", texts([8], [3], [530]), drafters=EASY, cost=2),
    calls("text-repeats", texts([8, 50], [3], [200]), LIKELY, EASY, memory=1),
    calls("text-long-prompts", texts([8], [41, 513, 600], [8])),
    calls("text-prompts-of-1100", texts([8], [1_100], [3]), cost=0.2),
    calls("text-prompts-related", texts([8], [16, 64], [4]), related=True, cost=1),
    calls("text-vocabulary-hundreds", texts([100, 257, 1_000], [3], [12]), cost=0.4),
    calls(
        "text-vocabulary-thousands", texts([2_050, 5_003], [3], [8]), ("zipf", "close"), cost=0.3
    ),
    calls("text-vocabulary-65k", texts([65_600], [3], [4]), ("zipf", "flat"), cost=0.2),
    calls("text-last-id", texts([65, 129], [3], [6]), cost=0.4),
    calls("text-laws-flat", texts([50], [3], [20]), ("flat", "long tail")),
    calls("text-laws-peaked", texts([8, 50], [3], [20]), PEAKS),
    calls("text-laws-zeros", texts([8, 50], [3], [20]), *ZEROS),
    calls("text-ending", texts([5, 12], [0, 3], [3, 40]), ends=True),
    calls("text-ending-late", texts([12], [3], [40]), drafters=EASY, ends=True),
    calls("text-prompts-of-4100", texts([8], [2_049, 4_100], [3]), cost=0.05),
    calls(
        "text-drawn-shapes",
        texts([8], [3], [30]),
        drafters=OF_DRAWN,
        box=Box(SIZES, (2, 3, 4, 5, 7, 9, 13, 17, 33), (0, 1, *AROUND)),
    ),
)
TREE_STRATA: tuple[Stratum[TreeShape], ...] = (
    # Of drafters that are often refused, so that the last siblings are read.
    trees(
        "tree-siblings",
        tree_shapes([20, 100], [(4,), (8,), (2, 4), (1, 8)], [16]),
        drafters=("other", "wrong", "cut", "without"),
    ),
    trees(
        "tree-twenty-siblings",
        tree_shapes([40], [(20,), (1, 20)], [16]),
        drafters=("other", "wrong", "without"),
    ),
    trees(
        "tree-deep",
        tree_shapes(
            [6], [(1, 1, 1), (2, 2, 1), (2, 1, 1, 1), *((1,) * n for n in range(5, 10))], [16]
        ),
    ),
    trees(
        "tree-mixed",
        tree_shapes([6], [(1,) * 4], [4, 16]),
        beside=((4,), (2, 1), (1, 3)),
        cost=0.5,
    ),
    trees(
        "tree-many-nodes",
        (
            *tree_shapes([12], [(4, 2, 1), (2, 2, 2), (3, 3, 2)], [8]),
            *tree_shapes([20], [(6, 3, 2)], [8]),
        ),
        cost=0.5,
    ),
    trees("tree-above-64-nodes", tree_shapes([24], [(10, 4, 1), FULL_TREE], [4])),
    trees("tree-batches-to-32", tree_shapes([7], [(2, 1)], [1, 3, 8, 32])),
    trees(
        "tree-batches-to-1500", tree_shapes([7], [(2, 1)], [100, 256, 600, 1_000, 1_024, 1_500])
    ),
    trees("tree-vocabulary-hundreds", tree_shapes([100, 257, 1_000], [(3, 1)], [16]), cost=0.35),
    trees("tree-vocabulary-thousands", tree_shapes([5_003, 32_000], [(2,)], [4]), cost=0.15),
    trees(
        "tree-with-replacement", tree_shapes([5, 9], [(4,), (3, 2), (1, 4)], [16]), ways=(WITH,)
    ),
    trees("tree-no-laws", tree_shapes([12], [(4, 2), (2, 2, 1)], [16]), ways=(TOP,)),
    trees(
        "tree-no-laws-siblings",
        (
            *tree_shapes([12, 16], [(10,)], [16]),
            *(shape for size in (12, 16, 24) for shape in tree_shapes([size], [(size,)], [16])),
        ),
        ("flat",),  # late siblings are tried as often as early ones are kept
        ("other", "wrong", "without"),
        ways=(TOP,),
    ),
    trees("tree-laws-flat", tree_shapes([50], [(3, 2)], [16]), ("flat", "long tail"), cost=0.5),
    trees("tree-laws-peaked", tree_shapes([8, 50], [(3, 2)], [16]), PEAKS, cost=0.5),
    trees("tree-laws-zeros", tree_shapes([8, 50], [(3, 2)], [16]), *ZEROS, cost=0.5),
    trees("tree-vocabulary-128k", tree_shapes([128_256], [(2,)], [4]), SPREAD, APART, cost=0.03),
    trees("tree-drawn-shapes", (), box=Box(TREE_SIZES, LOOKAHEADS, BATCHES)),
)

# Of argmax alone: the likeliest tokens nearly tie, as in steps and texts of thousands of tokens.
CLOSE = Stratum("laws-close", shapes([8, 50], [3], [64]), ("close",))
CLOSE_TREES = trees("tree-laws-close", tree_shapes([8, 50], [(3, 2)], [16]), ("close",))

OWN, CONTEXT = "own-shape", 3
# One call of many rows: all that can be known of a first call.
FIRST = Stratum("first-call", (Shape(8, 2, 2_048),))
FEWEST_FIRST = 1_024


SHAPED = tuple(one for one in STRATA if one == Stratum(one.name, one.shapes, cost=one.cost))
OTHER = tuple(one for one in STRATA if one not in SHAPED and not one.alone)


def crossed(shaped: Stratum[Shape], other: Stratum[Shape]) -> Stratum[Shape]:
    """The laws and the way of calling of one stratum, at the shapes of another."""
    name = f"{shaped.name}, {other.name}"
    return replace(other, name=name, shapes=shaped.shapes, pairs=None, cost=1.0)


def drawn_pairs(rng: np.random.Generator, count: int) -> list[Stratum[Shape]]:
    """Different pairs of strata, of all that may meet."""
    both = [(one, other) for one in SHAPED for other in OTHER]
    return [crossed(*both[i]) for i in rng.choice(len(both), count, replace=False)]


def own_stratum(given: Sequence[Shape]) -> Stratum[Shape]:
    """The stratum of the shapes that a user asks for."""
    return Stratum(OWN, tuple(given))


def own_calls(given: Sequence[Shape]) -> Stratum[CallShape]:
    """The stratum of the vocabularies and lookaheads that a user asks for, for steps."""
    shapes = (CallShape(shape.vocabulary, CONTEXT, shape.lookahead) for shape in given)
    return calls(OWN, tuple(shapes), cost=1.0)


def own_trees(given: Sequence[Shape]) -> Stratum[TreeShape]:
    """The stratum of the shapes that a user asks for, for trees: two siblings, then one each."""
    shapes = (TreeShape(v, branching_of(lookahead), batch) for v, lookahead, batch in given)
    return trees(OWN, tuple(shapes), cost=1.0)


LONGEST_TEXT = 48
"""Tokens of the longest texts that an engine is asked for."""


def most(strata: Iterable[Stratum[Any]], **words: str) -> str:
    """The largest sizes of the shapes of some strata, in words.

    Examples
    --------
    >>> most([Stratum("", (Shape(1_000, 2, 4), Shape(8, 3, 1)))], V="tokens", lookahead="drafts")
    'more than 1,000 tokens, 3 drafts'
    """
    every: list[Sized] = [shape for one in strata for shape in one.shapes]
    sizes = (f"{max(one.sizes[name] for one in every):,} {word}" for name, word in words.items())
    return f"more than {', '.join(sizes)}"


VOCABULARY = {"V": "tokens of a vocabulary"}
ROWS = most((*STRATA, FIRST), **VOCABULARY, lookahead="drafts", batch="rows")
COMPARED = TreeShape(len(FULL_TREE), FULL_TREE, 1).nodes
NODES = {"nodes": "nodes", "siblings": "siblings", "depth": "levels", "batch": "rows"}
CALLED = {"context": "tokens of a context", "lookahead": "drafts"}
GENERATED = {"prompt": "tokens of a prompt", "budget": "tokens of a text"}
THREADS = "calls from several threads at once"
SEVERAL = f"texts of several calls beyond {TEXT} tokens"
UNTRIED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "verify": (ROWS, SEVERAL, THREADS),
        "ragged": (ROWS, SEVERAL, "temperatures that no line lists", THREADS),
        "tree": (
            most(TREE_STRATA, **VOCABULARY, **NODES),
            f"rows of more than {COMPARED} nodes compared with each other",
            "one torch.Generator for several calls",
            "several iterations of a request",
            THREADS,
        ),
        "step": (most(STEP_STRATA, **VOCABULARY, **CALLED), THREADS),
        "generate": (most(TEXT_STRATA, **VOCABULARY, **GENERATED), THREADS),
        "generate-batch": (
            most(LOOP_STRATA, **VOCABULARY, batch="rows", budget="tokens of a text"),
            f"more than {3 + LONGER_PROMPT} tokens of a prompt",
            THREADS,
        ),
        "text": (
            f"more than {LONGEST_TEXT} tokens of a text, {TEXT} without a distribution by default",
            "prompts, vocabularies and settings but the engine's own",
        ),
    }
)
"""{contract: what is nowhere tried under it}."""
