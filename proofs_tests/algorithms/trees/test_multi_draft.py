"""Several drafts of one token: every rule is lossless, accepts what its formula says, or is a bug.

The rules are compared with each other where one is shown never to accept less.
"""

from collections import Counter
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs_tests.helpers.published import PINS, models
from specref import Vocabulary, exact_distribution, is_lossless
from specref.algorithms import standard
from specref.algorithms.trees.k_seq import k_seq_law, smallest_rho
from specref.algorithms.trees.multi_draft import (
    Verdict,
    k_seq,
    matching,
    optimal,
    recursive_rejection,
    spechub,
    step,
    top_drafts,
)
from specref.algorithms.trees.siblings import draw, reject_recursively, remaining
from specref.algorithms.trees.transport import (
    drafts_law,
    optimal_acceptance,
    optimal_acceptance_independent,
)
from specref.chance import Exact, Replayed, Sampled, Traced
from specref.distributions import as_distribution, overlap
from specref.models import as_float, hashed_model, iid_model
from specref.proofs import completed, is_lossless_loop, output_distribution
from specref.strategies import distributions, iterations, model_pairs, vocabularies
from specref.strategies import models as model_of
from specref.theory import multi_draft as theory
from specref.zoo.parts.siblings import judging, rule_of, top_and_one
from specref.zoo.siblings import ENTRIES

F = Fraction
ABC = Vocabulary("abc")


def k_seq_with_k(p, q, drafts, chance, depth):
    return k_seq(p, q, drafts, chance, depth, rho=drafts)


RULES = {
    "with replacement": partial(recursive_rejection, replacement=True),
    "without replacement": recursive_rejection,
    "matching, with replacement": partial(matching, replacement=True),
    "matching, without replacement": matching,
    "k-SEQ": k_seq,
    "k-SEQ, rho = k": k_seq_with_k,
    "top drafts": top_drafts,
    "SpecHub": spechub,
    "optimal, with replacement": partial(optimal, replacement=True),
    "optimal, without replacement": optimal,
}


def best(p, q, drafts, replacement):
    return optimal_acceptance(p, drafts_law(q, drafts, replacement=replacement)).acceptance


def formula(name, p, q, drafts):
    """What a rule accepts by `theory.multi_draft`; no path is enumerated."""
    replacement = "without" not in name
    if name.startswith("matching"):
        return theory.matching(p, drafts_law(q, drafts, replacement=replacement))
    if name.startswith("optimal"):
        return best(p, q, drafts, replacement)
    if name.startswith("k-SEQ"):
        rho = smallest_rho(p, q, drafts) if name == "k-SEQ" else drafts
        return theory.k_seq(p, q, drafts, rho)
    if name in ("top drafts", "SpecHub"):
        return theory.top_drafts(p, q, drafts)
    return theory.recursive_rejection(p, q, drafts, replacement=replacement)


def counts(name):
    return st.just(2) if name == "SpecHub" else st.integers(1, 3)


def verdicts(rule, p, q, drafts):
    """({token: probability}, the probability that a draft is accepted)."""
    law = exact_distribution(lambda chance: rule(p, q, drafts, chance, 0))
    tokens = Counter()
    for verdict, weight in law.items():
        tokens[verdict.token] += weight
    return tokens, sum(weight for verdict, weight in law.items() if verdict.accepted)


def as_law(p):
    return {token: w for token, w in enumerate(p) if w > 0}


@st.composite
def pairs(draw_, largest=4):
    size = draw_(st.integers(1, largest))
    p = draw_(distributions(size, 8))
    return p, draw_(st.one_of(st.just(p), *[distributions(size, 8)] * 4))


by_rule = pytest.mark.parametrize("name", RULES)
LIKE_STANDARD = [name for name in RULES if name != "SpecHub" and not name.startswith("matching")]
FLOATS = [name for name in RULES if not name.startswith("optimal")]


@pytest.mark.deep(one_in=8)
@by_rule
@given(data=st.data(), pair=pairs())
def test_the_token_is_from_p_and_accepted_as_often_as_the_formula_says(name, data, pair):
    drafts = data.draw(counts(name))
    tokens, accepted = verdicts(RULES[name], *pair, drafts)
    assert tokens == as_law(pair[0])
    assert accepted == formula(name, *pair, drafts)


