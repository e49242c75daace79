"""Batches for the contract ``tree``; chains of drafts as trees."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specref.arrays import Floats, Ints
from specref.coins import Coins
from specref.contracts.batch import Batch
from specref.contracts.calling import Verifier
from specref.contracts.timeout import Deadline

ROOT, NO_NODE = -1, -2


@dataclass(frozen=True, eq=False)
class TreeBatch(Batch):
    """The arguments of one call of `VerifyTree`; `lens` is the number of nodes of each row."""

    parents: Ints

    @property
    def arguments(self) -> Mapping[str, Any]:
        return {**super().arguments, "parents": self.parents}

    @property
    def depths(self) -> Ints:
        """The number of drafts on the path to each node; 0 where there is no node.

        Examples
        --------
        >>> as_tree(batch_of_one([2, 0], [ROOT, 0], np.eye(3))).depths
        array([[1, 2]])
        """
        found = np.zeros_like(self.parents)
        rows = np.arange(len(found))
        for i, parent in enumerate(self.parents.T):
            above = np.where(parent >= 0, found[rows, np.maximum(parent, 0)], 0)
            found[:, i] = np.where(parent == NO_NODE, 0, above + 1)
        return found

    @property
    def most(self) -> Ints:
        """The most tokens each row may get: a path to the deepest node, and one more."""
        return np.asarray(self.depths.max(axis=1, initial=0) + 1)

    @property
    def widths(self) -> range:
        """The numbers of columns that tokens may have; with too few, counts do not match."""
        return range(1, self.draft_tokens.shape[1] + 2)

    @property
    def origin(self) -> str:
        """What tokens before the last have to be, for messages."""
        return "a path among its nodes"

    def drafted(self, tokens: Ints) -> NDArray[np.bool_]:
        """Whether the tokens up to each column, but for the last one, are a path of the tree."""
        here = self.parents == ROOT
        found = []
        for column in tokens[:, :-1].T:
            reached = here & (self.draft_tokens == column[:, None])
            found.append(reached.any(axis=1))
            above = np.take_along_axis(reached, np.maximum(self.parents, 0), axis=1)
            here = above & (self.parents >= 0)
        return np.stack(found, axis=1) if found else np.ones((len(tokens), 0), dtype=bool)

    def facts(self, row: int) -> dict[str, Any]:
        return {**super().facts(row), "parents": self.parents[row].tolist()}


def as_tree(batch: Batch) -> TreeBatch:
    """The same drafts, each the only child of the one before it; trees are returned unchanged.

    Examples
    --------
    >>> as_tree(batch_of_one([2, 0], [ROOT, 0], np.eye(3))).parents
    array([[-1,  0]])
    """
    if isinstance(batch, TreeBatch):
        return batch
    places = np.arange(batch.draft_tokens.shape[1])
    parents = np.where(places < batch.lens[:, None], places - 1, NO_NODE)
    return TreeBatch(
        batch.target_probs, batch.draft_probs, batch.draft_tokens, batch.lens, batch.place, parents
    )


def batch_of_one(
    tokens: list[int], parents: list[int], p: Floats, q: Floats | None = None
) -> TreeBatch:
    """A batch with a single tree.

    Parameters
    ----------
    tokens, parents : list of int
        Token and parent of each node.
    p : ndarray, shape (nodes + 1, V)
    q : ndarray, shape (nodes, V), optional
    """
    nodes, one = np.array([tokens], dtype=np.int64), np.zeros(1, dtype=np.int64)
    above = np.array([parents], dtype=np.int64)
    laws = None if q is None else q[None]
    return TreeBatch(p[None], laws, nodes, one + len(tokens), one, above)


class TreeVerifier(Verifier):
    """An implementation of the contract ``tree``; drafts without parents are given as chains."""

    def shaped(self, batch: Batch) -> TreeBatch:
        """A batch of trees; drafts without parents are chains."""
        return as_tree(batch)

    def answer(
        self,
        batch: Batch,
        rng: np.random.Generator,
        coins: Coins | None = None,
        deadline: Deadline | None = None,
    ) -> Any:
        return super().answer(as_tree(batch), rng, coins, deadline)

    def arguments(
        self, batch: Batch, rng: np.random.Generator, coins: Coins | None = None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return super().arguments(as_tree(batch), rng, coins)
