"""Stage strata: the situations that engines meet, each judged by bets on the emitted tokens."""

import math
import mmap
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from specref.arrays import Floats
from specref.conformance.checks.check import (
    DRAFTS,
    Check,
    failed,
    inconclusive,
    not_applicable,
    passed,
    sampled,
)
from specref.conformance.judge import Judge
from specref.conformance.status import Outcome, Status
from specref.conformance.strata import calls, loops
from specref.conformance.strata.batches import Batches, Trees
from specref.conformance.strata.calling import BesideGreedy, Called
from specref.conformance.strata.calls import Calling
from specref.conformance.strata.campaign import Found
from specref.conformance.strata.laws import FEATURES
from specref.conformance.strata.shape import CallShape, Shape, Sized, TreeShape
from specref.conformance.strata.shape import tried as values_of
from specref.conformance.strata.stratum import Drawing, Effort, Stratum, run
from specref.conformance.strata.table import (
    BESIDE_GREEDY,
    FEWEST_FIRST,
    FIRST,
    ODD_TEMPERATURES,
    ONE_TEMPERATURE,
    OWN,
    STEP_STRATA,
    STRATA,
    TEXT_STRATA,
    TREE_STRATA,
    drawn_pairs,
    own_calls,
    own_stratum,
    own_trees,
)
from specref.contracts.batch import Batch
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import AS_TEXT, Capabilities
from specref.contracts.contract import Contract
from specref.contracts.errors import UntriedError, told_sizes
from specref.contracts.functions import GenerateContract, StepContract
from specref.contracts.ragged import RaggedContract
from specref.contracts.tree import TreeContract, TreeVerifier
from specref.contracts.verify import VerifyContract
from specref.statistics.features import tokens_to_detect

USELESS, LEAST = 0.5, 0.4
"""A stratum that would have shown nothing smaller is inconclusive; so none is planned for less."""
CELLS, CELLS_OF_OTHERS = 12_000_000, 100_000_000
"""Numbers in laws after which a stratum ends: of batches, and of calls or trees."""
OWN_COST, PAIRS, SPELLINGS = 40.0, 3, 100
MANY_ROWS, MANY_DRAFTS, MANY_IDS = 140, 4, 32_000
MOST_AS_TEXT, SLOWER_AS_TEXT, OF_LARGE_VOCABULARIES = 1_000, 10, "vocabulary-"


def judged(stratum: Stratum[Any], judge: Judge) -> Outcome:
    """A sequential test in one situation."""
    if why := stratum.refusal(judge.capabilities):
        return not_applicable(why)
    verifier: Verifier | None = None
    if stratum.kind is Shape:
        verifier = called = judge.called(stratum.way)
        if why := called.refusal():
            return not_applicable(why)
    elif stratum.kind is TreeShape:
        verifier = judge.verifier
    given = as_sent(stratum, judge)
    if isinstance(given, str):
        return not_applicable(given)
    found = campaign(given, verifier, judge, judge.level)
    outcome = outcome_of([found], judge)
    if isinstance(verifier, BesideGreedy) and verifier.departure:
        return failed(verifier.departure, **outcome.evidence)
    if outcome.status == Status.PASSED and found.before < stratum.after:
        least = f"{found.before:,} calls came before it in time, and {stratum.after:,} should"
        return inconclusive(least, **outcome.evidence)
    return outcome


def as_sent(given: Stratum[Any], judge: Judge) -> Stratum[Any] | str:
    """The stratum, its shapes drawn, with those that can be sent; or why there are none."""
    stratum = given.with_drawn(judge.rng(f"shapes/{given.name}"))
    if stratum.kind is CallShape and judge.declared and judge.declared.by_text:
        # The law of what is drafted as text is a sum over the texts of so many tokens.
        few = tuple(
            shape
            for shape in stratum.shapes
            if not shape.text and shape.vocabulary**shape.asked <= SPELLINGS
        )
        rule = judge.declared.name
        return (
            replace(stratum, shapes=few)
            if few
            else f"the rule {rule} reads text: too many spellings"
        )
    largest = max(shape.vocabulary for shape in stratum.shapes)
    if stratum.kind is not Shape or not sent_as_text(judge) or largest <= MOST_AS_TEXT:
        return stratum
    if stratum.name.startswith(OF_LARGE_VOCABULARIES):
        return "numbers are sent as text: ask for such a --shape V=…"
    fewer = (s._replace(vocabulary=min(s.vocabulary, MOST_AS_TEXT)) for s in stratum.shapes)
    return replace(stratum, shapes=tuple(dict.fromkeys(fewer)))


