"""Where the conditions of a region hold, paths run as at its sample: tried at many rows.

Each program is run with numbers that stand for all rows, at a few samples. At every other row that
satisfies the conditions of the region, it is run again with fractions: all comparisons have to
come out as at the sample up to the first weight 0, and after one the product of the weights, as a
function, has to be 0.
"""

import itertools
import random
import statistics
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest

from specref import Vocabulary
from specref.proofs.everywhere import polynomials, signs
from specref.proofs.everywhere.number import Reading, TieError
from specref.proofs.everywhere.region import Region
from specref.proofs.everywhere.rows import Chart, Models, Row, Sample, Space
from specref.proofs.everywhere.solver import Counts, Solver

pytest.importorskip("z3", reason="not_run (z3 is not installed)")
LETTERS = Vocabulary("abc")
P, Q = Row("p", ()), Row("q", ())
Weigh = Callable[[Any], None]
Told = list[bool]


def accepted(p: Any, q: Any, weigh: Weigh) -> Told:
    weigh(q[0])
    told = [p[0] < q[0]]
    weigh(p[0] / q[0] if told[0] else p[0] - p[0] + 1)
    return told


def rejected(p: Any, q: Any, weigh: Weigh) -> Told:
    weigh(q[0])
    told = [p[0] < q[0]]
    if not told[0]:
        return told
    weigh(1 - p[0] / q[0])
    left = 0
    for x, y in zip(p, q, strict=True):
        told.append(x > y)
        if told[-1]:
            left = x - y + left
    if told[2]:
        weigh((p[1] - q[1]) / left)
    return told


def by_products(p: Any, q: Any, weigh: Weigh) -> Told:
    first, second = p[0] - q[0], p[1] - q[1]
    return [
        first * second > 0,
        p[2] * first * second <= 0,
        -2 * p[0] * q[1] * second < 0,
        first * first * second >= 0,
        q[2] * second >= 0,
        first * second != 0,
        (p[2] - q[2]) * first <= 0,
        -first / 3 >= 0,
        first * first * first * second < 0,
    ]


def by_quotients(p: Any, q: Any, weigh: Weigh) -> Told:
    first, second = p[0] - q[0], p[1] - q[1]
    return [
        p[0] / (p[0] + q[0]) < Fraction(1, 3),
        first / q[1] <= 0,
        first / second > -2,
        p[2] / (first * second) >= 0,
        1 / (q[0] * q[0]) > 5,
    ]


def a_weight_that_divides_later(p: Any, q: Any, weigh: Weigh) -> Told:
    """q(a) times p(b) / q(a): where q(a) = 0 the path is not there, and the function is p(b)."""
    weigh(q[0])
    told = [p[1] <= q[0]]
    weigh(p[1] / q[0] / 2 if told[0] else p[2])
    return told


def unchecked_quotient(p: Any, q: Any, weigh: Weigh) -> Told:
    weigh(q[0])
    weigh(p[1] / q[0] / 1000)
    return [p[2] > Fraction(1, 2)]


def squares_divide(p: Any, q: Any, weigh: Weigh) -> Told:
    weigh(q[0] * q[0] * p[2])
    weigh(p[1] / (q[0] * q[0]) / 1000)
    return [p[0] * q[2] > p[2] * q[0]]


def that_vanishes(p: Any, q: Any, weigh: Weigh) -> Told:
    weigh(q[0] * p[1])
    told = [p[2] <= q[0]]
    if told[0]:
        weigh(p[2] / q[0])
    return told


def of_a_difference(p: Any, q: Any, weigh: Weigh) -> Told:
    told = [p[0] > q[0]]
    if told[0]:
        weigh(p[0] - q[0])
        told.append(p[1] * (p[0] - q[0]) < q[1] * q[2])
        weigh(q[0] / (p[0] - q[0]) / 1000)
    return told


def of_a_negative_product(p: Any, q: Any, weigh: Weigh) -> Told:
    """Two factors below 0 in one weight; then what follows from it is used."""
    told = [p[0] < q[0]]
    if told[0]:
        weigh((p[0] - q[0]) * (q[1] - 1) / 2)
        told += [q[0] - p[0] > 0, (q[1] - 1) * (p[0] - q[0]) > 0, q[1] < 1]
    return told


def of_a_negative_difference(p: Any, q: Any, weigh: Weigh) -> Told:
    """That a weight is positive says the sign of its one factor."""
    if p[0] < q[0] and q[1] < p[1]:
        weigh((q[0] - p[0]) / 2)
        weigh((p[1] - q[1]) / 3)
    told = [(p[0] - q[0]) * (p[2] - q[2]) > 0, (p[1] - q[1]) * (p[2] - q[2]) > 0]
    return [*told, p[0] < q[0], p[1] > q[1]]


