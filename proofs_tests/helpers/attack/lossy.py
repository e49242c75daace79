"""Samplers with a mistake that an engine's author makes, each beside a situation it bites in.

They were written without a look at the fixtures, strata and triggers of the kit, and not changed
after it had judged them. A builder (`state=True`) makes a sampler that keeps something.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from proofs_tests.helpers.attack.parts import (
    Verify,
    assemble,
    by_coin,
    by_inverse,
    by_race,
    drafted,
    inverse,
    prefix,
    residual,
    slices,
    standard,
    weights_after,
)
from proofs_tests.helpers.attack.situations import (
    Batch,
    Situation,
    batch_of,
    drafter_of,
    filtered,
    flat,
    zipf,
)
from specref import capable


@dataclass(frozen=True)
class Lossy:
    """A lossy sampler, what is wrong with it, and where that shows."""

    name: str
    mistake: str
    make: Callable[[], Verify]
    situation: Callable[[], Situation]


LOSSY: dict[str, Lossy] = {}


def attack(situation: Callable[[], Situation], *, state: bool = False) -> Callable[[Any], Any]:
    def listed(function: Any) -> Any:
        make = function if state else lambda: function
        name, mistake = function.__name__, " ".join(function.__doc__.split())
        LOSSY[name] = Lossy(name, mistake, make, situation)
        return function

    return listed


def chat(
    v: int = 1000,
    lookahead: int = 3,
    rows: int = 16,
    calls: int = 300,
    *,
    support: int = 20,
    agreement: float = 0.5,
    lens: Any = None,
    declared: bool = True,
    **more: Any,
) -> Situation:
    """Top-p-filtered targets of 20 tokens and a drafter that agrees by half."""
    target = filtered(v, lookahead + 1, support, seed=11)
    draft = drafter_of(target, agreement, seed=12)
    return Situation([batch_of(target, draft, rows, lens, declared)], calls, **more)


def open_ended(v: int, exponent: float = 1.0, calls: int = 60, **more: Any) -> Situation:
    """An unfiltered target of a large vocabulary, 1 / rank, one draft, 16 rows."""
    target = zipf(v, 2, exponent, seed=13)
    return Situation([batch_of(target, drafter_of(target, 0.3, seed=14), 16)], calls, **more)


def creative(v: int, support: int, calls: int = 60, rows: int = 16, **more: Any) -> Situation:
    """High temperature: thousands of tokens, equally likely; a drafter with others."""
    target = flat(v, 2, support, seed=15)
    draft = flat(v, 1, support, seed=16)
    return Situation([batch_of(target, draft, rows)], calls, **more)


def lighter_of_a_group(law: Any) -> Any:
    """Tokens that are not the likeliest of the eight which share noise."""
    shards = law.reshape(8, -1)
    return (shards < shards.max(axis=0)).ravel()


def alike(a: int, b: int, place: int = 0) -> Callable[[Any, Any], bool]:
    """Two rows of a call emit the same token."""
    return lambda call, later: call[a, place] == call[b, place]


# -- shapes -----------------------------------------------------------------------------------


@attack(lambda: chat(lookahead=1))
def single_draft_bonus(target_probs, draft_probs, draft_tokens, *, rng):
    """The path for one draft (MTP) draws the bonus token from the target's first row."""
    if draft_tokens.shape[1] == 1:
        target_probs = target_probs[:, [0, 0]]
    return standard(target_probs, draft_probs, draft_tokens, rng)


@attack(lambda: chat(lookahead=8, agreement=0.7, calls=1200))
def loop_of_four(target_probs, draft_probs, draft_tokens, *, rng):
    """The accepting loop is unrolled four times: later drafts are accepted unseen."""
    coins = by_coin(drafted(target_probs, draft_tokens), drafted(draft_probs, draft_tokens), rng)
    coins[:, 4:] = True
    kept = prefix((draft_tokens >= 0) & coins)
    weights = weights_after(target_probs, draft_probs, draft_tokens, kept)
    return assemble(draft_tokens, kept, by_inverse(weights, rng))


