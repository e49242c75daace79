"""A pretend CUDA device, for tests without one: values on the CPU, CUDA's rules, every wait seen.

Inside a `Pretender` tensors can be on "cuda:0". Operations on them are those of the CPU, bit for
bit, but fail where CUDA's would (`pretend_rules`); and what makes the host wait is recorded
with the line that caused it, copies from the host apart.

It does not show what CUDA lacks or adds up in another order, memory, or races.
"""

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

from proofs_tests.helpers.torch.pretend_events import Events
from proofs_tests.helpers.torch.pretend_rules import (
    BLOCKING,
    WAIT,
    advanced,
    basic,
    check_generator,
    events,
    on_device,
)

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)
# Made of other operations, but run whole: of which ones depends on the device.
WHOLE = {"linear", "matmul", "scaled_dot_product_attention"}
aten = torch.ops.aten
# Methods whose own code in torch asks for a device that is there.
GUARDED = {
    Tensor.__invert__: aten.bitwise_not,
    Tensor.__int__: lambda one: int(one.item()),
    Tensor.__float__: lambda one: float(one.item()),
    Tensor.__index__: lambda one: one.item(),
    Tensor.contiguous: aten.contiguous,
    Tensor.data_ptr: lambda one: one.inner.data_ptr(),
    Tensor.copy_: aten.copy_,
    Tensor.nonzero: lambda one, as_tuple=False: (
        aten.nonzero(one).unbind(1) if as_tuple else aten.nonzero(one)
    ),
    Tensor.new_tensor: lambda one, data: torch.tensor(data, dtype=one.dtype, device=CUDA),
}


