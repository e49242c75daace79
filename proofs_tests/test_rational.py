"""Fractions in C are those of the standard library, and where there are none, those are used."""

import fractions
import operator
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specref.rational import Fraction, is_fraction

NUMBERS = st.fractions() | st.integers(-(10**30), 10**30)
ARITHMETIC = (operator.add, operator.sub, operator.mul, operator.truediv)
COMPARISONS = (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge)


@pytest.mark.parametrize("asked", [*ARITHMETIC, *COMPARISONS], ids=lambda one: one.__name__)
@given(left=NUMBERS, right=NUMBERS)
def test_they_are_what_the_standard_library_says(
    asked: Callable[[Any, Any], Any], left: Any, right: Any
) -> None:
    if asked is operator.truediv and not right:
        return
    wanted = asked(fractions.Fraction(left), fractions.Fraction(right))
    for pair in (
        (Fraction(left), Fraction(right)),
        (Fraction(left), right),
        (left, Fraction(right)),
        (Fraction(left), fractions.Fraction(right)),
        (fractions.Fraction(left), Fraction(right)),
    ):
        found = asked(*pair)
        assert found == wanted
        assert (str(found), hash(found), float(found)) == (
            str(wanted),
            hash(wanted),
            float(wanted),
        )


def test_both_kinds_are_fractions_and_nothing_else_is() -> None:
    assert all(map(is_fraction, (Fraction(1, 3), fractions.Fraction(2))))
    assert not any(map(is_fraction, (1, True, 0.5, "1/2", None)))


WITHOUT = """
import sys
sys.modules["quicktions"] = None
import fractions
from specref import exact_distribution, prove
from specref.algorithms import block
from specref.rational import Fraction
assert Fraction is fractions.Fraction
report = prove(block.step, only=["lookaheads"])
print(report.proved, report.refuted, report.raised)
"""


def test_without_quicktions_the_same_is_proved() -> None:
    with_it = WITHOUT.replace('sys.modules["quicktions"] = None', "").replace(
        "assert Fraction is fractions.Fraction", "assert Fraction is not fractions.Fraction"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        for code in (WITHOUT, with_it)
    ]
    assert printed[0] == printed[1]
    assert int(printed[0].split()[0]) > 0
