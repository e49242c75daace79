"""Bounds of psi from the part of the drafter's tree of continuations that is read so far.

The mass of texts whose first target token is settled bounds psi from below. What can still become
a token is the *frontier*: continuations within the prefix tree of the target's tokens, after which
the drafter's law was not asked for. With their mass a lower bound becomes an upper one.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from specref.torch_backend.drafters.drafts import Shape
from specref.torch_backend.drafters.settling import Pieces, Settling
from specref.torch_backend.models.trees import TreeModel
from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary


class LawTrees:
    """The drafter's laws after its contexts, and after what is grown from them.

    * `roots`: Float64 laws after the contexts, shape (B, V).
    * `reads`: After how many contexts and continuations the drafter was read.
    * raises `ValueError`: The logits are not of the vocabulary's size.
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
        """The numbers of n new nodes, and the float64 laws after them, shape (n, V); one forward.

        Rows, parents and tokens as for `TreeModel.grow`, one of each for a node, in the order of
        rows.
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


class Frontier(NamedTuple):
    """Continuations after which the drafter was not read, F in all; each tensor has shape (F,).

    * `search`: Which psi they belong to.
    * `parent`, `token`: A node that was read, and the drafter token that follows it.
    * `place`: Where the text is in the target's prefix tree.
    * `mass`: The drafter's probability of the whole continuation, in float64; never 0.
    """

    search: Tensor
    parent: Tensor
    token: Tensor
    place: Tensor
    mass: Tensor

    def at(self, index: Tensor) -> "Frontier":
        return Frontier(*(values[index] for values in self))


class PsiBounds:
    """Bounds of several psi (`searches`) at once, from the drafter's laws as they are read.

    The target has `size` ids.

    >>> from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary
    >>> target = TokenVocabulary(("a", "ab"), (b"a", b"ab"), {}, None)
    >>> drafter = TokenVocabulary(("a", "b"), (b"a", b"b"), {}, None)
    >>> bounds = PsiBounds(Settling(target, drafter), searches=1, size=2)
    >>> zero, half = torch.zeros(1, dtype=torch.int64), torch.full((1, 2), 0.5).double()
    >>> _ = bounds.absorb(zero, zero, [0], half[:, 0] * 2, half)
    >>> bounds.of(zero, torch.tensor([1]))
    (tensor([0.], dtype=torch.float64), tensor([0.5000], dtype=torch.float64))
    >>> found = bounds.take(zero, torch.tensor([1]), width=1)
    >>> _ = bounds.absorb(found.search, zero + 1, found.place.tolist(), found.mass, half)
    >>> bounds.of(zero, torch.tensor([1]))
    (tensor([0.2500], dtype=torch.float64), tensor([0.2500], dtype=torch.float64))
    """

    def __init__(self, settling: Settling, searches: int, size: int) -> None:
        self.settling, device = settling, settling.device
        # Columns before the tokens: what goes on within the tree, and what no token starts.
        self._sums = torch.zeros(searches, 2 + size, dtype=torch.float64, device=device)
        none = torch.empty(0, dtype=torch.int64, device=device)
        self.frontier = Frontier(none, none, none, none, none.double())

    def absorb(
        self,
        search: Tensor,
        node: Tensor,
        place: Sequence[int],
        mass: Tensor,
        laws: Tensor,
        followed: Tensor | None = None,
    ) -> Pieces:
        """Learn the drafter's laws after n continuations; what its tokens make of the texts.

        Search, place and mass as in `Frontier`; nodes will be the parents of their continuations.
        Each may be `followed` by a drafter token after which the law is already known, and is
        absorbed next, if that is still within the tree.
        """
        pieces = self.settling.pieces(place)
        ordered, width = laws[:, self.settling.order], self._sums.shape[1]
        sums = torch.segment_reduce(ordered.view(-1), "sum", lengths=pieces.lengths, unsafe=True)
        columns = (pieces.codes - (self.settling.end - 1)).clamp(min=0)
        self._sums.view(-1).index_add_(
            0, columns + search[pieces.of] * width, sums * mass[pieces.of]
        )
        of, tokens = pieces.open_of, pieces.tokens
        masses = laws[of, tokens] * mass[of]
        goes_on = masses > 0
        if followed is not None:
            goes_on &= tokens != followed[of]
        kept = goes_on.nonzero()[:, 0]
        of = of[kept]
        new = Frontier(search[of], node[of], tokens[kept], pieces.places[kept], masses[kept])
        self.frontier = Frontier(*map(torch.cat, zip(self.frontier, new, strict=True)))
        return pieces

    def known(self, search: Tensor) -> Tensor:
        """The lower bounds of some psi at all tokens, shape (n, size)."""
        return self._sums[search, 2:]

    def of(self, search: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Lower and upper bounds of psi at a token, each of shape (n,); equal once all is read.

        No psi may be asked for twice.
        """
        lower = self._sums[search, 2 + tokens]
        of, can = self._open(search, tokens)
        upper = lower.index_add(0, of.clamp(min=0), self.frontier.mass.where(can, 0))
        return lower, upper

    def take(self, search: Tensor, tokens: Tensor, width: int) -> Frontier:
        """Take the `width` likeliest continuations that may become each token off the frontier.

        They are ordered by `search`; parameters as for `of`.
        """
        index = self._open(search, tokens)[1].nonzero()[:, 0]
        index = index[self.frontier.mass[index].argsort(descending=True, stable=True)]
        index = index[self.frontier.search[index].argsort(stable=True)]
        ordered = self.frontier.search[index]
        rank = torch.arange(len(index), device=index.device) - torch.searchsorted(ordered, ordered)
        index = index[rank < width]
        taken, left = self.frontier.at(index), torch.ones_like(self.frontier.mass)
        self.frontier = self.frontier.at(left.index_fill_(0, index, 0).nonzero()[:, 0])
        return taken

    def _open(self, search: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Of each continuation: its index in `search` or -1, and if it may become that token."""
        asked = torch.full_like(self._sums[:, 0], -1, dtype=torch.int64)
        asked[search] = torch.arange(len(search), device=search.device)
        of = asked[self.frontier.search]
        return of, (of >= 0) & self.settling.reachable(self.frontier.place, tokens[of])
