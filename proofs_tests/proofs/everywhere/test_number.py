"""A number does what a Fraction does, records comparisons, and refuses what hides its value.

Primes are primes, and composites are not taken for them.
"""

import copy
import math
import random
from collections.abc import Callable
from fractions import Fraction
from operator import eq, ge, gt, le, lt, ne

import numpy as np
import pytest

from specref import Vocabulary
from specref.distributions import as_distribution, normalise, overlap, residual, top_k
from specref.proofs.everywhere import NotForAllError, signs
from specref.proofs.everywhere.number import (
    LARGEST_POWER,
    LARGEST_SIZE,
    MOST_COMPARED,
    Number,
    Reading,
    TieError,
    _is_prime,
    prime_of,
)
from specref.proofs.everywhere.rows import Chart, Models, Row, Sample, Space

ROOT = Row("p", ())
VALUES = {0: Fraction(1, 2), 1: Fraction(1, 3), 2: Fraction(1, 7), 3: Fraction(2, 7)}


@pytest.fixture
def models() -> Models:
    """p = (1/2, 1/3, 1/6) and q = (1/7, 2/7, 4/7)."""
    letters = Vocabulary("abc")
    space = Space(letters, letters, 0)
    space.entries(ROOT)
    space.entries(Row("q", ()))
    chart = Chart(space, {})
    return Models(chart, Reading(space.prime, Sample(chart, VALUES, "test").value))


def rows(models: Models) -> tuple[np.ndarray, np.ndarray]:
    return models.model("p").next_token(()), models.model("q").next_token(())


def values(vector: np.ndarray) -> list[Fraction]:
    return [entry.value if isinstance(entry, Number) else Fraction(entry) for entry in vector]


def test_the_projects_functions_give_the_values_of_fractions(models: Models) -> None:
    p, q = rows(models)
    exact = as_distribution(values(p)), as_distribution(values(q))
    assert values(residual(p, q)) == residual(*exact).tolist()
    assert values(normalise(p * 3)) == exact[0].tolist()
    assert overlap(p, q).value == overlap(*exact)
    assert values(top_k(p, 2)) == top_k(exact[0], 2).tolist()
    assert isinstance(as_distribution(p)[0], Number)


def test_a_row_that_sums_to_more_is_refused(models: Models) -> None:
    p, q = rows(models)
    with pytest.raises(ValueError, match="sums to"):
        as_distribution(p + q / 2)


def test_a_sum_of_one_is_seen_as_such(models: Models) -> None:
    p, _ = rows(models)
    events = len(models.reading.events)
    assert p.sum() == 1
    assert 1 - p[0] == p[1] + p[2]
    assert len(models.reading.events) == events


def test_comparisons_are_recorded_once_they_depend_on_rows(models: Models) -> None:
    p, q = rows(models)
    assert p[0] > q[0]
    assert not p[0] < q[0]
    assert [wanted for _, _, wanted in models.reading.events] == [4, 6]
    assert p[0] >= 0
    assert len(models.reading.events) == 2


def test_fractions_may_stand_on_the_left(models: Models) -> None:
    p, _ = rows(models)
    assert Fraction(1, 4) < p[0] <= Fraction(2, 3)
    assert Fraction(1, 3) != p[0]
    assert (Fraction(1, 4) + p[0]).value == Fraction(3, 4)
    assert (1 / p[0] ** 2).value == 4
    assert p[0] > 0.25
    assert p[0] < math.inf


@pytest.mark.parametrize("whole", range(4))
def test_products_with_what_is_a_whole_number_everywhere(models: Models, whole: int) -> None:
    p, _ = rows(models)
    number = p[0] - p[0] + whole
    assert (number * p[1]).value == (p[1] * number).value == Fraction(whole, 3)


def test_nothing_is_made_of_adding_zero_and_multiplying_by_one(models: Models) -> None:
    number, zero, one = rows(models)[0][0], *map(models.reading.constant, (0, 1))
    assert zero + number is number + zero is number
    assert one * number is number * one is number
    assert number * zero is zero * number is zero


