"""The NumPy twin: the same law as the reference, and the same block from the same coins."""

import pickle
import tracemalloc
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import specref.machines
import specref.simulate
from proofs_tests.helpers.imports import imports
from proofs_tests.helpers.twins import BELOW_ONE, TRIALS, BySite, Column, detectable, is_rejected
from specref import Model, Vocabulary, exact_distribution
from specref.chance import Chance, Sampled
from specref.distributions import Probabilities, Probability, corrected, total_variation
from specref.machines.block import BlockVerification
from specref.machines.machines import Standard
from specref.machines.states import Branches, State, drawn, inverse_cdf
from specref.models import hashed_model, iid_model
from specref.rules import RULES
from specref.simulate import (
    CHUNK,
    Tables,
    count_blocks,
    simulate,
    simulate_counts,
    tabulate,
    tally,
)
from specref.simulate.tables import compiled
from specref.vocabulary import Tokens

ROWS = 200


def softmax_model(vocabulary: Vocabulary, key: int) -> Model:
    def next_token(context: Tokens) -> Probabilities:
        scores = np.exp(
            np.random.default_rng([key, len(context), *context]).normal(size=len(vocabulary))
        )
        return scores / scores.sum()

    return Model(vocabulary, next_token)


ABC, ABCD = Vocabulary("abc"), Vocabulary("abcd")
ENDING = Vocabulary("abc", eos="c")
WORDS, LETTERS = Vocabulary(["a", "b", "ab"]), Vocabulary(["b", "ba", "a"])
PROSE, MARKED = Vocabulary(["a", "ab", "b", "$"], eos="$"), Vocabulary(["$", "b", "a"], eos="$")
STARS = Vocabulary(["b", "c", "*"])

SAME_VOCABULARY = {
    "zeros and ties": (hashed_model(ABCD, "p"), hashed_model(ABCD, "q"), (2, 0)),
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
}
SPELLABLE = {
    "longer words": (hashed_model(WORDS, "p"), hashed_model(LETTERS, "r"), (2, 0)),
    "eos in both": (hashed_model(PROSE, "p"), hashed_model(MARKED, "v"), (1,)),
    "nothing shared": (
        hashed_model(Vocabulary("ab"), "p"),
        hashed_model(Vocabulary(["aa", "ab", "bb"]), "q"),
        (),
    ),
}
UNSPELLABLE = {
    "a token outside": (hashed_model(ABC, "p"), hashed_model(STARS, "q"), (1,)),
    "an unreadable context": (hashed_model(ABC, "p"), hashed_model(STARS, "q"), (0,)),
    "no shared mass": (hashed_model(ABC, "p"), iid_model(STARS, [0, 0, 1]), ()),
}
PAIRS = SAME_VOCABULARY | SPELLABLE | UNSPELLABLE
PAIRS_OF = {
    "autoregressive": SAME_VOCABULARY,
    "standard": SAME_VOCABULARY,
    "union": PAIRS,
    "tli": PAIRS,
    "slem": SAME_VOCABULARY | SPELLABLE,
    "slrs": SAME_VOCABULARY | SPELLABLE,
    "block": SAME_VOCABULARY,
}


@dataclass(frozen=True)
class Scenario:
    algorithm: str
    pair: str
    lookahead: int

    @property
    def arguments(self) -> tuple[str, Model, Model, Tokens, int]:
        return (self.algorithm, *PAIRS[self.pair], self.lookahead)

    def step(self, chance: Chance) -> Tokens:
        return RULES[self.algorithm].step(*PAIRS[self.pair], self.lookahead, chance)

    def __str__(self) -> str:
        return f"{self.algorithm}, {self.pair}, {self.lookahead}"


SCENARIOS = [
    Scenario(algorithm, pair, lookahead)
    for algorithm, pairs in PAIRS_OF.items()
    for pair in pairs
    for lookahead in range(4 if algorithm != "autoregressive" else 1)
]
TWINS = [name for name, rule in RULES.items() if rule.machine]
SAMPLED_SCENARIOS = [
    *(Scenario(name, "zeros and ties", 3) for name in TWINS),
    *(Scenario(name, "eos", 2) for name in TWINS),
    *(Scenario(name, "disjoint supports", 1) for name in ("standard", "tli", "slem", "slrs")),
    *(Scenario(name, "eos in both", 3) for name in ("union", "tli", "slem", "slrs")),
    *(Scenario(name, "longer words", 2) for name in ("union", "tli", "slem", "slrs")),
    *(Scenario(name, "a token outside", 3) for name in ("union", "tli")),
    *(Scenario(name, "zeros and ties", 0) for name in ("standard", "slrs")),
]


@cache
def reference_law(scenario: Scenario) -> dict[Tokens, Probability]:
    return exact_distribution(scenario.step)