def sent_as_text(judge: Judge) -> bool:
    """Whether the implementation is a program that reads numbers as text."""
    return bool(getattr(judge.implementation, AS_TEXT, False))


def campaign(
    given: Stratum[Any], verifier: Verifier | None, judge: Judge, level: float, cost: float = 1.0
) -> Found:
    """The campaign of a stratum, at those of its shapes that the sampler can be tried at.

    Without a verifier for functions of two models.
    """
    stratum = given if verifier is None else given.fitted(verifier.capabilities)

    def attempt(left: tuple[Any, ...]) -> Found:
        drawing = drawing_of(replace(stratum, shapes=left), verifier, judge)
        places = len(drawing.places) + len(stratum.shapes)
        tokens = tokens_needed(judge, level, places, stratum.cost)
        cells = cells_of(stratum, judge, cost)
        if verifier is not None:
            cells = cells_needed(cells, judge, level, places, stratum.shapes)
        return run(drawing, Effort(level, tokens, cells, judge.advance, judge.seconds))

    if verifier is None:
        return attempt(stratum.shapes)
    found = as_far_as_possible(judge, verifier, stratum.shapes, attempt)
    if isinstance(verifier, Called):
        judge.calls_made = found.before + found.calls
    return found


def drawing_of(stratum: Stratum[Any], verifier: Verifier | None, judge: Judge) -> Drawing[Any]:
    """How calls of a stratum are drawn and made."""
    rng = judge.rng(f"strata/{stratum.name}")
    if isinstance(verifier, Called):
        return Batches(stratum, verifier, rng, judge.calls_made, judge.options.seconds)
    if verifier is None:
        kind = loops.Loops if loops.of_batches(stratum) else Calling
        return kind(stratum, judge.subject, rng)
    return Trees(stratum, verifier, rng)


def tokens_needed(judge: Judge, level: float, places: int, cost: float) -> int:
    """Tokens of a stratum with bets at so many places, unless their number is given.

    Not fewer than show a shift of `LEAST`: a stratum that costs little is not useless therefore.
    """
    features = places * len(FEATURES)
    least = tokens_to_detect(LEAST, level, features)
    wanted = int(cost * tokens_to_detect(judge.detect_tv, level, features))
    return judge.trials or max(least, wanted)


def cells_of(stratum: Stratum[Any], judge: Judge, cost: float) -> float:
    """Numbers in laws that a stratum is given; more of them for distances smaller than 0.05."""
    scale = max(1.0, (0.05 / judge.detect_tv) ** 2)
    if stratum.kind is not Shape:
        return CELLS_OF_OTHERS * scale * cost
    slower = SLOWER_AS_TEXT if sent_as_text(judge) else 1
    return CELLS * scale * stratum.cost * cost / slower


def cells_needed(
    cells: float, judge: Judge, level: float, places: int, shapes: Sequence[Sized]
) -> int:
    """Numbers in laws that end a stratum: enough for `LEAST` of rows with one token each."""
    least = tokens_to_detect(LEAST, level, places * len(FEATURES))
    a_row = sum(one.cells / one.sizes["batch"] for one in shapes) / len(shapes)
    return math.ceil(cells if judge.trials else max(cells, least * a_row))


def tokens_of_calls(judge: Judge, ids: Collection[str]) -> int:
    """How many tokens the strata of texts with these ids are judged by."""
    return sum(
        tokens_needed(judge, judge.level, len(calls.PLACES) + len(one.shapes), one.cost)
        for one in TEXT_STRATA
        if f"strata/{one.name}" in ids
    )


def as_far_as_possible(
    judge: Judge,
    verifier: Verifier,
    shapes: Sequence[Any],
    attempt: Callable[[tuple[Any, ...]], Found],
) -> Found:
    """What a campaign finds at those of its shapes that the verifier can be tried at."""
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
            return attempt(left)
        except UntriedError as error:
            if not error.by_size:
                raise
            judge.limits.note(verifier.sizes, error)
            if not any(judge.limits.why_not(sizes_of(one)) for one in left):
                raise


