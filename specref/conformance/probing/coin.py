"""What is known of a number that is still to be drawn."""

import math
from dataclasses import dataclass, field

from specref.conformance.probing.calls import Call


@dataclass(eq=False)
class Coin:
    """A number still to be drawn: what is known of it.

    Attributes
    ----------
    call : Call
        What asked for it.
    bits : int
        It is made of a uniform multiple of 2^-bits.
    exponential : bool
        Whether it is exponential noise, rather than the uniform itself.
    low, high : int
        The uniform is at least low 2^-bits and below high 2^-bits.
    rate : float
        Of the noise, after races won.
    reading : str or None
        How the uniform is made of noise, once it has raced.
    lost : bool
        Whether it has lost a race: then its law is no longer known.
    settled : float or None
        Its value, once the number was used after its run.
    """

    call: Call
    bits: int
    exponential: bool = False
    low: int = 0
    high: int = field(init=False)
    rate: float = 1.0
    reading: str | None = None
    lost: bool = False
    settled: float | None = None

    def __post_init__(self) -> None:
        self.high = 1 << self.bits

    def value(self, cell: int) -> float:
        """The number, for one multiple of 2^-bits."""
        if self.exponential:
            return -math.log1p(-max(cell, 0.5) / 2**self.bits)
        return float(cell / 2**self.bits)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest value."""
        return self.value(self.low), self.value(self.high - 1)
