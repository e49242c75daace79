"""Verification of all requests' drafts in one array (contract `ragged`)."""

import numpy as np
import torch

from proofs_tests.helpers.attack.second.entry import Samplers
from proofs_tests.helpers.attack.second.parts import (
    bfloat16,
    drawn_by,
    one_hot,
    requests,
    residual,
    softmax,
)

RAGGED = Samplers("ragged")


def walked(drafts, ends, p_row, q_row, bonus, coin, last):
    """The standard rule, draft by draft.

    `p_row(at, request)`, `q_row(at, request, draft)`, `coin(request, i, at)` are of the draft at
    a place of the array; `bonus(request)`, `last(request, weights)` are tokens.
    """
    blocks = []
    for request, start, end in requests(ends):
        block = []
        for i, at in enumerate(range(start, end)):
            x = int(drafts[at])
            p, q = p_row(at, request), q_row(at, request, x)
            if coin(request, i, at) * q[x] >= p[x]:
                block.append(last(request, residual(p, q)))
                break
            block.append(x)
        else:
            block.append(int(bonus(request)))
        blocks.append(block)
    return blocks


def dense(draft_probs, v):
    return lambda at, request, x: one_hot(v, x) if draft_probs is None else draft_probs[at]


def by_rng(rng):
    """Coins and last tokens by uniforms of `rng`, as the last two arguments of `walked`."""
    return (
        lambda request, i, at: rng.random(),
        lambda request, weights: drawn_by(weights, rng.random()),
    )


# -- temperatures and logits --------------------------------------------------------------------


@RAGGED.lossy()
def one_temperature_for_all(
    *,
    draft_token_ids,
    cu_num_draft_tokens,
    target_logits,
    draft_logits,
    temperature,
    bonus_token_ids,
    rng,
):
    """If all requests have one temperature, q is taken as scaled by it already."""
    t, v = np.asarray(temperature, dtype=np.float64), target_logits.shape[-1]
    one = len(t) > 1 and (t == t[0]).all()

    def q_row(at, request, x):
        if draft_logits is None:
            return one_hot(v, x)
        return softmax(draft_logits[at], 1.0 if one else t[request])

    return walked(
        draft_token_ids,
        cu_num_draft_tokens,
        lambda at, request: softmax(target_logits[at], t[request]),
        q_row,
        lambda request: bonus_token_ids[request],
        *by_rng(rng),
    )


@RAGGED.lossy()
def logits_clamped_at_80(
    *,
    draft_token_ids,
    cu_num_draft_tokens,
    target_logits,
    draft_logits,
    temperature,
    bonus_token_ids,
    rng,
):
    """Logits by temperature are clamped at 80, so that exp does not overflow."""
    v = target_logits.shape[-1]

    def law(logits, t):
        powers = np.exp(np.minimum(np.asarray(logits, dtype=np.float64) / t, 80.0))
        return powers / powers.sum()

    def q_row(at, request, x):
        if draft_logits is None:
            return one_hot(v, x)
        return law(draft_logits[at], temperature[request])

    return walked(
        draft_token_ids,
        cu_num_draft_tokens,
        lambda at, request: law(target_logits[at], temperature[request]),
        q_row,
        lambda request: bonus_token_ids[request],
        *by_rng(rng),
    )


@RAGGED.lossy()
def greedy_below_a_fifth(
    *,
    draft_token_ids,
    cu_num_draft_tokens,
    target_logits,
    draft_logits,
    temperature,
    bonus_token_ids,
    rng,
):
    """A temperature below 0.2 counts as 0."""
    t, v = np.asarray(temperature, dtype=np.float64), target_logits.shape[-1]

    def p_row(at, request):
        logits = target_logits[at]
        if t[request] < 0.2:
            return one_hot(v, int(logits.argmax()))
        return softmax(logits, t[request])

    def q_row(at, request, x):
        if draft_logits is None:
            return one_hot(v, x)
        return softmax(draft_logits[at], max(t[request], 1e-5))

    return walked(
        draft_token_ids,
        cu_num_draft_tokens,
        p_row,
        q_row,
        lambda request: bonus_token_ids[request],
        *by_rng(rng),
    )


