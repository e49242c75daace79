"""In which situations specref judges, for docs/checks.md: from its own tables."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from specref.conformance.checks.strata import PAIRS
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
    "flat": "all equal",
    "peaked": "0.97 for one, 1 / rank for the rest",
    "confident": "0.92 for one, 1 / rank for the rest",
    "long tail": "half of the mass on 8 tokens, half spread evenly over all",
    "truncated": "1 / rank^0.7 for 20 tokens, or half of a small vocabulary; 0 for the others",
    "certain": "1 for one",
    "close": "each slightly smaller than the one before it, by less than 16 bits can show",
}
DRAFTERS: Mapping[str, str] = {
    "near": "p times exp of a normal number with standard deviation 0.7, for each token",
    "sharp": "p^2",
    "wide": "the square root of p, plus 1 / V",
    "wrong": "nearly 1 for one token: the least likely that has p of 1 / (50 V) or more",
    "cut": "only the target's 8 likeliest tokens, with ties, in other proportions",
    "without": "p without some tokens, which have about half of its mass",
    "other": "p with its tokens shuffled",
    "same": "p",
    "trimmed": "p without its least likely tokens, which have at most 3 % of its mass",
    "sure": "1 for one of the tokens with p > 0",
    "astray": "1 for the target's least likely token, which may have p = 0",
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
        one.name in (ONE_TEMPERATURE, BESIDE_GREEDY, ODD_TEMPERATURES) and "only `ragged`",
        one.way != usual.way and WAYS[one.way].way,
        not one.laws and "`draft_probs=None`",
        one.in_turn and "`draft_probs=None` in every other call",
        boxed(one),
        one.padding and f"{one.padding:,} ids at the end without probability",
        not one.ragged and "rows of one length",
        one.endings and f"p = {MASS:g} for an id that ends texts, which is never drafted",
        one.pairs is not None and f"{one.pairs} pair{'s' * (one.pairs > 1)} of p and q",
        one.after and f"after {one.after:,} calls",
        one.greedy_first and "after one call in each shape where every p and q is certain",
        one.steady and "the same p and q at all positions of a row",
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
        one.memory and f"distributions depend on so many tokens: {one.memory}",
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
    beside = f"next to trees of {' and '.join(map(str, one.beside))}" if one.beside else ""
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
    """What is judged, on which distributions, and what is bet on."""
    both = "targets", "draft models", "otherwise", "tokens"
    parts = []
    drafts = "situation", "V", "draft tokens", "rows", *both
    parts.append("## Batches: `verify` and `ragged`\n\n")
    rows = [(f"`{one.name}`", *of_drafts(one)) for one in (FIRST, *STRATA)]
    parts.append(table(drafts, rows))
    parts.append(
        f"\n`strata/pair-1` to `pair-{PAIRS}` have the shapes of one situation, and the "
        "distributions and call pattern of another, drawn by the seed. "
        f"Shapes: {listed(f'`{one.name}`' for one in SHAPED)}. "
        f"Distributions and call patterns: {listed(f'`{one.name}`' for one in OTHER)}.\n"
    )
    for title, heads, strata, row in (
        ("Steps: `step`", ("context", "lookahead"), STEP_STRATA, of_calls),
        ("Texts: `generate`", ("prompt", "tokens to generate"), TEXT_STRATA, of_calls),
    ):
        names = "situation", "V", *heads, *both
        parts.append(f"\n## {title}\n\n")
        parts.append(table(names, [(f"`{one.name}`", *row(one)) for one in strata]))
    trees = "situation", "V", "siblings by level", "rows", *both
    parts.append("\n## Trees: `tree`\n\n")
    parts.append(table(trees, [(f"`{one.name}`", *of_trees(one)) for one in TREE_STRATA]))
    parts.append(
        "\n## Features\n\nIn every situation and at every place specref tests how often a kind of "
    )
    parts.append("token comes, or a mean over tokens:\n\n")
    parts += [f"* tokens {WORDS[name]};\n" for name in FEATURES[:-1]]
    parts.append(f"* tokens {WORDS[FEATURES[-1]]}.\n\n")
    parts.append(f"Places in batches: {listed(PLACES)}.\n\nPlaces in steps and texts: ")
    parts.append(f"{listed(TEXT_PLACES)}.\n\nPlaces in trees: {listed(TREE_PLACES)}.\n\n")
    parts.append(
        "Each shape is also tested by itself. "
        f"If the e-value reaches {math.exp(SUSPECT):.0f}, a situation gets up to {LONGER} times "
        "its tokens.\n\n## Families of distributions\n\n"
    )
    for title, told, usual in (
        ("Targets", TARGETS, ORDINARY),
        ("Draft models", DRAFTERS, USUAL),
    ):
        seldom = [name for name in told if name not in usual]
        named = f"where a row of the tables says nothing, all but {', '.join(seldom)}"
        parts.append(
            f"{title}; {named}:\n\n| family | weights, before normalising |\n| --- | --- |\n"
        )
        parts += [f"| {name} | {words} |\n" for name, words in told.items()]
        parts.append("\n")
    parts.append("## What is not in the tables\n\n")
    close = ", ".join(f"`{one.name}`" for one in (CLOSE, CLOSE_TREES))
    parts.append(
        "* `strata/own-shape` has the shapes that you ask for with `--shape`. `strata/large-call` "
        "is one call of more than 2^24 numbers, tested for impossible tokens only.\n"
        "* Samplers that decode by argmax are tested at these shapes, too, exactly, and at "
        f"{close} with targets of the family close.\n"
        "* If a tree verifier takes one tree for all rows, targets are "
        f"{listed(WHOLE)}, and draft models {listed(WIDE)}, whatever a row says.\n"
        "* If a sampler takes only rows of one length, all rows have one length. No batch is "
        "larger than the declared one.\n"
    )
    return "".join(parts)