@pytest.mark.deep(one_in=8)
@by_rule
@given(data=st.data(), case=iterations(model_pairs()))
def test_two_drafts_and_two_depths_are_lossless(name, data, case):
    """The joint law of the completed block: EOS, zeros, models that look at the context."""
    drafts = 2 if name == "SpecHub" else data.draw(st.integers(1, 2))
    proof = is_lossless(partial(step, drafts=drafts, rule=RULES[name]), *case)
    assert proof, proof.difference


@pytest.mark.deep(one_in=8)
@by_rule
@given(case=iterations(model_pairs(vocabularies(max_tokens=3, eos=True)), max_lookahead=1))
def test_decode_loops_are_lossless(name, case):
    assert is_lossless_loop(partial(step, rule=RULES[name]), *case, length=3)


@given(case=iterations(model_pairs(vocabularies(max_tokens=3, eos=True)), max_lookahead=2))
def test_three_drafts_at_two_depths_are_lossless(case):
    assert is_lossless(partial(step, drafts=3), *case)


@given(model_of(ABC), model_of(ABC), st.sampled_from([None, "a", "b"]), st.integers(1, 2))
def test_either_model_may_end_texts_at_its_own_token(target, drafter, eos, lookahead):
    """The target's EOS is c; the drafter stops at another one, or never."""
    ending = type(target)(Vocabulary("abc", eos="c"), target.rows)
    stopping = type(drafter)(Vocabulary("abc", eos=eos), drafter.rows)
    assert is_lossless(step, ending, stopping, (), lookahead)


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("name", LIKE_STANDARD)
@given(case=iterations(model_pairs(), max_lookahead=3))
def test_one_draft_is_standard_speculative_decoding(name, case):
    """The same law of blocks. Not so matching, which accepts less; SpecHub has two drafts."""
    one = partial(step, drafts=1, rule=RULES[name])
    assert output_distribution(one, *case)[0] == output_distribution(standard.step, *case)[0]


def lossless_on(rule, pair, drafts=2):
    return verdicts(rule, *pair, drafts)[0] == as_law(pair[0])


def outside_by_the_whole_q(q, drafts, chance, site):
    """The draw outside the top of q, declared as if it could have been one of the top."""
    return tuple(x._replace(q=q) for x in top_and_one(q, drafts, chance, site)[drafts - 1 :])


BUGS = {mutant.id: mutant.step.keywords["rule"] for mutant in ENTRIES} | {
    "top drafts, q not renormalised": rule_of(judging(), outside_by_the_whole_q)
}


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("bug", BUGS)
def test_the_same_proofs_refute_bugs(bug, counterexample):
    rule = BUGS[bug]
    assert counterexample(pairs(), lambda pair: lossless_on(rule, pair))
    assert counterexample(
        iterations(model_pairs(), max_lookahead=1),
        lambda case: is_lossless(partial(step, rule=rule), *case),
    )


def test_a_descent_from_a_rejected_draft_is_seen_only_jointly(counterexample):
    """Accepted or not, the next depth may follow a token of p; but not with the row of a sibling.

    The first token has the law p; the one after it is drafted and verified after another sibling.
    """

    def other_row(target, drafter, context, lookahead, chance):
        q = drafter.next_token(context)
        siblings = draw(q, 2, chance, "draft[0]", replacement=False)
        index, law = reject_recursively(
            target.next_token(context), q, siblings, chance, "accept[0]", replacement=False
        )
        if index is None:
            return (chance.draw(law, "residual"),)
        after = target.next_token((*context, siblings[0]))
        return siblings[index], chance.draw(after, "bonus")

    def lossless(case):
        first = Counter()
        for emitted, weight in output_distribution(other_row, *case)[0].items():
            first[emitted[:1]] += weight
        assert first == completed({(): F(1)}, case[0], case[2], 1)
        return is_lossless(other_row, *case)

    assert counterexample(iterations(model_pairs()), lossless)