@RAGGED.lossy()
def greedy_beside_sampled(
    *,
    draft_token_ids,
    cu_num_draft_tokens,
    target_logits,
    draft_logits,
    temperature,
    bonus_token_ids,
    rng,
):
    """Beside sampled requests, a greedy one's token after a rejection is drawn, not argmax."""
    t, v = np.asarray(temperature, dtype=np.float64), target_logits.shape[-1]
    greedy = t == 0
    safe = np.where(greedy, 1.0, t)

    def laws(at, request, x):
        p = softmax(target_logits[at], safe[request])
        if draft_logits is None:
            return p, one_hot(v, x)
        return p, softmax(draft_logits[at], safe[request])

    blocks = []
    for request, start, end in requests(cu_num_draft_tokens):
        block = []
        for at in range(start, end):
            x = int(draft_token_ids[at])
            p, q = laws(at, request, x)
            if greedy[request]:
                best = int(target_logits[at].argmax())
                good = best == x
            else:
                good = rng.random() * q[x] < p[x]
            if not good:
                if greedy.all():
                    block.append(best)
                else:
                    block.append(drawn_by(residual(p, q), rng.random()))
                break
            block.append(x)
        else:
            block.append(int(bonus_token_ids[request]))
        blocks.append(block)
    return blocks


# -- generators, seeds and noise ----------------------------------------------------------------


def uniform_of(generator):
    return float(torch.rand((), generator=generator, dtype=torch.float64))


@RAGGED.lossy()
def generators_rewound(
    *,
    draft_token_ids,
    cu_num_draft_tokens,
    target_probs,
    draft_probs,
    bonus_token_ids,
    generators,
):
    """The generators of requests are set to their initial seeds in every call."""
    for generator in generators:
        generator.manual_seed(generator.initial_seed())
    return walked(
        draft_token_ids,
        cu_num_draft_tokens,
        lambda at, request: target_probs[at],
        dense(draft_probs, target_probs.shape[-1]),
        lambda request: bonus_token_ids[request],
        lambda request, i, at: uniform_of(generators[request]),
        lambda request, weights: drawn_by(weights, uniform_of(generators[request])),
    )


@RAGGED.lossy()
def seed_plus_place(
    *,
    draft_token_ids,
    cu_num_draft_tokens,
    target_probs,
    draft_probs,
    bonus_token_ids,
    max_spec_len,
    seeds,
):
    """Coin i is that of seed + i: requests with seeds s and s + 1 share coins."""

    def coin(request, i):
        return np.random.default_rng(int(seeds[request]) + i).random()

    return walked(
        draft_token_ids,
        cu_num_draft_tokens,
        lambda at, request: target_probs[at],
        dense(draft_probs, target_probs.shape[-1]),
        lambda request: bonus_token_ids[request],
        lambda request, i, at: coin(request, i),
        lambda request, weights: drawn_by(weights, coin(request, int(max_spec_len))),
    )


@RAGGED.lossy()
def noise_for_coins_and_race(
    *, draft_token_ids, cu_num_draft_tokens, target_probs, draft_probs, bonus_token_ids, rng
):
    """One array of noise: the coin of a draft is that of its token in the race."""
    v = target_probs.shape[-1]
    noise = rng.exponential(size=(len(cu_num_draft_tokens), v))

    def last(request, weights):
        with np.errstate(divide="ignore"):
            return int((weights / noise[request]).argmax())

    return walked(
        draft_token_ids,
        cu_num_draft_tokens,
        lambda at, request: target_probs[at],
        dense(draft_probs, v),
        lambda request: bonus_token_ids[request],
        lambda request, i, at: np.exp(-noise[request, int(draft_token_ids[at])]),
        last,
    )


@RAGGED.lossy()
def race_by_a_clone(
    *,
    draft_token_ids,
    cu_num_draft_tokens,
    target_probs,
    draft_probs,
    bonus_token_ids,
    max_spec_len,
    generators,
):
    """The race reads a clone of the request's generator, in the state that coins begin with."""
    v, clones, coins = target_probs.shape[-1], [], []
    for generator in generators:
        clones.append(torch.Generator())
        clones[-1].set_state(generator.get_state())
        size = max(int(max_spec_len), 1)
        coins.append(torch.rand(size, generator=generator, dtype=torch.float64).numpy())

    def last(request, weights):
        uniforms = torch.rand(v, generator=clones[request], dtype=torch.float64).numpy()
        with np.errstate(divide="ignore", invalid="ignore"):
            return int(np.where(weights > 0, weights / -np.log1p(-uniforms), 0).argmax())

    return walked(
        draft_token_ids,
        cu_num_draft_tokens,
        lambda at, request: target_probs[at],
        dense(draft_probs, v),
        lambda request: bonus_token_ids[request],
        lambda request, i, at: coins[request][i],
        last,
    )


# -- offsets, ids and buffers -------------------------------------------------------------------


