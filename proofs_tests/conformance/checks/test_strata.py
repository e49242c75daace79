"""Strata of steps, texts and trees: what each finds, what is refused, and what is bet on."""

from types import SimpleNamespace

import numpy as np
import pytest

from specref.adapters import reference
from specref.algorithms import slem, standard
from specref.algorithms.decoding import decode
from specref.chance import Sampled
from specref.conformance.checks.strata import LEAST, cells_needed
from specref.conformance.options import CheckOptions
from specref.conformance.public import check
from specref.conformance.status import Finding, Status
from specref.conformance.strata.batches import Trees, tables_of, tree_tokens
from specref.conformance.strata.calls import (
    CallPlace,
    hashed_pair,
    pairs_along,
    text_tokens,
    vocabulary_of,
)
from specref.conformance.strata.laws import FEATURES, drawn_pool
from specref.conformance.strata.shape import CallShape, Shape, TreeShape, tree_shapes
from specref.conformance.strata.stratum import Stratum
from specref.conformance.strata.table import STEP_STRATA, TEXT_STRATA, TREE_STRATA
from specref.conformance.suite import prepare
from specref.contracts.capabilities import capable
from specref.contracts.fixtures import WITH
from specref.contracts.table import CONTRACTS, TREE
from specref.contracts.tree import draw_trees
from specref.contrib.selftest.trigger_matrix import ALL
from specref.models import Model, as_float
from specref.statistics.features import tokens_to_detect

pytestmark = pytest.mark.strata


def text(target, drafter, context, tokens, rng):
    return decode(standard.step, target, drafter, context, 3, tokens, Sampled(rng))


# A situation and a bug that the stratum finds.
FOUND = {
    "step-one-draft": ("step-one-draft", "residual-is-p"),
    "step-many-drafts": ("step-eight-drafts", "residual-is-p"),
    "step-long-drafts": ("step-nine-drafts", "accepts-every-draft"),
    "step-contexts": ("step-after-512", "reads-two-tokens"),
    "step-contexts-of-1100": ("step-after-1024", "reads-two-tokens"),
    "step-contexts-related": ("step-context-3-on", "reads-two-tokens"),
    "step-vocabulary-thousands": ("step-vocabulary-above-1024", "rejects-every-draft"),
    "step-last-id": ("step-context-3-on", "last-token-is-argmax"),
    "step-vocabulary-hundreds": ("step-vocabulary-above-128", "residual-is-p"),
    "step-laws-flat": ("step-top-below-0.1", "residual-is-p"),
    "step-laws-peaked": ("step-top-above-0.9", "accepts-every-draft"),
    "step-laws-rare": ("step-draft-p-below-0.01", "accepts-every-draft"),
    "step-laws-zeros": ("step-zeros-in-p", "residual-is-p"),
    "step-vocabulary-65k": ("step-vocabulary-above-65536", "last-token-is-argmax"),
    "step-ending-late": ("step-ends-late", "accepts-every-draft"),
    "step-ending": ("step-eos-before", "last-token-is-argmax"),
    "text-prompts": ("text-context-3-on", "reads-two-tokens"),
    "text-budget-of-1": ("text-budget-of-1", "last-token-is-argmax"),
    "text-budget-above-500": ("text-budget-above-500", "residual-is-p"),
    "text-easy": ("text-budget-above-500", "accepts-every-draft"),
    "text-prompts-of-1100": ("text-after-1024", "reads-two-tokens"),
    "text-prompts-related": ("text-context-3-on", "reads-two-tokens"),
    "text-vocabulary-thousands": ("text-vocabulary-above-1024", "rejects-every-draft"),
    "text-last-id": ("text-context-3-on", "last-token-is-argmax"),
    "text-repeats": ("text-said-12-tokens", "residual-is-p"),
    "text-long-prompts": ("text-after-512", "last-token-is-argmax"),
    "text-vocabulary-hundreds": ("text-vocabulary-above-128", "rejects-every-draft"),
    "text-laws-flat": ("text-top-below-0.1", "residual-is-p"),
    "text-laws-peaked": ("text-top-above-0.9", "accepts-every-draft"),
    "text-laws-zeros": ("text-zeros-in-p", "residual-is-p"),
    "text-vocabulary-65k": ("text-vocabulary-above-65536", "last-token-is-argmax"),
    "text-ending-late": ("text-ends-late", "accepts-every-draft"),
    "text-ending": ("text-eos-before", "reads-two-tokens"),
    "tree-siblings": ("tree-eight-siblings", "accepts-every-draft"),
    "tree-twenty-siblings": ("tree-seventeenth-sibling", "accepts-every-draft"),
    "tree-deep": ("tree-depth-3-on", "last-token-is-argmax"),
    "tree-mixed": ("tree-depth-2-on", "accepts-every-draft"),
    "tree-many-nodes": ("tree-nodes-above-12", "reads-row-of-parent"),
    "tree-above-64-nodes": ("tree-nodes-above-64", "residual-is-p"),
    "tree-batches-to-32": ("tree-batch-of-1", "residual-is-p"),
    "tree-batches-to-1500": ("tree-row-above-1023", "residual-is-p"),
    "tree-vocabulary-hundreds": ("tree-vocabulary-above-128", "residual-is-p"),
    "tree-vocabulary-thousands": ("tree-vocabulary-above-1024", "rejects-every-draft"),
    "tree-with-replacement": ("tree-token-again", "accepts-every-draft"),
    "tree-no-laws": ("tree-no-laws", "residual-is-p"),
    "tree-no-laws-siblings": ("tree-eight-siblings", "accepts-every-draft"),
    "tree-laws-flat": ("tree-top-below-0.1", "residual-is-p"),
    "tree-laws-peaked": ("tree-top-above-0.9", "accepts-every-draft"),
    "tree-laws-zeros": ("tree-zeros-in-p", "residual-is-p"),
}
# What these find is in strata/test_serving.py.
SERVING = (
    "step-contexts-of-4100",
    "step-drawn-shapes",
    "text-prompts-of-4100",
    "text-drawn-shapes",
    "tree-vocabulary-128k",
    "tree-drawn-shapes",
)
STRATA = {
    "step": [one.name for one in STEP_STRATA],
    "generate": [one.name for one in TEXT_STRATA],
    "tree": [one.name for one in TREE_STRATA],
}
CONTRACT_OF = {name: contract for contract, names in STRATA.items() for name in names}


