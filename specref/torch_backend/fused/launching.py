"""A launch of a Triton kernel: on CUDA, or in Triton's interpreter where that is asked for."""

from typing import Any

import torch
from triton.runtime.jit import JITFunction


def launch(
    kernel: Any, grid: tuple[int, ...], device: torch.device, *given: Any, **constants: Any
) -> None:
    """Run a kernel on a device.

    On a CPU Triton interprets kernels if ``TRITON_INTERPRET=1`` was set before they were made.

    Parameters
    ----------
    kernel
        What `triton.jit` made.
    grid : tuple of int
    device : torch.device
        Where its tensors are.
    given, constants
        Its arguments; those that are `tl.constexpr`, and options, by name.

    Raises
    ------
    ValueError
        The device is neither CUDA nor, in the interpreter, a CPU.

    Examples
    --------
    >>> from specref.torch_backend.fused import kernels
    >>> launch(kernels.judge, (1,), torch.device("meta"))
    Traceback (most recent call last):
    ValueError: tensors are on meta: expected cuda, or cpu with TRITON_INTERPRET=1 ...
    """
    interpreted = not isinstance(kernel, JITFunction)
    if device.type != ("cpu" if interpreted else "cuda"):
        hint = "cuda, or cpu with TRITON_INTERPRET=1 set before Python starts"
        raise ValueError(f"tensors are on {device}: expected {hint}")
    if interpreted:
        kernel[grid](*given, **constants)
        return
    with torch.cuda.device(device):
        kernel[grid](*given, **constants)