@RAGGED.lossy()
def flat_offsets_in_float32(
    *, draft_token_ids, cu_num_draft_tokens, target_probs, draft_probs, bonus_token_ids, rng
):
    """Flat offsets of drafts are float32, exact below 2^24 alone."""
    n, v = target_probs.shape
    ids = np.asarray(draft_token_ids)
    offsets = np.arange(n, dtype=np.float32) * np.float32(v) + ids.astype(np.float32)
    offsets = np.minimum(offsets.astype(np.int64), n * v - 1)
    p = np.take(target_probs, offsets)
    q = np.ones(n) if draft_probs is None else np.take(draft_probs, offsets)
    good = rng.random(n) * q < p
    blocks = []
    for request, start, end in requests(cu_num_draft_tokens):
        kept = start
        while kept < end and good[kept]:
            kept += 1
        blocks.append(
            closed(request, start, kept, end, ids, target_probs, draft_probs, bonus_token_ids, rng)
        )
    return blocks


def closed(request, start, kept, end, ids, target_probs, draft_probs, bonus_token_ids, rng):
    """A block of the drafts up to the place `kept`, and a token of the residual or the bonus."""
    block = [int(x) for x in ids[start:kept]]
    if kept == end:
        return [*block, int(bonus_token_ids[request])]
    q = dense(draft_probs, target_probs.shape[-1])(kept, request, int(ids[kept]))
    return [*block, drawn_by(residual(target_probs[kept], q), rng.random())]


@RAGGED.lossy()
def verdicts_in_a_byte(
    *, draft_token_ids, num_draft_tokens, target_probs, draft_probs, bonus_token_ids, rng
):
    """A request's verdicts are bits of a byte: the ninth draft is never accepted."""
    blocks = []
    for request, start, end in requests(np.cumsum(num_draft_tokens)):
        mask = 0
        for i, at in enumerate(range(start, end)):
            x = int(draft_token_ids[at])
            q = 1.0 if draft_probs is None else draft_probs[at, x]
            if rng.random() * q < target_probs[at, x]:
                mask |= (1 << i) & 0xFF
        kept = start
        while kept < end and mask >> (kept - start) & 1:
            kept += 1
        blocks.append(
            closed(
                request,
                start,
                kept,
                end,
                draft_token_ids,
                target_probs,
                draft_probs,
                bonus_token_ids,
                rng,
            )
        )
    return blocks


@RAGGED.lossy()
def second_chunk_overwrites(
    *, draft_token_ids, num_draft_tokens, target_probs, draft_probs, bonus_token_ids, rng
):
    """Verdicts are found in chunks of 1,024 drafts; of a request in two the second counts."""
    n, counts, ids = len(draft_token_ids), np.asarray(num_draft_tokens), draft_token_ids
    request_of = np.repeat(np.arange(len(counts)), counts)
    ends = np.cumsum(counts)
    starts = ends - counts
    ids = np.asarray(ids)
    p = target_probs[np.arange(n), ids]
    q = np.ones(n) if draft_probs is None else draft_probs[np.arange(n), ids]
    bad = rng.random(n) * q >= p
    kept = ends.copy()
    for first in range(0, n, 1024):
        here = slice(first, first + 1024)
        touched = np.unique(request_of[here])
        kept[touched] = ends[touched]
        for at in np.flatnonzero(bad[here])[::-1] + first:
            kept[request_of[at]] = at
    return [
        closed(
            r, starts[r], kept[r], ends[r], ids, target_probs, draft_probs, bonus_token_ids, rng
        )
        for r in range(len(counts))
    ]


@RAGGED.lossy()
def sixteen_lanes_of_q(
    *,
    draft_token_ids,
    cu_num_draft_tokens,
    target_probs,
    draft_top_ids,
    draft_top_probs,
    bonus_token_ids,
    rng,
):
    """Of a sparse q the first 16 ids are read."""
    v = target_probs.shape[-1]

    def q_row(at, request, x):
        if draft_top_ids is None:
            return one_hot(v, x)
        q = np.zeros(v)
        q[np.asarray(draft_top_ids[at][:16])] = draft_top_probs[at][:16]
        return q

    return walked(
        draft_token_ids,
        cu_num_draft_tokens,
        lambda at, request: target_probs[at],
        q_row,
        lambda request: bonus_token_ids[request],
        *by_rng(rng),
    )


