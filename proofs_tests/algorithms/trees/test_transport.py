"""The most that any lossless rule accepts of several drafts: the cut, the flow, and an LP."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from specref import exact_distribution
from specref.algorithms.trees.siblings import draw
from specref.algorithms.trees.transport import (
    Optimum,
    by_set,
    coupling,
    drafts_law,
    optimal_acceptance,
    optimal_acceptance_independent,
    optimal_rows,
)
from specref.distributions import as_distribution, overlap
from specref.strategies import distributions

F = Fraction
DRAFTS = st.integers(1, 3)


@st.composite
def pairs(draw_, largest=4):
    size = draw_(st.integers(1, largest))
    return draw_(distributions(size, 8)), draw_(distributions(size, 8))


@st.composite
def joint_laws(draw_, size):
    """Any law of tuples: of different lengths, with duplicates, of dependent drafts."""
    tuples = st.lists(st.integers(0, size - 1), min_size=1, max_size=3).map(tuple)
    drafts = draw_(st.lists(tuples, min_size=1, max_size=5, unique=True))
    weights = draw_(distributions(len(drafts)))
    return {d: w for d, w in zip(drafts, weights, strict=True) if w > 0}


@st.composite
def transports(draw_):
    size = draw_(st.integers(1, 4))
    return draw_(distributions(size, 8)), draw_(joint_laws(size))


def by_linear_programming(p, law):
    """max P(y is one of the drafts), over all joint laws of drafts and y with these marginals."""
    sets = by_set(law)
    cells = list(itertools.product(sets, range(len(p))))
    sums = [[float(drafts == row) for drafts, _ in cells] for row in sets]
    sums += [[float(token == column) for _, token in cells] for column in range(len(p))]
    gains = [-float(token in drafts) for drafts, token in cells]
    expected = [float(w) for w in (*sets.values(), *p)]
    return -linprog(gains, A_eq=np.array(sums), b_eq=expected).fun


@pytest.mark.parametrize("replacement", [True, False])
@given(pairs(), DRAFTS)
def test_the_law_of_siblings_is_how_they_are_drawn(replacement, pair, drafts):
    _, q = pair
    enumerated = exact_distribution(
        lambda chance: draw(q, drafts, chance, "draft[0]", replacement=replacement)
    )
    assert drafts_law(q, drafts, replacement=replacement) == enumerated


@given(transports())
def test_cut_and_linear_programme_agree(case):
    """The formula is the optimum of the transport problem; to 1e-9, floats against Fractions."""
    assert float(optimal_acceptance(*case).acceptance) == pytest.approx(
        by_linear_programming(*case), abs=1e-9
    )


@given(transports())
def test_cut_and_flow_agree(case):
    """Weak duality proves each the other's optimality: no tolerance."""
    p, law = case
    flow, weights = coupling(p, law), by_set(law)
    assert sum(flow.values()) == optimal_acceptance(p, law).acceptance
    assert all(mass > 0 and token in drafts for (drafts, token), mass in flow.items())
    for drafts, weight in weights.items():
        assert sum(mass for (source, _), mass in flow.items() if source == drafts) <= weight
    for token, room in enumerate(p):
        assert sum(mass for (_, sink), mass in flow.items() if sink == token) <= room


@given(transports())
def test_the_rows_of_an_optimal_rule(case):
    """Each is a law; together they emit p; a token is accepted iff it is one of the drafts."""
    p, law = case
    weights, rows = by_set(law), optimal_rows(p, law)
    assert all((as_distribution(row) == row).all() for row in rows.values())
    assert (sum(weights[drafts] * row for drafts, row in rows.items()) == p).all()
    accepted = sum(weights[drafts] * row[sorted(drafts)].sum() for drafts, row in rows.items())
    assert accepted == optimal_acceptance(p, law).acceptance


@given(transports())
def test_the_bottleneck_is_the_least_of_the_best_cuts(case):
    """All sets that attain the optimum contain it."""
    p, law = case
    best, bottleneck = optimal_acceptance(p, law)
    for size in range(len(p) + 1):
        for tokens in itertools.combinations(range(len(p)), size):
            inside = sum(w for drafts, w in law.items() if set(drafts) <= set(tokens))
            value = 1 - inside + p[list(tokens)].sum()
            assert value >= best
            assert value > best or set(bottleneck) <= set(tokens)