CLEAN = {"step": reference.step, "generate": text, "tree": reference.verify_tree}


def one_stratum(name, sampler, contract=None, **options):
    """The result of one stratum."""
    contract = CONTRACTS[contract or CONTRACT_OF[name]]
    judge, checks = prepare(
        sampler, CheckOptions(contract=contract, only=[f"strata/{name}"], **options)
    )
    (result,) = (one.run(judge) for one in checks)
    return result


def planted(contract, trigger, bug):
    """An implementation with a bug that acts in one situation."""
    known = ALL[contract]
    (when,) = (one for one in known.triggers if one.id == trigger)
    (how,) = (one for one in known.bugs if one.id == bug)
    return known.made(how, when)


def test_every_stratum_has_a_bug_that_it_fails():
    known = {*FOUND, *SERVING}
    assert known == {one.name for one in (*STEP_STRATA, *TEXT_STRATA, *TREE_STRATA)}
    assert set(CONTRACT_OF) == known


@pytest.mark.deep(one_in=32)
@pytest.mark.parametrize("name", FOUND)
def test_a_stratum_fails_a_bug_that_acts_there(name):
    result = one_stratum(name, planted(CONTRACT_OF[name], *FOUND[name]))
    assert result.status == Status.FAILED, result.message
    assert result.lossy


# At no shapes unless they are asked for; and without bets.
UNDRAWN = ("strata/own-shape", "strata/large-call")


@pytest.mark.deep
@pytest.mark.parametrize("contract", CLEAN)
def test_a_lossless_sampler_passes_and_is_told_what_was_tried(contract):
    report = check(CLEAN[contract], contract=contract, only=["strata/"], detect_tv=0.15)
    found = {result.id: result for result in report.strata if result.id not in UNDRAWN}
    assert set(found) == {f"strata/{name}" for name in STRATA[contract]}
    assert {result.status for result in found.values()} == {Status.PASSED}
    for result in found.values():
        shift = result.evidence["detectable_shift"]
        assert 0 < shift < 0.4
        assert f"a shift ≥ {shift:.2g} would be detected" in result.message
        assert result.message.startswith("V")
    assert report.exit_code == 0
    assert f"in {len(found)} situations shifts" in report.verdict
    others = {result.id for result in report.results} - {result.id for result in report.strata}
    assert "strata/one-draft" in others


