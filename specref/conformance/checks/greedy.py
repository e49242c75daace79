"""Stage boundary for greedy decoding: every block is compared with the argmax of the target."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from specref.arrays import Ints, one_hot_rows
from specref.conformance.checks.check import DRAFTS, Check, failed, not_applicable, passed
from specref.conformance.checks.smoke import large_batch
from specref.conformance.checks.strata import as_sent
from specref.conformance.judge import Judge
from specref.conformance.status import Outcome
from specref.conformance.strata.calling import Called, Changed
from specref.conformance.strata.laws import drawn_pool
from specref.conformance.strata.stratum import Stratum, drawn, most_pairs, pools
from specref.conformance.strata.table import STEP_STRATA, STRATA, TREE_STRATA, capped
from specref.conformance.strata.texts import Calling, CallStratum
from specref.conformance.strata.trees import TreeStratum, tables_of, tree_fixture
from specref.conformance.texts.argmax import departures, greedy_block, likeliest
from specref.conformance.texts.greedy import greedy_text
from specref.contracts.batch import Batch
from specref.contracts.calling import Verifier
from specref.contracts.errors import BrokenContractError
from specref.contracts.fixtures import CHAIN_FIXTURES, Fixture, Place
from specref.contracts.model_calls import AFTER_EOS, step_call, until_end
from specref.contracts.sampling import Steps
from specref.contracts.step import StepContract
from specref.contracts.tree.batch import TreeBatch
from specref.contracts.tree.contract import TreeContract
from specref.contracts.tree.drawing import draw_trees
from specref.contracts.tree.fixtures import WITH
from specref.contracts.verify.contract import VerifyContract
from specref.models import as_float

SIZE, TIMES = 512, 4
STEPS = 105
FEWEST_ROWS, MOST_SHOWN = 64, 32_000
TOKENS = 32
"""Of the calls of one shape, of which there are two at least."""
TIES = ((0, 4), (1, 3), (0, 2), (2, 3, 4), (0, 1, 2, 3, 4))
UNCLAIMED = not_applicable("does not claim greedy=true")


def blocks(judge: Judge) -> Outcome:
    """On every fixture, each block is what the argmax of the target's rows makes of the drafts."""
    if not judge.capabilities.greedy:
        return UNCLAIMED
    for name in judge.fixtures:
        problem = _problem(judge, name, judge.sample(name, SIZE, name), judge.fixture(name).eos)
        if problem:
            return problem
    return passed()


def situations(judge: Judge) -> Outcome:
    """The same at the shapes and laws, and in the ways of calling, of the strata.

    In every other row all drafts are the target's own; some rows are shorter.
    """
    if not judge.capabilities.greedy:
        return UNCLAIMED
    if judge.contract.trees:
        return _tree_situations(judge)
    tried, left_out = list[str](), list[str]()
    for stratum in filter(None, (as_sent(one, judge) for one in STRATA)):
        verifier = judge.called(stratum.way)
        without_laws = not stratum.laws and not verifier.capabilities.one_hot
        if stratum.after or without_laws or verifier.refusal():
            continue
        try:
            problem = _in_stratum(judge, stratum, verifier)
        except BrokenContractError as error:
            if not isinstance(verifier, Changed):
                raise
            left_out.append(f"{stratum.name} ({str(error).splitlines()[0]})")
            continue
        if problem:
            return problem
        tried.append(stratum.name)
    said = f"in {len(tried)} strata"
    return passed(f"{said}; not judged: {', '.join(left_out)}" if left_out else said)


