"""Lossy rules that were written in order to be called proved."""

import contextlib
import copy
import math
import pickle
import random
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from proofs_tests.helpers.bugs.everywhere.planted import bonus_from_q, over_accepting
from specref.algorithms import standard
from specref.algorithms.decoding import Step
from specref.chance import Chance, shown
from specref.distributions import corrected
from specref.models import Model
from specref.proofs.everywhere.rows import Space
from specref.proofs.everywhere.walk import Walk
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo.parts.standard import Position, speculative

HUGE, EDGE = 2**127 - 1, Fraction(1, 1000)


@dataclass(frozen=True)
class Attack:
    """A rule, how it hides, and what comes of it: a verdict, or the name of an error."""

    step: Step
    hides: str
    comes: str


def first_token(when: Callable[[Any], Any]) -> Step:
    """Says token 0 where a condition on the target's first row holds."""

    def step(
        target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> Tokens:
        if when(target.next_token(context)):
            return (0,)
        return standard.step(target, drafter, context, lookahead, chance)

    return step


def hidden_exceptions(p: Any) -> bool:
    try:
        return bool(p[0] > Fraction(99, 100))
    except BaseException:
        return False


def converted(p: Any) -> bool:
    try:
        return float(p[0]) > 0.99
    except Exception:
        return False


def parsed(p: Any) -> bool:
    try:
        return Fraction(str(p[0])) > Fraction(99, 100)
    except ValueError:
        return False


def hidden(when: Callable[[Any], Any]) -> Step:
    """As `first_token`, and no error of the condition is seen."""

    def quiet(p: Any) -> bool:
        try:
            return bool(when(p))
        except Exception:
            return False

    return first_token(quiet)


def float_weights(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    """Where p is nearly one token, asks chance with floats; catches what that raises."""
    if target.next_token(context)[0] > Fraction(99, 100):
        with contextlib.suppress(TypeError):
            return (chance.draw(np.array([0.5, 0.5]), "float"),)
    return standard.step(target, drafter, context, lookahead, chance)


def for_enumeration(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    """Draws from q, but where it is proved for all rows."""
    if isinstance(chance, Walk):
        return standard.step(target, drafter, context, lookahead, chance)
    return (chance.draw(drafter.next_token(context), "draft[0]"),)


def far_apart(at: Position) -> Any:
    p, q = at.target.next_token((0,)), at.drafter.next_token((1,))
    return p[0] * at.q[1] > Fraction(97, 100) * at.p[0] + Fraction(1, 100) and 10 * q[0] ** 3 > 9


def looked_up(p: Any) -> bool:
    return p[0] in {Fraction(1, 3): True, Fraction(2, 3): True}


def vectorised(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    """Divides by every q, also by that of tokens that were not drafted."""
    p, q = target.next_token(context), drafter.next_token(context)
    draft = chance.draw(q, "draft[0]")
    ratios = p / q
    if chance.accept(min(ratios[draft], 1), "accept[0]"):
        return (draft, chance.draw(target.next_token((*context, draft)), "bonus"))
    return (chance.draw(standard.corrected(p, q), "residual"),)  # type: ignore[attr-defined]


def longer_block(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    """Emits one token too many where p is nearly one token."""
    block = standard.step(target, drafter, context, lookahead, chance)
    return (*block, 0) if target.next_token(context)[0] > Fraction(999, 1000) else block


class Third:
    """Equal to the Fraction 1/3, and to nothing else."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fraction) and 3 * other == 1

    def __hash__(self) -> int:
        return hash(Fraction(1, 3))


class Counting:
    """Wrong in the millionth call: state that no second run shows."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(
        self, target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> Tokens:
        self.calls += 1
        if self.calls % 1_000_000 == 0:
            return (0,)
        return standard.step(target, drafter, context, lookahead, chance)


class Alternating:
    """Wrong in every other call."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(
        self, target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> Tokens:
        self.calls += 1
        if self.calls % 2:
            return (0,)
        return standard.step(target, drafter, context, lookahead, chance)


def by_itself(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    if random.random() < 0.5:
        return (0,)
    return standard.step(target, drafter, context, lookahead, chance)


def compensated(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    """The first token is right, the second is drawn from q where the first rows are equal."""
    p, q = target.next_token(context), drafter.next_token(context)
    first = chance.draw(p, "target[0]")
    model = drafter if (p == q).all() else target
    return (first, chance.draw(model.next_token((*context, first)), "target[1]"))


def in_message(p: Any, chance: Chance) -> bool:
    """Reads the number from the message of an error of chance."""
    try:
        chance.draw(np.array([p[0]], dtype=object), "short")
    except ValueError as error:
        said = re.search(r"sum to <?([0-9/]+)", str(error))
        return said is not None and Fraction(said[1]) > Fraction(9999, 10_000)
    return False


def by_message(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    if in_message(target.next_token(context), chance):
        return (0,)
    return standard.step(target, drafter, context, lookahead, chance)


def leaving(p: Any) -> bool:
    if p[0] > Fraction(9999, 10_000):
        sys.exit(0)
    return False


def unchecked(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    """Asks chance past its checks, with weights of a sum above 1 where p is nearly one token."""
    p = target.next_token(context)
    more = np.maximum(p[0] - Fraction(9999, 10_000), 0)
    choice = chance.choose([*p, more], "unchecked")
    return (choice if choice < len(p) else 0,)


PRIME = Space(Vocabulary("ab"), Vocabulary("ab"), 0).prime


def tall(at: Position) -> Any:
    return at.p[0] ** 8 > Fraction(1, 2) and at.q[1] ** 8 > Fraction(1, 2)


ATTACKS = {
    "hidden exceptions": Attack(
        first_token(hidden_exceptions), "catches what a comparison raises", "lossy"
    ),
    "conversion": Attack(first_token(converted), "converts, and catches the error", "error"),
    "text": Attack(first_token(parsed), "reads the number from its text", "error"),
    "dictionary": Attack(first_token(looked_up), "looks a number up", "error"),
    "logarithm": Attack(first_token(lambda p: math.log(p[0]) > -0.01), "a logarithm", "error"),
    "sorting": Attack(first_token(lambda p: sorted(p)[1] > Fraction(999, 1000)), "sorts", "lossy"),
    "order": Attack(
        first_token(lambda p: np.argsort(p)[0] == 1 and p[1] < Fraction(1, 1000)),
        "compares inside of NumPy",
        "lossy",
    ),
    "huge coefficient": Attack(
        bonus_from_q(lambda at: HUGE * at.p[0] == 1),
        "acts where 2^127 - 1 times a number is 1",
        "lossy",
    ),
    "multiple of a prime": Attack(
        over_accepting(lambda at: HUGE * (at.p[0] - at.q[0]) > HUGE * Fraction(99, 100)),
        "differences that are 0 modulo a known prime",
        "lossy",
    ),
    "degree 8": Attack(over_accepting(tall), "eighth powers", "lossy"),
    "circle": Attack(
        bonus_from_q(lambda at: at.p[0] ** 2 + at.q[0] ** 2 == 1), "on a circle only", "open"
    ),
    "curve": Attack(
        bonus_from_q(lambda at: at.p[0] * at.q[1] == at.p[1] * at.q[0] ** 2),
        "on a curve only",
        "lossy",
    ),
    "point": Attack(
        bonus_from_q(
            lambda at: at.p[0] == Fraction(1, 3) and at.q[0] == Fraction(2, 7) and at.p[1] > 0
        ),
        "at one pair of rows only",
        "lossy",
    ),
    "second token": Attack(compensated, "right in the first token, on p = q wrong after", "lossy"),
    "division": Attack(vectorised, "divides by a q that may be 0, of another token", "lossy"),
    "longer block": Attack(longer_block, "a block longer than lookahead + 1", "lossy"),
    "every other call": Attack(Alternating(), "counts its calls", "error"),
    "millionth call": Attack(Counting(), "counts its calls to a million", "proved"),
    "own randomness": Attack(by_itself, "draws from another source than chance", "error"),
    "kind of number": Attack(
        first_token(lambda p: isinstance(p[0], Fraction) and p[0] > Fraction(9999, 10_000)),
        "asks whether it is given Fractions",
        "proved",
    ),
    "hidden kind": Attack(
        hidden(lambda p: Fraction(p[0]) > Fraction(9999, 10_000)),
        "makes a Fraction of the number, and catches the error",
        "proved",
    ),
    "kind after a rejection": Attack(
        speculative(
            recover=lambda at: at.p if isinstance(at.p[0], Fraction) else corrected(at.p, at.q)
        ),
        "asks for the kind of number on some paths",
        "error",
    ),
    "kind of chance": Attack(for_enumeration, "asks whether it is proved for all rows", "error"),
    "copy": Attack(
        first_token(lambda p: copy.deepcopy(p)[0] > Fraction(99, 100)), "compares a copy", "lossy"
    ),
    "pickle": Attack(
        hidden(lambda p: pickle.loads(pickle.dumps(p))[0] > Fraction(99, 100)),
        "compares what it has pickled",
        "error",
    ),
    "complex number": Attack(
        first_token(lambda p: p[0] == 0.5 + 0j), "asks for equality with a complex number", "lossy"
    ),
    "decimal": Attack(
        first_token(lambda p: p[0] > Decimal("0.999")), "compares with a decimal", "lossy"
    ),
    "truth value": Attack(
        first_token(lambda p: p[1] == np.bool_(True)), "compares with a truth value", "lossy"
    ),
    "own kind of number": Attack(
        hidden(lambda p: p[0] == Third()), "compares with a number of its own", "error"
    ),
    "hidden float": Attack(
        hidden(lambda p: p[0] * 1.0 > 0.99),
        "multiplies by a float, and catches the error",
        "error",
    ),
    "hidden attribute": Attack(
        hidden(lambda p: p[0].real > Fraction(99, 100)),
        "asks for the real part, and catches the error",
        "error",
    ),
    "hidden weights": Attack(
        float_weights, "asks chance with floats, and catches the error", "error"
    ),
    "message": Attack(by_message, "reads the number from the message of an error", "error"),
    "text by the project": Attack(
        hidden(lambda p: Fraction(shown([p[0]]).strip("<>")) > Fraction(9999, 10_000)),
        "has the number written by a function of the project",
        "error",
    ),
    "hidden value": Attack(
        first_token(lambda p: getattr(p[0], "value", p[0]) > Fraction(9999, 10_000)),
        "reads the sample behind the number",
        "proved",
    ),
    "exit": Attack(first_token(leaving), "ends the program with exit code 0", "error"),
    "past the checks": Attack(unchecked, "asks chance for weights of a sum above 1", "error"),
    "known prime": Attack(
        first_token(lambda p: PRIME * p[0] > PRIME * Fraction(9999, 10_000)),
        "differences that are 0 modulo the prime of seed 0",
        "proved",
    ),
    "isolated point": Attack(
        bonus_from_q(
            lambda at: (at.p[0] - Fraction(1, 3)) ** 2 + (at.q[0] - Fraction(2, 7)) ** 2 <= 0
        ),
        "where a sum of squares is 0",
        "lossy",
    ),
    "tiny number": Attack(
        first_token(lambda p: 0 < p[0] < Fraction(1, 2**200)), "acts below 2^-200", "lossy"
    ),
    "search": Attack(
        first_token(lambda p: np.searchsorted(np.array([EDGE, EDGE + EDGE]), p[1]) == 1),
        "searches inside of NumPy",
        "lossy",
    ),
    "four rows": Attack(
        over_accepting(far_apart), "a condition on four rows, of degree 3", "lossy"
    ),
    "larger vocabulary": Attack(first_token(lambda p: len(p) > 20), "is wrong above 20", "proved"),
}
