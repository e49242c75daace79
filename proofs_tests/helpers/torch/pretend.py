"""A pretend CUDA device, for tests without one: values on the CPU, CUDA's rules, every wait seen.

Inside a `Pretender` tensors can be on "cuda:0". Operations on them are those of the CPU, bit for
bit, but fail where CUDA's would; and what makes the host wait is recorded with the line that
caused it, copies from the host apart.

It does not show what CUDA lacks or adds up in another order, memory, or races.
"""

import copy
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

Places: TypeAlias = Counter[tuple[str, str]]
WATCHED = "/specref/torch_backend/"
PASSED = (f"{Path(torch.__file__).parent}/", "/helpers/torch/pretend")


class Event(NamedTuple):
    """A "wait" of the host for the device's values, a "blocking copy" or a "copy" to the device.

    Its place is the innermost in the torch backend, or in whatever called torch.
    """

    kind: str
    operation: str
    file: str
    function: str
    line: int


class Events(list[Event]):
    """What happened, in order."""

    def record(self, operation: Callable[..., Any], kinds: Iterable[str]) -> None:
        """Something that an operation did, which is being called."""
        for kind in kinds:
            frames = list(_frames())
            frame = next((f for f in frames if WATCHED in f.f_code.co_filename), frames[0])
            file, function = Path(frame.f_code.co_filename).name, frame.f_code.co_name
            self.append(Event(kind, operation.__name__, file, function, frame.f_lineno))

    def places(self, *kinds: str) -> Places:
        """How often each function of each file was the cause of some kinds of events."""
        return Counter((one.file, one.function) for one in self if one.kind in kinds)


def _frames() -> Iterator[FrameType]:
    """Those of the caller, from the innermost on, without torch's own and the device's."""
    frame: FrameType | None = sys._getframe(1)
    while frame:
        if not any(part in frame.f_code.co_filename for part in PASSED):
            yield frame
        frame = frame.f_back


WAIT, BLOCKING, FREE = "wait", "blocking copy", "copy"
INDEXING = {"index", "index_put", "index_put_"}
COPIES = {"copy_", "_to_copy"}
# Pointwise operations take a single number of the CPU; so do these, and clamp does not.
LENIENT = {"fill_", "masked_fill", "masked_fill_", "rsub", "floor_divide"}
STRICT = {"clamp", "clamp_", "clamp_min", "clamp_max", "clamp_min_", "clamp_max_", "equal"}
# They read a value that is a tensor of the device.
READING = {"masked_fill", "masked_fill_", "index_fill", "index_fill_"}
WAITING = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
MIXED = "Expected all tensors to be on the same device, but found some on cuda:0 and cpu! ({})"
OUTSIDE = "indices should be either on cpu or on the same device as the indexed tensor (cpu)"


def events(
    func: Any, args: Any, kwargs: Any, given: Sequence[Tensor], goes: bool
) -> Iterator[str]:
    """What an operation does, whose result is on the device or not: waits, and copies.

    Raises
    ------
    RuntimeError
        As CUDA does, because of tensors of the CPU.
    """
    name = func.overloadpacket.__name__
    if name in INDEXING:
        yield from advanced(*args[:3])
    elif name in COPIES:
        yield from _copies(name, args, kwargs, goes)
    else:
        _refuse(func, name, args, kwargs, given)
        yield from _others(func, name, args, kwargs)


def _refuse(func: Any, name: str, args: Any, kwargs: Any, given: Sequence[Tensor]) -> None:
    host = [tensor for tensor in given if not tensor.is_cuda]
    if len(host) in (0, len(given)):
        return
    pointwise = torch.Tag.pointwise in func.tags and name not in STRICT
    changed = [kwargs.get("out"), args[0] if name.endswith("_") else None]
    changes = any(one is tensor for one in changed for tensor in host)
    if changes or not (pointwise or name in LENIENT) or any(one.dim() for one in host):
        raise RuntimeError(MIXED.format(func))


def _copies(name: str, args: Any, kwargs: Any, goes: bool) -> Iterator[str]:
    source, place = args[name == "copy_"], args[0].is_cuda if name == "copy_" else goes
    free = kwargs.get("non_blocking") or (name == "copy_" and True in args[2:])
    if source.is_cuda != place and source.numel():
        yield WAIT if source.is_cuda else FREE if free else BLOCKING


def _others(func: Any, name: str, args: Any, kwargs: Any) -> Iterator[str]:
    sized = WAITING & set(func.tags) and kwargs.get("output_size") is None
    if name == "where" and not all(one.is_cuda for one in args):
        yield BLOCKING
    elif sized or (name in READING and on_device(args[-1])):
        yield WAIT


def basic(x: Tensor, part: Tensor, value: Any) -> Iterator[str]:
    """The same of an assignment to a part of a tensor, which has a value of the CPU."""
    here = x.is_cuda
    filled = here and is_number(value) and part.dim()
    if here != on_device(value) and not filled:
        yield BLOCKING if here else WAIT


def advanced(x: Tensor, parts: Sequence[Any], value: Any = None) -> Iterator[str]:
    """The same of indexing by tensors or lists, and of assignment by it.

    Raises
    ------
    RuntimeError
        A tensor of the CPU is indexed by one of the device, or their values are mixed.
    """
    given, here = [part for part in parts if part is not None], x.is_cuda
    if not here and any(on_device(part) and part.dim() for part in given):
        raise RuntimeError(OUTSIDE)
    foreign = value is not None and here != on_device(value)
    if foreign and not is_number(value):
        raise RuntimeError(MIXED.format("index_put_"))
    fills = foreign and here and len(given) == 1 and is_mask(given[0])
    for part in given:
        if on_device(part) and not fills and (is_mask(part) or not part.dim()):
            yield WAIT
        elif here and not on_device(part) and not is_number(part):
            yield BLOCKING
    if foreign and not fills:
        yield BLOCKING if here else WAIT


def check_generator(there: bool, goes: bool) -> None:
    """Raise `RuntimeError` if random numbers for one device are those of the other's generator."""
    if there != goes:
        wanted, found = ("cuda", "cpu") if goes else ("cpu", "cuda")
        raise RuntimeError(f"Expected a '{wanted}' device type for generator but found '{found}'")


def on_device(one: Any) -> bool:
    """Whether it is a tensor of the device."""
    return isinstance(one, Tensor) and one.is_cuda


def is_number(one: Any) -> bool:
    """Whether it is no list, and no tensor with dimensions."""
    return one.dim() == 0 if isinstance(one, Tensor) else not isinstance(one, (list, range))


def is_mask(one: Any) -> bool:
    """Whether it is a tensor of bool."""
    return isinstance(one, Tensor) and one.dtype == torch.bool


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
