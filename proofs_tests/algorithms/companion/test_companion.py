"""Companion-guided verification: what is lossless, what is not, and by exactly how much.

A rule says how many drafts are verified. It is lossless iff whether draft k is verified does not
depend on the token drafted at k: both directions by enumeration. Batches are judged by the joint
law of all requests. The same proofs reject the published rule and every mutant.
"""

import hashlib
import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs_tests.helpers.companions import (
    AB,
    ABC,
    ALIKE,
    BOTH,
    CONTEXTS,
    F,
    keeping,
    models,
    simplex,
)
from specref import Exact, Model, Vocabulary, exact_distribution, is_lossless
from specref.algorithms import companion, standard
from specref.algorithms.companion import rejecting
from specref.algorithms.companion.batch import fixed_budget_step
from specref.algorithms.companion.companion import similarity
from specref.chance import Traced, enumerate_paths
from specref.contrib.speed.companion_table import truncated_law
from specref.contrib.speed.speedup import expected_block_length
from specref.distributions import total_variation, with_temperature
from specref.models import as_float, iid_model
from specref.proofs import is_lossless_loop
from specref.proofs.batches import is_jointly_lossless, product
from specref.theory import acceptance
from specref.theory.goodput import allocation, greedy_length, optimal_length
from specref.zoo import ALL
from specref.zoo.companion import ENTRIES, draft_first, look_past

ALONE = [entry for entry in ENTRIES if entry.is_step]
BATCHES = [entry for entry in ENTRIES if entry.batch_step]
# How far each request of a batch is off by itself.
APART = {"batch-drafts-compete": F(1, 8), "batch-makes-room": 0}
STEPS = (0, 1, F(3, 2), F(3, 2), 2)
KEYS = st.integers(0, 10**6)


def arbitrary_length(key):
    """Any function of the acceptances it is shown."""

    def length(rates):
        shown = hashlib.blake2b(f"{key}:{[*map(str, rates)]}".encode()).digest()
        return shown[0] % (len(rates) + 1)

    return length


def worth(price, rates):
    """The first drafts whose estimated survival is above a price fixed beforehand."""
    return sum(survival > price for survival in itertools.accumulate(rates, lambda a, b: a * b))


TRIPLES = st.builds(models, st.sampled_from([AB, ABC, Vocabulary("abc", eos="c")]), KEYS)
LENGTHS = st.one_of(
    st.just(partial(greedy_length, latencies=STEPS)),
    st.just(partial(optimal_length, latencies=STEPS)),
    st.builds(partial, st.just(worth), st.sampled_from([F(1, 4), F(1, 2), F(3, 4)])),
    st.builds(arbitrary_length, KEYS),
)
CASES = st.tuples(TRIPLES, LENGTHS, st.integers(0, 2), st.sampled_from([(), (1, 0)]))


def prove(rule, case, told):
    (target, drafter, third), length, lookahead, context = case
    step = partial(rule, companion=third, length=length, **told)
    return is_lossless(step, target, drafter, context, lookahead)


@given(CASES)
def test_deciding_before_the_draw_is_lossless(case):
    """Any length, any models: zeros, ties, EOS; draft k is drawn only if it is verified."""
    proof = prove(companion.predictable_step, case, ALIKE)
    assert proof, proof.difference


@given(CASES)
def test_rejecting_what_is_not_verified_is_lossless(case):
    """The drafted token has a say about itself, and pays for it with the residual."""
    proof = prove(rejecting.step, case, BOTH)
    assert proof, proof.difference


@pytest.mark.parametrize("rule", [companion.step, look_past])
def test_the_same_proof_refutes_what_anticipates(rule, counterexample):
    told = BOTH if rule is companion.step else ALIKE
    assert counterexample(CASES, lambda case: prove(rule, case, told).lossless)


@pytest.mark.deep
@settings(max_examples=20)
@given(TRIPLES, KEYS)
def test_decode_loops_are_lossless(triple, key):
    """Over iterations too, with a lookahead of 3."""
    target, drafter, third = triple
    for rule, told in ((companion.predictable_step, ALIKE), (rejecting.step, BOTH)):
        step = partial(rule, companion=third, length=arbitrary_length(key), **told)
        assert is_lossless_loop(step, target, drafter, (), 3, 3)


