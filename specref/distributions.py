"""Probability vectors over a vocabulary: exact (`Fraction`) or float64, by the same code."""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, TypeAlias, TypeVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

Probability: TypeAlias = float | Fraction
Probabilities: TypeAlias = NDArray[Any]
Row: TypeAlias = ArrayLike | Sequence[Any]
Outcome = TypeVar("Outcome")
Image = TypeVar("Image")
FLOAT_TOLERANCE = 1e-9
ROUNDED = 1e-2  # what bfloat16 and coarser may miss of a sum


class ExactNumber:
    """An exact number that is no Fraction: one that stands for all values it may have."""

    __slots__ = ()


def as_distribution(
    values: Row, name: str = "probabilities", size: int | None = None
) -> Probabilities:
    """Validate a probability vector; nothing is renormalised.

    * `values` (array_like, shape (V,)): Floats, or exact numbers: `Fraction`, `int`, or strings
      such as ``"1/3"``.
    * `name`: What the vector is called in error messages.
    * `size`: The length that is expected.
    * returns: ndarray, shape (V,): Read-only; float64, or object (of `Fraction`) when every entry
      is exact.
    * raises `TypeError`: An entry is not a real number, or exact and float entries are mixed.
    * raises `ValueError`: Wrong length, a negative or NaN entry, or a sum other than 1 (exactly
      for exact entries, within 1e-9 for floats).

    Examples
    --------
    >>> as_distribution(["1/4", "3/4"]).sum()
    Fraction(1, 1)
    >>> as_distribution([0.5, -0.5, 1.0], "q")
    Traceback (most recent call last):
    ValueError: q[1] = -0.5: expected a non-negative probability
    """
    exact = _are_fractions_of_one(values)
    vector = np.array(values) if exact else _as_vector(values, name)
    if size is not None and len(vector) != size:
        raise ValueError(f"{name} has length {len(vector)}: expected {size}")
    if not exact:
        _check(vector, name)
    vector.flags.writeable = False
    return vector[:]  # a view, which cannot be made writeable again


