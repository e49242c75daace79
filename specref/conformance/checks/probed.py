"""Checks without sampling error: randomness is intercepted, and every branch is followed."""

from collections.abc import Callable, Container, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from specref.algorithms.trees.topdown import Branching
from specref.arrays import Floats
from specref.conformance.checks.check import (
    DRAFTS,
    LARGE,
    Check,
    edge,
    failed,
    intercepted,
    not_applicable,
    passed,
    untried,
)
from specref.conformance.checks.strata import sent_as_text
from specref.conformance.differences import difference
from specref.conformance.judge import ExactLaw, Judge
from specref.conformance.status import FIRST, Finding, Outcome, Status
from specref.conformance.wrong_decision import (
    Verified,
    short,
    verified_chain,
    verified_step,
    verified_tree,
    wrong_decision,
)
from specref.contracts.contract import ModelContract
from specref.contracts.errors import UntriedError
from specref.contracts.fixtures import TOP, WITH, TreePlace, Way, tree_place
from specref.contracts.functions import GenerateContract, StepContract
from specref.contracts.process_state import bounded_memory
from specref.contracts.timeout import patience
from specref.contracts.tree import TreeContract
from specref.distributions import total_variation
from specref.models import Model, as_float, table_model
from specref.probing import probe_block
from specref.probing.blocks import (
    ProbedBlock,
    probe_tokens,
    probe_trees,
    rows_after,
    shape_of,
    trees_of,
)
from specref.probing.edges import EdgeEvent, middle_edges, probed_edges
from specref.probing.probe import verification_program
from specref.probing.program import is_endless
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo import FIXTURES

EXACT = 1e-6
LESS = (2.0**-52, 1.5e-7)
# By lookahead: the drafts that may be rejected besides the first and the last. Of the first eight
# all pairs meet in a block, so that coins that they share are seen. Two drafts are those of
# `joint/probed`.
UNSURE: Mapping[int, tuple[int, ...]] = MappingProxyType(
    {
        **{1: (), 3: (1,), 4: (1, 2), 5: (1, 2, 3), 6: (1, 4), 7: (3, 4, 5), 8: (1, 2, 5, 6)},
        **{9: (3, 4, 7), 33: (2,)},
    }
)
# Searches that end take 1,500.
MOST_RUNS = 10_000
# Enough to trace comparisons; a search takes far more. Drafts are random, too, in steps and loops.
FEW_RUNS, RUNS_OF_STEPS, RUNS_OF_TEXTS = 500, 1_500, 3_000
LONGEST_OF_STEPS = 9
SHORTEST, LONGEST, AGAIN = 5.0, 60.0, 2
"""Seconds for the law of a step or a loop: the longest, or between both those that drawing is
given; and how often a law that is off is computed again."""
# Numbers that float32 has, too.
TWO_LIKELY, EITHER, SURE = np.array([[0.75, 0.25, 0], [0.5, 0.5, 0], [1.0, 0, 0]])
# What is left of p after the first draft is on two tokens, in other proportions than p.
SPREAD = [0.5, 0.25, 0.25], [0.875, 0.125, 0]
THREE, ENDING = Vocabulary("abc"), Vocabulary("abc", eos="c")
PROMPT = (1, 0)
# Levels at every distance from 1 to 6: coins that two of them share are seen.
RULER, LEVELS = (0, 1, 4, 6), (1,) * 7


def probed(judge: Judge) -> Outcome:
    """The exact joint distribution of the completed block, if all calls can be interpreted."""
    case = two_drafts(judge.contract.trees)
    law: Callable[[], ProbedBlock]
    if case.place is not None:
        trees = judge.verifier, case.target, case.drafter, case.place
        law = partial(probe_trees, *trees, max_runs=MOST_RUNS)
    else:
        law = law_of_blocks(judge, case, MOST_RUNS)
    found = settled(judge, law)
    judge.exact_laws.append(ExactLaw(FIRST[1], found.emitted, found.error_bound))
    return compared(found, judge, case)


class ExactCase(NamedTuple):
    """What a law is of; a place, if its drafts are a tree."""

    target: Model
    drafter: Model
    context: Tokens
    lookahead: int
    place: TreePlace | None = None


