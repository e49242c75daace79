"""From logits to the law that is sampled from, a token from a law, and numbers on a device."""

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

COLDEST, HOTTEST = 2.0**-126, 2.0**126  # both have a normal float32 reciprocal
BLOCK = 1024
BELOW_ONE = 1 - 2.0**-53


def shape_logits(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    """Probabilities after temperature, then top-k, then top-p on what top-k left.

    The order of Transformers' logits warpers: top-p judges the distribution that is renormalised
    after top-k. What is returned is the distribution itself: draw drafts from these very rows and
    verify with them, so that the declared q is the sampled q.

    Parameters
    ----------
    logits : Tensor, shape (..., V)
        -inf for a token that is forbidden; at least one entry of a row is finite.
    temperature : float
        0, a point mass on the first largest logit, or 2^-126 to 2^126.
    top_k : int, optional
        Keep the k largest; of equal logits those with the lower ids (Transformers keeps all
        that tie with the last). More than V keeps all.
    top_p : float, optional
        Keep the fewest likeliest tokens whose mass is at least `top_p`, and at least one; ties
        go to the lower id, and 1 keeps all.

    Returns
    -------
    Tensor, shape (..., V)
        float64 for float64 logits, otherwise float32.

    Raises
    ------
    TypeError
        `logits` is no tensor of floats.
    ValueError
        An argument is out of range.

    Examples
    --------
    >>> logits = torch.tensor([0.5, 0.25, 0.125, 0.125], dtype=torch.float64).log()
    >>> shape_logits(logits, top_k=3, top_p=0.6)
    tensor([0.6667, 0.3333, 0.0000, 0.0000], dtype=torch.float64)
    >>> shape_logits(logits, temperature=0)
    tensor([1., 0., 0., 0.], dtype=torch.float64)
    """
    _check_shaping(logits, temperature, top_k, top_p)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    largest = logits.argmax(dim=-1, keepdim=True)
    if temperature == 0:
        return torch.zeros_like(logits).scatter_(-1, largest, 1.0)
    # Less the largest: division by a small temperature then gives no inf - inf.
    scaled = (logits - logits.gather(-1, largest)) / temperature
    if top_k is None and (top_p is None or top_p == 1):
        return scaled.softmax(dim=-1)
    ranked, tokens = scaled.sort(dim=-1, descending=True, stable=True)
    if top_k is not None:
        ranked[..., top_k:] = -math.inf
    if top_p is not None and top_p < 1:
        mass = ranked.softmax(dim=-1).cumsum(dim=-1, dtype=torch.float64)
        # A token is kept iff those before it do not reach top_p; nothing is before the first.
        ranked[..., 1:].masked_fill_(mass[..., :-1] >= top_p, -math.inf)
    return torch.zeros_like(scaled).scatter_(-1, tokens, ranked.softmax(dim=-1))


def draw(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    """Tokens by an inverse CDF: the first whose cumulative weight exceeds u times the total.

    A token of weight 0 is never drawn, whatever u in [0, 1): not at 0, not at the last number
    below 1, and not where a parallel cumulative sum moves by its rounding.

    Parameters
    ----------
    probabilities : Tensor, shape (..., V)
        Non-negative weights, not all 0; they need not sum to 1. Any float dtype. Sums are
        taken in float64; over more than 2,048 tokens, those of 1,024 neighbours in float32,
        unless the weights are float64.
    uniforms : Tensor, shape (...)
        In [0, 1).

    Returns
    -------
    Tensor of int64, shape (...)

    Raises
    ------
    ValueError
        Shapes do not fit.

    Examples
    --------
    >>> draw(torch.tensor([[0.0, 0.5, 0.5, 0.0]] * 3), torch.tensor([0.0, 0.5, 0.999]))
    tensor([1, 2, 2])
    """
    if probabilities.shape[:-1] != uniforms.shape or not probabilities.shape[-1]:
        raise ValueError(
            f"uniforms has shape {tuple(uniforms.shape)}: expected that of probabilities, "
            f"{tuple(probabilities.shape)}, without its last dimension of at least 1"
        )
    if probabilities.shape[-1] <= 2 * BLOCK:
        return _first_beyond(probabilities, uniforms)[0]
    block, left = _first_beyond(_block_sums(probabilities), uniforms)
    tokens = block[..., None] * BLOCK + torch.arange(BLOCK, device=block.device)
    outside = tokens >= probabilities.shape[-1]
    weights = probabilities.gather(-1, tokens.masked_fill(outside, 0)).masked_fill(outside, 0)
    return block * BLOCK + _first_beyond(weights, left)[0]


def _block_sums(weights: Tensor) -> Tensor:
    """Sums of `BLOCK` tokens each: a cumulative sum of all would be written, and read again."""
    whole = weights.shape[-1] // BLOCK * BLOCK
    exact = torch.promote_types(weights.dtype, torch.float32)
    shape, rest = (*weights.shape[:-1], -1, BLOCK), weights[..., whole:]
    sums = weights[..., :whole].reshape(shape).sum(dim=-1, dtype=exact)
    return torch.cat([sums, rest.sum(dim=-1, keepdim=True, dtype=exact)], -1).double()


def _first_beyond(weights: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """Where the inverse CDF leads, and how far into that weight, as a number in [0, 1)."""
    ends = weights.cumsum(dim=-1, dtype=torch.float64).masked_fill_(weights <= 0, 0)
    point = uniforms.double() * ends.amax(dim=-1)
    chosen = (ends > point[..., None]).view(torch.uint8).argmax(dim=-1, keepdim=True)
    above = ends.gather(-1, chosen)[..., 0] - point
    left = 1 - above / weights.gather(-1, chosen)[..., 0]
    return chosen[..., 0], left.clamp(0, BELOW_ONE)


def _check_shaping(
    logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
) -> None:
    if not isinstance(logits, Tensor) or not logits.is_floating_point():
        kind = logits.dtype if isinstance(logits, Tensor) else type(logits).__name__
        raise TypeError(f"logits is of {kind}: expected a tensor of floats")
    if logits.ndim == 0 or not logits.shape[-1]:
        raise ValueError(f"logits has shape {tuple(logits.shape)}: expected (..., V), V >= 1")
    if temperature != 0 and not COLDEST <= temperature <= HOTTEST:
        raise ValueError(f"temperature = {temperature}: expected 0, or 2^-126 to 2^126")
    if top_k is not None and not (isinstance(top_k, Integral) and top_k >= 1):
        raise ValueError(f"top_k = {top_k}: expected an integer >= 1, or None")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p = {top_p}: expected a number in (0, 1], or None")


def sent(numbers: Sequence[Any], device: torch.device | str) -> Tensor:
    """Integers, in lists of any depth, as a tensor of int64.

    >>> sent([[1, 2], [3, 4]], "cpu")
    tensor([[1, 2],
            [3, 4]])
    >>> sent([], "cpu").dtype
    torch.int64
    """
    return moved(torch.tensor(numbers, dtype=torch.int64), device)


def moved(tensor: Tensor, device: torch.device | str) -> Tensor:
    """A tensor of the CPU on a device; a plain copy would wait for the work queued there."""
    return tensor.to(device, non_blocking=True)
