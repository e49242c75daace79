"""Stage boundary for greedy decoding: every block is compared with the argmax of the target."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from specref.arrays import NO_TOKEN, Ints, one_hot_rows
from specref.conformance.checks.check import DRAFTS, Check, failed, not_applicable, passed
from specref.conformance.checks.smoke import large_batch
from specref.conformance.checks.strata import PAIRS, as_sent, own_claims
from specref.conformance.greedy import (
    departures,
    first_departure,
    greedy_block,
    greedy_difference,
    greedy_text,
    likeliest,
)
from specref.conformance.judge import Judge
from specref.conformance.status import Outcome
from specref.conformance.strata.batches import Trees, drawn
from specref.conformance.strata.calling import Called
from specref.conformance.strata.calls import Calling
from specref.conformance.strata.loops import LOOP_STRATA, SETTINGS, Loops
from specref.conformance.strata.shape import CallShape, Shape, TreeShape
from specref.conformance.strata.stratum import Stratum, pools
from specref.conformance.strata.table import (
    CLOSE,
    CLOSE_TREES,
    STEP_STRATA,
    STRATA,
    TREE_STRATA,
    drawn_pairs,
    own_calls,
    own_stratum,
    own_trees,
)
from specref.contracts.batch import ROOT, Batch, TreeBatch, as_tree
from specref.contracts.calling import Verifier
from specref.contracts.errors import UntriedError
from specref.contracts.fixtures import CHAIN_FIXTURES, WITH, Fixture, Place
from specref.contracts.functions import GenerateBatchContract, StepContract
from specref.contracts.sampling import AFTER_EOS, Steps, call_of_models, until_end
from specref.contracts.tree import TreeContract, TreeVerifier, draw_trees
from specref.contracts.verify import VerifyContract
from specref.models import as_float

FEWEST_ROWS, MOST_SHOWN = 64, 32_000
TOKENS = 32
"""Of the calls of one shape, of which there are two at least."""


def situations(judge: Judge) -> Outcome:
    """Blocks are those of argmax in the situations of shapes, distributions and calls.

    In every other row all drafts are the target's own, or a tree's last siblings are; some rows
    are shorter. The strata of the first call and of late calls are not among them.
    """
    if judge.contract.trees:
        return _tree_situations(judge)
    tried = list[str]()
    for stratum, verifier in _asked(judge):
        without_laws = not stratum.laws and not verifier.capabilities.one_hot
        if stratum.after or without_laws or verifier.refusal():
            continue
        try:
            problem = _in_stratum(judge, stratum, verifier)
        except UntriedError as error:
            if error.claim is not None:
                raise
            judge.untried.append(error.said)
            continue
        if problem:
            return problem
        tried.append(stratum.name)
    return passed(f"in {len(tried)} situations")


def _asked(judge: Judge) -> Iterator[tuple[Stratum[Shape], Called]]:
    """Near ties, the strata, the pairs that its seed draws, the shapes that were asked for."""
    pairs = drawn_pairs(judge.rng("strata/pairs"), PAIRS)
    for stratum in (as_sent(one, judge) for one in (CLOSE, *STRATA, *pairs)):
        if not isinstance(stratum, str):
            yield stratum, judge.called(stratum.way)
    if judge.options.shapes:
        own = own_stratum(judge.options.shapes)
        yield from ((own, judge.called(claims=claims)) for claims in own_claims(judge))


def _in_stratum(judge: Judge, given: Stratum[Shape], verifier: Called) -> Outcome | None:
    rng, claims = judge.rng(f"greedy/{given.name}"), verifier.capabilities
    stratum = given.fitted(claims)
    known = pools(stratum, rng)
    ragged = claims.ragged and stratum.ragged
    for shape in stratum.shapes:
        for call in range(max(1, FEWEST_ROWS // shape.batch)):
            batch = drawn(
                shape, known[shape.vocabulary], rng, ragged=ragged, steady=stratum.steady
            )
            _draft_own(batch, call % 2)
            name = f"{stratum.name}, V = {shape.vocabulary:,}, {shape.batch:,} rows, call {call}"
            asked = batch if stratum.laws else batch.without_q()
            problem = departure(verifier, rng, name, asked)
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
    taken = [
        one.with_drawn(judge.rng(f"shapes/{one.name}"))
        for one in (CLOSE_TREES, *TREE_STRATA)
        if not one.refusal(claims)
    ]
    tried = [(one.fitted(claims), judge.verifier) for one in taken]
    if judge.options.shapes:
        own = own_trees(judge.options.shapes)
        tried += [
            (own.fitted(one), TreeVerifier(judge.implementation, one, judge.timeout))
            for one in own_claims(judge)
        ]
    problems = (_in_tree_stratum(judge, *one) for one in tried)
    return next(filter(None, problems), passed(f"in {len(tried)} situations"))


def _in_tree_stratum(
    judge: Judge, stratum: Stratum[TreeShape], verifier: Verifier
) -> Outcome | None:
    rng = judge.rng(f"greedy/{stratum.name}")
    drawing = Trees(stratum, verifier, rng)
    for shape in stratum.shapes:
        fixture, tables = drawing.fixture(shape), drawing.tables[shape.vocabulary]
        for call in range(max(1, FEWEST_ROWS // shape.batch)):
            start, place = (
                rng.integers(most, size=shape.batch)
                for most in (len(tables.p), len(fixture.places))
            )
            batch = draw_trees(fixture, tables, start, place, rng)
            once = np.array([one.way != WITH for one in fixture.places])[place]
            _prefer_last_siblings(batch, np.flatnonzero(once)[call % 2 :: 2])
            problem = departure(verifier, rng, f"{stratum.name}, {shape}, call {call}", batch)
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


def calls_problem(judge: Judge, strata: Sequence[Stratum[CallShape]]) -> Outcome | None:
    """The first block or text of some strata that is not the target's own; None if all are."""
    for given in strata:
        stratum = given.with_drawn(judge.rng(f"shapes/{given.name}"))
        calling = Calling(stratum, judge.subject, judge.rng(f"greedy/{stratum.name}"))
        for shape in stratum.shapes:
            calls = max(2, TOKENS // shape.most)
            for place, text in zip(*calling.texts(shape, calls), strict=True):
                target, _ = calling.models[shape.vocabulary, place.turn]
                if found := first_departure(target, place.context, text):
                    return failed(f"{stratum.name}, {place.name}: {found}")
    return None


def departure(
    verifier: Verifier, rng: np.random.Generator, name: str, batch: Batch, eos: int | None = None
) -> Outcome | None:
    """The first row of a batch whose block is not what argmax gives, as a failure."""
    tokens = verifier(batch, rng).tokens
    allowed = likeliest(verifier, batch)
    for row in departures(batch, allowed, tokens, eos)[:1].tolist():
        block = [token for token in tokens[row].tolist() if token >= 0]
        expected = list(greedy_block(batch, row, allowed[row]))
        return failed(
            f"{name}, row {row} of drafts {batch.draft_tokens[row].tolist()} is {block}: the "
            f"argmax of each of the target's rows gives {expected}",
            row=row,
            **(batch.facts(row) if batch.target_probs.shape[2] <= MOST_SHOWN else {}),
        )
    return None


SIZE, TIMES = 512, 4
STEPS = 105
TIES = ((0, 4), (1, 3), (0, 2), (2, 3, 4), (0, 1, 2, 3, 4))


def blocks(judge: Judge) -> Outcome:
    """On every fixture, each block is what the argmax of the target's rows makes of the drafts."""
    for name in judge.fixtures:
        problem = _problem(judge, name, judge.sample(name, SIZE, name), judge.fixture(name).eos)
        if problem:
            return problem
    return passed()


def one_hot(judge: Judge) -> Outcome:
    """Without `draft_probs` blocks are such, too: argmax does not ask for them."""
    if not judge.capabilities.one_hot:
        return not_applicable("does not take draft_probs=None")
    return _problem(judge, "no draft_probs", judge.certain(SIZE, "one-hot")) or passed()


def ties(judge: Judge) -> Outcome:
    """Where several tokens are the likeliest, it is one of them; drafted or not."""
    return _problem(judge, "ties", tied_batch()) or passed()


def large(judge: Judge) -> Outcome:
    """A vocabulary of 32,000 tokens; in every other row both drafts are the target's own."""
    batch = large_batch(judge.rng("large"))
    own = batch.target_probs[::2, 1].argmax(axis=1)
    batch.draft_tokens[::2, 1] = own
    assert batch.draft_probs is not None
    batch.draft_probs[::2, 1] = one_hot_rows(own, batch.target_probs.shape[2])
    return _problem(judge, "large vocabulary", batch) or passed()


def randomness(judge: Judge) -> Outcome:
    """Other randomness changes nothing, ties included."""
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
    for name in CHAIN_FIXTURES:
        fixture = _with_later_places(judge.fixture(name))
        call = call_of_models(judge.implementation, fixture)
        one = Steps(call, fixture, fixture.lookahead + 1, judge.timeout, drafted=True)
        place, drawn, _ = one(STEPS, judge.rng(f"greedy/{name}"))
        for index, block in zip(place.tolist(), drawn.tolist(), strict=True):
            problem = _step_problem(fixture, index, tuple(x for x in block if x >= 0))
            if problem:
                return problem
    shapes = judge.options.shapes
    strata = (*STEP_STRATA, *([own_calls(shapes)] if shapes else []))
    return calls_problem(judge, strata) or passed(f"also in {len(strata)} situations")


def batches(judge: Judge) -> Outcome:
    """Each text of a batch is the target's own, however rows differ in length and acceptance."""
    texts = 0
    for stratum in LOOP_STRATA:
        if stratum.way == SETTINGS:  # at other temperatures the likeliest token is the same
            continue
        drawing = Loops(stratum, judge.subject, judge.rng(f"greedy/{stratum.name}"))
        for shape in stratum.shapes:
            for _ in range(max(2, TOKENS // (shape.batch * shape.asked))):
                target, places, found, _ = drawing.answered(shape)
                for row, (place, text) in enumerate(zip(places, found, strict=True)):
                    context = place.context
                    if why := greedy_difference(as_float(target), context, text, shape.asked):
                        at = f"{stratum.name}, row {row} of {shape.batch} after {context}"
                        return failed(f"{at}: {why}", row=row)
                texts += len(found)
    return passed(f"{texts:,} texts are the target's own")


def certain_trees(judge: Judge) -> Outcome:
    """Every row of the target is certain: what is emitted is its text, or the start of it."""
    for name in judge.fixtures:
        batch = as_tree(judge.sample(name, SIZE, f"greedy/{name}"))
        certain = np.eye(batch.target_probs.shape[2])[batch.target_probs.argmax(axis=2)]
        given = TreeBatch(**{**vars(batch), "target_probs": certain})
        tokens = judge.verifier(given, judge.rng("greedy")).tokens
        expected = greedy_texts(given)
        wrong = (tokens != NO_TOKEN) & (tokens != expected)
        for row in np.flatnonzero(wrong.any(axis=1))[:1].tolist():
            got, text = tokens[row].tolist(), expected[row].tolist()
            return failed(f"row {row} is {got}: p allows {text} alone", **given.facts(row))
    return passed()


def greedy_texts(batch: TreeBatch) -> Ints:
    """The likeliest tokens from the root on, as far as any path of the tree has rows for them.

    Where siblings repeat, several paths may start in the same way; their rows are the same laws.
    """
    rows, most = np.arange(len(batch)), batch.draft_tokens.shape[1]
    likeliest = batch.target_probs.argmax(axis=2)
    texts = np.full((len(batch), most + 1), NO_TOKEN)
    texts[:, 0] = likeliest[:, 0]
    depth = np.zeros((len(batch), most + 1), dtype=np.int64)
    reached = depth == 1
    reached[:, 0] = True
    for i in range(most):
        above = np.maximum(batch.parents[:, i], ROOT) + 1
        wanted = likeliest[rows, above] == batch.draft_tokens[:, i]
        reached[:, i + 1] = (batch.parents[:, i] >= ROOT) & reached[rows, above] & wanted
        depth[:, i + 1] = depth[rows, above] + 1
        there = np.flatnonzero(reached[:, i + 1])
        texts[there, depth[there, i + 1]] = likeliest[there, i + 1]
    return texts


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


greedily = partial(Check, greedy=True)
CHECKS = (
    greedily("boundary/greedy-blocks", DRAFTS, blocks),
    greedily("boundary/greedy-situations", (VerifyContract, TreeContract), situations),
    greedily("boundary/greedy-one-hot", DRAFTS, one_hot),
    greedily("boundary/greedy-ties", DRAFTS, ties),
    greedily("boundary/greedy-large", DRAFTS, large),
    greedily("boundary/greedy-randomness", DRAFTS, randomness),
    greedily("boundary/greedy-steps", StepContract, steps),
    greedily("boundary/greedy-batches", GenerateBatchContract, batches),
)
OF_TREES = (Check("boundary/greedy-tree", TreeContract, certain_trees),)
