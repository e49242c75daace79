"""The interface of drafters, and the drafter of standard speculative decoding."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import torch
from torch import Tensor

from specref.torch_backend.models.cached import CachedModel
from specref.torch_backend.randomness import DRAFT, Coins, uniforms
from specref.torch_backend.shaping import draw, sent
from specref.torch_backend.validation import padded_drafts

Shape: TypeAlias = Callable[[Tensor], Tensor]


class Verified(NamedTuple):
    """Blocks, as `verify` returns them, and how often a drafter model was called for them."""

    tokens: Tensor
    counts: Tensor
    forwards: int


class Verifier(Protocol):
    """Verifies drafts whose laws are not declared."""

    def verify(self, p: Tensor, drafts: Tensor, coins: Coins) -> Verified:
        """Verify K drafts of R rows, p the target's laws after none, one and more of them.

        Coins are the rows' `accept` and `final`. What further coins there are, is theirs to say.
        """


@dataclass(frozen=True)
class Drafts:
    """Draft tokens of a batch, and the distributions they were drawn from.

    Attributes
    ----------
    tokens : Tensor of int64, shape [B, K]
        Ids of the target. ``NO_DRAFT`` (-1) from the end of a row on; ``OUTSIDE`` (-2) where
        something was drafted that is no token of the target.
    laws : Tensor or None, shape [B, K, V]
        Over the target's vocabulary; their sums are less than 1 by the mass that is outside.
        None: nothing is declared, and drafts are kept while target samples equal them, unless
        there is a verifier.
    forwards : int
        How often a draft model was called.
    verifier : Verifier, optional
        What knows the distributions.
    """

    tokens: Tensor
    laws: Tensor | None
    forwards: int
    verifier: Verifier | None = None

    @property
    def matching(self) -> bool:
        """Whether these drafts are verified by exact match."""
        return self.laws is None and self.verifier is None


class Drafter(Protocol):
    """Anything that proposes tokens for the texts of a batch."""

    def draft(
        self,
        contexts: Sequence[Sequence[int]],
        lookahead: int,
        seeds: Tensor,
        iteration: int,
    ) -> Drafts:
        """Propose up to `lookahead` tokens after each context.

        Parameters
        ----------
        contexts : sequence of sequence of int
            Whole texts in the target's tokens: prompt and what was emitted. In every iteration
            as many, in the same order, but for those that `select` dropped.
        lookahead : int
            At least 1.
        seeds : Tensor of int64, shape [B]
            One for each text, the same in every iteration.
        iteration : int
            Counts from 0; with the seeds, all the randomness there is.
        """

    def select(self, rows: Sequence[int]) -> None:
        """Drop all texts of the last call but these, which are numbered anew."""


class StandardDrafter:
    """Drafts from a model with the target's own vocabulary (Leviathan et al. 2023).

    Parameters
    ----------
    model : CachedModel
    shape : callable
        From logits to the distribution that is sampled from, and declared: `shape_logits` with the
        target's temperature, top-k and top-p.

    Examples
    --------
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> model = GPT2LMHeadModel(GPT2Config(vocab_size=5, n_embd=8, n_layer=1, n_head=2)).eval()
    >>> drafter = StandardDrafter(CachedModel(model), lambda logits: logits.softmax(-1))
    >>> drafts = drafter.draft([[1, 2], [3]], 3, torch.tensor([7, 8]), iteration=0)
    >>> drafts.tokens.shape, drafts.laws.shape, drafts.forwards
    (torch.Size([2, 3]), torch.Size([2, 3, 5]), 3)
    """

    def __init__(self, model: CachedModel, shape: Shape) -> None:
        self.model, self.shape = model, shape

    def draft(
        self,
        contexts: Sequence[Sequence[int]],
        lookahead: int,
        seeds: Tensor,
        iteration: int,
    ) -> Drafts:
        """One forward for each draft; fewer drafts where the model's positions end.

        Parameters and result as for `Drafter.draft`.
        """
        room = [self.model.positions + 1 - len(context) for context in contexts]
        coins = uniforms(seeds.to(self.model.device), iteration, DRAFT, lookahead)
        drawn: list[Tensor] = []
        laws: list[Tensor] = []
        for coin in coins[:, : max(room)].unbind(1):
            if drawn:
                logits = self.model.extend(drawn[-1][:, None])
            else:
                logits = self.model.logits(contexts)
            laws.append(self.shape(logits[:, -1]))
            drawn.append(draw(laws[-1], coin))
        tokens = torch.stack(drawn, 1)
        if min(room) < lookahead:
            tokens = padded_drafts(tokens, sent(room, tokens.device))[:, :-1]
        return Drafts(tokens, torch.stack(laws, 1), tokens.shape[1])

    def select(self, rows: Sequence[int]) -> None:
        self.model.select(rows)
