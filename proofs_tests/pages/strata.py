"""In which situations the kit judges, for docs/checks.md: from the kit's own tables."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from specref.conformance.checks.strata import ASKED
from specref.conformance.strata.batches import TREE_PLACES
from specref.conformance.strata.calling import WAYS
from specref.conformance.strata.calls import PLACES as TEXT_PLACES
from specref.conformance.strata.campaign import LONGER, PLACES, SUSPECT
from specref.conformance.strata.laws import FEATURES, MASS, ORDINARY, USUAL, WORDS
from specref.conformance.strata.shape import CallShape, Shape, TreeShape
from specref.conformance.strata.stratum import WHOLE, WIDE, Stratum
from specref.conformance.strata.table import (
    BESIDE_GREEDY,
    CLOSE,
    CLOSE_TREES,
    FIRST,
    ODD_TEMPERATURES,
    ONE_TEMPERATURE,
    OTHER,
    SHAPED,
    STEP_STRATA,
    STRATA,
    TEXT_STRATA,
    TREE_STRATA,
)

# By rank, from the likeliest token of the target on.
TARGETS: Mapping[str, str] = {
    "zipf": "1 / rank^1.1",
    "steep": "each half as likely as the one before it, down to 2^-60",
    "flat": "all alike",
    "peaked": "0.97 for one, 1 / rank for the rest",
    "confident": "0.92 for one, 1 / rank for the rest",
    "long tail": "half of the mass on 8 tokens, half spread over all",
    "truncated": "20 tokens, or half of a small vocabulary, 1 / rank^0.7; the others have none",
    "certain": "1 for one",
    "close": "each less than the one before it, by a part that 16 bits do not show",
}
DRAFTERS: Mapping[str, str] = {
    "near": "the target, each token times exp of a normal number with deviation 0.7",
    "sharp": "its square",
    "wide": "its root, and 1 / V more",
    "wrong": "nearly certain of one token: the least likely with a fiftieth of the mean or more",
    "cut": "its 8 likeliest tokens alone, and those that tie with them, in other proportions",
    "without": "the target without tokens that have half of its mass, as nearly as these come",
    "other": "the target, tokens shuffled",
    "same": "the target",
    "trimmed": "the target without its least likely tokens, which have at most 3 % of its mass",
    "sure": "1 for one of the tokens that the target may give",
    "astray": "1 for the least likely token of the target, which may have none",
}


def listed(values: Iterable[Any]) -> str:
    """Different values, in order.

    >>> listed([1000, 3, 3])
    '1,000, 3'
    """
    return ", ".join(f"{x:,}" if isinstance(x, int) else str(x) for x in dict.fromkeys(values))


def boxed(one: Any) -> str:
    """What shapes are drawn of, if some are."""
    if one.box is None:
        return ""
    sizes, each, others = map(listed, one.box)
    return f"drawn by the seed: for each of {each} one of {sizes} and one of {others}, or between"


def laws(one: Any) -> tuple[str, str]:
    """The families of targets and drafters; empty where they are the usual ones."""
    usual = type(one)("", one.shapes)
    return (
        "" if one.targets == usual.targets else listed(one.targets),
        "" if one.drafters == usual.drafters else listed(one.drafters),
    )


def of_drafts(one: Stratum[Shape]) -> tuple[str, ...]:
    """The row of a stratum of batches of drafts."""
    usual = Stratum(one.name, one.shapes)
    more: list[object] = [
        one.name in (ONE_TEMPERATURE, BESIDE_GREEDY, ODD_TEMPERATURES) and "`ragged` alone",
        one.way != usual.way and WAYS[one.way].way,
        not one.laws and "`draft_probs=None`",
        one.in_turn and "`draft_probs=None` in every other call",
        boxed(one),
        one.padding and f"{one.padding:,} ids at the end without probability",
        not one.ragged and "rows of one length",
        one.endings and f"p = {MASS:g} for an id that ends texts, which is never drafted",
        one.pairs is not None and f"{one.pairs} pair{'s' * (one.pairs > 1)} of laws",
        one.after and f"after {one.after:,} calls",
        one.greedy_first and "after one call in each shape whose laws are all certain",
        one.steady and "one pair of laws for all positions of a row",
    ]
    shapes = one.shapes
    sizes = (
        [shape.vocabulary for shape in shapes],
        [shape.lookahead for shape in shapes],
        [shape.batch for shape in shapes],
    )
    families = ("zipf", "half of the target's other ids") if one.endings else laws(one)
    return (*map(listed, sizes), *families, "; ".join(str(x) for x in more if x), f"{one.cost:g}")


def of_calls(one: Stratum[CallShape]) -> tuple[str, ...]:
    """The row of a stratum of steps or texts."""
    more = [
        one.ends and "the last token ends a text",
        boxed(one),
        one.related and "contexts resemble those before them",
        one.memory and f"how many tokens laws depend on: {one.memory}",
    ]
    sizes = (
        [shape.vocabulary for shape in one.shapes],
        [shape.context for shape in one.shapes],
        [shape.asked for shape in one.shapes],
    )
    return (*map(listed, sizes), *laws(one), "; ".join(str(x) for x in more if x), f"{one.cost:g}")


def of_trees(one: Stratum[TreeShape]) -> tuple[str, ...]:
    """The row of a stratum of trees."""
    branchings = dict.fromkeys(shape.branching for shape in one.shapes)
    beside = f"beside trees of {' and '.join(map(str, one.beside))}" if one.beside else ""
    return (
        listed(shape.vocabulary for shape in one.shapes),
        " · ".join(", ".join(map(str, branching)) for branching in branchings),
        listed(shape.batch for shape in one.shapes),
        *laws(one),
        "; ".join(filter(None, [listed(one.ways), beside, boxed(one)])),
        f"{one.cost:g}",
    )


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def tables() -> str:
    """What is judged, on what laws, and what is bet on."""
    both = "targets", "drafters", "otherwise", "tokens"
    parts = []
    drafts = "stratum", "V", "drafts", "rows", *both
    parts.append("## Of drafts: `verify` and `ragged`\n\n")
    rows = [(f"`{one.name}`", *of_drafts(one)) for one in (FIRST, *STRATA)]
    parts.append(table(drafts, rows))
    pairs = sum(name.startswith("pair-") for name, _ in ASKED)
    parts.append(
        f"\n`strata/pair-1` to `pair-{pairs}` have the shapes of one stratum and the laws and the "
        "way of calling of another, drawn by the seed. "
        f"Shapes: {listed(one.name for one in SHAPED)}. "
        f"Laws and ways: {listed(one.name for one in OTHER)}.\n"
    )
    for title, heads, strata, row in (
        ("Of steps: `step`", ("context", "lookahead"), STEP_STRATA, of_calls),
        ("Of texts: `generate`", ("prompt", "tokens to generate"), TEXT_STRATA, of_calls),
    ):
        names = "stratum", "V", *heads, *both
        parts.append(f"\n## {title}\n\n")
        parts.append(table(names, [(f"`{one.name}`", *row(one)) for one in strata]))
    trees = "stratum", "V", "siblings by level", "rows", *both
    parts.append("\n## Of trees: `tree`\n\n")
    parts.append(table(trees, [(f"`{one.name}`", *of_trees(one)) for one in TREE_STRATA]))
    parts.append(
        "\n## What is bet on\n\nIn every stratum, at every place, that too many or too few "
    )
    parts.append("tokens come of a kind, or that a mean is off:\n\n")
    parts += [f"* tokens {WORDS[name]};\n" for name in FEATURES[:-1]]
    parts.append(f"* tokens {WORDS[FEATURES[-1]]}.\n\n")
    parts.append(f"Places of batches of drafts: {listed(PLACES)}. Of steps and texts: ")
    parts.append(f"{listed(TEXT_PLACES)}. Of trees: {listed(TREE_PLACES)}. ")
    parts.append(
        "And each shape by itself.\n\n"
        f"From evidence of {math.exp(SUSPECT):.0f} on a stratum goes on for {LONGER} times its "
        "tokens, unless it decides.\n\n## Families of laws\n\n"
    )
    for title, told, usual in (
        ("Targets", TARGETS, ORDINARY),
        ("Drafters", DRAFTERS, USUAL),
    ):
        seldom = [name for name in told if name not in usual]
        named = f"all but {' and '.join(seldom)} where nothing is said"
        parts.append(f"{title}, {named}:\n\n| family | law, but for its sum |\n| --- | --- |\n")
        parts += [f"| {name} | {words} |\n" for name, words in told.items()]
        parts.append("\n")
    parts.append("## What is not in the tables\n\n")
    close = ", ".join(f"`{one.name}`" for one in (CLOSE, CLOSE_TREES))
    parts.append(
        "* `strata/own-shape` has the shapes that a user asks for, `strata/large-call` one call "
        "of more than 2^24 numbers, which is looked at for impossible tokens alone.\n"
        "* Samplers that decode by argmax are judged at these shapes too, exactly, and at "
        f"{close}: targets of the family close.\n"
        "* A tree verifier that takes one tree for all rows is given targets of "
        f"{listed(WHOLE)}, and drafters {listed(WIDE)}, whatever a row says.\n"
        "* A sampler that takes rows of one length alone has them everywhere, and one with a "
        "largest batch none above it.\n"
    )
    return "".join(parts)
