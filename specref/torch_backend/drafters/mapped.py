"""Drafting token by token where drafter tokens are target tokens: by TLI, and over the union.

Token-level intersection (TLI) is Algorithm 4 of Timor et al. 2025. The drafter's law is carried
to the target's ids before anything else: restricted to the shared tokens and renormalised there,
the mass of drafter tokens that are one target token summed. Only then is it shaped, as the
target's law is: top-k and top-p keep shared tokens alone, so that the law is never empty where a
shared token has any mass, and ties fall as they do for the target. That shaped law q' is both
what drafts are drawn from and what is declared. (Shaping first would be lossless too, but spends
top-k and top-p on tokens that cannot be drafted.)

The union of two vocabularies is Algorithm 1. The drafter samples from its full law q. A draft
that is no token of the target is always rejected, so it ends the row; the residual there is
against q on the target's tokens, which sums to less than 1 by the mass that is outside.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from specref.torch_backend.drafters.drafts import Drafts, Shape
from specref.torch_backend.models.cached import CachedModel
from specref.torch_backend.randomness import DRAFT, uniforms
from specref.torch_backend.shaping import draw
from specref.torch_backend.validation import NO_DRAFT, OUTSIDE
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
        # The drafter's tokens that the target has, their images, and what is read for an image.
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


def inverse(ids: Tensor, drafter: TokenVocabulary) -> dict[int, int]:
    """{target token: drafter token} of an id map: of several the one of `by_bytes`.

    >>> drafter = TokenVocabulary(("<0x62>", "b", "x"), (b"b", b"b", b"x"), {}, None)
    >>> inverse(torch.tensor([1, 1, -1]), drafter)
    {1: 1}
    """
    usual = set(drafter.by_bytes.values())
    order = sorted(range(len(ids)), key=lambda d: (d == drafter.eos, d in usual, -d))
    pairs = zip(order, ids[order].tolist(), strict=True)
    return {token: d for d, token in pairs if token >= 0}


class TliDrafter(MappedDrafter):
    """Drafts shared tokens from q', the draft model's distribution on them, renormalised.

    Parameters as for `MappedDrafter`. With an empty intersection nothing is drafted, nor where
    no shared token has any mass.

    Examples
    --------
    >>> from transformers import LlamaConfig, LlamaForCausalLM
    >>> from specref.torch_backend.models.cached import CachedModel
    >>> from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary
    >>> target = TokenVocabulary(("a", "b"), (b"a", b"b"), {}, None)
    >>> drafter = TokenVocabulary(("x", "b", "a"), (b"x", b"b", b"a"), {}, None)
    >>> config = LlamaConfig(
    ...     vocab_size=3, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2,
    ... )
    >>> model = CachedModel(LlamaForCausalLM(config).eval())
    >>> tli = TliDrafter(model, target, drafter, lambda logits: logits.softmax(-1))
    >>> token, drafted, law = tli.pick(torch.tensor([[3.0, 0.0, 0.0]]), torch.tensor([0.7]))
    >>> token, drafted, law
    (tensor([1]), tensor([1]), tensor([[0.5000, 0.5000]], dtype=torch.float64))
    """  # fmt: skip

    def pick(self, logits: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        shared = logits[:, self.shared].double()
        alive = shared.amax(dim=-1, keepdim=True) > -torch.inf
        mass = shared.where(alive, 0).softmax(dim=-1)
        projected = mass.new_zeros(len(mass), len(self.target)).index_add_(1, self.images, mass)
        law = self.shape(projected.log())
        tokens = draw(law, uniforms)
        return tokens.where(alive[:, 0], NO_DRAFT), self.back[tokens], law * alive


class UnionDrafter(MappedDrafter):
    """Drafts from the draft model's own distribution, shaped over its own vocabulary.

    Parameters as for `MappedDrafter`. With an empty intersection nothing is drafted: every
    draft would be rejected, and leave the target's distribution.

    Examples
    --------
    >>> import torch
    >>> from transformers import LlamaConfig, LlamaForCausalLM
    >>> from specref.torch_backend.models.cached import CachedModel
    >>> from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary
    >>> target = TokenVocabulary(("a", "b"), (b"a", b"b"), {}, None)
    >>> drafter = TokenVocabulary(("x", "b", "a"), (b"x", b"b", b"a"), {}, None)
    >>> config = LlamaConfig(
    ...     vocab_size=3, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2,
    ... )
    >>> model = CachedModel(LlamaForCausalLM(config).eval())
    >>> union = UnionDrafter(model, target, drafter, lambda logits: logits.softmax(-1))
    >>> union.pick(torch.tensor([[2.0, 1.0, 1.0]]).log(), torch.tensor([0.4]))[::2]
    (tensor([-2]), tensor([[0.2500, 0.2500]]))
    """  # fmt: skip

    def pick(self, logits: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q = self.shape(logits)
        drafted = draw(q, uniforms)
        tokens = self.ids[drafted]
        law = q.new_zeros(len(q), len(self.target)).index_add_(1, self.images, q[:, self.shared])
        return tokens.where(tokens >= 0, OUTSIDE), drafted, law