def _in_stratum(judge: Judge, stratum: Stratum, verifier: Called) -> Outcome | None:
    rng, claims = judge.rng(f"greedy/{stratum.name}"), verifier.capabilities
    shapes = capped(stratum, claims.batch)
    known = pools(stratum, shapes, rng)
    ragged = claims.ragged and stratum.ragged
    for shape in shapes:
        for call in range(max(1, FEWEST_ROWS // shape.batch)):
            batch = drawn(shape, known[shape.vocabulary], rng, ragged=ragged)
            _draft_own(batch, call % 2)
            given = batch if stratum.laws else batch.without_q()
            name = f"{stratum.name}, V = {shape.vocabulary:,}, {shape.batch:,} rows"
            problem = _departure(verifier, rng, f"{name}, call {call}", given)
            if problem:
                return problem
    return None


def _draft_own(batch: Batch, first: int) -> None:
    """Make all drafts of every other row the target's own, from the given row on."""
    assert batch.draft_probs is not None
    own = batch.target_probs[first::2, :-1].argmax(axis=2)
    there = batch.draft_tokens[first::2] >= 0
    batch.draft_tokens[first::2][there] = own[there]
    batch.draft_probs[first::2][there] = one_hot_rows(own, batch.target_probs.shape[2])[there]


def _tree_situations(judge: Judge) -> Outcome:
    claims = judge.capabilities
    tried = [one.fitted(claims) for one in TREE_STRATA if not one.refusal(claims)]
    problems = (_in_tree_stratum(judge, stratum) for stratum in tried)
    return next(filter(None, problems), passed(f"in {len(tried)} strata"))


def _in_tree_stratum(judge: Judge, stratum: TreeStratum) -> Outcome | None:
    rng, families = judge.rng(f"greedy/{stratum.name}"), (stratum.targets, stratum.drafters)
    sizes = dict.fromkeys(shape.vocabulary for shape in stratum.shapes)
    pools = {size: drawn_pool(rng, size, most_pairs(size), *families) for size in sizes}
    tables = {size: tables_of(pool, rng) for size, pool in pools.items()}
    for shape in stratum.shapes:
        fixture = tree_fixture(stratum, shape, ragged=judge.capabilities.ragged)
        for call in range(max(1, FEWEST_ROWS // shape.batch)):
            start, place = (
                rng.integers(most, size=shape.batch)
                for most in (len(tables[shape.vocabulary].p), len(fixture.places))
            )
            batch = draw_trees(fixture, tables[shape.vocabulary], start, place, rng)
            once = np.array([one.way != WITH for one in fixture.places])[place]
            _prefer_last_siblings(batch, np.flatnonzero(once)[call % 2 :: 2])
            problem = _departure(
                judge.verifier, rng, f"{stratum.name}, {shape}, call {call}", batch
            )
            if problem:
                return problem
    return None


def _prefer_last_siblings(batch: TreeBatch, rows: Ints) -> None:
    """In these rows the target's own text leads from the last sibling to the last below it."""
    p = batch.target_probs.copy()
    for node in range(batch.draft_tokens.shape[1]):
        here = rows[batch.draft_tokens[rows, node] >= 0]
        above, token = batch.parents[here, node] + 1, batch.draft_tokens[here, node]
        batch.target_probs[here, above] = p[here, above] / 2
        batch.target_probs[here, above, token] += 0.5


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
        one = Steps(call, fixture, fixture.lookahead + 1, judge.timeout)
        place, drawn, _ = one(STEPS, judge.rng(f"greedy/{name}"))
        for index, block in zip(place.tolist(), drawn.tolist(), strict=True):
            problem = _step_problem(fixture, index, tuple(x for x in block if x >= 0))
            if problem:
                return problem
    return calls_problem(judge, STEP_STRATA) or passed(f"also in {len(STEP_STRATA)} strata")


def calls_problem(judge: Judge, strata: Sequence[CallStratum]) -> Outcome | None:
    """The first block or text of some strata that is not the target's own; None if all are."""
    for stratum in strata:
        rng = judge.rng(f"greedy/{stratum.name}")
        calling = Calling(stratum, judge.implementation, judge.timeout, rng)
        for shape in stratum.shapes:
            target, calls = calling.models[shape.vocabulary][0], max(2, TOKENS // shape.most)
            for place, text in zip(*calling.texts(shape, calls), strict=True):
                for at, token in enumerate(text):
                    law = target.next_token((*place.context, *text[:at])).tolist()
                    if law[token] < max(law):
                        return failed(
                            f"{stratum.name}, {place.name}: token {token} at position {at}, the "
                            f"argmax of the target is {law.index(max(law))}"
                        )
    return None


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
    return _departure(judge.verifier, judge.rng(f"greedy/{name}"), name, batch, eos)


def _departure(
    verifier: Verifier, rng: np.random.Generator, name: str, batch: Batch, eos: int | None = None
) -> Outcome | None:
    tokens = verifier(batch, rng).tokens
    allowed = likeliest(verifier, batch)
    for row in departures(batch, allowed, tokens, eos):
        block = [token for token in tokens[row].tolist() if token >= 0]
        expected = list(greedy_block(batch, row, allowed[row]))
        return failed(
            f"{name}, row {row} of drafts {batch.draft_tokens[row].tolist()} is {block}: the "
            f"argmax of each of the target's rows gives {expected}",
            row=row,
            **(batch.facts(row) if batch.target_probs.shape[2] <= MOST_SHOWN else {}),
        )
    return None


def _step_problem(fixture: Fixture, index: int, block: tuple[int, ...]) -> Outcome | None:
    place, target = fixture.places[index], as_float(fixture.target)
    if until_end(fixture, block) != block:
        return failed(f"{fixture.name}, {place.name}: {block} has {AFTER_EOS}")
    for position, token in enumerate(block):
        law = target.next_token((*place.context, *block[:position])).tolist()
        if law[token] < max(law):
            return failed(
                f"{fixture.name}, {place.name}: {block} has token {token} at position {position}, "
                f"the argmax of the target is {law.index(max(law))}"
            )
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