def _are_fractions_of_one(values: Row) -> bool:
    """Whether this is a vector of Fractions that is a distribution; asked in integers, fast."""
    if type(values) is not np.ndarray or values.dtype != object or values.ndim != 1:
        return False
    entries = values.tolist()
    if not all(type(entry) is Fraction for entry in entries):
        return False
    ratios = [(int(entry.numerator), int(entry.denominator)) for entry in entries]
    common = math.lcm(*(below for _, below in ratios))
    parts = [above * (common // below) for above, below in ratios]
    return bool(sum(parts) == common and min(parts) >= 0)


def _check(vector: Probabilities, name: str) -> None:
    suspects = vector if is_exact(vector) or not (vector >= 0).all() else ()
    for index, value in enumerate(suspects):
        if not value >= 0:
            raise ValueError(f"{name}[{index}] = {value}: expected a non-negative probability")
    total = vector.sum()
    if not is_one(total):
        raise ValueError(f"{name} sums to {total}: expected 1{_remedy(total)}")


def is_one(total: Probability) -> bool:
    """Whether a total is 1: exactly for exact numbers, within 1e-9 for floats."""
    if type(total) is float:  # asking for the kind of number takes ten times as long
        return abs(total - 1) <= FLOAT_TOLERANCE
    if isinstance(total, Rational | ExactNumber):
        return bool(total == 1)
    return bool(abs(total - 1) <= FLOAT_TOLERANCE)


def _remedy(total: Probability) -> str:
    if isinstance(total, Rational):
        return " exactly"
    within = f" within {FLOAT_TOLERANCE:g}"
    if not abs(total - 1) < ROUNDED:
        return within
    return f"{within} (rounded, as float32 is? convert to float64 and divide by the sum)"


def is_exact(vector: Probabilities) -> bool:
    """Whether a vector holds exact numbers (`Fraction`) rather than floats."""
    return vector.dtype == object


def _as_vector(values: Row, name: str) -> Probabilities:
    shape = np.shape(values)
    if len(shape) != 1 or not shape[0]:
        raise ValueError(f"{name} has shape {shape}: expected a non-empty vector")
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values.copy()
    # The first question spares the far slower ones of `_as_number`.
    entries = [
        entry if type(entry) in (Fraction, float) else _as_number(entry, f"{name}[{index}]")
        for index, entry in enumerate(np.asarray(values, dtype=object))
    ]
    exact = [not isinstance(entry, float) for entry in entries]
    if all(exact):
        return np.array(entries, dtype=object)
    if any(exact):
        index = exact.index(not exact[0])
        raise TypeError(
            f"{name}[{index}] = {entries[index]!r}: expected all exact numbers or all floats"
        )
    return np.array(entries, dtype=np.float64)


def _as_number(entry: object, name: str) -> Probability:
    if isinstance(entry, str):
        try:
            return Fraction(entry)
        except (ValueError, ZeroDivisionError):
            raise ValueError(f"{name} = {entry!r}: expected a fraction such as '1/3'") from None
    if isinstance(entry, ExactNumber):
        return cast(Fraction, entry)  # it is used as one
    if isinstance(entry, Rational) and not isinstance(entry, bool):
        return Fraction(entry)
    if isinstance(entry, Real) and not isinstance(entry, bool):
        return float(entry)
    raise TypeError(f"{name} = {entry!r}: expected a real number")


def normalise(weights: Probabilities) -> Probabilities:
    """Divide non-negative weights by their sum.

    Raises
    ------
    ValueError
        The weights are all zero.

    Examples
    --------
    >>> normalise(np.array([1.0, 3.0]))
    array([0.25, 0.75])
    """
    total = weights.sum()
    if total == 0:
        raise ValueError(f"weights {_show(weights)} are all zero: nothing to draw from")
    quotient: Probabilities = weights / total
    return quotient


def residual(p: Probabilities, q: Probabilities) -> Probabilities:
    """The distribution of the corrected token after a rejection: norm((p - q)+).

    Leviathan et al. 2023, Algorithm 1; Chen et al. 2023, Algorithm 2. `q` may be a
    sub-probability: its missing mass is the chance that nothing was submitted.

    * raises `ValueError`: `p` nowhere exceeds `q`: then a rejection is impossible and no residual
      exists.

    Examples
    --------
    >>> residual(as_distribution(["1/2", "1/2"]), as_distribution(["3/4", "1/4"]))
    array([Fraction(0, 1), Fraction(1, 1)], dtype=object)
    """
    excess = np.maximum(p - q, 0)
    total = excess.sum()
    if total == 0:
        raise ValueError(
            f"residual of p = {_show(p)} and q = {_show(q)} is all zero: nothing to draw from"
        )
    quotient: Probabilities = excess / total
    return quotient


def corrected(p: Probabilities, q: Probabilities) -> Probabilities:
    """The distribution of the token after a rejection: the residual, or p by rounding alone.

    Where floats make p / q a little less than 1 though p nowhere exceeds q, a rejection has
    probability near 1e-16 and no residual; the token is then drawn from p. For exact numbers
    that cannot happen, and this is `residual`, with its errors.

    Examples
    --------
    >>> corrected(np.array([0.3, 0.7]), np.array([0.30000000000000004, 0.7]))
    array([0.3, 0.7])
    """
    return residual(p, q) if is_exact(p) or (p > q).any() else p


def relabel(q: Probabilities, ids: Mapping[int, int], size: int) -> Probabilities:
    """Move the mass of token i to token ids[i] of a vocabulary of `size`; the rest is left out.

    The result is a sub-probability when `ids` does not cover the support of `q`.

    Examples
    --------
    >>> relabel(as_distribution(["1/4", "1/4", "1/2"]), {0: 1, 2: 0}, 2)
    array([Fraction(1, 2), Fraction(1, 4)], dtype=object)
    """
    moved = np.full(size, q[0] * 0)
    for source, destination in ids.items():
        moved[destination] = q[source]
    return moved


def overlap(p: Probabilities, q: Probabilities) -> Probability:
    """The acceptance rate of rejection sampling: sum min(p, q) = 1 - TV(p, q).

    Leviathan et al. 2023, Theorem 3.5.

    Examples
    --------
    >>> overlap(as_distribution(["1/2", "1/2"]), as_distribution(["3/4", "1/4"]))
    Fraction(3, 4)
    """
    return _number(np.minimum(p, q).sum())


@overload
def total_variation(p: Probabilities, q: Probabilities) -> Probability: ...
@overload
def total_variation(p: Mapping[Any, Probability], q: Mapping[Any, Probability]) -> Probability: ...
def total_variation(p: Any, q: Any) -> Probability:
    """Half the L1 distance between two distributions (vectors, or {outcome: probability}).

    Examples
    --------
    >>> total_variation({"x": Fraction(1)}, {"y": Fraction(1)})
    Fraction(1, 1)
    """
    if isinstance(p, Mapping):
        gaps = [abs(p.get(key, 0) - q.get(key, 0)) for key in p.keys() | q.keys()]
        return _number(sum(gaps, start=0) * Fraction(1, 2))
    return _number(np.abs(p - q).sum() * Fraction(1, 2))


def push_forward(
    law: Mapping[Outcome, Probability], function: Callable[[Outcome], Image]
) -> dict[Image, Probability]:
    """The law of a function of the outcome.

    Examples
    --------
    >>> push_forward({(0,): 0.5, (0, 1): 0.25, (1, 1): 0.25}, len)
    {1: 0.5, 2: 0.5}
    """
    pushed: dict[Image, Probability] = {}
    for outcome, probability in law.items():
        image = function(outcome)
        pushed[image] = pushed.get(image, 0) + probability
    return pushed


def with_temperature(p: Probabilities, temperature: Probability) -> Probabilities:
    """Sharpen or flatten: norm(p ** (1 / temperature)); temperature 0 is the first argmax.

    * raises `ValueError`: A negative temperature; or, for exact `p`, one whose inverse is not a
      whole number (the result would be irrational).

    Examples
    --------
    >>> with_temperature(as_distribution(["1/4", "3/4"]), Fraction(1, 2))
    array([Fraction(1, 10), Fraction(9, 10)], dtype=object)
    """
    if not 0 <= temperature < np.inf:
        raise ValueError(f"temperature = {temperature}: expected a finite number >= 0")
    if temperature == 0:
        return _keep(p, [int(np.argmax(p))])
    if not is_exact(p):
        return normalise((p / p.max()) ** (1 / float(temperature)))
    exponent = 1 / Fraction(temperature)
    if exponent.denominator != 1:
        raise ValueError(f"temperature = {temperature}: expected 1/n for exact probabilities")
    return normalise(p**exponent.numerator)


def top_k(p: Probabilities, k: int) -> Probabilities:
    """Keep the `k` likeliest tokens and renormalise; ties go to the lower id.

    * raises `ValueError`: `k` < 1.

    Examples
    --------
    >>> top_k(as_distribution(["1/4", "1/4", "1/2"]), 2)
    array([Fraction(1, 3), Fraction(0, 1), Fraction(2, 3)], dtype=object)
    """
    if k < 1:
        raise ValueError(f"k = {k}: expected an integer >= 1")
    return _keep(p, _ranked(p)[:k])


def top_p(p: Probabilities, mass: Probability) -> Probabilities:
    """Keep the fewest likeliest tokens whose mass reaches `mass`, and renormalise.

    The token that crosses `mass` is kept; ties go to the lower id.

    * raises `ValueError`: `mass` is not in (0, 1].

    Examples
    --------
    >>> top_p(as_distribution(["1/4", "1/8", "5/8"]), Fraction(3, 4))
    array([Fraction(2, 7), Fraction(0, 1), Fraction(5, 7)], dtype=object)
    """
    if not 0 < mass <= 1:
        raise ValueError(f"mass = {mass}: expected a number in (0, 1]")
    ranked = _ranked(p)
    lengths = range(1, len(ranked) + 1)
    before = bisect_left(lengths, True, key=lambda length: bool(p[ranked[:length]].sum() >= mass))
    return _keep(p, ranked[: before + 1])


def top_k_top_p(p: Probabilities, k: int, mass: Probability, *, chained: bool) -> Probabilities:
    """Both filters: `chained` renormalises after top-k, otherwise both judge the original `p`.

    The two differ, and engines disagree about which they mean.

    Examples
    --------
    >>> p = as_distribution(["1/2", "1/4", "1/4"])
    >>> top_k_top_p(p, 2, Fraction(2, 3), chained=True)
    array([Fraction(1, 1), Fraction(0, 1), Fraction(0, 1)], dtype=object)
    >>> top_k_top_p(p, 2, Fraction(2, 3), chained=False)
    array([Fraction(2, 3), Fraction(1, 3), Fraction(0, 1)], dtype=object)
    """
    if chained:
        return top_p(top_k(p, k), mass)
    return top_k(top_p(p, mass), k)


def _ranked(p: Probabilities) -> list[int]:
    ids: list[int] = np.argsort(-p, kind="stable").tolist()
    return ids


def _keep(p: Probabilities, tokens: list[int]) -> Probabilities:
    """p restricted to these tokens, and renormalised."""
    kept = np.zeros_like(p)
    kept[tokens] = p[tokens]
    return normalise(kept + p * 0)


def _number(value: Any) -> Probability:
    return cast(Fraction, value) if isinstance(value, Fraction | ExactNumber) else float(value)


def _show(vector: Probabilities) -> str:
    shown = ", ".join(map(str, vector[:8]))
    return f"({shown}, …)" if len(vector) > 8 else f"({shown})"
