"""Rational functions as products: values, factors, substitution."""

import random
from fractions import Fraction

import pytest

from specref.proofs.everywhere import polynomials

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
    assert parts is not None
    assert (str(parts[0]), str(parts[1])) == ("x1", "x2")
    ((square, _),) = polynomials.plus(polynomials.times(X, X), Z).powers.items()
    assert polynomials.linear_in(square, 0) is None
