"""The NumPy twin for first-order models: the same law, and the same block from the same coins."""

import math
import pickle
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs_tests.helpers.twins import (
    BELOW_ONE,
    TRIALS,
    BySite,
    Column,
    detectable,
    is_rejected,
)
from specref import Model, Vocabulary, exact_distribution
from specref.algorithms import autoregressive, standard
from specref.chance import Chance, Sampled
from specref.distributions import Probabilities, Probability, total_variation
from specref.models import as_float, hashed_model, markov_model
from specref.simulate import (
    CHUNK,
    MarkovTables,
    Simulation,
    draw_markov,
    markov_columns,
    markov_tables,
    simulate,
    simulate_markov,
    tabulate,
)
from specref.simulate.markov import Rows, compiled_rows
from specref.vocabulary import Tokens

ABC, ABCD = Vocabulary("abc"), Vocabulary("abcd")
LARGE = 1024


def first_order(model: Model) -> Model:
    """The first-order model that agrees on contexts of at most one token."""
    rows = [model.next_token((token,)) for token in range(len(model.vocabulary))]
    return markov_model(model.vocabulary, model.next_token(()), rows)


def matrix(model: Model) -> np.ndarray:
    contexts = [*((token,) for token in range(len(model.vocabulary))), ()]
    return np.array([model.next_token(context) for context in contexts]).astype(np.float64)


PAIRS = {
    "zeros and ties": (
        first_order(hashed_model(ABCD, "p")),
        first_order(hashed_model(ABCD, "q")),
    ),
    "three tokens": (first_order(hashed_model(ABC, "s")), first_order(hashed_model(ABC, "t"))),
    "equal rows, disjoint rows": (
        markov_model(
            ABCD,
            ["1/2", "1/6", 0, "1/3"],
            [
                ["1/3", "2/3", 0, 0],
                ["1/4", "1/4", "1/4", "1/4"],
                ["1/7", "2/7", 0, "4/7"],
                [0, "2/5", "3/5", 0],
            ],
        ),
        markov_model(
            ABCD,
            ["1/3", "1/3", "1/3", 0],
            [
                [0, 0, "1/4", "3/4"],
                ["1/4", "1/4", "1/4", "1/4"],
                [1, 0, 0, 0],
                ["1/5", "1/5", "1/5", "2/5"],
            ],
        ),
    ),
    "equal models": (first_order(hashed_model(ABC, "p")), first_order(hashed_model(ABC, "p"))),
}
SCENARIOS = [(pair, lookahead) for pair in PAIRS for lookahead in range(4)]


@cache
def tables_of(pair: str) -> MarkovTables:
    return markov_tables(*map(matrix, PAIRS[pair]))


@cache
def reference_law(pair: str, lookahead: int, context: Tokens = ()) -> dict[Tokens, Probability]:
    return exact_distribution(
        lambda chance: standard.step(*PAIRS[pair], context, lookahead, chance)
    )


def masses(rows: Rows) -> np.ndarray:
    return np.diff(np.minimum(rows.thresholds, 1), axis=1, prepend=0)


def law_of(tables: MarkovTables, lookahead: int) -> dict[Tokens, float]:
    """Push probability 1 through the tables: what uniforms do there, in floats."""
    p, q, corrected = map(masses, (tables.target, tables.drafter, tables.residual))

    def ends(row: int, block: Tokens, weight: float) -> Iterator[tuple[Tokens, float]]:
        if len(block) == lookahead:
            yield from (((*block, t), weight * p[row, t]) for t in range(tables.size))
            return
        accepted = weight * q[row] * tables.acceptance[row]
        rejected = weight * (q[row] @ (1 - tables.acceptance[row]))
        assert rejected == 0 or corrected[row].any()
        for token in range(tables.size):
            yield (*block, token), rejected * corrected[row, token]
            yield from ends(token, (*block, token), accepted[token])

    law: dict[Tokens, float] = {}
    for block, weight in ends(tables.size, (), 1.0):
        law[block] = law.get(block, 0) + weight
    return {block: weight for block, weight in law.items() if weight > 0}


def counted(labels: np.ndarray, size: int) -> dict[Tokens, int]:
    """How often each row of labels from -1 to `size` - 1 occurs, without the -1."""
    shape = (size + 1,) * labels.shape[1]
    counts = np.bincount(np.ravel_multi_index(tuple((labels + 1).T), shape))
    codes = np.flatnonzero(counts)
    rows = (np.column_stack(np.unravel_index(codes, shape)) - 1).tolist()
    blocks = (tuple(label for label in row if label >= 0) for row in rows)
    return dict(zip(blocks, counts[codes].tolist(), strict=True))


