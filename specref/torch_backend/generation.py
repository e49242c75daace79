"""Lossless generation with Transformers' causal language models, in batches."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from specref.torch_backend import methods
from specref.torch_backend.drafters.drafts import Drafter
from specref.torch_backend.loop import Loop, Rules
from specref.torch_backend.methods import AUTOREGRESSIVE, BLOCK, DRAFTERS, FORMER, Pair
from specref.torch_backend.models.cached import CachedModel
from specref.torch_backend.models.configs import vocabulary_size
from specref.torch_backend.shaping import shape_logits
from specref.torch_backend.statistics import Generation

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Decoder:
    """Generates like `generate`, and keeps what all batches of a pair of models share.

    The tokenizers are read once: what is changed in them later is not seen. The models' caches
    are not kept, so that a text does not depend on those before it. The models stay on the
    devices where the first batch found them.

    Parameters
    ----------
    target, drafter, method, verification, tokenizer, drafter_tokenizer
        As for `generate`.
    temperature, top_k, top_p, use_cache
        As for `generate`.

    Raises
    ------
    TypeError, ValueError
        As `generate`.

    Examples
    --------
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> config = GPT2Config(vocab_size=5, n_embd=8, n_layer=1, n_head=2, n_positions=32)
    >>> target, drafter = GPT2LMHeadModel(config), GPT2LMHeadModel(config)
    >>> decoder = Decoder(target, drafter, verification="block")
    >>> first = decoder.generate([[1, 2]], seeds=[7], max_new_tokens=6)
    >>> again = decoder.generate([[3], [1, 2]], seeds=[8, 7], max_new_tokens=6)
    >>> again.tokens[1] == first.tokens[0]
    True
    """

    def __init__(
        self,
        target: "PreTrainedModel",
        drafter: "PreTrainedModel | None",
        *,
        method: str = "standard",
        verification: str = "token",
        tokenizer: Any = None,
        drafter_tokenizer: Any = None,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        use_cache: bool = True,
    ) -> None:
        method = FORMER.get(method, method)
        methods.check_method(method, verification)
        methods.check_models(target=target, drafter=drafter)
        methods.check_pair(method, target, drafter, tokenizer, drafter_tokenizer)
        if use_cache:
            methods.check_caches(method, target, drafter)
        self.target, self.drafter, self.tokenizer = target, drafter, tokenizer
        self.method, self.verification, self.use_cache = method, verification, use_cache
        self._drafter_tokenizer = drafter_tokenizer
        self._shape = partial(shape_logits, temperature=temperature, top_k=top_k, top_p=top_p)
        self._shape(torch.zeros(1))

    def generate(
        self,
        prompts: Sequence[str | Sequence[int]],
        *,
        seeds: Sequence[int] | Tensor,
        lookahead: int = 4,
        max_new_tokens: int = 64,
        eos: int | Collection[int] | None = None,
    ) -> Generation:
        """Generate the texts of a batch; parameters, result and errors as for `generate`."""
        methods.check_numbers(lookahead, max_new_tokens)
        size, device = vocabulary_size(self.target.config), self.target.device
        rows = methods.as_prompts(prompts, self.tokenizer, size)
        one = self.method == "standard"
        readers = {"target": self.target} | ({"drafter": self.drafter} if one else {})
        methods.check_room(rows, max_new_tokens, **readers)
        ends = methods.as_eos(eos, size)
        clipped, jointly = self.method != "slem", self.verification == BLOCK
        rules = Rules(self._shape, lookahead, max_new_tokens, ends, clipped, jointly)
        coins, target = methods.as_seeds(seeds, len(rows), device), self.target
        with self._drafting(lookahead) as drafter, evaluating(target, self.drafter):
            return Loop(CachedModel(target, self.use_cache), drafter, rows, coins, rules).run()

    @contextmanager
    def _drafting(self, lookahead: int) -> Iterator[Drafter | None]:
        """The drafter, or None; afterwards it forgets these texts."""
        drafter = self._drafter if lookahead and self.method != AUTOREGRESSIVE else None
        try:
            yield drafter
        finally:
            if drafter is not None:
                drafter.select([])

    @cached_property
    def _drafter(self) -> Drafter:
        assert self.drafter is not None
        tokenizers = self.tokenizer, self._drafter_tokenizer
        pair = Pair(self.target, self.drafter, *tokenizers, self._shape, self.use_cache)
        return DRAFTERS[self.method](pair)


def generate(
    target: "PreTrainedModel",
    drafter: "PreTrainedModel | None",
    prompts: Sequence[str | Sequence[int]],
    *,
    seeds: Sequence[int] | Tensor,
    method: str = "standard",
    verification: str = "token",
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
    """Generate text that has the target's distribution, and with temperature 0 is its greedy text.

    Leviathan et al. 2023, Algorithm 1, for one vocabulary; Timor et al. 2025, Algorithms 1
    (union), 2 (SLEM), 3 (SLRS) and 4 (TLI) for two. The distribution is that of the target after
    temperature, top-k and top-p, which the draft model's distributions go through once as well.

    Parameters
    ----------
    target, drafter : transformers.PreTrainedModel
        Causal language models; they are not changed. The draft model may be None if the method is
        "autoregressive".
    prompts : sequence
        Of token ids, or of text if there is a `tokenizer`.
    seeds : sequence of int, or Tensor
        One for each prompt. A row depends on its prompt and seed, not on other rows
        (but for the rounding of the models).
    method : {"standard", "union", "tli", "slem", "slrs", "autoregressive"}
        The last does not draft; it is the loop with lookahead 0.
    tokenizer, drafter_tokenizer : transformers tokenizers
        For the methods with two vocabularies.
    verification : {"token", "block"}
        By "block", drafts are accepted jointly (Sun et al. 2024, Algorithm 2): no fewer in
        expectation. For methods whose draft model declares its distributions: standard, union,
        tli.
    lookahead : int
        The tokens that are drafted in an iteration: the draft model's with "slem", else the
        target's.
    max_new_tokens : int
        A text ends there, or earlier with one of `eos`.
    temperature, top_k, top_p
        As for `shape_logits`.
    eos : int or collection of int, optional
        Target tokens that end a text, such as ``tokenizer.eos_token_id``. None: no token does.
    use_cache : bool
        False reads every text again in every forward: slow, and for any causal architecture.
        True is refused where a cache cannot be cropped, as that of state-space models.

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
    decoder = Decoder(
        target,
        drafter,
        method=method,
        verification=verification,
        tokenizer=tokenizer,
        drafter_tokenizer=drafter_tokenizer,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        use_cache=use_cache,
    )
    return decoder.generate(
        prompts, seeds=seeds, lookahead=lookahead, max_new_tokens=max_new_tokens, eos=eos
    )


@contextmanager
def evaluating(*models: "PreTrainedModel | None") -> Iterator[None]:
    """Turn off dropout and the like inside; afterwards every module is as before."""
    given = (model for model in models if model is not None)
    modules = [module for model in given for module in model.modules() if module.training]
    for module in modules:
        module.training = False
    try:
        yield
    finally:
        for module in modules:
            module.training = True