def of_two_signs(p: Any, q: Any, weigh: Weigh) -> Told:
    """The sample has p(a) < q(a), which the program does not ask."""
    weigh((q[0] - p[0]) / 2)
    return [(p[0] - q[0]) * (p[2] - q[2]) > 0]


def of_the_other_sign(p: Any, q: Any, weigh: Weigh) -> Told:
    """The same, where p(a) > q(a)."""
    weigh((p[0] - q[0]) / 2)
    return [(p[0] - q[0]) * (p[2] - q[2]) > 0]


UNASKED = of_two_signs, of_the_other_sign
PROGRAMS = (
    accepted, rejected, by_products, by_quotients, a_weight_that_divides_later,
    unchecked_quotient, squares_divide, that_vanishes, of_a_difference, of_a_negative_product,
    of_a_negative_difference,
)  # fmt: skip


def rows(rng: random.Random) -> Iterator[tuple[list[Fraction], list[Fraction]]]:
    """Rows of small denominators, so that many have zeros, ties and equal entries."""
    some = [
        [Fraction(a, n), Fraction(b, n), Fraction(n - a - b, n)]
        for n in (1, 2, 3, 4, 5)
        for a in range(n + 1)
        for b in range(n + 1 - a)
    ]
    drawn = []
    for _ in range(24):
        weights = [rng.randint(1, 40) for _ in range(3)]
        drawn.append([Fraction(weight, sum(weights)) for weight in weights])
    yield from itertools.product(some, some[:: rng.randint(2, 4)])
    yield from itertools.product(drawn, drawn)


class OfNoWeightError(Exception):
    """A path has a branch that is not taken at these rows."""


def with_fractions(program, p, q, expected):
    """What differs from the sample; empty if nothing does before a weight of 0."""
    told: Told = []

    def weigh(weight: Fraction) -> None:
        if weight <= 0:
            raise OfNoWeightError("weight below 0" if weight < 0 else "weight 0")

    try:
        told = program(p, q, weigh)
    except OfNoWeightError as error:
        return str(error)
    except ZeroDivisionError:
        return "raises"
    return "" if told == expected else f"{told}, expected {expected}"


def region_at(program, p, q):
    """The region of a sample; None at a tie."""
    space = Space(LETTERS, LETTERS, 0)
    given = dict(enumerate((*p[:2], *q[:2])))
    for row in (P, Q):
        space.entries(row)
    chart, solver = Chart(space, {}), Solver(Counts())
    sample = Sample(chart, given, "")
    models = Models(chart, reading := Reading(space.prime, sample.value))
    product = reading.constant(1)

    def weigh(weight: Any) -> None:
        nonlocal product
        if reading.sign(weight) <= 0:
            raise OfNoWeightError
        reading.events.append(("weight", weight, 0))
        product = product * weight

    try:
        told = program(models.numbers(P), models.numbers(Q), weigh)
    except (TieError, OfNoWeightError, ZeroDivisionError):
        return None
    region = Region(chart, sample, (), lambda clauses: solver.excluded(chart, clauses))
    weight = chart.form(product)
    region.add_path(reading.events, weight)
    return region, chart, weight, told


@pytest.mark.deep(one_in=16)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_where_the_conditions_hold_it_runs_as_at_the_sample(program: Callable[..., Told]) -> None:
    assert_runs_as_at_samples(program)


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("program", UNASKED, ids=lambda program: program.__name__)
def test_what_a_positive_weight_says_holds_at_the_other_rows(program: Callable[..., Told]) -> None:
    assert_runs_as_at_samples(program)


def assert_runs_as_at_samples(program: Callable[..., Told]) -> None:
    rng = random.Random(program.__name__)
    seen: list[str] = []
    inside: list[int] = []
    for p, q in list(rows(rng))[-576::24]:
        found = region_at(program, p, q)
        if found is None:
            continue
        region, chart, weight, told = found
        for p_there, q_there in rows(rng):
            there = Sample(chart, dict(enumerate((*p_there[:2], *q_there[:2]))), "")
            if not all(signs.of(there.sign(one)) & wanted for one, wanted in region.clauses):
                continue
            problem = with_fractions(program, p_there, q_there, told)
            if problem == "weight 0":
                assert weight.at(there.value) == 0, (p_there, q_there)
            elif problem == "weight below 0":  # the program should have compared before
                assert program in UNASKED, (p_there, q_there)
            else:
                assert problem == "", (p_there, q_there, region.clauses)
            seen.append(problem)
        own = Sample(chart, dict(enumerate((*p[:2], *q[:2]))), "")
        assert all(signs.of(own.sign(one)) & wanted for one, wanted in region.clauses)
        inside.append(len(seen) - sum(inside))
    assert min(inside) > 3
    assert statistics.median(inside) > 20
    assert seen.count("") > 500


