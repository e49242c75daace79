"""Speculative decoding over the union of two vocabularies: Timor et al. 2025, Algorithm 1.

The drafter samples from its full law q. A draft that is no token of the target is always
rejected, so it ends the row; the residual there is against q on the target's tokens, which
sums to less than 1 by the mass that is outside.
"""

from torch import Tensor

from specref.torch_backend.drafters.mapped import MappedDrafter
from specref.torch_backend.shaping import draw
from specref.torch_backend.validation import OUTSIDE


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