@given(CASES)
def test_looking_at_every_position_is_lossless_if_the_length_stops_first(case):
    """Drafts may all be drawn and judged at once: only the choice must not see ahead."""

    def stops(rates):
        fits = (case[1](rates[:k]) == k for k in range(1, len(rates) + 1))
        return sum(itertools.takewhile(bool, fits))

    (target, drafter, third), length, lookahead, context = case
    early = partial(companion.predictable_step, companion=third, length=length, **ALIKE)
    late = partial(look_past, companion=third, length=stops, **ALIKE)
    laws = [
        exact_distribution(lambda chance, s=step: s(target, drafter, context, lookahead, chance))
        for step in (early, late)
    ]
    assert laws[0] == laws[1]


@given(CASES)
def test_the_published_rule_is_exact_for_greedy_models(case):
    """Temperature 0 of the target, or of the drafter: the token that decides is no news."""
    triple, *rest = case
    for who in (0, 1):
        cold = list(triple)
        cold[who] = Model(
            triple[who].vocabulary, lambda x, m=triple[who]: with_temperature(m.next_token(x), 0)
        )
        assert prove(companion.step, (cold, *rest), BOTH)


WEIGHTS = [
    np.array(row, dtype=object) for row in itertools.product([F(0), F(1, 2), F(1)], repeat=3)
]


@pytest.mark.parametrize("kept", WEIGHTS, ids=lambda kept: "-".join(map(str, kept)))
def test_truncated_law_is_what_comes_out(kept):
    """Against enumeration; p for all p iff constant where q is positive, decided by p = q."""
    laws = simplex(3, 3)
    for p, q in zip(laws, laws[::-1], strict=True):
        blocks = is_lossless(keeping(kept), iid_model(ABC, p), iid_model(ABC, q)).output
        first = [sum(w for x, w in blocks.items() if x[0] == token) for token in range(3)]
        assert first == list(truncated_law(p, q, kept))
    for q in laws:
        own = total_variation(truncated_law(q, q, kept), q)
        assert own == (q * abs(kept - (q * kept).sum())).sum() / 2
        constant = len({kept[x] for x in range(3) if q[x] > 0}) == 1
        assert constant == (own == 0) == all((truncated_law(p, q, kept) == p).all() for p in laws)


@pytest.mark.parametrize("entry", ALONE, ids=lambda entry: entry.id)
def test_mutant_is_lossy_by_its_exact_distance(entry):
    case = entry.case
    proof = is_lossless(entry.on(case), case.target, case.drafter, (), case.lookahead)
    assert {case.name: proof.total_variation} == entry.distances
    for rule, told in ((companion.predictable_step, ALIKE), (rejecting.step, BOTH)):
        knobs = {"companion": case.options["companion"], "length": case.options["length"], **told}
        assert is_lossless(partial(rule, **knobs), case.target, case.drafter, (), case.lookahead)
    assert not entry.lossless


def test_repairs_verify_different_drafts():
    """In the same case: before the draw 3/5 pays for verifying all, after it only b passes."""
    case = ALL["companion-judges-the-draft"].case
    told = {"companion": case.options["companion"], "length": case.options["length"]}
    early = partial(companion.predictable_step, **told, **ALIKE)
    late = partial(rejecting.step, **told, **BOTH)
    for step, tokens in ((early, 2), (late, F(3, 2))):
        law = exact_distribution(
            lambda chance, s=step: s(case.target, case.drafter, (), 1, chance)
        )
        assert sum(len(block) * weight for block, weight in law.items()) == tokens


