"""Pairs of laws for vocabularies of any size, and the sets of their tokens that are bet on."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from specref.arrays import Bools, Floats, Ints

# Llama 2, Gemma, Phi 3, GPT-2, Whisper, Llama 3, Qwen 2, o200k.
END_IDS = (
    *(1, 2, 106, 107, 32_000, 32_007, 50_256, 50_257),
    *(128_001, 128_009, 151_643, 151_645, 199_999, 200_020),
)


def end_ids(size: int) -> tuple[int, ...]:
    """The last two of a vocabulary of so many tokens, or as many as there are.

    Examples
    --------
    >>> end_ids(151_936), end_ids(50_257), end_ids(2)
    ((151643, 151645), (32007, 50256), (1,))
    """
    return tuple(one for one in END_IDS if one < size)[-2:]


def is_end_id(ids: Ints, rank: int) -> Bools:
    """Which of all ids is the last end id (rank 0), or the one before (rank 1)."""
    known = end_ids(len(ids))[::-1]
    return np.asarray(ids == (known[rank] if rank < len(known) else -1))


BLOCK, SHORT, HEAD = 1_024, 256, 64
AT_ONCE, FEW = 1 << 16, 64
TRIMMED = 0.03
LARGEST_16_BIT = 1 << 16


def _powers(exponent: float, size: int) -> Floats:
    return np.arange(1.0, size + 1) ** -exponent


def _headed(head: float, size: int) -> Floats:
    """One token with probability `head`, the rest by Zipf's law."""
    rest = _powers(1.0, size)
    rest[0] = 0
    rest *= (1 - head) / rest.sum()
    rest[0] = head
    return rest


def _long_tailed(size: int) -> Floats:
    """Half of the mass on 8 tokens, half of it spread over all."""
    head = np.where(np.arange(size) < 8, 1.0, 0.0)
    return np.asarray(head / head.sum() + 1 / size)


