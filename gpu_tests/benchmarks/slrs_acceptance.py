"""Acceptance of one draft from laws, and its mean over contexts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from gpu_tests.benchmarks.slrs_expansion import Law

Row: TypeAlias = dict[str, Any]
WARM = 1.0
STANDARD, UNION, TLI, SLEM, SLRS = "standard", "union", "tli", "slem", "slrs"


class Interval(NamedTuple):
    """Bounds of a number, equal where it is known."""

    low: float
    high: float


class Key(NamedTuple):
    """Of what acceptance is."""

    method: str
    temperature: float
    drafter_temperature: float


@dataclass(frozen=True)
class Laws:
    """What the methods submit at one context, each law a row for each temperature."""

    p: Tensor
    submitted: Mapping[str, Tensor]
    psi: Law


def accepted(laws: Laws, temperatures: Sequence[float]) -> dict[Key, Interval]:
    """Acceptance at one context, with the drafter at the target's temperature, and at 1."""
    found: dict[Key, Interval] = {}
    for row, temperature in enumerate(temperatures):
        for drafter_row, drafter_temperature in enumerate(temperatures):
            if drafter_temperature in (temperature, WARM):
                by_method = _at(laws.p[row], laws, drafter_row)
                found |= {
                    Key(method, temperature, drafter_temperature): interval
                    for method, interval in by_method.items()
                }
    return found


def _at(p: Tensor, laws: Laws, row: int) -> dict[str, Interval]:
    known = {method: token_acceptance(p, q[row]) for method, q in laws.submitted.items()}
    psi = laws.psi.known[row], float(laws.psi.open[row])
    exact = {method: Interval(value, value) for method, value in known.items()}
    return exact | {SLEM: match_acceptance(p, *psi), SLRS: text_acceptance(p, *psi)}


def token_acceptance(p: Tensor, q: Tensor) -> float:
    """sum min(p, q), for any law or sub-law q that drafts are drawn from."""
    return float(torch.minimum(p, q).sum())


def text_acceptance(p: Tensor, known: Tensor, open_mass: float) -> Interval:
    """sum min(p, psi) of SLRS, where psi is at least `known` and has `open_mass` more.

    Examples
    --------
    >>> p, known = torch.tensor([0.5, 0.5]), torch.tensor([0.625, 0.125])
    >>> text_acceptance(p, known, 0.25)
    Interval(low=0.625, high=0.875)
    """
    low = token_acceptance(p, known)
    return Interval(low, low + min(open_mass, float((p - known).clamp(min=0).sum())))


def match_acceptance(p: Tensor, known: Tensor, open_mass: float) -> Interval:
    """sum p psi of SLEM, where psi is at least `known` and has `open_mass` more.

    Examples
    --------
    >>> p, known = torch.tensor([0.5, 0.5]), torch.tensor([0.625, 0.125])
    >>> match_acceptance(p, known, 0.25)
    Interval(low=0.375, high=0.5)
    """
    low = float((p * known).sum())
    return Interval(low, low + open_mass * float(p.max()))


def summarised(documents: Sequence[Sequence[Mapping[Key, Interval]]]) -> Iterator[Row]:
    """For each key the mean over contexts, and that of the difference from SLRS.

    Errors are those of means of documents, with as many contexts each: contexts of one document
    are not independent.
    """
    for key in documents[0][0]:
        slrs = key._replace(method=SLRS)
        values = [[at[key] for at in document] for document in documents]
        differences = [[_less(at[key], at[slrs]) for at in document] for document in documents]
        yield key._asdict() | mean(values) | {"over_slrs": mean(differences)}


def mean(documents: Sequence[Sequence[Interval]]) -> Row:
    """Mean bounds, and the standard error of the mean of documents.

    Examples
    --------
    >>> mean([[Interval(0, 0), Interval(0, 1)], [Interval(1, 1), Interval(0.5, 1)]])
    {'low': 0.375, 'high': 0.75, 'error': 0.3125}
    """
    means = np.array(documents).mean(axis=1)
    low, high = means.mean(axis=0)
    error = means.mean(axis=1).std(ddof=1) / len(means) ** 0.5
    return {"low": float(low), "high": float(high), "error": float(error)}


def _less(one: Interval, other: Interval) -> Interval:
    return Interval(one.low - other.high, one.high - other.low)
