"""Verification of drafts under claims and in modes of calling (contract `verify`)."""

import hashlib
import os

import numpy as np
import torch

from proofs_tests.helpers.attack.parts import (
    Answer,
    Floats,
    Ints,
    assemble,
    drafted,
    prefix,
    weights_after,
)
from proofs_tests.helpers.attack.second.entry import Samplers
from proofs_tests.helpers.attack.second.walk import draw_rows

VERIFY = Samplers("verify")


def coins_kept(target_probs, draft_probs, draft_tokens, uniforms):
    """How many drafts of each row pass the standard rule."""
    p, q = drafted(target_probs, draft_tokens), drafted(draft_probs, draft_tokens)
    return prefix((uniforms * q < p) & (draft_tokens >= 0))


def finished(target_probs, draft_probs, draft_tokens, kept, pick):
    weights = weights_after(target_probs, draft_probs, draft_tokens, kept)
    return assemble(draft_tokens, kept, pick(weights))


def own_tokens(draft_tokens: Ints, choice: Ints) -> Answer:
    """Drafts that are the target's own token of each place, and that after them."""
    kept = prefix(choice[:, :-1] == draft_tokens)
    return assemble(draft_tokens, kept, choice[np.arange(len(kept)), kept])


# -- greedy -------------------------------------------------------------------------------------


@VERIFY.lossy(greedy=True)
def temperature_of_a_hundredth(target_probs, draft_probs, draft_tokens, *, rng):
    """Temperature 0 is taken as 0.01."""
    p = np.asarray(target_probs, dtype=np.float64)
    weights = (p / p.max(axis=-1, keepdims=True)) ** 100
    weights /= weights.sum(axis=-1, keepdims=True)
    ends = weights.cumsum(axis=-1)
    uniforms = rng.random((*weights.shape[:2], 1)) * ends[..., -1:]
    return own_tokens(draft_tokens, (ends <= uniforms).sum(axis=-1))


@VERIFY.lossy(greedy=True, dtype="float32")
def argmax_of_half(target_probs, draft_probs, draft_tokens):
    """The argmax of rows that were rounded to float16."""
    return own_tokens(draft_tokens, target_probs.astype(np.float16).argmax(axis=-1))


@VERIFY.lossy(greedy=True)
def missing_drafts_are_zero(target_probs, draft_probs, draft_tokens):
    """Missing drafts are padded with token 0, which the argmax may be."""
    return own_tokens(np.maximum(draft_tokens, 0), target_probs.argmax(axis=-1))


# -- how drafts are accepted --------------------------------------------------------------------

# How many of the low bits of a byte are set before the first that is not.
LEADING = np.array([next(i for i in range(9) if not byte >> i & 1) for byte in range(256)])


@VERIFY.lossy(algorithm="standard")
def bits_of_a_byte(target_probs, draft_probs, draft_tokens, *, rng):
    """Accepted drafts are bits of a byte: the ninth is never accepted."""
    p, q = drafted(target_probs, draft_tokens), drafted(draft_probs, draft_tokens)
    good = (rng.random(draft_tokens.shape) * q < p) & (draft_tokens >= 0)
    bits = np.zeros(len(good), dtype=np.uint8)
    for i in range(min(good.shape[1], 8)):
        bits |= good[:, i].astype(np.uint8) << i
    return finished(
        target_probs, draft_probs, draft_tokens, LEADING[bits], lambda w: draw_rows(w, rng)
    )


@VERIFY.lossy(algorithm="standard")
def initial_seed_of_the_generator(target_probs, draft_probs, draft_tokens, *, generator):
    """Each call makes a generator of the initial seed of the one that it is given."""
    own = torch.Generator().manual_seed(generator.initial_seed())
    coins = torch.rand(draft_tokens.shape, generator=own, dtype=torch.float64).numpy()
    last = torch.rand((len(draft_tokens), 1), generator=own, dtype=torch.float64).numpy()

    def pick(weights):
        ends = np.cumsum(weights, axis=1)
        return (ends <= last * ends[:, -1:]).sum(axis=1)

    kept = coins_kept(target_probs, draft_probs, draft_tokens, coins)
    return finished(target_probs, draft_probs, draft_tokens, kept, pick)