def two_drafts(trees: bool) -> ExactCase:
    """A fixture; of trees two siblings without replacement, and a certain child of each."""
    pair = FIXTURES["c"]
    if not trees:
        return ExactCase(pair.target, pair.drafter, pair.context, pair.lookahead)
    drafter = table_model(pair.target.vocabulary, {(): [0, "3/4", "1/4"]}, [0, 1, 0])
    place = tree_place((), (2, 1))
    return ExactCase(pair.target, drafter, place.context, place.lookahead, place)


def one_draft() -> ExactCase:
    """A draft that may be rejected; p and q are on two tokens of three."""
    return ExactCase(*unsure_drafts(1), (), 1)


def law_of_blocks(judge: Judge, case: ExactCase, max_runs: int) -> Callable[[], ProbedBlock]:
    """What computes the exact law of the block after random drafts.

    A step draws these itself; a sampler is given them, and may run `max_runs` times for each.
    """
    asked = judge.implementation, *case[:4]
    if isinstance(judge.contract, StepContract):
        return partial(probe_tokens, *asked, case.lookahead + 1, **_at_most(RUNS_OF_STEPS, judge))
    how: dict[str, Any] = {"capabilities": judge.capabilities, "kind": type(judge.verifier)}
    return partial(probe_block, *asked, max_runs=max_runs, known=judge.repeats, **how)


def settled(judge: Judge, law: Callable[[], ProbedBlock]) -> ProbedBlock:
    """A law; of steps and loops, one that is off is computed anew, and has to be the same.

    They may keep more than a sampler of given drafts does: what changes once, or draws where
    nothing is intercepted, has another law each time.
    """
    found = intercepted(judge, law)
    if isinstance(judge.contract, ModelContract) and _is_off(found, judge):
        for _ in range(AGAIN):
            again = intercepted(judge, law)
            same = total_variation(again.output, found.output) <= EXACT
            if again.uninterpreted or again.failures.keys() != found.failures.keys() or not same:
                why = again.uninterpreted or "its distribution differs when it is computed again"
                return replace(found, uninterpreted=why)
    return found


def _at_most(runs: int, judge: Judge) -> dict[str, Any]:
    # Laws are not drawn: they have no share of the seconds, which drawing may have used up.
    given = judge.options.seconds
    return {"max_runs": runs, "seconds": min(LONGEST, max(given or LONGEST, SHORTEST))}


@dataclass(frozen=True)
class OneTree:
    """A tree that is probed, and the laws of its nodes.

    * `way`: How siblings are drawn; without replacement if they may not repeat.
    """

    branching: Branching
    way: Way
    target: Model
    drafter: Model


def probed_tree(tree: OneTree, judge: Judge) -> Outcome:
    """The exact joint distribution of the completed block on one kind of tree."""
    claims = judge.capabilities
    if tree.way == TOP and not claims.one_hot:
        return not_applicable("does not take draft_probs=None")
    way: Way = "without replacement" if tree.way == WITH and not claims.repeats else tree.way
    place = tree_place((), tree.branching, way)
    asked = judge.verifier, tree.target, tree.drafter, place
    law = partial(probe_trees, *asked, max_runs=FEW_RUNS, known=judge.repeats)
    case = ExactCase(tree.target, tree.drafter, (), place.lookahead, place)
    return compared(intercepted(judge, law), judge, case)


TREES: Mapping[str, OneTree] = MappingProxyType(
    {
        # A draft that is certain; then tokens 0 and 1 are drawn, of which 0 is mostly refused.
        "below-root": OneTree(
            (1, 2),
            WITH,
            table_model(THREE, {(): [0, 0, 1], (2,): ["1/8", "5/8", "1/4"]}, [1, 0, 0]),
            table_model(THREE, {(): [0, 0, 1]}, ["1/2", "1/2", 0]),
        ),
        # Token 0, then 1 or 0 again; and whichever was refused may follow.
        "no-laws": OneTree(
            (1, 2),
            TOP,
            table_model(THREE, {(): ["3/4", 0, "1/4"]}, ["1/2", "1/4", "1/4"]),
            table_model(THREE, {(): [1, 0, 0]}, ["1/4", "3/4", 0]),
        ),
        "7-levels": OneTree(
            LEVELS,
            "without replacement",
            # At some levels a quarter of the mass is not on the token of the drafter.
            Model(THREE, lambda at: np.roll(TWO_LIKELY if len(at) in RULER else SURE, len(at))),
            Model(THREE, lambda at: np.roll(SURE, len(at))),
        ),
    }
)


