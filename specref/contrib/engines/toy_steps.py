"""Functions of others in torch: loops, which are given toy models, and verifiers of one row."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, TypeAlias, Unpack

import numpy as np
import torch

from specref.arrays import Floats, Ints, one_hot_rows
from specref.contracts.capabilities import Claims, capable
from specref.contracts.process_state import global_randomness, one_thread, seeded
from specref.contrib.engines.toy_transformers import ToyModel
from specref.models import Model
from specref.vocabulary import Tokens

REMEMBERED_MODELS = 64
Decode: TypeAlias = Callable[[ToyModel, ToyModel, torch.Tensor, int], Sequence[int]]
"""(target, drafter, prompt of one row, lookahead or tokens) -> the tokens after the prompt."""


def on_toys(decode: Decode, **claims: Unpack[Claims]) -> Callable[..., Tokens]:
    """A function under the contract ``step``, or ``generate``: both are a pair and a number.

    Global generators of Python, NumPy and torch are seeded. A prompt starts with an id that no
    vocabulary has. What comes after EOS is cut: it changes nothing before.

    * `claims`: As for `capable`.
    """

    @lru_cache(REMEMBERED_MODELS)
    def toy(model: Model) -> ToyModel:
        made = ToyModel(model, len(model.vocabulary) + 1)
        made.train(False)
        return made

    @capable(**claims)
    def run(
        target: Model, drafter: Model, context: Tokens, number: int, rng: np.random.Generator
    ) -> Tokens:
        pair, end = (toy(target), toy(drafter)), target.vocabulary.eos
        prompt = torch.tensor([[pair[0].known, *context]])
        with global_randomness(rng), one_thread(), torch.no_grad():
            tokens = tuple(decode(*pair, prompt, number))
        for one in pair:
            one.forwards.clear()
        last = None if end is None else target.vocabulary.ids[end]
        return tokens[: tokens.index(last) + 1] if last in tokens else tokens

    return run


class WithTuples:
    """A toy model whose cache is a pair of tensors for each layer, as it was in Transformers."""

    device = "cpu"

    def __init__(self, toy: ToyModel) -> None:
        self.toy = toy

    def __call__(
        self, input_ids: torch.Tensor, past_key_values: Any = None, use_cache: bool = True
    ) -> SimpleNamespace:
        """Logits after each of these ids, and the ids so far as keys and values of one layer."""
        before = [keys[:, 0, :, 0] for keys, _ in past_key_values or ()]
        whole = torch.cat([*before, input_ids], dim=1)
        kept = whole[:, None, :, None]
        logits = self.toy(whole).logits[:, -input_ids.shape[1] :]
        return SimpleNamespace(logits=logits, past_key_values=((kept, kept),))


VerifyRow: TypeAlias = Callable[[torch.Tensor, torch.Tensor, Tokens], Tokens]
"""(logits of the target, one row more than drafts; of the drafter; drafts) -> the block."""


def row_by_row(
    verify_row: VerifyRow, device: str = "cpu", rule: str | None = None
) -> Callable[..., tuple[Ints, Ints]]:
    """A function under the contract ``verify``.

    A row without drafts is drawn from the target by `torch.multinomial`, as engines do: functions
    that verify are never called for one.

    * `verify_row`: Logits are log p in float32, -inf for 0.
    * `rule`: As for `capable`.
    """

    @capable(rule=rule)
    def verify(
        target_probs: Floats,
        draft_probs: Floats | None,
        draft_tokens: Ints,
        *,
        rng: np.random.Generator,
    ) -> tuple[Ints, Ints]:
        size = target_probs.shape[2]
        given = one_hot_rows(draft_tokens, size) if draft_probs is None else draft_probs
        p, q = (torch.from_numpy(one).log().float().to(device) for one in (target_probs, given))
        tokens = np.full((len(draft_tokens), draft_tokens.shape[1] + 1), -1)
        with seeded(rng, device), torch.no_grad():
            for row, drafts in enumerate(draft_tokens):
                known = tuple(drafts[drafts >= 0].tolist())
                if known:
                    block = verify_row(p[row, : len(known) + 1], q[row, : len(known)], known)
                else:
                    block = (int(torch.multinomial(p[row, 0].softmax(dim=-1), num_samples=1)),)
                tokens[row, : len(block)] = block
        return tokens, (tokens >= 0).sum(axis=1)

    return verify
