"""Checks of arguments that several rules make: `ValueError` and `TypeError`."""

from collections.abc import Iterable, Mapping
from numbers import Rational

from specref.distributions import ExactNumber, Probabilities, Probability, is_exact, is_one
from specref.vocabulary import Tokens


def check_count(count: int, name: str = "drafts") -> None:
    """Raise `ValueError` unless this is an integer >= 1."""
    if not _is_count(count):
        raise ValueError(f"{name} = {count!r}: expected an integer >= 1")


def check_branching(
    branching: tuple[int, ...], expected: str = "a tuple of integers >= 1"
) -> None:
    """Raise `ValueError` unless these are numbers of siblings, one for each depth of a tree."""
    if not isinstance(branching, tuple | list) or not all(map(_is_count, branching)):
        raise ValueError(f"branching = {branching!r}: expected {expected}")


def check_pair(p: Probabilities, q: Probabilities) -> None:
    """Raise unless p and q have one length, and are both exact or both floats."""
    if len(p) != len(q):
        raise ValueError(f"q has length {len(q)}: expected {len(p)}, as p has")
    if is_exact(p) != is_exact(q):
        exact, floats = ("p", "q") if is_exact(p) else ("q", "p")
        raise TypeError(f"{floats} has floats, {exact} has not: expected one kind of numbers")


def check_law(p: Probabilities, law: Mapping[Tokens, Probability]) -> None:
    """Raise `ValueError` unless these are probabilities of drafts from the tokens of p."""
    for drafts, weight in law.items():
        for token in drafts:
            if not 0 <= token < len(p):
                raise ValueError(
                    f"law[{drafts}]: token {token} is out of range, expected 0 to {len(p) - 1}"
                )
        if not weight >= 0:
            raise ValueError(f"law[{drafts}] = {weight}: expected a non-negative probability")
    if not is_one(sum(law.values())):
        raise ValueError(f"law sums to {sum(law.values())}: expected 1")


def check_exact(values: Iterable[Probability], name: str) -> None:
    """Raise `TypeError` unless all are exact by their types, as 0.5 equals 1/2."""
    if not all(isinstance(value, Rational | ExactNumber) for value in values):
        raise TypeError(f"{name} has floats: expected Fractions")


def _is_count(count: object) -> bool:
    return isinstance(count, int) and not isinstance(count, bool) and count >= 1
