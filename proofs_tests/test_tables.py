"""Blocks by the million: the law of the step, and its own block for the same numbers."""

import math
import pickle
import tracemalloc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specref import Model, Vocabulary, exact_distribution
from specref.algorithms import standard
from specref.chance import Chance, OutsideChanceError, Sampled, TooManyPathsError
from specref.distributions import Probabilities, Probability, corrected, total_variation
from specref.models import hashed_model, iid_model
from specref.rules import RULES
from specref.tables import (
    CHUNK,
    Tables,
    count_blocks,
    draw_blocks,
    inverse_cdf,
    simulate,
    tabulate,
)
from specref.vocabulary import Tokens

ALPHA, TRIALS, ROWS = 1e-9, 1_000_000, 200
BELOW_ONE = math.nextafter(1, 0)


def softmax_model(vocabulary: Vocabulary, key: int) -> Model:
    def next_token(context: Tokens) -> Probabilities:
        scores = np.exp(
            np.random.default_rng([key, len(context), *context]).normal(size=len(vocabulary))
        )
        row: Probabilities = scores / scores.sum()
        return row

    return Model(vocabulary, next_token)


ABC, ABCD = Vocabulary("abc"), Vocabulary("abcd")
ENDING = Vocabulary("abc", eos="c")
WORDS, LETTERS = Vocabulary(["a", "b", "ab"]), Vocabulary(["b", "ba", "a"])
PROSE, MARKED = Vocabulary(["a", "ab", "b", "$"], eos="$"), Vocabulary(["$", "b", "a"], eos="$")
STARS = Vocabulary(["b", "c", "*"])
PAIRS = {
    "zeros and ties": (hashed_model(ABCD, "p"), hashed_model(ABCD, "q"), (2, 0)),
    "small": (hashed_model(ABC, "p"), hashed_model(ABC, "q"), ()),
    "eos": (hashed_model(ENDING, "p"), hashed_model(ENDING, "t"), ()),
    "eos of the target": (hashed_model(ENDING, "p"), hashed_model(ABC, "r"), ()),
    "eos of the drafter": (hashed_model(ABC, "p"), hashed_model(ENDING, "s"), (2,)),
    "disjoint supports": (
        iid_model(ABCD, ["1/3", "2/3", 0, 0]),
        iid_model(ABCD, [0, 0, "1/4", "3/4"]),
        (),
    ),
    "equal models": (hashed_model(ABC, "p"), hashed_model(ABC, "p"), (1,)),
    "floats": (softmax_model(ABC, 1), softmax_model(ABC, 2), (0,)),
    "longer words": (hashed_model(WORDS, "p"), hashed_model(LETTERS, "r"), (2, 0)),
    "eos in both": (hashed_model(PROSE, "p"), hashed_model(MARKED, "v"), (1,)),
    "a token outside": (hashed_model(ABC, "p"), hashed_model(STARS, "q"), (1,)),
    "no shared mass": (hashed_model(ABC, "p"), iid_model(STARS, [0, 0, 1]), ()),
}
ONE_VOCABULARY = tuple(PAIRS)[:8]
BY_TEXT = ("longer words", "eos in both")
PAIRS_OF = {
    "autoregressive": ("zeros and ties", "eos", "floats"),
    "standard": ONE_VOCABULARY,
    "block": ONE_VOCABULARY,
    "union": tuple(PAIRS),
    "tli": tuple(PAIRS),
    "slem": (*ONE_VOCABULARY, *BY_TEXT),
    "slrs": (*ONE_VOCABULARY, *BY_TEXT),
    "greedy-block": ("eos", "floats"),
    "block-slrs": BY_TEXT,
    "lazy-slrs": BY_TEXT,
    "path-slrs": BY_TEXT[:1],
}
OTHERS = [name for name in RULES if name not in PAIRS_OF]
SLOW = ("topdown", "traversal")


@dataclass(frozen=True)
class Scenario:
    rule: str
    pair: str
    lookahead: int

    @property
    def arguments(self) -> tuple[str, Model, Model, Tokens, int]:
        return (self.rule, *PAIRS[self.pair], self.lookahead)

    def step(self, chance: Chance) -> Tokens:
        return RULES[self.rule].step(*PAIRS[self.pair], self.lookahead, chance)

    def __str__(self) -> str:
        return f"{self.rule}, {self.pair}, {self.lookahead}"


