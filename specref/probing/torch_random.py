"""Random numbers of torch, taken from a source.

A dispatch mode sees every operation below Python, those of `torch.distributions` and
`torch.nn.functional` among them, and torch itself marks the random ones, so none is missed.
"""

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from specref.probing.numpy_random import MOST_BRANCHES
from specref.probing.source import (
    FLOAT32_BITS,
    FLOAT64_BITS,
    HALF_BITS,
    Call,
    CannotInterpretError,
    Numbers,
    Source,
    here,
    torch_zero,
)
from specref.probing.torch_tracing import Memory, traced

BITS = {
    torch.float64: FLOAT64_BITS,
    torch.float32: FLOAT32_BITS,
    torch.float16: HALF_BITS,
    torch.bfloat16: 8,
}


class TorchRandomness(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode in which torch's randomness comes from a source.

    * `memory`: Where undrawn numbers are kept.
    """

    def __init__(self, source: Source, memory: Memory) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.source, self.memory = source, memory

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Whether torch imports its compiler, which takes long, to keep it out of this mode.

        Only if it is imported already: a sampler that is compiled later is probed as well.
        """
        return "torch._dynamo" in sys.modules

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Answer random operations, trace those on traced numbers, run the others unchanged."""
        if not self.memory.empty or _is_random(func):
            return self._answered(func, args, dict(kwargs or {}))
        return func(*args, **kwargs) if kwargs else func(*args)

    def _answered(self, func: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if _is_random(func):
            name = func._schema.name.split("::")[1]
            answer = SOURCES.get(name)
            if answer is None or "out" in options:
                raise CannotInterpretError(f"{here(f'torch.{name}')} has no exact reading")
            return answer(self, func, args, options)
        if self.memory.holds((args, options)):
            return traced(self.memory, func, args, options)
        return func(*args, **options)

    def write(self, tensor: torch.Tensor, numbers: Numbers) -> torch.Tensor:
        """Write numbers into a tensor; undrawn numbers are kept in the memory instead."""
        if numbers.dtype == object:
            self.memory.assign(tensor, numbers)
            return tensor
        self.memory.forget(tensor)
        return tensor.copy_(torch.from_numpy(np.asarray(numbers)))


_RANDOM: dict[int, tuple[Any, bool]] = {}
"""{id of an operation: the operation and whether torch marks it as random}."""


def _is_random(func: Any) -> bool:
    """Whether torch marks an operation so.

    It is asked of thousands, so by id: to hash one takes torch longer than some operations.
    """
    found = _RANDOM.get(id(func))
    if found is None:
        found = _RANDOM[id(func)] = func, torch.Tag.nondeterministic_seeded in func.tags
    return found[1]


def _valid(func: Any, args: Any, options: Any, device: torch.device) -> torch.Tensor:
    """Run the operation with a generator of its own, so that invalid arguments raise."""
    drawn: torch.Tensor = func(*args, **{**options, "generator": torch.Generator(device)})
    return drawn


def _rand(mode: TorchRandomness, func: Any, args: Any, options: Any) -> torch.Tensor:
    options.pop("generator", None)
    like = func._schema.name.endswith("_like")
    tensor = torch.empty_like(args[0], **options) if like else torch.empty(*args, **options)
    call = here(f"torch.{func._schema.name.split('::')[1]}", tuple(tensor.shape))
    return mode.write(tensor, mode.source.uniforms(call, _bits(tensor, call)))


def _uniform(mode: TorchRandomness, func: Any, args: Any, options: Any) -> torch.Tensor:
    tensor: torch.Tensor = args[0]
    low = options.get("from", args[1] if len(args) > 1 else 0.0)
    high = options.get("to", args[2] if len(args) > 2 else 1.0)
    call = here("torch.Tensor.uniform_", tuple(tensor.shape))
    numbers = mode.source.uniforms(call, _bits(tensor, call))
    return mode.write(tensor, numbers if (low, high) == (0, 1) else low + (high - low) * numbers)


def _exponential(mode: TorchRandomness, func: Any, args: Any, options: Any) -> torch.Tensor:
    rate = options.get("lambd", args[1] if len(args) > 1 else 1.0)
    call = here("torch.Tensor.exponential_", tuple(args[0].shape))
    bits = _bits(args[0], call)
    mkl: bool = torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
    zero = torch_zero(args[0].device.type, bits, mkl=mkl)
    numbers = mode.source.exponentials(call, bits, zero)
    return mode.write(args[0], numbers if rate == 1 else numbers / rate)


def _multinomial(mode: TorchRandomness, func: Any, args: Any, options: Any) -> torch.Tensor:
    count = options.get("num_samples", args[1] if len(args) > 1 else 0)
    replacement = options.get("replacement", args[2] if len(args) > 2 else False)
    weights = args[0].detach().double().cpu().numpy().copy()
    # What torch would say of others is asked of torch, whose draw takes longer than all else here.
    if args[0].is_floating_point() and count == 1 and _are_weights(weights):
        drawn: torch.Tensor = args[0].new_empty((*weights.shape[:-1], 1), dtype=torch.int64)
    else:
        drawn = torch.empty_like(_valid(func, args, options, args[0].device))
    call = here("torch.multinomial", tuple(drawn.shape))
    for place in np.ndindex(*drawn.shape):
        row = weights[place[:-1]]
        drawn[place] = branch = mode.source.categorical(call, row)
        row[branch] = row[branch] if replacement else 0.0
    return drawn


def _are_weights(weights: Numbers) -> bool:
    """Whether every row can be drawn from: in low precision, too."""
    if weights.ndim not in (1, 2) or not 0 < weights.shape[-1] < 1 << 24:
        return False
    total = weights.sum(axis=-1)
    return bool((weights >= 0).all() and (total > 1e-6).all() and (total < 1e4).all())


def _bernoulli(mode: TorchRandomness, func: Any, args: Any, options: Any) -> torch.Tensor:
    in_place = func._schema.name.endswith("_")
    default = 0.5 if in_place else args[0]
    chances = args[1] if len(args) > 1 else options.get("p", default)
    _valid(func, args, options, args[0].device)
    tensor = args[0] if in_place else torch.empty_like(args[0])
    call = here("torch.bernoulli", tuple(tensor.shape))
    if isinstance(chances, torch.Tensor):
        chances = chances.detach().double().cpu().numpy()
    rows = np.broadcast_to(np.asarray(chances, dtype=np.float64), tensor.shape)
    tosses = [mode.source.categorical(call, [1 - p, p]) for p in rows.ravel().tolist()]
    return tensor.copy_(torch.tensor(tosses).reshape(tensor.shape))


def _randint(mode: TorchRandomness, func: Any, args: Any, options: Any) -> torch.Tensor:
    options.pop("generator", None)
    low, high, size = (0, *args[:2]) if isinstance(args[1], list | tuple) else args[:3]
    drawn = torch.empty(size, **{"dtype": torch.int64, **options})
    drawn.random_(low, high, generator=torch.Generator(drawn.device))
    call = here("torch.randint", tuple(drawn.shape))
    if high - low > MOST_BRANCHES:
        raise CannotInterpretError(f"{call}: expected at most {MOST_BRANCHES} integers")
    picks = [
        low + mode.source.categorical(call, [1.0] * (high - low))
        for _ in range(math.prod(drawn.shape))
    ]
    return drawn.copy_(torch.tensor(picks, dtype=drawn.dtype).reshape(drawn.shape))


def _bits(tensor: torch.Tensor, call: Call) -> int:
    if tensor.dtype not in BITS:
        raise CannotInterpretError(f"{call} of {tensor.dtype} has no exact reading")
    return BITS[tensor.dtype]


SOURCES: dict[str, Callable[..., torch.Tensor]] = {
    "rand": _rand,
    "rand_like": _rand,
    "uniform_": _uniform,
    "exponential_": _exponential,
    "multinomial": _multinomial,
    "bernoulli": _bernoulli,
    "bernoulli_": _bernoulli,
    "randint": _randint,
}
