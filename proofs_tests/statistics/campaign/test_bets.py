"""Every bet is fair: its mean is 1 under p, and at most 1 under every law that is tolerated."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specref.algorithms import standard
from specref.chance import exact_distribution
from specref.models import Model, iid_model
from specref.statistics.campaign import bets
from specref.statistics.campaign.bets import LAG_SHAPE, lag_bets, ranks
from specref.statistics.campaign.large import POINTWISE, TILT_SHAPE, Observer, pointwise_laws
from specref.statistics.campaign.prefix_tree import PrefixTree, prefix_tree, starts
from specref.strategies import distributions, iterations, model_pairs, token_level_pairs
from specref.vocabulary import Vocabulary
from specref.zoo import FIXTURES, MUTANTS

TOLERANCES = st.sampled_from([0.001, 0.05, 0.4, 0.9])
ROUNDING = 1e-12
Array = np.ndarray


def mean(p: Array, log_bets: Array) -> Array:
    return (p * np.exp(log_bets)).sum(axis=-1)


def worst_mean(p: Array, log_bets: Array, tolerance: float) -> Array:
    """The largest mean of a bet over the laws within `tolerance` of p that p's support allows.

    The law that reaches it takes `tolerance` from the tokens that pay least, and puts all of
    it on the token that pays most.
    """
    p = np.broadcast_to(p, log_bets.shape)
    pays = np.exp(log_bets)
    order = np.argsort(pays, axis=-1)
    mass, sorted_pays = (np.take_along_axis(x, order, axis=-1) for x in (p, pays))
    before = np.cumsum(mass, axis=-1) - mass
    taken = np.clip(tolerance - before, 0, mass)
    most = np.where(p > 0, pays, 0).max(axis=-1)
    return ((mass - taken) * sorted_pays).sum(axis=-1) + taken.sum(axis=-1) * most


def trees() -> st.SearchStrategy[PrefixTree]:
    pairs = st.one_of(model_pairs(), token_level_pairs())
    return iterations(pairs).map(lambda case: prefix_tree(*case))


@st.composite
def rows(draw: st.DrawFn) -> tuple[Array, Array]:
    size = draw(st.integers(2, 4))
    p, q = (draw(distributions(size)).astype(np.float64) for _ in "pq")
    return p, q


@st.composite
def library(draw: st.DrawFn) -> tuple[PrefixTree, Array]:
    """A tree over one vocabulary, and the log-bets on one mutant there."""
    target, drafter, context, lookahead = draw(iterations(model_pairs()))
    tree = prefix_tree(target, drafter, context, lookahead)

    def mass(step) -> Array:
        law = exact_distribution(lambda c: step(target, drafter, context, lookahead, c))
        return starts(tree, law)

    mutant = draw(st.sampled_from(sorted(MUTANTS)))
    try:
        bad = mass(MUTANTS[mutant].step)
    except ValueError:
        bad = np.zeros_like(tree.p)  # it crashes here
    found = bets.library_bets(tree.p, mass(standard.step), {mutant: bad})
    return tree, np.array(list(found.values()))


@given(trees())
def test_tilts_are_fair(tree: PrefixTree) -> None:
    assert mean(tree.p, bets.tilts(tree.p, tree.q)) == pytest.approx(1, abs=ROUNDING)


@pytest.mark.parametrize("relative", [1e-13, 1e-11, 1e-9, 1e-7, 1e-4])
def test_tilts_are_fair_when_the_drafter_is_almost_the_target(relative: float) -> None:
    # What the features differ by is then close to what they are rounded by.
    p = np.random.default_rng(1).dirichlet([0.3] * 4, size=50)
    q = p.copy()
    q[np.arange(50), p.argmin(axis=1)] *= 1 - relative
    unfair = np.abs(mean(p, bets.tilts(p, q)) - 1).max()
    singly = [
        np.abs(mean(*row) - 1).max() for row in zip(p, observed_rows(p[:5], q), strict=False)
    ]
    assert max(unfair, *singly) <= ROUNDING


def observed_rows(p: Array, q: Array) -> list[Array]:
    return [observed(p_row, q_row, 0.0, 0, False) for p_row, q_row in zip(p, q, strict=False)]


@given(library())
def test_bets_on_known_bugs_are_fair(case: tuple[PrefixTree, Array]) -> None:
    tree, log_bets = case
    assert mean(tree.p, log_bets) == pytest.approx(1, abs=ROUNDING)


@given(trees())
def test_lag_bets_are_fair_after_every_token(tree: PrefixTree) -> None:
    size = tree.p.shape[1]
    for p, previous in itertools.product(tree.p, range(size)):
        chance, product = np.full(size, p[previous]), ranks(p) * ranks(p)[previous]
        log_bets = lag_bets(chance, np.arange(size) == previous, product)
        assert mean(p, log_bets) == pytest.approx(1, abs=ROUNDING)


def test_the_check_notices_a_bet_that_is_not_fair(counterexample) -> None:
    def fair_under_the_drafter(tree: PrefixTree) -> bool:
        return bool(np.allclose(mean(tree.q, bets.tilts(tree.p, tree.q)), 1, atol=1e-6))

    assert not fair_under_the_drafter(counterexample(trees(), fair_under_the_drafter))


@given(trees(), TOLERANCES)
def test_tolerant_tilts_win_nothing_on_average_from_any_tolerated_law(
    tree: PrefixTree, tolerance: float
) -> None:
    log_bets = bets.tolerate(bets.tilts(tree.p, tree.q), tree.p, tolerance)
    assert worst_mean(tree.p, log_bets, tolerance).max() <= 1 + ROUNDING


@given(library(), TOLERANCES)
def test_tolerant_bets_on_known_bugs_win_nothing_on_average_from_any_tolerated_law(
    case: tuple[PrefixTree, Array], tolerance: float
) -> None:
    tree, log_bets = case
    tolerant = bets.tolerate(log_bets, tree.p, tolerance)
    assert worst_mean(tree.p, tolerant, tolerance).max() <= 1 + ROUNDING


@given(rows(), TOLERANCES, st.lists(st.integers(0, 3), min_size=4, max_size=4).filter(any))
def test_no_tolerated_law_is_worse_than_the_worst(pq, tolerance, weights) -> None:
    p, q = pq
    log_bets = bets.tilts(p, q)
    worst = worst_mean(p, log_bets, tolerance)
    other = p * weights[: len(p)]
    if other.any():
        other = other / other.sum()
        share = min(1.0, tolerance / max(np.abs(other - p).sum() / 2, tolerance))
        assert (mean(p + share * (other - p), log_bets) <= worst + ROUNDING).all()


def test_bets_without_tolerance_do_win_from_a_tolerated_law(counterexample) -> None:
    def intolerant(tree: PrefixTree) -> bool:
        return worst_mean(tree.p, bets.tilts(tree.p, tree.q), 0.05).max() <= 1 + 1e-6

    assert not intolerant(counterexample(trees(), intolerant))


def observed(p: Array, q: Array, tolerance: float, position: int, last: bool) -> Array:
    """The log-wealth of every component after one token, for each token; shape (…, V)."""
    wealth = []
    for token in range(len(p)):
        observer = Observer(tolerance)
        if p[token] > 0:
            observer.observe(p, token, q, position, last)
        components = [observer.tilts.ravel(), observer.library.ravel()]
        wealth.append(np.concatenate(components) if p[token] > 0 else None)
    size = next(w.size for w in wealth if w is not None)
    return np.stack([np.zeros(size) if w is None else w for w in wealth], axis=-1)


@given(rows(), st.integers(0, 6), st.booleans())
def test_bets_on_single_tokens_are_fair(pq, position: int, last: bool) -> None:
    p, q = pq
    wealth = observed(p, q, 0.0, position, last)
    assert len(wealth) == math.prod(TILT_SHAPE) + 4 * len(POINTWISE)
    assert mean(p, wealth) == pytest.approx(1, abs=ROUNDING)


@given(rows(), TOLERANCES, st.booleans())
def test_tolerant_bets_on_single_tokens_win_nothing_on_average(pq, tolerance, last) -> None:
    p, q = pq
    wealth = observed(p, q, tolerance, 1, last)
    assert worst_mean(p, wealth, tolerance).max() <= 1 + ROUNDING


def lagged(p: Array, previous: int, tolerance: float) -> Array:
    """The log-wealth of the lag bets after each second token, given the first; shape (…, V)."""
    wealth = np.zeros((*LAG_SHAPE, len(p)))
    for token in np.flatnonzero(p > 0):
        observer = Observer(tolerance)
        observer.observe(p, previous, None, 0, False)
        assert not observer.lags.any()
        observer.observe(p, int(token), None, 0, False)
        wealth[..., token] = observer.lags
    return wealth


@given(rows(), st.sampled_from([0.0, 0.001, 0.05, 0.4]))
def test_tolerant_lag_bets_win_nothing_on_average_after_any_token(pq, tolerance) -> None:
    p, _ = pq
    for previous in np.flatnonzero(p > 0):
        wealth = lagged(p, int(previous), tolerance)
        assert worst_mean(p, wealth, tolerance).max() <= 1 + ROUNDING


@given(distributions(3), st.lists(st.integers(0, 2), max_size=6))
def test_dirichlet_is_the_product_of_its_predictions(row, sequence) -> None:
    p = row.astype(np.float64)
    won, counts = np.zeros(len(bets.CONCENTRATIONS)), np.zeros(3)
    for token in [x for x in sequence if p[x] > 0]:
        predicted = (bets.CONCENTRATIONS * p[token] + counts[token]) / (
            bets.CONCENTRATIONS + counts.sum()
        )
        won += np.log(predicted / p[token])
        counts[token] += 1
    # Log-gammas of 1e5 cancel to 1e-9 or so.
    assert bets.dirichlet_evidence(counts[None], p[None]) == pytest.approx(won, abs=1e-8)


@given(distributions(3), distributions(3))
def test_mean_wealth_of_dirichlet_is_one(first, second) -> None:
    p = np.stack([first, second]).astype(np.float64)
    mean_wealth = np.zeros(len(bets.CONCENTRATIONS))
    for sequence in itertools.product(range(3), repeat=4):
        counts = np.zeros((2, 3))
        nodes = [0, *(token % 2 for token in sequence[:-1])]  # where the next bet is depends on it
        chance = math.prod(p[node, token] for node, token in zip(nodes, sequence, strict=True))
        np.add.at(counts, (nodes, list(sequence)), 1)
        if chance:
            mean_wealth += chance * np.exp(bets.dirichlet_evidence(counts, p))
    assert mean_wealth == pytest.approx(1, abs=1e-8)


def test_tilts_of_counts_add_up_by_position() -> None:
    fixture = FIXTURES["wide"]
    tree = prefix_tree(fixture.target, fixture.drafter, (), fixture.lookahead)
    log_bets = bets.tilts(tree.p, tree.q)
    counts = np.random.default_rng(1).integers(0, 5, tree.p.shape) * (tree.p > 0)
    won = bets.tilt_evidence(counts.astype(float), log_bets, tree.position)
    for j in range(tree.length):
        here = tree.position == j
        assert won[..., j] == pytest.approx((log_bets * counts)[:, :, here].sum(axis=(2, 3)))
    assert won[..., -1] == pytest.approx(won[..., :-1].sum(axis=-1))


def test_features_of_a_row_by_hand() -> None:
    p, q = np.array([0.5, 0.4, 0.1, 0.0]), np.array([0.25, 0.5, 0.1, 0.15])
    assert dict(zip(bets.FEATURES, bets.features(p, q).tolist(), strict=True)) == {
        "q > p": [0, 1, 0, 1],
        "q/(p+q)": pytest.approx([1 / 3, 5 / 9, 1 / 2, 1]),
        "argmax p": [1, 0, 0, 0],
        "argmax q": [0, 1, 0, 0],
        "rare": [0, 0, 1, 1],  # below half of 0.42, the mean probability of a token of p
        "last id": [0, 0, 1, 0],  # of those that p allows
    }
    assert bets.features(np.array([1.0, 0.0]), np.array([1.0, 0.0]))[1].tolist() == [0.5, 0.5]


def test_stakes_are_of_both_signs() -> None:
    stakes = [0.01, 0.03, 0.1, 0.25, 0.5, 0.9]
    assert sorted(bets.STAKES.tolist()) == [-x for x in reversed(stakes)] + stakes


def test_concentrations_and_strengths_are_one_or_three_times_powers_of_ten() -> None:
    powers = [float(f"{10 ** (k / 2):.0e}") for k in range(2, 11)]
    assert bets.CONCENTRATIONS.tolist() == powers
    assert tuple(float(f"{10 ** (-k / 2):.0e}") for k in range(4)) == bets.STRENGTHS


def test_a_law_is_compared_on_what_the_target_allows() -> None:
    p = np.array([[0.5, 0.25, 0.25, 0.0], [0.5, 0.5, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0]])
    mass = np.array([[0.1, 0.1, 0.0, 0.3], [0.0, 0.0, 0.0, 0.2], [0.2, 0.6, 0.0, 0.0]])
    assert bets.conditional_log_ratio(mass, p) == pytest.approx(
        np.array(
            [
                [0, math.log(2), -math.inf, 0],
                [0, 0, 0, 0],
                [math.log(0.5), math.log(1.5), 0, 0],
            ]
        )
    )


def test_the_first_four_positions_have_slots_of_their_own() -> None:
    assert bets.position_slots(np.arange(7)).tolist() == [0, 1, 2, 3, 4, 4, 4]


def test_log_mean() -> None:
    assert bets.log_mean(np.log([1.0, 3.0])) == pytest.approx(math.log(2))
    assert bets.log_mean(np.array([-np.inf, -np.inf])) == -np.inf
    assert bets.log_mean(np.zeros(0)) == -np.inf


ONE_ROW_BUGS = {
    "residual is p": "residual-is-p",
    "residual is |p - q|": "residual-abs",
    "residual is q": "residual-is-q",
    "always accepts": "always-accept-u0",
    "lenient": "lenience-5-4",
    "argmax draft, soft q": "greedy-draft-soft-q",
    "inverted ratio": "inverted-ratio",
    "bonus from the residual": "algorithm-5-as-printed",
    "bonus from q": "bonus-from-drafter",
}


@pytest.mark.parametrize(("name", "mutant"), ONE_ROW_BUGS.items(), ids=list(ONE_ROW_BUGS.values()))
def test_laws_of_one_row_are_those_of_the_zoo(name: str, mutant: str) -> None:
    p, q = [Fraction(x, 12) for x in (6, 3, 2, 1)], [Fraction(x, 12) for x in (2, 5, 1, 4)]
    target, drafter = (iid_model(Vocabulary("abcd"), row) for row in (p, q))
    last = name.startswith("bonus")
    assert pointwise_laws(*floats(p, q), last=last)[name] == pytest.approx(
        first_token(mutant, target, drafter, lookahead=0 if last else 1)
    )


def floats(*vectors: list[Fraction]) -> tuple[Array, ...]:
    return tuple(np.array(vector, dtype=np.float64) for vector in vectors)


def first_token(mutant: str, target: Model, drafter: Model, lookahead: int) -> Array:
    step = MUTANTS[mutant].step
    law = exact_distribution(lambda c: step(target, drafter, (), lookahead, c)[0])
    return np.array([float(law.get(token, 0)) for token in range(len(target.vocabulary))])