SCENARIOS = [
    *(
        Scenario(rule, pair, lookahead)
        for rule, pairs in PAIRS_OF.items()
        for pair in pairs
        for lookahead in ((0, 1, 2, 3) if rule in tuple(PAIRS_OF)[1:7] else (2,))
    ),
    *(Scenario(rule, "small", 1 if rule in SLOW else 2) for rule in OTHERS),
]
SAMPLED = [Scenario(rule, pairs[0], 2) for rule, pairs in PAIRS_OF.items()]
SCENARIO = Scenario("union", "eos in both", 3)


@cache
def reference_law(scenario: Scenario) -> dict[Tokens, Probability]:
    return exact_distribution(scenario.step)


@cache
def tables_of(scenario: Scenario) -> Tables:
    return tabulate(*scenario.arguments)


def law_of(tables: Tables) -> dict[Tokens, float]:
    """Push probability 1 through the tables: what a uniform does there, in floats."""
    law = np.zeros(len(tables.outcomes))
    mass = np.ones(1)
    for level in tables.levels:
        flow = mass[:, None] * np.diff(np.minimum(level.thresholds, 1), axis=1, prepend=0)
        after = level.after[flow > 0]
        mass = np.zeros(max(after.max() + 1, 0))
        np.add.at(mass, after[after >= 0], flow[flow > 0][after >= 0])
        np.add.at(law, ~after[after < 0], flow[flow > 0][after < 0])
    if not tables.levels:
        law[0] = 1
    return dict(zip(tables.outcomes, law.tolist(), strict=True))


@pytest.mark.deep(one_in=16)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_the_tables_hold_the_law_of_the_step(scenario: Scenario) -> None:
    # Each probability is a sum of products of a few branches, each rounded a few times near 1.
    expected = reference_law(scenario)
    output = law_of(tables_of(scenario))
    assert output.keys() == expected.keys()
    assert output == pytest.approx({block: float(w) for block, w in expected.items()}, abs=1e-13)