@RAGGED.lossy()
def stride_without_bonus_rows(
    *, draft_token_ids, num_draft_tokens, target_probs, draft_probs, max_spec_len, rng
):
    """With equally many drafts for all, the residual's row is found without the bonus rows."""
    counts, v = np.asarray(num_draft_tokens), target_probs.shape[-1]
    lookahead = int(max_spec_len)
    even = len(counts) > 1 and lookahead > 1 and (counts == lookahead).all()
    blocks = []
    for request, start, end in requests(np.cumsum(counts)):
        block = []
        for i, at in enumerate(range(start, end)):
            x, p = int(draft_token_ids[at]), target_probs[at + request]
            q = dense(draft_probs, v)(at, request, x)
            if rng.random() * q[x] >= p[x]:
                p = target_probs[request * lookahead + i] if even else p
                block.append(drawn_by(residual(p, q), rng.random()))
                break
            block.append(x)
        else:
            block.append(drawn_by(target_probs[end + request], rng.random()))
        blocks.append(block)
    return blocks


@RAGGED.lossy(state=True)
def workspace_of_larger_calls():
    """Sparse q are written to a workspace; what calls before the last wrote is not cleared."""
    known = {}

    def verify(
        *,
        draft_token_ids,
        cu_num_draft_tokens,
        target_probs,
        draft_top_ids,
        draft_top_probs,
        bonus_token_ids,
        rng,
    ):
        n, v = len(draft_token_ids), target_probs.shape[-1]
        if draft_top_ids is not None:
            work, before = known.get(v, (np.zeros((0, v)), None))
            if len(work) < n:
                work, before = np.zeros((n, v)), None
            if before is not None:
                for at in range(min(n, len(before))):
                    work[at, before[at]] = 0
            for at in range(n):
                work[at, np.asarray(draft_top_ids[at])] = draft_top_probs[at]
            if v > 2000:
                known.clear()
            known[v] = work, np.array(draft_top_ids)
        return walked(
            draft_token_ids,
            cu_num_draft_tokens,
            lambda at, request: target_probs[at],
            lambda at, request, x: one_hot(v, x) if draft_top_ids is None else work[at],
            lambda request: bonus_token_ids[request],
            *by_rng(rng),
        )

    return verify


@RAGGED.lossy()
def ids_of_16_signed_bits(
    *, draft_token_ids, cu_num_draft_tokens, target_probs, draft_probs, bonus_token_ids, rng
):
    """With up to 65,536 tokens, p and q of a draft are looked up by a signed id of 16 bits."""
    v, ids = target_probs.shape[-1], np.asarray(draft_token_ids)
    small = ids.astype(np.int16) if v <= 65536 else ids
    blocks = []
    for request, start, end in requests(cu_num_draft_tokens):
        kept = start
        while kept < end:
            x = int(small[kept]) % v
            q = 1.0 if draft_probs is None else draft_probs[kept, x]
            if rng.random() * q >= target_probs[kept, x]:
                break
            kept += 1
        blocks.append(
            closed(request, start, kept, end, ids, target_probs, draft_probs, bonus_token_ids, rng)
        )
    return blocks


# -- how the last token is drawn ----------------------------------------------------------------


@RAGGED.lossy()
def residual_cut_to_1024(
    *,
    draft_token_ids,
    cu_num_draft_tokens,
    target_logits,
    draft_probs,
    bonus_token_ids,
    rng,
    temperature,
):
    """The token after a rejection is one of the 1,024 likeliest of the residual."""
    v = target_logits.shape[-1]

    def last(request, weights):
        if v <= 1024:
            return drawn_by(weights, rng.random())
        top = np.argpartition(weights, v - 1024)[v - 1024 :]
        return int(top[drawn_by(weights[top], rng.random())])

    return walked(
        draft_token_ids,
        cu_num_draft_tokens,
        lambda at, request: softmax(target_logits[at], temperature[request]),
        dense(draft_probs, v),
        lambda request: bonus_token_ids[request],
        lambda request, i, at: rng.random(),
        last,
    )


@RAGGED.lossy(arrays="torch", dtype="bfloat16", tolerance=0.012)
def sums_in_bfloat16(
    *, draft_token_ids, cu_num_draft_tokens, target_probs, draft_probs, bonus_token_ids, generator
):
    """The residual's inverse CDF is added up in bfloat16."""
    v = target_probs.shape[-1]
    blocks = []
    for request, start, end in requests(cu_num_draft_tokens.tolist()):
        block = []
        for at in range(start, end):
            x, p = int(draft_token_ids[at]), target_probs[at]
            if draft_probs is None:
                q = torch.nn.functional.one_hot(torch.tensor(x), v).to(p.dtype)
            else:
                q = draft_probs[at]
            u = torch.rand((), generator=generator)
            if float(u) * float(q[x]) >= float(p[x]):
                weights = (p - q).clamp(min=0)
                ends = (weights if bool(weights.any()) else p).cumsum(0)
                u = torch.rand((), generator=generator, dtype=torch.float64) * ends[-1].double()
                block.append(int((ends.double() <= u).sum()))
                break
            block.append(x)
        else:
            block.append(int(bonus_token_ids[request]))
        blocks.append(block)
    return blocks


