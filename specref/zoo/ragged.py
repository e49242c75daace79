"""Mutants that need temperatures: verifiers of the contract ``ragged``, with logits."""

from collections.abc import Callable
from typing import Any

import numpy as np

from specref.arrays import NO_TOKEN, Floats, Ints
from specref.batched import Blocks, Verify, verifier
from specref.zoo.entry import Entry

Temperatures = Callable[[Floats], Floats]
"""The temperatures of the requests of a call -> those that a verifier reads for them."""
PADDING = -1.0
RANKS = 2
CLEAN = verifier()


def own(temperature: Floats) -> Floats:
    """The temperature of each request."""
    return temperature


def none(temperature: Floats) -> Floats:
    """1 for each request."""
    return np.ones_like(temperature)


def behind_padding(temperature: Floats) -> Floats:
    """Two ranks, each padded to a power of two; temperatures are filled in without gaps.

    >>> behind_padding(np.array([0.5, 0.6, 0.7, 0.8, 0.9])).tolist()
    [0.5, 0.6, 0.7, 0.9, -1.0]
    """
    half = -(-len(temperature) // RANKS)
    width = 1 << (half - 1).bit_length() if half else 0
    filled = np.full(RANKS * width, PADDING)
    filled[: len(temperature)] = temperature
    row = np.arange(len(temperature))
    return filled[np.where(row < half, row, width + row - half)]


def laws(logits: Floats, temperature: Floats) -> Floats:
    """The softmax of each row at its temperature; what is forbidden stays so at any."""
    heated = np.where(np.isneginf(logits), -np.inf, logits / temperature[:, None])
    weights = np.exp(heated - heated.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def ragged(*, of_p: Temperatures = own, of_q: Temperatures = own) -> Verify:
    """A verifier of the contract ``ragged``, which reads temperatures for p and for q."""

    def verify(
        *,
        draft_token_ids: Ints,
        num_draft_tokens: Ints,
        target_logits: Floats,
        draft_logits: Floats | None,
        bonus_token_ids: Ints,
        temperature: Floats,
        rng: np.random.Generator,
    ) -> Blocks:
        lens, most = num_draft_tokens, int(num_draft_tokens.max(initial=0))
        drafted = np.arange(most) < lens[:, None]
        row = np.repeat(np.arange(len(lens)), lens)
        p = np.ones((len(lens), most + 1, target_logits.shape[1]))
        p[:, :-1][drafted] = laws(target_logits, of_p(temperature)[row])
        drafts = np.full((len(lens), most), NO_TOKEN)
        drafts[drafted] = draft_token_ids
        q = None
        if draft_logits is not None:
            q = np.zeros((len(lens), most, p.shape[2]))
            q[drafted] = laws(draft_logits, of_q(temperature)[row])
        tokens, counts = CLEAN(p, q, drafts, rng=rng, lens=lens)
        kept = np.flatnonzero(counts > lens)
        tokens[kept, lens[kept]] = bonus_token_ids[kept]
        return tokens, counts

    return verify


def entry(id_: str, make: Callable[[], Verify], **described: Any) -> Entry:
    """A mutant that is put to the contract ``ragged``."""
    return Entry(id_, "batch", make=make, contract="ragged", shows="row", **described)


ENTRIES = (
    entry(
        "temperature-missing-in-q",
        lambda: ragged(of_q=none),
        formula="drafts at the request's temperature, q read as softmax(logits) without it",
        symptom="Requests at temperature 1 are right; elsewhere drafts weigh too much or little.",
        hint="Divide the draft model's logits by the request's temperature, as for drafting.",
    ),
    entry(
        "temperature-behind-padding",
        lambda: ragged(of_p=behind_padding),
        formula="two ranks padded to powers of two, temperatures filled in without gaps",
        symptom="The last requests of a batch have others' temperatures, or that of padding, -1.",
        hint="Pad temperatures rank by rank, as logits are padded.",
        cites=("vllm-project/tpu-inference#2860",),
    ),
)
