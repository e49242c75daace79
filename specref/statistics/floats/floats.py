"""Verification in float32, float16 and bfloat16: how rounding changes the output law.

Arithmetic is emulated in float64: an operation on two numbers of a narrower format, rounded
to that format afterwards, gives what the format's own operation gives. Sums and draws are
taken to be ideal; what is left is the rounding of p, q, p / q, p - q and of the uniforms.
"""

from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from specref.arrays import Floats, Ints
from specref.coins import Coins
from specref.statistics.floats.reference import verify_rounded

Dtype: TypeAlias = Literal["float64", "float32", "float16", "bfloat16"]
BITS = 24

EQUIVALENCE_MARGIN: dict[str, float] = {"float32": 1e-6, "float16": 2e-3, "bfloat16": 1.2e-2}
"""Total variation of one token that is put down to rounding rather than held against a sampler.

The tolerance for comparing a sampler of low precision with a float64 target; it belongs in the
report, since a bug of that size passes. It covers `rounding_bound` up to 131,072 tokens, but
for float16 only up to 8,000; above, it is twice the largest distance seen. The median distance
of random logits is 5e-8, 3e-4 and 8e-4. It is tighter to take the same format's p, normalised
in float64, as the target: distances halve, and only errors of verification are left in them.
"""


class Format(NamedTuple):
    """A rounded number x is at most `relative` |x| + `absolute` away from x."""

    relative: float
    absolute: float


FORMATS: dict[Dtype, Format] = {
    "float64": Format(2.0**-53, 2.0**-1074),
    "float32": Format(2.0**-24, 2.0**-150),
    "float16": Format(2.0**-11, 2.0**-25),
    # Rounded twice, by way of float32.
    "bfloat16": Format(2.0**-8 + 2.0**-23, 2.0**-133),
}


def round_to(values: ArrayLike, dtype: Dtype) -> Floats:
    """Round to the nearest number of a format, ties to even; held in float64.

    bfloat16 is the upper half of a float32, as hardware and torch convert it.

    * raises `ValueError`: Unknown format.
    """
    if dtype not in FORMATS:
        raise ValueError(f"dtype = {dtype!r}: expected one of {', '.join(FORMATS)}")
    exact = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore"):
        stored = exact.astype(np.float32 if dtype == "bfloat16" else dtype)
    if dtype == "bfloat16":
        stored = _upper_half(stored)
    return stored.astype(np.float64)


def _upper_half(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """float32 rounded to the nearest bfloat16, ties to even."""
    bits = np.atleast_1d(values).view(np.uint32)
    even = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    rounded = even.view(np.float32).reshape(values.shape)
    return np.where(np.isnan(values), values, rounded)


def softmax_in(dtype: Dtype, logits: ArrayLike) -> Floats:
    """Softmax over the last axis as engines do it: in float32, from and to a narrower format.

    * `dtype` ({"float64", "float32", "float16", "bfloat16"}): "float64" is computed in float64.
    * `logits` (array_like, shape (..., V)): Rounded to `dtype` first. Where they are of that
      format already, as a model emits them, their exact softmax is the target.
    * returns: ndarray, shape (..., V): float64 numbers of the format; they sum to 1 up to
      rounding.
    """
    internal = np.float64 if dtype == "float64" else np.float32
    rounded = round_to(logits, dtype).astype(internal)
    weights = np.exp(rounded - rounded.max(axis=-1, keepdims=True))
    return round_to(weights / weights.sum(axis=-1, keepdims=True), dtype)


def verify_in(
    dtype: Dtype, p: Floats, q: Floats, drafts: Ints, coins: Coins, uniform_bits: int = BITS
) -> Ints:
    """Standard speculative decoding in a format: the twin of `verify_float64` to be judged.

    p and q are rounded to the format, and so are p / q and (p - q)+. Uniforms are cut off after
    `uniform_bits` binary digits, as a generator of that format makes them. 0 / 0 refuses a
    draft; where no token has p > q then, the last token is drawn from p. Draws race in float64.

    Parameters and result as `verify_float64`.
    """
    uniforms = np.floor(coins.accept * 2.0**uniform_bits) / 2.0**uniform_bits
    rounded = partial(round_to, dtype=dtype)
    return verify_rounded(rounded, p, q, drafts, Coins(uniforms, coins.race))


def law_in(
    dtype: Dtype,
    p_logits: ArrayLike,
    q_logits: ArrayLike,
    *,
    drafted_in: Dtype | None = None,
    uniform_bits: int = BITS,
) -> Floats:
    """The exact law of one token of `verify_in`, with softmax in the same format.

    * `dtype` ({"float64", "float32", "float16", "bfloat16"})
    * `p_logits`, `q_logits` (array_like, shape (V,))
    * `drafted_in`: The format of the q that drafts are drawn from, if it is not the q that
      verifies them.
    * returns: ndarray, shape (V,): Sums to 1 up to float64 rounding.
    """
    p, q = (softmax_in(dtype, logits) for logits in (p_logits, q_logits))
    drafted = q if drafted_in is None else softmax_in(drafted_in, q_logits)
    return output_law(dtype, p, q, drafted=drafted, uniform_bits=uniform_bits)


def output_law(
    dtype: Dtype,
    p: Floats,
    q: Floats,
    *,
    drafted: Floats | None = None,
    uniform_bits: int = BITS,
) -> Floats:
    """The exact law of one token of `verify_in`, for drafts drawn from norm(`drafted`).

    Parameters and result as `law_in`, from probabilities; `drafted` is by default the rounded q.
    """
    p, q = round_to(p, dtype), round_to(q, dtype)
    draft = q if drafted is None else drafted
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.nan_to_num(round_to(p / q, dtype), nan=0.0, posinf=1.0)
    # k / 2^bits < ratio holds for ceil(ratio 2^bits) of the uniforms k = 0, 1, ...
    chance = np.ceil(np.minimum(ratio, 1) * 2.0**uniform_bits) / 2.0**uniform_bits
    accepted = draft / draft.sum() * chance
    excess = round_to(np.maximum(p - q, 0), dtype)
    last = excess if excess.any() else p
    return np.asarray(accepted + (1 - accepted.sum()) * last / last.sum())


def rounding_bound(dtype: Dtype, size: int, uniform_bits: int = BITS) -> float:
    """A proved bound on TV(output_law(dtype, p, q), p), for all p and q over `size` tokens.

    With u and a the relative and absolute error of the format, rounding moves p and q by at
    most e = u + V a in L1, each, to sums of at most s = 1 + e. Acceptance then moves a mass of
    at most e + (u + a + 2^-bits) s; the mass left for the residual moves by that and another e;
    the shape of a residual of mass r moves by 2 u r. Half of the total is what is returned.

    Examples
    --------
    >>> [f"{rounding_bound(dtype, 1000):.1e}" for dtype in ("float32", "float16", "bfloat16")]
    ['2.4e-07', '1.5e-03', '1.2e-02']
    """
    u, a = FORMATS[dtype]
    e = u + size * a
    return 2 * e + (u + a + 2.0**-uniform_bits) * (1 + e)
