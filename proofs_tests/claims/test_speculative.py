"""What Leviathan et al. 2023 and Chen et al. 2023 claim, row by row of the claims ledger.

The rules that all others start from. alpha is the mean acceptance, c the time of a draft, c^ its
operations, both in passes of the target, gamma the lookahead.
"""

import itertools
from collections import Counter
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from proofs_tests.helpers.bugs import planted
from specref import Vocabulary, exact_distribution, is_lossless
from specref.algorithms import standard
from specref.contrib.speed.speedup import (
    expected_block_length,
    is_faster,
    operations_increase,
    optimal_lookahead,
    walltime_improvement,
)
from specref.distributions import as_distribution, overlap
from specref.models import hashed_model, iid_model
from specref.theory import expected_tokens

ABC = Vocabulary("abc")
SIMPLEX = [
    as_distribution([Fraction(count, 4) for count in row])
    for row in itertools.product(range(5), repeat=3)
    if sum(row) == 4
]
PAIRS = list(itertools.product(SIMPLEX, SIMPLEX))
TENTHS = [Fraction(n, 10) for n in range(1, 10)]
COSTS = [Fraction(cost) for cost in ("0.01", "0.02", "0.05", "0.1", "0.2", "0.5")]
TABLE_1 = [
    ("0.6", 2, "1.53", "1.96"),
    ("0.7", 3, "1.58", "2.53"),
    ("0.8", 2, "1.23", "2.44"),
    ("0.8", 5, "1.63", "3.69"),
    ("0.9", 2, "1.11", "2.71"),
    ("0.9", 10, "1.60", "6.86"),
]
"""alpha, gamma, factor of operations and of speed, where drafts are free."""


def blocks_of(step, p, q, lookahead):
    pair = iid_model(ABC, p), iid_model(ABC, q)
    return exact_distribution(lambda chance: step(*pair, (), lookahead, chance))


def test_l_0_equation_1_counts_tokens_with_the_bonus():
    """True for models without context, whose acceptances are independent, with one rate."""
    for (p, q), lookahead in itertools.product(PAIRS[::7], range(4)):
        blocks = blocks_of(standard.step, p, q, lookahead)
        mean = sum(len(block) * weight for block, weight in blocks.items())
        alpha = overlap(p, q)
        assert mean == expected_tokens(alpha, lookahead)
        if alpha < 1:
            assert mean == (1 - alpha ** (lookahead + 1)) / (1 - alpha)
        else:
            assert mean == lookahead + 1


def test_s_1_algorithm_1_is_lossless_and_draws_the_bonus_token_from_p():
    """Three models with context, up to three drafts; a bonus token of the drafter is refuted."""
    for key in range(3):
        target, drafter = hashed_model(ABC, f"p{key}"), hashed_model(ABC, f"q{key}")
        for lookahead in (1, 2, 3):
            assert is_lossless(standard.step, target, drafter, (), lookahead)
        assert not is_lossless(planted.drafter_bonus, target, drafter, (), 1)


def test_s_2_acceptance_is_one_minus_their_divergence():
    """D_LK = sum |p - M|, M the mean of both laws: 1 - sum min(p, q), 0 iff equal, 1 iff apart."""
    for p, q in PAIRS:
        middle = (p + q) / 2
        divergence = abs(p - middle).sum()
        accepted = sum(
            weight
            for block, weight in blocks_of(standard.step, p, q, 1).items()
            if len(block) == 2
        )
        assert divergence == abs(q - middle).sum() == 1 - overlap(p, q)
        assert accepted == 1 - divergence
        assert (divergence == 0) == (p == q).all()
        assert (divergence == 1) == (not (p * q).any())


def test_s_3_acceptance_on_average_is_the_mean_overlap():
    """Corollary 3.6: of contexts after a token of the target; of the draft model it differs."""
    target, drafter = hashed_model(ABC, "p"), hashed_model(ABC, "q")
    first = target.next_token(())
    rates = []
    for token in range(3):
        blocks = exact_distribution(partial(standard.step, target, drafter, (token,), 1))
        rates.append(sum(weight for block, weight in blocks.items() if len(block) == 2))
    overlaps = [overlap(*(m.next_token((t,)) for m in (target, drafter))) for t in range(3)]
    assert sum(first * rates) == sum(first * overlaps)
    assert sum(first * rates) != sum(drafter.next_token(()) * rates)


def test_s_4_improvement_is_tokens_over_time():
    """Theorem 3.8, with tokens enumerated; 1 / (1 + c gamma) too low without the bonus token."""
    for (p, q), lookahead, cost in itertools.product(PAIRS[::11], (1, 2), COSTS[:3]):
        blocks = blocks_of(standard.step, p, q, lookahead)
        mean = sum(len(block) * weight for block, weight in blocks.items())
        assert walltime_improvement(overlap(p, q), lookahead, cost) == mean / (
            1 + lookahead * cost
        )


def test_s_5_some_lookahead_is_faster_if_acceptance_exceeds_the_cost():
    """Corollary 3.9, by (1 + alpha) / (1 + c) at least; and only if."""
    for alpha, cost in itertools.product(TENTHS, COSTS):
        best = walltime_improvement(alpha, optimal_lookahead(alpha, cost), cost)
        if alpha > cost:
            assert best >= (1 + alpha) / (1 + cost) > 1
            assert (1 + alpha) / (1 + cost) == walltime_improvement(alpha, 1, cost)
        assert (best > 1) == is_faster(alpha, cost) == (alpha > cost)


