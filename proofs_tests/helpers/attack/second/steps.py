"""Steps: drafting and one verification (contract `step`)."""

import random

import numpy as np

from proofs_tests.helpers.attack.second.entry import Samplers
from proofs_tests.helpers.attack.second.parts import drafting, draw, eos_of, residual, verified

STEP = Samplers("step")


def with_bonus(target, context, drafts, rng, pick=draw):
    """Accepted drafts, and a token after them unless they end the text."""
    if drafts and drafts[-1] == eos_of(target):
        return tuple(drafts)
    return (*drafts, pick(target.next_token((*context, *drafts)), rng))


@STEP.lossy()
def uniforms_of_vectors_of_four(target, drafter, context, lookahead, rng):
    """Drafts after whole groups of four share the uniform of the first of them."""
    drafts, qs = drafting(drafter, context, eos_of(target), rng)([], lookahead)
    uniforms = rng.random(lookahead)
    tail = lookahead // 4 * 4
    if lookahead > 4:
        uniforms[tail:] = uniforms[tail] if tail < lookahead else 0
    for i, x in enumerate(drafts):
        p = target.next_token((*context, *drafts[:i]))
        if uniforms[i] * qs[i][x] >= p[x]:
            return (*drafts[:i], draw(residual(p, qs[i]), rng))
    return with_bonus(target, context, drafts, rng)


@STEP.lossy()
def tiles_of_64(target, drafter, context, lookahead, rng):
    """The last token is drawn by tiles of 64 below V - 1: with V = 64 n + 1 one id is lost."""
    v = len(target.vocabulary)

    def tiled(weights, rng):
        cut = np.zeros(v)
        for start in range(0, v - 1, 64):
            cut[start : start + 64] = weights[start : start + 64]
        return draw(cut if cut.any() else weights, rng)

    drafts, qs = drafting(drafter, context, eos_of(target), rng)([], lookahead)
    for i, x in enumerate(drafts):
        p = target.next_token((*context, *drafts[:i]))
        if rng.random() * qs[i][x] >= p[x]:
            return (*drafts[:i], tiled(residual(p, qs[i]), rng))
    return with_bonus(target, context, drafts, rng, tiled)


@STEP.lossy()
def laws_by_token(target, drafter, context, lookahead, rng):
    """Rows of q are kept by draft: a token that was drafted twice has its later row twice."""
    drafts, qs = drafting(drafter, context, eos_of(target), rng)([], lookahead)
    q_of = dict(zip(drafts, qs, strict=True))
    for i, x in enumerate(drafts):
        p, q = target.next_token((*context, *drafts[:i])), q_of[x]
        if rng.random() * q[x] >= p[x]:
            return (*drafts[:i], draw(residual(p, q), rng))
    return with_bonus(target, context, drafts, rng)


@STEP.lossy()
def plain_kernel_sees_256(target, drafter, context, lookahead, rng):
    """Without drafts another kernel runs, which sees the last 256 tokens alone."""
    if lookahead == 0:
        return (draw(target.next_token(context[-256:]), rng),)
    return ordinary_step(target, drafter, context, lookahead, rng)


def ordinary_step(target, drafter, context, lookahead, rng):
    eos = eos_of(target)
    drafts, laws = drafting(drafter, context, eos, rng)([], lookahead)
    kept, last = verified(lambda drafts: target.next_token((*context, *drafts)), laws, drafts, rng)
    return tuple(kept) if kept and kept[-1] == eos else (*kept, last)


@STEP.lossy()
def eos_in_the_context_is_the_end(target, drafter, context, lookahead, rng):
    """A row with EOS in its context counts as finished: its drafts are taken unverified."""
    eos = eos_of(target)
    if eos is not None and eos in context:
        drafts, _ = drafting(drafter, context, eos, rng)([], lookahead)
        if drafts:
            return tuple(drafts)
        return (draw(target.next_token(context), rng),)
    return ordinary_step(target, drafter, context, lookahead, rng)


