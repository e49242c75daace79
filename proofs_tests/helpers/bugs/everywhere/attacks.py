"""Lossy rules that were written in order to be called proved; names say by what they hide."""

import contextlib
import copy
import math
import pickle
import random
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

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


class Attack(NamedTuple):
    """A rule, and what comes of it: a verdict, or ``error``."""

    step: Step
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
    "hidden exceptions": Attack(first_token(hidden_exceptions), "lossy"),
    "conversion": Attack(first_token(converted), "error"),
    "text": Attack(first_token(parsed), "error"),
    "dictionary": Attack(first_token(looked_up), "error"),
    "logarithm": Attack(first_token(lambda p: math.log(p[0]) > -0.01), "error"),
    "sorting": Attack(first_token(lambda p: sorted(p)[1] > Fraction(999, 1000)), "lossy"),
    "order": Attack(
        first_token(lambda p: np.argsort(p)[0] == 1 and p[1] < Fraction(1, 1000)), "lossy"
    ),
    "huge coefficient": Attack(bonus_from_q(lambda at: HUGE * at.p[0] == 1), "lossy"),
    "multiple of a prime": Attack(
        over_accepting(lambda at: HUGE * (at.p[0] - at.q[0]) > HUGE * Fraction(99, 100)), "lossy"
    ),
    "degree 8": Attack(over_accepting(tall), "lossy"),
    "circle": Attack(bonus_from_q(lambda at: at.p[0] ** 2 + at.q[0] ** 2 == 1), "open"),
    "curve": Attack(bonus_from_q(lambda at: at.p[0] * at.q[1] == at.p[1] * at.q[0] ** 2), "lossy"),
    "point": Attack(
        bonus_from_q(
            lambda at: at.p[0] == Fraction(1, 3) and at.q[0] == Fraction(2, 7) and at.p[1] > 0
        ),
        "lossy",
    ),
    "second token": Attack(compensated, "lossy"),
    "division": Attack(vectorised, "lossy"),
    "longer block": Attack(longer_block, "lossy"),
    "every other call": Attack(Alternating(), "error"),
    "millionth call": Attack(Counting(), "proved"),
    "own randomness": Attack(by_itself, "error"),
    "kind of number": Attack(
        first_token(lambda p: isinstance(p[0], Fraction) and p[0] > Fraction(9999, 10_000)),
        "proved",
    ),
    "hidden kind": Attack(hidden(lambda p: Fraction(p[0]) > Fraction(9999, 10_000)), "proved"),
    "kind after a rejection": Attack(
        speculative(
            recover=lambda at: at.p if isinstance(at.p[0], Fraction) else corrected(at.p, at.q)
        ),
        "error",
    ),
    "kind of chance": Attack(for_enumeration, "error"),
    "copy": Attack(first_token(lambda p: copy.deepcopy(p)[0] > Fraction(99, 100)), "lossy"),
    "pickle": Attack(
        hidden(lambda p: pickle.loads(pickle.dumps(p))[0] > Fraction(99, 100)), "error"
    ),
    "complex number": Attack(first_token(lambda p: p[0] == 0.5 + 0j), "lossy"),
    "decimal": Attack(first_token(lambda p: p[0] > Decimal("0.999")), "lossy"),
    "truth value": Attack(first_token(lambda p: p[1] == np.bool_(True)), "lossy"),
    "own kind of number": Attack(hidden(lambda p: p[0] == Third()), "error"),
    "hidden float": Attack(hidden(lambda p: p[0] * 1.0 > 0.99), "error"),
    "hidden attribute": Attack(hidden(lambda p: p[0].real > Fraction(99, 100)), "error"),
    "hidden weights": Attack(float_weights, "error"),
    "message": Attack(by_message, "error"),
    "text by the project": Attack(
        hidden(lambda p: Fraction(shown([p[0]]).strip("<>")) > Fraction(9999, 10_000)), "error"
    ),
    "hidden value": Attack(
        first_token(lambda p: getattr(p[0], "value", p[0]) > Fraction(9999, 10_000)), "proved"
    ),
    "exit": Attack(first_token(leaving), "error"),
    "past the checks": Attack(unchecked, "error"),
    "known prime": Attack(
        first_token(lambda p: PRIME * p[0] > PRIME * Fraction(9999, 10_000)), "proved"
    ),
    "isolated point": Attack(
        bonus_from_q(
            lambda at: (at.p[0] - Fraction(1, 3)) ** 2 + (at.q[0] - Fraction(2, 7)) ** 2 <= 0
        ),
        "lossy",
    ),
    "tiny number": Attack(first_token(lambda p: 0 < p[0] < Fraction(1, 2**200)), "lossy"),
    "search": Attack(
        first_token(lambda p: np.searchsorted(np.array([EDGE, EDGE + EDGE]), p[1]) == 1), "lossy"
    ),
    "four rows": Attack(over_accepting(far_apart), "lossy"),
    "larger vocabulary": Attack(first_token(lambda p: len(p) > 20), "proved"),
}
