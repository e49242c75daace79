"""Speculative against plain sampling, the target unknown."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from proofs_tests.benchmarks.power import block_law
from specref.losslessness import TwoSample, Verdict
from specref.models import as_float
from specref.simulate import draw_blocks, tabulate
from specref.zoo import FIXTURES, MUTANTS, total_variation_on

FIXTURE = FIXTURES["wide"]
LENGTH = FIXTURE.lookahead + 1
Texts = Callable[[int, np.random.Generator], np.ndarray]


def completed_texts(blocks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Extend every block by the target, as a decode loop would."""
    target = as_float(FIXTURE.target)
    texts = np.full((len(blocks), LENGTH), -1)
    for row, block in zip(texts, blocks, strict=True):
        tokens = tuple(int(token) for token in block if token >= 0)
        while len(tokens) < LENGTH:
            p = target.next_token(tokens)
            tokens = (*tokens, int(rng.choice(len(p), p=p)))
        row[:] = tokens
    return texts


def plain(trials: int, rng: np.random.Generator) -> np.ndarray:
    return completed_texts(np.full((trials, 1), -1), rng)


def speculative(trials: int, rng: np.random.Generator) -> np.ndarray:
    tables = tabulate("standard", FIXTURE.target, FIXTURE.drafter, (), FIXTURE.lookahead)
    return completed_texts(draw_blocks(tables, trials, rng).blocks, rng)


def mutant(name: str) -> Texts:
    blocks, weights = block_law(FIXTURE, MUTANTS[name])

    def texts(trials: int, rng: np.random.Generator) -> np.ndarray:
        rows = rng.choice(len(blocks), size=trials, p=weights / weights.sum())
        return completed_texts(blocks[rows], rng)

    return texts


def compared(left: Texts, right: Texts, batches: int, seed: int, **options: float) -> TwoSample:
    rng = np.random.default_rng(seed)
    test = TwoSample(**options)
    for _ in range(batches):
        test.add(left(300, rng), right(300, rng))
    return test


def test_the_right_rule_is_not_lossy() -> None:
    report = compared(speculative, plain, 10, seed=1).report()
    assert report.verdict == Verdict.INCONCLUSIVE
    assert report.needed > report.trials == 3_000


def test_false_alarms() -> None:
    # 200 nulls at alpha 0.1: more than 40 alarms has probability 1e-5 at the nominal rate.
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(200):
        test = TwoSample(alpha=0.1)
        for _ in range(8):
            test.add(*(rng.choice(4, (100, 3), p=[0.4, 0.3, 0.2, 0.1]) for _ in range(2)))
        alarms += test.report().verdict == Verdict.LOSSY
    assert alarms <= 40


@pytest.mark.parametrize("name", ["residual-is-q", "bonus-argmax", "threshold-accept"])
def test_bugs_are_found(name: str) -> None:
    tv = float(total_variation_on(MUTANTS[name], FIXTURE))
    assert tv > 0.15
    report = compared(mutant(name), plain, 40, seed=2).report()
    assert report.verdict == Verdict.LOSSY
    assert report.upper >= tv


def mean_wealth(learn_first: bool) -> float:
    """The mean of a second batch's winnings, over all its outcomes, after a lopsided first."""
    law = {(0,): 0.5, (1,): 0.3, (2,): 0.2}
    first = [(0,)] * 30 + [(1,)] * 10, [(1,)] * 30 + [(2,)] * 10
    mean = 0.0
    for left, right in itertools.product(law, repeat=2):
        test = TwoSample()
        test.add(*first)
        if not learn_first:  # the planted bug: bets that know what they bet on
            test.add([left] * 40, [right] * 40)
        before = test._wealth.copy()
        test.add([left], [right])
        mean += law[left] * law[right] * float(np.exp(test._wealth - before).mean())
    return mean


def test_the_mean_wealth_is_at_most_one() -> None:
    assert 0.9 < mean_wealth(learn_first=True) <= 1 + 1e-12
    assert mean_wealth(learn_first=False) > 1.05


def test_texts_that_stop_early_are_found() -> None:
    rng = np.random.default_rng(6)
    test = TwoSample()
    for _ in range(10):
        cut = rng.integers(0, 3, (300, 2))
        cut[rng.random(300) < 0.3, 1] = -1
        test.add(cut, rng.integers(0, 3, (300, 2)))
    assert test.report().verdict == Verdict.LOSSY


def test_an_empty_report_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing to report"):
        TwoSample().report()


def test_the_upper_bound_certifies() -> None:
    rng = np.random.default_rng(4)
    test = TwoSample(eps=0.05, alpha=1e-6)
    test.add(rng.integers(0, 2, (60_000, 1)), rng.integers(0, 2, (60_000, 1)))
    assert test.report().verdict == Verdict.LOSSLESS_WITHIN_EPS


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="3 speculative and 2 plain"):
        TwoSample().add([(0,)] * 3, [(0,)] * 2)
    with pytest.raises(ValueError, match="alpha = 1"):
        TwoSample(alpha=1)