@pytest.mark.parametrize(("pair", "lookahead"), SCENARIOS)
def test_the_tables_hold_the_law_of_the_reference(pair, lookahead):
    # Each probability is a sum of products of at most 7 branches, each rounded a few times.
    expected = reference_law(pair, lookahead)
    output = law_of(tables_of(pair), lookahead)
    assert output.keys() == expected.keys()
    assert output == pytest.approx({block: float(w) for block, w in expected.items()}, abs=1e-14)


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize(("pair", "lookahead"), SCENARIOS)
def test_the_counts_follow_the_law_of_the_reference(pair, lookahead):
    expected = reference_law(pair, lookahead)
    assert detectable(len(expected)) < 0.02
    simulated = draw_markov(
        tables_of(pair), lookahead, trials=TRIALS, rng=np.random.default_rng(31)
    )
    counts = counted(simulated.blocks, tables_of(pair).size)
    assert counts.keys() <= expected.keys()
    assert not is_rejected(counts, expected)


@pytest.mark.parametrize("pair", PAIRS)
def test_lookahead_0_is_autoregressive_decoding(pair):
    target = PAIRS[pair][0]
    law = exact_distribution(lambda chance: autoregressive.step(target, target, (), 0, chance))
    assert law == reference_law(pair, 0)