@pytest.mark.parametrize("claims", [{"ragged": False}, {"batch": 1}])
def test_trees_are_not_mixed_where_a_call_has_one_shape(claims):
    result = one_stratum("tree-mixed", CLEAN["tree"], claims=claims)
    assert result.status == Status.NOT_APPLICABLE
    assert result.message.endswith("different trees in one call")


def remembering(tokens):
    """A sampler of texts whose target reads the last tokens alone."""

    def short(target, drafter, context, budget, rng):
        forgets = Model(target.vocabulary, lambda c: target.next_token(c[-tokens:]))
        return text(forgets, drafter, context, budget, rng)

    return short


@pytest.mark.parametrize(
    ("tokens", "name"),
    [
        (1, "text-prompts"),
        (5, "text-prompts"),
        (5, "text-ending"),
        (40, "text-budget-above-500"),
        (40, "text-long-prompts"),
        (500, "text-budget-above-500"),
        (500, "text-long-prompts"),
    ],
)
def test_a_context_that_is_lost_is_found(tokens, name):
    result = one_stratum(name, remembering(tokens))
    assert result.status == Status.FAILED
    assert result.finding == Finding.LAW


def test_a_context_that_is_never_reached_is_not():
    result = one_stratum("text-prompts", remembering(41), trials=3_000)
    assert result.status == Status.PASSED
    shift = result.evidence["detectable_shift"]
    assert f"a shift ≥ {shift:.2g} would be detected" in result.message


@pytest.mark.parametrize(
    ("more", "name", "message"),
    [
        (-1, "text-prompts", "returned 1 tokens: expected 2 (V 5, prompt 0, budget 2)"),
        (-1, "text-ending", "or fewer up to EOS"),
        (1, "text-budget-of-1", "returned more than 1 tokens: expected 1 to 1"),
    ],
)
def test_texts_of_another_length_break_the_contract(more, name, message):
    def another(target, drafter, context, tokens, rng):
        return text(target, drafter, context, max(1, tokens + more), rng)

    result = one_stratum(name, another)
    assert result.finding == Finding.CONTRACT
    assert message in result.message


def reading(context_of):
    """A rule that reads another context, which it chooses by what it has met."""
    met = []

    def step(target, drafter, context, lookahead, rng):
        read = context_of(tuple(context), met)
        met.append((target, tuple(context)))
        return standard.step(target, drafter, read, lookahead, Sampled(rng))

    return step


def other_order(context, met):
    """The first of the contexts that have the same tokens."""
    bag = sorted(context)
    return next((one for _, one in met if sorted(one) == bag), context)


def behind_a_loop(context, met):
    """In a loop of 16 tokens, it loses the first."""
    return context[1:] if len(context) > 32 and context[:16] == context[16:32] else context


@pytest.mark.parametrize("context_of", [other_order, behind_a_loop])
def test_contexts_in_another_order_and_in_loops_are_tried(context_of):
    found = one_stratum("step-contexts-related", reading(context_of))
    assert (found.status, found.finding) == (Status.FAILED, Finding.LAW)


def test_the_same_context_is_tried_with_other_models():
    known = {}

    def blind(target, drafter, context, lookahead, rng):
        """Laws are remembered by the context alone."""
        model = known.setdefault(tuple(context), target)
        first = Model(
            target.vocabulary,
            lambda text: (model if text == tuple(context) else target).next_token(text),
        )
        return standard.step(first, drafter, context, lookahead, Sampled(rng))

    found = one_stratum("step-contexts-related", blind)
    assert (found.status, found.finding) == (Status.FAILED, Finding.LAW)


def test_ids_out_of_range_are_refused_by_the_models():
    target, _ = hashed_pair(
        drawn_pool(np.random.default_rng(1), 5, 3), vocabulary_of(5, ends=False)
    )
    for context in ((5,), (0, -1), (0,) * 300 + (9,)):
        with pytest.raises(ValueError, match=r"context\[\d+\] = -?\d+: expected 0 <= id < 5"):
            target.next_token(context)


def test_rules_that_read_text_are_tried_where_spellings_are_few():
    claims = {"algorithm": "slem", "trials": 2_000}
    few = one_stratum("step-one-draft", slem.step, **claims)
    assert few.status == Status.PASSED
    assert few.message.startswith("V 5, 8, 37; ")
    many = one_stratum("step-many-drafts", slem.step, **claims)
    assert many.status == Status.NOT_APPLICABLE
    assert "the rule slem reads text: too many spellings" in many.message
    ending = one_stratum("step-ending", slem.step, **claims)
    assert ending.message.startswith("V 5, 12; context 3; lookahead 1: ")


