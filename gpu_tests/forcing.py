"""Laws by teacher forcing: one pass over a whole text, with no cache and no loop."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from specref.torch_backend.drafters.drafts import Shape

BATCH = 32_768


@torch.inference_mode()
def forced_logits(
    model: PreTrainedModel, prompts: Sequence[Sequence[int]], texts: Sequence[Sequence[int]]
) -> Tensor:
    """The logits that each token of each text was to be drawn by, one row after the other.

    Parameters
    ----------
    prompts, texts : sequences of sequence of int
        What is given, and what follows it.

    Returns
    -------
    Tensor, shape (all tokens of `texts`, V)
    """
    found = []
    for batch in _batches(prompts, texts):
        whole = [[*prompt, *text] for prompt, text in batch]
        longest = max(map(len, whole))
        # What stands to the right of a text is not attended to.
        padded = [row + [0] * (longest - len(row)) for row in whole]
        logits = model(input_ids=torch.tensor(padded).to(model.device), use_cache=False).logits
        for row, (prompt, text) in zip(logits, batch, strict=True):
            found.append(row[len(prompt) - 1 : len(prompt) + len(text) - 1])
    return torch.cat(found)


def forced_laws(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    texts: Sequence[Sequence[int]],
    shape: Shape,
) -> Tensor:
    """As `forced_logits`, shaped to laws."""
    logits = forced_logits(model, prompts, texts)
    return torch.cat([shape(rows) for rows in logits.split(BATCH)])


def _batches(
    prompts: Sequence[Sequence[int]], texts: Sequence[Sequence[int]]
) -> Iterator[list[tuple[Sequence[int], Sequence[int]]]]:
    both = list(zip(prompts, texts, strict=True))
    longest = max(len(prompt) + len(text) for prompt, text in both)
    step = max(1, BATCH // longest)
    for start in range(0, len(both), step):
        yield both[start : start + step]
