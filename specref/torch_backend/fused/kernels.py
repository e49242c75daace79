"""Triton kernels of `fused`: one that judges drafts, and one that draws the last tokens.

Programs are numbered position by position, so that what comes after a row's end is not read. The
last of some programs to arrive at a counter takes what all of them wrote: nothing waits. Each
orders its stores before its arrival, by a barrier, and the last its loads after it: `acq_rel`.
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl
from triton.language.standard import _elementwise_max as larger
from triton.language.standard import _elementwise_min as smaller
from triton.language.standard import _sum_combine as plus

NO_DRAFT = tl.constexpr(-1)
BELOW_ONE = tl.constexpr(1 - 2.0**-53)


class Laws(NamedTuple):
    """The memory of laws, probabilities or logits.

    * `data`, shape (B, lines, V), or None; with its strides.
    * `sums`, shape (B, lines, chunks, 2): Of each chunk of logits the largest, and the sum of
      exponentials; `norms`, shape (B, lines, 2): the same of each line. None for probabilities.
    """

    data: Any
    row: int
    position: int
    token: int
    lines: int
    sums: Any
    norms: Any


class Drafts(NamedTuple):
    """What is judged, and by which random numbers; each tensor with its strides.

    `tokens` and `accept` are of shape (B, K), `lens` (or None) and `final` of shape (B,).
    """

    tokens: Any
    tokens_row: int
    tokens_position: int
    lens: Any
    lens_row: int
    accept: Any
    accept_row: int
    accept_position: int
    final: Any
    final_row: int


class Work(NamedTuple):
    """What programs leave for each other, and what they find; contiguous, the first three 0.

    * `dropped`, shape (B,): Positions of a row that come after the one where it stops.
    * `judging`, `drawing`, shapes (K + 1, B) and (B,): Programs that have arrived; int32.
    * `masses`, shape (B, chunks, 2): Of the line where a row stops, of (p - q)+ and of p; float64.
    * `blocks`, `counts`, shapes (B, K + 1) and (B,), int64.
    """

    dropped: Any
    judging: Any
    drawing: Any
    masses: Any
    blocks: Any
    counts: Any


@triton.jit
def scaled_exp(logits, largest, inverse):
    """exp((logits - largest) / temperature), 0 where the largest is -inf."""
    shift = tl.where(largest == float("-inf"), 0.0, largest)
    return tl.exp((logits - shift) * tl.full((), inverse, logits.dtype))


@triton.jit
def first_token(laws, row, position, chunk, width: tl.constexpr, lanes: tl.constexpr):
    """Where a chunk begins: chunk 0 at or before token 0, where 16 bytes of memory begin."""
    begin = row * laws.row + position * laws.position
    return chunk.to(tl.int64) * width - begin % lanes


@triton.jit
def read(
    laws, row, position, first, size, outside,
    width: tl.constexpr, lanes: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    """Entries of a line from a token on, `outside` where there is none.

    A caller who says so has entries aligned: a chunk inside is read 16 bytes at once.
    """
    index = tl.arange(0, width)
    place = row * laws.row + position * laws.position + first * laws.token
    places = laws.data + tl.multiple_of(place, lanes) + index * laws.token
    if (first >= 0) & (first + width <= size):
        found = tl.load(places)
    else:
        token = first + index
        found = tl.load(places, mask=(token >= 0) & (token < size), other=outside)
    return found.to(dtype)


@triton.jit
def summarise(
    laws, row, position, split, inverse, size, chunks,
    steps: tl.constexpr, width: tl.constexpr, splits: tl.constexpr, lanes: tl.constexpr,
    dtype: tl.constexpr,
):  # fmt: skip
    """The largest logit and the sum of exponentials of each chunk of a split of a line."""
    for step in range(steps):
        chunk = step * splits + split
        if chunk < chunks:
            first = first_token(laws, row, position, chunk, width, lanes)
            seen = read(laws, row, position, first, size, float("-inf"), width, lanes, dtype)
            largest = tl.reduce(seen, 0, larger)
            total = tl.reduce(scaled_exp(seen, largest, inverse), 0, plus)
            place = laws.sums + 2 * ((row * laws.lines + position) * chunks + chunk)
            tl.store(place, largest)
            tl.store(place + 1, total)


@triton.jit
def combine(laws, row, position, inverse, chunks, padded: tl.constexpr):
    """The largest logit and the sum of exponentials of a line, from those of its chunks."""
    line, chunk = row * laws.lines + position, tl.arange(0, padded)
    places = laws.sums + 2 * (line * chunks + chunk)
    largest = tl.load(places, mask=chunk < chunks, other=float("-inf"))
    totals = tl.load(places + 1, mask=chunk < chunks, other=0.0)
    most = tl.reduce(largest, 0, larger)
    total = tl.reduce(totals * scaled_exp(largest, most, inverse), 0, plus)
    tl.store(laws.norms + 2 * line, most)
    tl.store(laws.norms + 2 * line + 1, total)
    return most, total


@triton.jit
def chance(laws, row, position, draft, most, total, inverse, dtype: tl.constexpr):
    """The probability of a draft, in float64."""
    place = row * laws.row + position * laws.position + draft * laws.token
    found = tl.load(laws.data + place).to(dtype)
    if laws.sums is not None:
        found = scaled_exp(found, most, inverse) / total
    return found.to(tl.float64)


@triton.jit
def draft_at(drafts, row, position, lookahead):
    """The draft at a position, NO_DRAFT after the last of a row."""
    length = lookahead
    if drafts.lens is not None:
        length = tl.load(drafts.lens + row * drafts.lens_row).to(tl.int64)
    place = row * drafts.tokens_row + position * drafts.tokens_position
    return tl.load(drafts.tokens + place, mask=position < length, other=NO_DRAFT).to(tl.int64)


@triton.jit
def judge(
    p, q, drafts, work, inverse: tl.float64, size, rows, lookahead, chunks,
    steps: tl.constexpr, width: tl.constexpr, splits: tl.constexpr, padded: tl.constexpr,
    lanes: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    """Summarise a split of the logits at a position; the last split judges the draft there."""
    program = tl.program_id(0)
    split, row = program % splits, (program // splits % rows).to(tl.int64)
    position = (program // splits // rows).to(tl.int64)
    # What is not there yet only makes this program do what nobody needs.
    dropped = tl.load(work.dropped + row, volatile=True)
    if position + dropped <= lookahead:
        draft = draft_at(drafts, row, position, lookahead)
        if draft < 0:
            stop(work, row, position, lookahead)
        last = True
        if p.sums is not None:
            summarise(
                p, row, position, split, inverse, size, chunks, steps, width, splits, lanes, dtype
            )
            # In turn: the first is known as a kernel is compiled.
            if q.data is not None:  # noqa: SIM102
                if draft != NO_DRAFT:
                    summarise(
                        q, row, position, split, inverse, size, chunks,
                        steps, width, splits, lanes, dtype,
                    )  # fmt: skip
            counter = work.judging + position * rows + row
            last = arrive(counter) == splits - 1
        if last:
            most, total = tl.full((), 0.0, dtype), tl.full((), 1.0, dtype)
            q_most, q_total = most, total
            if p.sums is not None:
                most, total = combine(p, row, position, inverse, chunks, padded)
                if q.data is not None:  # noqa: SIM102
                    if draft != NO_DRAFT:
                        q_most, q_total = combine(q, row, position, inverse, chunks, padded)
            if draft >= 0:
                ratio = chance(p, row, position, draft, most, total, inverse, dtype)
                if q.data is not None:
                    ratio /= chance(q, row, position, draft, q_most, q_total, inverse, dtype)
                place = row * drafts.accept_row + position * drafts.accept_position
                uniform = tl.load(drafts.accept + place).to(tl.float64)
                # 0 / 0 is no acceptance.
                if (uniform < ratio) == 0:
                    stop(work, row, position, lookahead)


@triton.jit
def stop(work, row, position, lookahead):
    """A row goes no further than to a position; another may stop it earlier."""
    tl.atomic_max(work.dropped + row, (lookahead - position).to(tl.int32), sem="relaxed")


@triton.jit
def arrive(counter):
    """How many programs arrived before; what they stored can be loaded after."""
    tl.debug_barrier()
    return tl.atomic_add(counter, 1, sem="acq_rel")


@triton.jit
def law_of(
    laws, row, position, first, size, inverse,
    width: tl.constexpr, lanes: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    """Probabilities of a line from a token on."""
    if laws.sums is None:
        return read(laws, row, position, first, size, 0.0, width, lanes, dtype)
    else:
        seen = read(laws, row, position, first, size, float("-inf"), width, lanes, dtype)
        norms = laws.norms + 2 * (row * laws.lines + position)
        return scaled_exp(seen, tl.load(norms), inverse) / tl.load(norms + 1)


@triton.jit
def weights(
    p, q, row, position, draft, first, size, inverse,
    width: tl.constexpr, lanes: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    """(p - q)+ and p from a token on, where a row stopped; q is 0 if no draft was rejected."""
    law = law_of(p, row, position, first, size, inverse, width, lanes, dtype)
    excess = law
    if q.data is None:
        excess = tl.where(first + tl.arange(0, width) == draft, 0.0, law)
    else:
        if draft != NO_DRAFT:
            # The same tokens as of p, whose 16 bytes may begin elsewhere.
            drafted = law_of(q, row, position, first, size, inverse, width, 1, dtype)
            excess = tl.maximum(law - drafted, 0.0)
    return excess, law


@triton.jit
def draw_last(
    p, q, drafts, work, inverse: tl.float64, size, lookahead, chunks,
    width: tl.constexpr, padded: tl.constexpr, positions: tl.constexpr, lanes: tl.constexpr,
    dtype: tl.constexpr,
):  # fmt: skip
    """Sum the weights of a chunk; the last program of a row draws, and writes its block.

    A row of logits without a rejection needs no sums: `judge` left them.
    """
    program = tl.program_id(0)
    row, chunk = (program // chunks).to(tl.int64), program % chunks
    kept = lookahead - tl.load(work.dropped + row).to(tl.int64)
    draft = draft_at(drafts, row, kept, lookahead)
    last = chunk == 0
    if (draft != NO_DRAFT) | (p.sums is None):
        first = first_token(p, row, kept, chunk, width, lanes)
        excess, law = weights(p, q, row, kept, draft, first, size, inverse, width, lanes, dtype)
        place = work.masses + 2 * (row * chunks + chunk)
        tl.store(place, tl.reduce(excess, 0, plus))
        tl.store(place + 1, tl.reduce(law, 0, plus))
        last = arrive(work.drawing + row) == chunks - 1
    if last:
        masses, left = masses_of(p, work, row, kept, draft, inverse, chunks, padded)
        uniform = tl.load(drafts.final + row * drafts.final_row).to(tl.float64)
        chosen, uniform = first_beyond(masses, uniform, padded)
        first = first_token(p, row, kept, chosen, width, lanes)
        # Where nothing is left of p - q, as without a rejection.
        minus = tl.where(left, draft, NO_DRAFT)
        within, _ = weights(p, q, row, kept, minus, first, size, inverse, width, lanes, dtype)
        token, _ = first_beyond(within.to(tl.float64), uniform, width)
        position = tl.arange(0, positions)
        places = drafts.tokens + row * drafts.tokens_row + position * drafts.tokens_position
        block = tl.load(places, mask=position < kept, other=NO_DRAFT).to(tl.int64)
        block = tl.where(position == kept, first + token, block)
        places = work.blocks + row * (lookahead + 1) + position
        tl.store(places, block, mask=position <= lookahead)
        tl.store(work.counts + row, kept + 1)


@triton.jit
def masses_of(p, work, row, position, draft, inverse, chunks, padded: tl.constexpr):
    """What the last token is drawn by, chunk by chunk; and whether anything is left of p - q."""
    chunk = tl.arange(0, padded)
    places = work.masses + 2 * (row * chunks + chunk)
    inside = chunk < chunks
    excess = tl.where(draft == NO_DRAFT, 0.0, tl.load(places, mask=inside, other=0.0))
    left = tl.reduce(excess, 0, larger) > 0
    if p.sums is None:
        law = tl.load(places + 1, mask=inside, other=0.0)
    else:
        line = row * p.lines + position
        places = p.sums + 2 * (line * chunks + chunk)
        largest = tl.load(places, mask=inside, other=float("-inf"))
        totals = tl.load(places + 1, mask=inside, other=0.0)
        most = tl.load(p.norms + 2 * line)
        law = (totals * scaled_exp(largest, most, inverse)).to(tl.float64)
    return tl.where(left, excess, law), left


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
