"""Stage boundary for greedy decoding: every block is compared with the argmax of the target."""

import itertools
from dataclasses import replace

import numpy as np

from specref.arrays import one_hot_rows
from specref.conformance.checks.check import DRAFTS, Check, failed, not_applicable, passed
from specref.conformance.checks.greedy_strata import (
    UNCLAIMED,
    calls_problem,
    departure,
    situations,
)
from specref.conformance.checks.smoke import large_batch
from specref.conformance.judge import Judge
from specref.conformance.status import Outcome
from specref.conformance.strata.table import STEP_STRATA, own_calls
from specref.conformance.texts.greedy import first_departure, greedy_text
from specref.contracts.batch import Batch
from specref.contracts.fixtures import CHAIN_FIXTURES, Fixture, Place
from specref.contracts.functions import StepContract
from specref.contracts.sampling import AFTER_EOS, Steps, step_call, until_end
from specref.contracts.tree import TreeContract
from specref.contracts.verify import VerifyContract
from specref.models import as_float

SIZE, TIMES = 512, 4
STEPS = 105
TIES = ((0, 4), (1, 3), (0, 2), (2, 3, 4), (0, 1, 2, 3, 4))


def blocks(judge: Judge) -> Outcome:
    """On every fixture, each block is what the argmax of the target's rows makes of the drafts."""
    if not judge.capabilities.greedy:
        return UNCLAIMED
    for name in judge.fixtures:
        problem = _problem(judge, name, judge.sample(name, SIZE, name), judge.fixture(name).eos)
        if problem:
            return problem
    return passed()


def one_hot(judge: Judge) -> Outcome:
    """Without `draft_probs` blocks are such, too: argmax does not ask for them."""
    if not judge.capabilities.greedy:
        return UNCLAIMED
    if not judge.capabilities.one_hot:
        return not_applicable("does not take draft_probs=None")
    return _problem(judge, "no draft_probs", judge.certain(SIZE, "one-hot")) or passed()


def ties(judge: Judge) -> Outcome:
    """Where several tokens are the likeliest, it is one of them; drafted or not."""
    if not judge.capabilities.greedy:
        return UNCLAIMED
    return _problem(judge, "ties", tied_batch()) or passed()


def large(judge: Judge) -> Outcome:
    """A vocabulary of 32,000 tokens; in every other row both drafts are the target's own."""
    if not judge.capabilities.greedy:
        return UNCLAIMED
    batch = large_batch(judge.rng("large"))
    own = batch.target_probs[::2, 1].argmax(axis=1)
    batch.draft_tokens[::2, 1] = own
    assert batch.draft_probs is not None
    batch.draft_probs[::2, 1] = one_hot_rows(own, batch.target_probs.shape[2])
    return _problem(judge, "large vocabulary", batch) or passed()


def randomness(judge: Judge) -> Outcome:
    """Other randomness changes nothing, ties included."""
    if not judge.capabilities.greedy:
        return UNCLAIMED
    for batch in (judge.sample(judge.fixtures[0], SIZE, "twice"), tied_batch()):
        rng = judge.rng("greedy randomness")
        first, *others = (judge.verifier(batch, rng).tokens for _ in range(TIMES))
        for other in others:
            for row in np.flatnonzero((first != other).any(axis=1))[:1].tolist():
                return failed(
                    f"row {row} is {first[row].tolist()}, and {other[row].tolist()} with other "
                    "randomness: an argmax depends on none",
                    **batch.facts(row),
                )
    return passed()


def steps(judge: Judge) -> Outcome:
    """Each token of a block is an argmax of the target after what comes before it."""
    if not judge.capabilities.greedy:
        return UNCLAIMED
    for name in CHAIN_FIXTURES:
        fixture = _with_later_places(judge.fixture(name))
        call = step_call(judge.implementation, fixture)
        one = Steps(call, fixture, fixture.lookahead + 1, judge.timeout, drafted=True)
        place, drawn, _ = one(STEPS, judge.rng(f"greedy/{name}"))
        for index, block in zip(place.tolist(), drawn.tolist(), strict=True):
            problem = _step_problem(fixture, index, tuple(x for x in block if x >= 0))
            if problem:
                return problem
    shapes = judge.options.shapes
    strata = (*STEP_STRATA, *([own_calls(shapes)] if shapes else []))
    return calls_problem(judge, strata) or passed(f"also in {len(strata)} strata")


def _with_later_places(fixture: Fixture) -> Fixture:
    """Also where the target's own text goes on: its EOS comes before the last token there."""
    target, later = as_float(fixture.target), list[Place]()
    for place in fixture.places:
        text = greedy_text(target, place.context, 1)
        if place.lookahead and not target.vocabulary.ends(text):
            later.append(Place((*place.context, *text), place.lookahead))
    return replace(fixture, places=(*fixture.places, *later))


def tied_batch() -> Batch:
    """Rows of two drafts, with ties of the target at each position, and every pair of drafts."""
    size = 1 + max(map(max, TIES))
    laws = np.ones((len(TIES), size))
    for law, tied in zip(laws, TIES, strict=True):
        law[list(tied)] = 3
    laws /= laws.sum(axis=1, keepdims=True)
    pairs = itertools.product(range(len(TIES)), range(size), range(size))
    first, *drafts = np.array(list(pairs)).T
    p = laws[(first[:, None] + np.arange(3)) % len(TIES)]
    none = np.zeros(len(first), dtype=np.int64)
    return Batch(p, np.full_like(p[:, 1:], 1 / size), np.stack(drafts, axis=1), none + 2, none)


def _problem(judge: Judge, name: str, batch: Batch, eos: int | None = None) -> Outcome | None:
    return departure(judge.verifier, judge.rng(f"greedy/{name}"), name, batch, eos)


def _step_problem(fixture: Fixture, index: int, block: tuple[int, ...]) -> Outcome | None:
    place, target = fixture.places[index], as_float(fixture.target)
    if until_end(fixture, block) != block:
        return failed(f"{fixture.name}, {place.name}: {block} has {AFTER_EOS}")
    if found := first_departure(target, place.context, block):
        return failed(f"{fixture.name}, {place.name}: {block} has {found}")
    return None


CHECKS = (
    Check("boundary/greedy-blocks", DRAFTS, blocks),
    Check("boundary/greedy-situations", (VerifyContract, TreeContract), situations),
    Check("boundary/greedy-one-hot", DRAFTS, one_hot),
    Check("boundary/greedy-ties", DRAFTS, ties),
    Check("boundary/greedy-large", DRAFTS, large),
    Check("boundary/greedy-randomness", DRAFTS, randomness),
    Check("boundary/greedy-steps", StepContract, steps),
)
