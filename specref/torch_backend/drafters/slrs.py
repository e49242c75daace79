"""String-level rejection sampling (SLRS), without psi: Timor et al. 2025, Algorithm 3.

The drafter writes text until the longest target token that starts it is determined: that token
is the draft. One iteration repeats this for each of its draft tokens, after the tokens drafted so
far; text written past t_k is dropped. So t_k has the law psi(. | context t_<k), the push-forward
of the law of drafter *tokens*: a text that can be written in several ways is drafted in any of
them, and has the mass of all. Verification is that of Algorithm 3, by p and psi.

But nobody needs the law psi: a verdict asks on which side of a number psi(t) is. So the drafter's
continuations are read, likeliest first, until bounds of psi(t) tell (`psi_bounds`), and the token
after a rejection is drawn by rejection as well (`lazy_verification`). Every verdict is that of the
whole psi with the same coin.

(The text that was dropped may be what showed that t_1 is not longer. To keep it, psi of t_2 would
have to be conditioned on that event. It is lossless without, and accepts less where the drafter
would have gone on with a longer token.)
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from specref.torch_backend.drafters.drafts import Drafts, Shape
from specref.torch_backend.drafters.lazy_drafting import Drafting
from specref.torch_backend.drafters.lazy_verification import LazyVerifier
from specref.torch_backend.drafters.mapped import inverse
from specref.torch_backend.drafters.psi_bounds import LawTrees, PsiBounds
from specref.torch_backend.drafters.settling import Settling
from specref.torch_backend.models.trees import TreeModel
from specref.torch_backend.randomness import DRAFT, uniforms
from specref.torch_backend.shaping import sent
from specref.torch_backend.validation import NO_DRAFT
from specref.torch_backend.vocabularies.contexts import Reader, windowed
from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary, id_map

WIDTH = 8


class SlrsDrafter:
    """Drafts the target tokens that a draft model's text starts with, and verifies them by bounds.

    Parameters
    ----------
    model : TreeModel
        The draft model.
    target, drafter : TokenVocabulary
        Of any kind: the text of a draft model's token is what `spelled` says. Where the tokeniser
        normalises, that is not quite what it would write, which costs acceptance and no more.
        Where several target tokens have the same bytes, text becomes that of `by_bytes`.
    shape : callable
        From the draft model's logits to the distribution of its next token.
    width : int
        How many continuations of a row are read in one forward, at most, while a verdict is open.
        More than a few hardly save forwards: the likeliest ones decide.

    Attributes
    ----------
    reads : int
        After how many contexts and continuations the draft model's distribution was asked for.

    Raises
    ------
    ValueError
        `width` < 1, or a vocabulary has no token that is text.

    Notes
    -----
    EOS of the draft model where a token would start is EOS of the target; anywhere else it ends
    the token before it, as do other special tokens. What starts no token of the target is
    ``OUTSIDE``.

    After a draft the draft model goes on from what `contexts.Reader` makes of it: text that it
    wrote beyond the draft is dropped. A row has fewer drafts where the model's positions end.
    """

    def __init__(
        self,
        model: TreeModel,
        target: TokenVocabulary,
        drafter: TokenVocabulary,
        shape: Shape,
        width: int = WIDTH,
    ) -> None:
        if width < 1:
            raise ValueError(f"width = {width}: expected at least 1")
        self.model, self.target, self.drafter, self.shape = model, target, drafter, shape
        self.width, self.trie = width, target.trie
        self.settling = Settling(self.trie, target, drafter, model.device)
        self._read = Reader(target, drafter, inverse(id_map(target, drafter), drafter))
        self._before = 0
        self._trees: LawTrees | None = None

    @property
    def reads(self) -> int:
        return self._before + (0 if self._trees is None else self._trees.reads)

    @torch.inference_mode()
    def draft(
        self, contexts: Sequence[Sequence[int]], lookahead: int, seeds: Tensor, iteration: int
    ) -> Drafts:
        """Draft up to `lookahead` target tokens for every row, and what verifies them.

        A row ends with EOS or with text that is no token of the target; after that its tokens
        are ``NO_DRAFT``.

        Raises
        ------
        ValueError
            The draft model's logits are not of its vocabulary's size, or its positions too few.
        """
        seeds, before = seeds.to(self.model.device), self.model.forwards
        most = self.model.positions + 1 - self.trie.depth
        rows = [windowed(ids, most) for ids in self._read(contexts)]
        coins = uniforms(seeds, iteration, DRAFT, lookahead * self.trie.depth)
        coins = coins.view(len(rows), lookahead, self.trie.depth)
        trees = LawTrees(self.model, self.drafter, self.shape, rows)
        bounds = PsiBounds(self.settling, len(rows) * lookahead, len(self.target))
        rooms = [most - len(row) for row in rows]
        drafted = Drafting(trees, bounds, self._read, rooms, coins).run()
        self._before, self._trees = self.reads, trees
        padded = [row + [NO_DRAFT] * (lookahead - len(row)) for row in drafted]
        tokens = sent(padded, self.model.device)
        verifier = LazyVerifier(trees, bounds, lookahead, seeds, iteration, self.width)
        return Drafts(tokens, None, self.model.forwards - before, verifier)

    def select(self, rows: Sequence[int]) -> None:
        self._read.select(rows)
        self.model.select(rows)
