"""Tensors without values: what asks for one would wait for a device."""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from torch.utils._pytree import tree_map_only

WAITS = (DataDependentOutputException, DynamicOutputShapeException)


def reading_a_number(p: Tensor) -> Tensor:
    return p * p.sum().item()


def without_device(function: Callable[..., Any], *given: Any) -> Any:
    """Run it on tensors without values: whoever asks for one, or for a shape by one, raises."""
    with FakeTensorMode(allow_non_fake_inputs=False) as mode:
        fake = tree_map_only(Tensor, mode.from_tensor, given)
        return function(*fake)