def sizes_of(shape: Sized) -> tuple[int, int, int]:
    """Tokens of the vocabulary, drafts of a row, rows."""
    named = shape.sizes
    return named["V"], named.get("lookahead", named.get("nodes", 0)), named["batch"]


def outcome_of(campaigns: Sequence[Found], judge: Judge) -> Outcome:
    """The outcome of campaigns in a stratum, one for each dtype."""
    detectable = max(found.detectable for found in campaigns)
    tokens, made = (sum(getattr(f, n) for f in campaigns) for n in ("tokens", "calls"))
    tried = values_of(campaigns[0].by_shape)
    if heats := sorted({heat for found in campaigns for heat in found.temperatures}):
        tried += f"; temperature {', '.join(f'{one:g}' for one in heats)}"
    evidence = {
        "calls": made,
        "rows": sum(found.rows for found in campaigns),
        "tokens": tokens,
        "alpha": judge.level,
        "detectable_shift": detectable,
        "tried": tried,
        "by_shape": {
            f"{shape}, {found.dtype}": shift
            for found in campaigns
            for shape, shift in found.by_shape.items()
        },
        "log10_evidence": max(found.log10_evidence for found in campaigns),
        "log10_threshold": campaigns[0].log10_threshold,
    }
    for found in campaigns:
        if found.impossible:
            return failed(f"impossible: {found.impossible}", **evidence)
        if found.lossy:
            return failed(
                f"tokens are not drawn from the target's rows: {found.worst}, by "
                f"{abs(found.shift):.3f} a token; evidence 10^{found.log10_evidence:.0f} after "
                f"{found.tokens:,} tokens",
                **evidence,
            )
    told = f"{tried}: {tokens:,} tokens, {made:,} calls"
    if detectable > USELESS or not tokens:
        return inconclusive(f"{told}: too few to see much", **evidence)
    return passed(f"{told}; a shift ≥ {detectable:.2g} would be detected", **evidence)


def pair(index: int, judge: Judge) -> Outcome:
    """A sequential test where two situations meet; the seed says which."""
    stratum = drawn_pairs(judge.rng("strata/pairs"), PAIRS)[index]
    outcome = judged(stratum, judge)
    return replace(
        outcome,
        message=f"{stratum.name}: {outcome.message}",
        evidence={**outcome.evidence, "pair": stratum.name},
    )


def first_call(judge: Judge) -> Outcome:
    """The tokens of the first call of all, which `smoke/answers` has made before any other."""
    if (most := judge.capabilities.batch) and most < FEWEST_FIRST:
        return not_applicable(f"takes {most} rows a call: too few to judge one call")
    return outcome_of([first_answered(judge)], judge)


def first_answered(judge: Judge) -> Found:
    """What the first call has shown; makes it if there was none."""
    if judge.first is None:
        stratum, rng = FIRST.fitted(judge.capabilities), judge.rng(f"strata/{FIRST.name}")
        drawing = Batches(stratum, judge.called(), rng)
        judge.first = run(drawing, Effort(judge.level, 1, 1, judge.advance))
    return judge.first


