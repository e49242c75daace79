"""What CUDA refuses, and what makes the host wait for it, by torch's operation and its tensors.

A tensor of the CPU beside tensors of the device is refused, but where it is a single number in a
pointwise operation, an index, or copied. A copy from the host waits for all that the device has
still to do, unless it is non-blocking; and any read of values does, which sizes may depend on.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

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