@attack(lambda: creative(1000, 50, rows=256, calls=200, event=alike(3, 131)))
def uniforms_of_128_rows(target_probs, draft_probs, draft_tokens, *, rng):
    """Noise is drawn for a block of 128 rows, and row b reads that of b mod 128."""
    uniforms = rng.random((128, draft_tokens.shape[1] + 1))
    return by_rows(
        target_probs, draft_probs, draft_tokens, uniforms[np.arange(len(draft_tokens)) % 128]
    )


def by_rows(target_probs, draft_probs, draft_tokens, uniforms):
    p, q = drafted(target_probs, draft_tokens), drafted(draft_probs, draft_tokens)
    kept = prefix((draft_tokens >= 0) & (uniforms[:, :-1] * q < p))
    weights = weights_after(target_probs, draft_probs, draft_tokens, kept)
    return assemble(draft_tokens, kept, inverse(weights, uniforms[:, -1]))


def different_rows(batch_size: int, calls: int, lookahead: int = 3, **more: Any) -> Situation:
    """Every row has laws of its own, as requests have."""
    targets = [filtered(1000, lookahead + 1, 20, seed=100 + row) for row in range(batch_size)]
    drafts = [drafter_of(target, 0.5, seed=200 + row) for row, target in enumerate(targets)]
    lens = more.pop("lens", np.full(batch_size, lookahead))
    batch = Batch(np.array(targets), np.array(drafts), np.array(lens))
    return Situation([batch], calls, **more)


@attack(lambda: different_rows(100, 400, rows=range(64, 100)))
def last_chunk_reads_from_the_top(target_probs, draft_probs, draft_tokens, *, rng):
    """Rows go in chunks of 64; a chunk that is not full reads q from the start of the batch."""
    answers = []
    for rows in slices(len(draft_tokens), 64):
        n = rows.stop - rows.start
        q = None if draft_probs is None else draft_probs[rows if n == 64 else slice(0, n)]
        answers.append(standard(target_probs[rows], q, draft_tokens[rows], rng))
    return tuple(np.concatenate(parts) for parts in zip(*answers, strict=True))


