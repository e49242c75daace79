"""Triton kernels of `fused`: the program of one grid cell, for a row or a chunk of a row."""

from typing import Any, NamedTuple

import triton
import triton.language as tl
from triton.language.standard import _elementwise_max as larger
from triton.language.standard import _elementwise_min as smaller
from triton.language.standard import _sum_combine as plus

NO_DRAFT = tl.constexpr(-1)
BELOW_ONE = tl.constexpr(1 - 2.0**-53)


class Laws(NamedTuple):
    """The memory of laws: probabilities, or logits with the row summaries of `summarise`.

    Attributes
    ----------
    data : Tensor, shape (B, lines, V), or None
    row, position, token : int
        Its strides.
    lines : int
        Positions of a row.
    stats : Tensor, shape (B, lines, splits, 2), or None
        Of each split the largest logit, and the sum of exponentials; None for probabilities.
    """

    data: Any
    row: int
    position: int
    token: int
    lines: int
    stats: Any


@triton.jit
def scaled_exp(logits, largest, inverse):
    """exp((logits - largest) / temperature), 0 where the largest is -inf."""
    shift = tl.where(largest == float("-inf"), 0.0, largest)
    return tl.exp((logits - shift) * tl.full((), inverse, logits.dtype))


@triton.jit
def summarise(
    p, q, inverse: tl.float64, size,
    steps: tl.constexpr, width: tl.constexpr, splits: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    """The largest logit and the sum of exponentials of one split of one line."""
    row, line = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    if line < p.lines:
        summarise_line(p, row, line, inverse, size, steps, width, splits, dtype)
    elif q.data is not None:
        summarise_line(q, row, line - p.lines, inverse, size, steps, width, splits, dtype)


@triton.jit
def summarise_line(
    laws, row, line, inverse, size,
    steps: tl.constexpr, width: tl.constexpr, splits: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    """One pass, with the largest so far."""
    split = tl.program_id(2)
    largest = tl.full((), float("-inf"), dtype)
    total = tl.full((), 0.0, dtype)
    logits = laws.data + row * laws.row + line * laws.position
    for step in range(steps):
        token = (step * splits + split) * width + tl.arange(0, width)
        places = logits + token.to(tl.int64) * laws.token
        seen = tl.load(places, token < size, float("-inf")).to(dtype)
        most = tl.maximum(largest, tl.reduce(seen, 0, larger))
        summed = tl.reduce(scaled_exp(seen, most, inverse), 0, plus)
        total = total * scaled_exp(largest, most, inverse) + summed
        largest = most
    place = laws.stats + 2 * ((row * laws.lines + line) * splits + split)
    tl.store(place, largest)
    tl.store(place + 1, total)


@triton.jit
def read(laws, row, position, token, inside, inverse, splits: tl.constexpr, dtype: tl.constexpr):
    """Probabilities of tokens where `inside`; each has its position, or all have one."""
    position, token = position.to(tl.int64), token.to(tl.int64)
    places = laws.data + row * laws.row + position * laws.position + token * laws.token
    if laws.stats is None:
        return tl.load(places, mask=inside, other=0.0).to(dtype)
    else:
        logits = tl.load(places, mask=inside, other=float("-inf")).to(dtype)
        split = tl.arange(0, splits)[None, :]
        line = row * laws.lines + tl.minimum(position, laws.lines - 1)
        stats = laws.stats + 2 * (line[:, None] * splits + split)
        largest, total = tl.load(stats), tl.load(stats + 1)
        most = tl.reduce(largest, 1, larger)
        total = tl.reduce(total * scaled_exp(largest, most[:, None], inverse), 1, plus)
        return scaled_exp(logits, most, inverse) / total


@triton.jit
def judge(
    p, q, tokens, lens, accept, inverse, row, lookahead,
    positions: tl.constexpr, splits: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    """The drafts of a row, how many are kept, and the one that is not, or NO_DRAFT."""
    position = tl.arange(0, positions)
    inside = position < lookahead
    if lens is not None:
        inside = inside & (position < tl.load(lens + row))
    drafts = tl.load(tokens + row * lookahead + position, mask=inside, other=NO_DRAFT).to(tl.int64)
    known = drafts >= 0
    uniforms = tl.load(accept + row * lookahead + position, mask=known, other=0.0).to(tl.float64)
    ratio = read(p, row, position, drafts, known, inverse, splits, dtype).to(tl.float64)
    if q.data is not None:
        below = read(q, row, position, drafts, known, inverse, splits, dtype)
        ratio = ratio / below.to(tl.float64)
    # Where all are accepted the first position without a draft is the one that stops.
    stops = tl.where(known & (uniforms < ratio), positions, position)
    kept = tl.reduce(stops, 0, smaller)
    return drafts, kept, tl.reduce(tl.where(position == kept, drafts, 0), 0, plus)


@triton.jit
def weights(
    p, q, row, kept, rejected, chunk, inverse, size,
    width: tl.constexpr, splits: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    """(p - q)+ and p in one chunk, at the position where a row stopped; q is 0 at a bonus."""
    token = chunk * width + tl.arange(0, width)
    inside = token < size
    position = kept + tl.arange(0, 1)
    law = read(p, row, position, token, inside, inverse, splits, dtype)
    if q.data is None:
        excess = tl.where(token == rejected, 0.0, law)
    else:
        judged = token < tl.where(rejected == NO_DRAFT, 0, size)
        drafted = read(q, row, position, token, judged, inverse, splits, dtype)
        excess = tl.maximum(law - drafted, 0.0)
    return excess, law


@triton.jit
def sum_chunks(
    p, q, tokens, lens, accept, inverse: tl.float64, blocks, counts, sums, lookahead, size,
    positions: tl.constexpr, width: tl.constexpr, splits: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    """Sum the weights of one chunk; the first program of a row writes the drafts it keeps."""
    row, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    drafts, kept, rejected = judge(
        p, q, tokens, lens, accept, inverse, row, lookahead, positions, splits, dtype
    )
    if chunk == 0:
        position = tl.arange(0, positions)
        block = tl.where(position <= kept, drafts, NO_DRAFT)
        places = blocks + row * (lookahead + 1) + position
        tl.store(places, block, mask=position <= lookahead)
        tl.store(counts + row, kept + 1)
    excess, law = weights(p, q, row, kept, rejected, chunk, inverse, size, width, splits, dtype)
    place = sums + 2 * (row * tl.num_programs(1) + chunk)
    tl.store(place, tl.reduce(excess, 0, plus))
    tl.store(place + 1, tl.reduce(law, 0, plus))


@triton.jit
def draw_last(
    p, q, final, inverse: tl.float64, blocks, counts, sums, lookahead, size, chunks,
    padded: tl.constexpr, width: tl.constexpr, splits: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    """The last token of a row, over the draft that was not kept."""
    row, number = tl.program_id(0).to(tl.int64), tl.arange(0, padded)
    kept = tl.load(counts + row) - 1
    place = blocks + row * (lookahead + 1) + kept
    rejected = tl.load(place)
    summed = sums + 2 * (row * chunks + number)
    excess = tl.load(summed, mask=number < chunks, other=0.0)
    law = tl.load(summed + 1, mask=number < chunks, other=0.0)
    left = tl.reduce(excess, 0, larger) > 0
    uniform = tl.load(final + row).to(tl.float64)
    chunk, uniform = first_beyond(tl.where(left, excess, law), uniform, padded)
    excess, law = weights(p, q, row, kept, rejected, chunk, inverse, size, width, splits, dtype)
    token, uniform = first_beyond(tl.where(left, excess, law).to(tl.float64), uniform, width)
    tl.store(place, chunk * width + token)


@triton.jit
def first_beyond(masses, uniform, count: tl.constexpr):
    """Where the inverse CDF leads, and how far into that mass, as a number in [0, 1)."""
    index = tl.arange(0, count)
    ends = tl.where(masses > 0, tl.associative_scan(masses, 0, plus), 0.0)
    point = uniform * tl.reduce(ends, 0, larger)
    chosen = tl.reduce(tl.where(ends > point, index, count - 1), 0, smaller)
    here = index == chosen
    above = tl.reduce(tl.where(here, ends, 0.0), 0, plus) - point
    within = 1 - above / tl.reduce(tl.where(here, masses, 0.0), 0, plus)
    return chosen, tl.minimum(tl.maximum(within, 0.0), BELOW_ONE)
