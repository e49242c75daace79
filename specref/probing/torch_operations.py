"""torch's operations on undrawn numbers, implemented with NumPy."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from specref.probing.calls import EscapedError
from specref.probing.lazy import bounded
from specref.probing.source import Numbers


def _best(pick: Callable[..., Any]) -> Callable[..., Any]:
    def find(values: Numbers, dim: int | None = None, keepdim: bool = False) -> Any:
        return pick(values, axis=dim, keepdims=keepdim)

    return find


def _extreme(pick: Callable[..., Any]) -> Callable[..., Any]:
    def find(values: Numbers, dim: int, keepdim: bool = False) -> Any:
        index = pick(values, axis=dim, keepdims=True)
        found = np.take_along_axis(values, index, axis=dim)
        return (found, index) if keepdim else (found.squeeze(dim), index.squeeze(dim))

    return find


def _searchsorted(cdf: Numbers, values: Numbers, right: bool = False, side: str = "") -> Any:
    if cdf.ndim != 1:
        raise EscapedError("torch.searchsorted in many rows, for numbers still to be drawn")
    found = np.searchsorted(cdf, values, side="right" if right or side == "right" else "left")
    return np.asarray(found)


def _clamp(values: Numbers, min: Any = None, max: Any = None) -> Any:
    low, high = -math.inf if min is None else min, math.inf if max is None else max
    return np.frompyfunc(lambda number: bounded(number, low, high), 1, 1)(values)


def _index_put(
    values: Numbers, indices: list[Any], numbers: Any, accumulate: bool = False
) -> Numbers:
    if accumulate:
        raise EscapedError("torch.index_put adds numbers still to be drawn")
    found = np.array(values, dtype=object)
    found[tuple(slice(None) if i is None else i for i in indices)] = numbers
    return found


def _scatter(values: Numbers, dim: int, index: Any, numbers: Any) -> Numbers:
    places = np.indices(index.shape)
    places[dim] = index
    found = np.array(values, dtype=object)
    given = numbers[tuple(map(slice, index.shape))] if np.ndim(numbers) else numbers
    found[tuple(places)] = given
    return found


OPERATIONS: dict[str, Callable[..., Any]] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "add": lambda x, y, alpha=1: x + alpha * y,
    "sub": lambda x, y, alpha=1: x - alpha * y,
    "rsub": lambda x, y, alpha=1: y - alpha * x,
    "mul": np.multiply,
    "div": np.true_divide,
    "reciprocal": lambda x: 1 / x,
    "pow": np.power,
    "neg": np.negative,
    "log": np.log,
    "log2": np.log2,
    "log1p": np.log1p,
    "exp": np.exp,
    "expm1": np.expm1,
    "sqrt": np.sqrt,
    "clamp": _clamp,
    "clamp_min": _clamp,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "where": np.where,
    "masked_fill": lambda x, mask, value: np.where(mask, value, x),
    "argmax": _best(np.argmax),
    "argmin": _best(np.argmin),
    "max": _extreme(np.argmax),
    "min": _extreme(np.argmin),
    "searchsorted": _searchsorted,
    "clone": np.copy,
    "_to_copy": np.copy,
    "copy": lambda x, source, non_blocking=False: np.broadcast_to(source, x.shape),
    "fill": lambda x, value: np.full(x.shape, value),
    "zero": lambda x: np.zeros(x.shape),
    "index_put": _index_put,
    "scatter": _scatter,
    "repeat": np.tile,
    "roll": np.roll,
    "_unsafe_view": np.reshape,
    "index": lambda x, indices: x[tuple(slice(None) if i is None else i for i in indices)],
    "index_select": lambda x, dim, index: np.take(x, index, axis=dim),
    "gather": lambda x, dim, index: np.take_along_axis(x, index, axis=dim),
    "flip": np.flip,
    "cat": lambda parts, dim=0: np.concatenate(parts, axis=dim),
    "stack": lambda parts, dim=0: np.stack(parts, axis=dim),
}
