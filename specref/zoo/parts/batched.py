"""Parts of batched verification that are wrong, or look it: rows, lengths, coins, calls.

Each replaces one part of `specref.batched.verifier`; `as_verifier` makes one of a step.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from specref.algorithms.decoding import Step
from specref.arrays import NO_TOKEN, Floats, Ints
from specref.batched import (
    Batch,
    Blocks,
    Verify,
    accepted,
    leading,
    ratios,
    read,
    verifier,
    weights,
    write,
)
from specref.chance import Chance
from specref.coins import Coins, race_winner
from specref.distributions import Probability
from specref.models import Model
from specref.vocabulary import Tokens, Vocabulary

BLOCK = 1_024


def by_one_number(weight: Floats, race: Floats) -> Ints:
    """The token at which the cumulated weight passes exp(-noise) of the total."""
    ends = weight.cumsum(axis=1)
    return np.asarray((ends > np.exp(-race[:, :1]) * ends[:, -1:]).argmax(axis=1))


def last_block_unread(batch: Batch) -> Ints:
    """With q = 1 beyond the last whole block of 1,024 ids."""
    size = batch.q.shape[2]
    beyond = (np.arange(size) >= size // BLOCK * BLOCK) & (size > BLOCK)
    return accepted(replace(batch, q=np.where(beyond, 1.0, batch.q)))


def altered(change: Callable[[Batch], Batch]) -> Callable[..., Batch]:
    """`read`, then a change."""
    return lambda *arguments: change(read(*arguments))


def same_in_all_rows(coins: Floats) -> Floats:
    """The coins of row 0 in every row."""
    return np.broadcast_to(coins[:1], coins.shape)


def one_behind(batch: Batch) -> Batch:
    """The rows of q one request behind, in a batch of more than two."""
    return replace(batch, q=np.roll(batch.q, 1, axis=0)) if len(batch.q) > 2 else batch


def padding_read(batch: Batch) -> Batch:
    """Padding as NumPy indexes it: -1 is the last token, and all rows are equally long."""
    size, longest = batch.p.shape[2], batch.drafts.shape[1]
    drafts = np.where(batch.drafts == NO_TOKEN, size - 1, batch.drafts)
    return replace(batch, drafts=drafts, lens=np.full_like(batch.lens, longest))


def dead_row_written(batch: Batch) -> Batch:
    """The q of a row without drafts over that of row 0."""
    dead = np.flatnonzero(batch.lens == 0)
    if not len(dead):
        return batch
    return replace(batch, q=np.concatenate([batch.q[dead[-1:]], batch.q[1:]]))


def bonus_of_longest(batch: Batch, count: Ints) -> Floats:
    """The weights, from row K after the last draft of every row."""
    usual, bonus = weights(batch, count), batch.p[:, -1]
    return np.where((count == batch.lens)[:, None], bonus, usual)


def bonus_of_row_before(batch: Batch, count: Ints) -> Floats:
    """The weights, bonus tokens from p after all drafts of the request before."""
    usual, bonus = weights(batch, count), np.roll(batch.p[batch.rows, batch.lens], 1, axis=0)
    return np.where((count == batch.lens)[:, None], bonus, usual)


def committed_together(batch: Batch, count: Ints, last: Ints) -> Blocks:
    """As many drafts of each row as of the row with the fewest; then a token drawn from p."""
    least = count.min(initial=batch.drafts.shape[1])
    own = np.flatnonzero(count > least)
    last = last.copy()
    last[own] = race_winner(batch.p[own, least], batch.race[own])
    return write(batch, np.full_like(count, least), last)


def without_fallback(batch: Batch, count: Ints) -> Floats:
    """(p - q)+ even where it is nothing but zeros."""
    p, rejected = batch.p[batch.rows, count], count < batch.lens
    q = batch.q[batch.rows, np.minimum(count, batch.q.shape[1] - 1)]
    return np.where(rejected[:, None], np.maximum(p - q, 0), p)


def not_guarded(weight: Floats, race: Floats) -> Ints:
    """argmin noise / weight, where 0 / 0 is NaN and NaN comes first."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((race / weight).argmin(axis=1))


def up_to_ratio(batch: Batch) -> Ints:
    """Drafts accepted while u <= p / q."""
    return leading((batch.accept <= ratios(batch)) & (batch.drafts != NO_TOKEN))