@given(pairs(5), st.integers(1, 4))
def test_independent_drafts_are_cut_in_order_of_their_ratios(pair, drafts):
    p, q = pair
    law = drafts_law(q, drafts, replacement=True)
    assert optimal_acceptance_independent(p, q, drafts) == optimal_acceptance(p, law)


@given(pairs(5), DRAFTS)
def test_so_are_drafts_without_replacement(pair, drafts):
    """Hu et al. 2025 prove it; here it is seen."""
    p, q = pair
    _, cut = optimal_acceptance(p, drafts_law(q, drafts, replacement=False))
    others = [token for token in np.flatnonzero(q) if token not in cut]
    assert all(p[x] / q[x] <= p[y] / q[y] for x in cut for y in others)


@given(pairs())
def test_one_draft_is_accepted_with_the_overlap(pair):
    p, q = pair
    assert optimal_acceptance(p, drafts_law(q, 1, replacement=True)).acceptance == overlap(p, q)


@given(pairs(), st.sets(st.integers(0, 3), min_size=1))
def test_drafts_that_are_certain_are_accepted_with_their_own_probability(pair, drafts):
    p, _ = pair
    known = tuple(sorted({token % len(p) for token in drafts}))
    assert optimal_acceptance(p, {known: F(1)}).acceptance == p[list(known)].sum()


@given(pairs(), st.integers(1, 2))
def test_more_drafts_and_different_drafts_never_hurt(pair, drafts):
    p, q = pair
    best = {
        (k, replacement): optimal_acceptance(
            p, drafts_law(q, k, replacement=replacement)
        ).acceptance
        for k in (drafts, drafts + 1)
        for replacement in (True, False)
    }
    for replacement in (True, False):
        assert best[drafts + 1, replacement] >= best[drafts, replacement]
    assert best[drafts, False] >= best[drafts, True]


def test_exhausted_drafts():
    """As many drafts as q has tokens: all of them, in some order, and then no more."""
    q = as_distribution(["1/2", 0, "1/2"])
    law = drafts_law(q, 4, replacement=False)
    assert law == {(0, 2): F(1, 2), (2, 0): F(1, 2)}
    assert optimal_acceptance(as_distribution(["1/4", "1/2", "1/4"]), law) == (F(1, 2), (0, 2))
    assert optimal_acceptance(q, law) == Optimum(F(1), ())


def test_the_flow_has_to_be_augmented_backwards():
    """Greedily 0 goes to the first set; it has to give it back for all of p to be accepted."""
    p = as_distribution(["1/2", "1/2"])
    law = {(0, 1): F(1, 2), (0,): F(1, 2)}
    flow = coupling(p, law)
    assert flow == {(frozenset({0, 1}), 1): F(1, 2), (frozenset({0}), 0): F(1, 2)}


def greedily(p, law):
    """A planted bug: a flow that never takes back what it gave."""
    room, accepted = list(p), F(0)
    for drafts, weight in by_set(law).items():
        for token in sorted(drafts):
            amount = min(weight, room[token])
            weight, room[token], accepted = (
                weight - amount,
                room[token] - amount,
                accepted + amount,
            )
    return accepted


def best_single_cut(p, law):
    """A planted bug: only sets of one token, or of all but one, are looked at."""
    tokens = range(len(p))
    cuts = [{x} for x in tokens] + [{*tokens} - {x} for x in tokens]
    inside = [sum(w for drafts, w in law.items() if set(drafts) <= cut) for cut in cuts]
    return 1 - max(F(0), *(w - p[sorted(cut)].sum() for w, cut in zip(inside, cuts, strict=True)))


@pytest.mark.parametrize("wrong", [greedily, best_single_cut])
def test_the_comparisons_refute_bugs(wrong, counterexample):
    assert counterexample(
        transports(), lambda case: wrong(*case) == optimal_acceptance(*case).acceptance
    )


def test_bad_input():
    q = as_distribution(["1/2", "1/2"])
    with pytest.raises(ValueError, match="drafts = 0"):
        drafts_law(q, 0, replacement=True)
    with pytest.raises(ValueError, match="p has 17 tokens"):
        optimal_acceptance(as_distribution([F(1, 17)] * 17), {(0,): F(1)})
    with pytest.raises(TypeError, match="p has floats"):
        coupling(np.array([0.5, 0.5]), {(0,): 1.0})