def test_s_6_operations_grow_by_drafts_and_rejected_positions():
    """Theorem 3.11: gamma c^ + gamma + 1 over the tokens of an iteration."""
    for alpha, lookahead, ratio in itertools.product(TENTHS, (1, 3, 7), COSTS):
        printed = (
            (1 - alpha) * (lookahead * ratio + lookahead + 1) / (1 - alpha ** (lookahead + 1))
        )
        assert operations_increase(alpha, lookahead, ratio) == printed > 1
        if lookahead <= 3:
            blocks = blocks_of(standard.step, [alpha, 1 - alpha, 0], [1, 0, 0], lookahead)
            tokens = sum(len(block) * weight for block, weight in blocks.items())
            assert printed == (lookahead * ratio + lookahead + 1) / tokens


@pytest.mark.parametrize(("alpha", "lookahead", "operations", "speed"), TABLE_1)
def test_s_7_table_1(alpha, lookahead, operations, speed):
    rate = Fraction(alpha)
    assert f"{float(operations_increase(rate, lookahead, Fraction(0))):.2f}" == operations
    assert f"{float(expected_block_length(rate, lookahead)):.2f}" == speed


def test_s_8_the_best_lookahead_grows_with_acceptance_and_falls_with_the_cost():
    """It is found by a search; where drafts are free there is none."""
    best = [[optimal_lookahead(alpha, cost) for alpha in TENTHS] for cost in COSTS]
    assert all(row == sorted(row) for row in best)
    assert all(list(column) == sorted(column)[::-1] for column in zip(*best, strict=True))
    free = [expected_block_length(Fraction(1, 2), k) for k in range(20)]
    assert free == sorted(set(free))
    for cost in COSTS:  # below 1
        sure = [walltime_improvement(Fraction(1), k, cost) for k in range(20)]
        assert sure == sorted(set(sure))
        with pytest.raises(ValueError, match="lookahead_max is needed"):
            optimal_lookahead(Fraction(1), cost)


LENIENCES = [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]


@pytest.mark.parametrize("lenience", LENIENCES)
@pytest.mark.parametrize("scaled", [False, True])
def test_s_9_lenience_bounds_each_token_by_p_over_l(lenience, scaled):
    """P(x) <= p(x) / l, whether the residual has q or l q; and the law is another."""
    lossy = 0
    for p, q in PAIRS:
        kept = np.minimum(q, p / lenience)
        residual = np.maximum(p - q * (lenience if scaled else 1), 0)
        law = kept + (1 - kept.sum()) * (residual / residual.sum() if residual.any() else p)
        assert law.sum() == 1
        assert (law <= p / lenience).all()
        lossy += bool((law != p).any())
    assert lossy


def beam(model, width, steps):
    """Texts of beam search, the best first; ties by the text."""
    texts = {(): Fraction(1)}
    for _ in range(steps):
        texts = best(extended(model, texts), width)
    return texts


def extended(model, texts):
    return {
        (*text, token): mass * p
        for text, mass in texts.items()
        for token, p in enumerate(model.next_token(text))
    }


def best(texts, width):
    return dict(sorted(texts.items(), key=lambda item: (-item[1], item[0]))[:width])


def speculative_beam(target, drafter, width, drafted, lookahead, *, contained):
    """Beams of the target, after how many steps, and for how many the guesses hold them all."""
    mine, guesses = {(): Fraction(1)}, {(): Fraction(1)}
    for step in range(1, lookahead + 1):
        guesses = best(extended(drafter, guesses), drafted)
        wanted = best(extended(target, mine), width)
        if contained and not wanted.keys() <= guesses.keys():
            return wanted, step, step - 1
        mine = {text: wanted.get(text, extended(target, mine).get(text, 0)) for text in guesses}
        mine = best(mine, width)
    return mine, lookahead, lookahead


def test_s_10_beams_are_the_targets_while_the_drafted_ones_hold_them():
    """The target's best w among the drafter's best u at each step; else the step ends it."""
    wrong, held = 0, Counter[int]()
    for key in range(12):
        target, drafter = hashed_model(ABC, f"p{key}"), hashed_model(ABC, f"q{key}")
        for drafted in (2, 4, 8):
            beams, steps, kept = speculative_beam(target, drafter, 2, drafted, 3, contained=True)
            assert beams == beam(target, 2, steps)
            held[kept] += 1
            beams, steps, _ = speculative_beam(target, drafter, 2, drafted, 3, contained=False)
            wrong += beams != beam(target, 2, steps)
    assert wrong == 35
    assert held == {0: 8, 1: 15, 2: 12, 3: 1}


def test_s_11_theorem_1_of_chen_et_al_modified_rejection_sampling_recovers_the_target():
    """One draft, every pair of a grid: acceptance and residual together are p."""
    for p, q in PAIRS:
        law = np.full(3, Fraction(0))
        for block, weight in blocks_of(standard.step, p, q, 1).items():
            law[block[0]] += weight
        assert (law == p).all()