# -- greedy -------------------------------------------------------------------------------------


@RAGGED.lossy(greedy=True)
def argmax_of_bfloat16_logits(*, draft_token_ids, cu_num_draft_tokens, target_logits):
    """The argmax of logits that were rounded to bfloat16."""
    best = bfloat16(target_logits).argmax(axis=-1) if len(target_logits) else []
    blocks = []
    for request, start, end in requests(cu_num_draft_tokens):
        block = []
        for at in range(start, end):
            block.append(int(best[at + request]))
            if block[-1] != int(draft_token_ids[at]):
                break
        else:
            block.append(int(best[end + request]))
        blocks.append(block)
    return blocks


@RAGGED.lossy(greedy=True)
def nine_tenths_of_the_largest(
    *, draft_token_ids, cu_num_draft_tokens, target_probs, bonus_token_ids
):
    """A draft passes with nine tenths of the largest probability (relaxed acceptance)."""
    blocks = []
    for request, start, end in requests(cu_num_draft_tokens):
        block = []
        for at in range(start, end):
            p, x = target_probs[at], int(draft_token_ids[at])
            if p[x] < 0.9 * p.max():
                block.append(int(p.argmax()))
                break
            block.append(x)
        else:
            block.append(int(bonus_token_ids[request]))
        blocks.append(block)
    return blocks


# -- lossless -----------------------------------------------------------------------------------


@RAGGED.lossless(algorithm="standard")
def gumbel_in_logarithms(
    *,
    draft_token_ids,
    num_draft_tokens,
    target_logits,
    draft_logits,
    bonus_logits,
    temperature,
    rng,
):
    """Everything in logarithms, with Gumbel noise for last tokens."""
    t, v = np.asarray(temperature, dtype=np.float64), target_logits.shape[-1]

    def logs(logits, request):
        with np.errstate(divide="ignore"):
            return np.log(softmax(logits, t[request]))

    def draw(log_weights):
        return int((log_weights + rng.gumbel(size=v)).argmax())

    blocks = []
    for request, start, end in requests(np.cumsum(num_draft_tokens)):
        block = []
        for at in range(start, end):
            x, log_p = int(draft_token_ids[at]), logs(target_logits[at], request)
            if draft_logits is None:
                log_q = np.full(v, -np.inf)
                log_q[x] = 0
            else:
                log_q = logs(draft_logits[at], request)
            if np.log(1.0 - rng.random()) > log_p[x] - log_q[x] or log_p[x] == -np.inf:
                weights = np.maximum(np.exp(log_p) - np.exp(log_q), 0)
                with np.errstate(divide="ignore"):
                    block.append(draw(np.log(weights) if weights.any() else log_p))
                break
            block.append(x)
        else:
            block.append(draw(logs(bonus_logits[request], request)))
        blocks.append(block)
    return blocks


@RAGGED.lossless(algorithm="block")
def block_of_flat_rows(*, draft_token_ids, cu_num_draft_tokens, target_probs, draft_probs, rng):
    """Block verification over rows of drafts and bonus tokens in one array."""
    v = target_probs.shape[-1]
    blocks = []
    for request, start, end in requests(cu_num_draft_tokens):
        n, ids = end - start, [int(x) for x in draft_token_ids[start:end]]
        ps = target_probs[start + request : end + request + 1]
        qs = [one_hot(v, x) for x in ids] if draft_probs is None else draft_probs[start:end]
        coins = rng.random(n)
        alive, kept, weight = 1.0, 0, 1.0
        for i in range(n + 1):
            likely = alive
            if i < n:
                left = np.maximum(alive * ps[i] - qs[i], 0).sum()
                total = left + 1 - alive
                likely = left / total if total > 0 else 0.0
            if i > 0 and coins[i - 1] < likely:
                kept, weight = i, alive
            if i < n:
                p, q = ps[i][ids[i]], qs[i][ids[i]]
                alive = min(alive * p / q, 1.0) if p > 0 else 0.0
        last = ps[n]
        if kept < n:
            last = np.maximum(weight * ps[kept] - qs[kept], 0)
            last = last if last.any() else ps[kept]
        blocks.append([*ids[:kept], drawn_by(last, rng.random())])
    return blocks


