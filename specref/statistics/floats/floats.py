"""Verification in float32, float16 and bfloat16: how rounding changes the output law.

Arithmetic is emulated in float64: an operation on two numbers of a narrower format, rounded
to that format afterwards, gives what the format's own operation gives. Sums and draws are
taken to be ideal; what is left is the rounding of p, q, p / q, p - q and of the uniforms.

The float64 reference takes its coins, and says how far rounding moves a draw: standard speculative
decoding of a batch, by an exponential race.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from specref.arrays import NO_TOKEN, Floats, Ints
from specref.batched import Batch, leading, verifier
from specref.coins import Coins


def race_mismatch(p: Floats, w: Floats) -> float:
    """P(argmin E / p differs from argmin E / w), E exponential noise: at most 2 TV / (1 + TV).

    Both choose x iff E_y >= E_x m_y for all y, with m_y = max(p_y / p_x, w_y / w_x): the
    chance is 1 / sum m, at least min(p_x, w_x) / sum max(p, w). Tokens may come in any order.
    """
    ratio = np.divide(w, p, out=np.full_like(p, np.inf), where=p > 0)
    order = np.argsort(ratio)
    p, w = p[order] / p.sum(), w[order] / w.sum()
    below, above = np.cumsum(p) - p, np.cumsum(w[::-1])[::-1]
    x = (p > 0) & (w > 0)
    return 1 - float((1 / (below[x] / p[x] + above[x] / w[x])).sum())


def inverse_cdf_mismatch(p: Floats, w: Floats) -> float:
    """P(the inverse CDFs of p and w differ at one uniform): a shift lasts for all later tokens."""
    ends = [np.cumsum(law / law.sum()) for law in (p, w)]
    starts = [np.concatenate([[0.0], end[:-1]]) for end in ends]
    return 1 - float(np.maximum(np.minimum(*ends) - np.maximum(*starts), 0).sum())


def verify_float64(p: Floats, q: Floats, drafts: Ints, coins: Coins) -> Ints:
    """Standard speculative decoding of a batch in float64: the reference.

    Leviathan et al. 2023, Algorithm 1; Chen et al. 2023, Algorithm 2. Where p = q a draft is
    never rejected, since its uniform is below 1 = p / q. Where rounding alone rejects a draft
    and no token has p > q (a chance of the order of 1e-16), the last token is drawn from p.

    p and q have a row for each trial, or one for all. Rows of drafts, and blocks, are padded with
    -1.

    >>> p, q = np.array([[[0.5, 0.5], [0.0, 1.0]]]), np.array([[[0.8, 0.2]]])
    >>> coins = Coins(np.array([[0.6], [0.7]]), np.ones((2, 2)))
    >>> verify_float64(p, q, np.array([[0], [0]]), coins)
    array([[ 0,  1],
           [ 1, -1]])
    """
    _check_shapes(p, q, drafts, coins)
    _check_drafts(q, drafts)
    return verify_rounded(lambda values: values, p, q, drafts, coins)


def verify_rounded(
    rounded: Callable[[Floats], Floats], p: Floats, q: Floats, drafts: Ints, coins: Coins
) -> Ints:
    """The same verification with p, q and every result of arithmetic passed through `rounded`."""
    p, q = (np.broadcast_to(rows, (len(drafts), *rows.shape[1:])) for rows in (p, q))

    def accepted(batch: Batch) -> Ints:
        """Drafts before the first refusal; 0 / 0 refuses."""
        of_p, of_q = (rounded(batch.drafted(rows)) for rows in (batch.p, batch.q))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = rounded(of_p / of_q)
        return leading((batch.drafts != NO_TOKEN) & (batch.accept < ratio))

    def weights(batch: Batch, count: Ints) -> Floats:
        """Rounded (p - q)+ after a refusal, unless that is all 0."""
        law = rounded(batch.p[batch.rows, count])
        rejected = np.flatnonzero(count < batch.lens)
        excess = law[rejected] - rounded(batch.q[rejected, count[rejected]])
        residual = rounded(np.maximum(excess, 0))
        left = residual.any(axis=1)
        law[rejected[left]] = residual[left]
        return law

    verify = verifier(accepted=accepted, weights=weights)
    tokens, _ = verify(p, q, drafts, coins=coins)
    return tokens


def _check_shapes(p: Floats, q: Floats, drafts: Ints, coins: Coins) -> None:
    trials, lookahead = drafts.shape
    size = p.shape[-1]
    given = {"p": p.shape, "q": q.shape, "accept": coins.accept.shape, "race": coins.race.shape}
    expected = {
        "p": (trials, lookahead + 1, size),
        "q": (trials, lookahead, size),
        "accept": (trials, lookahead),
        "race": (trials, size),
    }
    for name, shape in expected.items():
        repeated = (1, *shape[1:]) if name in ("p", "q") else shape
        if given[name] not in (shape, repeated):
            raise ValueError(f"{name} has shape {given[name]}: expected {shape}")


def _check_drafts(q: Floats, drafts: Ints) -> None:
    trial, position = np.ogrid[: drafts.shape[0], : drafts.shape[1]]
    known = (drafts >= 0) & (drafts < q.shape[-1])
    chance = np.where(len(q) == 1, 0, trial), position, np.where(known, drafts, 0)
    none = drafts == NO_TOKEN
    late = np.logical_or.accumulate(none, axis=1) & ~none
    wrong = np.argwhere(late | (~none & ~(known & (q[chance] > 0))))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(
            f"drafts[{row}, {column}] = {drafts[row, column]}: expected a token with q > 0, or -1 "
            "after the last"
        )


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

    Logits are rounded to `dtype` first. Where they are of that format already, as a model emits
    them, their exact softmax is the target.
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

    `drafted_in`: the format of the q that drafts are drawn from, if not of the one that verifies.
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
    """`law_in` of probabilities, for drafts from norm(`drafted`), by default the rounded q."""
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
