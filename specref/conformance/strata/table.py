"""The strata that a run of checks judges, those that a user asks for, and what none tries."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from specref.algorithms.trees.topdown import branching_of
from specref.conformance.strata.laws import USUAL
from specref.conformance.strata.shape import Box, Shape, Sized, shapes
from specref.conformance.strata.stratum import Stratum
from specref.conformance.strata.texts import CallShape, CallStratum, call_shapes
from specref.conformance.strata.trees import TreeShape, TreeStratum, tree_shapes
from specref.contracts.sampling import TEXT
from specref.contracts.tree_fixtures import TOP, WITH

SMALL = (5, 8, 37)
MIDDLE = (32_000, 32_768, 50_257, 65_537)
LARGE = (128_256, 151_936, 262_144)
# Few tokens are drawn from large vocabularies: from laws that show most.
APART = ("without",)
SHARPER, WIDER = ("sharp", "cut"), ("wide", "near")
ONE_TEMPERATURE, BESIDE_GREEDY = "one-temperature", "beside-greedy"
ODD_TEMPERATURES = "odd-temperatures"
SPREAD = ("zipf", "flat", "long tail", "steep")
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
STRATA: tuple[Stratum, ...] = (
    Stratum("one-draft", shapes(SMALL, [1], [1, 4, 32, 256])),
    Stratum("two-and-three-drafts", shapes(SMALL, [2, 3], [4, 64])),
    Stratum("many-drafts", MANY_DRAFTS, cost=2),
    Stratum(
        "long-drafts",
        shapes([6, 33], [9, 16, 17, 33], [4, 16]),
        ("peaked", "confident", "zipf"),
        ("near", "trimmed"),
        cost=4,
        alone=True,
    ),
    Stratum("batches-to-16", shapes([7], [2], [2, 3, 5, 6, 7, 8, 9, 12, 15, 16]), cost=3),
    Stratum("batches-to-512", shapes([7], [2], [17, 31, 32, 48, 64, 100, 128, 256, 512]), cost=3),
    Stratum("batches-to-8192", shapes([7], [2], [600, 1_000, 1_024, 1_500, 4_097, 8_192])),
    Stratum("vocabulary-hundreds", shapes([100, 256, 257, 500, 1_000], [1, 3], [16, 64])),
    Stratum("vocabulary-thousands", shapes([1_024, 2_050, 4_096, 5_003], [1, 3], [8, 32]), cost=2),
    Stratum(
        "vocabulary-32k",
        (*shapes(MIDDLE, [1], [4]), Shape(32_000, 3, 4)),
        SPREAD,
        APART,
        ragged=False,
        pairs=12,  # each target in each order of ids
        cost=10,
        alone=True,
    ),
    Stratum(
        "vocabulary-128k",
        shapes(LARGE, [1], [1, 4]),
        SPREAD,
        APART,
        ragged=False,
        padding=267,
        cost=14,
        alone=True,
    ),
    Stratum(
        "vocabulary-ends",
        shapes([1_000, 50_257, 128_256, 151_936], [1], [4]),
        ragged=False,
        endings=True,
        pairs=2,
        cost=6,
        alone=True,
    ),
    Stratum("no-laws", shapes([5, 40], [1, 3, 5], [1, 16, 64]), laws=False),
    Stratum("laws-flat", shapes([50, 300], [3], [64]), ("flat", "long tail")),
    Stratum("laws-fine", shapes([5_003], [1], [64]), ("flat",), ("near",), pairs=1, cost=4),
    Stratum("laws-peaked", shapes([8, 50], [3], [64]), ("peaked", "confident", "steep")),
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
    Stratum(
        "bare-no-laws",
        shapes([3, 40], [1, 3], [1, 16, 64]),
        way="bare",
        laws=False,
        ragged=False,
        alone=True,
    ),
    Stratum("int32-ids", shapes([6, 300], [3], [64]), way="int32"),
    Stratum("strided-arrays", shapes([6, 40], [1, 3], [64]), way="strided"),
    Stratum("transposed-arrays", shapes([6, 40], [1, 3], [64]), way="transposed"),
    Stratum("read-only-arrays", shapes([6, 40], [1, 3], [64]), way="read-only"),
    Stratum("arrays-filled-anew", shapes([8], [3], [32]), way="refilled"),
    Stratum("answers-kept", shapes([8], [1, 3], [32]), way="kept"),
    Stratum("large-logits", shapes([6, 40], [1, 3], [16, 64]), way="large-logits", alone=True),
    Stratum(ONE_TEMPERATURE, shapes([6, 40], [1, 3], [16, 64]), way=ONE_TEMPERATURE, alone=True),
    Stratum(BESIDE_GREEDY, shapes([6, 40], [1, 3], [4, 16]), way=BESIDE_GREEDY, alone=True),
    Stratum(
        "generators-kept",
        shapes([6, 40], [1, 3], [1, 4, 16]),
        way="kept-generators",
        alone=True,
    ),
    Stratum("late-calls", shapes([8], [1], [2, 4]), after=20_000, alone=True),
    Stratum(
        "drawn-shapes",
        (),
        drafters=(*USUAL, "same", "trimmed", "sure"),
        box=Box(SIZES, LOOKAHEADS, BATCHES),
        cost=1.5,
        alone=True,
    ),
    Stratum(
        "vocabulary-large-batches",
        (Shape(32_000, 1, 32), Shape(32_000, 4, 32), Shape(50_257, 1, 64), Shape(128_256, 1, 32)),
        ("zipf", "flat", "long tail"),
        APART,
        ragged=False,
        pairs=6,
        cost=6,
        alone=True,
    ),
    Stratum(
        "drafter-certain",
        shapes([8, 50], [1, 3], [64]),
        drafters=("sure", "astray"),
        alone=True,
    ),
    Stratum("laws-repeated", shapes([8, 50], [3, 6], [8, 64]), steady=True, alone=True),
    Stratum("laws-in-turn", shapes([5, 40], [1, 3], [4, 16]), in_turn=True, alone=True),
    Stratum(
        ODD_TEMPERATURES,
        shapes([6, 40], [1, 3], [20, 65]),
        way=ODD_TEMPERATURES,
        cost=2,
        alone=True,
    ),
)

# Of drafters that are nearly always right: many drafts in a row are kept.
EASY = ("same",) * 3 + ("trimmed",) * 8 + ("cut",)
# Of targets that are nearly certain of a token.
LIKELY = ("peaked", "confident")
STEP_STRATA: tuple[CallStratum, ...] = (
    CallStratum("step-one-draft", call_shapes(SMALL, [0, 3], [1])),
    CallStratum(
        "step-many-drafts",
        tuple(CallShape((6, 33)[k % 2], 2, k) for k in range(4, 10)),
        cost=1,
    ),
    CallStratum("step-long-drafts", call_shapes([6, 33], [2], [9, 16, 17, 33]), drafters=EASY),
    CallStratum("step-contexts", call_shapes([8], [3, 41, 513, 600], [3])),
    CallStratum("step-contexts-of-1100", call_shapes([8], [1_100], [1]), cost=0.2),
    CallStratum("step-contexts-related", call_shapes([8], [16, 64], [3]), related=True, cost=1),
    CallStratum("step-vocabulary-hundreds", call_shapes([100, 257, 1_000], [3], [1, 3]), cost=0.4),
    CallStratum(
        "step-vocabulary-thousands",
        call_shapes([2_050, 5_003], [3], [2]),
        ("zipf", "close"),
        cost=0.3,
    ),
    CallStratum(
        "step-vocabulary-65k", call_shapes([65_600], [3], [1]), ("zipf", "flat"), cost=0.2
    ),
    CallStratum("step-last-id", call_shapes([65, 129], [3], [1, 2]), cost=0.4),
    CallStratum("step-laws-flat", call_shapes([50], [3], [3]), ("flat", "long tail"), cost=0.5),
    CallStratum(
        "step-laws-peaked", call_shapes([8, 50], [3], [3]), ("peaked", "confident", "steep")
    ),
    CallStratum("step-laws-rare", call_shapes([500], [3], [2]), ("long tail", "zipf"), cost=0.5),
    CallStratum(
        "step-laws-zeros",
        call_shapes([8, 50], [3], [3]),
        ("truncated",),
        ("cut", "sharp", "wrong", "without"),
    ),
    CallStratum("step-ending", call_shapes([5, 12], [3], [1, 3]), ends=True),
    CallStratum("step-ending-late", call_shapes([12], [3], [12]), drafters=EASY, ends=True),
    CallStratum("step-contexts-of-4100", call_shapes([8], [2_049, 4_100], [1]), cost=0.05),
    CallStratum(
        "step-drawn-shapes",
        (),
        drafters=(*USUAL, "same", "trimmed", "sure"),
        box=Box(SIZES, LOOKAHEADS, (0, 1, *AROUND)),
    ),
)
TEXT_STRATA: tuple[CallStratum, ...] = (
    CallStratum("text-prompts", call_shapes(SMALL[:2], [0, 1, 3, 8, 17], [2, 24], text=True)),
    CallStratum("text-budget-of-1", call_shapes([8], [0, 1, 3, 40], [1], text=True), cost=0.4),
    CallStratum("text-budget-above-500", call_shapes([8], [3], [530], text=True)),
    CallStratum("text-easy", call_shapes([8], [3], [530], text=True), drafters=EASY, cost=2),
    CallStratum(
        "text-repeats", call_shapes([8, 50], [3], [200], text=True), LIKELY, EASY, memory=1
    ),
    CallStratum("text-long-prompts", call_shapes([8], [41, 513, 600], [8], text=True)),
    CallStratum("text-prompts-of-1100", call_shapes([8], [1_100], [3], text=True), cost=0.2),
    CallStratum(
        "text-prompts-related",
        call_shapes([8], [16, 64], [4], text=True),
        related=True,
        cost=1,
    ),
    CallStratum(
        "text-vocabulary-hundreds",
        call_shapes([100, 257, 1_000], [3], [12], text=True),
        cost=0.4,
    ),
    CallStratum(
        "text-vocabulary-thousands",
        call_shapes([2_050, 5_003], [3], [8], text=True),
        ("zipf", "close"),
        cost=0.3,
    ),
    CallStratum(
        "text-vocabulary-65k",
        call_shapes([65_600], [3], [4], text=True),
        ("zipf", "flat"),
        cost=0.2,
    ),
    CallStratum("text-last-id", call_shapes([65, 129], [3], [6], text=True), cost=0.4),
    CallStratum("text-laws-flat", call_shapes([50], [3], [20], text=True), ("flat", "long tail")),
    CallStratum(
        "text-laws-peaked",
        call_shapes([8, 50], [3], [20], text=True),
        ("peaked", "confident", "steep"),
    ),
    CallStratum(
        "text-laws-zeros",
        call_shapes([8, 50], [3], [20], text=True),
        ("truncated",),
        ("cut", "sharp", "wrong", "without"),
    ),
    CallStratum("text-ending", call_shapes([5, 12], [0, 3], [3, 40], text=True), ends=True),
    CallStratum(
        "text-ending-late", call_shapes([12], [3], [40], text=True), drafters=EASY, ends=True
    ),
    CallStratum(
        "text-prompts-of-4100", call_shapes([8], [2_049, 4_100], [3], text=True), cost=0.05
    ),
    CallStratum(
        "text-drawn-shapes",
        call_shapes([8], [3], [30], text=True),
        drafters=(*USUAL, "same", "trimmed", "sure"),
        box=Box(SIZES, (2, 3, 4, 5, 7, 9, 13, 17, 33), (0, 1, *AROUND)),
    ),
)
TREE_STRATA: tuple[TreeStratum, ...] = (
    # Of drafters that are often refused, so that the last siblings are read.
    TreeStratum(
        "tree-siblings",
        tree_shapes([20, 100], [(4,), (8,), (2, 4), (1, 8)], [16]),
        drafters=("other", "wrong", "cut", "without"),
    ),
    TreeStratum(
        "tree-twenty-siblings",
        tree_shapes([40], [(20,), (1, 20)], [16]),
        drafters=("other", "wrong", "without"),
    ),
    TreeStratum(
        "tree-deep",
        tree_shapes(
            [6], [(1, 1, 1), (2, 2, 1), (2, 1, 1, 1), *((1,) * n for n in range(5, 10))], [16]
        ),
    ),
    TreeStratum(
        "tree-mixed",
        tree_shapes([6], [(1,) * 4], [4, 16]),
        beside=((4,), (2, 1), (1, 3)),
        cost=0.5,
    ),
    TreeStratum(
        "tree-many-nodes",
        (
            *tree_shapes([12], [(4, 2, 1), (2, 2, 2), (3, 3, 2)], [8]),
            *tree_shapes([20], [(6, 3, 2)], [8]),
        ),
        cost=0.5,
    ),
    TreeStratum("tree-above-64-nodes", tree_shapes([24], [(10, 4, 1), FULL_TREE], [4])),
    TreeStratum("tree-batches-to-32", tree_shapes([7], [(2, 1)], [1, 3, 8, 32])),
    TreeStratum(
        "tree-batches-to-1500", tree_shapes([7], [(2, 1)], [100, 256, 600, 1_000, 1_024, 1_500])
    ),
    TreeStratum(
        "tree-vocabulary-hundreds", tree_shapes([100, 257, 1_000], [(3, 1)], [16]), cost=0.35
    ),
    TreeStratum("tree-vocabulary-thousands", tree_shapes([5_003, 32_000], [(2,)], [4]), cost=0.15),
    TreeStratum(
        "tree-with-replacement", tree_shapes([5, 9], [(4,), (3, 2), (1, 4)], [16]), ways=(WITH,)
    ),
    TreeStratum("tree-no-laws", tree_shapes([12], [(4, 2), (2, 2, 1)], [16]), ways=(TOP,)),
    TreeStratum(
        "tree-no-laws-siblings",
        (
            *tree_shapes([12, 16], [(10,)], [16]),
            *(shape for size in (12, 16, 24) for shape in tree_shapes([size], [(size,)], [16])),
        ),
        ("flat",),  # late siblings are tried as often as early ones are kept
        ("other", "wrong", "without"),
        ways=(TOP,),
    ),
    TreeStratum(
        "tree-laws-flat", tree_shapes([50], [(3, 2)], [16]), ("flat", "long tail"), cost=0.5
    ),
    TreeStratum(
        "tree-laws-peaked",
        tree_shapes([8, 50], [(3, 2)], [16]),
        ("peaked", "confident", "steep"),
        cost=0.5,
    ),
    TreeStratum(
        "tree-laws-zeros",
        tree_shapes([8, 50], [(3, 2)], [16]),
        ("truncated",),
        ("cut", "sharp", "wrong", "without"),
        cost=0.5,
    ),
    TreeStratum(
        "tree-vocabulary-128k",
        tree_shapes([128_256], [(2,)], [4]),
        SPREAD,
        APART,
        cost=0.03,
    ),
    TreeStratum("tree-drawn-shapes", (), box=Box(TREE_SIZES, LOOKAHEADS, BATCHES)),
)

# Of argmax alone: the likeliest tokens nearly tie, as in steps and texts of thousands of tokens.
CLOSE = Stratum("laws-close", shapes([8, 50], [3], [64]), ("close",))
CLOSE_TREES = TreeStratum("tree-laws-close", tree_shapes([8, 50], [(3, 2)], [16]), ("close",))

OWN, CONTEXT = "own-shape", 3
# One call of many rows: all that can be known of a first call.
FIRST = Stratum("first-call", (Shape(8, 2, 2_048),))
FEWEST_FIRST = 1_024


SHAPED = tuple(one for one in STRATA if one == Stratum(one.name, one.shapes, cost=one.cost))
OTHER = tuple(one for one in STRATA if one not in SHAPED and not one.alone)


def crossed(shaped: Stratum, other: Stratum) -> Stratum:
    """The laws and the way of calling of one stratum, at the shapes of another.

    Examples
    --------
    >>> both = crossed(SHAPED[2], OTHER[-1])
    >>> both.name, both.way, both.shapes[0]
    ('many-drafts, answers-kept', 'kept', Shape(vocabulary=6, lookahead=4, batch=4))
    """
    name = f"{shaped.name}, {other.name}"
    return replace(other, name=name, shapes=shaped.shapes, pairs=None, cost=1.0)


def drawn_pairs(rng: np.random.Generator, count: int) -> list[Stratum]:
    """Different pairs of strata, of all that may meet."""
    both = [(one, other) for one in SHAPED for other in OTHER]
    return [crossed(*both[i]) for i in rng.choice(len(both), count, replace=False)]


def own_stratum(given: Sequence[Shape]) -> Stratum:
    """The stratum of the shapes that a user asks for."""
    return Stratum(OWN, tuple(given))


def own_calls(given: Sequence[Shape]) -> CallStratum:
    """The stratum of the vocabularies and lookaheads that a user asks for, for steps."""
    shapes = (CallShape(shape.vocabulary, CONTEXT, shape.lookahead) for shape in given)
    return CallStratum(OWN, tuple(shapes), cost=1.0)


def own_trees(given: Sequence[Shape]) -> TreeStratum:
    """The stratum of the shapes that a user asks for, for trees: two siblings, then one each."""
    shapes = (TreeShape(v, branching_of(lookahead), batch) for v, lookahead, batch in given)
    return TreeStratum(OWN, tuple(shapes), cost=1.0)


def capped(stratum: Stratum, batch: int | None) -> tuple[Shape, ...]:
    """The shapes that a sampler with a largest batch takes, smaller if need be."""
    most = batch or max(shape.batch for shape in stratum.shapes)
    return tuple(
        dict.fromkeys(shape._replace(batch=min(shape.batch, most)) for shape in stratum.shapes)
    )


LONGEST_TEXT = 48
"""Tokens of the longest texts that an engine is asked for."""


def most(shapes: Iterable[Sized], **words: str) -> str:
    """The largest sizes of some shapes, in words.

    Examples
    --------
    >>> from specref.conformance.strata.shape import Shape
    >>> most([Shape(1_000, 2, 4), Shape(8, 3, 1)], V="tokens", lookahead="drafts")
    'more than 1,000 tokens, 3 drafts'
    """
    every = list(shapes)
    sizes = (f"{max(one.sizes[name] for one in every):,} {word}" for name, word in words.items())
    return f"more than {', '.join(sizes)}"


ROWS = most(
    (shape for one in (*STRATA, FIRST) for shape in one.shapes),
    V="tokens of a vocabulary",
    lookahead="drafts",
    batch="rows",
)
COMPARED = TreeShape(len(FULL_TREE), FULL_TREE, 1).nodes
THREADS = "calls from several threads at once"
SEVERAL = f"texts of several calls beyond {TEXT} tokens"
UNTRIED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "verify": (ROWS, SEVERAL, THREADS),
        "ragged": (ROWS, SEVERAL, "temperatures that no line lists", THREADS),
        "tree": (
            most(
                (shape for one in TREE_STRATA for shape in one.shapes),
                V="tokens of a vocabulary",
                nodes="nodes",
                siblings="siblings",
                depth="levels",
                batch="rows",
            ),
            f"rows of more than {COMPARED} nodes compared with each other",
            "one torch.Generator for several calls",
            "several iterations of a request",
            THREADS,
        ),
        "step": (
            most(
                (shape for one in STEP_STRATA for shape in one.shapes),
                V="tokens of a vocabulary",
                context="tokens of a context",
                lookahead="drafts",
            ),
            THREADS,
        ),
        "generate": (
            most(
                (shape for one in TEXT_STRATA for shape in one.shapes),
                V="tokens of a vocabulary",
                prompt="tokens of a prompt",
                budget="tokens of a text",
            ),
            THREADS,
        ),
        "text": (
            f"more than {LONGEST_TEXT} tokens of a text, {TEXT} without a law by default",
            "prompts, vocabularies and settings but the engine's own",
        ),
    }
)
"""{contract: what is nowhere tried under it}."""