def test_a_tie_at_the_sample_is_no_answer(models: Models) -> None:
    p, _ = rows(models)
    with pytest.raises(TieError):
        bool(p[1] == Fraction(1, 3))


@pytest.mark.parametrize(
    "act",
    [
        float,
        int,
        round,
        math.log,
        math.floor,
        hash,
        lambda x: x * 0.5,
        lambda x: x**0.5,
        lambda x: x // 2,
        lambda x: np.exp(np.array([x, x])),
        lambda x: np.array([x, x]).astype(float),
        lambda x: {x: 1},
        lambda x: x + 1j,
        lambda x: x * np.complex64(1),
        lambda x: x ** (LARGEST_POWER + 1),
        lambda x: f"{x:.3f}",
    ],
)
def test_what_hides_the_value_is_refused(models: Models, act) -> None:
    p, _ = rows(models)
    with pytest.raises(NotForAllError, match=r"expected|write"):
        act(p[0])


def test_what_is_no_number_is_left_to_its_own_operators(models: Models) -> None:
    p, _ = rows(models)
    assert values(p[0] + np.array([Fraction(1), Fraction(2)])) == [Fraction(3, 2), Fraction(5, 2)]
    assert values(p[0] - np.array([Fraction(1)])) == [Fraction(-1, 2)]
    assert (p[0] == "1/2", p[0] != "1/2") == (False, True)
    for other in ("1/2", 1j, np.complex64(1)):
        with pytest.raises(TypeError):
            p[0] < other  # noqa: B015


def test_integers_of_numpy_are_numbers(models: Models) -> None:
    p, _ = rows(models)
    assert (p[0] * np.int64(3)).value == Fraction(3, 2)
    assert (np.int64(3) - p[0]).value == Fraction(5, 2)
    assert (p[0] + np.True_).value == Fraction(3, 2)
    assert (p[0] ** LARGEST_POWER).value == Fraction(1, 2**LARGEST_POWER)


def test_a_copy_is_the_number_itself(models: Models) -> None:
    p, _ = rows(models)
    assert copy.copy(p[0]) is p[0]
    assert copy.deepcopy(p[0]) is p[0]


def test_numbers_of_two_runs_are_not_mixed(models: Models) -> None:
    p, _ = rows(models)
    other = Models(models.chart, Reading(models.reading.prime, models.reading.values))
    with pytest.raises(NotForAllError, match="earlier call"):
        p[0] + rows(other)[0][0]


def test_division_by_what_is_zero_everywhere(models: Models) -> None:
    p, _ = rows(models)
    with pytest.raises(ZeroDivisionError):
        p[0] / (p.sum() - 1)


def test_what_is_told_apart_by_residues_is_counted(models: Models) -> None:
    """The error that is printed is a bound by these sizes."""
    reading = models.reading
    (a, _, _), (_, b, _) = rows(models)
    zero, one = reading.constant(0), reading.constant(1)

    def counted(work: Callable[[], object]) -> int:
        before = reading.mistakes
        work()
        return reading.mistakes - before

    fresh = Reading(reading.prime, reading.values)
    assert fresh.mistakes == 0
    two = fresh.constant(2)
    before = fresh.mistakes
    fresh.sign(two)
    assert fresh.mistakes == before, "no other number has a sign yet"
    sizes = [reading.constant(one).size for one in (0, 1, -7, Fraction(5, 8), Fraction(-9, 2))]
    assert sizes == [1, 1, 3, 4, 4]
    both = a.size + b.size
    assert [(a + b).size, (a - b).size] == [both + 1, both + 1]
    assert [(a * b).size, (a / b).size] == [both, both]
    for made in (lambda: a + b, lambda: a - b, lambda: a * b):
        assert counted(made) == 3 * (made().size + 1)  # from 0, 1 and -1
    for simplified in (lambda: a + zero, lambda: a * zero, lambda: a * one, lambda: a / one):
        assert counted(simplified) == 0
    some, other = a - b, a * a - b
    bool(some)
    before = counted(lambda: bool(some))
    bool(other)  # the table of signs has this number now, and its opposite
    assert counted(lambda: bool(some)) == before + 2 * (some.size + 1) + 2 * other.size
    assert counted(lambda: a < b) == counted(lambda: bool(some)) + 3 * (some.size + 1)