# -- lossless -----------------------------------------------------------------------------------


def block_verification(target, drafter, context, lookahead, chance, most):
    """Sun et al. 2024: decided from the longest prefix to the shortest."""
    drafts, ps, qs = [], [], []
    for i in range(lookahead):
        ps.append(target.next_token((*context, *drafts)))
        qs.append(drafter.next_token((*context, *drafts)))
        drafts.append(chance.draw(qs[-1], f"draft[{i}]"))
        if target.vocabulary.ends(drafts):
            break
    n, joint = len(drafts), [1]
    for i, x in enumerate(drafts):
        joint.append(min(1, joint[-1] * ps[i][x] / qs[i][x]))
    for i in range(n, 0, -1):
        likely = joint[n]
        if i < n:
            over = np.maximum(joint[i] * ps[i] - qs[i], 0).sum()
            likely = over / (over + 1 - joint[i]) if over + 1 - joint[i] else 1
        if chance.accept(min(most, likely), f"accept[{i}]"):
            if i == n:
                if target.vocabulary.ends(drafts):
                    return tuple(drafts)
                return (*drafts, chance.draw(target.next_token((*context, *drafts)), "bonus"))
            weights = np.maximum(joint[i] * ps[i] - qs[i], 0)
            return (*drafts[:i], chance.draw(weights / weights.sum(), f"residual[{i}]"))
    if not n:
        return (chance.draw(target.next_token(context), "residual[0]"),)
    weights = np.maximum(ps[0] - qs[0], 0)
    return (chance.draw(weights / weights.sum(), "residual[0]"),)


@STEP.lossless(algorithm="block")
def block_from_the_end(target, drafter, context, lookahead, chance):
    """Block verification, whose probabilities rounding may take above 1."""
    return block_verification(target, drafter, context, lookahead, chance, most=np.inf)


@STEP.lossless(algorithm="block")
def block_from_the_end_clipped(target, drafter, context, lookahead, chance):
    """Block verification, with probabilities clipped at 1."""
    return block_verification(target, drafter, context, lookahead, chance, most=1)


@STEP.lossless()
def no_bonus_token(target, drafter, context, lookahead, rng):
    """Accepted drafts without a token after them: blocks may be shorter."""
    drafts, laws = drafting(drafter, context, eos_of(target), rng)([], lookahead)
    block = []
    for x, q in zip(drafts, laws, strict=True):
        p = target.next_token((*context, *block))
        if rng.random() * q[x] >= p[x]:
            return [*block, draw(residual(p, q), rng)]
        block.append(x)
    return block or [draw(target.next_token(context), rng)]


@STEP.lossless()
def lookahead_by_a_die(target, drafter, context, lookahead):
    """As many drafts as a die says, by the global generators of `random` and NumPy."""
    block = []
    for _ in range(random.randint(0, lookahead)):
        p, q = target.next_token((*context, *block)), drafter.next_token((*context, *block))
        x = int(np.random.choice(len(q), p=q))  # noqa: NPY002
        if random.random() * q[x] >= p[x]:
            return np.array([*block, random.choices(range(len(p)), residual(p, q))[0]])
        block.append(x)
        if target.vocabulary.ends(block):
            return np.array(block)
    p = target.next_token((*context, *block))
    return np.array([*block, random.choices(range(len(p)), p)[0]])


@STEP.lossless(greedy=True)
def drafter_decides_ties(target, drafter, context, lookahead, rng):
    """Greedy: a draft among tied likeliest tokens is kept; otherwise the last of them."""
    block = []
    for _ in range(lookahead):
        p = target.next_token((*context, *block))
        x = int(np.argmax(drafter.next_token((*context, *block))))
        if p[x] < p.max():
            return (*block, int(np.flatnonzero(p == p.max())[-1]))
        block.append(x)
        if target.vocabulary.ends(block):
            return block
    p = target.next_token((*context, *block))
    return (*block, int(np.flatnonzero(p == p.max())[-1]))
