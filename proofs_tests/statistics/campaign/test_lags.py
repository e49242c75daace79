"""Dependence between blocks is found although every block alone is exact; independence is not.

Power is a rule stated before sampling: 3,000 blocks of which one in ten or more repeats an
earlier one are LOSSY at alpha 1e-9. (A repeated block wins log(1 / p) nats or so for the copy
bet, 1 or 2 on these fixtures, and ln(2e9) plus the share of the bet, 27 nats, are needed.)
"""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from proofs_tests.helpers.campaigns import Array, drawn, fresh, law_of, tree_of
from specref.algorithms import standard
from specref.models import iid_model
from specref.statistics import Campaign
from specref.statistics.campaign import bets
from specref.statistics.campaign.bets import (
    DEPTH,
    LAG_SHAPE,
    LAGS,
    STAKES,
    Recent,
    lag_bets,
    ranks,
    tally,
)
from specref.statistics.campaign.large import Observer
from specref.statistics.campaign.prefix_tree import PrefixTree, walk
from specref.statistics.campaign.verdict import Verdict
from specref.vocabulary import Vocabulary
from specref.zoo import FIXTURES

BLOCKS = 3_000
Dependence = Callable[[Array, np.random.Generator], Array]


def pairs(blocks: Array, rng: np.random.Generator) -> Array:
    """Two rows of a batch share a seed."""
    return np.repeat(blocks, 2, axis=0)[: len(blocks)]


def copies_of_one(blocks: Array, rng: np.random.Generator) -> Array:
    """All 32 rows of a batch share a seed."""
    return np.repeat(blocks, 32, axis=0)[: len(blocks)]