class Pretended(Tensor):
    """A tensor that says that it is on the device."""

    inner: Tensor
    pretender: "Pretender"

    @staticmethod
    def __new__(cls, inner: Tensor, pretender: "Pretender") -> "Pretended":
        made: Pretended = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=CUDA,
        )
        made.inner, made.pretender = inner, pretender
        return made

    def __repr__(self, **_: Any) -> str:
        return f"Pretended({self.inner})"

    def __format__(self, form: str) -> str:
        return format(self.item() if form else repr(self), form)

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def numpy(self, **_: Any) -> Any:
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy "
            "the tensor to host memory first."
        )

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (Tensor.__getitem__, Tensor.__setitem__):
            found = next(leaf for leaf in tree_leaves(args) if isinstance(leaf, Pretended))
            return found.pretender.item(func, *args)
        if func in GUARDED:
            return GUARDED[func](*args, **(kwargs or {}))
        return torch._C._disabled_torch_function_impl(func, types, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(f"{func}: a pretended tensor is of no use outside of its Pretender")


class Generator(torch.Generator):
    """A generator of random numbers that says where it is."""

    # Operations are handed another object for it, of the same address.
    there: ClassVar[WeakValueDictionary[int, "Generator"]] = WeakValueDictionary()

    def __new__(cls, device: Any = "cpu") -> "Generator":
        made = super().__new__(cls)
        if torch.device(device).type == CUDA.type:
            cls.there[made._cdata] = made
        return made

    @property
    def device(self) -> torch.device:
        return CUDA if self._cdata in self.there else CPU


class Pretender(TorchDispatchMode):
    """Where the device is. It is named with its index, "cuda:0"; models are moved as ever.

    Attributes
    ----------
    events : Events
    refusing : bool
        Whether a wait of the host is an error, as with torch's mode for that.

    Examples
    --------
    >>> with Pretender() as pretender:
    ...     total = torch.tensor([1, 2], device="cuda:0").sum().item()
    >>> total, [event.kind for event in pretender.events]
    (3, ['blocking copy', 'wait'])
    """

    def __init__(self) -> None:
        super().__init__()
        # With this key torch does not start CUDA where a device is named.
        self._mode_key = torch._C._TorchDispatchModeKey.FAKE
        self.events, self.refusing = Events(), False
        self._before: list[tuple[bool, bool]] = []

    def __enter__(self) -> "Pretender":
        overwrites = torch.__future__.get_overwrite_module_params_on_conversion()
        self._before.append((torch._C._only_lift_cpu_tensors(), overwrites))
        torch._C._set_only_lift_cpu_tensors(True)
        # Otherwise a module that is moved keeps its parameters, which are of another class.
        torch.__future__.set_overwrite_module_params_on_conversion(True)
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        lifting, overwrites = self._before.pop()
        torch._C._set_only_lift_cpu_tensors(lifting)
        torch.__future__.set_overwrite_module_params_on_conversion(overwrites)

    @contextmanager
    def also_here(self) -> Iterator[None]:
        """In another thread, while it is entered in one; what it sets for all threads is set."""
        torch._C._set_only_lift_cpu_tensors(True)
        TorchDispatchMode.__enter__(self)
        try:
            yield
        finally:
            TorchDispatchMode.__exit__(self, None, None, None)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if _is_composed(func):
            with self:
                return func.decompose(*args, **kwargs)
        given = [*_tensors(args), *_tensors(kwargs.values())]
        here, device = any(map(on_device, given)), kwargs.get("device")
        goes = here if device is None else device.type == CUDA.type
        if (generator := kwargs.get("generator")) is not None:
            check_generator(generator._cdata in Generator.there, goes)
        if not here and not goes:
            return func(*args, **kwargs)
        self._note(func, events(func, args, kwargs, given, goes))
        kwargs |= {} if device is None else {"device": CPU}
        known = {id(_inner(tensor)): tensor for tensor in given}
        found = func(*_mapped(_inner, args), **_mapped(_inner, kwargs))
        return _mapped(lambda one: self._result(one, known, goes), found)

    def item(self, function: Callable[..., Any], x: Tensor, index: Any, *value: Any) -> Any:
        """Python's indexing, whose own code in torch asks for a device that is there."""
        parts = index if isinstance(index, tuple) else (index,)
        inner = _inner(x), tree_map(_inner, index)
        if tensors := [part for part in parts if isinstance(part, (Tensor, list, range))]:
            self._note(function, advanced(x, tensors, *value))
        elif value:
            self._note(function, basic(x, Tensor.__getitem__(*inner), *value))
        found = function(*inner, *map(_inner, value))
        return Pretended(found, self) if on_device(x) and not value else found

    def _note(self, function: Callable[..., Any], kinds: Iterator[str]) -> None:
        found = list(kinds)
        self.events.record(function, found)
        if self.refusing and {WAIT, BLOCKING} & set(found):
            raise RuntimeError("called a synchronizing CUDA operation")

    def _result(self, one: Any, known: dict[int, Tensor], goes: bool) -> Any:
        """What was given, where that is the result; or a new tensor."""
        if not isinstance(one, Tensor):
            return one
        if id(one) not in known:
            return Pretended(one, self) if goes else one
        assert known[id(one)].shape == one.shape, "reshaped in place"
        return known[id(one)]


def placed(given: Any) -> Any:
    """The same with tensors and models on the device; the models are copied, without gradients.

    Those would start CUDA; and how a matrix is multiplied, to the last bit, depends on them.
    """

    def moved(model: torch.nn.Module) -> torch.nn.Module:
        return copy.deepcopy(model).requires_grad_(False).to(CUDA)

    given = tree_map_only(Tensor, lambda tensor: tensor.to(CUDA), given)
    return tree_map_only(torch.nn.Module, moved, given)


@cache
def _is_composed(func: Any) -> bool:
    return func.overloadpacket.__name__ not in WHOLE and func._can_decompose()


def _tensors(given: Iterable[Any]) -> Iterator[Tensor]:
    for one in given:
        if isinstance(one, Tensor):
            yield one
        elif isinstance(one, (list, tuple)):
            yield from _tensors(one)


def _mapped(function: Callable[[Any], Any], given: Any) -> Any:
    """As `tree_map` of the arguments of operations, at a fraction of its time."""
    kind = type(given)
    if kind in (list, tuple):
        return kind([_mapped(function, one) for one in given])
    if kind is dict:
        return {name: _mapped(function, one) for name, one in given.items()}
    return function(given)


def _inner(one: Any) -> Any:
    return one.inner if isinstance(one, Pretended) else one


def here_of(given: Any) -> Any:
    """The same with what its tensors hold, on the CPU."""
    return tree_map(_inner, given)
