"""Calls for randomness, the sources that answer them, and the run that one answers.

Its randomness is intercepted in its own thread and context only.
"""

import math
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import groupby
from types import FrameType, MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

OURS = __name__.rpartition(".")[0]
LIBRARIES = ("numpy.", "torch.", f"{OURS}.")
DRAWS, GIVEN = "specref.contracts.verify", "bonus_token_ids"
"""What draws tokens that code is given as arguments, and what stands there for its place."""


@dataclass(frozen=True)
class Call:
    """A call for randomness in user code.

    Attributes
    ----------
    name : str
        For example ``Generator.random`` or ``torch.rand_like``.
    shape : tuple of int
        Shape of the result; () for a scalar.
    where : str
        File and line of the innermost frame outside NumPy and torch.

    Examples
    --------
    >>> print(Call("Generator.random", (2,), "sampler.py:12"))
    Generator.random, shape (2,), at sampler.py:12
    """

    name: str
    shape: tuple[int, ...]
    where: str

    @property
    def site(self) -> str:
        """The function and the place of the call."""
        return f"{self.name} at {self.where}"

    def __str__(self) -> str:
        return f"{self.name}, shape {self.shape}, at {self.where}"


@dataclass(frozen=True)
class Decision:
    """A random number that decided between two ways to go on.

    * `call`: What gave the number.
    * `compared`: File and line where it was compared.
    * `way`: The way that was taken: 1 if the number is below what it is compared with, else 0; of
      a draw of given weights its outcome.
    * `chance`: The probability of that.
    * `number`: Which number of the run it is.
    """

    call: Call
    compared: str
    way: int
    chance: float
    number: int


class CannotInterpretError(BaseException):
    """Randomness that cannot be interpreted; `except Exception` in the code does not catch it."""


class EscapedError(BaseException):
    """An undrawn number was used in a way that cannot be traced."""


def is_importing() -> bool:
    """Whether the code being run is importing a module, whose randomness is left alone."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != f"{OURS}.program":
        if frame.f_globals.get("__name__") == "importlib._bootstrap":
            return True
        frame = frame.f_back
    return False


def here(name: str, shape: tuple[int, ...] = ()) -> Call:
    """The call that is being intercepted now."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and f"{frame.f_globals.get('__name__')}.".startswith(LIBRARIES):
        frame = frame.f_back
    if frame is None:
        return Call(name, shape, "unknown")
    if frame.f_globals.get("__name__") == DRAWS:
        return Call(name, shape, GIVEN)
    return Call(name, shape, f"{frame.f_code.co_filename}:{frame.f_lineno}")


Numbers: TypeAlias = NDArray[Any]
FLOAT64_BITS, FLOAT32_BITS, HALF_BITS = 53, 24, 11
MOST_REQUESTS = 10_000

READINGS: Mapping[str, Callable[[float], float]] = {
    "exp(-E)": lambda noise: math.exp(-noise),
    "1 - exp(-E)": lambda noise: -math.expm1(-noise),
}
"""How a uniform is derived from exponential noise E, in code that takes its logarithm."""


@dataclass(frozen=True)
class Request:
    """One number that the code asked for.

    * `kind`: {"uniform", "exponential", "categorical", "seed"}: A seed is drawn from so many
      integers that it can only be meant for a generator.
    * `bits`: Precision: a uniform is a multiple of 2^-bits.
    * `weights`: Weights of the branches of a categorical draw; they sum to 1.
    * `zero`: The probability that the generator of the call gives noise of exactly 0.
    """

    kind: Literal["uniform", "exponential", "categorical", "seed"]
    call: Call
    bits: int = FLOAT64_BITS
    weights: tuple[float, ...] = ()
    zero: float = 0.0


BOXES = "boxes"


class Source(ABC):
    """Answers intercepted calls; `requests` lists the requested numbers.

    * `calls`: How many calls were answered.
    * `problem`: Why the run cannot be interpreted, even if the code caught the exception.
    """

    dtype: type = np.float64

    def __init__(self) -> None:
        self.calls = 0
        self.requests: list[Request] = []
        self.problem: CannotInterpretError | None = None

    def uniforms(self, call: Call, bits: int = FLOAT64_BITS) -> Numbers:
        """Uniforms in [0, 1), in the call's shape."""
        return self._filled(Request("uniform", call, bits))

    def exponentials(
        self, call: Call, bits: int = FLOAT64_BITS, zero: float = 2.0**-FLOAT64_BITS
    ) -> Numbers:
        """Standard exponential noise, in the call's shape; how often it is 0 is for `Request`."""
        return self._filled(Request("exponential", call, bits, zero=zero))

    def categorical(self, call: Call, weights: Sequence[float] | Numbers) -> int:
        """A branch, with probability proportional to its weight."""
        vector = np.asarray(weights, dtype=np.float64)
        request = Request("categorical", call, weights=tuple((vector / vector.sum()).tolist()))
        self.calls += 1
        return int(self._asked(request))

    def seed(self, call: Call, number: int) -> int:
        """An integer below `number`, which is so large that it must be a seed."""
        self.calls += 1
        return int(number * float(self._asked(Request("seed", call))))

    def _filled(self, request: Request) -> Numbers:
        self.calls += 1
        numbers: Numbers = np.empty(request.call.shape, dtype=self.dtype)
        numbers.ravel()[:] = self._several(request, numbers.size)
        return numbers

    def _asked(self, request: Request) -> Any:
        return self._several(request, 1)[0]

    def _several(self, request: Request, count: int) -> list[Any]:
        """The answers to one request after another: of a large vocabulary there are many."""
        first = len(self.requests)
        self.requests += [request] * count
        if len(self.requests) > MOST_REQUESTS:
            raise CannotInterpretError(
                f"{request.call}: more than {MOST_REQUESTS:,} numbers a run"
            )
        return [self._answer(index, request) for index in range(first, first + count)]

    @abstractmethod
    def _answer(self, index: int, request: Request) -> Any:
        """The number that answers the request."""


