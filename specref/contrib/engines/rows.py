"""Functions of others that verify one row of drafts, in torch, called for every row of a batch."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch

from specref.arrays import Floats, Ints, one_hot_rows
from specref.contracts.capabilities import capable
from specref.contracts.process_state import seeded
from specref.vocabulary import Tokens

VerifyRow: TypeAlias = Callable[[torch.Tensor, torch.Tensor, Tokens], Tokens]
"""(logits of the target, one row more than drafts; of the drafter; drafts) -> the block."""


def row_by_row(
    verify_row: VerifyRow, device: str = "cpu", rule: str | None = None
) -> Callable[..., tuple[Ints, Ints]]:
    """A function under the contract ``verify``.

    A row without drafts is drawn from the target by `torch.multinomial`, as engines do: functions
    that verify are never called for one.

    Parameters
    ----------
    verify_row : callable
        Logits are log p in float32, -inf for 0.
    device : str
    rule : str, optional
        As for `capable`.
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
