"""Samplers that are lossless, though unusual. Each says why.

A function is the sampler itself; one without parameters builds a sampler that keeps state, or
claims something. `LOSSLESS` has them by name; `fresh` gives a new one.
"""

import random
from concurrent.futures import ThreadPoolExecutor
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
    in_chunks,
    inverse,
    law_at,
    prefix,
    residual,
    slices,
    standard,
    weights_after,
)
from specref import capable

NARROW = 64  # more tokens take the plain way, in samplers whose loops are slow


def ignores_drafts(target_probs, draft_probs, draft_tokens, *, rng):
    """Emits one draw from p, whatever was drafted."""
    return assemble(
        draft_tokens, np.zeros(len(draft_tokens), int), by_race(target_probs[:, 0], rng)
    )


def exact_matching(target_probs, draft_probs, draft_tokens, *, rng):
    """Draws from p at every place; goes on while the draw is the draft, and emits the draw."""
    batch, places, v = target_probs.shape
    own = by_inverse(target_probs.reshape(-1, v), rng).reshape(batch, places)
    kept = prefix((draft_tokens >= 0) & (own[:, :-1] == draft_tokens))
    return assemble(draft_tokens, kept, own[np.arange(batch), kept])


def races_for_the_last_token(target_probs, draft_probs, draft_tokens, *, rng):
    """The smallest of exponentials divided by weights has the law of the weights."""
    return standard(target_probs, draft_probs, draft_tokens, rng, draw=by_race)


def gumbel_for_the_last_token(target_probs, draft_probs, draft_tokens, *, rng):
    """The largest of log weight plus Gumbel noise has the law of the weights."""

    def draw(weights, rng):
        with np.errstate(divide="ignore"):
            return np.argmax(np.log(weights) + rng.gumbel(size=weights.shape), axis=1)

    return standard(target_probs, draft_probs, draft_tokens, rng, draw=draw)


def residual_by_rejection(target_probs, draft_probs, draft_tokens, *, rng):
    """Draws from p until a coin of (p - q)+ / p succeeds: the residual, without adding it up."""
    kept = prefix(
        (draft_tokens >= 0)
        & by_coin(drafted(target_probs, draft_tokens), drafted(draft_probs, draft_tokens), rng)
    )
    batch, v = len(draft_tokens), target_probs.shape[2]
    p = target_probs[np.arange(batch), kept]
    q = np.zeros_like(p)
    short = np.flatnonzero(kept < (draft_tokens >= 0).sum(axis=1))
    q[short] = law_at(draft_probs, draft_tokens, short, kept[short], v)
    weights = residual(p, q)
    last, open_rows = np.full(batch, -1), np.arange(batch)
    for _ in range(200):
        tried = by_inverse(p[open_rows], rng)
        good = rng.random(len(open_rows)) * p[open_rows, tried] < weights[open_rows, tried]
        last[open_rows[good]] = tried[good]
        open_rows = open_rows[~good]
        if not len(open_rows):
            return assemble(draft_tokens, kept, last)
    last[open_rows] = by_inverse(weights[open_rows], rng)  # still open: their law is drawn from
    return assemble(draft_tokens, kept, last)


def coins_of_logarithms(target_probs, draft_probs, draft_tokens, *, rng):
    """Accepts iff -E < log p - log q, with E exponential."""

    def accept(p, q, rng):
        with np.errstate(divide="ignore", invalid="ignore"):
            return (p > 0) & (-rng.standard_exponential(p.shape) < np.log(p) - np.log(q))

    return standard(target_probs, draft_probs, draft_tokens, rng, accept=accept)


def coins_by_column(target_probs, draft_probs, draft_tokens, *, rng):
    """The uniforms lie by place first, and the last ones come before the accepting ones."""
    batch, lookahead = draft_tokens.shape
    uniforms = rng.random((lookahead + 1, batch))
    p, q = drafted(target_probs, draft_tokens), drafted(draft_probs, draft_tokens)
    kept = prefix((draft_tokens >= 0) & (uniforms[1:].T * q < p))
    return assemble(
        draft_tokens,
        kept,
        inverse(weights_after(target_probs, draft_probs, draft_tokens, kept), uniforms[0]),
    )


