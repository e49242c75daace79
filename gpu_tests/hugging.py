"""What texts of Transformers' own `generate` were drawn by, on the trained pairs."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gpu_tests.prefixes import forced_laws
from gpu_tests.recording import Draws
from specref.contrib.real_models.pairs import Pair
from specref.contrib.real_models.transformers_side import Timed
from specref.torch_backend import shape_logits
from specref.torch_backend.methods import AUTOREGRESSIVE, DRAFTERS


def draws(
    pair: Pair, method: str, prompts: Sequence[Sequence[int]], texts: Sequence[Timed]
) -> Draws:
    """Tokens of some texts with p, and at the first draft of each block with a method's q."""
    model = pair.target.model
    p = forced_laws(model, prompts, [text.tokens for text in texts], shape_logits).cpu()
    q, kept = p.clone(), torch.zeros(len(p), dtype=torch.bool)
    starts, contexts, end = [], [], 0
    for prompt, text in zip(prompts, texts, strict=True):
        for part in text.blocks(len(prompt)):
            if part.drafted and method != AUTOREGRESSIVE:
                starts.append(end + part.start)
                contexts.append([*prompt, *text.tokens[: part.start]])
                kept[starts[-1]] = part.accepted > 0
        end += len(text.tokens)
    drafted = torch.zeros_like(kept)
    if contexts:
        q[starts], drafted[starts] = _first_laws(pair, method, contexts), True
    tokens = torch.tensor([token for text in texts for token in text.tokens])
    return Draws(p, q, tokens, torch.zeros_like(tokens), drafted, kept)


def _first_laws(pair: Pair, method: str, contexts: Sequence[Sequence[int]]) -> Tensor:
    seeds = torch.zeros(len(contexts), dtype=torch.int64, device=pair.target.model.device)
    drafts = DRAFTERS[method](pair.for_methods(shape_logits)).draft(contexts, 1, seeds, 0)
    assert drafts.laws is not None
    return drafts.laws[:, 0].float().cpu()