@given(pairs(), st.integers(1, 3))
def test_duplicates_may_be_merged_if_q_is_updated_for_it(pair, drafts):
    """A control: drawn with replacement, merged, verified as without.

    Whether another sibling comes depends on those before it alone, so each is drawn from what
    they left of q. To verify them with q as it was is `siblings-duplicates-skipped`.
    """

    def merged(p, q, drafts, chance, depth):
        siblings = tuple(dict.fromkeys(draw(q, drafts, chance, "draft", replacement=True)))
        index, law = reject_recursively(p, q, siblings, chance, "accept", replacement=False)
        if index is None:
            return Verdict(chance.draw(law, "residual"), False)
        return Verdict(siblings[index], True)

    assert lossless_on(merged, pair, drafts)


@pytest.mark.parametrize("bug", ["siblings-judged-apart", "k-seq-with-rho-1"])
def test_what_accepts_more_than_the_optimum_is_lossy(bug):
    p, q = instance("S1")
    tokens, accepted = verdicts(BUGS[bug], p, q, 2)
    assert accepted == F(8, 9) > best(p, q, 2, True) == F(29, 36)
    assert tokens != as_law(p)


def instance(name):
    return tuple(model.next_token(()) for model in models(name))


PINNED = {
    "RRS with replacement": "with replacement",
    "RRS without replacement": "without replacement",
    "NSS with replacement": "matching, with replacement",
    "NSS without replacement": "matching, without replacement",
    "OT optimum with replacement": "optimal, with replacement",
    "OT optimum without replacement": "optimal, without replacement",
    "greedy drafts (top k-1 + 1 random) optimum": "top drafts",
    "SpecHub": "SpecHub",
    "k-SEQ rho=rho*=3/2": "k-SEQ",
    "k-SEQ rho=k=2": "k-SEQ, rho = k",
}
INVALID = "k-SEQ rho=1 (INVALID: negative residual)"


def pin_name(pin):
    return f"{pin['inst']} {pin['k']} {pin['rule']}"


@pytest.mark.parametrize("pin", PINS["multi"], ids=pin_name)
def test_pinned_acceptance(pin):
    p, q = instance(pin["inst"])
    if pin["rule"] == INVALID:
        assert_inadmissible(p, q, pin)
        return
    name = PINNED[pin["rule"]]
    assert str(formula(name, p, q, pin["k"])) == pin["acc"]
    assert str(verdicts(RULES[name], p, q, pin["k"])[1]) == pin["acc"]
    if "H" in pin:
        law = drafts_law(q, pin["k"], replacement="without" not in name)
        assert list(optimal_acceptance(p, law).bottleneck) == pin["H"]
    if "hub" in pin:
        assert int(np.argmax(q)) == pin["hub"]
    if "beta" in pin:
        rho = smallest_rho(p, q, 2) if name == "k-SEQ" else 2
        kept, accepted = k_seq_law(p, q, 2, rho)
        assert str(kept.sum()) == pin["beta"]
        assert [str(x) for x in p - accepted] == pin["residual_unnormalised"]


def assert_inadmissible(p, q, pin):
    for judge in (k_seq_law, theory.k_seq):
        with pytest.raises(ValueError, match="rho = 1: token 1 would be accepted"):
            judge(p, q, pin["k"], 1)
    kept = np.minimum(p, q)
    accepted = 1 - (1 - kept.sum()) ** 2
    assert (str(kept.sum()), str(accepted)) == (pin["beta"], pin["acc"])
    left = p - kept * accepted / kept.sum()
    assert [str(x) for x in left] == pin["residual_unnormalised"]


def test_every_pin_is_of_a_known_rule():
    assert len(PINS["multi"]) == 33
    assert {pin["rule"] for pin in PINS["multi"]} == {*PINNED, INVALID}


def test_a_pinned_example_of_recursive_rejection_below_the_optimum():
    p, q = as_distribution(["1/3", "5/12", "1/4"]), as_distribution(["3/8", "1/4", "3/8"])
    assert theory.recursive_rejection(p, q, 2, replacement=True) == F(7, 8)
    assert optimal_acceptance_independent(p, q, 2).acceptance == 1


def k_seq_tries(p, q, drafts, rho):
    """G of `theory.multi_draft`, which is at least rho iff rho is at most rho*."""
    beta = np.minimum(q, p / rho).sum()
    return sum((1 - beta) ** j for j in range(drafts))