# Trees.


def exactly(target_probs, draft_probs, draft_tokens, parents, *, rng):
    """The reference, for rows that are rounded or not normalised."""
    laws = [np.float64(x) for x in (target_probs, draft_probs)]
    p, q = (x / x.sum(axis=2, keepdims=True) for x in laws)
    return reference.verify_tree(p, q, draft_tokens, parents, rng=rng)


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize(
    "claims",
    [
        {"ragged": False},
        {"repeats": False},
        {"batch": 1},
        {"batch": 5, "ragged": False, "repeats": False},
        {"dtype": "float32", "tolerance": 1e-4},
        {"inputs": "logits"},
    ],
)
def test_trees_are_as_the_verifier_claims_to_take_them(claims):
    seen = []

    @capable(**claims)
    def spied(target_probs, draft_probs, draft_tokens, parents, *, rng):
        seen.append((target_probs, draft_probs, draft_tokens, parents))
        if claims.get("inputs") == "logits":
            target_probs, draft_probs = map(np.exp, (target_probs, draft_probs))
        return exactly(target_probs, draft_probs, draft_tokens, parents, rng=rng)

    for name in ("tree-siblings", "tree-laws-peaked", "tree-batches-to-32"):
        assert one_stratum(name, spied, trials=1_500).status == Status.PASSED
    if not claims.get("ragged", True):
        assert all((drafts >= 0).all() for _, _, drafts, _ in seen)
    if not claims.get("repeats", True):
        for _, _, drafts, parents in seen:
            for row, above in zip(drafts, parents, strict=True):
                pairs = [(p, x) for p, x in zip(above, row, strict=True) if x >= 0]
                assert len(set(pairs)) == len(pairs)
    if "batch" in claims:
        assert max(len(one[0]) for one in seen) == claims["batch"]
    if "dtype" in claims:
        assert {one[0].dtype for one in seen} == {np.dtype("float32")}


@pytest.mark.parametrize(
    ("claims", "name", "why"),
    [
        ({"one_hot": False}, "tree-no-laws", "does not take draft_probs=None"),
        ({"repeats": False}, "tree-with-replacement", "does not take siblings that repeat"),
    ],
)
def test_what_a_verifier_does_not_claim_is_not_tried(claims, name, why):
    result = one_stratum(name, reference.verify_tree, claims=claims)
    assert result.status == Status.NOT_APPLICABLE
    assert result.message == why


def test_impossible_tokens_are_found_at_once():
    def last(target_probs, draft_probs, draft_tokens, parents, *, rng):
        size = target_probs.shape[2]
        return np.full((len(parents), 1), size - 1), np.ones(len(parents), dtype=int)

    result = one_stratum("tree-laws-zeros", last)
    assert result.status == Status.FAILED
    assert "impossible: row" in result.message
    assert result.evidence["tokens"] < 1_000


# What is bet on.


@pytest.mark.parametrize("memory", [None, 1, 3])
def test_the_pair_of_each_token_is_that_of_the_models(memory):
    rng, met = np.random.default_rng(1), set()
    for size in (5, 300):
        pool = drawn_pool(rng, size, 9)
        target, drafter = hashed_pair(pool, vocabulary_of(size, ends=False), memory)
        for length in (0, 1, 4, 60):
            context, tokens = (tuple(rng.integers(size, size=n).tolist()) for n in (length, 7))
            for i, pair in enumerate(pairs_along(context, tokens, 9, memory)):
                whole = (*context, *tokens[:i])
                met.add(pair)
                assert (target.next_token(whole) == pool.p[pair]).all()
                assert (drafter.next_token(list(whole)) == pool.q[pair]).all()
                if memory and i >= memory:
                    last = whole[len(whole) - memory :]
                    assert (target.next_token((2, *last)) == pool.p[pair]).all()
    assert len(met) == 9


def test_a_short_memory_chooses_among_as_few_laws():
    """Of one token: five laws, so that texts of nearly certain targets repeat."""
    pool = drawn_pool(np.random.default_rng(1), 5, 40)
    text = tuple(np.random.default_rng(2).integers(5, size=300).tolist())
    assert len(set(pairs_along((0,), text, 40, memory=1))) <= 5
    assert len(set(pairs_along((0,), text, 40))) == len(pool.p)