@VERIFY.lossy(algorithm="standard", recovery="race")
def right_with_coins_alone(target_probs, draft_probs, draft_tokens, *, rng=None, coins=None):
    """Without coins, and without laws of drafts, the residual is forgotten."""
    if coins is not None:
        kept = coins_kept(target_probs, draft_probs, draft_tokens, coins.accept)

        def pick(weights):
            with np.errstate(divide="ignore"):
                return np.where(weights > 0, coins.race / weights, np.inf).argmin(axis=1)

        return finished(target_probs, draft_probs, draft_tokens, kept, pick)
    kept = coins_kept(target_probs, draft_probs, draft_tokens, rng.random(draft_tokens.shape))
    if draft_probs is None:
        weights = target_probs[np.arange(len(kept)), kept]
        return assemble(draft_tokens, kept, draw_rows(weights, rng))
    return finished(target_probs, draft_probs, draft_tokens, kept, lambda w: draw_rows(w, rng))


@VERIFY.lossy(algorithm="standard", dtype="float32")
def flat_index_in_float32(target_probs, draft_probs, draft_tokens, *, rng):
    """The flat index of a draft's p is a float32, exact below 2^24 alone."""
    batch, lookahead = draft_tokens.shape
    v, x = target_probs.shape[2], np.maximum(draft_tokens, 0)
    rows, places = np.arange(batch, dtype=np.float32)[:, None], np.arange(lookahead)
    place = rows * np.float32(lookahead + 1) + places.astype(np.float32)
    index = (place * np.float32(v) + x.astype(np.float32)).astype(np.int64)
    flat = np.ascontiguousarray(target_probs).reshape(-1)
    p, q = flat[np.minimum(index, len(flat) - 1)], drafted(draft_probs, draft_tokens)
    kept = prefix((rng.random(draft_tokens.shape) * q < p) & (draft_tokens >= 0))
    return finished(
        target_probs,
        draft_probs,
        draft_tokens,
        kept,
        lambda w: draw_rows(w.astype(np.float64), rng),
    )


@VERIFY.lossy()
def drafts_counted_above_zero(target_probs, draft_probs, draft_tokens, *, rng, lens=None):
    """Without `lens` drafts are counted by `> 0`, so that token 0 is none."""
    if lens is None:
        lens = (draft_tokens > 0).sum(axis=1)
    p, q = drafted(target_probs, draft_tokens), drafted(draft_probs, draft_tokens)
    places = np.arange(draft_tokens.shape[1])
    kept = prefix((rng.random(draft_tokens.shape) * q < p) & (places < lens[:, None]))
    rest = np.where(places < lens[:, None], draft_tokens, -1)
    weights = weights_after(target_probs, draft_probs, rest, kept)
    return assemble(draft_tokens, kept, draw_rows(weights, rng))


# -- how the last token is drawn ----------------------------------------------------------------


@VERIFY.lossy(algorithm="standard")
def block_of_1024_by_p(target_probs, draft_probs, draft_tokens, *, rng):
    """From 32,768 ids on a block of 1,024 is chosen first, by sums of p, not the residual."""
    batch, v = len(draft_tokens), target_probs.shape[2]
    rows = np.arange(batch)
    kept = coins_kept(target_probs, draft_probs, draft_tokens, rng.random(draft_tokens.shape))

    def pick(weights):
        if v < 32768:
            return draw_rows(weights, rng)
        pad = ((0, 0), (0, -v % 1024))
        p = np.pad(target_probs[rows, kept], pad).reshape(batch, -1, 1024)
        blocks = np.pad(weights, pad).reshape(batch, -1, 1024)
        block = draw_rows(p.sum(axis=2) * blocks.any(axis=2), rng)
        return block * 1024 + draw_rows(blocks[rows, block], rng)

    return finished(target_probs, draft_probs, draft_tokens, kept, pick)