def critical_uniforms(tables: Tables, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Half of the numbers anywhere in [0, 1), half on a threshold or next to it."""
    uniforms = rng.random((rows, len(tables.levels)))
    for column, level in enumerate(tables.levels):
        edges = np.append(level.thresholds[level.thresholds < 1], [0.0, BELOW_ONE])
        near = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, 1)])
        chosen = rng.choice(near[near < 1], rows)
        uniforms[:, column] = np.where(rng.random(rows) < 0.5, chosen, uniforms[:, column])
    return uniforms


@dataclass
class Given:
    """Numbers in their order."""

    numbers: Iterator[float]

    def random(self) -> float:
        return next(self.numbers)


@pytest.mark.deep(one_in=16)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_the_same_numbers_give_the_block_of_the_step(scenario: Scenario) -> None:
    uniforms = critical_uniforms(tables_of(scenario), ROWS, np.random.default_rng(20))
    found = simulate(*scenario.arguments, trials=ROWS, uniforms=uniforms, chunk=64)
    for row, block, count in zip(uniforms.tolist(), found.blocks, found.counts, strict=True):
        assert tuple(block[:count].tolist()) == scenario.step(Sampled(Given(iter(row))))
        assert (block[count:] == -1).all()


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any),
    st.integers(1, 1000),
    st.floats(0, BELOW_ONE),
)
def test_a_number_passes_the_tokens_that_it_passes_in_sampled(
    weights: list[int], divisor: int, uniform: float
) -> None:
    # Totals far from 1 round most often; drawn from are only totals within 1e-9 of it.
    scaled = np.array(weights) / divisor
    thresholds = inverse_cdf(scaled)
    near = np.concatenate([np.nextafter(thresholds, 0), thresholds, np.nextafter(thresholds, 1)])
    for u in (uniform, BELOW_ONE, *near[near < 1].tolist()):
        drawn = Sampled(Given(iter([u]))).choose(scaled.tolist(), "draft[0]")
        assert np.count_nonzero(thresholds <= u) == drawn


def is_rejected(counts: Mapping[Tokens, int], law: Mapping[Tokens, Probability]) -> bool:
    """Whether TV_hat exceeds what it exceeds with probability at most ALPHA, whatever the law.

    E TV_hat <= sqrt((k - 1) / n) / 2 by Cauchy-Schwarz; one trial moves TV_hat by at most 1/n,
    so McDiarmid's inequality bounds the excess by sqrt(ln(1 / ALPHA) / 2n).
    """
    trials = sum(counts.values())
    excess = math.sqrt(-math.log(ALPHA) / (2 * trials))
    shares = {block: count / trials for block, count in counts.items()}
    return total_variation(shares, law) > 0.5 * math.sqrt((len(law) - 1) / trials) + excess


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("scenario", SAMPLED, ids=str)
def test_the_counts_follow_the_law_of_the_step(scenario: Scenario) -> None:
    counts = count_blocks(tables_of(scenario), TRIALS, np.random.default_rng(21))
    assert counts.keys() <= reference_law(scenario).keys()
    assert not is_rejected(counts, reference_law(scenario))


def drafter_for_bonus(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    """A rule of somebody's own, in which the bonus token is from the drafter."""
    kept: Tokens = ()
    for i in range(lookahead):
        p, q = (model.next_token((*context, *kept)) for model in (target, drafter))
        token = chance.draw(q, f"draft[{i}]")
        if not chance.accept(min(1, p[token] / q[token]), f"accept[{i}]"):
            return (*kept, chance.draw(corrected(p, q), "residual"))
        kept = (*kept, token)
    return (*kept, chance.draw(drafter.next_token((*context, *kept)), "bonus"))


def test_a_step_of_ones_own_is_simulated_wrong_or_not() -> None:
    pair = (*PAIRS["zeros and ties"], 2)
    tables = tabulate(drafter_for_bonus, *pair)
    own = exact_distribution(lambda chance: drafter_for_bonus(*pair, chance))
    counts = count_blocks(tables, TRIALS, np.random.default_rng(22))
    assert not is_rejected(counts, own)
    assert is_rejected(counts, exact_distribution(lambda c: standard.step(*pair, c)))


def test_what_is_simulated_is_what_is_counted() -> None:
    tables = tables_of(SCENARIO)
    simulated = simulate(*SCENARIO.arguments, trials=40_000, rng=np.random.default_rng(3))
    drawn = draw_blocks(tables, 40_000, np.random.default_rng(3))
    assert (drawn.blocks == simulated.blocks).all()
    counted = count_blocks(tables, 40_000, np.random.default_rng(3))
    blocks, counts = np.unique(simulated.blocks, axis=0, return_counts=True)
    tuples = [tuple(token for token in block if token >= 0) for block in blocks.tolist()]
    assert dict(zip(tuples, counts.tolist(), strict=True)) == counted
    assert list(counted) == sorted(counted)
    assert (simulated.counts == (simulated.blocks >= 0).sum(axis=1)).all()


def test_with_given_numbers_the_chunk_size_does_not_matter() -> None:
    uniforms = np.random.default_rng(5).random((1000, len(tables_of(SCENARIO).levels)))
    by_chunk = [
        simulate(*SCENARIO.arguments, trials=1000, uniforms=uniforms, chunk=chunk).blocks
        for chunk in (1, 7, 1000, 5000)
    ]
    assert all((blocks == by_chunk[0]).all() for blocks in by_chunk)


def peak_memory(trials: int) -> int:
    tracemalloc.start()
    count_blocks(tables_of(SCENARIO), trials, np.random.default_rng(6))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_counting_does_not_hold_the_trials() -> None:
    few = peak_memory(4 * CHUNK)
    assert peak_memory(64 * CHUNK) < few + 32 * CHUNK


def test_tables_are_numbers_that_can_be_sent() -> None:
    assert law_of(pickle.loads(pickle.dumps(tables_of(SCENARIO)))) == law_of(tables_of(SCENARIO))


def test_no_trials_give_no_blocks() -> None:
    simulated = simulate(*SCENARIO.arguments, trials=0, rng=np.random.default_rng(1))
    assert simulated.blocks.shape == (0, 4)
    assert simulated.counts.shape == (0,)


def test_a_step_without_decisions_gives_its_block() -> None:
    certain = iid_model(Vocabulary("a"), [1])
    found = simulate(lambda *_: (0, 0), certain, certain, trials=3, uniforms=np.empty((3, 0)))
    assert found.blocks.tolist() == [[0, 0]] * 3


PAIR = PAIRS["small"][:2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trials": -1}, "trials = -1: expected an integer >= 0"),
        ({"trials": 1.5}, "trials = 1.5: expected an integer >= 0"),
        ({"chunk": 0}, "chunk = 0: expected an integer >= 1"),
        ({"step": "medusa"}, "algorithm = 'medusa': expected one of autoregressive, stan"),
        ({"lookahead": -1}, "lookahead = -1"),
        ({"context": (3,)}, r"context\[0\] = 3"),
        ({"drafter": hashed_model(STARS, "q")}, "vocabular"),
    ],
)
def test_wrong_arguments_are_named(changes: dict[str, Any], message: str) -> None:
    usual: dict[str, Any] = {
        "step": "standard",
        "target": PAIR[0],
        "drafter": PAIR[1],
        "trials": 5,
    }
    with pytest.raises(ValueError, match=message):
        simulate(**(usual | {"rng": np.random.default_rng(1)} | changes))