def test_contexts_that_differ_anywhere_have_other_laws():
    rng, same = np.random.default_rng(1), 0
    for _ in range(500):
        context = rng.integers(8, size=50)
        other = context.copy()
        other[rng.integers(50)] ^= 1
        one, two = (next(pairs_along(tuple(c.tolist()), (0,), 42)) for c in (context, other))
        same += one == two
    # 500 / 42 = 12 are expected; more than 40 have probability below 1e-9.
    assert same <= 40


def test_places_of_text_tokens():
    shape = CallShape(8, 2, 4, text=True)
    place = CallPlace((3, 3), 4, shape)
    found = text_tokens([place], [(3, 1, 5, 0)], 42, 1)
    assert found.again.tolist() == [True, True, False, False]
    assert found.context.tolist() == [2, 3, 4, 5]
    assert (found.position == found.drafts).tolist() == [False, False, False, True]
    assert found.pair.tolist() == list(pairs_along((3, 3), (3, 1, 5, 0), 42))


@pytest.mark.parametrize("ragged", [False, True])
def test_trees_have_the_laws_of_their_paths(ragged):
    rng = np.random.default_rng(1)
    pool = drawn_pool(rng, 6, 9)
    tables = tables_of(pool, rng)
    shape = TreeShape(6, (3, 2), 40)
    stratum = Stratum("own", (shape,), kind=TreeShape, ways=(WITH,))
    taking = SimpleNamespace(timeout=None, capabilities=SimpleNamespace(ragged=ragged))
    fixture = Trees(stratum, taking, rng).fixture(shape)
    start = rng.integers(9, size=40)
    place = rng.integers(len(fixture.places), size=40)
    batch = draw_trees(fixture, tables, start, place, rng)
    tokens, _ = reference.verify_tree(*batch.arguments.values(), rng=rng)
    found = tree_tokens(batch, tokens[:, :3], start, tables.child, 8, 5)
    assert set(batch.lens.tolist()) == ({3, 9} if ragged else {9})
    assert found.call.max() == 5 + 40 // 8 - 1
    assert found.row.max() == 7
    at = 0
    for row in range(40):
        node = -1
        for position, token in enumerate(t for t in tokens[row] if t >= 0):
            assert (pool.p[found.pair[at]] == batch.target_probs[row, node + 1]).all()
            assert (found.token[at], found.position[at]) == (token, position)
            at += 1
            below = np.flatnonzero(
                (batch.parents[row] == node) & (batch.draft_tokens[row] == token)
            )
            node = int(below[0]) if len(below) else node
    assert at == len(found.token)


# Shapes of one's own.


@pytest.mark.deep
@pytest.mark.parametrize(
    ("contract", "right", "shape", "dtypes", "tried"),
    [
        ("step", reference.step, Shape(21, 2, 1), (), "V 21; context 3; lookahead 2: "),
        (
            "tree",
            exactly,
            Shape(21, 3, 5),
            ("float32", "float64"),
            "in float32, float64: V 21; siblings by level 2×1×1; batch 5: ",
        ),
    ],
)
def test_own_shapes_are_judged(contract, right, shape, dtypes, tried):
    known = ALL[contract]
    when = type(known.triggers[0])("own", "shape", lambda at: at.size == 21)
    bug = next(one for one in known.bugs if one.id == "residual-is-p")
    sampler = known.made(bug, when)
    assert one_stratum("own-shape", sampler, contract).status == Status.NOT_APPLICABLE
    found = one_stratum("own-shape", sampler, contract, shapes=(shape,))
    assert found.status == Status.FAILED
    clean = one_stratum("own-shape", right, contract, shapes=(shape,), dtypes=dtypes)
    assert clean.status == Status.PASSED
    assert clean.message.startswith(tried)
    said = {key.split(", ")[-1] for key in clean.evidence["by_shape"]}
    assert said == {*dtypes} or not dtypes


class Caching:
    """A loop whose first row is that of another context, if the calls before say so."""

    def __init__(self, wrong):
        self.wrong, self.before = wrong, []

    def __call__(self, target, drafter, context, tokens, rng):
        read = self.wrong(context, self.before)
        model = Model(
            target.vocabulary,
            lambda whole: target.next_token(read if whole == context else whole),
        )
        found = text(model, drafter, context, tokens, rng)
        self.before.append((context, found))
        return found


