"""The simulator of schedulers: its laws against closed forms, its choices against exact ones.

Monte Carlo: fixed seeds, ALPHA for each test. Means of bounded quantities are compared by
Hoeffding's inequality: with TRIALS iterations of 0 … 4 accepted drafts a mean may be off by
0.013, and a bug that moves it by 0.027 is missed with probability at most ALPHA.
"""

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from scipy import stats

from specref import Vocabulary
from specref.contrib.speed import simulation as speed
from specref.contrib.speed.budgets import FirstDecline, Priced, Scan, TopDrafts
from specref.contrib.speed.latency import optimal_policy, staircase
from specref.contrib.speed.schedulers import Fixed, Oracle, Profile, StopAtConfidence
from specref.contrib.speed.simulation import SpeedReport, compare_schedulers
from specref.contrib.speed.speedup import expected_block_length, walltime_improvement
from specref.contrib.speed.traces import Classes, Traces, constant
from specref.models import hashed_model
from specref.rules import RULES
from specref.tables import simulate
from specref.theory.goodput import survival

ALPHA = 1e-9
TRIALS = 1_000_000
FLAT = Profile([0, *[1] * 9], draft_cost=0.05)
RATES = [0.9, 0.7, 0.5, 0.8]


def rng(seed=1):
    return np.random.default_rng(seed)


def simulated(source, scheduler, profile, **options) -> SpeedReport:
    return compare_schedulers(source, {"": scheduler}, profile, **options)[""]


def allowance(width, trials=TRIALS):
    """Hoeffding: a mean of values in an interval this wide is off by more w.p. <= ALPHA."""
    return width * math.sqrt(math.log(2 / ALPHA) / (2 * trials))


def is_plausible(count, trials, probability, tests):
    """Clopper and Pearson: is the probability in the interval of 1 - ALPHA / tests?"""
    tail = ALPHA / tests / 2
    low = stats.beta.ppf(tail, count, trials - count + 1) if count else 0
    high = stats.beta.isf(tail, count + 1, trials - count) if count < trials else 1
    return low <= probability <= high


def reach_is_right(source, law):
    counts = np.bincount(source.draw((TRIALS, 1, 1), rng()).reach.ravel(), minlength=len(law))
    return all(
        is_plausible(count, TRIALS, float(p), len(law))
        for count, p in zip(counts, law, strict=True)
    )


def accepted_law(rates):
    reached = [*survival([Fraction(r) for r in rates], len(rates)), 0]
    return [now - later for now, later in pairwise(reached)]


def test_reach_has_its_law():
    """Each cell by Clopper and Pearson; a cell that is 0.007 off is missed w.p. < 1e-9."""
    assert reach_is_right(constant(*RATES), accepted_law(RATES))


@pytest.mark.parametrize(
    "wrong", [[0.9, 0.7, 0.5, 0.82], [0.91, 0.7, 0.5, 0.8], [1, 0.9, 0.7, 0.5]]
)
def test_rates_that_are_off_are_rejected(wrong):
    assert not reach_is_right(constant(*wrong), accepted_law(RATES))


def test_reach_of_classes_is_the_mixture():
    weights, rates = [0.25, 0.75], [[1.0, 0.5], [0.5, 0.0]]
    laws = [accepted_law(row) for row in rates]
    mixture = [float(a) / 4 + 3 * float(b) / 4 for a, b in zip(*laws, strict=True)]
    assert reach_is_right(Classes(weights, rates), mixture)
    assert not reach_is_right(Classes([0.26, 0.74], rates), mixture)