@given(pairs(), st.integers(1, 4))
def test_order_of_the_rules_with_replacement(pair, drafts):
    """Theorems of `theory.multi_draft`. rho* may be irrational: S_k <= rho* is asked exactly."""
    p, q = pair
    matched = theory.matching(p, drafts_law(q, drafts, replacement=True))
    recursive = theory.recursive_rejection(p, q, drafts, replacement=True)
    optimum = optimal_acceptance_independent(p, q, drafts).acceptance
    assert matched <= recursive <= optimum
    assert theory.k_seq(p, q, drafts, drafts) <= recursive
    assert theory.k_seq(p, q, drafts, smallest_rho(p, q, drafts)) <= optimum
    scale = F(0)
    for _ in range(drafts):
        scale += 1 - overlap(p, scale * q)
    assert k_seq_tries(p, q, drafts, scale) >= scale


@given(pairs(), st.integers(1, 3))
def test_order_of_the_rules_without_replacement(pair, drafts):
    """The first of three is seen and not shown; the others are theorems."""
    p, q = pair
    recursive = theory.recursive_rejection(p, q, drafts, replacement=False)
    assert theory.matching(p, drafts_law(q, drafts, replacement=False)) <= recursive
    assert theory.recursive_rejection(p, q, drafts, replacement=True) <= recursive
    assert recursive <= best(p, q, drafts, False)


@given(pairs(), st.integers(1, 3))
def test_more_drafts_never_hurt(pair, drafts):
    more = drafts + 1
    for name in ("with replacement", "without replacement", "top drafts"):
        assert formula(name, *pair, drafts) <= formula(name, *pair, more)


def test_more_drafts_hurt_k_seq_with_rho_k():
    p = as_distribution(["1/4", "3/4"])
    assert [theory.k_seq(p, p, k, k) for k in (1, 2, 3)] == [1, F(3, 4), F(19, 27)]
    assert [smallest_rho(p, p, k) for k in (1, 2, 3)] == [1, 1, 1]


@given(pairs())
def test_enough_different_siblings_accept_all_that_q_can_draw(pair):
    p, q = pair
    accepted = theory.recursive_rejection(p, q, len(p), replacement=False)
    assert accepted == p[np.flatnonzero(q)].sum()


@given(pairs(), st.integers(1, 3))
def test_top_drafts_are_verified_optimally(pair, drafts):
    """For two, also the law of the sets that SpecHub drafts."""
    p, q = pair
    top = sorted(np.flatnonzero(q), key=lambda token: (-q[token], token))[: drafts - 1]
    outside = q.copy()
    outside[top] = F(0)
    law = {tuple(top): F(1)}
    if outside.any():
        law = {(*top, x): w / outside.sum() for x, w in as_law(outside).items()}
    assert optimal_acceptance(p, law).acceptance == theory.top_drafts(p, q, drafts)


def test_top_drafts_may_be_better_or_worse_than_siblings_at_their_best():
    worse = instance("S1")
    better = as_distribution([1, 0, 0]), as_distribution(["2/5", "1/5", "2/5"])
    assert theory.top_drafts(*worse, 2) < best(*worse, 2, False)
    assert theory.top_drafts(*better, 2) > best(*better, 2, False)


@given(pairs(), st.integers(1, 3), st.integers(1, 64))
def test_smallest_rho_is_the_least_of_its_grid(pair, drafts, grid):
    p, q = pair
    rho = smallest_rho(p, q, drafts, grid=grid)
    assert (rho * grid).denominator == 1
    assert k_seq_tries(p, q, drafts, rho) <= rho
    assert rho == 1 or k_seq_tries(p, q, drafts, rho - F(1, grid)) > rho - F(1, grid)