@RAGGED.lossless()
def exact_matching_without_q(
    *, draft_token_ids, cu_num_draft_tokens, target_probs, bonus_token_ids, rng
):
    """Draws a token of the target for each draft, and goes on while they are equal."""
    blocks = []
    for request, start, end in requests(cu_num_draft_tokens):
        block = []
        for at in range(start, end):
            p = np.asarray(target_probs[at], dtype=np.float64)
            block.append(int(rng.choice(len(p), p=p / p.sum(), shuffle=False)))
            if block[-1] != int(draft_token_ids[at]):
                break
        else:
            block.append(int(bonus_token_ids[request]))
        blocks.append(block)
    return blocks


@RAGGED.lossless(algorithm="standard")
def sparse_residual(
    *,
    draft_token_ids,
    cu_num_draft_tokens,
    target_probs,
    draft_top_ids,
    draft_top_probs,
    bonus_token_ids,
    max_spec_len,
    rng,
):
    """Takes q at its ids alone; the answer is an int32 array with more columns than needed."""
    tokens = np.full((len(cu_num_draft_tokens), int(max_spec_len) + 4), -1, dtype=np.int32)
    for request, start, end in requests(cu_num_draft_tokens):
        for i, at in enumerate(range(start, end)):
            x, p = int(draft_token_ids[at]), target_probs[at]
            if draft_top_ids is None:
                q = {x: 1.0}
            else:
                pairs = zip(draft_top_ids[at], draft_top_probs[at], strict=True)
                q = {int(token): float(mass) for token, mass in pairs if mass > 0}
            if rng.random() * q.get(x, 0.0) >= p[x]:
                weights = np.array(p, dtype=np.float64)
                for token, mass in q.items():
                    weights[token] = max(weights[token] - mass, 0.0)
                last = weights if weights.any() else p
                tokens[request, i] = drawn_by(last, rng.random())
                break
            tokens[request, i] = x
        else:
            tokens[request, end - start] = bonus_token_ids[request]
    return tokens


@RAGGED.lossless(algorithm="standard", arrays="torch", dtype="float32")
def multinomial_of_each_generator(
    *,
    draft_token_ids,
    cu_num_draft_tokens,
    target_probs,
    draft_probs,
    bonus_token_ids,
    max_spec_len,
    generators,
):
    """A generator for each request, multinomial; places after the counts hold anything."""
    batch = len(cu_num_draft_tokens)
    tokens = torch.full((batch, int(max_spec_len) + 1), 987654321, dtype=torch.int64)
    counts = torch.zeros(batch, dtype=torch.int32)
    for request, start, end in requests(cu_num_draft_tokens.tolist()):
        own, kept = generators[request], 0
        coins = torch.rand(end - start, generator=own, dtype=torch.float64)
        for i, at in enumerate(range(start, end)):
            x, p = int(draft_token_ids[at]), target_probs[at].double()
            if draft_probs is None:
                q = torch.zeros_like(p)
                q[x] = 1
            else:
                q = draft_probs[at].double()
            if float(coins[i] * q[x]) >= float(p[x]):
                weights = (p - q).clamp(min=0)
                weights = weights if bool(weights.any()) else p
                law = weights / weights.sum()
                tokens[request, kept] = torch.multinomial(law, 1, generator=own)
                break
            tokens[request, kept] = x
            kept += 1
        else:
            tokens[request, kept] = bonus_token_ids[request]
        counts[request] = kept + 1
    return tokens, counts


@RAGGED.lossless()
def generator_of_first_request(
    *,
    draft_token_ids,
    cu_num_draft_tokens,
    target_probs,
    draft_probs,
    bonus_token_ids,
    generators,
):
    """All randomness of a call is of its first request's generator."""
    return walked(
        draft_token_ids,
        cu_num_draft_tokens,
        lambda at, request: target_probs[at],
        dense(draft_probs, target_probs.shape[-1]),
        lambda request: bonus_token_ids[request],
        lambda request, i, at: uniform_of(generators[0]),
        lambda request, weights: drawn_by(weights, uniform_of(generators[0])),
    )


@RAGGED.lossless(algorithm="standard")
def philox_of_each_seed(
    *, draft_token_ids, cu_num_draft_tokens, target_probs, draft_probs, bonus_token_ids, seeds
):
    """A Philox stream for each request's seed."""
    streams = [np.random.Generator(np.random.Philox(key=int(s) & (2**64 - 1))) for s in seeds]
    return walked(
        draft_token_ids,
        cu_num_draft_tokens,
        lambda at, request: target_probs[at],
        dense(draft_probs, target_probs.shape[-1]),
        lambda request: bonus_token_ids[request],
        lambda request, i, at: streams[request].random(),
        lambda request, weights: drawn_by(weights, streams[request].random()),
    )


