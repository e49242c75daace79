"""Mutants whose drafts do not come from the law that is declared for them."""

from fractions import Fraction
from typing import cast

import numpy as np

from specref.algorithms.standard import Draft
from specref.chance import Chance
from specref.distributions import Probabilities, Probability, top_k, with_temperature
from specref.models import Model
from specref.vocabulary import Tokens
from specref.zoo.entry import Entry
from specref.zoo.parts.standard import ratio, residual_or_p, speculative, verified

SHARP = Fraction(1, 2)


def of_previous(drafts: list[Draft]) -> list[Draft]:
    """Each token with the row of the draft before it."""
    return [Draft(x, q) for (x, _), (_, q) in zip(drafts, drafts[:1] + drafts, strict=False)]


def beam(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> list[Draft]:
    """The drafter's likeliest continuation, each token with its row."""
    done: list[tuple[Probability, list[Draft]]] = []
    pending: list[tuple[Probability, list[Draft]]] = [(Fraction(1), [])]
    for weight, drafts in pending:
        text = tuple(cast(int, draft.token) for draft in drafts)
        if len(drafts) == lookahead or drafter.vocabulary.ends(text):
            done.append((weight, drafts))
            continue
        q = drafter.next_token((*context, *text))
        pending += [(weight * q[x], [*drafts, Draft(x, q)]) for x in range(len(q)) if q[x] > 0]
    return max(done, key=lambda scored: scored[0])[1]


def per_shard(q: Probabilities) -> Probabilities:
    """Each half of the vocabulary normalised on its own."""
    shards = q[: len(q) // 2], q[len(q) // 2 :]
    return np.concatenate([s / s.sum() if s.any() else s for s in shards])


ENTRIES = (
    Entry(
        "greedy-draft-soft-q",
        "draft",
        formula="x = argmax q, declared q: P(x) = min(1, p(x) / q(x)) instead of p(x)",
        symptom="The draft model's favourite comes out too often; acceptance looks better than "
        "it is.",
        hint="Sample drafts from the declared q, or declare the one-hot q of a greedy draft.",
        step=speculative(propose=lambda q, chance, site: Draft(int(np.argmax(q)), q)),
        cites=(
            "huggingface/transformers#32867",
            "huggingface/transformers#30778",
            "jaymody/speculative-sampling#3",
        ),
    ),
    Entry(
        "beam-draft-declared-q",
        "draft",
        formula="x_0 … x_(n-1) = argmax of q_0 q_1 …, declared q_i",
        symptom="The draft model's favourite sentence comes out too often.",
        hint="Sample drafts from the declared q, or declare the one-hot q of a searched draft.",
        step=verified(beam),
        cites=("apple/ml-recurrent-drafter#6",),
    ),
    Entry(
        "q-raw-sampled-filtered",
        "draft",
        formula="x ~ top-(V-1)(q), declared q",
        symptom="Drafts pass too often; the residual loses mass that was never proposed.",
        hint="Declare the row after top-k, top-p and temperature, the one that was drawn from.",
        step=speculative(
            propose=lambda q, chance, site: Draft(chance.draw(top_k(q, len(q) - 1), site), q)
        ),
        cites=("huggingface/transformers#47932", "huggingface/transformers#47961"),
    ),
    Entry(
        "draft-temperature-mismatch",
        "draft",
        formula="x ~ norm(q^2), declared q",
        symptom="The output is sharper than the target at any draft temperature but 1.",
        hint="Apply the draft temperature before both the draw and the declared row.",
        step=speculative(
            propose=lambda q, chance, site: Draft(chance.draw(with_temperature(q, SHARP), site), q)
        ),
        cites=("ohdearquant/lattice#388",),
    ),
    Entry(
        "stale-q-row",
        "draft",
        formula="x_i ~ q_i, verified with q_(i-1)",
        symptom="First token exact, later ones biased; often only after a batch reorder.",
        hint="Store q with the token it drew, and move both together.",
        step=speculative(
            submit=of_previous,
            accept=lambda at: ratio(at.px, at.qx),
            recover=lambda at: residual_or_p(at.p, at.q),
        ),
        cites=("vllm-project/vllm#40269", "vllm-project/vllm#41044", "vllm-project/vllm#44869"),
        blind=frozenset({"m"}),
        note="With one draft there is no other row.",
    ),
    Entry(
        "d2t-not-applied-to-q",
        "draft",
        formula="x in target ids, q in draft ids (here shifted by one): verified with q(x - 1)",
        symptom="Acceptance collapses, and what is accepted is arbitrary.",
        hint="Scatter q into target ids with the same table that maps the token.",
        step=speculative(
            propose=lambda q, chance, site: Draft(chance.draw(q, site), np.roll(q, 1)),
            accept=lambda at: ratio(at.px, at.qx),
            recover=lambda at: residual_or_p(at.p, at.q),
        ),
        cites=("vllm-project/vllm-ascend#16166",),
    ),
    Entry(
        "q-sharded-vocab",
        "draft",
        formula="x ~ q, declared q / q(shard of x)",
        symptom="Acceptance drops with the number of shards, and the residual loses its mass.",
        hint="Gather the logits of all shards before the softmax.",
        step=speculative(
            propose=lambda q, chance, site: Draft(chance.draw(q, site), per_shard(q)),
            recover=lambda at: residual_or_p(at.p, at.q),
        ),
        cites=("NVIDIA/TensorRT-LLM#16544",),
    ),
)