def _truncated(size: int) -> Floats:
    """20 tokens, or half of a small vocabulary; no others."""
    return np.where(np.arange(size) < min(20, max(2, size // 2)), _powers(0.7, size), 0.0)


# By rank: from the likeliest token to the least likely.
TARGETS: Mapping[str, Callable[[int], Floats]] = MappingProxyType(
    {
        "zipf": lambda size: _powers(1.1, size),
        "steep": lambda size: 0.5 ** np.minimum(np.arange(size), 60.0),
        "flat": np.ones,
        "peaked": lambda size: _headed(0.97, size),
        "confident": lambda size: _headed(0.92, size),
        "long tail": _long_tailed,
        "truncated": _truncated,
        "certain": lambda size: _headed(1.0, size),
        # Each token has less than the one before it, by a part that 16 bits do not show.
        "close": lambda size: 1 / (1 + np.arange(size) / 8192),
    }
)
ORDINARY = tuple(name for name in TARGETS if name not in ("certain", "close"))


def _wrong(p: Floats, rng: np.random.Generator) -> Floats:
    """Nearly certain of a token that the target gives little."""
    q = 0.05 * p
    likely = np.flatnonzero(p >= p[p > 0].mean() / 50)
    q[likely[p[likely].argmin()]] += 1
    return np.asarray(q)


def _cut(p: Floats, rng: np.random.Generator) -> Floats:
    """The 8 likeliest tokens alone, in other proportions."""
    kept = p >= np.partition(p, -min(8, len(p)))[-min(8, len(p))]
    return np.where(kept & (p > 0), np.exp(rng.normal(0, 1, len(p))), 0.0)


def _without(p: Floats, rng: np.random.Generator) -> Floats:
    """The target without tokens that have about half of its mass: (p - q)+ is on them alone."""
    order = rng.permutation(np.flatnonzero(p))
    nearest = int(np.abs(np.cumsum(p[order]) - 0.5).argmin())
    q = p.copy()
    q[order[: nearest + 1]] = 0
    return q if q.any() else p


def _trimmed(p: Floats, rng: np.random.Generator) -> Floats:
    """The target without its least likely tokens, which have at most 3 % of the mass."""
    order = np.argsort(p, kind="stable")
    q = p.copy()
    q[order[np.cumsum(p[order]) <= TRIMMED]] = 0
    return q


DRAFTERS: Mapping[str, Callable[[Floats, np.random.Generator], Floats]] = MappingProxyType(
    {
        "near": lambda p, rng: p * np.exp(rng.normal(0, 0.7, len(p))),
        "sharp": lambda p, rng: p**2,
        "wide": lambda p, rng: np.sqrt(p) + 1 / len(p),
        "wrong": _wrong,
        "cut": _cut,
        "without": _without,
        "other": lambda p, rng: rng.permutation(p),
        "same": lambda p, rng: p,
        "trimmed": _trimmed,
        # Certain of a token, any of those that the target may give.
        "sure": lambda p, rng: 1.0 * (np.arange(len(p)) == rng.choice(np.flatnonzero(p))),
        # Certain of the least likely token, which the target may exclude.
        "astray": lambda p, rng: 1.0 * (np.arange(len(p)) == p.argmin()),
    }
)
SELDOM = ("same", "trimmed", "sure", "astray")
USUAL = tuple(name for name in DRAFTERS if name not in SELDOM)


def _least_left(p: Floats, q: Floats) -> Bools:
    """Tokens with p > q that are not among the 1,024 with the largest p - q."""
    chosen = np.zeros(p.shape, dtype=bool)
    for row, left in zip(chosen, p - q, strict=True):
        (more,) = np.nonzero(left > 0)
        if len(more) > BLOCK:
            # Of the negated: partitions of many ties near the largest take many times as long.
            least = -np.partition(-left[more], BLOCK - 1)[BLOCK - 1]
            row[more[left[more] < least]] = True
    return chosen


SETS: Mapping[str, Callable[[Floats, Floats, Ints], Bools]] = MappingProxyType(
    {
        "argmax p": lambda p, q, ids: p == p.max(axis=-1, keepdims=True),
        "argmax q": lambda p, q, ids: q == q.max(axis=-1, keepdims=True),
        "p < 0.05": lambda p, q, ids: p < 5e-2,
        "p < 1e-2": lambda p, q, ids: p < 1e-2,
        "p < 1e-3": lambda p, q, ids: p < 1e-3,
        "p < 1e-5": lambda p, q, ids: p < 1e-5,
        "q > p": lambda p, q, ids: q > p,
        "q > 2p": lambda p, q, ids: q > 2 * p,
        "q > 10p": lambda p, q, ids: q > 10 * p,
        "q < p / 2": lambda p, q, ids: q < p / 2,
        "q < 1e-3": lambda p, q, ids: q < 1e-3,
        "q = 0": lambda p, q, ids: q == 0,
        "p > q, rank > 1,024": lambda p, q, ids: _least_left(p, q),
        "id 0": lambda p, q, ids: ids == 0,
        "odd id": lambda p, q, ids: ids % 2 == 1,
        "id % 64 = 0": lambda p, q, ids: ids % HEAD == 0,
        "id >= V / 2": lambda p, q, ids: ids >= len(ids) // 2,
        "id >= 256": lambda p, q, ids: ids >= SHORT,
        "id >= 1,024": lambda p, q, ids: ids >= BLOCK,
        "id >= 65,536": lambda p, q, ids: ids >= LARGEST_16_BIT,
        "last id": lambda p, q, ids: ids == ids[-1],
        "last 8 ids": lambda p, q, ids: ids >= len(ids) - 8,
        "V % 8 last ids": lambda p, q, ids: ids >= len(ids) // 8 * 8,
        "V % 1,024 last ids": lambda p, q, ids: ids >= len(ids) // BLOCK * BLOCK,
        "last end id": lambda p, q, ids: is_end_id(ids, 0),
        "end id before": lambda p, q, ids: is_end_id(ids, 1),
    }
)

# Numbers from 0 to 1 instead of sets: what rules that accept too much, or too little, shift.
SHARES: Mapping[str, Callable[[Floats, Floats], Floats]] = MappingProxyType(
    {
        "q / (p + q)": lambda p, q: _ratio(q, p + q),
        "(q - p)+ / q": lambda p, q: _ratio(np.maximum(q - p, 0), q),
        "(p - q)+ / p": lambda p, q: _ratio(np.maximum(p - q, 0), p),
    }
)
AGAIN = "seen before"
FEATURES = (*SETS, *SHARES, AGAIN)

WORDS: Mapping[str, str] = MappingProxyType(
    {
        "argmax p": "that are the likeliest of p",
        "argmax q": "that are the likeliest of q",
        **{f"p < {x}": f"with p < {x}" for x in ("0.05", "1e-2", "1e-3", "1e-5")},
        "q > p": "with q > p, which the draft model gives more often",
        "q > 2p": "with q > 2p, which the draft model gives more than twice as often",
        "q > 10p": "with q > 10p, which the draft model gives more than ten times as often",
        "q < p / 2": "with q < p / 2, which the draft model gives less than half as often",
        "q < 1e-3": "with q < 1e-3, which the draft model hardly gives",
        "q = 0": "with q = 0, which the draft model never gives",
        "p > q, rank > 1,024": "with p > q, but for the 1,024 tokens with the largest p - q",
        "id 0": "of id 0",
        "odd id": "of odd ids",
        "id % 64 = 0": "of ids that 64 divides",
        "id >= V / 2": "of the upper half of the ids",
        **{f"id >= {x}": f"of ids >= {x}" for x in ("256", "1,024", "65,536")},
        "last id": "of the last id",
        "last 8 ids": "of the last 8 ids",
        "V % 8 last ids": "of the last V % 8 ids, after whole groups of 8",
        "V % 1,024 last ids": "of the last V % 1,024 ids, after whole groups of 1,024",
        "last end id": "of the last id below V that ends a text in a published vocabulary",
        "end id before": "of the last id but one that ends a text in a published vocabulary",
        "q / (p + q)": "with a large q / (p + q), which the draft model likes more than the "
        "target",
        "(q - p)+ / q": "with a large (q - p)+ / q, the chance that such a draft is rejected",
        "(p - q)+ / p": "with a large (p - q)+ / p, the part of p that drafts cannot give",
        AGAIN: "that were given before for the same row of p",
    }
)
"""What the tokens of each feature are, after "too many tokens": in a failure's message."""


def _ratio(above: Floats, below: Floats) -> Floats:
    """0 where both are 0; `below` is 0 only where `above` is."""
    some = below > 0
    if some.all():
        return np.asarray(above / below)
    return np.asarray(above / np.where(some, below, 1))


def of_each(pair: Ints) -> Iterator[tuple[int, Ints]]:
    """Each number that occurs, and where."""
    order = np.argsort(pair, kind="stable")
    known, starts = np.unique(pair[order], return_index=True)
    ends = [*starts[1:].tolist(), len(order)]
    for one, start, end in zip(known.tolist(), starts.tolist(), ends, strict=True):
        yield one, order[start:end]


@dataclass(frozen=True, eq=False)
class Pool:
    """Pairs of laws (p, q) over one vocabulary."""

    p: Floats
    q: Floats

    @cached_property
    def ends(self) -> Floats:
        return np.cumsum(self.q, axis=1)

    @cached_property
    def moments(self) -> "Moments":
        return moments_of(self.p, self.q)

    def features(self, pair: Ints, token: Ints, again: Bools) -> Floats:
        """The features of tokens of some pairs, shape (tokens, features)."""
        place = pair * self.size + token  # in flat arrays, which are read much faster
        p, q = self.p.take(place), self.q.take(place)
        found = np.empty((len(pair), len(FEATURES)))
        for index, one in enumerate(self.moments.sets):
            found[:, index] = one.take(token if one.ndim == 1 else place)
        for index, share in enumerate(SHARES.values(), len(SETS)):
            found[:, index] = share(p, q)
        found[:, -1] = again
        return found

    def expected(self, pair: Ints, seen: Floats) -> tuple[Floats, Floats]:
        """The means and variances of `features` under p; `seen` is how probable `again` was."""
        mean, variance = (one.take(pair, axis=0) for one in self.moments[1:])
        mean[:, -1], variance[:, -1] = seen, seen * (1 - seen)
        return mean, variance

    @property
    def size(self) -> int:
        """The number of tokens of the vocabulary."""
        return int(self.p.shape[1])

    def turned(self, turn: int) -> "Pool":
        """The same pairs, each where the one so many before it was."""
        return Pool(np.roll(self.p, -turn, axis=0), np.roll(self.q, -turn, axis=0))

    def drafted(self, pair: Ints, rng: np.random.Generator) -> Ints:
        """A token of the drafter of each of these pairs."""
        u = rng.random(len(pair)) * self.ends[pair, -1]
        if self.size <= FEW:
            return np.asarray(np.add.reduce(self.ends.take(pair, axis=0) <= u[:, None], axis=1))
        tokens = np.zeros(len(pair), dtype=np.int64)
        for one, here in of_each(pair):
            tokens[here] = self.ends[one].searchsorted(u[here], side="right")
        return tokens


def drawn_pool(
    rng: np.random.Generator,
    size: int,
    pairs: int,
    targets: "list[str] | tuple[str, ...]" = ORDINARY,
    drafters: "list[str] | tuple[str, ...]" = USUAL,
    padding: int = 0,
) -> Pool:
    """Pairs of laws of these families, in turn.

    In a third of them the likeliest tokens have ids at the ends of blocks and of integer formats,
    in a third in the last partial block; in the others all ids are shuffled.

    The last `padding` ids are those that neither model ever draws.
    """
    p, q = np.zeros((pairs, size)), np.zeros((pairs, size))
    real = size - padding
    shift = int(rng.integers(len(targets) * len(drafters)))
    for pair in range(pairs):
        turn, which = divmod((pair + shift) % (len(targets) * len(drafters)), len(targets))
        target = TARGETS[targets[which]](real)
        order = ORDERS[pair % len(ORDERS)](real, rng)
        p[pair, order] = target / target.sum()
        draft = DRAFTERS[drafters[(turn + which) % len(drafters)]](p[pair, :real], rng)
        q[pair, :real] = draft / draft.sum()
    return Pool(p, q)


class Moments(NamedTuple):
    """The tokens of each set; the mean and variance of each feature under p.

    That of a set is whether a token is in it. 0 for `AGAIN`, which laws alone do not tell.
    """

    sets: tuple[Bools, ...]
    mean: Floats
    variance: Floats


def moments_of(p: Floats, q: Floats) -> Moments:
    """The moments of pairs of laws, a few rows at a time: they stay in the cache."""
    pairs, size = p.shape
    ids, few = np.arange(size), max(1, AT_ONCE // size)
    sets: list[Bools] = [np.zeros(0, dtype=bool)] * len(SETS)
    mean, square = np.zeros((2, pairs, len(FEATURES)))
    others = []  # sets of ids are those of all pairs
    for index, chosen in enumerate(SETS.values()):
        one = chosen(p[:1], q[:1], ids)
        if one.ndim == 2:
            others.append((index, chosen))
            sets[index] = np.empty(p.shape, dtype=bool)
            continue
        sets[index] = one
        (members,) = one.nonzero()
        mean[:, index] = (
            np.einsum("ij,j->i", p, one) if len(members) > FEW else p[:, members].sum(1)
        )
    for start in range(0, pairs, few):
        rows = slice(start, start + few)
        some_p, some_q = p[rows], q[rows]
        for index, chosen in others:
            one = sets[index][rows] = chosen(some_p, some_q, ids)
            if one.any():
                mean[rows, index] = np.einsum("ij,ij->i", some_p, one)
        for index, share in enumerate(SHARES.values(), len(SETS)):
            value = share(some_p, some_q)
            weighed = some_p * value
            mean[rows, index] = weighed.sum(axis=1)
            square[rows, index] = (some_p * np.square(value, out=value)).sum(axis=1)
    square[:, : len(SETS)] = mean[:, : len(SETS)]
    return Moments(tuple(sets), mean, np.maximum(square - mean**2, 0))


def _ends(size: int, rng: np.random.Generator) -> Ints:
    """The likeliest tokens at the ends of blocks and of integer formats."""
    last = size // BLOCK * BLOCK
    at = [size - 1, 0, last, size - 2, SHORT, LARGEST_16_BIT, BLOCK - 1, last - 1, size // 2]
    return _first(rng.permutation(np.unique([one for one in at if 0 <= one < size])), size, rng)


def _last_block(size: int, rng: np.random.Generator) -> Ints:
    """The likeliest tokens in the last block of 1,024, where that is not all."""
    last = np.arange(size // BLOCK * BLOCK, size)
    return _first(rng.permutation(last), size, rng)


def _first(first: Ints, size: int, rng: np.random.Generator) -> Ints:
    others = np.ones(size, dtype=bool)
    others[first] = False
    return np.concatenate([first, rng.permutation(np.flatnonzero(others))])


# By rank: which id the likeliest token has, the next, and so on.
ORDERS: tuple[Callable[[int, np.random.Generator], Ints], ...] = (
    lambda size, rng: rng.permutation(size),
    _ends,
    _last_block,
)


MASS = 0.9


def ending_pool(rng: np.random.Generator, size: int, pairs: int) -> Pool:
    """Targets that give `MASS` to one of `end_ids`, in turn; drafters give half of the others.

    So it comes in place of a draft, where others may come too, or after the last.

    Examples
    --------
    >>> pool = ending_pool(np.random.default_rng(1), 50_257, 2)
    >>> float(pool.p[0, 50_256]), float(pool.p[1, 32_007]), float(pool.q[0, 50_256])
    (0.9, 0.9, 0.0)
    """
    p = np.stack([rng.permutation(TARGETS["zipf"](size)) for _ in range(pairs)])
    rows, known = np.arange(pairs), end_ids(size)[::-1]
    ends = np.array(known)[rows % len(known)]
    p[rows, ends] = 0
    p *= (1 - MASS) / p.sum(axis=1, keepdims=True)
    q = np.where(rng.random(p.shape) < 0.5, p, 0)
    p[rows, ends] = MASS
    return Pool(p, q / q.sum(axis=1, keepdims=True))
