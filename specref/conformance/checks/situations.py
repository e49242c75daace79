"""Stage strata of the contracts `step`, `generate` and `tree`: bets on the emitted tokens."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from specref.conformance.checks.check import Check, not_applicable
from specref.conformance.checks.shifts import cells_needed, outcome_of, scale, tokens_needed
from specref.conformance.judge import Judge
from specref.conformance.status import Outcome
from specref.conformance.strata import texts, trees
from specref.conformance.strata.campaign import Found
from specref.conformance.strata.shape import Sized
from specref.conformance.strata.table import STEP_STRATA, TEXT_STRATA, TREE_STRATA
from specref.conformance.strata.texts import CallStratum, run_calls
from specref.conformance.strata.trees import TreeShape, TreeStratum, run_trees
from specref.contracts.calling import Verifier
from specref.contracts.errors import UntriedError, told_sizes
from specref.contracts.functions import GenerateContract, StepContract
from specref.contracts.tree import TreeContract

S = TypeVar("S", bound=Sized)
CELLS = 100_000_000
SPELLINGS = 100


def judged_calls(stratum: CallStratum, judge: Judge) -> Outcome:
    """A campaign of calls of a function of two models."""
    stratum = stratum.with_drawn(judge.rng(f"shapes/{stratum.name}"))
    if judge.declared and judge.declared.by_text:
        # The law of what is drafted as text is a sum over the texts of so many tokens.
        few = tuple(
            shape
            for shape in stratum.shapes
            if not shape.text and shape.vocabulary**shape.asked <= SPELLINGS
        )
        if not few:
            return not_applicable(f"the rule {judge.declared.name} reads text: too many spellings")
        stratum = replace(stratum, shapes=few)
    return outcome_of([call_campaign(stratum, judge, judge.level)], judge)


def call_campaign(stratum: CallStratum, judge: Judge, level: float, cost: float = 1.0) -> Found:
    """The campaign of a stratum of calls."""
    tokens = tokens_needed(judge, level, len(texts.PLACES) + len(stratum.shapes), stratum.cost)
    cells = int(CELLS * scale(judge) * cost)
    rng = judge.rng(f"strata/{stratum.name}")
    return run_calls(
        stratum, judge.subject, level, tokens, cells, rng, judge.advance, judge.seconds
    )


def tokens_of_calls(judge: Judge, ids: Collection[str]) -> int:
    """How many tokens the strata of texts with these ids are judged by."""
    return sum(
        tokens_needed(judge, judge.level, len(texts.PLACES) + len(one.shapes), one.cost)
        for one in TEXT_STRATA
        if f"strata/{one.name}" in ids
    )


def judged_trees(stratum: TreeStratum, judge: Judge) -> Outcome:
    """A campaign of verified trees."""
    if why := stratum.refusal(judge.capabilities):
        return not_applicable(why)
    whole = stratum.with_drawn(judge.rng(f"shapes/{stratum.name}"))
    fitted = whole.fitted(judge.capabilities)
    return outcome_of([tree_campaign(fitted, judge.verifier, judge, judge.level)], judge)


def tree_campaign(
    stratum: TreeStratum, verifier: Verifier, judge: Judge, level: float, cost: float = 1.0
) -> Found:
    """The campaign of a stratum of trees."""
    places = len(trees.PLACES) + len(stratum.shapes)
    tokens = tokens_needed(judge, level, places, stratum.cost)
    cells = cells_needed(CELLS * scale(judge) * cost, judge, level, places, stratum.shapes)

    def at(shapes: Sequence[TreeShape]) -> Found:
        left, rng = replace(stratum, shapes=tuple(shapes)), judge.rng(f"strata/{stratum.name}")
        return run_trees(left, verifier, level, tokens, cells, rng, judge.advance, judge.seconds)

    return as_far_as_possible(judge, verifier, stratum.shapes, at)


def as_far_as_possible(
    judge: Judge, verifier: Verifier, shapes: Sequence[S], run: Callable[[Sequence[S]], Found]
) -> Found:
    """What a campaign finds at those of its shapes that the verifier can be tried at.

    Raises
    ------
    UntriedError
        It can be tried at none of them, or something else than a size stands in the way.
    """
    left = tuple(shapes)
    while True:
        errors = {shape: judge.limits.why_not(sizes_of(shape)) for shape in left}
        for shape, why in errors.items():
            if why is not None:
                judge.untried.append(f"{told_sizes(sizes_of(shape))} ({why.why})")
        left = tuple(shape for shape, why in errors.items() if why is None)
        if not left:
            raise next(filter(None, errors.values()))
        try:
            return run(left)
        except UntriedError as error:
            if not error.by_size:
                raise
            judge.limits.note(verifier.sizes, error)
            if not any(judge.limits.why_not(sizes_of(one)) for one in left):
                raise


def sizes_of(shape: Sized) -> tuple[int, int, int]:
    """Tokens of the vocabulary, drafts of a row, rows.

    Examples
    --------
    >>> from specref.conformance.strata.shape import Shape
    >>> sizes_of(Shape(8, 2, 64))
    (8, 2, 64)
    """
    named = shape.sizes
    return named["V"], named.get("lookahead", named.get("nodes", 0)), named["batch"]


KINDS: tuple[tuple[type, tuple[tuple[str, Callable[[Judge], Outcome]], ...]], ...] = (
    (StepContract, tuple((one.name, partial(judged_calls, one)) for one in STEP_STRATA)),
    (GenerateContract, tuple((one.name, partial(judged_calls, one)) for one in TEXT_STRATA)),
    (TreeContract, tuple((one.name, partial(judged_trees, one)) for one in TREE_STRATA)),
)
CHECKS = tuple(
    Check(f"strata/{name}", kind, ask, statistical=True, law=True)
    for kind, asked in KINDS
    for name, ask in asked
)