CACHES = {
    "the same again": lambda context, before: (
        context[:-1] if any(context == known for known, _ in before) else context
    ),
    "with its answer": lambda context, before: (
        context[:-1]
        if any(context[: len(known) + len(found)] == known + found for known, found in before[-1:])
        else context
    ),
    "another first token": lambda context, before: next(
        (known for known, _ in before if known[1:] == context[1:]), context
    ),
    "its first third again": lambda context, before: (
        context[: len(context) // 3]
        if len(context) > 30 and context[-(len(context) // 3) :] == context[: len(context) // 3]
        else context
    ),
}


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("kind", CACHES)
def test_caches_of_prompts_are_found_where_prompts_are_related(kind):
    def judged(name):
        return one_stratum(name, Caching(CACHES[kind]), "generate", detect_tv=0.1).status

    assert judged("text-prompts-related") == Status.FAILED
    assert judged("text-long-prompts") == Status.PASSED


def test_a_last_id_beyond_whole_groups_is_found():
    """Of 64 n + 1 tokens the last is never drawn by the loop itself."""

    def step(target, drafter, context, lookahead, rng):
        def without_last(whole):
            row = as_float(target).next_token(whole).copy()
            if len(row) % 64 == 1 and row[:-1].any():
                row[-1] = 0
            return row / row.sum()

        model = Model(target.vocabulary, without_last)
        return reference.step(model, drafter, context, lookahead, Sampled(rng))

    assert one_stratum("step-last-id", step, "step").status == Status.FAILED


def mask_of_16_bits(target, drafter, context, tokens, rng):
    """Lookahead grows where all drafts are kept; from the 17th draft on all are."""
    found, lookahead = (), 5
    while len(found) < tokens:
        block, kept = (), 0
        for i in range(min(lookahead, tokens - len(found) - 1)):
            whole = (*context, *found, *block)
            p, q = target.next_token(whole), drafter.next_token(whole)
            token = int(rng.choice(len(q), p=q))
            if rng.random() * q[token] >= p[token] and i < 16:
                left = np.maximum(p - q, 0)
                block += (int(rng.choice(len(p), p=left / left.sum())),)
                break
            block, kept = (*block, token), kept + 1
        else:
            p = target.next_token((*context, *found, *block))
            block += (int(rng.choice(len(p), p=p)),)
        lookahead = lookahead + 2 if kept == len(block) - 1 else max(1, lookahead - 1)
        found += block
    return found


@pytest.mark.deep
def test_a_mask_of_16_drafts_is_found_where_drafts_are_nearly_always_kept():
    assert one_stratum("text-easy", mask_of_16_bits, "generate").status == Status.FAILED
    assert one_stratum("text-prompts", mask_of_16_bits, "generate").status == Status.PASSED


def room_for(siblings):
    """What is left of p is kept for so many siblings: later ones are tested against the last."""

    def verify(target_probs, draft_probs, draft_tokens, parents, *, rng):
        tokens, counts = np.full((len(parents), parents.shape[1] + 1), -1), []
        for row, above in enumerate(parents):
            at, block, left = -1, [], target_probs[row, 0]
            while at is not None:
                kept, at, held = at, None, [left]
                for place, node in enumerate(np.flatnonzero(above == kept)):
                    x, p = draft_tokens[row, node], held[min(place, siblings - 1)]
                    law = np.eye(len(p))[x] if draft_probs is None else draft_probs[row, node]
                    if rng.random() * law[x] < p[x]:
                        at, left = node, target_probs[row, node + 1]
                        block.append(x)
                        break
                    rest = np.maximum(p - law, 0)
                    left = rest / rest.sum() if rest.any() else p
                    held += [left] * (len(held) < siblings)
            ends = left.cumsum()
            block.append(int(np.searchsorted(ends, rng.random() * ends[-1], side="right")))
            tokens[row, : len(block)] = block
            counts.append(len(block))
        return tokens, np.array(counts)

    return verify


@pytest.mark.deep
@pytest.mark.parametrize(("siblings", "status"), [(8, Status.FAILED), (99, Status.PASSED)])
def test_late_siblings_are_tried_where_no_token_is_likely(siblings, status):
    assert one_stratum("tree-no-laws-siblings", room_for(siblings), "tree").status == status


def test_a_stratum_has_numbers_enough_for_rows_of_one_token():
    options = CheckOptions(contract=TREE, only=["smoke/answers"])
    judge, _ = prepare(reference.verify_tree, options)
    few, many = (
        cells_needed(cells, judge, 1e-11, 40, tree_shapes([128_256], [(2,)], [4]))
        for cells in (1, 10**12)
    )
    tokens = few / (5 * 128_256)
    assert many == 10**12
    assert tokens_to_detect(LEAST, 1e-11, 40 * len(FEATURES)) == round(tokens)