@given(pairs(), st.integers(1, 3), st.fractions("1/4", 3, max_denominator=8))
def test_a_rho_is_refused_iff_its_residual_is_negative(pair, drafts, rho):
    p, q = pair
    kept = np.minimum(q, p / rho)
    if (kept * k_seq_tries(p, q, drafts, rho) > p).any():
        with pytest.raises(ValueError, match=f"rho = {rho}: token"):
            k_seq(p, q, drafts, Exact(), 0, rho=rho)
    else:
        rule = partial(k_seq, rho=rho)
        assert lossless_on(rule, pair, drafts)


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("name", FLOATS)
@given(data=st.data(), pair=pairs())
def test_floats_are_read_by_the_same_code(name, data, pair):
    """To 1e-9; what rounding alone lets happen draws from a law, too. The flow is exact only."""
    drafts = data.draw(counts(name))
    p, q = (law.astype(np.float64) for law in pair)
    tokens, accepted = verdicts(RULES[name], p, q, drafts)
    assert [tokens[token] for token in range(len(p))] == pytest.approx(p, abs=1e-9)
    assert accepted == pytest.approx(float(verdicts(RULES[name], *pair, drafts)[1]), abs=1e-9)


def test_sampling_runs():
    """200 blocks of floats, each one that the exact law has."""
    pair = hashed_model(ABC, "p"), hashed_model(ABC, "q")
    possible, _ = output_distribution(step, *pair, (), 2)
    target, drafter = map(as_float, pair)
    chance = Sampled(np.random.default_rng(1))
    blocks = {step(target, drafter, (), 2, chance) for _ in range(200)}
    assert len(blocks) > 1
    assert blocks <= possible.keys()


def test_equal_models_and_disjoint_supports():
    same = hashed_model(ABC, "same")
    blocks, _ = output_distribution(step, same, same, (), 3)
    assert {len(tokens) for tokens in blocks} == {4}
    disjoint = iid_model(ABC, [1, 0, 0]), iid_model(ABC, [0, "1/2", "1/2"])
    assert output_distribution(step, *disjoint, (), 2)[0] == {(0,): F(1)}


def test_each_duplicate_tosses_its_own_coin():
    target, drafter = iid_model(ABC, ["1/2", "1/3", "1/6"]), iid_model(ABC, ["1/6", "1/3", "1/2"])
    chance = Traced(Replayed([2, 2, False, False, 0]))
    rule = partial(recursive_rejection, replacement=True)
    assert step(target, drafter, (), 1, chance, rule=rule) == (0,)
    assert [(asked.site, str(asked.weight)) for asked in chance.steps] == [
        ("draft[0][0]", "1/2"),
        ("draft[0][1]", "1/2"),
        ("accept[0][0]", "2/3"),
        ("accept[0][1]", "1"),
        ("residual", "1"),
    ]


def test_siblings_end_where_q_is_exhausted():
    p, q = as_distribution(["1/2", "1/2", 0]), as_distribution([0, "1/2", "1/2"])
    chance = Traced(Replayed([2, 1]))
    assert draw(q, 3, chance, "draft[0]", replacement=False) == (2, 1)
    assert [asked.site for asked in chance.steps] == ["draft[0][0]", "draft[0][1]"]
    assert not remaining(as_distribution([0, 1]), 1).any()
    index, law = reject_recursively(p, q, (), Exact(), "accept[0]", replacement=False)
    assert index is None
    assert law is p


def test_bad_input():
    p = as_distribution(["1/2", "1/2"])
    for drafts in (0, -1, True, 2.0):
        with pytest.raises(ValueError, match=f"drafts = {drafts}: expected an integer >= 1"):
            draw(p, drafts, Exact(), "draft[0]", replacement=False)
        with pytest.raises(ValueError, match=f"drafts = {drafts}"):
            top_drafts(p, p, drafts, Exact(), 0)
    with pytest.raises(ValueError, match="drafts = 3: expected 2"):
        spechub(p, p, 3, Exact(), 0)
    with pytest.raises(ValueError, match="rho = 0: expected a number > 0"):
        k_seq(p, p, 2, Exact(), 0, rho=0)
    with pytest.raises(ValueError, match=r"siblings\[1\] = 0"):
        reject_recursively(
            as_distribution([0, 1]), p, (0, 0), Exact(), "accept[0]", replacement=False
        )
    pair = iid_model(Vocabulary("ab"), p), iid_model(Vocabulary("ba"), p)
    with pytest.raises(ValueError, match="drafter has another vocabulary"):
        step(*pair, (), 1, Exact())
    with pytest.raises(ValueError, match="lookahead = -1"):
        step(pair[0], pair[0], (), -1, Exact())