WRONG = {
    "no residual": lambda tables: replace(tables, residual=tables.target),
    "bonus from drafter": lambda tables: replace(tables, target=tables.drafter),
    "skipped acceptance": lambda tables: replace(tables, acceptance=tables.acceptance**0),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_twin_is_rejected_by_both_checks(wrong):
    pair, lookahead = "equal rows, disjoint rows", 2
    expected = reference_law(pair, lookahead)
    tables = WRONG[wrong](tables_of(pair))
    assert total_variation(law_of(tables, lookahead), expected) > detectable(len(expected))
    rng = np.random.default_rng(32)
    blocks = draw_markov(tables, lookahead, trials=TRIALS, rng=rng).blocks
    assert is_rejected(counted(blocks, tables.size), expected)


def critical_coins(
    tables: MarkovTables, lookahead: int, rows: int, rng: np.random.Generator
) -> np.ndarray:
    """Half of the coins anywhere in [0, 1), half on a threshold or a bucket, or next to one.

    The last five rows are all there are when V <= 4, and that of the first draft in any case.
    """
    thresholds = (part.thresholds for part in (tables.target, tables.drafter, tables.residual))
    buckets = tables.target.guides.shape[1] - 1
    edges = np.concatenate(
        [
            np.arange(buckets) / buckets,
            *(rows[-5:].ravel() for rows in (*thresholds, tables.acceptance)),
        ]
    )
    near = np.concatenate([np.nextafter(edges, 0), edges, np.nextafter(edges, 1)])
    shape = (rows, len(markov_columns(lookahead)))
    chosen = rng.choice(near[near < 1], shape)
    return np.where(rng.random(shape) < 0.5, chosen, rng.random(shape))


@pytest.mark.parametrize(("pair", "lookahead"), SCENARIOS)
@pytest.mark.parametrize("context", [(), (2,)])
def test_the_same_coins_give_the_block_of_the_tree_of_contexts(pair, lookahead, context):
    arguments = ("standard", *map(as_float, PAIRS[pair]), context, lookahead)
    rng = np.random.default_rng(33)
    coins = critical_coins(tables_of(pair), lookahead, 20_000, rng)
    sites = [markov_columns(lookahead).index(site) for site in tabulate(*arguments).columns]
    tree = simulate(*arguments, trials=len(coins), uniforms=coins[:, sites])
    start = context[-1] if context else None
    rows = draw_markov(tables_of(pair), lookahead, trials=len(coins), uniforms=coins, start=start)
    assert (rows.counts == tree.counts).all()
    longest = tree.blocks.shape[1]
    assert (rows.blocks[:, :longest] == tree.blocks).all()
    assert (rows.blocks[:, longest:] == -1).all()


@cache
def large_rows(key: int) -> np.ndarray:
    """Rows of a kind that language models have: a few likely tokens and a long tail."""
    scores = 2 * np.random.default_rng(key).normal(size=(LARGE + 1, LARGE))
    weights = np.exp(scores)
    weights[:: key + 1, :: key + 2] = 0
    return weights / weights.sum(axis=1, keepdims=True)


@cache
def large_tables() -> MarkovTables:
    return markov_tables(large_rows(1), large_rows(2))


def large_model(key: int) -> Model:
    def next_token(context: Tokens) -> Probabilities:
        return large_rows(key)[context[-1] if context else LARGE]

    return Model(Vocabulary([chr(0x4E00 + token) for token in range(LARGE)]), next_token)


def test_at_a_large_vocabulary_the_same_coins_give_the_block_of_the_reference():
    coins = critical_coins(large_tables(), 4, 100, np.random.default_rng(34))
    coins[:50, 1::2] /= 8  # Longer blocks than the usual acceptance gives.
    twin = draw_markov(large_tables(), 4, trials=100, uniforms=coins, chunk=64)
    target, drafter = large_model(1), large_model(2)
    assert np.bincount(twin.counts).tolist()[0] == 0
    assert (np.bincount(twin.counts)[1:6] > 0).all()
    for row, block, count in zip(coins.tolist(), twin.blocks, twin.counts, strict=True):
        chance = BySite(dict(zip(markov_columns(4), row, strict=True)))
        expected = standard.step(target, drafter, (), 4, chance)
        assert tuple(block[:count].tolist()) == expected
        assert (block[count:] == -1).all()


def features(key: int) -> dict[str, np.ndarray]:
    """Tokens in 16 groups, in ways that tell p from q, likely from rare, and low from high."""
    p, q = large_rows(1)[LARGE], large_rows(2)[LARGE]
    ranks = np.arange(LARGE) * 16 // LARGE
    by_ratio, by_p = np.argsort(np.argsort(p - q)), np.argsort(np.argsort(p))
    scattered = np.random.default_rng(key).permutation(LARGE)
    return {
        "p - q": ranks[by_ratio],
        "p": ranks[by_p],
        "id": ranks,
        "scattered": ranks[scattered],
    }


def grouped(groups: np.ndarray, weights: np.ndarray) -> dict[Tokens, float]:
    totals = np.bincount(groups, weights, minlength=16).tolist()
    return {(group,): total for group, total in enumerate(totals)}


def rejected_features(tables: MarkovTables) -> set[str]:
    rng = np.random.default_rng(35)
    first = draw_markov(tables, 4, trials=TRIALS, rng=rng).blocks[:, 0]
    counts = np.bincount(first, minlength=LARGE)
    p = large_rows(1)[LARGE]
    assert not counts[p == 0].any()
    return {
        name
        for name, groups in features(36).items()
        if is_rejected(grouped(groups, counts), grouped(groups, p))
    }


def test_at_a_large_vocabulary_the_first_token_follows_p():
    assert detectable(16) < 0.01
    assert rejected_features(large_tables()) == set()


def test_at_a_large_vocabulary_a_wrong_twin_is_rejected():
    wrong = replace(large_tables(), residual=large_tables().target)
    p, q = large_rows(1)[LARGE], large_rows(2)[LARGE]
    law = np.minimum(p, q) + (1 - np.minimum(p, q).sum()) * p
    groups = features(36)["p - q"]
    assert total_variation(grouped(groups, law), grouped(groups, p)) > detectable(16)
    assert "p - q" in rejected_features(wrong)


def test_each_trial_may_start_after_a_token_of_its_own():
    pair, lookahead = "equal rows, disjoint rows", 1
    size = tables_of(pair).size
    contexts: list[Tokens] = [*((token,) for token in range(size)), ()]
    expected = {
        (row, *block): weight / len(contexts)
        for row, context in enumerate(contexts)
        for block, weight in reference_law(pair, lookahead, context).items()
    }
    assert detectable(len(expected)) < 0.02
    rng = np.random.default_rng(37)
    start = rng.integers(0, size, TRIALS, endpoint=True)
    blocks = draw_markov(tables_of(pair), lookahead, trials=TRIALS, rng=rng, start=start).blocks
    labels = np.column_stack([start, blocks])
    assert not is_rejected(counted(labels, size + 1), expected)
    shuffled = np.column_stack([rng.permutation(start), blocks])
    assert is_rejected(counted(shuffled, size + 1), expected)


def last_tokens(simulated: Simulation) -> np.ndarray:
    return simulated.blocks[np.arange(len(simulated.counts)), simulated.counts - 1]


def test_a_decoding_loop_starts_after_the_last_tokens():
    pair = "zeros and ties"

    def two_iterations(chance: Chance) -> Tokens:
        first = standard.step(*PAIRS[pair], (), 1, chance)
        return (*first, *standard.step(*PAIRS[pair], first, 1, chance))

    expected = exact_distribution(two_iterations)
    assert detectable(len(expected)) < 0.02
    rng, tables = np.random.default_rng(38), tables_of(pair)
    first = draw_markov(tables, 1, trials=TRIALS, rng=rng)
    second = draw_markov(tables, 1, trials=TRIALS, rng=rng, start=last_tokens(first))
    counts = counted(np.column_stack([first.blocks, second.blocks]), tables.size)
    restarted = draw_markov(tables, 1, trials=TRIALS, rng=rng)
    forgetful = counted(np.column_stack([first.blocks, restarted.blocks]), tables.size)
    assert not is_rejected(counts, expected)
    assert is_rejected(forgetful, expected)


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=40).filter(any),
    st.sampled_from([0.0, 1.0, 4.0]),
    st.floats(0, BELOW_ONE),
)
def test_a_guided_draw_is_that_of_sampled(weights, steepness, uniform):
    # Steep rows put many thresholds into one bucket, and leave others empty.
    steep = np.array(weights) * np.exp(-steepness * np.arange(len(weights)))
    rows = compiled_rows(np.array([np.ones_like(steep), steep]))
    buckets = rows.guides.shape[1] - 1
    edges = np.append(rows.thresholds[1], np.arange(buckets) / buckets)
    near = np.concatenate([np.nextafter(edges, 0), edges, np.nextafter(edges, 1)])
    uniforms = np.append(near[near < 1], [uniform, BELOW_ONE])
    tokens = rows.draw(np.ones(len(uniforms), dtype=np.intp), uniforms)
    assert tokens.tolist() == [
        Sampled(Column(u)).choose(steep, "draft[0]") for u in uniforms.tolist()
    ]