def large_call(judge: Judge) -> Outcome:
    """No impossible token in one call with more than 2^24 probabilities.

    Above that float32 rounds odd numbers. Drafts have odd ids, and are certain. In each row some
    of them are certain of the target, too; where the next token comes from, the neighbours of the
    draft are likely, or other ids after the last one.
    """
    if (most := judge.capabilities.batch) and most < MANY_ROWS:
        return not_applicable(f"takes {most} rows a call: too few for so many numbers")
    if sent_as_text(judge):
        return not_applicable("numbers are sent as text: too many for one call")
    rng = judge.rng("large call")
    rows, places = np.arange(MANY_ROWS)[:, None], np.arange(MANY_DRAFTS)
    none = np.zeros(MANY_ROWS, dtype=np.int64)
    ids = 1 + 2 * rng.integers(MANY_IDS // 2 - 1, size=(MANY_ROWS, MANY_DRAFTS + 1))
    kept = rng.integers(MANY_DRAFTS + 1, size=MANY_ROWS)
    drafts = ids[:, :-1]
    p, q = zeros((MANY_ROWS, MANY_DRAFTS + 1, MANY_IDS)), None
    if not judge.capabilities.one_hot:
        q = zeros((MANY_ROWS, MANY_DRAFTS, MANY_IDS))
        q[rows, places, drafts] = 1
    for side in (-1, 1):
        p[rows[:, 0], kept, ids[rows[:, 0], kept] + side] = 0.5
    before, behind = places < kept[:, None], np.arange(MANY_DRAFTS + 1) > kept[:, None]
    p[:, :-1][before, drafts[before]] = 1
    p[behind, 0] = 1
    batch = Batch(p, q, drafts, none + MANY_DRAFTS, none)
    tokens = judge.called()(batch, rng).tokens
    row, place = np.nonzero(tokens >= 0)
    token, last = tokens[row, place], kept[row]
    # Not read from `p`: that was given away, and a sampler may filter what it is given.
    off = np.where(place > last, token, np.abs(token - ids[row, place]))
    for at in np.flatnonzero(off != (place == last))[:1].tolist():
        one, position = int(row[at]), int(place[at])
        return failed(
            f"row {one}: token {tokens[one, position]} at position {position} has p = 0", row=one
        )
    shape = str(Shape(MANY_IDS, MANY_DRAFTS, MANY_ROWS))
    return passed(f"{shape}: no impossible token", tried=shape)


def zeros(shape: tuple[int, ...]) -> Floats:
    """As `numpy.zeros`; where the system can, only parts that are written take memory."""
    if not hasattr(mmap, "MAP_PRIVATE"):
        return np.zeros(shape)
    size = math.prod(shape) * np.dtype(np.float64).itemsize
    empty = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(empty).reshape(shape)


def own_shapes(judge: Judge) -> Outcome:
    """A campaign at the shapes that were asked for, in each dtype that was."""
    if not judge.options.shapes:
        return not_applicable("no shape was asked for (--shape V=…,K=…,B=…)")
    claims = own_claims(judge)
    level = judge.level / len(claims)
    outcome = outcome_of([own_campaign(judge, one, level) for one in claims], judge)
    # The header has the dtype of all other checks.
    dtypes = ", ".join(judge.options.dtypes)
    return replace(outcome, message=f"in {dtypes}: {outcome.message}") if dtypes else outcome


def own_claims(judge: Judge) -> list[Capabilities]:
    """The claims with each dtype that was asked for."""
    claims = judge.capabilities
    return [replace(claims, dtype=one) for one in judge.options.dtypes or (claims.dtype,)]


def own_campaign(judge: Judge, claims: Capabilities, level: float) -> Found:
    """A campaign at the shapes that were asked for, with these claims."""
    shapes = judge.options.shapes
    if "batch" not in judge.contract.shaped:
        return campaign(own_calls(shapes), None, judge, level, OWN_COST)
    if judge.contract.trees:
        stratum: Stratum[Any] = own_trees(shapes)
        verifier: Verifier = TreeVerifier(judge.implementation, claims, judge.timeout)
    else:
        stratum, verifier = own_stratum(shapes), judge.called(claims=claims)
    verifier.sizes_named = True
    return campaign(stratum, verifier, judge, level, OWN_COST)


def of_strata(strata: Iterable[Stratum[Any]], kind: type[Contract]) -> Iterator[Check]:
    """The checks of some strata, for contracts of a kind, or those that tell temperatures."""
    for one in strata:
        kinds = RaggedContract if one.name in OF_TEMPERATURES else kind
        weight = max(1.0, one.cost / 2, one.after / 10_000)
        yield sampled(f"strata/{one.name}", kinds, partial(judged, one), weight=weight)


OF_TEMPERATURES = (ONE_TEMPERATURE, BESIDE_GREEDY, ODD_TEMPERATURES)
CHECKS = (
    sampled(f"strata/{FIRST.name}", VerifyContract, first_call),
    *of_strata(STRATA, VerifyContract),
    *(
        sampled(f"strata/pair-{index + 1}", VerifyContract, partial(pair, index))
        for index in range(PAIRS)
    ),
    sampled(f"strata/{OWN}", (VerifyContract, TreeContract, StepContract), own_shapes),
    Check("strata/large-call", DRAFTS, large_call),
    *of_strata(STEP_STRATA, StepContract),
    *of_strata(TEXT_STRATA, GenerateContract),
    *of_strata(TREE_STRATA, TreeContract),
)