@pytest.mark.parametrize(
    ("uniforms", "message"),
    [
        (np.zeros((3, 3)), r"shape \(3, 3\): expected \(trials, decisions\) = \(2, 3\)"),
        (np.zeros(3), r"shape \(3,\): expected \(trials, decisions\) = \(2, 3\)"),
        ([[0, 0, 0], [0, 0, 1.0]], r"uniforms\[1, 2\] = 1.0: expected a number in \[0, 1\)"),
        ([[0, 0, 0], [0, -0.5, 0]], r"uniforms\[1, 1\] = -0.5"),
        ([[0, 0, np.nan], [0, 0, 0]], r"uniforms\[0, 2\] = nan"),
    ],
)
def test_wrong_numbers_are_named(uniforms: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simulate("standard", *PAIR, trials=2, uniforms=uniforms)


def test_numbers_come_from_one_source() -> None:
    with pytest.raises(TypeError, match="either rng or uniforms"):
        simulate("standard", *PAIR, trials=1)
    with pytest.raises(TypeError, match="not both"):
        simulate(
            "standard", *PAIR, trials=1, rng=np.random.default_rng(1), uniforms=np.zeros((1, 3))
        )


def test_a_step_that_is_no_function_of_its_chance_is_refused() -> None:
    calls = iter(range(10**6))

    def counting(target: Model, drafter: Model, context: Tokens, _: int, chance: Chance) -> Tokens:
        return (chance.draw(target.next_token(context), "target[0]") * 0 + next(calls) % 2,)

    def choosing(target: Model, drafter: Model, context: Tokens, _: int, chance: Chance) -> Tokens:
        return (chance.choose((0.5, 0.5), "target[0]"),)

    with pytest.raises(OutsideChanceError, match="no function of chance"):
        tabulate(counting, *PAIR)
    with pytest.raises(OutsideChanceError, match=r"chance\.choose: expected draw or accept"):
        tabulate(choosing, *PAIR)


def test_an_iteration_with_too_many_paths_says_so() -> None:
    with pytest.raises(TooManyPathsError, match="more than max_paths = 10 random paths"):
        tabulate("standard", *PAIR, (), 3, limit=10)


def test_after_a_rejection_by_rounding_alone_the_token_is_drawn_from_p() -> None:
    p = np.array([0.1, 0.9])
    rounded = iid_model(Vocabulary("ab"), p), iid_model(Vocabulary("ab"), np.nextafter(p, 1))
    assert (np.diff([p, np.nextafter(p, 1)], axis=0) > 0).all()
    counts = count_blocks(tabulate("standard", *rounded), 10**5, np.random.default_rng(8))
    assert sum(counts.values()) == 10**5
    unlucky = [[0.0, BELOW_ONE, 0.0]]
    assert simulate("standard", *rounded, trials=1, uniforms=unlucky).blocks.tolist() == [[0, -1]]