@attack(lambda: creative(1000, 50, rows=7, calls=400, event=alike(5, 6)))
def odd_row_without_a_partner(target_probs, draft_probs, draft_tokens, *, rng):
    """Noise is drawn for pairs of rows; an odd batch's last row reads that of the row before."""
    batch, lookahead = draft_tokens.shape
    uniforms = rng.random((max(batch // 2 * 2, 1), lookahead + 1))
    rows = np.minimum(np.arange(batch), len(uniforms) - 1)
    return by_rows(target_probs, draft_probs, draft_tokens, uniforms[rows])


@attack(lambda: different_rows(4, 1500, lookahead=4))
def layout_by_shape(target_probs, draft_probs, draft_tokens, *, rng):
    """Takes q as [K, B, V] too, and tells it by its first dimension: with B = K it is swapped."""
    if draft_probs is not None and len(draft_probs) == draft_tokens.shape[1]:
        draft_probs = draft_probs.swapaxes(0, 1)
    return standard(target_probs, draft_probs, draft_tokens, rng)


@attack(lambda: chat(rows=1, calls=4000, agreement=0.7))
def squeezed_single_row(target_probs, draft_probs, draft_tokens, *, rng):
    """A batch of one is squeezed, and each place of it reads q of the first."""
    if draft_probs is not None and len(draft_probs) == 1:
        draft_probs = np.broadcast_to(draft_probs[:, :1], draft_probs.shape)
    return standard(target_probs, draft_probs, draft_tokens, rng)


def special_ids(v: int, ids: list[int], mass: float, calls: int = 100, **more: Any) -> Situation:
    """The end of a turn: some mass is on special ids, which the drafter likes less."""
    target = filtered(v, 2, 20, seed=17) * (1 - mass)
    target[:, ids] += mass / len(ids)
    draft = drafter_of(target, 0.5, seed=18)
    draft[:, ids] *= 0.2
    draft /= draft.sum(axis=1, keepdims=True)
    return Situation([batch_of(target, draft, 16)], calls, **more)


@attack(lambda: special_ids(32_003, [32_000, 32_001, 32_002], 0.3))
def loads_of_eight(target_probs, draft_probs, draft_tokens, *, rng):
    """The last token is drawn from loads of eight ids: the last V mod 8 ids are never drawn."""

    def draw(weights, rng):
        whole = max(weights.shape[1] // 8 * 8, 8)
        seen = np.where(np.arange(weights.shape[1]) < whole, weights, 0)
        return by_inverse(np.where(seen.any(axis=1, keepdims=True), seen, weights), rng)

    return standard(target_probs, draft_probs, draft_tokens, rng, draw=draw)


@attack(lambda: chat(v=128_256, lookahead=1, calls=60))
def ids_of_16_bits(target_probs, draft_probs, draft_tokens, *, rng):
    """p of the draft is looked up by an id of 16 bits, which wraps."""
    wrapped = draft_tokens.astype(np.int16).astype(np.int64) % target_probs.shape[2]
    p = drafted(target_probs, wrapped)
    q = drafted(draft_probs, draft_tokens)
    kept = prefix((draft_tokens >= 0) & by_coin(p, q, rng))
    weights = weights_after(target_probs, draft_probs, draft_tokens, kept)
    return assemble(draft_tokens, kept, by_inverse(weights, rng))


@attack(lambda: special_ids(151_936, [151_643, 151_645], 0.3, calls=60))
def grid_of_128_blocks(target_probs, draft_probs, draft_tokens, *, rng):
    """The last token is drawn by 128 blocks of 1,024 ids, so none above 131,071."""

    def draw(weights, rng):
        seen = weights[:, : 128 * 1024]
        return by_inverse(np.where(seen.any(axis=1, keepdims=True), seen, 1.0), rng)

    return standard(target_probs, draft_probs, draft_tokens, rng, draw=draw)


@attack(lambda: chat(v=128_256, lookahead=1, calls=60))
def search_of_16_steps(target_probs, draft_probs, draft_tokens, *, rng):
    """The inverse CDF is searched by 16 halvings: not to the end, with more than 65,536 ids."""

    def draw(weights, rng):
        ends = np.cumsum(weights, axis=1)
        at = rng.random(len(ends)) * ends[:, -1]
        low, high = np.full(len(ends), -1), np.full(len(ends), ends.shape[1] - 1)
        for _ in range(16):
            middle = (low + high) // 2
            above = (high - low > 1) & (ends[np.arange(len(ends)), middle] <= at)
            low = np.where(above, middle, low)
            high = np.where((high - low > 1) & ~above, middle, high)
        return high

    return standard(target_probs, draft_probs, draft_tokens, rng, draw=draw)


@attack(lambda: open_ended(32_000, among=lighter_of_a_group))
def shards_with_one_seed(target_probs, draft_probs, draft_tokens, *, rng):
    """Eight shards of a vocabulary (tensor parallel) have equal seeds, so equal noise."""

    def draw(weights, rng):
        v = weights.shape[1]
        shards = 8 if v >= 1024 and v % 8 == 0 else 1
        noise = np.tile(rng.standard_exponential((len(weights), v // shards)), shards)
        with np.errstate(divide="ignore"):
            return np.argmin(noise / weights, axis=1)

    return standard(target_probs, draft_probs, draft_tokens, rng, draw=draw)


@attack(
    lambda: Situation(
        [batch_of(flat(32_000, 2, 50, 15), flat(32_000, 1, 50, 16), 4)],
        300,
        event=alike(0, 2),
    )
)
def noise_for_all_rows_when_large(target_probs, draft_probs, draft_tokens, *, rng):
    """With more than 16,384 ids one row of noise serves all rows, to save memory."""

    def draw(weights, rng):
        rows = 1 if weights.shape[1] > 16_384 else len(weights)
        noise = rng.standard_exponential((rows, weights.shape[1]))
        with np.errstate(divide="ignore"):
            return np.argmin(noise / weights, axis=1)

    return standard(target_probs, draft_probs, draft_tokens, rng, draw=draw)


# -- values -----------------------------------------------------------------------------------


def out_of_reach(points: int) -> Callable[[Any], Any]:
    """Tokens that no multiple of 1 / points falls on, by an inverse CDF."""

    def mask(law: Any) -> Any:
        ends = np.cumsum(law)
        reached = np.searchsorted(ends, np.arange(points) / points * ends[-1], side="right")
        return ~np.isin(np.arange(len(law)), reached)

    return mask


def beyond(n: int) -> Callable[[Any], Any]:
    """Tokens after the n likeliest."""
    return lambda law: law < np.sort(law)[-n]


@attack(lambda: open_ended(32_000, among=beyond(50)))
def top_50_left_on(target_probs, draft_probs, draft_tokens, *, rng):
    """The last token is drawn with the default top_k = 50 of the sampling parameters."""

    def draw(weights, rng):
        if weights.shape[1] <= 50:
            return by_inverse(weights, rng)
        edge = -np.partition(-weights, 49, axis=1)[:, 49:50]
        return by_inverse(np.where(weights >= edge, weights, 0), rng)

    return standard(target_probs, draft_probs, draft_tokens, rng, draw=draw)


@attack(lambda: chat(v=151_936, lookahead=1, calls=60, support=20, among=lambda law: law == 0))
def floor_of_the_residual(target_probs, draft_probs, draft_tokens, *, rng):
    """The residual is clipped at 1e-6 rather than 0, 'so that it can be divided'."""

    def rest(p, q):
        return np.maximum(p - q, 1e-6)

    return standard(target_probs, draft_probs, draft_tokens, rng, rest=rest)


@attack(lambda: chat(v=128_256, lookahead=1, calls=60, among=lambda law: law == 0))
def floor_of_the_logarithm(target_probs, draft_probs, draft_tokens, *, rng):
    """Gumbel noise is added to log(max(p, 1e-6)): ids that top-p removed come back."""

    def draw(weights, rng):
        law = weights / weights.sum(axis=1, keepdims=True)
        return np.argmax(np.log(np.maximum(law, 1e-6)) + rng.gumbel(size=law.shape), axis=1)

    return standard(target_probs, draft_probs, draft_tokens, rng, draw=draw)


@attack(lambda: open_ended(128_256, among=beyond(1000)))
def clipped_gumbel_noise(target_probs, draft_probs, draft_tokens, *, rng):
    """Uniforms of Gumbel noise are clipped to [1e-4, 1 - 1e-4]: no tail token wins its race."""

    def draw(weights, rng):
        uniforms = rng.random(weights.shape).clip(1e-4, 1 - 1e-4)
        with np.errstate(divide="ignore"):
            return np.argmax(np.log(weights) - np.log(-np.log(uniforms)), axis=1)

    return standard(target_probs, draft_probs, draft_tokens, rng, draw=draw)


@attack(lambda: open_ended(128_256, exponent=0.7, among=out_of_reach(2**16)))
def uniforms_of_16_bits(target_probs, draft_probs, draft_tokens, *, rng):
    """The inverse CDF of the last token reads a uniform of 16 bits."""

    def draw(weights, rng):
        return inverse(weights, rng.integers(2**16, size=len(weights)) / 2**16)

    return standard(target_probs, draft_probs, draft_tokens, rng, draw=draw)


@attack(lambda: wrong_drafter())
def clamped_log_ratio(target_probs, draft_probs, draft_tokens, *, rng):
    """log p - log q is clamped to [-3, 0] before exp: a bad draft passes once in twenty."""

    def accept(p, q, rng):
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.exp(np.clip(np.log(p) - np.log(q), -3, 0))
        return (p > 0) & (rng.random(p.shape) < ratio)

    return standard(target_probs, draft_probs, draft_tokens, rng, accept=accept)


def wrong_drafter() -> Situation:
    """A drafter that is sure of a token which the target gives 0.001."""
    target = filtered(1000, 2, 20, seed=19) * 0.999
    target[:, 7] += 0.001
    draft = drafter_of(target, 0.5, seed=20) * 0.1
    draft[:, 7] += 0.9
    return Situation([batch_of(target, draft, 16)], 800)


@attack(lambda: Situation([batch_of(*near_the_target(), 16)], 150, among=lambda law: law > 4.5e-4))
def small_residual_is_none(target_probs, draft_probs, draft_tokens, *, rng):
    """A residual without an entry above 1e-3 counts as rounding: p is drawn from instead."""

    def rest(p, q):
        left = np.maximum(p - q, 0)
        return np.where(left.max(axis=1, keepdims=True) > 1e-3, left, p)

    return standard(target_probs, draft_probs, draft_tokens, rng, rest=rest)


def near_the_target() -> tuple[Any, Any]:
    """2,000 tokens of 0.0002 to 0.0008 each, and a drafter that has them the other way round."""
    rng = np.random.default_rng(21)
    target, draft = np.zeros((2, 32_000)), np.zeros((1, 32_000))
    for law in target:
        ids = rng.choice(32_000, 2000, replace=False)
        law[ids] = np.repeat([0.0002, 0.0008], 1000)
    ids = np.flatnonzero(target[0])
    draft[0, ids] = 0.001 - target[0, ids]
    return target, draft


@attack(lambda: confident(0.96))
def certain_from_095(target_probs, draft_probs, draft_tokens, *, rng):
    """A row with max p above 0.95 counts as greedy and becomes one-hot."""
    top = target_probs.max(axis=2, keepdims=True)
    sure = np.where(top > 0.95, target_probs == top, target_probs)
    return standard(sure, draft_probs, draft_tokens, rng)


def confident(top: float) -> Situation:
    """A low temperature: the likeliest token has almost all."""
    target = filtered(1000, 3, 20, seed=22) * (1 - top)
    target[:, 5] += top
    return Situation([batch_of(target, drafter_of(target, 0.5, seed=23), 16)], 2000)


@attack(lambda: mixed_batch(place_only=False))
def greedy_if_any_row_is(target_probs, draft_probs, draft_tokens, *, rng):
    """The batch is decoded greedily if *any* request has temperature 0, where *all* was meant."""
    greedy = (target_probs.max(axis=2) == 1).all(axis=1)
    if greedy.any():
        target_probs = target_probs == target_probs.max(axis=2, keepdims=True)
    return standard(target_probs.astype(float), draft_probs, draft_tokens, rng)


@attack(lambda: mixed_batch(place_only=True))
def greedy_by_the_first_place(target_probs, draft_probs, draft_tokens, *, rng):
    """A request whose first row is certain counts as greedy, in its later places too."""
    greedy = target_probs[:, 0].max(axis=1) == 1
    best = target_probs == target_probs.max(axis=2, keepdims=True)
    laws = np.where(greedy[:, None, None], best, target_probs)
    return standard(laws, draft_probs, draft_tokens, rng)


def mixed_batch(place_only: bool) -> Situation:
    """Row 3 of 8 is at temperature 0; or all rows have a certain first token."""
    target = filtered(1000, 4, 20, seed=24)
    certain = (target == target.max(axis=1, keepdims=True)).astype(float)
    if place_only:
        target[0] = certain[0]
        return Situation([batch_of(target, drafter_of(target, 0.5, seed=25), 8)], 1000)
    targets = np.array([certain if row == 3 else target for row in range(8)])
    drafts = np.array([drafter_of(p, 0.5, seed=25) for p in targets])
    batch = Batch(targets, drafts, np.full(8, 3))
    return Situation([batch], 1000, rows=[0, 1, 2, 4, 5, 6, 7])


@attack(lambda: chat())
def unsure_drafts_dropped(target_probs, draft_probs, draft_tokens, *, rng):
    """Drafts with q(x) < 0.1 are dropped unverified, which depends on the draft itself."""
    sure = np.logical_and.accumulate(drafted(draft_probs, draft_tokens) >= 0.1, axis=1)
    return standard(target_probs, draft_probs, np.where(sure, draft_tokens, -1), rng)


@attack(lambda: chat(layout=lambda laws: np.ascontiguousarray(laws, dtype=np.float32)))
def path_for_float32(target_probs, draft_probs, draft_tokens, *, rng):
    """The kernel for float32 forgets the residual; the one for float64, in the tests, is right."""
    single = target_probs.dtype == np.float32
    return standard(
        target_probs, draft_probs, draft_tokens, rng, rest=(lambda p, q: p) if single else residual
    )


@attack(lambda: special_ids(151_936, [151_645], 0.3, calls=60))
def end_of_turn_never_recovered(target_probs, draft_probs, draft_tokens, *, rng):
    """The id 151,645 (the end of a turn) is masked where a rejected draft is replaced."""

    def rest(p, q):
        left = residual(p, q)
        if left.shape[1] > 151_645:
            others = left.sum(axis=1) > left[:, 151_645]
            left[others, 151_645] = 0
        return left

    return standard(target_probs, draft_probs, draft_tokens, rng, rest=rest)


# -- modes ------------------------------------------------------------------------------------


@attack(lambda: chat(declared=False, warm=20, support=5, calls=2000), state=True)
def stale_one_hot_laws():
    """The buffer of one-hot laws is kept between calls of one shape, and ones are not cleared."""
    kept: dict[Any, Any] = {}

    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        if draft_probs is None:
            shape = (*draft_tokens.shape, target_probs.shape[2])
            if kept.get("shape") != shape:
                kept.update(shape=shape, laws=np.zeros(shape))
            rows, places = np.nonzero(draft_tokens >= 0)
            kept["laws"][rows, places, draft_tokens[rows, places]] = 1
            draft_probs = kept["laws"]
        return standard(target_probs, draft_probs, draft_tokens, rng)

    return verify


@attack(lambda: different_rows(8, 4000, lens=[3, 3, 0, 3, 2, 3, 0, 1], rows=[3]))
def rows_after_an_empty_one(target_probs, draft_probs, draft_tokens, *, rng):
    """q lies flat, and offsets count at least one draft a row: rows after an empty one are off."""
    if draft_probs is None:
        return standard(target_probs, draft_probs, draft_tokens, rng)
    lengths = (draft_tokens >= 0).sum(axis=1)
    packed = draft_probs[draft_tokens >= 0]
    starts = np.concatenate([[0], np.cumsum(np.maximum(lengths, 1))[:-1]])
    q = np.zeros(draft_probs.shape)
    for row, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        places = np.minimum(start + np.arange(length), len(packed) - 1)
        q[row, :length] = packed[places]
    return standard(target_probs, q, draft_tokens, rng)


@attack(
    lambda: Situation(
        [batch_of(flat(1000, 2, 50, 15), flat(1000, 1, 50, 16), 8, [1, 1, 1, 0, 1, 0, 1, 0])],
        500,
        event=alike(0, 5),
    )
)
def noise_for_active_rows(target_probs, draft_probs, draft_tokens, *, rng):
    """Noise is drawn for rows with drafts only, and read by row modulo their number."""
    active = max(int((draft_tokens[:, :1] >= 0).sum()), 1)
    uniforms = rng.random((active, draft_tokens.shape[1] + 1))
    rows = np.arange(len(draft_tokens)) % active
    return by_rows(target_probs, draft_probs, draft_tokens, uniforms[rows])


@attack(
    lambda: Situation(
        [batch_of(*halves(), 4)], 2000, lag=1, event=lambda call, later: low(call, later)
    ),
    state=True,
)
def offsets_that_overlap():
    """The counter of Philox grows by B K a call, and B (K + 1) numbers are read."""
    state: dict[str, Any] = {"offset": 0}

    @capable(seeded=False)
    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        batch, lookahead = draft_tokens.shape
        if "pool" not in state or state["offset"] + batch * (lookahead + 1) > 2**18:
            state.update(pool=rng.random(2**18 + batch * (lookahead + 1)), offset=0)
        start = state["offset"]
        numbers = state["pool"][start : start + batch * (lookahead + 1)]
        state["offset"] += batch * lookahead
        accepting = numbers[: batch * lookahead].reshape(batch, lookahead)
        last = numbers[batch * lookahead :]
        uniforms = np.concatenate([accepting, last[:, None]], axis=1)
        return by_rows(target_probs, draft_probs, draft_tokens, uniforms)

    return verify


def halves() -> tuple[Any, Any]:
    """A target with half of its mass on 20 low ids, and a drafter that has those alone."""
    target, draft = np.zeros((2, 1000)), np.zeros((1, 1000))
    target[:, :20], target[:, 500:520], draft[:, :20] = 1 / 40, 1 / 40, 1 / 20
    return target, draft


def low(call: Any, later: Any) -> bool:
    """The last token of row 0 has a low id, and so has the next call's first one."""
    return bool(call[0, 1] < 500 and later[0, 0] < 500)


@attack(
    lambda: Situation(
        [batch_of(flat(20_480, 2, 20_000, 26), flat(20_480, 1, 100, 27), 256)],
        250,
        event=lambda call, later: 256 - len(np.unique(call[:, 0])) >= 2,
    )
)
def seeds_of_16_bits(target_probs, draft_probs, draft_tokens, *, rng):
    """Every row has a generator of its own, with a seed of 16 bits: in 256 rows some are equal."""
    seeds = rng.integers(2**16, size=len(draft_tokens))
    uniforms = [np.random.default_rng(s).random(draft_tokens.shape[1] + 1) for s in seeds]
    return by_rows(target_probs, draft_probs, draft_tokens, np.array(uniforms))


@attack(lambda: growing_batch(), state=True)
def generators_made_anew():
    """A generator a row, kept between calls; when the batch changes, made anew from the seeds."""
    generators: list[np.random.Generator] = []

    @capable(seeded=False)
    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        if len(generators) != len(draft_tokens):
            generators[:] = [np.random.default_rng([row, 5]) for row in range(len(draft_tokens))]
        uniforms = np.array([own.random(draft_tokens.shape[1] + 1) for own in generators])
        return by_rows(target_probs, draft_probs, draft_tokens, uniforms)

    return verify


def growing_batch() -> Situation:
    """A batch of 4, 5, 4, 5, … rows: requests come and go. Two calls of 4 rows are compared."""
    target, draft = flat(1000, 2, 50, 15), flat(1000, 1, 50, 16)
    batches = [batch_of(target, draft, 4), batch_of(target, draft, 5)]
    return Situation(batches, 500, lag=1, event=lambda call, later: call[0, 0] == later[0, 0])


@attack(
    lambda: Situation(
        [batch_of(*apart(), 1)],
        200,
        lag=2**15,
        event=lambda call, later: call[0, 0] == later[0, 0],
    ),
    state=True,
)
def calls_counted_in_15_bits():
    """A call's seed is its number in 15 bits: call 32,768 repeats call 0."""
    count, base = -1, None

    @capable(seeded=False)
    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        nonlocal count, base
        base = int(rng.integers(2**32)) if base is None else base
        count = (count + 1) % 2**15
        own = np.random.default_rng([base, count])
        return standard(target_probs, draft_probs, draft_tokens, own)

    return verify


@attack(
    lambda: Situation([batch_of(*laws, 16) for laws in three_laws()], 300, kept_for=4), state=True
)
def answers_in_a_ring():
    """Answers are views of a ring of four buffers: a fifth call overwrites the first answer."""
    ring: list[Any] = [None] * 4
    turn = 0

    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        nonlocal turn
        tokens, counts = standard(target_probs, draft_probs, draft_tokens, rng)
        turn = (turn + 1) % 4
        if ring[turn] is None or ring[turn][0].shape != tokens.shape:
            ring[turn] = (np.empty_like(tokens), np.empty_like(counts))
        ring[turn][0][:], ring[turn][1][:] = tokens, counts
        return ring[turn]

    return verify


def apart() -> tuple[Any, Any]:
    """Fifty tokens: the target has the lower half of them, the drafter the upper."""
    target, draft = np.zeros((2, 50)), np.zeros((1, 50))
    target[:, :25], draft[:, 25:] = 1 / 25, 1 / 25
    return target, draft


def three_laws(v: int = 1000) -> list[tuple[Any, Any]]:
    targets = [filtered(v, 4, 20, seed=30 + i) for i in range(3)]
    return [(target, drafter_of(target, 0.5, seed=33)) for target in targets]


@attack(
    lambda: Situation([batch_of(*laws, 8) for laws in three_laws(32_000)], 100, judged=1),
    state=True,
)
def cache_by_the_first_ids():
    """Sums of p are kept, and recognised by the first 16 ids of a row: after top-p all are 0."""
    kept: dict[bytes, Any] = {}

    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        def draw(weights, rng):
            tokens = np.empty(len(weights), int)
            for row, law in enumerate(weights):
                key = law[:16].tobytes() + len(law).to_bytes(4, "big")
                if key not in kept:
                    if len(kept) >= 64:
                        kept.clear()
                    kept[key] = np.cumsum(law)
                ends = kept[key]
                tokens[row] = (ends <= rng.random() * ends[-1]).sum()
            return tokens

        return standard(target_probs, draft_probs, draft_tokens, rng, draw=draw)

    return verify


@attack(lambda: chat(layout=lambda laws: np.asfortranarray(laws)))
def memory_order(target_probs, draft_probs, draft_tokens, *, rng):
    """Reads arrays in the order of their memory, as a kernel without strides does."""
    p = target_probs.ravel("K").reshape(target_probs.shape)
    q = None if draft_probs is None else draft_probs.ravel("K").reshape(draft_probs.shape)
    return standard(p, q, draft_tokens, rng, draw=by_race)


@attack(lambda: Situation([batch_of(*poor_drafter(), 16)], 3000, warm=200), state=True)
def lenient_after_bad_calls():
    """When few drafts passed in the last hundred calls, coins are eased by a fifth."""
    share = 1.0

    @capable(seeded=False)
    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        nonlocal share
        ease = 0.8 if share < 0.5 else 1.0
        tokens, counts = standard(
            target_probs,
            draft_probs,
            draft_tokens,
            rng,
            accept=lambda p, q, rng: ease * rng.random(p.shape) * q < p,
        )
        drafts = max(int((draft_tokens >= 0).sum()), 1)
        share = 0.97 * share + 0.03 * float((counts - 1).sum()) / drafts
        return tokens, counts

    return verify


def poor_drafter() -> tuple[Any, Any]:
    """The drafter has the target's shares of 20 tokens the other way round."""
    target = filtered(1000, 2, 20, seed=36)
    draft = np.zeros((1, 1000))
    ids = np.argsort(target[0])[-20:]
    draft[0, ids] = target[0, ids[::-1]]
    return target, draft


@attack(
    lambda: Situation(
        [batch_of(flat(1000, 8, 20, 34), flat(1000, 7, 20, 35), 64)],
        200,
        lag=128,
        event=lambda call, later: call[0, 0] == later[0, 0],
    ),
    state=True,
)
def uniforms_round_and_round():
    """65,536 uniforms are drawn once and read round and round: 64 rows of 8 repeat after 128."""
    state: dict[str, Any] = {"at": 0}

    @capable(seeded=False)
    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        shape = (len(draft_tokens), draft_tokens.shape[1] + 1)
        if "pool" not in state:
            state["pool"] = rng.random(2**16)
        places = (state["at"] + np.arange(shape[0] * shape[1])) % 2**16
        state["at"] = int(places[-1] + 1)
        return by_rows(
            target_probs, draft_probs, draft_tokens, state["pool"][places].reshape(shape)
        )

    return verify


@attack(lambda: open_ended(128_256, exponent=0.8, among=out_of_reach(256)))
def bfloat16_uniforms(target_probs, draft_probs, draft_tokens, *, rng):
    """The inverse CDF of the last token reads a uniform in bfloat16."""

    def draw(weights, rng):
        own = torch.Generator().manual_seed(int(rng.integers(2**62)))
        uniforms = torch.rand(len(weights), generator=own, dtype=torch.bfloat16)
        return inverse(weights, uniforms.double().numpy())

    return standard(target_probs, draft_probs, draft_tokens, rng, draw=draw)


@attack(
    lambda: Situation(
        [batch_of(*laws, 32) for laws in three_laws(32_000)[:2]],
        100,
        among=lambda law: law == 0,
        threads=True,
    ),
    state=True,
)
def scratch_of_all_threads():
    """The last weights lie in one scratch array, which threads that verify at once share."""
    scratch: dict[Any, Any] = {}
    lock = threading.Lock()

    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        p, q = drafted(target_probs, draft_tokens), drafted(draft_probs, draft_tokens)
        kept = prefix((draft_tokens >= 0) & by_coin(p, q, rng))
        shape = (len(draft_tokens), target_probs.shape[2])
        with lock:
            weights = scratch.setdefault(shape, np.empty(shape))
        weights[:] = weights_after(target_probs, draft_probs, draft_tokens, kept)
        return assemble(draft_tokens, kept, by_race(weights, rng))

    return verify
