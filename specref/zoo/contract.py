"""Verifiers that break their contract: a judge must survive them, and name the fault."""

from collections.abc import Callable
from typing import Any

import numpy as np

from specref.arrays import Floats, Ints
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


ENTRIES = (
    Entry(
        "returns-nothing",
        "contract",
        formula="None instead of (tokens, counts)",
        symptom="The caller fails.",
        hint="Return tokens and counts.",
        make=around(nothing),
        shows="row",
    ),
    Entry(
        "squeezes-batch-of-one",
        "contract",
        formula="tokens of shape (K + 1,) for B = 1",
        symptom="A single request fails, or its first token is taken for the whole block.",
        hint="Squeeze no dimension that may be 1.",
        make=around(squeezed),
        shows="row",
    ),
    Entry(
        "needs-a-draft",
        "contract",
        formula="fails for lens = 0",
        symptom="Crashes when the draft model proposes nothing, as n-gram drafting often does.",
        hint="A row without drafts gets one token, from its first row.",
        make=around(needs_drafts),
        shows="row",
    ),
    Entry(
        "needs-draft-probs",
        "contract",
        formula="fails for draft_probs = None",
        symptom="Crashes with deterministic drafting.",
        hint="None means that every draft is certain: accept with p, then p without the draft.",
        make=around(needs_q),
        shows="row",
    ),
    Entry(
        "writes-into-target-probs",
        "contract",
        formula="p_0 <- (p_0 - q_0)+ in the caller's array",
        symptom="Right once; log-probabilities and retries after it are wrong.",
        hint="Subtract into a new array.",
        make=around(in_place),
        shows="calls",
    ),
    Entry(
        "ignores-its-generator",
        "contract",
        formula="randomness of its own",
        symptom="Runs cannot be repeated.",
        hint="Draw from the generator that is handed over.",
        make=around(unseeded),
        shows="calls",
        cites=("vllm-project/vllm#6034", "vllm-project/vllm#17498"),
    ),
    Entry(
        "ids-in-fifteen-bits",
        "contract",
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
