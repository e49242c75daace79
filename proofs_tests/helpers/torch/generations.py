"""What generations are asked for in tests: models, tokenizers, prompts; and greedy text."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from proofs_tests.helpers.torch.models import gpt2, llama
from proofs_tests.helpers.torch.tokenizers import byte_level, unigram


def arguments(method: str, seed: int = 1) -> dict[str, Any]:
    """A target and a drafter, with tokenizers of their own where the method is for two."""
    if method in ("standard", "autoregressive"):
        models = gpt2(seed).double(), llama(seed + 1).double()
        return {"target": models[0], "drafter": models[1], "method": method}
    tokenizer, other = byte_level(), unigram()
    return {
        "target": gpt2(seed, size=len(tokenizer)).double(),
        "drafter": llama(seed + 1, size=len(other)).double(),
        "tokenizer": tokenizer,
        "drafter_tokenizer": other,
        "method": method,
    }


def prompts(rows: int, size: int = 7) -> list[list[int]]:
    rng = np.random.default_rng(rows)
    return [rng.integers(0, size, rng.integers(1, 9)).tolist() for _ in range(rows)]


def greedy(model: PreTrainedModel, prompt: Sequence[int], length: int) -> tuple[int, ...]:
    text = torch.tensor([list(prompt)])
    for _ in range(length):
        with torch.no_grad():
            text = torch.cat([text, model(text).logits[:, -1:].argmax(-1)], 1)
    return tuple(text[0, len(prompt) :].tolist())
