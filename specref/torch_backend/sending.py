"""Copies numbers from the host to a device without waiting for its queued work."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def sent(numbers: Sequence[Any], device: torch.device | str) -> Tensor:
    """Integers, in lists of any depth, as a tensor of int64.

    Examples
    --------
    >>> sent([[1, 2], [3, 4]], "cpu")
    tensor([[1, 2],
            [3, 4]])
    >>> sent([], "cpu").dtype
    torch.int64
    """
    return moved(torch.tensor(numbers, dtype=torch.int64), device)


def moved(tensor: Tensor, device: torch.device | str) -> Tensor:
    """A tensor of the CPU on a device; a plain copy would wait for the work queued there.

    Examples
    --------
    >>> moved(torch.tensor([True]), "cpu")
    tensor([True])
    """
    return tensor.to(device, non_blocking=True)
