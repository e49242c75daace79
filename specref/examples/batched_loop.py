"""A batched loop of speculative decoding: several prompts, each with a seed of its own.

``specref check specref.examples.batched_loop:generate --contract generate-batch`` judges it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

LOOKAHEAD = 3


def generate(
    target: Any,
    drafter: Any,
    contexts: Sequence[tuple[int, ...]],
    tokens: int,
    *,
    seeds: Sequence[int],
) -> list[list[int]]:
    """After each context `tokens` tokens, or fewer up to EOS; rows that are finished leave."""
    vocabulary = target.vocabulary
    eos = None if vocabulary.eos is None else vocabulary.ids[vocabulary.eos]
    rngs = [np.random.default_rng(seed) for seed in seeds]
    texts: list[list[int]] = [[] for _ in contexts]
    live = list(range(len(contexts)))
    while live:
        for row in live:
            text = texts[row]
            room = min(LOOKAHEAD, tokens - len(text) - 1)
            for token in block(target, drafter, (*contexts[row], *text), room, rngs[row]):
                text.append(token)
                if token == eos:
                    break
        live = [row for row in live if len(texts[row]) < tokens and texts[row][-1] != eos]
    return texts


def block(
    target: Any, drafter: Any, context: tuple[int, ...], lookahead: int, rng: np.random.Generator
) -> list[int]:
    """One iteration of a row: drafts, those of them that are accepted, and a token more."""
    drafts: list[int] = []
    for _ in range(lookahead):
        q = drafter.next_token((*context, *drafts))
        drafts.append(int(rng.choice(len(q), p=q)))
    for i, token in enumerate(drafts):
        before = (*context, *drafts[:i])
        p, q = target.next_token(before), drafter.next_token(before)
        if rng.random() * q[token] < p[token]:
            continue
        rest = np.maximum(p - q, 0)
        return [*drafts[:i], int(rng.choice(len(rest), p=rest / rest.sum()))]
    p = target.next_token((*context, *drafts))
    return [*drafts, int(rng.choice(len(p), p=p))]