def probed_drafts(lookahead: int, judge: Judge) -> Outcome:
    """The exact joint distribution of the completed block after many different drafts.

    The first and the last are random, and some others may be rejected; the rest are certain, so
    that few numbers matter.
    """
    if judge.unprobed:
        return not_applicable(f"cannot be probed, even after one draft: {judge.unprobed}")
    models = unsure_drafts(lookahead)
    if isinstance(judge.contract, StepContract):
        models = _turned(models[0]), _turned(models[1])
    case = ExactCase(*models, (), lookahead)
    found = settled(judge, law_of_blocks(judge, case, FEW_RUNS))
    if lookahead == 1:
        judge.exact_laws.append(ExactLaw(FIRST[0], found.emitted, found.error_bound))
        if is_endless(found.uninterpreted):
            judge.unprobed = str(found.uninterpreted)
    return compared(found, judge, case)


def unsure_drafts(lookahead: int) -> tuple[Model, Model]:
    """A target and a drafter of which some drafts may be rejected; see `probed_drafts`."""
    ends = 0, lookahead - 1
    several = (*ends, *UNSURE[lookahead], lookahead)

    def target(context: Tokens) -> Floats:
        n = len(context)
        return np.roll(TWO_LIKELY if n in several else SURE, n)

    def drafter(context: Tokens) -> Floats:
        n = len(context)
        return np.roll(EITHER if n in ends else SURE, n)

    return Model(THREE, target), Model(THREE, drafter)


def turn(context: Tokens) -> int:
    """A number from the tokens of a context, in their order."""
    number = 0
    for token in context:
        number = (31 * number + token + 1) % 101
    return number


def _turned(model: Model) -> Model:
    """Which token may be likely depends on all tokens of the context."""
    return Model(
        model.vocabulary, lambda context: np.roll(model.next_token(context), turn(context))
    )


def models_that_differ(
    vocabulary: Vocabulary, spread: int, unsure: Container[int]
) -> tuple[Model, Model]:
    """A target and a drafter that differ after so many tokens, and are certain after others.

    After `spread` tokens, what is left of p after a rejection is on two tokens; after those of
    `unsure` on one.
    """

    def row(at: int, here: Any, there: Floats) -> Floats:
        return np.array(here) if at == spread else there if at in unsure else SURE

    target = Model(vocabulary, lambda context: row(len(context), SPREAD[0], TWO_LIKELY))
    drafter = Model(vocabulary, lambda context: row(len(context), SPREAD[1], EITHER))
    return _turned(target), _turned(drafter)


def probed_ending(judge: Judge) -> Outcome:
    """The exact joint distribution of a step's completed block; EOS may come anywhere."""
    case = ExactCase(*models_that_differ(ENDING, 2, (3, 4)), PROMPT, 2)
    return compared(settled(judge, law_of_blocks(judge, case, MOST_RUNS)), judge, case)


def probed_text(case: ExactCase, judge: Judge) -> Outcome:
    """The exact joint distribution of the first tokens of texts, some of which are random."""
    tokens = case.lookahead
    asked = judge.implementation, *case[:4], tokens
    law = partial(probe_tokens, *asked, whole=True, **_at_most(RUNS_OF_TEXTS, judge))
    named = f"context {PROMPT}, the first {tokens} tokens"
    return compared(settled(judge, law), judge, case, named)


TEXTS: Mapping[str, ExactCase] = MappingProxyType(
    {
        "probed": ExactCase(*models_that_differ(THREE, 2, (3, 4)), PROMPT, 3),
        "probed-ending": ExactCase(*models_that_differ(ENDING, 2, (3, 4)), PROMPT, 3),
        # At distances of 5, 6 and 11.
        "probed-12-tokens": ExactCase(*models_that_differ(THREE, 7, (2, 13)), PROMPT, 12),
    }
)