def test_simulating_from_matrices_is_drawing_from_their_tables():
    p, q = map(matrix, PAIRS["zeros and ties"])
    one = simulate_markov(p, q, 2, trials=999, rng=np.random.default_rng(39), start=1, chunk=50)
    two = draw_markov(
        markov_tables(p, q), 2, trials=999, rng=np.random.default_rng(39), start=1, chunk=50
    )
    assert (one.blocks == two.blocks).all()
    assert (one.counts == (one.blocks >= 0).sum(axis=1)).all()
    other = simulate_markov(p, q, 2, trials=999, rng=np.random.default_rng(40), start=1)
    assert (one.blocks != other.blocks).any()


def test_with_given_uniforms_the_chunk_size_does_not_matter():
    tables = tables_of("zeros and ties")
    rng = np.random.default_rng(41)
    uniforms, start = rng.random((1000, 8)), rng.integers(0, 5, 1000)
    by_chunk = [
        draw_markov(tables, 3, trials=1000, uniforms=uniforms, start=start, chunk=chunk)
        for chunk in (1, 7, 1000, 5000)
    ]
    assert all((one.blocks == by_chunk[0].blocks).all() for one in by_chunk)
    assert all((one.counts == by_chunk[0].counts).all() for one in by_chunk)


def test_tables_are_numbers_that_can_be_sent():
    tables = tables_of("zeros and ties")
    copy = pickle.loads(pickle.dumps(tables))
    one, two = (
        draw_markov(each, 3, trials=500, rng=np.random.default_rng(42)) for each in (tables, copy)
    )
    assert (one.blocks == two.blocks).all()


def test_tables_take_memory_of_v_squared():
    p, q = large_rows(1), large_rows(2)
    tracemalloc.start()
    markov_tables(p, q)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * p.nbytes


def test_a_walk_holds_one_chunk_beside_its_result():
    tables, trials = large_tables(), 16 * CHUNK
    tracemalloc.start()
    draw_markov(tables, 4, trials=trials, rng=np.random.default_rng(43))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    result = trials * (5 + 1) * 8
    starts = trials * 8
    assert peak < result + starts + 32 * CHUNK * 8


def test_no_trials_give_no_blocks():
    simulated = draw_markov(
        tables_of("three tokens"), 3, trials=0, rng=np.random.default_rng(1), start=[]
    )
    assert simulated.blocks.shape == (0, 4)
    assert simulated.counts.shape == (0,)


