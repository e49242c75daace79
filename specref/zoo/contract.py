"""Verifiers that break their contract: a judge must survive them, and name the fault."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from specref.arrays import NO_TOKEN, Floats, Ints
from specref.batched import Batch, Blocks, Verify, leading, verifier
from specref.zoo.entry import Entry

CLEAN = verifier()
MOST = 1 << 15


def around(change: Callable[..., Any]) -> Callable[[], Verify]:
    """A maker of verifiers that see and may change what goes in and comes out."""

    def make() -> Verify:
        def verify(
            target_probs: Floats,
            draft_probs: Floats | None,
            draft_tokens: Ints,
            *,
            rng: np.random.Generator | None = None,
        ) -> Any:
            return change(target_probs, draft_probs, draft_tokens, rng)

        return verify

    return make


def _answer(p: Floats, q: Floats | None, drafts: Ints, rng: Any) -> Blocks:
    return CLEAN(p, q, drafts, rng=rng)


def nothing(p: Floats, q: Floats | None, drafts: Ints, rng: Any) -> None:
    """Compute the blocks, and return None."""
    _answer(p, q, drafts, rng)


def squeezed(p: Floats, q: Floats | None, drafts: Ints, rng: Any) -> Blocks:
    """Drop the batch dimension of a batch of one."""
    tokens, counts = _answer(p, q, drafts, rng)
    return (tokens[0], counts) if len(tokens) == 1 else (tokens, counts)


def needs_drafts(p: Floats, q: Floats | None, drafts: Ints, rng: Any) -> Blocks:
    """Index the last draft of every row."""
    if (drafts[:, 0] < 0).any():
        raise IndexError("index -1 is out of bounds for axis 1 with size 0")
    return _answer(p, q, drafts, rng)


def needs_q(p: Floats, q: Floats | None, drafts: Ints, rng: Any) -> Blocks:
    """Index draft_probs, which may be None."""
    if q is None:
        raise TypeError("'NoneType' object is not subscriptable")
    return _answer(p, q, drafts, rng)


def in_place(p: Floats, q: Floats, drafts: Ints, rng: Any) -> Blocks:
    """Leave the residual of the first row where p was."""
    answer = _answer(p, q, drafts, rng)
    if q is not None and drafts.shape[1]:
        p[:, 0] = np.maximum(p[:, 0] - q[:, 0], 0)
    return answer


def unseeded(p: Floats, q: Floats | None, drafts: Ints, rng: Any) -> Blocks:
    """Draw from a generator of its own, whatever is handed over."""
    return _answer(p, q, drafts, np.random.default_rng())


def short_ids(p: Floats, q: Floats | None, drafts: Ints, rng: Any) -> Blocks:
    """Keep token ids in too few bits."""
    tokens, counts = _answer(p, q, drafts, rng)
    return np.where(tokens >= MOST // 2, tokens - MOST, tokens), counts


def accepted_in_half(batch: Batch) -> Ints:
    """Take the ratio in float16, where 1e-30 is 0, and let 0 / 0 pass."""
    p, q = (batch.drafted(rows).astype(np.float16) for rows in (batch.p, batch.q))
    ratio = np.divide(p, q, out=np.ones_like(p), where=q > 0)
    return leading((batch.accept < ratio) & (batch.drafts >= 0))


of_contract = partial(Entry, stage="contract")
ENTRIES = (
    of_contract(
        "returns-nothing",
        formula="None instead of (tokens, counts)",
        symptom="The caller fails.",
        hint="Return tokens and counts.",
        make=around(nothing),
        shows="row",
    ),
    of_contract(
        "squeezes-batch-of-one",
        formula="tokens of shape (K + 1,) for B = 1",
        symptom="A single request fails, or its first token is taken for the whole block.",
        hint="Squeeze no dimension that may be 1.",
        make=around(squeezed),
        shows="row",
    ),
    of_contract(
        "needs-a-draft",
        formula="fails for lens = 0",
        symptom="Crashes when the draft model proposes nothing, as n-gram drafting often does.",
        hint="A row without drafts gets one token, from its first row.",
        make=around(needs_drafts),
        shows="row",
    ),
    of_contract(
        "needs-draft-probs",
        formula="fails for draft_probs = None",
        symptom="Crashes with deterministic drafting.",
        hint="None means that every draft is certain: accept with p, then p without the draft.",
        make=around(needs_q),
        shows="row",
    ),
    of_contract(
        "writes-into-target-probs",
        formula="p_0 <- (p_0 - q_0)+ in the caller's array",
        symptom="Right once; log-probabilities and retries after it are wrong.",
        hint="Subtract into a new array.",
        make=around(in_place),
        shows="calls",
    ),
    of_contract(
        "ignores-its-generator",
        formula="randomness of its own",
        symptom="Runs cannot be repeated.",
        hint="Draw from the generator that is handed over.",
        make=around(unseeded),
        shows="calls",
        cites=("vllm-project/vllm#6034", "vllm-project/vllm#17498"),
    ),
    of_contract(
        "ids-in-fifteen-bits",
        formula="id - 2^15 for ids of 2^14 and more",
        symptom="Ids out of range with large vocabularies alone.",
        hint="Keep ids in 32 bits or more.",
        make=around(short_ids),
        shows="row",
    ),
    Entry(
        "ratio-in-float16",
        "accept",
        formula="float16(p) / float16(q), and 0 / 0 accepts",
        symptom="Tokens with p and q below 6e-8 are always accepted.",
        hint="Take ratios in float32, of float32 probabilities.",
        make=lambda: verifier(accepted=accepted_in_half),
        shows="row",
        note="Where no probability is small, its distribution differs by the rounding of "
        "float16 alone.",
    ),
)


Temperatures = Callable[[Floats], Floats]
"""The temperatures of the requests of a call -> those that a verifier reads for them."""
PADDING = -1.0
RANKS = 2


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


def ragged_entry(id_: str, make: Callable[[], Verify], **described: Any) -> Entry:
    """A mutant that is put to the contract ``ragged``."""
    return Entry(id_, "batch", make=make, contract="ragged", shows="row", **described)


RAGGED = (
    ragged_entry(
        "temperature-missing-in-q",
        lambda: ragged(of_q=none),
        formula="drafts at the request's temperature, q read as softmax(logits) without it",
        symptom="Requests at temperature 1 are right; elsewhere drafts weigh too much or little.",
        hint="Divide the draft model's logits by the request's temperature, as for drafting.",
    ),
    ragged_entry(
        "temperature-behind-padding",
        lambda: ragged(of_p=behind_padding),
        formula="two ranks padded to powers of two, temperatures filled in without gaps",
        symptom="The last requests of a batch have others' temperatures, or that of padding, -1.",
        hint="Pad temperatures rank by rank, as logits are padded.",
        cites=("vllm-project/tpu-inference#2860",),
    ),
)
