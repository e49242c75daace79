"""Lossless generation with Transformers' causal language models, in batches."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from specref.torch_backend import inputs
from specref.torch_backend.cached import CachedModel
from specref.torch_backend.loop import Loop, Rules
from specref.torch_backend.methods import AUTOREGRESSIVE, DRAFTERS, Pair
from specref.torch_backend.shaping import shape_logits
from specref.torch_backend.statistics import Generation

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def generate(
    target: "PreTrainedModel",
    drafter: "PreTrainedModel | None",
    prompts: Sequence[str | Sequence[int]],
    *,
    seeds: Sequence[int] | Tensor,
    method: str = "standard",
    tokenizer: Any = None,
    drafter_tokenizer: Any = None,
    lookahead: int = 4,
    max_new_tokens: int = 64,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    eos: int | Collection[int] | None = None,
    use_cache: bool = True,
) -> Generation:
    """Generate text that has the target's law, and with temperature 0 is its greedy text.

    Leviathan et al. 2023, Algorithm 1, for one vocabulary; Timor et al. 2025, Algorithms 1
    (union), 2 (SLEM), 3 (SLRS) and 4 (TLI) for two. The law is that of the target after
    temperature, top-k and top-p, which the drafter's laws go through once as well.

    Parameters
    ----------
    target, drafter : transformers.PreTrainedModel
        Causal language models with full attention; they are not changed. The drafter may be
        None if the method is "autoregressive".
    prompts : sequence
        Of token ids, or of text if there is a `tokenizer`.
    seeds : sequence of int, or Tensor
        One for each prompt. A row depends on its prompt and seed, not on the rows beside it
        (but for the rounding of the models).
    method : {"standard", "union", "tli", "slem", "slrs", "lazy-slrs", "autoregressive"}
        "slrs" takes a drafter of single bytes, "lazy-slrs" any, and is faster. The last does not
        draft; it is the loop with lookahead 0.
    tokenizer, drafter_tokenizer : transformers tokenizers
        For the methods with two vocabularies.
    lookahead : int
        The tokens that are drafted in an iteration: the drafter's with "slem", else the target's.
    max_new_tokens : int
        A text ends there, or earlier with one of `eos`.
    temperature, top_k, top_p
        As for `shape_logits`.
    eos : int or collection of int, optional
        Target tokens that end a text, such as ``tokenizer.eos_token_id``. None: no token does.
    use_cache : bool
        False reads everything again in every forward.

    Returns
    -------
    Generation
        The new tokens of each row, and what it took.

    Raises
    ------
    TypeError, ValueError
        An argument is out of range, of another type, or missing; the message names it. Or the
        target's logits are NaN.

    Examples
    --------
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> config = GPT2Config(vocab_size=5, n_embd=8, n_layer=1, n_head=2, n_positions=32)
    >>> target, drafter = GPT2LMHeadModel(config), GPT2LMHeadModel(config)
    >>> generation = generate(target, drafter, [[1, 2], [3]], seeds=[7, 8], max_new_tokens=6)
    >>> [len(tokens) for tokens in generation.tokens]
    [6, 6]
    >>> same = generate(target, target, [[1, 2]], seeds=[7], max_new_tokens=9, lookahead=2)
    >>> same.acceptance_rate, same.tokens_per_target_forward
    (1.0, 3.0)
    """
    inputs.check_method(method, lookahead, max_new_tokens)
    inputs.check_models(target=target, drafter=drafter)
    inputs.check_pair(method, target, drafter, tokenizer, drafter_tokenizer)
    size = target.config.vocab_size
    rows = inputs.as_prompts(prompts, tokenizer, size)
    readers = {"target": target} | ({"drafter": drafter} if method == "standard" else {})
    inputs.check_room(rows, max_new_tokens, **readers)
    shape = partial(shape_logits, temperature=temperature, top_k=top_k, top_p=top_p)
    shape(torch.zeros(1))
    ends, clipped = inputs.as_eos(eos, size), method != "slem"
    rules = Rules(shape, lookahead, max_new_tokens, ends, clipped)
    coins = inputs.as_seeds(seeds, len(rows), target.device)
    proposes = None
    if drafter is not None and method != AUTOREGRESSIVE and lookahead:
        pair = Pair(target, drafter, tokenizer, drafter_tokenizer, shape, use_cache)
        proposes = DRAFTERS[method](pair)
    with evaluating(target, *([] if drafter is None else [drafter])):
        return Loop(CachedModel(target, use_cache), proposes, rows, coins, rules).run()


@contextmanager
def evaluating(*models: "PreTrainedModel") -> Iterator[None]:
    """Dropout and the like are off inside; afterwards every module is as before."""
    modules = [module for model in models for module in model.modules() if module.training]
    for module in modules:
        module.training = False
    try:
        yield
    finally:
        for module in modules:
            module.training = True