def test_what_a_positive_weight_says_of_its_one_factor_is_no_condition() -> None:
    def one(p: Any, q: Any, weigh: Weigh) -> Told:
        weigh(q[0] - p[0])
        return [p[0] < q[0]]

    def two(p: Any, q: Any, weigh: Weigh) -> Told:
        weigh((q[0] - p[0]) * (p[2] - q[2]))
        return [p[0] < q[0]]

    half, quarter = Fraction(1, 2), Fraction(1, 4)
    for program, conditions in ((one, 0), (two, 1)):
        found = region_at(program, [quarter, quarter, half], [half, quarter, quarter])
        assert len(found[0].clauses) == conditions


def test_a_square_asks_for_no_sign_of_its_root() -> None:
    def square(p: Any, q: Any, weigh: Weigh) -> Told:
        return [(p[0] - q[0]) * (p[0] - q[0]) > 0]

    half, quarter = Fraction(1, 2), Fraction(1, 4)
    found = region_at(square, [half, quarter, quarter], [quarter, half, quarter])
    ((_, allowed),) = found[0].clauses
    assert allowed == signs.NONZERO


def test_what_is_known_of_the_parts_of_a_number_is_no_condition() -> None:
    """Where p(a) > q(a), p(b) + (p(a) - q(a)) is positive, though no factor is known to be."""

    def quotient(p: Any, q: Any, weigh: Weigh) -> Told:
        return [p[0] > q[0], (p[1] + (p[0] - q[0])) / (p[0] - q[0]) > 0]

    def product(p: Any, q: Any, weigh: Weigh) -> Told:
        return [p[0] > q[0], (p[1] + (p[0] - q[0])) * (p[0] - q[0]) > 0]

    half, quarter = Fraction(1, 2), Fraction(1, 4)
    for program in (quotient, product):
        found = region_at(program, [half, quarter, quarter], [quarter, half, quarter])
        assert len(found[0].clauses) == 1


def test_it_is_found_if_poles_are_taken_for_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Region, "_vanishes", lambda *_: True)
    with pytest.raises((AssertionError, ZeroDivisionError)):
        assert_runs_as_at_samples(unchecked_quotient)


@pytest.mark.parametrize(
    ("weight", "given", "required"),
    [
        ("p(b)", [], True),
        ("p(b) q(a)", [], False),
        ("p(b) / q(a)", [], True),
        # Where q(a) = 0, p(b) <= q(a) is 0, too.
        ("p(b)", ["p(b) <= q(a)"], False),
        ("p(b)^2", ["p(b) <= q(a)"], False),
        ("p(c)", ["p(b) <= q(a)"], True),
    ],
)
def test_a_divisor_may_be_0_only_where_the_weight_vanishes(weight, given, required):
    space = Space(LETTERS, LETTERS, 0)
    p, q = space.entries(P), space.entries(Q)
    chart, solver = Chart(space, {}), Solver(Counts())
    sample = Sample(chart, {0: Fraction(1, 2), 1: Fraction(1, 8), 2: Fraction(1, 3)}, "")
    functions = {
        "p(b)": p[1],
        "p(c)": p[2],
        "p(b) q(a)": polynomials.times(p[1], q[0]),
        "p(b) / q(a)": polynomials.ratio(p[1], q[0]),
        "p(b)^2": polynomials.times(p[1], p[1]),
    }
    difference, sign = polynomials.sign_polynomial(polynomials.difference(p[1], q[0]))
    below = signs.AT_MOST_ZERO if sign > 0 else signs.AT_LEAST_ZERO
    clauses = [(difference, below)] * len(given)
    region = Region(chart, sample, clauses, lambda asked: solver.excluded(chart, asked))
    reading = Reading(space.prime, sample.value)
    number = Models(chart, reading).numbers(Q)[0]
    region.add_path([("weight", number, 0), ("divisor", number, signs.NONZERO)], functions[weight])
    (variable,) = q[0].powers
    assert bool(region.clauses) == required
    assert bool(region.known(variable) & signs.ZERO) != required


def test_entries_of_a_row_are_known_to_be_no_less_than_zero() -> None:
    """Where p(a) = q(a), p(c) is 1 - q(a) - p(b), of two rows."""
    space = Space(LETTERS, LETTERS, 0)
    p, q = space.entries(P), space.entries(Q)
    (first,) = next(iter(p[0].powers)).variables
    chart = Chart(space, {first: q[0]})
    last = polynomials.substituted(next(iter(p[2].powers)), {first: q[0]})
    (polynomial,) = last.powers
    assert space.signs(polynomial) == signs.ANY
    region = Region(chart, Sample(chart, {}, "key"), (), lambda clauses: False)
    assert region.known(polynomial) == signs.AT_LEAST_ZERO