def compared(found: ProbedBlock, judge: Judge, case: ExactCase, named: str = "") -> Outcome:
    """The outcome of a law that was probed; its place may be named in words of its own."""
    if found.uninterpreted:
        return not_applicable(f"cannot be probed: {found.uninterpreted}")
    numbers: dict[str, Any] = {
        "total_variation": found.total_variation,
        "error_bound": found.error_bound,
    }
    if found.failures:
        worst = max(found.failures, key=lambda name: found.failures[name])
        return failed(
            f"raises {worst} with probability {found.failures[worst]:.2g}",
            Finding.CONTRACT,
            **numbers,
        )
    place = named or (case.place.name if case.place else "")
    numbers["difference"] = difference(found.output, found.expected, *case[:4], place=place)
    if found.assumptions:
        numbers["assumptions"] = list(found.assumptions)
    longest, tolerance = max(map(len, found.expected)), judge.capabilities.tolerance
    claimed = f"; tolerance {longest} x {tolerance:g}" if tolerance else ""
    if _is_off(found, judge):
        wrong = wrong_decision(verified(found, judge, case))
        if wrong is not None:
            numbers["decision"] = {**asdict(wrong), "text": str(wrong)}
        return failed(
            f"TV {found.total_variation:.6f} from the target, exactly{claimed}", **numbers
        )
    return passed(
        f"TV {found.total_variation:.1e} from the target, without sampling{claimed}", **numbers
    )


def verified(found: ProbedBlock, judge: Judge, case: ExactCase) -> list[Verified]:
    """What the sampler and its rule do, with each chain or tree of drafts; nothing for a loop."""
    target, drafter, context = as_float(case.target), as_float(case.drafter), case.context
    if isinstance(judge.contract, StepContract):
        law = found.by_drafts[()]
        return [verified_step(law, target, drafter, context, case.lookahead, judge.rule)]
    if isinstance(judge.contract, ModelContract):
        return []
    compared: list[Verified | None] = []
    if case.place is not None:
        for batch, weight in trees_of(target, drafter, case.place):
            probed = found.by_drafts.get(shape_of(batch))
            if probed is not None and probed.distribution:
                compared.append(verified_tree(probed, batch, weight, judge.rule))
    else:
        for drafts, probed in found.by_drafts.items():
            p, q = rows_after(target, context, drafts), rows_after(drafter, context, drafts)[:-1]
            weight = float(np.prod([law[token] for law, token in zip(q, drafts, strict=True)]))
            if drafts and probed.distribution:
                compared.append(verified_chain(probed, p, q, drafts, weight, judge.rule))
    return [one for one in compared if one is not None]


def _is_off(found: ProbedBlock, judge: Judge) -> bool:
    """Whether a law is further from the target's than rounding, and what is claimed, explain."""
    if found.uninterpreted:
        return False
    allowed = max(map(len, found.expected)) * judge.capabilities.tolerance
    return bool(found.failures) or found.total_variation > EXACT + found.error_bound + allowed


def zero_coin(judge: Judge) -> Outcome:
    """No number at an end of its range, such as a uniform of 0, lets an impossible token through.

    Noise of 0 and infinite noise are tried, too; which generators give it is told. Where sums
    over many tokens are rounded, more uniforms let one through: they are counted there, too.
    """
    p = np.array([[0.0, 0.5, 0.5, 0.0], [0.0, 0.25, 0.25, 0.5]])
    q = np.array([[0.5, 0.5, 0.0, 0.0]])
    return _edges(judge, p, q, (0,), beyond=over_many)


def over_many(judge: Judge, size: int) -> tuple[EdgeEvent, ...]:
    """What a number at its ends lets through where a row of p has so many tokens.

    In float32, the tail of such a row is lost to a sum that begins with the likely tokens.
    """
    weights = np.arange(1.0, size - 2) ** -2
    p, q = np.zeros((2, size)), np.zeros((1, size))
    p[:, 2:-1], q[:, :2] = weights / weights.sum(), 0.5
    program = verification_program(
        judge.implementation, p, q, (0,), judge.capabilities, kind=type(judge.verifier)
    )

    def events() -> tuple[EdgeEvent, ...]:
        with bounded_memory():
            return middle_edges(program, p, (0,))

    found = intercepted(judge, events, patience(judge.timeout))
    over = f", over {size:,} tokens"
    return tuple(replace(event, consequence=event.consequence + over) for event in found)


