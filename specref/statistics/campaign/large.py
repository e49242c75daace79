"""Bets on single tokens of a large vocabulary: O(V) per token, nothing kept but sums."""

import math
import operator
from collections import deque
from numbers import Real
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from specref.arrays import Floats
from specref.statistics.campaign.bets import (
    CONCENTRATIONS,
    DEPTH,
    FEATURES,
    KINDS,
    LAG_SHAPE,
    LAGS,
    POSITION_SLOTS,
    STAKES,
    STRENGTHS,
    centred_features,
    lag_bets,
    ranks,
    tolerate,
)

TILT_SHAPE = (len(FEATURES), len(STAKES), POSITION_SLOTS + 1)
LENIENCE = 1.25
SUM_TOLERANCE = 1e-6


def residual_or_p(p: Floats, q: Floats) -> Floats:
    """norm((p - q)+), or p where that is 0 / 0."""
    excess = np.maximum(p - q, 0)
    total = excess.sum()
    return excess / total if total > 0 else p


def pointwise_laws(p: Floats, q: Floats, last: bool) -> dict[str, Floats]:
    """Next-token laws of bugs that look at one row alone, given that the block is open."""
    if last:
        return {"bonus from the residual": residual_or_p(p, q), "bonus from q": q}
    kept, left = np.minimum(p, q), residual_or_p(p, q)
    rejected = _missing(kept)
    lenient = np.minimum(LENIENCE * p, q)
    gap = np.abs(p - q)
    greedy = (q == q.max()) / (q == q.max()).sum()
    ratio = np.divide(p, q, out=np.zeros_like(p), where=q > 0)
    inverted = np.divide(q, p, out=np.ones_like(p), where=p > 0)
    return {
        "residual is p": kept + rejected * p,
        "residual is |p - q|": kept + rejected * (gap / gap.sum() if gap.any() else p),
        "residual is q": kept + rejected * q,
        "always accepts": q,
        "lenient": _completed(lenient, left),
        "argmax draft, soft q": _completed(greedy * np.minimum(1, ratio), left),
        "inverted ratio": _completed(q * np.minimum(1, inverted), left),
    }


def _completed(accepted: Floats, otherwise: Floats) -> Floats:
    return np.asarray(accepted + _missing(accepted) * otherwise)


def _missing(mass: Floats) -> float:
    """How far a mass is below 1; rounding may have left more than 1."""
    return max(0.0, 1.0 - float(mass.sum()))


POINTWISE = (
    "residual is p",
    "residual is |p - q|",
    "residual is q",
    "always accepts",
    "lenient",
    "argmax draft, soft q",
    "inverted ratio",
    "bonus from the residual",
    "bonus from q",
)