def test_full_lookahead_is_standard_speculative_decoding():
    """A length of all drafts: the same laws from all three, with the block length of theory."""
    target, drafter, third = models(ABC, "full")
    clean = exact_distribution(lambda chance: standard.step(target, drafter, (), 2, chance))
    for rule, told in (
        (companion.step, BOTH),
        (companion.predictable_step, ALIKE),
        (rejecting.step, BOTH),
    ):
        step = partial(rule, companion=third, length=len, **told)
        law = exact_distribution(lambda chance, s=step: s(target, drafter, (), 2, chance))
        assert law == clean
    rates = acceptance.by_position(acceptance.standard(target, drafter, lookahead=2))
    tokens = sum(len(block) * weight for block, weight in clean.items())
    assert tokens == expected_block_length(rates, 2)


def test_nothing_verified_is_one_target_token():
    target, drafter, third = models(ABC, "none")
    for rule in (companion.step, companion.predictable_step):
        told = BOTH if rule is companion.step else ALIKE
        for lookahead, length in ((0, len), (2, lambda rates: 0)):
            step = partial(rule, companion=third, length=length, **told)
            law = exact_distribution(
                lambda chance, s=step, n=lookahead: s(target, drafter, (), n, chance)
            )
            p = target.next_token(())
            assert law == {(x,): p[x] for x in range(3) if p[x] > 0}


def test_a_companion_like_the_drafter_knows_nothing():
    """c = q: S = A = 1 everywhere, so that no rule can tell one token from another."""
    target, drafter, _ = models(ABC, "alike")
    length = partial(optimal_length, latencies=STEPS)
    assert prove(companion.step, ([target, drafter, drafter], length, 2, ()), BOTH)


def test_requests_do_compete():
    """Who gets the second and third draft depends on what was drawn for the other one."""
    target, drafter, third = models(AB, "batch 1")

    def places(chance):
        traced = Traced(chance)
        fixed_budget_step(target, drafter, CONTEXTS, 2, traced, companion=third, budget=3, **ALIKE)
        return tuple(entry.site for entry in traced.steps if "draft" in entry.site)

    assert sorted(exact_distribution(places).values()) == [F(3, 7), F(4, 7)]


@settings(max_examples=15)
@given(KEYS, st.integers(0, 4), KEYS)
def test_any_estimate_and_any_models_are_jointly_lossless(key, budget, other):
    """With estimates that are an arbitrary function of S, and an EOS."""

    def estimate(alike):
        return F(hashlib.blake2b(f"{other}:{alike}".encode()).digest()[0] % 5, 4 + 1)

    target, drafter, third = models(Vocabulary("ab", eos="b"), key)
    step = partial(fixed_budget_step, companion=third, budget=budget, estimate=estimate)
    assert is_jointly_lossless(step, target, drafter, CONTEXTS, 2)


def test_three_requests():
    target, drafter, third = models(AB, "batch 1")
    step = partial(fixed_budget_step, companion=third, budget=2, **ALIKE)
    assert is_jointly_lossless(step, target, drafter, [(), (1,), (1, 0)], 1)


@pytest.mark.parametrize("key", range(3))
@pytest.mark.parametrize("budget", range(5))
def test_drafting_everything_first_verifies_the_same(key, budget):
    """The K greatest survivals of all drafts are those that the sequential rule draws."""
    target, drafter, third = models(AB, f"batch {key}")
    early = partial(fixed_budget_step, companion=third, budget=budget, **ALIKE)
    late = partial(
        draft_first,
        companion=third,
        estimate=lambda alike, acceptance: alike,
        lengths=partial(allocation, drafts=budget),
    )
    laws = [
        exact_distribution(lambda chance, s=step: s(target, drafter, CONTEXTS, 2, chance))
        for step in (early, late)
    ]
    assert laws[0] == laws[1]


@pytest.mark.parametrize("entry", BATCHES, ids=lambda entry: entry.id)
def test_batch_mutant_is_lossy_by_its_exact_distance(entry):
    case = entry.case
    proof = is_jointly_lossless(
        entry.on(case), case.target, case.drafter, [(), ()], case.lookahead
    )
    assert {case.name: proof.total_variation} == entry.distances
    assert not proof
    assert max(proof.alone(0), proof.alone(1)) == APART[entry.id]
    step = partial(fixed_budget_step, companion=case.options["companion"], budget=1, **ALIKE)
    assert is_jointly_lossless(step, case.target, case.drafter, [(), ()], case.lookahead)