class Given(Source):
    """A source of given numbers.

    * `answer`: (index, request) -> a uniform, a noise > 0, or a branch.
    * `raced`: {call site: reading}: uniforms requested there are derived from exponential noise,
      or noise from uniforms if the reading is `BOXES`.
    """

    def __init__(
        self,
        answer: Callable[[int, Request], float],
        raced: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__()
        self._given, self._raced = answer, raced

    def _several(self, request: Request, count: int) -> list[Any]:
        reading = self._raced.get(request.call.site)
        if reading is None or request.kind not in ("uniform", "exponential"):
            return super()._several(request, count)
        if reading == BOXES:
            drawn = super()._several(Request("uniform", request.call, request.bits), count)
            return [-math.log1p(-uniform) for uniform in drawn]
        drawn = super()._several(Request("exponential", request.call, request.bits), count)
        step, read = 2.0**-request.bits, READINGS[reading]
        within = (min(max(read(noise), step), 1 - step) for noise in drawn)
        return [on_grid(uniform, request.bits) for uniform in within]

    def _answer(self, index: int, request: Request) -> Any:
        answer = self._given(index, request)
        if request.kind == "uniform":
            return on_grid(answer, request.bits)
        return answer


def counted(requests: Iterable[Request]) -> list[tuple[Request, int]]:
    """Requests, each with how often it was made in a row: of a large array that is one."""
    rows = (list(row) for _, row in groupby(requests, key=id))
    return [(row[0], len(row)) for row in rows]


def on_grid(uniform: float, bits: int) -> float:
    """The largest multiple of 2^-bits in [0, 1) that is not above a number."""
    cells: int = 1 << bits
    return min(max(math.floor(uniform * cells), 0), cells - 1) / cells


# No generator gives infinite noise; NumPy draws Gumbel noise again that would be infinite.
# random_standard_exponential (numpy/random/src/distributions/distributions.c) returns an integer
# of 53 bits times a constant, the one for float32 an integer of 23 bits: 42 zeros in 4 10^8 draws.
# The method "inv" is -log1p(-u) of a uniform of 53 or 24 bits; so is the legacy generator's.
ZIGGURAT_ZERO: Mapping[int, float] = MappingProxyType(
    {FLOAT64_BITS: 2.0**-53, FLOAT32_BITS: 2.0**-23}
)
INVERSION_ZERO: Mapping[int, float] = MappingProxyType(
    {FLOAT64_BITS: 2.0**-53, FLOAT32_BITS: 2.0**-24}
)

# Rounded to float16, noise below 2^-25 is 0: 5 zeros in 1.15 10^8 draws of torch on a CPU.
HALF_ZERO = 2.0**-25


def torch_zero(device: str, bits: int, *, mkl: bool) -> float:
    """How often torch's `exponential_` gives exactly 0.

    By aten/src/ATen/core/TransformationHelper.h (CUDA: at least half an epsilon, which float16
    has, too; CPU: -log1p(-u) of 53 bits), native/cpu/DistributionKernels.cpp (with MKL the least
    normal number is added) and native/mps/operations/Distributions.mm (-log(1 - u)) of torch 2.13.
    """
    if device == "mps":
        return 2.0**-FLOAT32_BITS
    if device != "cpu":
        return 0.0
    if bits == HALF_BITS:
        return HALF_ZERO
    return 0.0 if mkl else 2.0**-FLOAT64_BITS


@dataclass(eq=False)
class Interception:
    """One run of user code on a source.

    * `answers`: {id of a random function or class: its replacement}.
    * `thread`: The only thread in which randomness is intercepted.
    * `over`: Whether the run has ended or was abandoned.
    * `abandoned`: Whether nobody waits for it any more: its thread ends at the next draw.
    """

    source: Source
    answers: Mapping[int, Any]
    thread: int = field(default_factory=threading.get_ident)
    over: bool = False
    abandoned: bool = False


_CURRENT: ContextVar[Interception | None] = ContextVar("specref_interception", default=None)


def current() -> Interception | None:
    """The interception of the run that is active in this thread and context, if any.

    * raises `SystemExit`: The run was abandoned.
    """
    found = _CURRENT.get()
    if found is None or found.thread != threading.get_ident():
        return None
    if found.abandoned:
        raise SystemExit
    return None if found.over else found


def current_source() -> Source:
    """The source of the run that is active here, which there must be."""
    interception = current()
    if interception is None:
        raise RuntimeError("no run goes on here")
    return interception.source


@contextmanager
def intercepting(interception: Interception) -> Iterator[None]:
    """Make `current` return the interception in this thread and context."""
    token = _CURRENT.set(interception)
    try:
        yield
    finally:
        interception.over = True
        _CURRENT.reset(token)