def test_a_vocabulary_of_one_token():
    simulated = simulate_markov([[1], [1]], [[1], [1]], 2, trials=3, rng=np.random.default_rng(1))
    assert simulated.blocks.tolist() == [[0, 0, 0]] * 3


def test_after_a_rejection_by_rounding_alone_the_token_is_drawn_from_p():
    p = np.array([[0.1, 0.9]] * 3)
    q = np.nextafter(p, 1)
    assert (q > p).all()
    rng = np.random.default_rng(44)
    assert simulate_markov(p, q, 1, trials=10**5, rng=rng).blocks.min() == 0
    unlucky = [[0.0, BELOW_ONE, 0.0, 0.0]]
    assert simulate_markov(p, q, 1, trials=1, uniforms=unlucky).blocks.tolist() == [[0, -1]]


HALVES = [[0.5, 0.5]] * 3


@pytest.mark.parametrize("name", ["p", "q"])
@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ([[0.5, 0.5]] * 2, ValueError, r" has shape \(2, 2\): expected \(V \+ 1, V\)"),
        ([0.5, 0.5], ValueError, r" has shape \(2,\): expected \(V \+ 1, V\)"),
        (np.empty((1, 0)), ValueError, r" has shape \(1, 0\): expected \(V \+ 1, V\) with V >="),
        ([[0.5, 0.5], [0.5, 0.4], [0, 1]], ValueError, r"\[1\] sums to 0.9: expected 1"),
        ([[0.5, 0.5], [0.5, 0.5], [1.5, -0.5]], ValueError, r"\[2, 1\] = -0.5: expected a non-"),
        ([[0.5, 0.5], [0.5, math.nan], [0, 1]], ValueError, r"\[1, 1\] = nan: expected a non-"),
        ([[0.5, 0.5], [0.5, math.inf], [0, 1]], ValueError, r"\[1\] sums to inf: expected 1"),
        ([["1/2", "1/2"]] * 3, TypeError, " has dtype <U3: expected floats"),
        ([[True, False]] * 3, TypeError, " has dtype bool: expected floats"),
    ],
)
def test_wrong_rows_are_named(name, wrong, error, message):
    with pytest.raises(error, match=f"^{name}{message}"):
        markov_tables(**({"p": HALVES, "q": HALVES} | {name: wrong}))


def test_p_and_q_are_over_the_same_tokens():
    with pytest.raises(ValueError, match=r"q has shape \(4, 3\): expected that of p, \(3, 2\)"):
        markov_tables(HALVES, [[1, 0, 0]] * 4)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"lookahead": -1}, ValueError, "lookahead = -1: expected an integer >= 0"),
        ({"lookahead": 1.0}, ValueError, "lookahead = 1.0: expected an integer >= 0"),
        ({"trials": -1}, ValueError, "trials = -1: expected an integer >= 0"),
        ({"trials": 1.5}, ValueError, "trials = 1.5: expected an integer >= 0"),
        ({"chunk": 0}, ValueError, "chunk = 0: expected an integer >= 1"),
        ({"start": 3}, ValueError, r"start\[0\] = 3: expected a row, 0 to V = 2"),
        ({"start": [0, -1]}, ValueError, r"start\[1\] = -1: expected a row, 0 to V = 2"),
        ({"start": [0, 1, 2]}, ValueError, r"shape \(3,\): expected \(\) or \(trials,\) = \(2,"),
        ({"start": 0.0}, TypeError, "start has dtype float64: expected integers"),
        ({"start": [True, False]}, TypeError, "start has dtype bool: expected integers"),
        ({"rng": None}, TypeError, "either rng or uniforms"),
        ({"uniforms": np.zeros((2, 4))}, TypeError, "not both"),
        (
            {"rng": None, "uniforms": np.zeros((2, 3))},
            ValueError,
            r"shape \(2, 3\): expected \(trials, sites\) = \(2, 4\)",
        ),
        (
            {"rng": None, "uniforms": [[0, 0, 0, 0], [0, 0, 1.0, 0]]},
            ValueError,
            r"uniforms\[1, 2\] = 1.0: expected a number in \[0, 1\)",
        ),
    ],
)
def test_wrong_arguments_are_named(changes, error, message):
    usual = {"lookahead": 1, "trials": 2, "rng": np.random.default_rng(1)}
    with pytest.raises(error, match=message):
        draw_markov(markov_tables(HALVES, HALVES), **(usual | changes))