@cache
def tables_of(scenario: Scenario) -> Tables:
    return tabulate(*scenario.arguments)


def law_of(tables: Tables) -> dict[Tokens, float]:
    """Push probability 1 through the tables: what a uniform does there, in floats."""
    mass = np.zeros(tables.sites[-1].beyond + len(tables.blocks))
    mass[0] = 1
    for site in tables.sites:
        chances = np.diff(np.minimum(site.thresholds, 1), axis=1, prepend=0)
        flow = mass[site.first : site.beyond, None] * chances
        assert not flow[site.successors < 0].any()
        np.add.at(mass, site.successors[site.successors >= 0], flow[site.successors >= 0])
    blocks = mass[tables.sites[-1].beyond :].tolist()
    return dict(zip(tables.outcomes, blocks, strict=True))


@pytest.mark.deep(one_in=16)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_the_tables_hold_the_law_of_the_reference(scenario):
    # Each probability is a product of at most 7 branches, each rounded a few times near 1.
    expected = reference_law(scenario)
    output = law_of(tables_of(scenario))
    assert output.keys() == expected.keys()
    assert output == pytest.approx({block: float(w) for block, w in expected.items()}, abs=1e-14)


def critical_uniforms(tables: Tables, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Half of the coins anywhere in [0, 1), half on a threshold of their site or next to it."""
    uniforms = rng.random((rows, len(tables.sites)))
    for column, site in enumerate(tables.sites):
        edges = np.append(site.thresholds[site.thresholds < 1], [0.0, BELOW_ONE])
        near = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, 1)])
        chosen = rng.choice(near[near < 1], rows)
        uniforms[:, column] = np.where(rng.random(rows) < 0.5, chosen, uniforms[:, column])
    return uniforms


@pytest.mark.deep(one_in=16)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_the_same_coins_give_the_same_block(scenario):
    tables = tables_of(scenario)
    uniforms = critical_uniforms(tables, ROWS, np.random.default_rng(20))
    twin = simulate(*scenario.arguments, trials=ROWS, uniforms=uniforms, chunk=64)
    for row, block, count in zip(uniforms.tolist(), twin.blocks, twin.counts, strict=True):
        expected = scenario.step(BySite(dict(zip(tables.columns, row, strict=True))))
        assert tuple(block[:count].tolist()) == expected
        assert (block[count:] == -1).all()


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any),
    st.integers(1, 1000),
    st.floats(0, BELOW_ONE),
)
def test_a_uniform_passes_the_tokens_that_it_passes_in_sampled(weights, divisor, uniform):
    # Totals far from 1 round most often; drawn from are only totals within 1e-9 of it.
    scaled = np.array(weights) / divisor
    thresholds = inverse_cdf(scaled)
    near = np.concatenate([np.nextafter(thresholds, 0), thresholds, np.nextafter(thresholds, 1)])
    for u in (uniform, BELOW_ONE, *near[near < 1].tolist()):
        assert np.count_nonzero(thresholds <= u) == Sampled(Column(u)).choose(scaled, "draft[0]")


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("scenario", SAMPLED_SCENARIOS, ids=str)
def test_the_counts_follow_the_law_of_the_reference(scenario):
    expected = reference_law(scenario)
    assert detectable(len(expected)) < 0.02
    counts = count_blocks(*scenario.arguments, trials=TRIALS, rng=np.random.default_rng(21))
    assert counts.keys() <= expected.keys()
    assert not is_rejected(counts, expected)


class BonusFromDrafter(Standard):
    def at_bonus(self, state: State) -> Branches:
        return self.last(state.kept, self.drafters_law(state.kept))


class NoResidual(Standard):
    def at_residual(self, state: State) -> Branches:
        return self.last(state.kept, self.p(state.kept))


class SkippedAcceptance(Standard):
    def at_draft(self, state: State) -> Branches:
        return drawn(self.law(state.kept), lambda token: self.go_on((*state.kept, token), ()))


class TokenwiseResidual(BlockVerification):
    def at_residual(self, state: State) -> Branches:
        return self.last(state.kept, corrected(self.p(state.kept), self.q(state.kept)))


class StopsAsAfterAllDrafts(BlockVerification):
    def stopping(self, drafts: Tokens) -> Probability:
        return self.survival(drafts)


@pytest.mark.parametrize(
    ("wrong", "algorithm", "lookahead"),
    [
        (BonusFromDrafter, "standard", 2),
        (NoResidual, "standard", 2),
        (SkippedAcceptance, "standard", 2),
        (StopsAsAfterAllDrafts, "block", 3),
        (Standard, "block", 3),
    ],
)
def test_a_wrong_twin_is_rejected_by_both_checks(wrong, algorithm, lookahead):
    scenario = Scenario(algorithm, "zeros and ties", lookahead)
    expected = reference_law(scenario)
    tables = compiled(wrong(*scenario.arguments[1:]))
    assert total_variation(law_of(tables), expected) > detectable(len(expected))
    assert is_rejected(tally(tables, TRIALS, np.random.default_rng(22)), expected)


def test_a_twin_that_is_wrong_by_little_is_rejected_by_its_tables():
    scenario = Scenario("block", "eos", 3)
    tables = compiled(TokenwiseResidual(*scenario.arguments[1:]))
    assert total_variation(law_of(tables), reference_law(scenario)) > 0.006


SCENARIO = Scenario("union", "eos in both", 3)


def test_what_is_simulated_is_what_is_counted():
    simulated = simulate(*SCENARIO.arguments, trials=40_000, rng=np.random.default_rng(3))
    counted = count_blocks(*SCENARIO.arguments, trials=40_000, rng=np.random.default_rng(3))
    blocks, counts = np.unique(simulated.blocks, axis=0, return_counts=True)
    tuples = [tuple(token for token in block if token >= 0) for block in blocks.tolist()]
    assert dict(zip(tuples, counts.tolist(), strict=True)) == counted
    assert list(counted) == sorted(counted)
    assert (simulated.counts == (simulated.blocks >= 0).sum(axis=1)).all()


def test_eos_ends_a_block():
    eos = PROSE.ids["$"]
    ended = 0
    for block in count_blocks(*SCENARIO.arguments, trials=50_000, rng=np.random.default_rng(4)):
        assert eos not in block[:-1]
        ended += block[-1] == eos and len(block) <= SCENARIO.lookahead
    assert ended > 0


def test_with_given_uniforms_the_chunk_size_does_not_matter():
    uniforms = np.random.default_rng(5).random((1000, len(tables_of(SCENARIO).sites)))
    by_chunk = [
        simulate(*SCENARIO.arguments, trials=1000, uniforms=uniforms, chunk=chunk).blocks
        for chunk in (1, 7, 1000, 5000)
    ]
    assert all((blocks == by_chunk[0]).all() for blocks in by_chunk)


def peak_memory(trials: int) -> int:
    tracemalloc.start()
    count_blocks(*SCENARIO.arguments, trials=trials, rng=np.random.default_rng(6))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_counting_does_not_hold_the_trials():
    few = peak_memory(4 * CHUNK)
    assert peak_memory(64 * CHUNK) < few + 32 * CHUNK


def counts_with(executor: Executor | None, seed: int) -> dict[Tokens, int]:
    return simulate_counts(
        *SCENARIO.arguments, trials=45_000, seed=seed, executor=executor, batch=10_000
    )


def test_the_number_of_workers_does_not_matter():
    alone = counts_with(None, 7)
    assert sum(alone.values()) == 45_000
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        assert counts_with(processes, 7) == alone
    for workers in (1, 3):
        with ThreadPoolExecutor(workers) as threads:
            assert counts_with(threads, 7) == alone


def test_another_seed_gives_other_counts():
    assert counts_with(None, 7) != counts_with(None, 8)


def test_batches_are_independent_of_each_other():
    one, two = (
        simulate_counts(*SCENARIO.arguments, trials=trials, seed=7, batch=10_000)
        for trials in (10_000, 20_000)
    )
    assert {block: count - one.get(block, 0) for block, count in two.items()} != one


def test_tables_are_numbers_that_can_be_sent():
    tables = tables_of(SCENARIO)
    copy = pickle.loads(pickle.dumps(tables))
    assert law_of(copy) == law_of(tables)


RULES_OF_THE_TWIN = ["autoregressive", "standard", "union", "tli", "slem", "slrs", "block"]
TAKEN_FROM_RULES = {
    "specref.algorithms.lookahead",
    "specref.algorithms.lookahead.fixed",
    "specref.algorithms.lookahead.positions",
    "specref.algorithms.text.push_forward",
    "specref.algorithms.text.push_forward.conditional_psi",
}


def test_the_twin_is_of_seven_rules_and_shares_two_of_their_modules():
    assert TWINS == RULES_OF_THE_TWIN
    rooms = [Path(room.__file__).parent for room in (specref.machines, specref.simulate)]
    named = {file: set(imports(file)) for room in rooms for file in room.rglob("*.py")}
    names = set().union(*named.values())
    assert {name for name in names if name.startswith("specref.algorithms")} == TAKEN_FROM_RULES
    assert not {name for name in names if name.startswith("specref.theory")}
    # The machine of a rule is looked up in the table, which is nothing else to the twin.
    looking = {file.name: own for file, own in named.items() if "specref.rules" in own}
    assert looking.keys() == {"tables.py"}
    assert {name for name in looking["tables.py"] if name.startswith("specref.rules.")} == {
        "specref.rules.RULES",
        "specref.rules.rule_of",
    }
    assert "specref" not in names


@pytest.mark.parametrize(
    ("name", "why"), [("greedy-block", "it has no batched twin"), ("medusa", "expected one of")]
)
def test_a_rule_without_a_machine_is_told_from_an_unknown_one(name, why):
    with pytest.raises(ValueError, match=f"algorithm = '{name}': {why}"):
        simulate(name, *PAIRS["eos"], trials=1, rng=np.random.default_rng(1))


def test_no_trials_give_no_blocks():
    simulated = simulate(*SCENARIO.arguments, trials=0, rng=np.random.default_rng(1))
    assert simulated.blocks.shape == (0, 4)
    assert simulated.counts.shape == (0,)
    assert simulate_counts(*SCENARIO.arguments, trials=0, seed=1) == {}


PAIR = (hashed_model(ABC, "p"), hashed_model(ABC, "q"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trials": -1}, "trials = -1: expected an integer >= 0"),
        ({"trials": 1.5}, "trials = 1.5: expected an integer >= 0"),
        ({"chunk": 0}, "chunk = 0: expected an integer >= 1"),
        ({"algorithm": "medusa"}, "algorithm = 'medusa': expected one of autoregressive, stan"),
        ({"lookahead": -1}, "lookahead = -1"),
        ({"context": (3,)}, r"context\[0\] = 3"),
        ({"drafter": hashed_model(STARS, "q")}, "another vocabulary"),
    ],
)
def test_wrong_arguments_are_named(changes, message):
    usual = {"algorithm": "standard", "target": PAIR[0], "drafter": PAIR[1], "trials": 5}
    with pytest.raises(ValueError, match=message):
        simulate(**(usual | {"rng": np.random.default_rng(1)} | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trials": -1}, "trials = -1: expected an integer >= 0"),
        ({"batch": 0}, "batch = 0: expected an integer >= 1"),
        ({"seed": -1}, "seed = -1: expected an integer >= 0"),
    ],
)
def test_wrong_arguments_of_a_parallel_count_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        simulate_counts("standard", *PAIR, **({"trials": 5, "seed": 1} | changes))


@pytest.mark.parametrize(
    ("uniforms", "message"),
    [
        (np.zeros((3, 4)), r"shape \(3, 4\): expected \(trials, sites\) = \(2, 4\)"),
        (np.zeros(4), r"shape \(4,\): expected \(trials, sites\) = \(2, 4\)"),
        ([[0, 0, 0, 0], [0, 0, 1.0, 0]], r"uniforms\[1, 2\] = 1.0: expected a number in \[0, 1\)"),
        ([[0, 0, 0, 0], [0, -0.5, 0, 0]], r"uniforms\[1, 1\] = -0.5"),
        ([[0, 0, 0, np.nan], [0, 0, 0, 0]], r"uniforms\[0, 3\] = nan"),
    ],
)
def test_wrong_uniforms_are_named(uniforms, message):
    with pytest.raises(ValueError, match=message):
        simulate("standard", *PAIR, trials=2, uniforms=uniforms)


def test_coins_come_from_one_source():
    with pytest.raises(TypeError, match="either rng or uniforms"):
        simulate("standard", *PAIR, trials=1)
    with pytest.raises(TypeError, match="not both"):
        simulate(
            "standard", *PAIR, trials=1, rng=np.random.default_rng(1), uniforms=np.zeros((1, 4))
        )


def test_a_tree_that_is_too_large_says_so():
    nodes = len(tables_of(SCENARIO).blocks) + tables_of(SCENARIO).sites[-1].beyond
    assert tabulate(*SCENARIO.arguments, limit=nodes).columns == tables_of(SCENARIO).columns
    with pytest.raises(ValueError, match=f"limit = {nodes - 1}: {nodes} so far, at State"):
        tabulate(*SCENARIO.arguments, limit=nodes - 1)


def test_after_a_rejection_by_rounding_alone_the_token_is_drawn_from_p():
    p = np.array([0.1, 0.9])
    rounded = iid_model(Vocabulary("ab"), p), iid_model(Vocabulary("ab"), np.nextafter(p, 1))
    columns = tabulate("standard", *rounded).columns
    assert (np.diff([p, np.nextafter(p, 1)], axis=0) > 0).all()
    rng = np.random.default_rng(8)
    assert sum(count_blocks("standard", *rounded, trials=10**5, rng=rng).values()) == 10**5
    unlucky = [[BELOW_ONE if site == "accept[0]" else 0.0 for site in columns]]
    assert simulate("standard", *rounded, trials=1, uniforms=unlucky).blocks.tolist() == [[0, -1]]
