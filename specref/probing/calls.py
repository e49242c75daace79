"""Calls for randomness, and the exceptions for those that cannot be followed."""

import sys
from dataclasses import dataclass
from types import FrameType

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