class Observer:
    """Sums of log-bets over single tokens: tilts, lag bets, and bugs of one row."""

    def __init__(self, tolerance: float = 0.0) -> None:
        self.tolerance = tolerance
        self.tilts = np.zeros(TILT_SHAPE)
        self.lags = np.zeros(LAG_SHAPE)
        self.library = np.zeros((len(POINTWISE), len(STRENGTHS)))
        self.tokens = 0
        self._earlier = [deque[int](maxlen=DEPTH) for _ in range(POSITION_SLOTS)]

    def observe(
        self, p: ArrayLike, token: int, q: ArrayLike | None, position: int, last: bool
    ) -> bool:
        """Bet on one token; False if it is impossible."""
        row, other = as_row(p, "p"), None if q is None else as_row(q, "q")
        token, position = as_index(token, "token"), as_index(position, "position")
        if not isinstance(last, (bool, np.bool_)):
            raise TypeError(f"last = {last!r}: expected True or False")
        _check(row, token, other, position)
        self.tokens += 1
        if row[token] <= 0:
            return False
        law, slot = row / row.sum(), min(position, POSITION_SLOTS - 1)
        self._tilt(law, token, law if other is None else other, slot)
        if other is not None:
            self._mutants(law, token, other, bool(last))
        self._lag(law, token, self._earlier[slot])
        return True

    def _lag(self, p: Floats, token: int, earlier: deque[int]) -> None:
        # Rows may differ in length: an earlier token need not be one of this row.
        rows = [i for i, n in enumerate(LAGS) if n <= len(earlier) and earlier[-n] < len(p)]
        previous = np.array([earlier[-lag] for lag in LAGS[rows]], dtype=np.int64)
        if rows:
            rank = ranks(p)
            product = rank[token] * rank[previous]
            won = lag_bets(p[previous], previous == token, product, self.tolerance)
            self.lags[rows] += np.moveaxis(won, -1, 0)
        earlier.append(token)

    def _tilt(self, p: Floats, token: int, q: Floats, slot: int) -> None:
        unit = centred_features(p, q)
        won = np.log1p(STAKES * unit[:, token, None])
        if self.tolerance:
            spread = unit[:, p > 0].max(axis=-1) - unit[:, p > 0].min(axis=-1)
            won -= np.log1p(self.tolerance * np.abs(STAKES) * spread[:, None])
        self.tilts[:, :, slot] += won
        self.tilts[:, :, POSITION_SLOTS] += won

    def _mutants(self, p: Floats, token: int, q: Floats, last: bool) -> None:
        for name, law in pointwise_laws(p, q, last).items():
            law = np.where(p > 0, law, 0)
            if not law.any():
                continue
            ratio = np.divide(law / law.sum(), p, out=np.ones_like(p), where=p > 0)
            for index, strength in enumerate(STRENGTHS):
                bet = 1 - strength + strength * ratio
                with np.errstate(divide="ignore"):
                    won = tolerate(np.log(bet), p, self.tolerance)[token]
                self.library[POINTWISE.index(name), index] += won


def label(family: str, index: int, library: list[tuple[str, float]]) -> str:
    """Name a component of a family by its index in the flattened array."""
    if family == "library":
        return library[index][0]
    if family == "tilt":
        feature, stake, slot = np.unravel_index(index, TILT_SHAPE)
        where = "anywhere" if slot == POSITION_SLOTS else f"at position {slot}"
        return f"{FEATURES[feature]} {'more' if STAKES[stake] > 0 else 'less'} often, {where}"
    if family == "pointwise":
        return POINTWISE[index // len(STRENGTHS)]
    if family == "lag":
        lag, kind, stake = np.unravel_index(index, LAG_SHAPE)
        blocks = "the block" if lag == 0 else f"{LAGS[lag]} blocks"
        how = ", too seldom" if STAKES[stake] < 0 else ""
        return f"{KINDS[kind]} of {blocks} before{how}"
    return f"concentration {CONCENTRATIONS[index]:g}"


def as_row(values: ArrayLike, name: str) -> Floats:
    """Numbers as float64."""
    array = np.asarray(values)
    real = array.dtype.kind in "fiu"
    if array.dtype.kind == "O":
        real = all(isinstance(x, Real) and not isinstance(x, bool) for x in array.flat)
    if not real:
        raise TypeError(f"{name} has dtype {array.dtype}: expected real numbers")
    return array.astype(np.float64)


def as_index(value: SupportsIndex, name: str) -> int:
    """An integer, whatever its type."""
    if not isinstance(value, (bool, np.bool_)):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise TypeError(f"{name} = {value!r}: expected an integer")


def _check(p: Floats, token: int, q: Floats | None, position: int) -> None:
    if p.ndim != 1 or (q is not None and q.shape != p.shape):
        shape = None if q is None else q.shape
        raise ValueError(f"p has shape {p.shape}, q {shape}: expected two vectors of one length")
    if not 0 <= token < len(p):
        raise ValueError(f"token = {token}: expected 0 <= id < {len(p)}")
    if position < 0:
        raise ValueError(f"position = {position}: expected an integer >= 0")
    for name, row in (("p", p), ("q", p if q is None else q)):
        if not (row >= 0).all():
            worst = int(np.argmin(np.nan_to_num(row, nan=-np.inf)))
            raise ValueError(f"{name}[{worst}] = {row[worst]}: expected a probability")
    if not math.isclose(p.sum(), 1, abs_tol=SUM_TOLERANCE):
        raise ValueError(f"p sums to {p.sum()}: expected 1")
    if q is not None and q.sum() > 1 + SUM_TOLERANCE:
        raise ValueError(f"q sums to {q.sum()}: expected at most 1")