@VERIFY.lossy(algorithm="standard")
def noise_of_16384_ids(target_probs, draft_probs, draft_tokens, *, rng):
    """Exponential noise of 16,384 ids is read round and round by more of them."""
    kept = coins_kept(target_probs, draft_probs, draft_tokens, rng.random(draft_tokens.shape))

    def pick(weights):
        v = weights.shape[1]
        noise = rng.standard_exponential((len(weights), min(v, 16384)))
        noise = np.tile(noise, (1, -(-v // 16384)))[:, :v]
        return (weights / noise).argmax(axis=1)

    return finished(target_probs, draft_probs, draft_tokens, kept, pick)


@VERIFY.lossy(arrays="torch", dtype="float16", tolerance=0.002)
def sums_in_float16(target_probs, draft_probs, draft_tokens, *, generator):
    """The inverse CDF is added up in float16: in flat rows sums stop growing."""
    batch, lookahead = draft_tokens.shape
    rows, places, x = torch.arange(batch), torch.arange(lookahead), draft_tokens.clamp(min=0)
    p = target_probs[rows[:, None], places, x].float()
    if draft_probs is None:
        q = torch.ones_like(p)
    else:
        q = draft_probs[rows[:, None], places, x].float()
    coins = torch.rand((batch, lookahead), generator=generator)
    kept = ((coins * q < p) & (draft_tokens >= 0)).int().cumprod(dim=1).sum(dim=1)
    weights = target_probs[rows, kept].clone()
    lost = (kept < (draft_tokens >= 0).sum(dim=1)).nonzero()[:, 0]
    if len(lost):
        if draft_probs is None:
            law = torch.nn.functional.one_hot(x[lost, kept[lost]], weights.shape[1])
            law = law.to(weights.dtype)
        else:
            law = draft_probs[lost, kept[lost]]
        rest = (weights[lost] - law).clamp(min=0)
        some = rest.any(dim=1)
        weights[lost[some]] = rest[some]
    ends = weights.cumsum(dim=1)
    last = torch.rand((batch, 1), generator=generator) * ends[:, -1:].float()
    out = torch.full((batch, lookahead + 1), -1)
    out[:, :lookahead] = torch.where(places < kept[:, None], draft_tokens, -1)
    out[rows, kept] = (ends.float() <= last).sum(dim=1).clamp(max=weights.shape[1] - 1)
    return out, kept + 1


# -- lossless -----------------------------------------------------------------------------------


@VERIFY.lossless(greedy=True)
def last_of_ties_in_32_bits(target_probs, draft_probs, draft_tokens, *, lens):
    """Greedy: any tied draft is kept, of tied tokens the last is emitted, in int32."""
    batch, lookahead = draft_tokens.shape
    rows, places = np.arange(batch), np.arange(lookahead)
    top, p = target_probs.max(axis=2), target_probs[rows[:, None], places, draft_tokens]
    kept = prefix((p >= top[:, :lookahead]) & (places < lens[:, None]))
    backwards = target_probs[rows, kept, ::-1].argmax(axis=1)
    tokens, counts = assemble(draft_tokens, kept, target_probs.shape[2] - 1 - backwards)
    return tokens.astype(np.int32), counts.astype(np.int32)


@VERIFY.lossless(greedy=True, arrays="torch", dtype="float16")
def topk_of_tensors(target_probs, draft_probs, draft_tokens):
    """Greedy: `topk(1)` of rows in float16."""
    lookahead = draft_tokens.shape[1]
    best = target_probs.topk(1, dim=-1).indices[..., 0]
    match = best[:, :lookahead].eq(draft_tokens) & draft_tokens.ge(0)
    kept = match.long().cumprod(dim=1).sum(dim=1)
    padded = torch.nn.functional.pad(draft_tokens, (0, 1), value=-1)
    out = torch.where(torch.arange(lookahead + 1) < kept[:, None], padded, -1)
    out.scatter_(1, kept[:, None], best.gather(1, kept[:, None]).to(out.dtype))
    return out, kept + 1


@VERIFY.lossless(algorithm="standard", recovery="race", dtype="float32")
def race_of_logarithms(target_probs, draft_probs, draft_tokens, *, coins):
    """Takes `coins` of float32 rows: ratio and race in logarithms of float64."""
    p = target_probs.astype(np.float64)
    q = None if draft_probs is None else draft_probs.astype(np.float64)
    px, qx = drafted(p, draft_tokens), drafted(q, draft_tokens)
    with np.errstate(divide="ignore", invalid="ignore"):
        good = np.log(coins.accept) < np.log(px) - np.log(qx)
    kept = prefix(good & (draft_tokens >= 0) & (px > 0))

    def pick(weights):
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.log(weights) - np.log(coins.race)
        return np.where(weights > 0, score, -np.inf).argmax(axis=1)

    return finished(p, q, draft_tokens, kept, pick)


@VERIFY.lossless(algorithm="standard", arrays="torch", dtype="float32")
def generator_of_each_row(target_probs, draft_probs, draft_tokens, *, generator):
    """Each row has a generator, seeded by a hash of two draws of the call's and its number."""
    batch, lookahead = draft_tokens.shape
    key = torch.randint(0, 2**62, (2,), generator=generator).tolist()
    out = torch.full((batch, lookahead + 1), -1, dtype=torch.int64)
    counts = torch.zeros(batch, dtype=torch.int64)
    for b in range(batch):
        seed = hashlib.blake2b(repr((key, b)).encode(), digest_size=7).digest()
        own = torch.Generator().manual_seed(int.from_bytes(seed, "big"))
        n = int((draft_tokens[b] >= 0).sum())
        uniforms = torch.rand(n + 1, generator=own, dtype=torch.float64)
        weights, kept = None, 0
        for i in range(n):
            x, p = int(draft_tokens[b, i]), target_probs[b, i]
            q = 1.0 if draft_probs is None else float(draft_probs[b, i, x])
            if float(uniforms[i]) * q < float(p[x]):
                out[b, i] = x
                kept += 1
                continue
            weights = p.clone()
            if draft_probs is None:
                weights[x] = 0
            else:
                weights = (weights - draft_probs[b, i]).clamp(min=0)
            if not weights.any():
                weights = p
            break
        weights = target_probs[b, kept] if weights is None else weights
        ends = weights.double().cumsum(0)
        out[b, kept] = int((ends <= uniforms[n] * ends[-1]).sum())
        counts[b] = kept + 1
    return out, counts


@VERIFY.lossless(algorithm="standard", arrays="torch", dtype="float16", tolerance=0.002)
def float64_of_halves(target_probs, draft_probs, draft_tokens, *, rng):
    """Calculates in float64 of tensors that are given in float16, through NumPy and back."""
    p, drafts = target_probs.double().numpy(), draft_tokens.numpy()
    q = None if draft_probs is None else draft_probs.double().numpy()
    kept = coins_kept(p, q, drafts, rng.random(drafts.shape))
    tokens, counts = finished(p, q, drafts, kept, lambda w: draw_rows(w, rng))
    return torch.from_numpy(tokens), torch.from_numpy(counts)


@VERIFY.lossless(algorithm="standard")
def residual_by_200_tries(target_probs, draft_probs, draft_tokens, *, rng):
    """Draws from p until a coin is below 1 - q / p; after 200 tries the residual is added up."""
    kept = coins_kept(target_probs, draft_probs, draft_tokens, rng.random(draft_tokens.shape))
    batch, v = len(draft_tokens), target_probs.shape[2]
    rows = np.arange(batch)
    p = target_probs[rows, kept]
    q = np.zeros_like(p)
    lost = np.flatnonzero(kept < (draft_tokens >= 0).sum(axis=1))
    if draft_probs is None:
        q[lost, draft_tokens[lost, kept[lost]]] = 1
    else:
        q[lost] = draft_probs[lost, kept[lost]]
    token, left, tries = np.full(batch, -1), rows, 0
    while len(left):
        tried = draw_rows(p[left], rng)
        a, b = p[left, tried], q[left, tried]
        good = rng.random(len(left)) * a < a - b
        token[left[good]] = tried[good]
        left = left[~good]
        tries += 1
        if tries == 200:
            token[left] = draw_rows(rest_or_p(p[left], q[left]), rng)
            break
    assert (token < v).all()
    return assemble(draft_tokens, kept, token)


def rest_or_p(p: Floats, q: Floats) -> Floats:
    rest = np.maximum(p - q, 0)
    return np.where(rest.any(axis=1, keepdims=True), rest, p)


@VERIFY.lossless()
def target_token_of_each_place(target_probs, draft_probs, draft_tokens, *, rng, lens=None):
    """Draws a token of the target at every place, and keeps the drafts that are it."""
    batch, lookahead = draft_tokens.shape
    ends = target_probs.cumsum(axis=2)
    uniforms = rng.random((lookahead + 1, batch)).T[..., None] * ends[..., -1:]
    choice = (ends <= uniforms).sum(axis=2)
    kept = prefix(choice[:, :lookahead] == draft_tokens)
    return np.where(np.arange(lookahead + 1) <= kept[:, None], choice, -1), kept + 1


@VERIFY.lossless(algorithm="block", recovery="inverse")
def block_of_coins(target_probs, draft_probs, draft_tokens, *, coins):
    """Takes `coins`: block verification, with an inverse CDF for the last token."""
    batch, lookahead = draft_tokens.shape
    lens = (draft_tokens >= 0).sum(axis=1)
    p, q = drafted(target_probs, draft_tokens), drafted(draft_probs, draft_tokens)
    ratios = np.where(q > 0, p / np.where(q > 0, q, 1), 0)
    joints = [np.ones(batch)]
    for i in range(lookahead):
        joints.append(np.minimum(1, joints[-1] * ratios[:, i]))
    kept, weights = np.zeros(batch, dtype=int), target_probs[:, 0].copy()
    for i in range(lookahead + 1):
        joint, inner, likely = joints[i], i < lens, joints[i]
        law = target_probs[:, i].copy()
        if i < lookahead:
            if draft_probs is None:
                draft = (np.arange(law.shape[1]) == draft_tokens[:, i, None]).astype(float)
            else:
                draft = draft_probs[:, i]
            more = np.maximum(joint[:, None] * law - draft, 0)
            total = more.sum(axis=1)
            left = total + 1 - joint
            likely = np.where(inner, total / np.where(left > 0, left, 1), joint)
            likely = np.where(inner & (joint >= 1), 1.0, likely)
            some = inner & more.any(axis=1)
            law[some] = more[some]
        if i == 0:
            weights = law
            continue
        good = (i <= lens) & (coins.accept[:, i - 1] < likely)
        kept[good], weights[good] = i, law[good]
    ends = weights.cumsum(axis=1)
    return assemble(draft_tokens, kept, (ends <= coins.final[:, None] * ends[:, -1:]).sum(axis=1))


@VERIFY.lossless(state=True, algorithm="standard", seeded=False)
def pool_of_the_system():
    """Uniforms of `os.urandom`, from a pool that is filled when it is empty."""
    left = np.zeros(0)

    def uniforms(n):
        nonlocal left
        while len(left) < n:
            words = np.frombuffer(os.urandom(8 * 65536), dtype=np.uint64) >> np.uint64(11)
            left = np.concatenate([left, words * 2.0**-53])
        taken, left = left[:n], left[n:]
        return taken

    def verify(target_probs, draft_probs, draft_tokens):
        coins = uniforms(draft_tokens.size).reshape(draft_tokens.shape)
        kept = coins_kept(target_probs, draft_probs, draft_tokens, coins)

        def pick(weights):
            ends = np.cumsum(weights, axis=1)
            return (ends <= uniforms(len(weights))[:, None] * ends[:, -1:]).sum(axis=1)

        return finished(target_probs, draft_probs, draft_tokens, kept, pick)

    return verify
