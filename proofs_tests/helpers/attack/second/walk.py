"""Top-down verification of a batch of token trees, with its steps open."""

import numpy as np
from numpy.typing import NDArray

from proofs_tests.helpers.attack.parts import Answer, Floats, Ints

Mask = NDArray[np.bool_]


def draw_rows(weights: Floats, rng: np.random.Generator) -> Ints:
    ends = weights.cumsum(axis=1)
    tokens: Ints = (ends <= rng.random((len(weights), 1)) * ends[:, -1:]).sum(axis=1)
    return tokens


def minus(p: Floats, q: Floats, lost: Ints) -> None:
    """Puts the normalised (p - q)+ in the place of the lost rows of p, if anything is left."""
    rest = np.maximum(p[lost] - q[lost], 0)
    total = rest.sum(axis=1, keepdims=True)
    p[lost] = np.where(total > 0, rest / np.where(total > 0, total, 1), p[lost])


class Walk:
    """A batch on its way down its trees, node by node.

    Attributes
    ----------
    at : ndarray of int, shape (B,)
        The node that each row is at; -1 is the root.
    n : ndarray of int, shape (B,)
        How many tokens it accepted.
    p : ndarray, shape (B, V)
        The law of its next token, what was refused taken out.
    """

    def __init__(
        self, target_probs: Floats, draft_probs: Floats | None, draft_tokens: Ints, parents: Ints
    ) -> None:
        self.target, self.draft, self.tokens = target_probs, draft_probs, draft_tokens
        self.parents = parents
        self.batch, self.nodes = parents.shape
        self.v = target_probs.shape[2]
        self.rows = np.arange(self.batch)
        self.at, self.n = np.full(self.batch, -1), np.zeros(self.batch, dtype=int)
        self.p = target_probs[:, 0].copy()
        self.out = np.full((self.batch, self.nodes + 1), -1)

    def law(self, i: int) -> Floats:
        law: Floats
        if self.draft is None:
            law = (np.arange(self.v) == self.tokens[:, i, None]).astype(float)
        else:
            law = self.draft[:, i]
        return law

    def children(self, i: int) -> Mask:
        """In which rows node i is a child of where they are."""
        child: Mask = (self.tokens[:, i] >= 0) & (self.parents[:, i] == self.at)
        return child

    def tries(
        self, i: int, child: Mask, rng: np.random.Generator, q: Floats | None = None
    ) -> Mask:
        """In which rows node i is accepted; the others of `child` go on with what is left."""
        q = self.law(i) if q is None else q
        x = self.tokens[:, i]
        likely = rng.random(self.batch) * q[self.rows, x] < self.p[self.rows, x]
        kept = child & likely
        minus(self.p, q, np.flatnonzero(child & ~kept))
        self.goes(i, kept)
        return kept

    def goes(self, i: int, kept: Mask) -> None:
        """To node i in these rows."""
        self.out[self.rows[kept], self.n[kept]] = self.tokens[kept, i]
        self.n += kept
        self.at[kept], self.p[kept] = i, self.target[kept, i + 1]

    def ends(self, last: Ints) -> Answer:
        self.out[self.rows, self.n] = last
        return self.out, self.n + 1

    def top_down(self, rng: np.random.Generator) -> Answer:
        for i in range(self.nodes):
            self.tries(i, self.children(i), rng)
        return self.ends(draw_rows(self.p, rng))