def test_numbers_that_are_looked_up_are_told_apart_from_all_in_the_table(models: Models) -> None:
    (a, _, _), (_, b, _) = rows(models)
    chart, reading = models.chart, models.reading
    numbers = [a * a + b, a - b, a * b + b]
    for number in numbers:
        chart.form(number)
    before, stored = reading.mistakes, len(chart.forms)
    chart.form(numbers[1])
    assert stored >= 3
    assert reading.mistakes - before >= stored * (numbers[1].size + 1) + sum(
        one.size for one in numbers
    )


def test_programs_that_compare_for_ever_and_numbers_without_end_are_refused(models):
    reading = models.reading
    (a, _, _), (_, b, _) = rows(models)
    event = ("sign", a - b, signs.POSITIVE)
    reading.events[:] = [event] * MOST_COMPARED
    assert a > b
    with pytest.raises(NotForAllError, match="comparisons on one path"):
        assert a > b
    reading.events.clear()
    large = a
    while large.size <= LARGEST_SIZE:
        large = large * large
    with pytest.raises(NotForAllError, match="a degree above"):
        assert large > b


def test_only_what_cannot_be_negative_is_compared_without_a_record(models: Models) -> None:
    reading = models.reading
    (a, _, _), (_, b, _) = rows(models)
    apart = a - b  # positive at the sample

    def recorded(number: Number) -> bool:
        reading.events.clear()
        assert number >= 0
        return any(kind == "sign" for kind, _, _ in reading.events)

    for known in (a, a + b, a * b, a / b, a + reading.constant(2), (a + b) / (a * b)):
        assert known.nonnegative
        assert not recorded(known)
    for unknown in (apart, a + apart, apart + a, a * apart, apart * a, a / apart, apart / b):
        assert not unknown.nonnegative
        assert recorded(unknown)
    assert not (apart * apart).nonnegative
    assert reading.constant(0).nonnegative
    assert not reading.constant(-1).nonnegative


def test_infinities_and_nan_compare_as_with_fractions(models: Models) -> None:
    (a, _, _), _ = rows(models)
    for value in (math.inf, -math.inf, math.nan, np.float64("inf"), np.float64("nan")):
        for compare in (lt, le, gt, ge, eq, ne):
            assert compare(a, value) == compare(Fraction(1, 2), value), (compare, value)
            assert compare(value, a) == compare(value, Fraction(1, 2)), (compare, value)
    assert models.reading.events == []
    assert +a is a


SMALL = [n for n in range(2, 2000) if all(n % d for d in range(2, int(n**0.5) + 1))]


@pytest.mark.parametrize("seed", range(3))
def test_a_random_prime_passes_the_test_of_fermat_and_small_divisors(seed: int) -> None:
    prime = prime_of(seed)
    assert prime.bit_length() == 224
    assert all(prime % small for small in SMALL)
    assert all(pow(base, prime - 1, prime) == 1 for base in (2, 3, 5, 7, 11))


def test_seeds_give_their_own_primes() -> None:
    assert prime_of(0) == prime_of.__wrapped__(0)
    assert len({prime_of(seed) for seed in range(4)}) == 4


def test_odd_numbers_are_told_apart() -> None:
    """Also those of which most bases of the test of Fermat say that they are prime."""
    rng = random.Random(1)
    assert [n for n in range(5, 2000, 2) if _is_prime(n, rng)] == SMALL[2:]
    assert not any(_is_prime(carmichael, rng) for carmichael in (561, 1105, 1729, 252601, 3828001))


def test_a_seed_has_the_same_prime_on_every_machine() -> None:
    assert prime_of(0) % 10**12 == 789_174_712_293
