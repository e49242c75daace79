"""Rational functions as products: values, factors, substitution."""

import random
from fractions import Fraction
from functools import reduce
from itertools import product

import pytest

from specref.proofs.everywhere import polynomials, signs
from specref.proofs.everywhere.signs import signs_over_rows

X, Y, Z = (polynomials.variable(v) for v in range(3))
POINT = [Fraction(2, 7), Fraction(-3, 5), Fraction(11, 13)]
PRIME = 2**61 - 1


def random_form(rng: random.Random, depth: int) -> polynomials.Product:
    if depth == 0:
        constant = polynomials.constant(Fraction(rng.randint(1, 9), rng.randint(1, 9)))
        return rng.choice([X, Y, Z, constant])
    a, b = random_form(rng, depth - 1), random_form(rng, depth - 1)
    operation = rng.choice([polynomials.plus, polynomials.difference, polynomials.times])
    return operation(a, b)


def value_of(form: polynomials.Product) -> Fraction:
    return form.at(POINT.__getitem__)


@pytest.mark.parametrize("seed", range(40))
def test_operations_are_those_of_values(seed: int) -> None:
    rng = random.Random(seed)
    a, b = random_form(rng, 3), random_form(rng, 3)
    for operation, expected in (
        (polynomials.plus, value_of(a) + value_of(b)),
        (polynomials.difference, value_of(a) - value_of(b)),
        (polynomials.times, value_of(a) * value_of(b)),
    ):
        assert value_of(operation(a, b)) == expected
    if b.coefficient and value_of(b):
        assert value_of(polynomials.ratio(a, b)) == value_of(a) / value_of(b)


@pytest.mark.parametrize("seed", range(20))
def test_residues_are_those_of_values(seed: int) -> None:
    form = random_form(random.Random(seed), 4)
    residues = [x.numerator * pow(x.denominator, -1, PRIME) % PRIME for x in POINT]
    value = value_of(form)
    expected = value.numerator * pow(value.denominator, -1, PRIME) % PRIME
    assert form.modulo(residues.__getitem__, PRIME) == expected


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (polynomials.constant(Fraction(3, 4)), "3/(4)"),
        (polynomials.times(polynomials.constant(Fraction(3, 4)), X), "3·x0/(4)"),
        (polynomials.ratio(polynomials.constant(Fraction(1, 4)), X), "1/(4·x0)"),
        (polynomials.ratio(polynomials.times(X, polynomials.plus(X, Y)), Z), "x0·(x0 + x1)/(x2)"),
        (polynomials.times(polynomials.constant(Fraction(-1)), X), "-1·x0"),
        (polynomials.NOTHING, "0"),
    ],
)  # fmt: skip
def test_a_form_is_shown_as_it_is_written_with_numbers_first(form, text: str) -> None:
    assert str(form) == text


def test_equal_functions_are_equal_forms() -> None:
    one = polynomials.ratio(
        polynomials.difference(polynomials.times(X, X), polynomials.times(X, Y)), X
    )
    assert str(one) == str(polynomials.difference(X, Y))


def test_a_linear_polynomial_falls_into_its_factors() -> None:
    one = polynomials.constant(Fraction(1))
    product = polynomials.times(polynomials.difference(one, X), polynomials.difference(Y, Z))
    expanded = polynomials.plus(product, polynomials.constant(Fraction(0)))
    total = polynomials.difference(polynomials.plus(expanded, one), one)
    assert len(total.powers) == 2
    assert value_of(total) == value_of(product)


@pytest.mark.parametrize("seed", range(20))
def test_substitution_is_that_of_values(seed: int) -> None:
    rng = random.Random(seed)
    form, inner = random_form(rng, 3), random_form(rng, 2)
    inner = polynomials.replaced(inner, {0: Y})
    moved = polynomials.replaced(form, {0: inner})
    point = [value_of(inner), *POINT[1:]]
    assert value_of(moved) == form.at(point.__getitem__)


@pytest.mark.parametrize("seed", range(20))
def test_the_sign_polynomial_has_the_sign(seed: int) -> None:
    rng = random.Random(seed)
    form = polynomials.ratio(
        random_form(rng, 3), polynomials.plus(polynomials.times(X, X), polynomials.times(Y, Y))
    )
    if form.powers:
        polynomial, sign = polynomials.sign_polynomial(form)
        value = polynomial.at(POINT.__getitem__) * sign
        assert (value > 0) == (value_of(form) > 0)