def repeated_whole(period: int) -> Dependence:
    """Every batch is drawn twice: rows r and r + period are equal."""

    def repeat(blocks: Array, rng: np.random.Generator) -> Array:
        rows = np.arange(len(blocks))
        return blocks[rows // (2 * period) * period + rows % period]

    return repeat


def iteration_before(blocks: Array, rng: np.random.Generator) -> Array:
    """One block in ten is the block before."""
    again = rng.random(len(blocks)) < 0.1
    source = np.where(again, 0, np.arange(len(blocks)))
    return blocks[np.maximum.accumulate(source)]


BEFORE = "of the block before"
DEPENDENT: dict[str, tuple[Dependence, str]] = {
    "pairs": (pairs, BEFORE),
    "32 copies": (copies_of_one, BEFORE),
    "iteration before": (iteration_before, BEFORE),
    "batches of 2 twice": (repeated_whole(2), "of 2 blocks before"),
    "batches of 32 twice": (repeated_whole(32), "of 32 blocks before"),
    "batches of 64 twice": (repeated_whole(64), "of 64 blocks before"),
}


def judged(blocks: Array, fixture: str):
    campaign, case = fresh(fixture)
    campaign.add(case, blocks)
    return campaign.report()


@pytest.mark.parametrize("fixture", ["wide", "eos", "m"])
@pytest.mark.parametrize("name", DEPENDENT)
def test_dependent_blocks_are_found_and_their_distance_is_named(name: str, fixture: str) -> None:
    depend, place = DEPENDENT[name]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        blocks = depend(drawn(law_of(standard.step, fixture), BLOCKS, rng), rng)
        report = judged(blocks, fixture)
        assert report.verdict == Verdict.LOSSY
        assert report.suspects[0].component == f"lag: repeats the token {place}"


@pytest.mark.parametrize("fixture", ["wide", "eos", "m"])
def test_the_same_blocks_in_independent_order_are_not_accused(fixture: str) -> None:
    for seed in range(3):
        blocks = drawn(law_of(standard.step, fixture), BLOCKS, np.random.default_rng(seed))
        assert judged(blocks, fixture).verdict == Verdict.INCONCLUSIVE


def test_repetition_at_a_distance_that_is_not_bet_on_is_not_found() -> None:
    # What a pass does not exclude; the documentation says so.
    rng = np.random.default_rng(4)
    blocks = drawn(law_of(standard.step, "wide"), BLOCKS, rng)
    assert judged(repeated_whole(48)(blocks, rng), "wide").verdict == Verdict.INCONCLUSIVE


def components(batches: list) -> Array:
    campaign, case = fresh("eos")
    for batch in batches:
        campaign.add(case, batch)
    return np.concatenate(list(campaign.wealth().values()))


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("size", [1, 7, 63, 64, 65, 200])
def test_evidence_does_not_depend_on_how_blocks_are_batched(size: int) -> None:
    blocks = drawn(law_of(standard.step, "eos"), 300, np.random.default_rng(5))
    whole = components([blocks])
    cuts = np.split(blocks, range(size, len(blocks), size))
    ragged = [[tuple(x for x in row if x >= 0) for row in batch.tolist()] for batch in cuts]
    # Sums in another order; a forgotten row of history changes components by 0.01 and more.
    assert components(cuts) == pytest.approx(whole, abs=1e-8)
    assert components(ragged) == pytest.approx(whole, abs=1e-8)


def one_by_one(tree: PrefixTree, blocks: Array, nodes: Array, possible: Array) -> Array:
    """The lag bets as their definition has it."""
    won = np.zeros(LAG_SHAPE)
    for row, column in np.argwhere(possible):
        for i, lag in enumerate(LAGS):
            previous = blocks[row - lag, column] if row >= lag else -1
            if previous >= 0:
                p, token = tree.p[nodes[row, column]], blocks[row, column]
                middle = [np.sum(p[:x]) + p[x] / 2 - 0.5 for x in (token, previous)]
                chance = p[previous]
                gain = ((token == previous) - chance) / max(chance, 1 - chance)
                won[i, 0] += np.log1p(STAKES * gain)
                won[i, 1] += np.log1p(STAKES * 4 * middle[0] * middle[1])
    return won


@pytest.mark.parametrize("most_counters", [bets.MOST_COUNTERS, 0])
def test_vectorised_bets_are_the_definition(most_counters: int, monkeypatch) -> None:
    monkeypatch.setattr(bets, "MOST_COUNTERS", most_counters)
    tree = tree_of("eos")
    blocks = drawn(law_of(standard.step, "eos"), 150, np.random.default_rng(6))
    nodes, _ = walk(tree, blocks)
    possible = (nodes >= 0) & (np.random.default_rng(7).random(nodes.shape) < 0.9)
    won = Recent(tree.p, tree.length).bet(nodes, blocks, possible)
    assert won == pytest.approx(one_by_one(tree, blocks, nodes, possible))


def test_mean_wealth_of_lag_bets_is_one() -> None:
    # All 2^9 sequences of a biased coin, so that lags 1, 2, 4 and 8 have something to bet on.
    p = np.array([[0.3, 0.7]])
    mean = np.zeros(LAG_SHAPE)
    for sequence in itertools.product(range(2), repeat=9):
        blocks = np.array(sequence)[:, None]
        won = Recent(p, 1).bet(np.zeros_like(blocks), blocks, blocks >= 0)
        mean += math.prod(p[0][list(sequence)]) * np.exp(won)
    assert mean == pytest.approx(1)


def test_mean_wealth_of_lag_bets_is_not_one_for_copies() -> None:
    p, mean = np.array([[0.3, 0.7]]), np.zeros(LAG_SHAPE)
    for first in range(2):
        blocks = np.array([[first], [first]])
        won = Recent(p, 1).bet(np.zeros_like(blocks), blocks, blocks >= 0)
        mean += p[0, first] * np.exp(won)
    bold = np.argmax(STAKES)
    assert mean[0, 0, bold] > 1.5
    assert mean[1:] == pytest.approx(1)


def test_a_window_of_the_longest_lag_is_kept_and_no_more() -> None:
    recent = Recent(np.array([[0.5, 0.5]]), 1)
    blocks = np.arange(1000)[:, None] % 2
    recent.bet(np.zeros_like(blocks), blocks, blocks >= 0)
    assert recent.blocks.tolist() == blocks[-DEPTH:].tolist()
    assert recent.blocks.base is None


def test_tokens_are_observed_as_blocks_of_one_token_are_added() -> None:
    p, rng = np.array([0.2, 0.5, 0.3]), np.random.default_rng(8)
    tokens = rng.choice(3, size=200, p=p)
    observer = Observer()
    for token in tokens:
        observer.observe(p, token, None, 0, False)
    won = Recent(p[None], 1).bet(np.zeros((200, 1), int), tokens[:, None], np.ones((200, 1), bool))
    assert observer.lags == pytest.approx(won)


def test_batches_drawn_twice_are_found_among_observed_tokens() -> None:
    # Rows are new each time; the uniform of 32 tokens before is used again.
    rng, campaign, uniforms = np.random.default_rng(9), Campaign(), rng_uniforms(2_000, 32)
    for u in uniforms:
        p = rng.dirichlet(np.full(64, 0.3))
        campaign.observe(p, min(63, int(np.searchsorted(np.cumsum(p), u))))
    report = campaign.report()
    assert report.verdict == Verdict.LOSSY
    assert report.suspects[0].component == "lag: follows the rank of 32 blocks before"


def rng_uniforms(trials: int, period: int) -> Array:
    rows = np.arange(trials)
    return np.random.default_rng(10).random(trials)[rows // (2 * period) * period + rows % period]


def test_ranks_have_mean_zero() -> None:
    p = np.random.default_rng(11).dirichlet(np.ones(5), size=20)
    assert (p * ranks(p)).sum(axis=1) == pytest.approx(0)
    assert np.abs(ranks(p)).max() < 1


def test_a_tolerance_costs_the_most_that_a_bet_can_differ_by() -> None:
    free = lag_bets(np.array([0.5]), np.array([True]), np.array([0.2]))
    priced = lag_bets(np.array([0.5]), np.array([True]), np.array([0.2]), tolerance=0.01)
    assert free - priced == pytest.approx(
        np.log1p(0.02 * np.abs(STAKES))[None, :, None] + np.zeros_like(free)
    )


@pytest.mark.parametrize("most_counters", [bets.MOST_COUNTERS, 0])
def test_tally_counts_each_row(most_counters: int, monkeypatch) -> None:
    monkeypatch.setattr(bets, "MOST_COUNTERS", most_counters)
    values = np.random.default_rng(12).integers(0, 50, (3, 40)) // 3 * 3
    distinct, times = tally([*values, np.array([7])], 50)
    assert distinct.tolist() == sorted({7, *values.ravel().tolist()})
    for row, counted in zip([*values, np.array([7])], times, strict=True):
        assert [int((row == value).sum()) for value in distinct] == counted.tolist()


def test_blocks_of_one_case_are_not_before_those_of_another() -> None:
    # Fed in turn with the same blocks, each block is a copy of the one before, in the other case.
    blocks = drawn(law_of(standard.step, "c"), 100, np.random.default_rng(13))
    alone, case = fresh("c")
    alone.add(case, blocks)
    together, first = fresh("c")
    fixture = FIXTURES["c"]
    second = together.case(fixture.target, fixture.drafter, (), fixture.lookahead, mutants={})
    for block in blocks:
        together.add(first, block[None])
        together.add(second, block[None])
    won = [campaign.wealth()["lag"] for campaign in (alone, together)]
    assert won[1] == pytest.approx(2 * won[0], abs=1e-9)
    assert np.abs(won[0]).max() > 1


def test_tokens_that_never_repeat_are_too_seldom_the_same() -> None:
    coin = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
    campaign = Campaign(eps=None)
    campaign.add(campaign.case(coin, coin, (), 0, mutants={}), [(0,), (1,)] * 50)
    names = {suspect.component for suspect in campaign.report().suspects}
    assert "lag: repeats the token of the block before, too seldom" in names
