"""Verification of a batch in two launches of Triton kernels, without rows in between.

One judges drafts, position by position: of logits it takes each chunk's largest and its sum of
exponentials, and leaves alone what comes after a rejection. The other sums what is left of p - q
chunk by chunk, of rows with a rejection, and picks a chunk by these sums and a token by what is in
that chunk. Tensors are read where they are, by their strides. On a CPU the kernels run if
``TRITON_INTERPRET=1`` was set before Python started: for tests.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from triton.runtime.jit import JITFunction

from specref.torch_backend.fused import kernels
from specref.torch_backend.randomness import Coins
from specref.torch_backend.shaping import COLDEST, HOTTEST
from specref.torch_backend.validation import check_coins, check_shapes


def launch(
    kernel: Any, grid: tuple[int, ...], device: torch.device, *given: Any, **constants: Any
) -> None:
    """Run a kernel on a device: CUDA, or a CPU in Triton's interpreter.

    On a CPU Triton interprets kernels if ``TRITON_INTERPRET=1`` was set before they were made.
    Arguments that are `tl.constexpr`, and options, go by name.

    * raises `ValueError`: The device is neither CUDA nor, in the interpreter, a CPU.

    >>> from specref.torch_backend.fused import kernels
    >>> launch(kernels.judge, (1,), torch.device("meta"))
    Traceback (most recent call last):
    ValueError: tensors are on meta: expected cuda, or cpu with TRITON_INTERPRET=1 ...
    """
    interpreted = not isinstance(kernel, JITFunction)
    if device.type != ("cpu" if interpreted else "cuda"):
        hint = "cuda, or cpu with TRITON_INTERPRET=1 set before Python starts"
        raise ValueError(f"tensors are on {device}: expected {hint}")
    if interpreted:
        kernel[grid](*given, **constants)
        return
    with torch.cuda.device(device):
        kernel[grid](*given, **constants)


try:
    import triton
    import triton.language as tl
except ImportError as error:
    raise ImportError(
        "torch_backend.fused needs Triton, which comes with torch for CUDA: pip install triton"
    ) from error


CHUNK_BYTES, SPLITS, WIDE = 8192, 16, 16
# Warps of a program: one where a draft is judged alone. A chunk is kept in registers: with half
# of these Triton 3.6 takes 204 of a thread's to sum bfloat16 instead of 58, and draws spill.
JUDGING, SUMMING, DRAWING = 1, 8, 16
# Registers of a thread that draws: two programs of 16 warps are on a multiprocessor at once.
REGISTERS = 64


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
    return _verified(target_probs, draft_probs, draft_tokens, lens, coins)


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

    Lines of logits are read once, up to where a row stops, and those after it only if programs
    have begun before that is known; a line where a draft was rejected is read once more.

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
    return _verified(target_logits, draft_logits, draft_tokens, lens, coins, 1 / temperature)


def _verified(
    target: Tensor,
    drafter: Tensor | None,
    draft_tokens: Tensor,
    lens: Tensor | None,
    coins: Coins,
    inverse: float | None = None,
) -> tuple[Tensor, Tensor]:
    """The two launches; of logits if there is an inverse temperature."""
    rows, longest, size = target.shape
    lanes = _lanes([one for one in (target, drafter) if one is not None])
    width = CHUNK_BYTES // target.element_size()
    chunks = triton.cdiv(size + lanes - 1, width)
    splits = 1 if inverse is None else SPLITS
    p, q = (_laws(one, 0 if inverse is None else chunks) for one in (target, drafter))
    drafts, work = _drafts(draft_tokens, lens, coins), _work(target, chunks)
    constants = {
        "width": width,
        "lanes": lanes,
        "padded": triton.next_power_of_2(chunks),
        "dtype": tl.float64 if target.dtype == torch.float64 else tl.float32,
    }
    temperature = 1.0 if inverse is None else inverse
    launch(
        kernels.judge,
        (rows * longest * splits,),
        target.device,
        *(p, q, drafts, work, temperature, size, rows, longest - 1, chunks),
        steps=triton.cdiv(chunks, splits),
        splits=splits,
        num_warps=JUDGING if inverse is None else SUMMING,
        **constants,
    )
    launch(
        kernels.draw_last,
        (rows * chunks,),
        target.device,
        *(p, q, drafts, work, temperature, size, longest - 1, chunks),
        positions=triton.next_power_of_2(longest),
        num_warps=DRAWING,
        maxnreg=REGISTERS,
        **constants,
    )
    return work.blocks, work.counts


def _lanes(laws: Sequence[Tensor]) -> int:
    """Entries of 16 bytes, of which each line has its own first; 1 if entries lie apart."""
    if any(one.stride(2) != 1 or one.data_ptr() % WIDE for one in laws):
        return 1
    return WIDE // min(one.element_size() for one in laws)


def _laws(data: Tensor | None, chunks: int) -> kernels.Laws:
    """The memory of laws, with room for sums of logits in so many chunks."""
    if data is None or not data.shape[1]:
        return kernels.Laws(None, 0, 0, 0, 0, None, None)
    (rows, lines, _), (row, position, token) = data.shape, data.stride()
    wide = torch.promote_types(data.dtype, torch.float32)
    sums = data.new_empty((rows, lines, chunks, 2), dtype=wide) if chunks else None
    norms = data.new_empty((rows, lines, 2), dtype=wide) if chunks else None
    return kernels.Laws(data, row, position, token, lines, sums, norms)


def _drafts(tokens: Tensor, lens: Tensor | None, coins: Coins) -> kernels.Drafts:
    assert coins.final is not None
    row, position = tokens.stride()
    accept, final = coins.accept, coins.final
    accept_row, accept_position = accept.stride()
    lens_row = 0 if lens is None else lens.stride(0)
    given = (tokens, row, position, lens, lens_row, accept, accept_row, accept_position)
    return kernels.Drafts(*given, final, final.stride(0))


def _work(target: Tensor, chunks: int) -> kernels.Work:
    rows, longest, _ = target.shape
    zeros = target.new_zeros((longest + 2, rows), dtype=torch.int32)
    return kernels.Work(
        zeros[0],
        zeros[2:],
        zeros[1],
        target.new_empty((rows, chunks, 2), dtype=torch.float64),
        target.new_empty((rows, longest), dtype=torch.int64),
        target.new_empty(rows, dtype=torch.int64),
    )


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
