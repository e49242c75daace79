"""The pieces that the attacking samplers share: one correct verification, with its steps open."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]
Answer = tuple[Ints, Ints]
Verify = Callable[..., Answer]


def drafted(probs: Floats | None, drafts: Ints) -> Floats:
    """The probability of each draft; 1 where laws are not declared."""
    if probs is None:
        return np.ones(drafts.shape)
    ids = np.maximum(drafts, 0)[..., None]
    return np.take_along_axis(probs[:, : drafts.shape[1]], ids, axis=2)[..., 0]


def prefix(accepted: NDArray[np.bool_]) -> Ints:
    return np.logical_and.accumulate(accepted, axis=1).sum(axis=1)


def law_at(draft_probs: Floats | None, drafts: Ints, rows: Ints, places: Ints, v: int) -> Floats:
    """The drafter's laws at one place of each row: certain ones where they are not declared."""
    if draft_probs is not None:
        return draft_probs[rows, places]
    laws = np.zeros((len(rows), v))
    laws[np.arange(len(rows)), drafts[rows, places]] = 1
    return laws


def residual(p: Floats, q: Floats) -> Floats:
    """(p - q)+, or p where rounding alone rejected."""
    left = np.maximum(p - q, 0)
    return np.where(left.any(axis=1, keepdims=True), left, p)


def by_inverse(weights: Floats, rng: np.random.Generator) -> Ints:
    return inverse(weights, rng.random(len(weights)))


def inverse(weights: Floats, uniforms: Floats) -> Ints:
    ends = np.cumsum(weights, axis=1)
    return (ends <= uniforms[:, None] * ends[:, -1:]).sum(axis=1)


def by_race(weights: Floats, rng: np.random.Generator) -> Ints:
    noise = rng.standard_exponential(weights.shape)  # 0 once in 2^53, and 0 / 0 would win
    times = np.divide(noise, weights, out=np.full(weights.shape, np.inf), where=weights > 0)
    return np.argmin(times, axis=1)


def by_coin(p: Floats, q: Floats, rng: np.random.Generator) -> NDArray[np.bool_]:
    return rng.random(p.shape) * q < p


def assemble(drafts: Ints, kept: Ints, last: Ints) -> Answer:
    batch, lookahead = drafts.shape
    tokens = np.full((batch, lookahead + 1), -1)
    tokens[:, :lookahead] = np.where(np.arange(lookahead) < kept[:, None], drafts, -1)
    tokens[np.arange(batch), kept] = last
    return tokens, kept + 1


def weights_after(
    p: Floats, q: Floats | None, drafts: Ints, kept: Ints, rest: Callable[..., Floats] = residual
) -> Floats:
    """The weights of each row's last token: p after its last draft, otherwise a residual."""
    weights = p[np.arange(len(p)), kept]
    short = np.flatnonzero(kept < (drafts >= 0).sum(axis=1))
    weights[short] = rest(weights[short], law_at(q, drafts, short, kept[short], p.shape[2]))
    return weights


def standard(
    p: Floats,
    q: Floats | None,
    drafts: Ints,
    rng: np.random.Generator,
    *,
    accept: Callable[..., NDArray[np.bool_]] = by_coin,
    rest: Callable[..., Floats] = residual,
    draw: Callable[..., Ints] = by_inverse,
) -> Answer:
    """Leviathan et al. 2023, Algorithm 1, in a batch."""
    kept = prefix((drafts >= 0) & accept(drafted(p, drafts), drafted(q, drafts), rng))
    return assemble(drafts, kept, draw(weights_after(p, q, drafts, kept, rest), rng))


def in_chunks(
    verify: Verify, size: int, p: Floats, q: Floats | None, drafts: Ints, rng: np.random.Generator
) -> Answer:
    answers = [
        verify(p[rows], None if q is None else q[rows], drafts[rows], rng=rng)
        for rows in slices(len(drafts), size)
    ]
    tokens, counts = zip(*answers, strict=True)
    return np.concatenate(tokens), np.concatenate(counts)


def slices(length: int, size: int) -> Iterator[slice]:
    return (slice(i, min(i + size, length)) for i in range(0, length, size))
