"""Drafting token by token where drafter tokens are target tokens: shared by TLI and union."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from specref.torch_backend.drafters.drafts import Drafts, Shape
from specref.torch_backend.models.cached import CachedModel
from specref.torch_backend.randomness import DRAFT, uniforms
from specref.torch_backend.validation import NO_DRAFT
from specref.torch_backend.vocabularies.contexts import Reader, windowed
from specref.torch_backend.vocabularies.token_vocabulary import Identity, TokenVocabulary, id_map


class MappedDrafter(ABC):
    """A drafter whose tokens are taken for the target's by an id map.

    Parameters
    ----------
    model : CachedModel
        The drafter.
    target, drafter : TokenVocabulary
        Of the sizes of the two models' logits.
    shape : callable
        From logits to probabilities: `shape_logits` with its temperature, top-k and top-p.
    identity : {"bytes", "string"}
        Which tokens are the same: see `id_map`.

    Attributes
    ----------
    ids : Tensor of int64, shape (len(drafter),)
        The id map.
    shared, images : Tensor of int64, shape (S,)
        The drafter's tokens that the target has, and which of the target's they are.
    back : Tensor of int64, shape (len(target),)
        What the drafter reads for a target token, where it has that.

    Notes
    -----
    What the drafter reads is `contexts.Reader`'s; of a context longer than its positions only
    the end. None of this changes the law of what is emitted.
    """

    def __init__(
        self,
        model: CachedModel,
        target: TokenVocabulary,
        drafter: TokenVocabulary,
        shape: Shape,
        identity: Identity = "bytes",
    ) -> None:
        self.model, self.target, self.drafter, self.shape = model, target, drafter, shape
        self.ids = id_map(target, drafter, identity).to(model.device)
        self.shared = (self.ids >= 0).nonzero()[:, 0]
        self.images = self.ids[self.shared]
        self.eos = -1 if target.eos is None else target.eos
        back = inverse(self.ids.cpu(), drafter)
        read_as = [back.get(token, 0) for token in range(len(target))]
        self.back = torch.tensor(read_as, device=model.device)
        self._read = Reader(target, drafter, back)

    def draft(
        self, contexts: Sequence[Sequence[int]], lookahead: int, seeds: Tensor, iteration: int
    ) -> Drafts:
        """Draft up to `lookahead` tokens for every row, with the laws they are drawn from.

        A row ends with EOS, with a token outside the target's vocabulary, or where there is
        nothing to draw from; after that its tokens are ``NO_DRAFT`` and its laws 0.

        Raises
        ------
        ValueError
            The drafter's logits are not of its vocabulary's size.
        """
        coins = uniforms(seeds.to(self.model.device), iteration, DRAFT, lookahead)
        tokens = torch.full_like(coins, NO_DRAFT, dtype=torch.int64)
        laws = coins.new_zeros((*coins.shape, len(self.target)))
        if not len(self.shared) or not lookahead:
            return Drafts(tokens, laws, 0)
        before, goes_on = self.model.forwards, torch.ones_like(tokens[:, 0], dtype=torch.bool)
        room = self.model.positions + 1 - lookahead
        logits = self.model.logits([windowed(ids, room) for ids in self._read(contexts)])
        for i in range(lookahead):
            self.drafter.check_logits(logits)
            token, drafted, law = self.pick(logits[:, -1].double(), coins[:, i])
            tokens[:, i] = token.where(goes_on, NO_DRAFT)
            laws[:, i] = law * goes_on[:, None]
            goes_on = goes_on & (token >= 0) & (token != self.eos)
            logits = self.model.extend(drafted[:, None]) if i + 1 < lookahead else logits
        return Drafts(tokens, laws, self.model.forwards - before)

    def select(self, rows: Sequence[int]) -> None:
        if len(self.shared):
            self._read.select(rows)
            self.model.select(rows)

    @abstractmethod
    def pick(self, logits: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Draw one token for each row.

        Parameters
        ----------
        logits : Tensor of float64, shape (B, len(drafter))
        uniforms : Tensor of float64, shape (B,)

        Returns
        -------
        tokens, drafted : Tensor of int64, shape (B,)
            The target's token, ``OUTSIDE`` or ``NO_DRAFT``; and what the drafter reads next.
        laws : Tensor of float64, shape (B, len(target))
            The law of `tokens`, up to that of ``OUTSIDE``.
        """
        ...


def inverse(ids: Tensor, drafter: TokenVocabulary) -> dict[int, int]:
    """{target token: drafter token} of an id map: of several the one of `by_bytes`.

    Examples
    --------
    >>> drafter = TokenVocabulary(("<0x62>", "b", "x"), (b"b", b"b", b"x"), {}, None)
    >>> inverse(torch.tensor([1, 1, -1]), drafter)
    {1: 1}
    """
    usual = set(drafter.by_bytes.values())
    order = sorted(range(len(ids)), key=lambda d: (d == drafter.eos, d in usual, -d))
    pairs = zip(order, ids[order].tolist(), strict=True)
    return {token: d for d, token in pairs if token >= 0}