def product_below(batch: Batch) -> Ints:
    """Drafts accepted while u q < p."""
    p, q = batch.drafted(batch.p), batch.drafted(batch.q)
    return leading((batch.accept * q < p) & (batch.drafts != NO_TOKEN))


def cartesian(batch: Batch, count: Ints, last: Ints) -> Blocks:
    """Every row's last token in every row, at that row's position."""
    tokens, counts = write(batch, count, last)
    tokens[:, count] = last
    return tokens, counts


def first_recovered(batch: Batch, count: Ints, last: Ints) -> Blocks:
    """Token 0 for the recovered tokens of all rows but the first."""
    unfilled = (batch.rows > 0) & (count < batch.lens)
    return write(batch, count, np.where(unfilled, 0, last))


def counted(lengths: Callable[[Batch, Ints], Ints]) -> Callable[[Batch, Ints, Ints], Blocks]:
    """`write` with other counts: what lies beyond them is cut off."""

    def cut(batch: Batch, count: Ints, last: Ints) -> Blocks:
        tokens, _ = write(batch, count, last)
        counts = lengths(batch, count)
        beyond = np.arange(tokens.shape[1]) >= counts[:, None]
        return np.where(beyond, NO_TOKEN, tokens), counts

    return cut


def sorted_by_length(
    target_probs: Floats,
    draft_probs: Floats | None,
    draft_tokens: Ints,
    *,
    rng: np.random.Generator | None = None,
    coins: Coins | None = None,
    lens: Ints | None = None,
) -> Blocks:
    """Rows sorted by their number of drafts, verified, and returned in that order."""
    lens = (draft_tokens != NO_TOKEN).sum(axis=1) if lens is None else lens
    order = np.argsort(-lens, kind="stable")
    q = None if draft_probs is None else draft_probs[order]
    if coins is not None:
        coins = Coins(coins.accept[order], coins.race[order])
    return verifier()(
        target_probs[order], q, draft_tokens[order], rng=rng, coins=coins, lens=lens[order]
    )


def from_p_without_q(
    target_probs: Floats,
    draft_probs: Floats | None,
    draft_tokens: Ints,
    *,
    rng: np.random.Generator | None = None,
    coins: Coins | None = None,
    lens: Ints | None = None,
) -> Blocks:
    """Without q, drafts pass with p(x), and all of p replaces them."""
    of_p = verifier(weights=lambda batch, count: batch.p[batch.rows, count])
    chosen = verifier() if draft_probs is not None else of_p
    return chosen(target_probs, draft_probs, draft_tokens, rng=rng, coins=coins, lens=lens)


def own_generator(
    target_probs: Floats,
    draft_probs: Floats | None,
    draft_tokens: Ints,
    *,
    rng: np.random.Generator,
    lens: Ints | None = None,
) -> Blocks:
    """A generator with the same seed in every call, whatever was passed."""
    own = np.random.default_rng(0)
    return verifier()(target_probs, draft_probs, draft_tokens, rng=own, lens=lens)


def remembering() -> Verify:
    """A verifier whose bonus tokens come from the residual of the latest rejection."""
    latest: list[Floats] = []

    def recalled(batch: Batch, count: Ints) -> Floats:
        law = weights(batch, count)
        rejected = count < batch.lens
        if latest and len(latest[-1]) == law.shape[1]:
            law = np.where(rejected[:, None], law, latest[-1])
        latest.extend(law[rejected][-1:])
        return law

    return verifier(weights=recalled)


def drawing(
    coins: Callable[[np.random.Generator, Ints, int], Coins],
    by: Verify | None = None,
) -> Verify:
    """A verifier with a way of its own to draw coins for drafts over V tokens."""
    verifies = by or verifier()

    def verify(
        target_probs: Floats,
        draft_probs: Floats | None,
        draft_tokens: Ints,
        *,
        rng: np.random.Generator,
        lens: Ints | None = None,
    ) -> Blocks:
        own = coins(rng, draft_tokens, target_probs.shape[2])
        return verifies(target_probs, draft_probs, draft_tokens, coins=own, lens=lens)

    return verify


def burning(rng: np.random.Generator, drafts: Ints, size: int) -> Coins:
    """Coins, after V numbers thrown away for each row without drafts."""
    rng.random((int((drafts == NO_TOKEN).all(axis=1).sum()), size))
    return Coins(rng.random(drafts.shape), rng.standard_exponential((len(drafts), size)))


