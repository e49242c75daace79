"""Tensors of undrawn numbers: their elements are kept in a separate memory, by address.

The storage of such a tensor holds NaN. Views share it; arithmetic is done by NumPy on the
elements, arrays of dtype object; operations that are not in the table raise.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from specref.probing.lazy import Lazy, bounded
from specref.probing.source import EscapedError, Numbers


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


class Memory:
    """The tensors that hold undrawn numbers, and these numbers."""

    def __init__(self) -> None:
        self._cells: dict[int, tuple[torch.Tensor, Numbers]] = {}

    @property
    def empty(self) -> bool:
        """Whether no tensor holds undrawn numbers."""
        return not self._cells

    def holds(self, arguments: Any) -> bool:
        """Whether any tensor among the arguments holds undrawn numbers."""
        return bool(self._cells) and any(
            _address(one) in self._cells for one in _tensors(arguments)
        )

    def read(self, value: Any) -> Any:
        """The operand for NumPy: an array for a tensor, also within lists; others unchanged."""
        if isinstance(value, tuple | list):
            return type(value)(map(self.read, value))
        if not isinstance(value, torch.Tensor):
            return value
        found = self._cells.get(_address(value))
        if found is None:
            return _as_array(value)
        return _window(found[1], value)

    def assign(self, tensor: torch.Tensor, numbers: Any) -> None:
        """Set the elements of a tensor, which may be a view, to these numbers.

        One without elements is left out: all empty tensors have the same address.
        """
        if not tensor.numel():
            return
        if _address(tensor) not in self._cells:
            size = tensor.untyped_storage().nbytes() // tensor.element_size()
            whole = torch.as_strided(tensor, (size,), (1,), 0)
            self._cells[_address(tensor)] = whole, _as_array(whole).astype(object)
        _window(self._cells[_address(tensor)][1], tensor)[...] = numbers

    def new(self, numbers: Numbers, like: torch.Tensor) -> torch.Tensor:
        if numbers.dtype != object:
            return torch.from_numpy(np.asarray(numbers)).to(like.device)
        options: Any = {"dtype": like.dtype, "device": like.device}
        tensor = torch.full(numbers.shape, float("nan"), **options)
        self.assign(tensor, numbers)
        return tensor

    def settle(self) -> None:
        """Replace undrawn numbers in all tensors by values: the code may have kept a tensor."""
        for whole, numbers in self._cells.values():
            plain = [
                one.comparisons.settled(one) if isinstance(one, Lazy) else one for one in numbers
            ]
            whole.detach().copy_(torch.from_numpy(np.array(plain, dtype=np.float64)))

    def forget(self, tensor: torch.Tensor) -> None:
        """Note that a tensor is overwritten by plain numbers."""
        if _address(tensor) in self._cells:
            self.assign(tensor, 0.0)


def traced(memory: Memory, func: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Apply an operation to undrawn numbers.

    * raises `EscapedError`: The operation is not in the table.
    """
    if _is_view(func):
        return func(*args, **options)
    name = func._schema.name.split("::")[1]
    in_place = name.endswith("_")
    calculate = OPERATIONS.get(name.removesuffix("_") if in_place else name)
    if calculate is None or "out" in options or options.get("rounding_mode"):
        raise EscapedError(f"torch operation {name} on numbers still to be drawn")
    result = calculate(*map(memory.read, args), **_relevant(memory, options))
    if in_place:
        memory.assign(args[0], result)
        return args[0]
    like = next(one for one in _tensors(args) if memory.holds(one))
    if isinstance(result, tuple):
        return tuple(memory.new(np.asarray(part), like) for part in result)
    return memory.new(np.asarray(result), like)


class PythonExits(TorchFunctionMode):
    """A mode in which `.item()`, `.tolist()` and `.numpy()` of traced tensors are lazy numbers."""

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self.memory = memory

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Return lazy numbers for functions in `EXITS`, and run the others unchanged."""
        name = getattr(func, "__name__", "")
        if name in EXITS and self.memory.holds(args[0]):
            return EXITS[name](self.memory.read(args[0]))
        return func(*args, **(kwargs or {}))


def _escape(numbers: Numbers) -> Any:
    raise EscapedError("a tensor of numbers still to be drawn leaves torch")


EXITS: dict[str, Callable[[Numbers], Any]] = {
    "item": lambda numbers: numbers.item(),
    "tolist": lambda numbers: numbers.tolist(),
    "numpy": lambda numbers: numbers.copy(),
    "__array__": lambda numbers: numbers.copy(),
    **dict.fromkeys(("__float__", "__int__", "__bool__", "__index__"), _escape),
    **dict.fromkeys(("data_ptr", "__dlpack__"), _escape),
}


def _relevant(memory: Memory, options: dict[str, Any]) -> dict[str, Any]:
    ignored = ("memory_format", "layout", "device", "pin_memory", "sparse_grad")
    kept = {key: value for key, value in options.items() if key not in ignored}
    if kept.get("dtype") is not None and not kept["dtype"].is_floating_point:
        raise EscapedError("numbers still to be drawn are converted to integers")
    kept.pop("dtype", None)
    return {key: memory.read(value) for key, value in kept.items()}


def _is_view(func: Any) -> bool:
    infos = [argument.alias_info for argument in func._schema.arguments]
    return any(info is not None and not info.is_write for info in infos)


def _tensors(arguments: Any) -> Iterator[torch.Tensor]:
    """Those in the arguments of an operation: tensors, numbers, and collections of them."""
    if isinstance(arguments, torch.Tensor):
        yield arguments
    elif isinstance(arguments, dict):
        yield from _tensors(list(arguments.values()))
    elif isinstance(arguments, tuple | list):
        for one in arguments:
            yield from _tensors(one)


def _address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _as_array(tensor: torch.Tensor) -> Numbers:
    plain = tensor.detach().cpu()
    return (plain.double() if plain.is_floating_point() else plain).numpy()


def _window(cells: Numbers, tensor: torch.Tensor) -> Numbers:
    strides = [stride * cells.itemsize for stride in tensor.stride()]
    start = cells[tensor.storage_offset() :]
    return np.lib.stride_tricks.as_strided(start, tuple(tensor.shape), strides)
