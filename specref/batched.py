"""Standard verification of a batch in parts: arrays in, padded blocks out.

The contract of most engines' rejection samplers. With no part replaced it is standard
speculative decoding in every row, rows independent. Drafts are accepted iff u < p / q; the last
token is the winner of an exponential race, argmin noise / weight.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from specref.arrays import NO_TOKEN, Floats, Ints, one_hot_rows
from specref.coins import Coins, race_winner

Blocks: TypeAlias = tuple[Ints, Ints]
Verify: TypeAlias = Callable[..., Blocks]


@dataclass(frozen=True, eq=False)
class Batch:
    """What one call is given, and its coins.

    * `p` (ndarray, shape (B, K + 1, V))
    * `q` (ndarray, shape (B, K, V))
    * `drafts` (ndarray of int, shape (B, K)): -1 after the last draft of a row.
    * `lens` (ndarray of int, shape (B,)): How many drafts each row has.
    * `accept` (ndarray, shape (B, K))
    * `race` (ndarray, shape (B, V))
    """

    p: Floats
    q: Floats
    drafts: Ints
    lens: Ints
    accept: Floats
    race: Floats

    @property
    def rows(self) -> Ints:
        """0 … B - 1."""
        return np.arange(len(self.drafts))

    def drafted(self, probabilities: Floats) -> Floats:
        """The probability of each draft, shape (B, K); arbitrary where there is none."""
        rows, positions = self.rows[:, None], np.arange(self.drafts.shape[1])
        return np.asarray(probabilities[rows, positions, np.maximum(self.drafts, 0)])


def read(
    p: Floats,
    q: Floats | None,
    drafts: Ints,
    rng: np.random.Generator | None,
    coins: Coins | None,
    lens: Ints | None,
) -> Batch:
    """One-hot rows for a missing q; the coins that were given, or fresh ones."""
    lens = (drafts != NO_TOKEN).sum(axis=1) if lens is None else lens
    drafts = np.where(np.arange(drafts.shape[1]) < lens[:, None], drafts, NO_TOKEN)
    if q is None:
        q = one_hot_rows(np.maximum(drafts, 0), p.shape[2])
    if coins is None:
        if rng is None:
            raise TypeError("rng and coins are both None: expected one of them")
        noise = rng.standard_exponential((len(drafts), p.shape[2]))
        coins = Coins(rng.random(drafts.shape), noise)
    return Batch(p, q, drafts, lens, coins.accept, coins.race)


def ratios(batch: Batch) -> Floats:
    """p / q of each draft, shape (B, K); 0 where there is no draft."""
    p, q = batch.drafted(batch.p), batch.drafted(batch.q)
    exists = (batch.drafts != NO_TOKEN) & (q > 0)
    return np.divide(p, q, out=np.zeros_like(p), where=exists)


def leading(verdicts: NDArray[np.bool_]) -> Ints:
    """How many verdicts of each row are yes before the first no."""
    return np.asarray(np.logical_and.accumulate(verdicts, axis=1).sum(axis=1))


def accepted(batch: Batch) -> Ints:
    """How many drafts of each row are accepted before the first rejection."""
    return leading(batch.accept < ratios(batch))


def weights(batch: Batch, count: Ints) -> Floats:
    """The unnormalised law of the last token: (p - q)+, or p after the last draft."""
    p = batch.p[batch.rows, count]
    rejected = np.flatnonzero(count < batch.lens)
    excess = np.maximum(p[rejected] - batch.q[rejected, count[rejected]], 0)
    p[rejected] = np.where(excess.any(axis=1, keepdims=True), excess, p[rejected])
    return p


def write(batch: Batch, count: Ints, last: Ints) -> Blocks:
    """The accepted drafts and the last token, padded."""
    kept = np.arange(batch.drafts.shape[1]) < count[:, None]
    tokens = np.full((len(kept), kept.shape[1] + 1), NO_TOKEN)
    tokens[:, :-1] = np.where(kept, batch.drafts, NO_TOKEN)
    tokens[batch.rows, count] = last
    return tokens, count + 1


def verifier(
    *,
    read: Callable[..., Batch] = read,
    accepted: Callable[[Batch], Ints] = accepted,
    weights: Callable[[Batch, Ints], Floats] = weights,
    winner: Callable[[Floats, Floats], Ints] = race_winner,
    write: Callable[[Batch, Ints, Ints], Blocks] = write,
) -> Verify:
    """A batched verification in which some parts are replaced.

    * returns: (target_probs, draft_probs, draft_tokens, *, rng, coins, lens) -> tokens, counts:
      blocks padded with -1, shape (B, K + 1), and their lengths. One of `rng` and `coins` is
      needed; without `lens`, rows end at their first -1.
    """

    def verify(
        target_probs: Floats,
        draft_probs: Floats | None,
        draft_tokens: Ints,
        *,
        rng: np.random.Generator | None = None,
        coins: Coins | None = None,
        lens: Ints | None = None,
    ) -> Blocks:
        batch = read(target_probs, draft_probs, draft_tokens, rng, coins, lens)
        count = accepted(batch)
        last = winner(weights(batch, count), batch.race)
        return write(batch, count, last)

    return verify