def row_by_row(rng: np.random.Generator, drafts: Ints, size: int) -> Coins:
    """The coins of a row drawn together, rows one after the other."""
    rows = [(rng.random(len(row)), rng.standard_exponential(size)) for row in drafts]
    return Coins(*(np.stack(kind) for kind in zip(*rows, strict=True)))


def coarse(rng: np.random.Generator, drafts: Ints, size: int) -> Coins:
    """Uniforms of 12 bits."""
    uniforms = np.floor(rng.random(drafts.shape) * 2**12) / 2**12
    return Coins(uniforms, rng.standard_exponential((len(drafts), size)))


def spread(rng: np.random.Generator, drafts: Ints, size: int) -> Coins:
    """One uniform in each of B equal intervals, in random order, for each position."""
    rows = np.tile(np.arange(len(drafts))[:, None], drafts.shape[1])
    uniforms = (rng.permuted(rows, axis=0) + rng.random(drafts.shape)) / max(1, len(drafts))
    noise = rng.standard_exponential((len(drafts), size))
    return Coins(np.minimum(uniforms, 1 - 2.0**-53), noise)


def opposite(rng: np.random.Generator, drafts: Ints, size: int) -> Coins:
    """The uniforms of each second row are 1 - u of the row before."""
    uniforms = rng.random(drafts.shape)
    uniforms[1::2] = 1 - 2.0**-53 - uniforms[: len(uniforms) // 2 * 2 : 2]
    return Coins(np.maximum(uniforms, 0), rng.standard_exponential((len(drafts), size)))


def coming_round(rng: np.random.Generator, drafts: Ints, size: int) -> Coins:
    """The numbers of row b are those of row b - 1,000."""
    rows = np.arange(len(drafts)) % 1_000
    few = min(1_000, len(drafts))
    uniforms = rng.random((few, drafts.shape[1]))[rows]
    return Coins(uniforms, rng.standard_exponential((few, size))[rows])


@dataclass
class GivenDrafts(Chance):
    """A reading in which drafts are given, and coins are those of one row of a batch."""

    drafts: Ints
    uniforms: Floats
    race: Floats

    def accept(self, probability: Probability, site: str) -> bool:
        """Say yes iff the uniform of the position is below `probability`."""
        return bool(self.uniforms[_position(site, "accept")] < probability)

    def choose(self, weights: Sequence[Probability], site: str) -> int:
        if site in ("residual", "bonus"):
            return int(race_winner(np.array([weights], dtype=float), self.race[None])[0])
        return int(self.drafts[_position(site, "draft")])


def _position(site: str, name: str) -> int:
    if not site.startswith(f"{name}["):
        raise ValueError(f"site {site!r}: a verifier has no random number for it")
    return int(site.removeprefix(f"{name}[").removesuffix("]"))


def as_verifier(step: Step) -> Verify:
    """A batched verifier that does with given drafts what a step does with its own.

    * `step`: With the sites of `standard.step`. What it changes in drafting is lost, as a verifier
      does not draft. Where it reads rows beyond its drafts, it gets what the arrays hold there,
      and beyond their end the last row.
    * returns: As `verifier`. It raises `ValueError` where the step asks for coins that a verifier
      does not have.

    >>> from specref.algorithms import standard
    >>> p, q = np.array([[[0.5, 0.5], [0.0, 1.0]]]), np.array([[[0.8, 0.2]]])
    >>> as_verifier(standard.step)(p, q, np.array([[1]]), rng=np.random.default_rng(0))
    (array([[1, 1]]), array([2]))
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
        tokens = np.full((len(batch.drafts), batch.p.shape[1]), NO_TOKEN)
        counts = np.zeros(len(tokens), dtype=np.int64)
        for b, n in enumerate(batch.lens.tolist()):
            chance = GivenDrafts(batch.drafts[b], batch.accept[b], batch.race[b])
            block = step(of_rows(batch.p[b]), of_rows(batch.q[b]), (), n, chance)
            tokens[b, : len(block)], counts[b] = block, len(block)
        return tokens, counts

    return verify


def of_rows(rows: Floats) -> Model:
    """A model that knows its rows by position alone; beyond the last it has the last."""

    def next_token(context: Tokens) -> Floats:
        return np.asarray(rows[min(len(context), len(rows) - 1)])

    return Model(Vocabulary(str(token) for token in range(rows.shape[1])), next_token)