def test_linear_parts() -> None:
    ((polynomial, _),) = polynomials.plus(polynomials.times(X, Y), Z).powers.items()
    parts = polynomials.linear_in(polynomial, 0)
    assert (str(parts[0]), str(parts[1])) == ("x1", "x2")
    ((square, _),) = polynomials.plus(polynomials.times(X, X), Z).powers.items()
    assert polynomials.linear_in(square, 0) is None


def random_polynomial(rng: random.Random) -> polynomials.Product:
    """Up to four terms in x, y, z, of degree up to 3."""
    monomials = [tuple(sorted(rng.choices(range(3), k=rng.randint(0, 3)))) for _ in range(4)]
    return polynomials.product_of({one: rng.randint(-5, 5) for one in monomials})


def sum_of_squares(a: polynomials.Product, sign: int) -> polynomials.Product:
    """w^2 + a^2 or w^2 - a^2, expanded and factored."""
    w, operation = polynomials.variable(7), polynomials.plus
    if sign < 0:
        operation = polynomials.difference
    return operation(polynomials.times(w, w), polynomials.times(a, a))


def factors(form: polynomials.Product) -> int:
    return sum(form.powers.values())


@pytest.mark.parametrize("seed", range(60))
def test_a_difference_of_squares_has_two_factors_and_a_sum_has_one(seed: int) -> None:
    root = random_polynomial(random.Random(seed))
    if not root.powers:
        return
    both = sum_of_squares(root, -1)
    assert factors(both) == 2
    at = {**dict(enumerate(POINT)), 7: Fraction(5, 3)}.__getitem__
    assert both.at(at) == Fraction(25, 9) - root.at(at) ** 2
    assert factors(sum_of_squares(root, 1)) == 1


def test_signs_over_rows_are_those_at_rows() -> None:
    """x and y are entries of a row, z of another; five pairs of rows for each polynomial."""
    rng = random.Random(0)
    forms = [random_polynomial(rng) for _ in range(200)]
    for form in forms * 5:
        first, second = ([rng.choice((0, 0, 1, 5)) for _ in range(size)] for size in (3, 2))
        first[0], second[0] = first[0] + (not any(first)), second[0] + (not any(second))
        values = [Fraction(one, sum(first)) for one in first[:2]]
        values.append(Fraction(second[0], sum(second)))
        for polynomial in form.powers:
            value = polynomial.at(values.__getitem__)
            known = signs_over_rows(polynomial, lambda v: v == 2)
            assert signs.of((value > 0) - (value < 0)) & known


def test_signs_over_rows_are_seen_where_no_sample_tells() -> None:
    """x (1 - x - y) + y z, which is 0 at corners; and that plus 1."""
    rest = polynomials.difference(polynomials.difference(polynomials.ONE, X), Y)
    (some,) = polynomials.plus(polynomials.times(X, rest), polynomials.times(Y, Z)).powers
    (more,) = polynomials.plus(polynomials.Product(Fraction(1), {some: 1}), polynomials.ONE).powers
    assert signs_over_rows(some, lambda v: v == 2) == signs.AT_LEAST_ZERO
    assert signs_over_rows(more, lambda v: v == 2) == signs.POSITIVE


@pytest.mark.parametrize("seed", range(40))
def test_rational_roots_in_one_variable_are_taken_out(seed: int) -> None:
    rng = random.Random(seed)
    ends = [(rng.randint(1, 6), rng.choice((-5, -2, -1, 1, 3, 4))) for _ in range(3)]
    linear = [polynomials.product_of({(0,): a, (): b}) for a, b in ends]
    square = polynomials.product_of({(0, 0): 1, (): rng.randint(1, 9)})
    expected = reduce(polynomials.times, [*linear, square])
    terms = {(): 1}
    for one in (*linear, square):
        ((polynomial, _),) = one.powers.items()
        terms = multiplied(terms, dict(polynomial.terms))
    found = polynomials.product_of(terms)
    assert found.powers == expected.powers
    assert factors(found) == 4


def test_what_has_no_rational_root_is_left() -> None:
    for terms in ({(0, 0, 0): 1, (): -2}, {(0, 0, 0): 1, (): -(10**6)}):
        assert factors(polynomials.product_of(terms)) == 1


def multiplied(a: dict[tuple[int, ...], int], b: dict[tuple[int, ...], int]) -> dict:
    found: dict[tuple[int, ...], int] = {}
    for (left, c), (right, d) in product(a.items(), b.items()):
        found[left + right] = found.get(left + right, 0) + c * d
    return found
