"""Triton kernels, compiled on CUDA; on a CPU Triton's interpreter runs them."""

from collections.abc import Callable
from functools import cache
from sys import modules
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

DEVICES = ("cpu", "cuda")


def launch(kernel: Any, grid: tuple[int, ...], *given: Any, **constants: Any) -> None:
    """Run a kernel on the device of its first argument, a `Laws`.

    Interpretation needs no environment variable, and takes the functions that a kernel calls as
    its module has them at that time.

    Parameters
    ----------
    kernel : triton.runtime.JITFunction
        Or what `triton.jit` makes where the environment asks for the interpreter.
    grid : tuple of int
    given, constants
        Its arguments; those that are `tl.constexpr` by name.

    Raises
    ------
    TypeError
        `kernel` is no kernel.
    ValueError
        The laws are neither on a CPU nor on CUDA.

    Examples
    --------
    >>> import triton.language as tl
    >>> from specref.torch_backend.fused import kernels
    >>> logits, stats = torch.tensor([[[1.0, 3.0, 2.0]]]), torch.empty(1, 1, 1, 2)
    >>> p, none = kernels.Laws(logits, 3, 3, 1, 1, stats), kernels.Laws(None, 0, 0, 0, 0, None)
    >>> sizes = {"steps": 1, "width": 4, "splits": 1, "dtype": tl.float32}
    >>> launch(kernels.summarise, (1, 1, 1), p, none, 1.0, 3, **sizes)
    >>> stats  # the largest logit, and 1 + 1 / e + 1 / e^2
    tensor([[[[3.0000, 1.5032]]]])
    """
    if not isinstance(kernel, JITFunction | InterpretedFunction):
        raise TypeError(f"kernel = {kernel!r}: expected what triton.jit makes")
    device = given[0].data.device
    if device.type not in DEVICES:
        raise ValueError(f"the laws are on {device}: expected one of {', '.join(DEVICES)}")
    if device.type == "cuda":
        with torch.cuda.device(device):
            kernel[grid](*given, **constants)
        return
    with np.errstate(all="ignore"):
        _interpreted(kernel)[grid](*given, **constants)


def _interpreted(kernel: Any) -> Any:
    """The kernel for the interpreter, which Triton makes itself if the environment says so."""
    if not isinstance(kernel, JITFunction):
        return kernel
    module = modules[kernel.__module__]
    jitted = {name: one.fn for name, one in vars(module).items() if isinstance(one, JITFunction)}
    # What reduces is known to the interpreter by identity.
    own = {name: one for name, one in jitted.items() if not one.__module__.startswith("triton.")}
    return _kernels(module, tuple(own.items()))[kernel.__name__]


@cache
def _kernels(
    module: ModuleType, functions: tuple[tuple[str, Callable[..., Any]], ...]
) -> dict[str, Any]:
    """Functions of a module for the interpreter, which call each other as it rewrites them."""
    space, kernels = dict(vars(module)), dict[str, Any]()
    for name, function in functions:
        copy = FunctionType(function.__code__, space, function.__name__)
        copy.__annotations__ = function.__annotations__
        kernels[name] = InterpretedFunction(copy)
    space.update({name: one.rewrite() for name, one in kernels.items()})
    return kernels