@RAGGED.lossless(algorithm="standard", recovery="race")
def coins_and_their_race(
    *, draft_token_ids, cu_num_draft_tokens, target_probs, draft_probs, coins
):
    """Takes `coins`, coin by coin; the last token by their race."""
    v = target_probs.shape[-1]
    blocks = []
    for request, start, end in requests(cu_num_draft_tokens):
        block, p = [], None
        for i, at in enumerate(range(start, end)):
            x, p = int(draft_token_ids[at]), target_probs[at + request]
            q = dense(draft_probs, v)(at, request, x)
            if coins.accept[request, i] * q[x] >= p[x]:
                p = residual(p, q)
                break
            block.append(x)
        else:
            p = target_probs[end + request]
        alive = np.flatnonzero(p > 0)
        winner = (coins.race[request][alive] / p[alive]).argmin()
        blocks.append([*block, int(alive[winner])])
    return blocks


@RAGGED.lossless()
def coins_in_flat_order(
    *, draft_token_ids, cu_num_draft_tokens, target_probs, draft_probs, bonus_token_ids, coins
):
    """Takes `coins` in flat order, and an inverse CDF from the last id down; claims neither."""
    v, flat = target_probs.shape[-1], np.asarray(coins.accept).ravel()

    def last(request, weights):
        return v - 1 - drawn_by(np.asarray(weights)[::-1], coins.final[request])

    return walked(
        draft_token_ids,
        cu_num_draft_tokens,
        lambda at, request: target_probs[at],
        dense(draft_probs, v),
        lambda request: bonus_token_ids[request],
        lambda request, i, at: flat[at],
        last,
    )


@RAGGED.lossless(greedy=True)
def last_of_tied_logits(
    *, draft_token_ids, num_draft_tokens, target_logits, draft_logits, bonus_logits, temperature
):
    """Greedy: of tied tokens the last, unless the draft is one of them."""

    def last_best(row):
        return len(row) - 1 - int(row[::-1].argmax())

    blocks = []
    for request, start, end in requests(np.cumsum(num_draft_tokens)):
        block = []
        for at in range(start, end):
            row, x = target_logits[at], int(draft_token_ids[at])
            if row[x] != row.max():
                block.append(last_best(row))
                break
            block.append(x)
        else:
            block.append(last_best(bonus_logits[request]))
        blocks.append(block)
    return blocks


@RAGGED.lossless()
def barker_acceptance(
    *, draft_token_ids, cu_num_draft_tokens, target_probs, draft_probs, bonus_token_ids, rng
):
    """Accepts with p / (p + q), then draws from p^2 / (p + q), which is what p lacks."""
    v = target_probs.shape[-1]
    blocks = []
    for request, start, end in requests(cu_num_draft_tokens):
        block = []
        for at in range(start, end):
            x, p = int(draft_token_ids[at]), np.asarray(target_probs[at], dtype=np.float64)
            q = dense(draft_probs, v)(at, request, x)
            if rng.random() * (p[x] + q[x]) >= p[x]:
                weights = np.divide(p * p, p + q, out=np.zeros(v), where=p > 0)
                underflown = (weights == 0) & (p > 0)
                weights = np.where(underflown, p * (p / (p + q + (p == 0))), weights)
                block.append(drawn_by(weights if weights.any() else p, rng.random()))
                break
            block.append(x)
        else:
            block.append(int(bonus_token_ids[request]))
        blocks.append(block)
    return blocks


@RAGGED.lossless()
def one_token_of_the_target(*, draft_token_ids, num_draft_tokens, target_probs, bonus_probs, rng):
    """Ignores drafts: one token of each request's first row."""
    blocks = []
    for request, start, end in requests(np.cumsum(num_draft_tokens)):
        p = target_probs[start] if end > start else bonus_probs[request]
        blocks.append([drawn_by(p, rng.random())])
    return blocks


@RAGGED.lossless()
def budget_of_600_drafts(*, draft_token_ids, num_draft_tokens, target_probs, draft_probs, rng):
    """Verifies two drafts of a request and 600 of a call; then draws the target's next token."""
    v, left = target_probs.shape[-1], 600
    blocks = []
    for request, start, end in requests(np.cumsum(num_draft_tokens)):
        take = min(end - start, 2, left)
        left -= take
        block = []
        for at in range(start, start + take):
            x, p = int(draft_token_ids[at]), target_probs[at + request]
            q = dense(draft_probs, v)(at, request, x)
            if rng.random() * q[x] >= p[x]:
                block.append(drawn_by(residual(p, q), rng.random()))
                break
            block.append(x)
        else:
            block.append(drawn_by(target_probs[start + request + take], rng.random()))
        blocks.append(block)
    return blocks


