"""What schedulers choose, against exact optima; fairness and starvation, against definitions."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specref.contrib.speed import budgets
from specref.contrib.speed.budgets import FirstDecline, Scan, TopDrafts
from specref.contrib.speed.latency import staircase
from specref.contrib.speed.schedulers import Fixed, Oracle, Profile, StopAtConfidence
from specref.contrib.speed.simulation import compare_schedulers, jain_index, longest_waits
from specref.contrib.speed.traces import Classes, Iterations, constant
from specref.theory.goodput import allocation, best, first_decline, goodputs

EIGHTHS = st.integers(0, 8).map(lambda count: count / 8)
BATCHES = st.integers(1, 3).flatmap(
    lambda most: st.lists(st.lists(EIGHTHS, min_size=most, max_size=most), min_size=1, max_size=3)
)
STAIRS = st.lists(st.integers(0, 3), min_size=13, max_size=13).map(
    lambda rises: [1 + sum(rises[:n]) for n in range(13)]
)


def rng(seed=1):
    return np.random.default_rng(seed)


def one_pass(estimates):
    """One pass over a batch whose request r has row r of the estimates; nothing is accepted."""
    rows = np.arange(len(estimates))[None, None]
    return Iterations(rows * 0, rows, np.array(estimates, dtype=float))


def exact_choice(name, requests, latencies, cost):
    rates = [[Fraction(rate) for rate in row] for row in requests]
    if name == "first decline":
        return allocation(rates, first_decline(goodputs(rates, latencies, cost)))
    sunk = [latency + cost * sum(map(len, rates)) for latency in latencies]
    return allocation(rates, best(goodputs(rates, sunk)))


@pytest.mark.parametrize("most", [0, budgets.MOST_COMBINATIONS], ids=["directly", "by table"])
@pytest.mark.parametrize(
    ("name", "scheduler"), [("first decline", FirstDecline()), ("scan", Scan())]
)
@given(requests=BATCHES, latencies=STAIRS, cost=EIGHTHS)
def test_batch_schedulers_choose_what_the_theory_chooses(
    most, name, scheduler, requests, latencies, cost
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budgets, "MOST_COMBINATIONS", most)
        schedule = scheduler(one_pass(requests), Profile(latencies, cost))
    exact = exact_choice(name, requests, latencies, Fraction(cost))
    assert tuple(schedule.verified[0, 0]) == exact
    drafted = sum(exact) if name == "first decline" else sum(map(len, requests))
    assert schedule.drafted.tolist() == [[drafted]]


def test_the_two_rules_differ_on_a_staircase():
    profile = Profile([float(t) for t in staircase(7, 2, base=1)])
    first, scan = (rule(one_pass([[0.9] * 6]), profile) for rule in (FirstDecline(), Scan()))
    assert (first.verified.item(), scan.verified.item()) == (1, 5)


@given(BATCHES, st.integers(0, 12))
def test_a_fixed_number_of_drafts_goes_to_the_likeliest(requests, drafts):
    schedule = TopDrafts(drafts=drafts)(one_pass(requests), Profile([0, *[1] * 12]))
    exact = [[Fraction(rate) for rate in row] for row in requests]
    most = min(drafts, sum(map(len, requests)))
    assert tuple(schedule.verified[0, 0]) == allocation(exact, most)


def ratio(iterations, verified, profile):
    drafts = verified.sum(axis=2)
    tokens = (np.minimum(iterations.reach, verified) + 1).sum()
    return tokens / profile.time(verified.shape[2] + drafts, drafts).sum()


@given(st.lists(st.integers(0, 2), min_size=4, max_size=4), STAIRS, EIGHTHS)
def test_no_choice_beats_the_oracle(reach, latencies, cost):
    """All 3^4 choices for two passes over two requests."""
    profile = Profile(latencies, cost)
    rows = np.zeros((1, 2, 2), dtype=int)
    iterations = Iterations(np.array(reach).reshape(1, 2, 2), rows, np.full((1, 2), 0.5))
    verified = Oracle()(iterations, profile).verified
    assert (verified <= iterations.reach).all()
    choices = [np.array(c).reshape(1, 2, 2) for c in product(range(3), repeat=4)]
    greatest = max(ratio(iterations, choice, profile) for choice in choices)
    assert ratio(iterations, verified, profile) == pytest.approx(greatest, rel=1e-12)


def test_verifying_every_accepted_draft_is_no_oracle():
    """A wave that one accepted draft opens alone is not worth it."""
    profile, rows = Profile([0, 1, 1, 9]), np.zeros((1, 1, 1), dtype=int)
    iterations = Iterations(rows + 2, rows, np.full((1, 2), 0.5))
    verified = Oracle()(iterations, profile).verified
    assert verified.item() == 1
    assert ratio(iterations, iterations.reach, profile) < ratio(iterations, verified, profile)


def test_nobody_beats_the_oracle_in_a_run():
    source = Classes([0.5, 0.5], [[0.9] * 4, [0.5] * 4], 0.9)
    schedulers = {
        "oracle": Oracle(),
        **{f"fixed {g}": Fixed(g) for g in range(5)},
        **{"stop": StopAtConfidence(0.6), "decline": FirstDecline(), "scan": Scan()},
    }
    profile = Profile([float(t) for t in staircase(20, 8, base=2)], 0.02)
    options = {"batch": 4, "trials": 100, "steps": 25, "rng": rng(9)}
    goodput = {
        k: r.goodput for k, r in compare_schedulers(source, schedulers, profile, **options).items()
    }
    assert max(goodput, key=goodput.get) == "oracle"
    assert goodput["decline"] > goodput["fixed 0"]


def test_confidence_stops_before_the_first_doubtful_draft():
    estimates = [[0.9, 0.5, 0.9], [0.9, 0.9, 0.9], [0.1, 0.9, 0.9], [0.6, 0.6, 0.5]]
    for lookahead, lengths in ((None, [1, 3, 0, 2]), (2, [1, 2, 0, 2])):
        schedule = StopAtConfidence(0.6, lookahead)(one_pass(estimates), Profile([0, 1]))
        assert schedule.verified.tolist() == [[lengths]]


def test_ties_starve_the_last_requests_unless_they_rotate():
    options = {"batch": 4, "trials": 3, "steps": 12, "rng": rng(10)}
    profile = Profile([0, *[1] * 8])
    schedulers = {"fixed": TopDrafts(drafts=1), "turns": TopDrafts(drafts=1, rotate=True)}
    reports = compare_schedulers(constant(0.5), schedulers, profile, **options)
    assert reports["fixed"].jain == 1 / 4
    assert reports["fixed"].longest_wait == 12
    assert reports["fixed"].verified.tolist() == [[0, 36], [36, 0], [36, 0], [36, 0]]
    assert reports["turns"].jain == 1
    assert reports["turns"].longest_wait == 3
    assert reports["turns"].verified.tolist() == [[27, 9]] * 4
    assert reports["turns"].waits.tolist() == [0] * 3 + [12] + [0] * 9


def test_rotation_changes_who_is_first_and_nothing_else():
    """Where nothing ties, the schedule is the same."""
    source = Classes([0.3, 0.3, 0.4], [[0.9, 0.8], [0.7, 0.6], [0.5, 0.4]], believed=None)
    iterations = source.draw((20, 7, 3), rng(11))
    distinct = np.sort(iterations.rows, axis=2)
    distinct = (distinct[:, :, 1:] > distinct[:, :, :-1]).all(axis=2)
    profile = Profile([float(t) for t in staircase(9, 2, base=1)])
    fixed, turns = (FirstDecline(rotate=r)(iterations, profile) for r in (False, True))
    assert (fixed.verified[distinct] == turns.verified[distinct]).all()
    assert (fixed.verified.sum(axis=2) == turns.verified.sum(axis=2)).all()
    assert (fixed.verified != turns.verified).any()


@given(st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=2), min_size=1, max_size=9))
def test_waits_and_fairness_by_definition(steps):
    verified = np.array([steps])
    for request, wait in enumerate(longest_waits(verified)[0]):
        text = "".join("x" if row[request] else "." for row in steps)
        assert wait == max(map(len, text.split("x")))
    total = verified.sum(axis=1)[0]
    if total.any():
        assert jain_index(total) == pytest.approx(sum(total) ** 2 / (2 * sum(total**2)))
