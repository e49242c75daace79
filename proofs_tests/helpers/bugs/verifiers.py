"""Samplers of the contract ``verify``: one clean, and small patches of it, right and wrong."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from specref.arrays import Floats, Ints
from specref.contracts.capabilities import capable

Verify = Callable[..., tuple[Ints, Ints]]
Coin = Callable[[np.random.Generator, tuple[int, ...]], Floats]


def uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return rng.random(shape)


def exponential(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return rng.standard_exponential(shape)


def from_coins(coins: Any) -> Any:
    """Coins where a generator is expected."""
    drawn = {"random": coins.accept, "standard_exponential": coins.race}
    return SimpleNamespace(**{name: lambda shape, one=one: one for name, one in drawn.items()})


def raced(noise: Coin, weights: Floats, rng: np.random.Generator) -> Ints:
    """One token from each row: the first to arrive, at rates `weights`."""
    race = noise(rng, weights.shape)
    return np.divide(race, weights, out=np.full_like(race, np.inf), where=weights > 0).argmin(
        axis=1
    )


def leftover(p: Floats, q: Floats, x: Ints) -> Floats:
    return np.maximum(p - q, 0)


def certain(x: Ints, size: int) -> Floats:
    return (x[..., None] == np.arange(size)).astype(np.float64)


def last_row(p: Floats, lens: Ints) -> Floats:
    return p[np.arange(len(p)), lens]


def verifying(
    *,
    accept: Callable[[Floats, Floats, Floats], Any] = lambda u, p, q: u * q < p,
    residual: Callable[[Floats, Floats, Ints], Floats] = leftover,
    bonus: Callable[[Floats, Ints], Floats] = last_row,
    uniforms: Coin = uniform,
    noise: Coin = exponential,
    read: Callable[[Any], Any] | None = None,
    **claims: Any,
) -> Verify:
    """Standard speculative decoding of a batch, with holes for the bugs."""

    @capable(**{"rule": "standard", **claims})
    def verify(
        target_probs: Floats, draft_probs: Floats | None, draft_tokens: Ints, *, rng: Any
    ) -> tuple[Ints, Ints]:
        p, x, size = target_probs, np.maximum(draft_tokens, 0), target_probs.shape[2]
        q = certain(x, size) if draft_probs is None and read else draft_probs
        q = read(q) if read else q
        rows, lens = np.arange(len(x)), (draft_tokens >= 0).sum(axis=1)
        drafted = rows[:, None], np.arange(x.shape[1]), x
        qx = np.ones(x.shape) if q is None else q[drafted]
        yes = accept(uniforms(rng, x.shape), p[drafted], qx) & (draft_tokens >= 0)
        count = np.logical_and.accumulate(yes, axis=1).sum(axis=1)
        weights, rejected = bonus(p, lens), np.flatnonzero(count < lens)
        at = count[rejected]
        drafts = x[rejected, at]
        over = certain(drafts, size) if q is None else q[rejected, at]
        left = residual(p[rejected, at], over, drafts)
        none = np.flatnonzero(~left.any(axis=1))
        weights[rejected] = left
        weights[rejected[none]] = p[rejected[none], at[none]]
        last = raced(noise, weights, rng)
        tokens = np.pad(np.where(np.arange(x.shape[1]) < count[:, None], x, -1), ((0, 0), (0, 1)))
        tokens[:, -1] = -1
        tokens[rows, count] = last
        return tokens, count + 1

    return verify


def first_row(coin: Coin) -> Coin:
    """The numbers of row 0 in every row."""
    return lambda rng, shape: np.broadcast_to(coin(rng, shape)[:1], shape)


def pairs_share(coin: Coin) -> Coin:
    """Rows 2 k and 2 k + 1 have the same numbers."""
    return lambda rng, shape: np.repeat(coin(rng, shape), 2, axis=0)[: shape[0]]


def period(distance: int, coin: Coin) -> Coin:
    """Rows `distance` apart have the same numbers."""
    return lambda rng, shape: coin(rng, shape)[np.arange(shape[0]) % distance]


def pool(size: int, coin: Coin) -> Coin:
    """One of a few generators for every call, in turn, each seeded anew."""
    calls: list[int] = []

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        calls.append(1)
        return coin(np.random.default_rng(len(calls) % size), shape)

    return draw


def one_for_all_positions(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return np.broadcast_to(rng.random((shape[0], 1)), shape)


def of_longest_row(p: Floats, lens: Ints) -> Floats:
    return p[:, -1].copy()


def first_law_alone(p: Floats, lens: Ints) -> Floats:
    """A special way for a batch of one: the bonus token from the first row."""
    return p[:, 0].copy() if len(p) == 1 else last_row(p, lens)


def one_behind(q: Floats) -> Floats:
    return np.roll(q, 1, axis=0) if len(q) > 2 else q


def kept_for(calls: int, coin: Coin) -> Coin:
    """So many calls after each other get the same numbers, as far as they reach."""
    kept: list[Floats] = []

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        fresh = coin(rng, shape)
        if len(kept) % calls:
            rows, columns = (min(a, b) for a, b in zip(kept[0].shape, shape, strict=True))
            fresh[:rows, :columns] = kept[0][:rows, :columns]
        else:
            kept.clear()
        kept.append(fresh)
        return fresh

    return draw


clean = verifying()
BUGS: dict[str, Callable[[], Verify]] = {
    "always accepts": lambda: verifying(accept=lambda u, p, q: u < 2),
    "lenient": lambda: verifying(accept=lambda u, p, q: u * q < 1.5 * p),
    "residual is p": lambda: verifying(residual=lambda p, q, x: p),
    "residual is |p - q|": lambda: verifying(residual=lambda p, q, x: abs(p - q)),
    "bonus of the longest row": lambda: verifying(bonus=of_longest_row),
    "batch of one": lambda: verifying(bonus=first_law_alone),
    "positions share a uniform": lambda: verifying(uniforms=one_for_all_positions),
    "rows share uniforms": lambda: verifying(uniforms=first_row(uniform)),
    "rows share noise": lambda: verifying(noise=first_row(exponential)),
    "pairs of rows share noise": lambda: verifying(
        uniforms=pairs_share(uniform), noise=pairs_share(exponential)
    ),
    "distant rows share noise": lambda: verifying(noise=period(1000, exponential)),
    "distant rows share uniforms": lambda: verifying(uniforms=period(777, uniform)),
    "calls take turns": lambda: verifying(
        uniforms=pool(60, uniform), noise=pool(60, exponential), seeded=False
    ),
    "calls share numbers": lambda: verifying(
        uniforms=kept_for(3, uniform), noise=kept_for(3, exponential)
    ),
    "q of the row before": lambda: verifying(read=one_behind),
}


def watched(look: Callable[..., Any]) -> Verify:
    """The clean sampler, which shows its arguments first."""

    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        look(target_probs, draft_probs, draft_tokens)
        return clean(target_probs, draft_probs, draft_tokens, rng=rng)

    return verify


# Lossless samplers that accept other numbers of drafts than the standard one.


def sample_and_match(
    target_probs: Floats, draft_probs: Any, draft_tokens: Ints, *, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Draw the target's own tokens for as long as they are the drafted ones."""
    shape = target_probs.shape
    own = raced(exponential, target_probs.reshape(-1, shape[2]), rng).reshape(shape[:2])
    count = np.logical_and.accumulate(own[:, :-1] == draft_tokens, axis=1).sum(axis=1)
    return np.where(np.arange(own.shape[1]) <= count[:, None], own, -1), count + 1


def without_bonus(
    target_probs: Floats, draft_probs: Any, draft_tokens: Ints, *, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """The bonus token is withheld: the next call draws it."""
    tokens, counts = clean(target_probs, draft_probs, draft_tokens, rng=rng)
    counts = np.maximum(np.minimum(counts, (draft_tokens >= 0).sum(axis=1)), 1)
    return np.where(np.arange(tokens.shape[1]) < counts[:, None], tokens, -1), counts


def one_hot_rule(
    target_probs: Floats, draft_probs: Any, draft_tokens: Ints, *, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Drafts taken as certain, whatever they were drawn from."""
    return clean(target_probs, None, draft_tokens, rng=rng)


LOOK_ALIKES: dict[str, Verify] = {
    "sample and match": sample_and_match,
    "without bonus": without_bonus,
    "one-hot rule on sampled drafts": one_hot_rule,
    "accepts half": verifying(
        accept=lambda u, p, q: 2 * u * q < np.minimum(p, q),
        residual=lambda p, q, x: p - np.minimum(p, q) / 2,
        rule=None,
    ),
}
