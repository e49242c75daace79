"""Token-level intersection (TLI): Timor et al. 2025, Algorithm 4, over real vocabularies.

The drafter's law is carried to the target's ids before anything else: restricted to the shared
tokens and renormalised there, the mass of drafter tokens that are one target token summed. Only
then is it shaped, as the target's law is: top-k and top-p keep shared tokens alone, so that the
law is never empty where a shared token has any mass, and ties fall as they do for the target.
That shaped law q' is both what drafts are drawn from and what is declared. (Shaping first would
be lossless too, but spends top-k and top-p on tokens that cannot be drafted.)
"""

import torch
from torch import Tensor

from specref.torch_backend.drafters.mapped import MappedDrafter
from specref.torch_backend.shaping import draw
from specref.torch_backend.validation import NO_DRAFT


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
