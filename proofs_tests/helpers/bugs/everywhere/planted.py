"""Bugs that act on few rows: a condition, and what is done wrong where it holds."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from specref.algorithms.decoding import Step
from specref.models import Model
from specref.zoo.parts.standard import Position, acceptance, speculative

Condition = Callable[[Position], Any]


def over_accepting(when: Condition) -> Step:
    """Accepts halfway between min(1, p / q) and 1."""
    return speculative(
        accept=lambda at: (1 + acceptance(at)) / Fraction(2) if when(at) else acceptance(at)
    )


def bonus_from_q(when: Condition) -> Step:
    """Draws the bonus token from the drafter's row; `when` is asked at the first draft."""
    return speculative(bonus=lambda at: at.q if when(at.to(0)) else at.p)


def uniform_residual(when: Condition) -> Step:
    """Draws the residual from p."""
    from specref.distributions import corrected

    return speculative(recover=lambda at: at.p if when(at) else corrected(at.p, at.q))


@dataclass(frozen=True)
class Planted:
    """A bug, where it acts, and the share of all rows where that is (0: a face)."""

    make: Callable[[Condition], Step]
    when: Condition
    volume: float
    tokens: str = "ab"
    lookahead: int = 1

    @property
    def step(self) -> Step:
        return self.make(self.when)


def f(text: str) -> Fraction:
    return Fraction(text)


def next_p(at: Position, *context: int) -> Any:
    return at.target.next_token(context)


def next_q(at: Position, *context: int) -> Any:
    return at.drafter.next_token(context)


SMALL = Fraction(1, 1000)
PLANTED = {
    "two corners": Planted(
        over_accepting, lambda at: at.p[0] > f("97/100") and at.q[1] ** 2 > f("9/10"), 1.5e-3
    ),
    "small corners": Planted(
        over_accepting, lambda at: at.p[0] > 1 - SMALL and at.q[1] > 1 - SMALL, 1e-6
    ),
    "corners of three rows": Planted(
        over_accepting,
        lambda at: at.p[0] > 1 - SMALL and at.q[1] > 1 - SMALL and next_p(at, 0)[0] > 1 - SMALL,
        1e-9,
    ),
    "determinant": Planted(
        over_accepting, lambda at: at.p[0] * at.q[1] - at.p[1] * at.q[0] > f("9/10"), 5e-3
    ),
    "disc": Planted(over_accepting, lambda at: at.q[0] ** 2 + at.p[0] ** 2 < f("1/100"), 8e-3),
    "ring": Planted(
        over_accepting, lambda at: abs(at.p[0] ** 2 + at.q[0] ** 2 - f("1/4")) < SMALL, 1.6e-3
    ),
    "near a half": Planted(over_accepting, lambda at: at.p[0] * at.p[1] > f("2499/10000"), 2e-2),
    "ratio in a band": Planted(
        over_accepting, lambda at: f("1/2") < at.px / at.qx < f("501/1000"), 2e-3
    ),
    "rows of two contexts": Planted(
        over_accepting,
        lambda at: at.i == 0 and next_p(at, 0)[0] + next_q(at, 1)[0] > f("199/100"),
        5e-5,
        lookahead=2,
    ),
    "product of rows": Planted(
        over_accepting, lambda at: at.p[0] * at.q[1] * next_p(at, 0)[1] > f("9/10"), 2e-4
    ),
    "slab": Planted(
        over_accepting, lambda at: f("2/7") < at.p[0] < f("2/7") + f("1/1000000000"), 1e-9
    ),
    "second draft": Planted(
        over_accepting, lambda at: at.i == 1 and at.px / at.qx < f("1/500"), 1e-3, lookahead=2
    ),
    "small residual": Planted(
        uniform_residual, lambda at: np.maximum(at.p - at.q, 0).sum() < SMALL, 2e-3
    ),
    "near the drafter": Planted(
        bonus_from_q, lambda at: abs(at.p - at.q).sum() < f("1/500"), 2e-3
    ),
    "argmax": Planted(
        over_accepting,
        lambda at: np.argmax(at.p) != np.argmax(at.q) and at.p.max() > f("98/100"),
        8e-4,
        tokens="abc",
    ),
    "corner of three tokens": Planted(
        over_accepting,
        lambda at: at.p[0] < SMALL and at.p[1] < SMALL and at.q[2] < SMALL,
        2e-9,
        tokens="abc",
    ),
    "equal rows": Planted(bonus_from_q, lambda at: (at.p == at.q).all(), 0),
    "zero": Planted(bonus_from_q, lambda at: at.p[0] == 0, 0),
    "two zeros": Planted(bonus_from_q, lambda at: at.p[0] == 0 and at.q[0] == 0, 0),
    "tie": Planted(bonus_from_q, lambda at: at.p[0] == at.p[1], 0),
    "point mass": Planted(bonus_from_q, lambda at: at.p[0] == 1, 0),
    "one value": Planted(bonus_from_q, lambda at: at.p[0] == f("1/3"), 0),
    "curve": Planted(bonus_from_q, lambda at: at.p[0] * at.q[1] == at.p[1] ** 2, 0),
    "rows of two contexts equal": Planted(
        bonus_from_q, lambda at: (next_p(at, 0) == next_p(at, 1)).all(), 0
    ),
    "crossed tie": Planted(bonus_from_q, lambda at: at.p[0] == at.q[1], 0),
    "tie of three": Planted(
        bonus_from_q, lambda at: at.p[0] == at.q[0] and at.p[1] == at.p[2], 0, tokens="abc"
    ),
    "support": Planted(
        bonus_from_q,
        lambda at: np.count_nonzero(at.p) == 2 and np.count_nonzero(at.q) == 2,
        0,
        tokens="abc",
    ),
}


def in_corner(target: Model, drafter: Model) -> bool:
    """Of volume 1e-8: rows that are drawn at random are not in it."""
    p, q = target.next_token(())[0], drafter.next_token(())[0]
    near = Fraction(7, 10)
    return near < p < near + Fraction(1, 10**4) and near < q < near + Fraction(1, 10**4)