def test_joint_proof_expects_the_product():
    """The expected law is that of two independent texts, and sums to 1."""
    target, drafter, third = models(AB, "batch 2")
    step = partial(fixed_budget_step, companion=third, budget=0, **ALIKE)
    proof = is_jointly_lossless(step, target, drafter, CONTEXTS, 1)
    alone = [
        is_lossless(standard.step, target, drafter, context, 1).expected for context in CONTEXTS
    ]
    assert proof.expected == product(alone) == proof.output
    assert sum(proof.expected.values()) == 1


def test_floats_that_add_up_to_more_than_1_are_as_similar_as_can_be():
    rows = np.random.default_rng(0).dirichlet(np.ones(7), 10_000)
    beyond = rows[[row.sum() > 1 for row in rows]]
    assert len(beyond)
    assert {similarity(row, row) for row in beyond} == {1.0}


def test_floats_run_by_the_same_code():
    """float64 models: every path of every rule ends in a block."""
    target, drafter, third = map(as_float, models(ABC, "floats"))
    for rule, told in (
        (companion.step, BOTH),
        (companion.predictable_step, ALIKE),
        (rejecting.step, BOTH),
    ):
        step = partial(
            rule, companion=third, length=partial(greedy_length, latencies=STEPS), **told
        )
        paths = enumerate_paths(lambda chance, s=step: s(target, drafter, (), 2, chance))
        assert sum(path.weight for path in paths) == pytest.approx(1, abs=1e-12)


TOYS = dict(zip(("target", "drafter", "companion"), models(ABC, "bad"), strict=True))
OTHER = iid_model(AB, ["1/2", "1/2"])


@pytest.mark.parametrize("rule", [companion.step, companion.predictable_step, rejecting.step])
@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"companion": OTHER}, ValueError, "companion has another vocabulary"),
        ({"drafter": OTHER}, ValueError, "drafter has another vocabulary"),
        ({"lookahead": -1}, ValueError, "lookahead = -1: expected an integer >= 0"),
        ({"estimate": lambda *s: F(5, 4)}, ValueError, "estimate at position 0 = 5/4"),
        ({"estimate": lambda *s: float("nan")}, ValueError, "position 0 = nan"),
        ({"length": lambda rates: 3}, ValueError, "length = 3: expected 0 to"),
        ({"length": lambda rates: -1}, ValueError, "length = -1: expected 0 to"),
        ({"length": lambda rates: 0.5}, ValueError, "length = 0.5: expected 0 to"),
        ({"context": (3,)}, ValueError, r"context\[0\] = 3: expected 0 <= id < 3"),
    ],
)
def test_bad_input_is_named(rule, changed, error, message):
    given = {"context": (), "lookahead": 2, "estimate": lambda *s: F(1, 2), "length": len}
    with pytest.raises(error, match=message):
        rule(**(TOYS | given | changed), chance=Exact())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"companion": OTHER}, "companion has another vocabulary"),
        ({"lookahead": -2}, "lookahead = -2"),
        ({"estimate": lambda s: 2}, "estimate at position 0 = 2"),
    ],
)
def test_bad_input_of_a_batch_is_named(changed, message):
    given = {"contexts": CONTEXTS, "lookahead": 1, "budget": 1, **ALIKE}
    with pytest.raises(ValueError, match=message):
        fixed_budget_step(**(TOYS | given | changed), chance=Exact())


@pytest.mark.parametrize(
    ("step", "model", "error", "message"),
    [
        (lambda *_: ((0,),), OTHER, ValueError, "expected 2 blocks"),
        (lambda *_: ((0,), ()), OTHER, ValueError, "expected 2 blocks"),
        (lambda *_: ((0,), (0,) * 9), OTHER, ValueError, "has 9 tokens"),
        (lambda *_: ((0,), (0,)), as_float(OTHER), TypeError, "target returns floats"),
    ],
)
def test_bad_batches_are_named(step, model, error, message):
    with pytest.raises(error, match=message):
        is_jointly_lossless(step, model, model, CONTEXTS)
