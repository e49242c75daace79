"""Probability vectors: validation, residual, overlap, and the sampling filters."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from proofs_tests.helpers.bugs import planted
from specref.distributions import (
    as_distribution,
    is_exact,
    normalise,
    overlap,
    relabel,
    residual,
    top_k,
    top_k_top_p,
    top_p,
    total_variation,
    with_temperature,
)
from specref.strategies import distributions

SIZES = st.sampled_from([1, 2, 3, 4, 5])
ROWS = SIZES.flatmap(distributions)
TWO_ROWS = SIZES.flatmap(lambda size: st.tuples(distributions(size), distributions(size)))
MASSES = st.sampled_from([Fraction(n, 12) for n in range(1, 13)])
SCALES = st.sampled_from([Fraction(n, 4) for n in range(5)])


@pytest.mark.parametrize(
    "values",
    [
        ["1/4", "3/4"],
        [Fraction(1, 4), Fraction(3, 4)],
        (Fraction(1, 4), "0.75"),
        np.array([Fraction(1, 4), Fraction(3, 4)], dtype=object),
        [0, 1],
        np.array([0, 1]),
    ],
)
def test_exact_values_stay_exact(values):
    row = as_distribution(values)
    assert is_exact(row)
    assert row.sum() == 1
    assert all(isinstance(entry, Fraction) for entry in row)


@pytest.mark.parametrize("values", [[0.25, 0.75], np.array([0.25, 0.75], dtype=np.float32)])
def test_floats_stay_floats(values):
    row = as_distribution(values)
    assert row.dtype == np.float64
    assert list(row) == [0.25, 0.75]


def test_result_is_a_read_only_copy():
    values = np.array([0.25, 0.75])
    row = as_distribution(values)
    values[0] = 1
    assert row[0] == 0.25
    with pytest.raises(ValueError, match="read-only"):
        row[0] = 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5, -0.5, 1.0], r"q\[1\] = -0.5: expected a non-negative probability"),
        (["1/2", "-1/2", "1"], r"q\[1\] = -1/2: expected a non-negative probability"),
        ([math.nan, 1.0], r"q\[0\] = nan: expected a non-negative probability"),
        ([math.inf, 0.0], "q sums to inf: expected 1"),
        (["1/2", "1/3"], "q sums to 5/6: expected 1 exactly$"),
        ([0.5, 0.4], "q sums to 0.9: expected 1 within 1e-09$"),
        ([0.5, 0.5 + 2e-8], r"convert to float64 and divide by the sum\)$"),
        ([Fraction(1, 2), Fraction(1, 2) + Fraction(1, 10**30)], r"q sums to .*: expected 1"),
        ([0.5, 0.5 + 2e-9], r"q sums to 1\.00000000[12]\d*: expected 1"),
        ([0, 0], "q sums to 0: expected 1"),
        ([], r"q has shape \(0,\): expected a non-empty vector"),
        (1.0, r"q has shape \(\): expected a non-empty vector"),
        ([[0.5, 0.5]], r"q has shape \(1, 2\): expected a non-empty vector"),
        (["one", "0"], r"q\[0\] = 'one': expected a fraction such as '1/3'"),
        (["1/0", "0"], r"q\[0\] = '1/0': expected a fraction such as '1/3'"),
    ],
)
def test_bad_values(values, message):
    with pytest.raises(ValueError, match=message):
        as_distribution(values, "q")


@pytest.mark.parametrize("entry", [None, 1j, Decimal(1), True, np.True_, [1]])
def test_entries_must_be_real_numbers(entry):
    values = np.empty(1, dtype=object)
    values[0] = entry
    with pytest.raises(TypeError, match=r"q\[0\] = .*: expected a real number"):
        as_distribution(values, "q")


@pytest.mark.parametrize("values", [["1/2", 0.5], [0.5, "1/2"], [1, 0.0]])
def test_exact_and_float_entries_do_not_mix(values):
    with pytest.raises(TypeError, match=r"q\[1\] = .*: expected all exact numbers or all floats"):
        as_distribution(values, "q")


def test_wrong_length():
    with pytest.raises(ValueError, match="q has length 2: expected 3"):
        as_distribution(["1/2", "1/2"], "q", 3)


@pytest.mark.parametrize("gap", [-0.9e-9, 0.9e-9])
def test_float_sums_have_a_billionth_of_slack(gap):
    assert as_distribution([0.5, 0.5 + gap])[1] == 0.5 + gap


def test_nothing_to_normalise():
    with pytest.raises(ValueError, match=r"weights \(0, 0\) are all zero"):
        normalise(np.array([0, 0]))


def splits_target(correct, p, mu):
    """p is what is accepted of mu plus the rejections times their correction."""
    accepted = np.minimum(p, mu)
    if accepted.sum() == 1:
        return True
    return list(accepted + (1 - accepted.sum()) * correct(p, mu)) == list(p)


@given(TWO_ROWS, SCALES)
def test_residual_restores_the_target(rows, scale):
    p, q = rows
    assert splits_target(residual, p, q * scale)


def test_absolute_difference_is_no_residual(counterexample):
    def absolute(p, q):
        return normalise(abs(p - q))

    assert counterexample(TWO_ROWS, lambda rows: splits_target(absolute, *rows))


@given(ROWS)
def test_no_residual_after_certain_acceptance(p):
    with pytest.raises(ValueError, match=r"residual of p = .* is all zero"):
        residual(p, p)


@given(TWO_ROWS)
def test_overlap_is_one_minus_total_variation(rows):
    p, q = rows
    assert overlap(p, q) == 1 - total_variation(p, q)
    assert total_variation(dict(enumerate(p)), dict(enumerate(q))) == total_variation(p, q)
    assert (overlap(p, q) == 1) == (list(p) == list(q))


@given(TWO_ROWS)
def test_total_variation_is_the_largest_gap_of_an_event(rows):
    p, q = rows
    more = p > q
    assert total_variation(p, q) == p[more].sum() - q[more].sum()


def test_total_variation_of_mappings_with_other_keys():
    assert total_variation({"a": Fraction(1)}, {"a": Fraction(1, 3), "b": Fraction(2, 3)}) == (
        Fraction(2, 3)
    )


@given(ROWS)
def test_relabel_moves_mass_and_leaves_the_rest_out(q):
    ids = {source: len(q) - source for source in range(0, len(q), 2)}
    moved = relabel(q, ids, len(q) + 1)
    assert moved.sum() == q[::2].sum()
    assert all(moved[ids[source]] == q[source] for source in ids)


@given(ROWS, st.integers(1, 3))
def test_temperature_raises_to_a_power(p, power):
    assert list(with_temperature(p, Fraction(1, power))) == list(p**power / sum(p**power))


@given(ROWS)
def test_temperature_0_is_the_first_argmax(p):
    expected = [Fraction(token == list(p).index(max(p))) for token in range(len(p))]
    assert list(with_temperature(p, 0)) == expected


@given(ROWS, st.sampled_from([0.5, 0.7, 1.0, 2.5]))
def test_temperature_of_floats(p, temperature):
    weights = [float(value) ** (1 / temperature) for value in p]
    expected = [weight / math.fsum(weights) for weight in weights]
    cold = with_temperature(p.astype(np.float64), temperature)
    assert list(cold) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("p", "temperature", "message"),
    [
        (["1"], -1, "temperature = -1: expected a finite number >= 0"),
        ([1.0], math.nan, "temperature = nan: expected a finite number >= 0"),
        (["1/4", "3/4"], Fraction(2, 3), "temperature = 2/3: expected 1/n for exact"),
    ],
)
def test_bad_temperature(p, temperature, message):
    with pytest.raises(ValueError, match=message):
        with_temperature(as_distribution(p), temperature)


def test_tiny_temperature_is_nearly_argmax():
    assert with_temperature(np.array([0.4, 0.6]), 1e-4)[1] == pytest.approx(1)


def likelier(p, token):
    """The tokens that come before one: likelier, or as likely with a lower id."""
    return [t for t in range(len(p)) if p[t] > p[token] or (p[t] == p[token] and t < token)]


def keeps(p, kept):
    return [p[t] / sum(p[kept]) if t in kept else 0 for t in range(len(p))]


def is_top_k(filtered, p, k):
    return list(filtered(p, k)) == keeps(p, [t for t in range(len(p)) if len(likelier(p, t)) < k])


def nucleus(p, mass):
    return [t for t in range(len(p)) if sum(p[likelier(p, t)]) < mass]


def is_top_p(filtered, p, mass):
    return list(filtered(p, mass)) == keeps(p, nucleus(p, mass))


@given(ROWS, st.integers(1, 6))
def test_top_k(p, k):
    assert is_top_k(top_k, p, k)


@given(ROWS, MASSES)
def test_top_p(p, mass):
    assert is_top_p(top_p, p, mass)


def test_other_ties_are_rejected(counterexample):
    def holds(case):
        return is_top_k(planted.top_k_with_ties_to_the_higher_id, *case)

    assert counterexample(st.tuples(ROWS, st.integers(1, 6)), holds)


def test_other_nucleus_is_rejected(counterexample):
    def holds(case):
        return is_top_p(planted.top_p_without_the_crossing_token, *case)

    assert counterexample(st.tuples(ROWS, MASSES), holds)


def joint(p, k, mass):
    return keeps(p, [t for t in nucleus(p, mass) if len(likelier(p, t)) < k])


@given(ROWS, st.integers(1, 6), MASSES)
def test_joint_filters_judge_the_original(p, k, mass):
    assert list(top_k_top_p(p, k, mass, chained=False)) == joint(p, k, mass)


@given(ROWS, st.integers(1, 6), MASSES)
def test_chained_filters_judge_one_after_the_other(p, k, mass):
    after_k = np.array(keeps(p, [t for t in range(len(p)) if len(likelier(p, t)) < k]), object)
    assert list(top_k_top_p(p, k, mass, chained=True)) == keeps(after_k, nucleus(after_k, mass))


def test_chained_and_joint_differ(counterexample):
    def holds(case):
        return list(top_k_top_p(*case, chained=True)) == joint(*case)

    assert counterexample(st.tuples(ROWS, st.integers(1, 6), MASSES), holds)


@given(ROWS, st.integers(1, 6), MASSES)
def test_filters_agree_on_floats(p, k, mass):
    assume(all(sum(p[likelier(p, t)]) != mass for t in range(len(p))))
    floats = top_p(top_k(p.astype(np.float64), k), 1.0)
    assert list(floats) == pytest.approx([float(value) for value in top_k(p, k)])
    floats = top_p(p.astype(np.float64), float(mass))
    assert list(floats > 0) == list(top_p(p, mass) > 0)


@pytest.mark.parametrize(
    ("size", "shown"), [(8, "(0, 0, 0, 0, 0, 0, 0, 0)"), (9, "(0, 0, 0, 0, 0, 0, 0, 0, …)")]
)
def test_messages_show_eight_probabilities(size, shown):
    with pytest.raises(ValueError, match="all zero") as refused:
        normalise(np.zeros(size, dtype=int))
    assert f"weights {shown} are" in str(refused.value)


def test_fractions_of_numpy_integers_are_summed_without_overflow():
    primes = (1_000_003, 1_000_033, 1_000_037, 1_000_039)
    shares = [part for p in primes for part in ((1, 4 * p), (p - 1, 4 * p))]
    row = np.array([Fraction(np.int64(a), np.int64(b)) for a, b in shares], dtype=object)
    assert as_distribution(row).sum() == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([Fraction(1, 2), Fraction(1, 3)], "q sums to 5/6: expected 1 exactly"),
        ([Fraction(3, 2), Fraction(-1, 2)], r"q\[1\] = -1/2: expected a non-negative"),
        ([Fraction(1, 2)] * 2, "q has length 2: expected 3"),
    ],
)
def test_arrays_of_fractions_are_checked_as_lists_are(values, message):
    for row in (values, np.array(values, dtype=object)):
        with pytest.raises(ValueError, match=message):
            as_distribution(row, "q", 3 if "length" in message else 2)