def empty_residual(judge: Judge) -> Outcome:
    """A rejection by rounding alone, with nothing left of (p - q)+, still gives a token of p.

    p is below q by the rounding of float64, and by that of float32, in which many samplers count.
    A sampler of float64 is warned of what only the latter does: its laws are not rounded so.
    """
    q = np.array([[0.25, 0.25, 0.5, 0.0]])
    outcomes, exact = [], judge.capabilities.dtype == "float64"
    for less in LESS if exact else LESS[1:]:
        p = np.array([[0.25 * (1 - less), 0.25, 0.5, 0.0], [0.25, 0.25, 0.5, 0.0]])
        found = _edges(judge, p, q, (0,))
        if exact and less == LESS[-1] and found.finding == Finding.EDGE:
            told = f"where distributions are rounded to float32: {found.message}"
            found = replace(found, status=Status.PASSED, message=told)
        outcomes.append(found)
    return max(outcomes, key=lambda one: (one.status == Status.FAILED, one.finding is not None))


def _edges(
    judge: Judge,
    p: Floats,
    q: Floats,
    drafts: Tokens,
    beyond: Callable[[Judge, int], tuple[EdgeEvent, ...]] = lambda judge, size: (),
) -> Outcome:
    one, kind = (judge.implementation, p, q, drafts), type(judge.verifier)
    program = verification_program(*one, judge.capabilities, MOST_RUNS, kind)
    # Where random numbers are drawn until some are kept, there is no end of them at such laws.
    if judge.endless:
        return untried(judge.endless)
    try:
        most = patience(judge.timeout)
        law = partial(probed_edges, program, p, drafts, known=judge.repeats)
        found, events = intercepted(judge, law, most)
    except UntriedError as error:
        judge.endless = f"ends of uniforms ({error.why})"
        return untried(judge.endless)
    if is_endless(found.uninterpreted):
        judge.endless = f"ends of uniforms ({found.uninterpreted})"
        return untried(judge.endless)
    kinds = {request.kind for cell in found.cells for request in cell.requests}
    if found.uninterpreted or not kinds - {"seed"}:
        why = found.uninterpreted or "nothing that it draws is intercepted"
        return not_applicable(f"cannot be given a random number of 0: {why}")
    size = max((shape.vocabulary for shape in judge.options.shapes), default=LARGE)
    if size > p.shape[1] and not sent_as_text(judge):
        try:
            events += beyond(judge, size)
        except UntriedError as error:
            judge.untried.append(f"ends of uniforms over {size:,} tokens ({error.why})")
    given = [event for event in events if event.chance > 0 or event.elsewhere]
    if not given:
        unknown = "".join(f"; no generator is known to give {event}" for event in events[:1])
        return passed(
            f"nothing impossible at the ends of any number that could be intercepted{unknown}"
        )
    likeliest = max(given, key=lambda event: event.per_token(size))
    known = f"; elsewhere noise is {likeliest.elsewhere}" if likeliest.elsewhere else ""
    return edge(
        f"{likeliest}{known}",
        likeliest.chance,
        size if likeliest.each else None,
        events=[str(event) for event in given],
        at=short(likeliest.call.where),
        number=f"{likeliest.call.name.rpartition('.')[2]} = {likeliest.value!r}",
        consequence=likeliest.consequence,
        elsewhere=likeliest.elsewhere,
    )


exact = partial(Check, law=True, exact=True)
CHECKS = (
    Check("boundary/zero-coin", DRAFTS, zero_coin, law=True),
    Check("boundary/empty-residual", DRAFTS, empty_residual, law=True),
    exact("joint/probed", (DRAFTS, StepContract), probed),
    exact("joint/probed-ending", StepContract, probed_ending),
    *(
        exact(f"joint/probed-{name}", TreeContract, partial(probed_tree, tree))
        for name, tree in TREES.items()
    ),
    *(
        exact(
            f"joint/probed-{n}-draft{'s' * (n > 1)}",
            DRAFTS if n > LONGEST_OF_STEPS else (DRAFTS, StepContract),
            partial(probed_drafts, n),
        )
        for n in UNSURE
    ),
    *(
        exact(f"end-to-end/{name}", GenerateContract, partial(probed_text, text))
        for name, text in TEXTS.items()
    ),
)
