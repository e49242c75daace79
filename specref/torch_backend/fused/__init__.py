"""Verification of a batch in two launches of Triton kernels, without rows in between.

A launch sums the weights of the last token chunk by chunk, of the row where verification
stopped; another picks a chunk by these sums and a token by what is in that chunk. Of the laws
little else is read. Without CUDA the kernels run in Triton's interpreter: for tests.
"""

from typing import Any

import torch
from torch import Tensor

from specref.torch_backend.randomness import Coins
from specref.torch_backend.shaping import COLDEST, HOTTEST
from specref.torch_backend.validation import check_coins, check_shapes

try:
    import triton
    import triton.language as tl
except ImportError as error:
    raise ImportError(
        "torch_backend.fused needs Triton, which comes with torch for CUDA: pip install triton"
    ) from error

from specref.torch_backend.fused import kernels
from specref.torch_backend.fused.interpreted import launch

CHUNK_BYTES, SPLITS = 8192, 16


def verify(
    target_probs: Tensor,
    draft_probs: Tensor | None,
    draft_tokens: Tensor,
    *,
    lens: Tensor | None = None,
    coins: Coins,
) -> tuple[Tensor, Tensor]:
    """Standard speculative decoding of a batch (Leviathan et al. 2023, Algorithm 1), fused.

    What `verification.verify` does with a `final` coin. Blocks are the same, but for coins within
    rounding of where a token ends: sums of a chunk, 8 KiB of a law, are in float32 unless laws of
    the target are float64, and sums of these in float64.

    Parameters
    ----------
    target_probs, draft_probs, draft_tokens, lens
        As for `verification.verify`.
    coins : Coins
        `final` draws the last token by an inverse CDF; there is no race.

    Returns
    -------
    tokens, counts
        As `verification.verify`.

    Raises
    ------
    TypeError
        Laws are no floats, or tokens or lengths no integers.
    ValueError
        Shapes or devices do not fit, or `coins` has a race or no `final`. Values are taken on
        trust: see `validate`.

    Examples
    --------
    >>> p = torch.tensor([[[0.5, 0.5], [0.0, 1.0]]]).expand(2, -1, -1)
    >>> q = torch.tensor([[[0.8, 0.2]]]).expand(2, -1, -1)
    >>> coins = Coins(torch.tensor([[0.6], [0.7]]), final=torch.tensor([0.0, 0.0]))
    >>> verify(p, q, torch.tensor([[0], [0]]), coins=coins)
    (tensor([[ 0,  1],
            [ 1, -1]]), tensor([2, 1]))
    """
    _check("probs", target_probs, draft_probs, draft_tokens, lens, coins)
    p, q = _laws(target_probs), _laws(draft_probs)
    return _verified(p, q, draft_tokens, lens, coins, 1.0)


def verify_logits(
    target_logits: Tensor,
    draft_logits: Tensor | None,
    draft_tokens: Tensor,
    *,
    temperature: float = 1.0,
    lens: Tensor | None = None,
    coins: Coins,
) -> tuple[Tensor, Tensor]:
    """`verify` of the softmax of logits, whose laws are never written.

    One more launch reads every line of logits once, for its largest and its sum of exponentials;
    the row where verification stopped is read again.

    Parameters
    ----------
    target_logits, draft_logits, draft_tokens, lens, coins
        As for `verify`, with logits for laws. -inf for a token that is forbidden; at least one
        entry of each line is finite.
    temperature : float
        2^-126 to 2^126, of both. For 0 make point masses by `shape_logits`.

    Returns
    -------
    tokens, counts
        As `verify`.

    Raises
    ------
    TypeError, ValueError
        As `verify`, or `temperature` is out of range.

    Examples
    --------
    >>> p = torch.tensor([[[0.5, 0.5], [0.0, 1.0]]]).log()
    >>> coins = Coins(torch.tensor([[0.3]]), final=torch.tensor([0.0]))
    >>> verify_logits(p, p[:, :1], torch.tensor([[0]]), coins=coins)
    (tensor([[0, 1]]), tensor([2]))
    """
    _check("logits", target_logits, draft_logits, draft_tokens, lens, coins)
    if not COLDEST <= temperature <= HOTTEST:
        raise ValueError(f"temperature = {temperature}: expected 2^-126 to 2^126")
    p, q = _laws(target_logits, logits=True), _laws(draft_logits, logits=True)
    (rows, _, size), inverse = target_logits.shape, 1 / temperature
    launch(
        kernels.summarise,
        (rows, p.lines + q.lines, SPLITS),
        *(p, q, inverse, size),
        steps=triton.cdiv(size, SPLITS * _width(p)),
        **_constants(p),
    )
    return _verified(p, q, draft_tokens, lens, coins, inverse)


def _verified(
    p: kernels.Laws,
    q: kernels.Laws,
    draft_tokens: Tensor,
    lens: Tensor | None,
    coins: Coins,
    inverse: float,
) -> tuple[Tensor, Tensor]:
    """The two launches; logits are summarised before them."""
    rows, longest, size = p.data.shape
    chunks, constants = triton.cdiv(size, _width(p)), _constants(p)
    blocks = draft_tokens.new_empty((rows, longest), dtype=torch.int64)
    counts = blocks.new_empty(rows)
    sums = blocks.new_empty((rows, chunks, 2), dtype=torch.float64)
    given = (draft_tokens, lens, coins.accept, coins.final)
    drafts, lens, accept, final = (one if one is None else one.contiguous() for one in given)
    out = (inverse, blocks, counts, sums, longest - 1, size)
    launch(
        kernels.sum_chunks,
        (rows, chunks),
        *(p, q, drafts, lens, accept, *out),
        positions=triton.next_power_of_2(longest),
        **constants,
    )
    launch(
        kernels.draw_last,
        (rows,),
        *(p, q, final, *out, chunks),
        padded=triton.next_power_of_2(chunks),
        **constants,
    )
    return blocks, counts


def _laws(data: Tensor | None, logits: bool = False) -> kernels.Laws:
    if data is None or not data.shape[1]:
        return kernels.Laws(None, 0, 0, 0, 0, None)
    shape, wide = (*data.shape[:2], SPLITS, 2), torch.promote_types(data.dtype, torch.float32)
    stats = data.new_empty(shape, dtype=wide) if logits else None
    row, position, token = data.stride()
    return kernels.Laws(data, row, position, token, data.shape[1], stats)


def _constants(laws: kernels.Laws) -> dict[str, Any]:
    wide = tl.float64 if laws.data.dtype == torch.float64 else tl.float32
    return {"width": _width(laws), "splits": SPLITS, "dtype": wide}


def _width(laws: kernels.Laws) -> int:
    return CHUNK_BYTES // int(laws.data.element_size())


def _check(
    kind: str,
    target: Tensor,
    drafter: Tensor | None,
    tokens: Tensor,
    lens: Tensor | None,
    coins: Coins,
) -> None:
    check_shapes(target, drafter, tokens, lens, kind)
    if coins.final is None:
        raise ValueError("coins.final is None: expected a tensor, for the last token")
    if coins.race is not None:
        raise ValueError("coins.race is given: expected None, as there is no race")
    check_coins(coins, target)
    others = {f"draft_{kind}": drafter, "draft_tokens": tokens, "lens": lens}
    others |= {"coins.accept": coins.accept, "coins.final": coins.final}
    for name, one in others.items():
        if one is not None and one.device != target.device:
            raise ValueError(f"{name} is on {one.device}: expected {target.device}, as the target")