def one_uniform_a_row(target_probs, draft_probs, draft_tokens, *, rng):
    """What a coin leaves of its uniform, stretched to [0, 1), is uniform again: it is used on."""
    batch, lookahead = draft_tokens.shape
    u, kept, going = rng.random(batch), np.zeros(batch, int), np.full(batch, True)
    for i in range(lookahead):
        x = draft_tokens[:, i]
        p = drafted(target_probs[:, i : i + 1], x[:, None])[:, 0]
        q = drafted(None if draft_probs is None else draft_probs[:, i : i + 1], x[:, None])[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(q > 0, np.minimum(p / q, 1), (p > 0).astype(float))
            yes, tried = u < ratio, going & (x >= 0)
            left = np.where(yes, u / ratio, (u - ratio) / (1 - ratio))
        u = np.where(tried, np.clip(left, 0, 1 - 2**-53), u)
        going = tried & yes
        kept += going
    weights = weights_after(target_probs, draft_probs, draft_tokens, kept)
    return assemble(draft_tokens, kept, inverse(weights, u))


def stream_a_row(target_probs, draft_probs, draft_tokens, *, rng):
    """Each row has a PCG64 of its own, seeded by 128 bits from `rng`."""
    batch, lookahead = draft_tokens.shape
    seeds = rng.integers(0, 2**32, size=(batch, 4))
    streams = [np.random.Generator(np.random.PCG64([int(s) for s in row])) for row in seeds]
    uniforms = np.array([stream.random(lookahead + 1) for stream in streams])
    return by_uniforms(target_probs, draft_probs, draft_tokens, uniforms)


def by_uniforms(target_probs, draft_probs, draft_tokens, uniforms):
    kept = prefix(
        (draft_tokens >= 0)
        & (
            uniforms[:, :-1] * drafted(draft_probs, draft_tokens)
            < drafted(target_probs, draft_tokens)
        )
    )
    weights = weights_after(target_probs, draft_probs, draft_tokens, kept)
    return assemble(draft_tokens, kept, inverse(weights, uniforms[:, -1]))


def children_of_the_generator(target_probs, draft_probs, draft_tokens, *, rng):
    """Two generators that `rng` spawns: one for coins, one for tokens."""
    coins, tokens = rng.spawn(2)
    kept = prefix(
        (draft_tokens >= 0)
        & by_coin(drafted(target_probs, draft_tokens), drafted(draft_probs, draft_tokens), coins)
    )
    weights = weights_after(target_probs, draft_probs, draft_tokens, kept)
    return assemble(draft_tokens, kept, by_inverse(weights, tokens))


def raw_bits(target_probs, draft_probs, draft_tokens, *, rng):
    """Uniforms of the upper 53 bits of what the bit generator gives."""
    shape = (len(draft_tokens), draft_tokens.shape[1] + 1)
    words = rng.bit_generator.random_raw(shape)
    return by_uniforms(
        target_probs, draft_probs, draft_tokens, (words >> np.uint64(11)) * 2.0**-53
    )


def bytes_of_the_generator(target_probs, draft_probs, draft_tokens, *, rng):
    """Uniforms of eight bytes each."""
    shape = (len(draft_tokens), draft_tokens.shape[1] + 1)
    words = np.frombuffer(rng.bytes(8 * shape[0] * shape[1]), dtype=np.uint64).reshape(shape)
    return by_uniforms(
        target_probs, draft_probs, draft_tokens, (words >> np.uint64(11)) * 2.0**-53
    )


def integers_for_uniforms(target_probs, draft_probs, draft_tokens, *, rng):
    """Uniforms of `integers` below 2^53."""
    shape = (len(draft_tokens), draft_tokens.shape[1] + 1)
    uniforms = rng.integers(0, 2**53, size=shape) * 2.0**-53
    return by_uniforms(target_probs, draft_probs, draft_tokens, uniforms)


def sums_modulo_one(target_probs, draft_probs, draft_tokens, *, rng):
    """The sum of two uniforms modulo 1 is uniform."""
    shape = (len(draft_tokens), draft_tokens.shape[1] + 1)
    uniforms = (rng.random(shape) + rng.random(shape)) % 1.0
    return by_uniforms(target_probs, draft_probs, draft_tokens, uniforms)


def mersenne_twister(target_probs, draft_probs, draft_tokens, *, rng):
    """The standard library's generator, seeded by 192 bits from `rng` in each call."""
    own = random.Random(rng.bytes(24))
    uniforms = [
        [own.random() for _ in range(draft_tokens.shape[1] + 1)] for _ in range(len(draft_tokens))
    ]
    return by_uniforms(target_probs, draft_probs, draft_tokens, np.array(uniforms))


def shuffled_vocabulary(target_probs, draft_probs, draft_tokens, *, rng):
    """Ids are permuted, verified, and permuted back."""
    order = rng.permutation(target_probs.shape[2])
    back = np.append(np.argsort(order), -1)  # the last: -1 stays -1
    tokens, counts = standard(
        target_probs[:, :, order],
        None if draft_probs is None else draft_probs[:, :, order],
        back[draft_tokens],
        rng,
    )
    return np.append(order, -1)[tokens], counts


def sorted_vocabulary(target_probs, draft_probs, draft_tokens, *, rng):
    """The last token by an inverse CDF over weights in descending order."""

    def draw(weights, rng):
        order = np.argsort(-weights, axis=1, kind="stable")
        place = by_inverse(np.take_along_axis(weights, order, axis=1), rng)
        return order[np.arange(len(order)), place]

    return standard(target_probs, draft_probs, draft_tokens, rng, draw=draw)


def from_the_last_id(target_probs, draft_probs, draft_tokens, *, rng):
    """The inverse CDF runs from the last id to the first."""

    def draw(weights, rng):
        return weights.shape[1] - 1 - by_inverse(weights[:, ::-1], rng)

    return standard(target_probs, draft_probs, draft_tokens, rng, draw=draw)


def blocks_then_tokens(target_probs, draft_probs, draft_tokens, *, rng):
    """First a block of 64 ids by its sum, then an id in it, with a uniform each."""

    def draw(weights, rng):
        rows, v = weights.shape
        blocks = np.zeros((rows, -(-v // 64) * 64))
        blocks[:, :v] = weights
        blocks = blocks.reshape(rows, -1, 64)
        block = by_inverse(blocks.sum(axis=2), rng)
        return 64 * block + by_inverse(blocks[np.arange(rows), block], rng)

    return standard(target_probs, draft_probs, draft_tokens, rng, draw=draw)


def alias_tables(target_probs, draft_probs, draft_tokens, *, rng):
    """Vose's alias method for up to 64 tokens, an inverse CDF for more."""

    def draw(weights, rng):
        if weights.shape[1] > NARROW or len(weights) > 64:
            return by_inverse(weights, rng)
        n = weights.shape[1]
        columns, heights = rng.integers(n, size=len(weights)), rng.random(len(weights))
        tables = [alias_table(row / row.sum()) for row in weights]
        return np.array(
            [
                i if h < threshold[i] else other[i]
                for (threshold, other), i, h in zip(tables, columns, heights, strict=True)
            ],
            dtype=int,
        )

    return standard(target_probs, draft_probs, draft_tokens, rng, draw=draw)


def alias_table(p):
    threshold, other = p * len(p), np.arange(len(p))
    small = [i for i in range(len(p)) if threshold[i] < 1]
    large = [i for i in range(len(p)) if threshold[i] >= 1]
    while small and large:
        i, j = small.pop(), large[-1]
        other[i] = j
        threshold[j] -= 1 - threshold[i]
        if threshold[j] < 1:
            small.append(large.pop())
    for i in small:  # of rounding: their height is 1, unless they have no mass at all
        if p[i] > 0:
            threshold[i] = 1.0
        else:
            other[i] = np.argmax(p)
    return threshold, other


def single_precision(target_probs, draft_probs, draft_tokens, *, rng):
    """All arithmetic in float32, uniforms too."""

    def accept(p, q, rng):
        return rng.random(p.shape, dtype=np.float32) * q < p

    def draw(weights, rng):
        noise = rng.standard_exponential(weights.shape, dtype=np.float32)
        with np.errstate(divide="ignore"):
            return np.argmin(noise / weights, axis=1)

    q = None if draft_probs is None else draft_probs.astype(np.float32)
    return standard(
        target_probs.astype(np.float32), q, draft_tokens, rng, accept=accept, draw=draw
    )


def torch_multinomial(target_probs, draft_probs, draft_tokens, *, generator):
    """Tensors made here, coins of torch.rand, the last token of torch.multinomial."""
    p, x = torch.tensor(target_probs), torch.tensor(draft_tokens)
    batch, lookahead = x.shape
    ids = x.clamp(min=0).unsqueeze(-1)
    if draft_probs is None:
        q = torch.zeros(batch, lookahead, p.shape[2], dtype=p.dtype).scatter_(2, ids, 1.0)
    else:
        q = torch.tensor(draft_probs)
    coins = torch.rand(x.shape, generator=generator, dtype=torch.float64)
    passed = coins * q.gather(2, ids)[..., 0] < p[:, :-1].gather(2, ids)[..., 0]
    kept = (passed & (x >= 0)).long().cumprod(dim=1).sum(dim=1)
    rows = torch.arange(batch)
    weights = p[rows, kept]
    short = kept < (x >= 0).sum(dim=1)
    left = (weights[short] - q[rows[short], kept[short]]).clamp(min=0)
    weights[short] = torch.where(left.sum(dim=1, keepdim=True) > 0, left, weights[short])
    last = torch.multinomial(weights, 1, generator=generator)[:, 0]
    return assemble(draft_tokens, kept.numpy(), last.numpy())


def torch_tensors():
    """Tensors in and out, noise of exponential_ in float64, torch's global generator."""

    @capable(arrays="torch", one_hot=False)
    def verify(target_probs, draft_probs, draft_tokens):
        batch, lookahead = draft_tokens.shape
        ids = draft_tokens.clamp(min=0).unsqueeze(-1)
        p = target_probs[:, :-1].gather(2, ids).squeeze(-1)
        q = draft_probs.gather(2, ids).squeeze(-1)
        passed = (torch.rand_like(p) * q < p) & (draft_tokens >= 0)
        kept = passed.long().cumprod(dim=1).sum(dim=1)
        rows = torch.arange(batch)
        weights = target_probs[rows, kept]
        short = kept < (draft_tokens >= 0).sum(dim=1)
        left = (weights[short] - draft_probs[rows[short], kept[short]]).clamp(min=0)
        weights[short] = torch.where(left.sum(dim=1, keepdim=True) > 0, left, weights[short])
        noise = torch.empty_like(weights).exponential_()
        tokens = torch.full((batch, lookahead + 1), -1, dtype=torch.long)
        place = torch.arange(lookahead)
        tokens[:, :-1] = torch.where(place < kept.unsqueeze(1), draft_tokens, -1)
        tokens[rows, kept] = (weights / noise).argmax(dim=1)
        return tokens, kept + 1

    return verify


def fewer_acceptances(target_probs, draft_probs, draft_tokens, *, rng):
    """Accepts with min(1, p / 1.25 q), and redraws from p - min(q, p / 1.25)."""
    return standard(
        target_probs,
        draft_probs,
        draft_tokens,
        rng,
        accept=lambda p, q, rng: rng.random(p.shape) * 1.25 * q < p,
        rest=lambda p, q: residual(p, np.minimum(q, p / 1.25)),
    )


def ratios_in_steps(target_probs, draft_probs, draft_tokens, *, rng):
    """Accepts with a = floor(256 min(1, p / q)) / 256, and redraws from p - q a."""

    def steps(p, q):
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.floor(256 * np.where(q > 0, np.minimum(p / q, 1), 1.0)) / 256

    return standard(
        target_probs,
        draft_probs,
        draft_tokens,
        rng,
        accept=lambda p, q, rng: (p > 0) & (rng.random(p.shape) < steps(p, q)),
        rest=lambda p, q: residual(p, q * steps(p, q)),
    )


def two_coins_a_draft(target_probs, draft_probs, draft_tokens, *, rng):
    """Two coins of the square root of min(1, p / q) succeed together as often as one."""

    def accept(p, q, rng):
        with np.errstate(divide="ignore", invalid="ignore"):
            root = np.sqrt(np.where(q > 0, np.minimum(p / q, 1), (p > 0).astype(float)))
        return (rng.random(p.shape) < root) & (rng.random(p.shape) < root)

    return standard(target_probs, draft_probs, draft_tokens, rng, accept=accept)


def binomial_coins(target_probs, draft_probs, draft_tokens, *, rng):
    """Coins are binomial draws of one trial."""

    def accept(p, q, rng):
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(q > 0, np.minimum(p / q, 1), (p > 0).astype(float))
        return rng.binomial(1, ratio) == 1

    return standard(target_probs, draft_probs, draft_tokens, rng, accept=accept, draw=by_race)


def some_drafts_only(target_probs, draft_probs, draft_tokens, *, rng):
    """Reads a random number of each row's drafts: without the others the rule is the same."""
    lengths = rng.integers(0, draft_tokens.shape[1] + 1, size=len(draft_tokens))
    shown = np.where(np.arange(draft_tokens.shape[1]) < lengths[:, None], draft_tokens, -1)
    return standard(target_probs, draft_probs, shown, rng)


def only_sure_drafters(target_probs, draft_probs, draft_tokens, *, rng):
    """Ignores drafts from the first law with max q < 0.4 on: that does not depend on the draft."""
    if draft_probs is None:
        return standard(target_probs, draft_probs, draft_tokens, rng)
    sure = np.logical_and.accumulate(draft_probs.max(axis=2) >= 0.4, axis=1)
    return standard(target_probs, draft_probs, np.where(sure, draft_tokens, -1), rng)


def stops_after_id_zero(target_probs, draft_probs, draft_tokens, *, rng):
    """Ignores what was drafted after a draft 0: the past may decide how many drafts are read."""
    zeros = np.cumsum(draft_tokens == 0, axis=1) - (draft_tokens == 0)
    return standard(target_probs, draft_probs, np.where(zeros > 0, -1, draft_tokens), rng)


def ends_with_the_shortest(target_probs, draft_probs, draft_tokens, *, rng):
    """All rows stop where the first of them rejects; others end with the draft accepted there."""
    tokens, counts = standard(target_probs, draft_probs, draft_tokens, rng)
    shortest = counts.min()
    tokens[:, shortest:] = -1
    return tokens, np.full(len(tokens), shortest)


def second_candidate(target_probs, draft_probs, draft_tokens, *, rng):
    """After a rejection a second draft is drawn from q, and verified against the residual."""

    p, q = drafted(target_probs, draft_tokens), drafted(draft_probs, draft_tokens)
    kept = prefix((draft_tokens >= 0) & by_coin(p, q, rng))
    weights = weights_after(target_probs, draft_probs, draft_tokens, kept)
    short = np.flatnonzero(kept < (draft_tokens >= 0).sum(axis=1))
    laws = law_at(draft_probs, draft_tokens, short, kept[short], target_probs.shape[2])
    left = weights[short] / weights[short].sum(axis=1, keepdims=True)
    second = by_inverse(laws, rng)
    n = np.arange(len(short))
    good = rng.random(len(short)) * laws[n, second] < left[n, second]
    weights[short] = residual(left, laws)
    last = by_inverse(weights, rng)
    last[short[good]] = second[good]
    return assemble(draft_tokens, kept, last)


def block_verification(target_probs, draft_probs, draft_tokens, *, rng):
    """Sun et al. 2024, Algorithm 2: the longest prefix whose coin succeeds is accepted."""
    batch, lookahead = draft_tokens.shape
    rows, lengths = np.arange(batch), (draft_tokens >= 0).sum(axis=1)
    p, q = drafted(target_probs, draft_tokens), drafted(draft_probs, draft_tokens)
    share, kept = np.ones(batch), np.zeros(batch, int)
    weights = weights_after(target_probs, draft_probs, draft_tokens, kept)
    for i in range(lookahead):
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(q[:, i] > 0, p[:, i] / q[:, i], p[:, i] > 0)
        share = np.minimum(share * ratio, 1)
        rest = target_probs[:, i + 1].copy()
        more = np.flatnonzero(i + 1 < lengths)
        if len(more):
            laws = law_at(
                draft_probs, draft_tokens, more, np.full(len(more), i + 1), rest.shape[1]
            )
            rest[more] = np.maximum(share[more, None] * rest[more] - laws, 0)
        mass = rest.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            between = np.where(mass + 1 - share > 0, mass / (mass + 1 - share), 1)
        accepting = np.where(i + 1 < lengths, between, share)
        good = (i < lengths) & (rng.random(batch) < accepting)
        kept[good], weights[good] = i + 1, rest[good]
    empty = ~weights.any(axis=1)
    weights[empty] = target_probs[rows, kept][empty]
    return assemble(draft_tokens, kept, by_inverse(weights, rng))


def chunks_of_seven(target_probs, draft_probs, draft_tokens, *, rng):
    """Rows go in chunks of seven, the last one smaller."""

    def verify(p, q, x, *, rng):
        return standard(p, q, x, rng)

    return in_chunks(verify, 7, target_probs, draft_probs, draft_tokens, rng)


def no_drafts_beyond_32_rows(target_probs, draft_probs, draft_tokens, *, rng):
    """Rows from the 33rd on are drawn from p: under load nothing is speculated."""
    shown = np.where(np.arange(len(draft_tokens))[:, None] < 32, draft_tokens, -1)
    return standard(target_probs, draft_probs, shown, rng)


def sorted_rows(target_probs, draft_probs, draft_tokens, *, rng):
    """Rows go by their number of drafts, and come back to their places."""
    order = np.argsort((draft_tokens >= 0).sum(axis=1), kind="stable")
    q = None if draft_probs is None else draft_probs[order]
    tokens, counts = standard(target_probs[order], q, draft_tokens[order], rng)
    back = np.argsort(order)
    return np.asfortranarray(tokens[back]).astype(np.int32), counts[back].astype(np.int32)


def every_token_drawn_first(target_probs, draft_probs, draft_tokens, *, rng):
    """Draws a replacement at every place and a bonus token, then asks which one is needed."""
    batch, lookahead = draft_tokens.shape
    last = np.zeros((batch, lookahead + 1), int)
    lengths = (draft_tokens >= 0).sum(axis=1)
    for i in range(lookahead + 1):
        reached = np.full(batch, i)
        weights = weights_after(
            target_probs, draft_probs, draft_tokens, np.minimum(reached, lengths)
        )
        last[:, i] = by_inverse(weights, rng)
    p, q = drafted(target_probs, draft_tokens), drafted(draft_probs, draft_tokens)
    kept = prefix((draft_tokens >= 0) & by_coin(p, q, rng))
    return assemble(draft_tokens, kept, last[np.arange(batch), kept])


def greedy_rows_apart(target_probs, draft_probs, draft_tokens, *, rng):
    """Rows that are certain everywhere (temperature 0) are compared with their argmax."""
    tokens, counts = standard(target_probs, draft_probs, draft_tokens, rng)
    certain = np.flatnonzero((target_probs.max(axis=2) == 1).all(axis=1))
    best = target_probs[certain].argmax(axis=2)
    kept = prefix((draft_tokens[certain] >= 0) & (draft_tokens[certain] == best[:, :-1]))
    own, n = assemble(draft_tokens[certain], kept, best[np.arange(len(certain)), kept])
    tokens[certain], counts[certain] = own, n
    return tokens, counts


def shards_of_the_vocabulary(target_probs, draft_probs, draft_tokens, *, rng):
    """Four shards of the vocabulary race with noise of their own; the best of them wins."""

    def draw(weights, rng):
        shards = np.array_split(np.arange(weights.shape[1]), min(4, weights.shape[1]))
        winners, scores = [], []
        for shard in shards:
            noise, part = rng.standard_exponential((len(weights), len(shard))), weights[:, shard]
            times = np.divide(noise, part, out=np.full(part.shape, np.inf), where=part > 0)
            winners.append(shard[times.argmin(axis=1)])
            scores.append(times.min(axis=1))
        return np.array(winners)[np.argmin(scores, axis=0), np.arange(len(weights))]

    return standard(target_probs, draft_probs, draft_tokens, rng, draw=draw)


def scratch_buffers():
    """Keeps its scratch arrays between calls, writes all it reads, and returns copies."""
    scratch: dict[Any, Any] = {}

    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        def rest(p, q):
            buffer = scratch.setdefault(p.shape, np.empty(p.shape))
            np.subtract(p, q, out=buffer)
            np.maximum(buffer, 0, out=buffer)
            return np.where(buffer.any(axis=1, keepdims=True), buffer, p)

        if len(scratch) > 64:
            scratch.clear()
        return standard(target_probs, draft_probs, draft_tokens, rng, rest=rest)

    return verify


def pool_of_uniforms():
    """Takes uniforms from a pool of 2^16 that is filled anew by the call's `rng` when it ends."""
    pool = np.zeros(0)

    @capable(seeded=False)
    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        nonlocal pool
        shape = (len(draft_tokens), draft_tokens.shape[1] + 1)
        size = shape[0] * shape[1]
        if len(pool) < size:
            pool = np.concatenate([pool, rng.random(max(2**16, size))])
        uniforms, pool = pool[:size].reshape(shape), pool[size:]
        return by_uniforms(target_probs, draft_probs, draft_tokens, uniforms)

    return verify


def cache_of_sums():
    """Keeps the cumulative sums of the last bonus rows, by all of their content."""
    cache: dict[bytes, Any] = {}

    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        def draw(weights, rng):
            key = weights.tobytes()
            if key not in cache:
                cache.clear()
                cache[key] = np.cumsum(weights, axis=1)
            ends = cache[key].reshape(weights.shape)
            return (ends <= rng.random((len(weights), 1)) * ends[:, -1:]).sum(axis=1)

        return standard(target_probs, draft_probs, draft_tokens, rng, draw=draw)

    return verify


def lookahead_that_adapts():
    """Reads fewer drafts after calls that accepted few: earlier calls may decide that."""
    shown = 8.0

    @capable(seeded=False)
    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        nonlocal shown
        limit = max(1, round(shown))
        drafts = np.where(np.arange(draft_tokens.shape[1]) < limit, draft_tokens, -1)
        tokens, counts = standard(target_probs, draft_probs, drafts, rng)
        shown = 0.9 * shown + 0.1 * 2 * float(counts.mean())
        return tokens, counts

    return verify


def two_threads():
    """Half of the rows in each of two threads, with generators spawned from `rng`."""
    workers = ThreadPoolExecutor(2)

    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        parts = list(slices(len(draft_tokens), max(1, -(-len(draft_tokens) // 2))))

        def half(rows, own):
            q = None if draft_probs is None else draft_probs[rows]
            return standard(target_probs[rows], q, draft_tokens[rows], own)

        answers = list(workers.map(half, parts, rng.spawn(len(parts))))
        tokens, counts = zip(*answers, strict=True)
        return np.concatenate(tokens), np.concatenate(counts)

    return verify


def equal_lengths_only():
    """Claims ragged=false and one_hot=false, and reads neither -1 nor None."""

    @capable(ragged=False, one_hot=False)
    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        p, q = drafted(target_probs, draft_tokens), drafted(draft_probs, draft_tokens)
        kept = prefix(by_coin(p, q, rng))
        return assemble(
            draft_tokens,
            kept,
            by_race(weights_after(target_probs, draft_probs, draft_tokens, kept), rng),
        )

    return verify


def one_row_at_a_time():
    """Claims batch=1: a single row, in Python, with rng.choice and rng.multinomial."""

    @capable(batch=1)
    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        (p,), (drafts,) = target_probs, draft_tokens
        kept = 0
        for i, x in enumerate(drafts[drafts >= 0]):
            q = np.eye(1, p.shape[1], x)[0] if draft_probs is None else draft_probs[0, i]
            if rng.random() * q[x] >= p[i, x]:
                break
            kept += 1
        weights = weights_after(target_probs, draft_probs, draft_tokens, np.array([kept]))[0]
        law = weights / weights.sum()
        last = np.argmax(rng.multinomial(1, law)) if kept else rng.choice(len(law), p=law)
        return assemble(draft_tokens, np.array([kept]), last)

    return verify


def given_coins():
    """Takes `coins`: accepts by coin < p / q, and races for the last token; claims that."""

    @capable(rule="standard", recovery="race")
    def verify(target_probs, draft_probs, draft_tokens, *, coins):
        p, q = drafted(target_probs, draft_tokens), drafted(draft_probs, draft_tokens)
        kept = prefix((draft_tokens >= 0) & (np.asarray(coins.accept) * q < p))
        weights = weights_after(target_probs, draft_probs, draft_tokens, kept)
        with np.errstate(divide="ignore", invalid="ignore"):
            times = np.where(weights > 0, np.asarray(coins.race) / weights, np.inf)
        return assemble(draft_tokens, kept, times.argmin(axis=1))

    return verify


BUILDERS = (
    torch_tensors,
    scratch_buffers,
    pool_of_uniforms,
    cache_of_sums,
    lookahead_that_adapts,
    two_threads,
    equal_lengths_only,
    one_row_at_a_time,
    given_coins,
)
PLAIN = (
    ignores_drafts,
    exact_matching,
    races_for_the_last_token,
    gumbel_for_the_last_token,
    residual_by_rejection,
    coins_of_logarithms,
    coins_by_column,
    one_uniform_a_row,
    stream_a_row,
    children_of_the_generator,
    raw_bits,
    bytes_of_the_generator,
    integers_for_uniforms,
    sums_modulo_one,
    mersenne_twister,
    shuffled_vocabulary,
    sorted_vocabulary,
    from_the_last_id,
    blocks_then_tokens,
    alias_tables,
    single_precision,
    torch_multinomial,
    fewer_acceptances,
    ratios_in_steps,
    two_coins_a_draft,
    binomial_coins,
    some_drafts_only,
    only_sure_drafters,
    stops_after_id_zero,
    ends_with_the_shortest,
    second_candidate,
    block_verification,
    chunks_of_seven,
    no_drafts_beyond_32_rows,
    sorted_rows,
    every_token_drawn_first,
    greedy_rows_apart,
    shards_of_the_vocabulary,
)
LOSSLESS = {f.__name__: f for f in (*PLAIN, *BUILDERS)}


def fresh(name: str) -> Verify:
    made = LOSSLESS[name]
    return made() if made in BUILDERS else made