@pytest.mark.parametrize("persistence", [0.0, 0.9, 1.0])
def test_requests_stay_in_their_class(persistence):
    source = Classes([0.5, 0.3, 0.2], [[0.5]] * 3, persistence)
    rows = source.draw((TRIALS // 2, 2, 1), rng()).rows[:, :, 0]
    same = persistence + (1 - persistence) * (0.25 + 0.09 + 0.04)
    assert is_plausible((rows[:, 0] == rows[:, 1]).sum(), len(rows), same, 4)
    for step, (row, weight) in product((0, 1), enumerate([0.5, 0.3])):
        assert is_plausible((rows[:, step] == row).sum(), len(rows), weight, 4)


def test_traces_are_replayed_in_their_order():
    source = Traces(np.arange(7) % 5, believed=np.arange(28).reshape(7, 4) / 28)
    iterations = source.draw((50, 9, 3), rng())
    at = iterations.rows
    assert ((at[:, 1:] - at[:, :-1]) % 7 == 1).all()
    assert set(at[:, 0].ravel().tolist()) == set(range(7))
    assert (iterations.reach == at % 5).all()


def test_verdicts_and_accepted_lengths_are_the_same_trace():
    verdicts = Traces([[1, 0, 1], [0, 1, 1], [1, 1, 1], [1, 1, 0]])
    lengths = Traces([1, 0, 3, 2])
    assert verdicts.reach.tolist() == lengths.reach.tolist()
    assert verdicts.estimates.tolist() == lengths.estimates.tolist() == [[3 / 4, 2 / 3, 1 / 2]]
    assert Traces([0, 1], lookahead=3).estimates.tolist() == [[0.5, 0, 0]]


def mean_tokens_are_right(source, lookahead, exact):
    report = simulated(source, Fixed(lookahead), FLAT, trials=TRIALS, rng=rng(2))
    return abs(report.tokens_per_iteration - float(exact)) <= allowance(lookahead)


@pytest.mark.parametrize("lookahead", [0, 1, 4])
def test_tokens_of_a_fixed_lookahead(lookahead):
    assert mean_tokens_are_right(
        constant(*RATES), lookahead, expected_block_length(RATES, lookahead)
    )


@pytest.mark.parametrize(
    "wrong",
    [
        lambda reach, verified: np.minimum(reach, verified) + (reach < verified),
        lambda reach, verified: np.minimum(reach, verified) + 1 + (reach >= verified),
        lambda reach, verified: np.minimum(reach, verified),
        lambda reach, verified: np.minimum(reach, verified + 1) + 1,
        lambda reach, verified: np.minimum(reach + 1, verified) + 1,
    ],
    ids=["no bonus", "two bonuses", "no last token", "one draft more", "first draft free"],
)
def test_planted_counts_are_rejected(wrong, monkeypatch):
    """Off by one token in some iterations: means move by 0.2 and more, the allowance is 0.01."""
    monkeypatch.setattr(speed, "emitted", wrong)
    assert not mean_tokens_are_right(constant(*RATES), 3, expected_block_length(RATES, 3))


def test_goodput_is_leviathans_theorem_3_8():
    acceptance, cost = Fraction(7, 10), Fraction(1, 20)
    schedulers = {g: Fixed(g) for g in range(9)}
    reports = compare_schedulers(
        constant(*[0.7] * 8), schedulers, FLAT, trials=TRIALS // 4, rng=rng(3)
    )
    for g, report in reports.items():
        exact = walltime_improvement(acceptance, g, cost)
        error = allowance(g, TRIALS // 4) / (1 + g * 0.05)
        assert abs(report.goodput - float(exact)) <= error + 1e-12
        assert report.time == pytest.approx(TRIALS // 4 * (1 + g * 0.05), rel=1e-12)


def test_goodput_of_a_scheduler_that_adapts():
    """Stop at 0.6, batches of two: exact tokens and time by enumerating the classes."""
    weights, lengths, steps = [Fraction(1, 4), Fraction(3, 4)], [2, 1], [0, 1, 1, 2, 2, 4, 4]
    rates = [[Fraction(9, 10), Fraction(7, 10)], [Fraction(4, 5), Fraction(1, 2)]]
    tokens, time = 0, 0
    for i, j in product((0, 1), repeat=2):
        blocks = [expected_block_length(rates[c], lengths[c]) for c in (i, j)]
        tokens += weights[i] * weights[j] * sum(blocks)
        time += weights[i] * weights[j] * steps[2 + lengths[i] + lengths[j]]
    source = Classes([0.25, 0.75], [[float(r) for r in row] for row in rates])
    options = {"batch": 2, "trials": TRIALS, "rng": rng(4)}
    report = simulated(source, StopAtConfidence(0.6), Profile(steps), **options)
    assert abs(report.tokens / TRIALS - float(tokens)) <= allowance(4)
    assert abs(report.time / TRIALS - float(time)) <= allowance(4)
    assert abs(report.goodput - float(tokens / time)) < 6.2 * report.standard_error


def test_traces_of_real_iterations_meet_the_theory():
    """Accepted lengths of the other twin, replayed: Equation 1 with rates by position."""
    abc = Vocabulary("abc")
    target, drafter = hashed_model(abc, "p"), hashed_model(abc, "q")
    blocks = simulate("standard", target, drafter, (), 4, trials=TRIALS, rng=rng(5))
    rates = RULES["standard"].acceptance_by_position(target, drafter, lookahead=4)
    rates = [*rates, *[0] * (4 - len(rates))]
    source = Traces(blocks.counts - 1, lookahead=4)
    for lookahead in (2, 4):
        exact = expected_block_length(rates, lookahead)
        report = simulated(source, Fixed(lookahead), FLAT, trials=TRIALS, rng=rng(6))
        assert abs(report.tokens_per_iteration - float(exact)) <= 2 * allowance(lookahead)


def test_best_in_the_long_run_is_not_best_in_each_pass():
    """9/7 against 51/40, 13 standard errors apart: each is met within 6.2 (normal, 1e-9)."""
    source, latencies = Classes([0.5, 0.5], [[1.0], [0.4]]), [0, 1, 4 / 3]
    policy = optimal_policy([1, 1], [[1], [Fraction(2, 5)]], [0, 1, Fraction(4, 3)])
    schedulers = {"scan": Scan(), "priced": Priced(price=float(policy.goodput))}
    reports = compare_schedulers(source, schedulers, Profile(latencies), trials=TRIALS, rng=rng(7))
    for name, exact in (("scan", 51 / 40), ("priced", 9 / 7)):
        assert abs(reports[name].goodput - exact) < 6.2 * reports[name].standard_error
    assert 13 * max(report.standard_error for report in reports.values()) < 9 / 7 - 51 / 40


def test_standard_error_is_that_of_a_mean_where_time_is_constant():
    source = constant(0.5, 0.5)
    report = simulated(source, Fixed(2), Profile([0, 1, 1, 2]), trials=999, rng=rng(8))
    tokens = np.minimum(source.draw((999, 1, 1), rng(8)).reach, 2) + 1
    assert report.standard_error == pytest.approx(tokens.std(ddof=1) / 2 / math.sqrt(999))
    single = simulated(source, Fixed(2), FLAT, trials=1, rng=rng())
    assert math.isnan(single.standard_error)


def test_report_counts_everything_once():
    told = []
    options = {"batch": 2, "trials": 5, "steps": 3, "chunk": 7, "advance": told.append}
    report = simulated(constant(1.0, 0.0), Fixed(2), FLAT, rng=rng(), **options)
    assert (sum(told), report.iterations, report.verified.sum()) == (30, 30, 30)
    assert report.tokens == 60
    assert report.tokens_per_iteration == report.verified_per_iteration == 2
    assert report.wasted == 0.5
    assert report.time == pytest.approx(15 * (1 + 4 * 0.05))
    assert report.longest_wait == 0


def test_schedulers_are_compared_on_the_same_iterations():
    source, options = constant(*RATES), {"batch": 3, "trials": 40, "steps": 5, "chunk": 100}
    schedulers = {"three": Fixed(3), "decline": FirstDecline(), "oracle": Oracle()}
    profile = Profile([float(t) for t in staircase(15, 4, base=1)])
    together = compare_schedulers(source, schedulers, profile, rng=rng(12), **options)
    for name, scheduler in schedulers.items():
        alone = simulated(source, scheduler, profile, rng=rng(12), **options)
        assert (alone.tokens, alone.time) == (together[name].tokens, together[name].time)


def run(source=None, scheduler=None, profile=None, **options):
    given_ = {"trials": 2, "rng": rng()} | options
    return simulated(source or constant(0.5), scheduler or Fixed(1), profile or FLAT, **given_)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: constant(1.5), r"rates\[0, 0\] = 1.5: expected a number in \[0, 1\]"),
        (lambda: constant(math.nan), r"rates\[0, 0\] = nan"),
        (lambda: constant(), r"rates has shape \(1, 0\)"),
        (lambda: Classes([1], [[0.5]], 1.5), "persistence = 1.5"),
        (lambda: Classes([0.5], [[0.5]]), "weights sums to 0.5"),
        (lambda: Classes([0.5, 0.5], [[0.5]]), "weights has length 2: expected 1"),
        (lambda: Classes([1], [[0.5]], believed=[[0.5, 0.5]]), "believed has shape"),
        (lambda: Classes([1], [[0.5]], believed=[[-0.5]]), r"believed\[0, 0\] = -0.5"),
        (lambda: Traces([]), r"recorded has shape \(0,\)"),
        (lambda: Traces([[], []]), r"recorded has shape \(2, 0\)"),
        (lambda: Traces(3), r"recorded has shape \(\)"),
        (lambda: Traces([0, 0]), "lookahead = 0: expected an integer >= 1"),
        (lambda: Traces([1, -1]), r"recorded\[1\] = -1: expected an accepted length 0 … 1"),
        (lambda: Traces([1, 3], lookahead=2), r"recorded\[1\] = 3"),
        (lambda: Traces([1, 0.5]), r"recorded\[1\] = 0.5"),
        (lambda: Traces([[1, 2]]), r"recorded\[0, 1\] = 2: expected 0 or 1"),
        (lambda: Traces([[1, 1]], lookahead=3), "lookahead = 3: recorded has 2 positions"),
        (lambda: Traces([1, 2], believed=[0.5]), r"believed has shape \(1, 1\)"),
        (lambda: Profile([0, 2, 1]), r"latencies\[2\] = 1.0 is less than"),
        (lambda: Profile([0, 0]), r"latencies\[1\] = 0.0"),
        (lambda: Profile([0, 1], -1), "draft_cost = -1"),
        (lambda: Profile([0, 1], math.nan), "draft_cost = nan"),
        (lambda: run(profile=Profile([0, 1])), "latencies end at 1 tokens: expected 2"),
        (lambda: run(scheduler=FirstDecline(), profile=Profile([0, 1])), "latencies end at 1"),
        (lambda: run(scheduler=Fixed(2)), "lookahead = 2: the iterations have 1 positions"),
        (lambda: run(scheduler=Fixed(-1)), "lookahead = -1"),
        (lambda: run(scheduler=StopAtConfidence(1.5)), "threshold = 1.5"),
        (lambda: run(scheduler=TopDrafts(drafts=-1)), "drafts = -1"),
        (lambda: run(scheduler=Scan(lookahead=2)), "lookahead = 2"),
        (lambda: run(trials=0), "trials = 0"),
        (lambda: run(batch=0), "batch = 0"),
        (lambda: run(steps=1.5), "steps = 1.5"),
        (lambda: run(chunk=0), "chunk = 0"),
        (lambda: compare_schedulers(constant(0.5), {}, FLAT, trials=1, rng=rng()), "schedulers"),
    ],
)
def test_misuse_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
