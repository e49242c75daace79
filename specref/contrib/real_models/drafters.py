"""Drafters with a model's own vocabulary, made of its own weights in a few lines."""

import copy
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from transformers import PreTrainedModel

BLOCK = 32


def rounded_weights(weights: Tensor, bits: int, block: int = BLOCK) -> Tensor:
    """Round to 2**bits levels, evenly from the least to the largest of each block of a row.

    * `weights`: The columns are a multiple of `block`.
    * `bits`: 1 to 8.
    * returns: Of the same shape and dtype.
    * raises `ValueError`: `bits` is out of range, or the columns are no multiple of `block`.

    >>> rounded_weights(torch.tensor([0.0, 0.4, 0.9, 3.0]), bits=2, block=4)
    tensor([0., 0., 1., 3.])
    """
    if not 1 <= bits <= 8:
        raise ValueError(f"bits = {bits}: expected 1 to 8")
    if weights.shape[-1] % block:
        raise ValueError(f"block = {block}: expected a divisor of {weights.shape[-1]} columns")
    blocks = weights.float().reshape(*weights.shape[:-1], -1, block)
    least, most = blocks.amin(-1, keepdim=True), blocks.amax(-1, keepdim=True)
    step = (most - least) / (2**bits - 1)
    levels = ((blocks - least) / step.where(step > 0, 1)).round()
    nearest: Tensor = least + levels * step
    return nearest.reshape(weights.shape).to(weights.dtype)


@torch.no_grad()
def rounded(model: "PreTrainedModel", bits: int = 3, block: int = BLOCK) -> "PreTrainedModel":
    """A copy whose matrices are rounded, those with rows that split into blocks."""
    drafter = copy.deepcopy(model)
    for weights in drafter.parameters():
        if weights.ndim == 2 and not weights.shape[1] % block:
            weights.copy_(rounded_weights(weights, bits, block))
    return drafter


def first_layers(model: "PreTrainedModel", layers: int) -> "PreTrainedModel":
    """The first layers, with the model's own final norm and head: early exit.

    * `model`: With `model.model.layers`, as Llama and its relatives have.
    * `layers`: Less than the model has.
    * raises `ValueError`: `layers` is out of range.
    """
    config: Any = copy.deepcopy(model.config)
    if not 1 <= layers < config.num_hidden_layers:
        raise ValueError(f"layers = {layers}: expected 1 to {config.num_hidden_layers - 1}")
    config.num_hidden_layers = layers
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:layers]
    drafter: Any = type(model)(config)
    kept = drafter.state_dict().keys()
    drafter.load_state_dict(
        {name: one for name, one in model.state_dict().items() if name in kept}
    )
    drafter.generation_config = copy.deepcopy(model.generation_config)
    made: PreTrainedModel = drafter.to(model.device, model.dtype).eval()
    return made