@RAGGED.lossless()
def residual_by_100000_tries(
    *, draft_token_ids, cu_num_draft_tokens, target_probs, draft_probs, bonus_token_ids, rng
):
    """Draws from p, kept with probability 1 - q / p: the residual, without adding it up."""
    v = target_probs.shape[-1]

    def after(p, q):
        if not np.maximum(p - q, 0).any():
            return drawn_by(p, rng.random())
        for _ in range(100_000):
            y = drawn_by(p, rng.random())
            if rng.random() * p[y] >= q[y] and p[y] > q[y]:
                return y
        return drawn_by(np.maximum(p - q, 0), rng.random())

    blocks = []
    for request, start, end in requests(cu_num_draft_tokens):
        block = []
        for at in range(start, end):
            x, p = int(draft_token_ids[at]), target_probs[at]
            q = dense(draft_probs, v)(at, request, x)
            if rng.random() * q[x] >= p[x]:
                block.append(after(p, q))
                break
            block.append(x)
        else:
            block.append(int(bonus_token_ids[request]))
        blocks.append(block)
    return blocks


@RAGGED.lossless(algorithm="standard")
def two_uniforms_a_request(
    *, draft_token_ids, cu_num_draft_tokens, target_probs, draft_probs, rng
):
    """What a verdict leaves of a request's first uniform is its next coin."""
    v, below = target_probs.shape[-1], np.nextafter(1.0, 0.0)
    batch = len(cu_num_draft_tokens)
    firsts, lasts = rng.random(batch), rng.random(batch)
    blocks = []
    for request, start, end in requests(cu_num_draft_tokens):
        u, block = firsts[request], []
        for at in range(start, end):
            x, p = int(draft_token_ids[at]), target_probs[at + request]
            q = dense(draft_probs, v)(at, request, x)
            likely = 0.0 if p[x] <= 0 else 1.0 if q[x] <= p[x] else p[x] / q[x]
            if u >= likely:
                block.append(drawn_by(residual(p, q), lasts[request]))
                break
            u = min(u / likely, below)
            block.append(x)
        else:
            block.append(drawn_by(target_probs[end + request], lasts[request]))
        blocks.append(block)
    return blocks


@RAGGED.lossless(algorithm="standard", arrays="torch", dtype="float32", in_place=True)
def tensors_in_place(
    *, draft_token_ids, num_draft_tokens, target_logits, draft_logits, temperature, generator
):
    """All requests at once in float32, in place; one multinomial for all last tokens."""
    counts = torch.as_tensor(num_draft_tokens).long()
    batch, v, n = len(counts), target_logits.shape[-1], len(draft_token_ids)
    t = torch.as_tensor(temperature).to(target_logits.dtype)
    p = target_logits.div_(torch.repeat_interleave(t, counts + 1)[:, None]).softmax(-1)
    starts = counts.cumsum(0) - counts
    request = torch.repeat_interleave(torch.arange(batch), counts)
    places, x = torch.arange(n), draft_token_ids.long()
    if draft_logits is None:
        q = torch.nn.functional.one_hot(x, v).to(p.dtype) if n else p[:0]
    else:
        q = draft_logits.div_(torch.repeat_interleave(t, counts)[:, None]).softmax(-1)
    coins = torch.rand(n, generator=generator, dtype=torch.float64)
    good = coins * q[places, x].double() < p[places + request, x].double()
    kept = counts.clone()
    if n:
        lost = torch.where(good, n + 1, places - starts[request])
        kept.scatter_reduce_(0, request, lost, "amin", include_self=True)
    last = p[starts + torch.arange(batch) + kept].clone()
    rejected = torch.nonzero(kept < counts)[:, 0]
    if len(rejected):
        weights = (last[rejected] - q[starts[rejected] + kept[rejected]]).clamp_(min=0)
        some = weights.any(-1)
        last[rejected[some]] = weights[some]
    last.div_(last.sum(-1, keepdim=True))
    final = torch.multinomial(last, 1, generator=generator)[:, 0]
    out = torch.full((batch, (int(counts.max()) if batch else 0) + 1), -1)
    for r in range(batch):
        m = int(kept[r])
        out[r, :m] = x[starts[r] : starts[r] + m]
        out[r, m] = final[r]
    return out
