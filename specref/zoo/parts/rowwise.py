"""A step as a batched verifier: drafts are given, rows are verified one by one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specref.algorithms.decoding import Step
from specref.arrays import NO_TOKEN, Floats, Ints
from specref.batched import Blocks, Verify, read, winner
from specref.chance import Chance
from specref.coins import Coins
from specref.distributions import Probability
from specref.models import Model
from specref.vocabulary import Tokens, Vocabulary


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
            return int(winner(np.array([weights], dtype=float), self.race[None])[0])
        return int(self.drafts[_position(site, "draft")])


def _position(site: str, name: str) -> int:
    if not site.startswith(f"{name}["):
        raise ValueError(f"site {site!r}: a verifier has no coin for it")
    return int(site.removeprefix(f"{name}[").removesuffix("]"))


def as_verifier(step: Step) -> Verify:
    """A batched verifier that does with given drafts what a step does with its own.

    * `step`: With the sites of `standard.step`. What it changes in drafting is lost, as a verifier
      does not draft. Where it reads rows beyond its drafts, it gets what the arrays hold there,
      and beyond their end the last row.
    * returns: As `verifier`. It raises `ValueError` where the step asks for coins that a verifier
      does not have.

    Examples
    --------
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
