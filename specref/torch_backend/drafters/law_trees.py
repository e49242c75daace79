"""Laws after the nodes of growing trees of continuations."""

from collections.abc import Sequence

import torch
from torch import Tensor

from specref.torch_backend.drafters.drafts import Shape
from specref.torch_backend.models.trees import TreeModel
from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary


class LawTrees:
    """The drafter's laws after its contexts, and after what is grown from them.

    Parameters
    ----------
    model : TreeModel
    drafter : TokenVocabulary
    shape : callable
        From logits to laws.
    contexts : sequence of sequence of int
        In the drafter's tokens.

    Attributes
    ----------
    roots : Tensor of float64, shape (B, V)
        The laws after the contexts.
    reads : int
        After how many contexts and continuations the drafter was read.

    Raises
    ------
    ValueError
        The logits are not of the vocabulary's size.
    """

    def __init__(
        self,
        model: TreeModel,
        drafter: TokenVocabulary,
        shape: Shape,
        contexts: Sequence[Sequence[int]],
    ) -> None:
        self.model, self.shape = model, shape
        logits = model.begin(contexts)
        drafter.check_logits(logits)
        self.roots = shape(logits.double())
        self._sizes, self.reads = [0] * len(contexts), len(contexts)

    def grow(
        self, rows: Sequence[int], parents: Sequence[int], tokens: Sequence[int]
    ) -> tuple[list[int], Tensor]:
        """Read the drafter after n new nodes; one forward.

        Parameters
        ----------
        rows, parents, tokens : sequence of int, of length n
            As for `TreeModel.grow`, in the order of the rows.

        Returns
        -------
        list of int, Tensor of float64 of shape (n, V)
            The numbers of the nodes, and the laws after them.
        """
        above: list[list[int]] = [[] for _ in self._sizes]
        ids: list[list[int]] = [[] for _ in self._sizes]
        nodes = []
        for row, parent, token in zip(rows, parents, tokens, strict=True):
            self._sizes[row] += 1
            nodes.append(self._sizes[row])
            above[row].append(parent)
            ids[row].append(token)
        self.reads += len(nodes)
        return nodes, self.shape(torch.cat(self.model.grow(above, ids)).double())

    def next_number(self, row: int) -> int:
        """The number of the next node of a row."""
        return self._sizes[row] + 1
