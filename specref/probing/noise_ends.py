"""The ends of exponential noise: which generators give exactly 0, and how large it gets.

None of these generators gives infinity; NumPy's Gumbel noise is finite (`random_gumbel` draws
again), so that of them minus the logarithm is never infinite either.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType

FLOAT64, FLOAT32, HALF = 53, 24, 11

# random_standard_exponential (numpy/random/src/distributions/distributions.c) returns an integer
# of 53 bits times a constant, the one for float32 an integer of 23 bits: 42 zeros in 4 10^8 draws.
# The method "inv" is -log1p(-u) of a uniform of 53 or 24 bits; so is the legacy generator's.
ZIGGURAT_ZERO: Mapping[int, float] = MappingProxyType({FLOAT64: 2.0**-53, FLOAT32: 2.0**-23})
INVERSION_ZERO: Mapping[int, float] = MappingProxyType({FLOAT64: 2.0**-53, FLOAT32: 2.0**-24})

# Rounded to float16, noise below 2^-25 is 0: 5 zeros in 1.15 10^8 draws of torch on a CPU.
HALF_ZERO = 2.0**-25

ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "torch.Tensor.exponential_": "0 once in 2^24 by torch on MPS (-log(1 - u) of float32), "
        "once in 2^53 on CPUs without MKL",
        "coins.race": "0 once in 2^24 if it is -log(1 - u) of a uniform in float32",
    }
)
"""{call: its other generators that give 0}."""


def torch_zero(device: str, bits: int, *, mkl: bool) -> float:
    """How often torch's `exponential_` gives exactly 0.

    By aten/src/ATen/core/TransformationHelper.h (CUDA: at least half an epsilon, which float16
    has, too; CPU: -log1p(-u) of 53 bits), native/cpu/DistributionKernels.cpp (with MKL the least
    normal number is added) and native/mps/operations/Distributions.mm (-log(1 - u)) of torch 2.13.
    """
    if device == "mps":
        return 2.0**-FLOAT32
    if device != "cpu":
        return 0.0
    if bits == HALF:
        return HALF_ZERO
    return 0.0 if mkl else 2.0**-FLOAT64


def largest_noise(bits: int) -> float:
    """About the largest noise made of a uniform of so many bits."""
    return bits * math.log(2)
