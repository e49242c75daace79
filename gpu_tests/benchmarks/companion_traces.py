"""Drafts at every place of the target's texts, and what companion and target say of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from gpu_tests.forcing import forced_laws
from specref.arrays import Floats
from specref.speed.companion_table import Observation
from specref.torch_backend import generate, shape_logits
from specref.vocabulary import Tokens

SIGNALS = (
    "similarity",
    "companion_acceptance",
    "confidence",
    "likelihood",
    "overlap",
    "acceptance",
)
SHAPE = partial(shape_logits, temperature=1.0)


@dataclass(frozen=True, eq=False)
class Traces:
    """Arrays of shape (places, lookahead), but for `text`, and for laws at the first position.

    Attributes
    ----------
    similarity, companion_acceptance : ndarray
        S = sum min(q, c), and A = min(1, c / q) at the draft.
    confidence, likelihood : ndarray
        The greatest of q, and q at the draft: what the drafter says of itself.
    overlap, acceptance : ndarray
        Of target and drafter: sum min(p, q), and min(1, p / q) at the draft.
    accepted : ndarray of bool
        The verdict, whether or not the drafts before were accepted.
    text : ndarray of int, shape (places,)
        Which text a place belongs to.
    laws : tuple of ndarray, shape (places, V)
        p, q and c of the first draft.
    """

    similarity: Floats
    companion_acceptance: Floats
    confidence: Floats
    likelihood: Floats
    overlap: Floats
    acceptance: Floats
    accepted: NDArray[np.bool_]
    text: NDArray[np.int64]
    laws: tuple[Floats, Floats, Floats]

    @property
    def reached(self) -> NDArray[np.bool_]:
        """Whether all drafts before were accepted."""
        before = np.ones_like(self.accepted[:, :1])
        return np.cumprod(np.c_[before, self.accepted[:, :-1]], axis=1).astype(bool)

    def observations(
        self, places: NDArray[np.bool_], *, of: str = "companion"
    ) -> list[Observation]:
        """The drafts that were reached at some places, with two signals of one of the models."""
        names = {
            "companion": ("similarity", "companion_acceptance"),
            "drafter": ("confidence", "likelihood"),
        }
        seen = self.reached & places[:, None]
        signals = (getattr(self, name)[seen] for name in names[of])
        columns = (column.tolist() for column in (*signals, self.accepted[seen].astype(int)))
        return [Observation(*row) for row in zip(*columns, strict=True)]


def traces(
    target: PreTrainedModel,
    companion: PreTrainedModel,
    drafter: PreTrainedModel,
    prompts: Sequence[Tokens],
    *,
    tokens: int,
    lookahead: int,
    seed: int,
) -> Traces:
    """Sample texts from the target, and draft at every place of them.

    Parameters
    ----------
    target, companion, drafter : transformers.PreTrainedModel
        Over one vocabulary.
    prompts : sequence of tuple of int
        One for each text.
    tokens, lookahead : int
        Of each text, and of each draft.
    seed : int
        Of the texts, the drafts and the coins.
    """
    seeds = range(seed, seed + len(prompts))
    generation = generate(
        target, None, prompts, seeds=seeds, method="autoregressive", max_new_tokens=tokens
    )
    places = [
        (index, (*prompt, *text[:end]))
        for index, (prompt, text) in enumerate(zip(prompts, generation.tokens, strict=True))
        for end in range(len(text))
    ]
    contexts = [context for _, context in places]
    rng = torch.Generator().manual_seed(seed)
    drafts = drafted(drafter, contexts, lookahead, rng)
    p, q, c = (
        forced_laws(model, contexts, drafts.tolist(), SHAPE).double().view(*drafts.shape, -1)
        for model in (target, drafter, companion)
    )
    return judged(p, q, c, drafts, rng, np.array([index for index, _ in places]))


def drafted(
    drafter: PreTrainedModel, contexts: Sequence[Tokens], lookahead: int, rng: torch.Generator
) -> Tensor:
    """Drafts after each context; shape (places, lookahead)."""
    drafts: list[list[int]] = [[] for _ in contexts]
    for _ in range(lookahead):
        given = [[*context, *draft] for context, draft in zip(contexts, drafts, strict=True)]
        q = forced_laws(drafter, given, [[0]] * len(given), SHAPE)
        for draft, token in zip(drafts, torch.multinomial(q, 1, generator=rng), strict=True):
            draft.append(int(token))
    return torch.tensor(drafts)


def judged(
    p: Tensor, q: Tensor, c: Tensor, drafts: Tensor, rng: torch.Generator, text: NDArray[np.int64]
) -> Traces:
    """The signals of drafts, and verdicts from fresh coins."""
    at = drafts.unsqueeze(-1)
    p_x, q_x, c_x = (law.gather(-1, at).squeeze(-1) for law in (p, q, c))
    acceptance = (p_x / q_x).clamp(max=1)
    coins = torch.rand(drafts.shape, generator=rng, dtype=torch.float64)
    both = torch.minimum(q, c).sum(-1), (c_x / q_x).clamp(max=1), q.amax(-1), q_x
    signals = (*both, torch.minimum(p, q).sum(-1), acceptance)
    first = p[:, 0].numpy(), q[:, 0].numpy(), c[:, 0].numpy()
    columns = (signal.clamp(max=1).numpy() for signal in signals)
    verdicts = (coins < acceptance).numpy()
    fields: dict[str, Floats] = dict(zip(SIGNALS, columns, strict=True))
    return Traces(**fields, accepted=verdicts, text=text, laws=first)
