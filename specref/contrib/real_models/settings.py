"""How laws are shaped: by torch for the loop, and by the package's own filters for the judge."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from specref.arrays import Floats
from specref.distributions import top_k, top_p, with_temperature

if TYPE_CHECKING:
    from torch import Tensor

HEAD = 4096
"""Filters of the package rank tokens in Python: they are given the likeliest ones, in order of
their ids, which changes nothing unless a filter keeps more."""


@dataclass(frozen=True)
class Setting:
    """Temperature, top-k and top-p, as `shape_logits` takes them; in that order."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __str__(self) -> str:
        filters = [f"top-k {self.top_k}"] if self.top_k is not None else []
        filters += [f"top-p {self.top_p:g}"] if self.top_p is not None else []
        warm = [f"temperature {self.temperature:g}"]
        return ", ".join(filters if filters and self.temperature == 1 else warm + filters)

    @property
    def shape(self) -> "Callable[[Tensor], Tensor]":
        """From logits to laws in torch: what is under test."""
        from specref.torch_backend import shape_logits

        return partial(
            shape_logits, temperature=self.temperature, top_k=self.top_k, top_p=self.top_p
        )

    def law(self, logits: ArrayLike) -> Floats:
        """From one row of logits to its law in float64, by NumPy and `specref.distributions`."""
        p = softmax(logits)
        if self.temperature != 1:
            p = with_temperature(p, self.temperature)
        if self.top_k is not None:
            p = _on_head(p, partial(top_k, k=self.top_k), self.top_k, 0.0)
        if self.top_p is not None and self.top_p < 1:
            p = _on_head(p, partial(top_p, mass=self.top_p), 0, self.top_p)
        return p

    def undecided_mass(self, logits: ArrayLike, gap: float, mass: float) -> float:
        """The probability of the tokens that rounding may move across a filter's cut.

        * `gap`: How far two logits may move against each other.
        * `mass`: How far a cumulative sum of probabilities may move.
        """
        row = np.sort(np.asarray(logits, dtype=np.float64))[::-1]
        p = softmax(row if self.temperature == 1 else row / self.temperature)
        found, kept = 0.0, 1.0
        if self.top_k is not None and self.top_k < len(p):
            beside = slice(self.top_k - 1, self.top_k + 1)
            if -np.diff(row[beside])[0] <= gap:
                found += float(p[np.abs(row - row[self.top_k]) <= gap].sum())
            kept = float(p[: self.top_k].sum())
        if self.top_p is not None and self.top_p < 1:
            before = (np.cumsum(p) - p) / kept
            found += float(p[np.abs(before - self.top_p) <= mass].sum())
            kept *= self.top_p
        return found / kept


def softmax(logits: ArrayLike) -> Floats:
    """In float64; -inf is probability 0."""
    row = np.asarray(logits, dtype=np.float64)
    weights = np.exp(row - row.max())
    return np.asarray(weights / weights.sum())


def _on_head(
    p: Floats, keep: Callable[[Floats], Floats], tokens: int, mass: float, size: int = HEAD
) -> Floats:
    """Apply a filter that keeps no more than so many likeliest tokens, or so much mass."""
    if len(p) > size:
        ids = np.flatnonzero(p >= np.partition(p, -size)[-size])
        if len(ids) >= tokens and p[ids].sum() > mass + 1e-9:
            kept = np.zeros_like(p)
            kept[ids] = keep(p[ids])
            return kept
    return keep(p)
