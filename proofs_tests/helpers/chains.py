"""Chains of order 1 for judges of generate, with the drafter under the same ids or others."""

from itertools import product

import numpy as np

from proofs_tests.helpers.first_order import chain
from specref.conformance.markov import Chain
from specref.contrib.engines.transformers_generate import Generate
from specref.models import Model, hashed_model, iid_model
from specref.vocabulary import Tokens, Vocabulary

TOKENS = 2_000


EIGHT, RELABELLED = Vocabulary("abcdefgh"), Vocabulary("hcaxgbfedy")


TARGET, DRAFTER = chain(EIGHT, "one"), chain(EIGHT, "two")


OTHER = chain(RELABELLED, "two")


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def kept_first(generate: Generate, target: Model, drafter: Model, tokens: int = TOKENS):
    """How many first drafts were kept, of how many: a number of blocks fixed beforehand."""
    generate(target, drafter, (0,), tokens, rng())
    blocks = generate.blocks[: tokens // (generate.lookahead + 1) - 1]
    assert all(block.drafted == generate.lookahead for block in blocks)
    return sum(block.accepted > 0 for block in blocks), len(blocks)


P, Q = (
    [f"{w}/36" for w in weights]
    for weights in ([1, 2, 3, 4, 5, 6, 7, 8], [8, 9, 7, 1, 4, 2, 3, 2])
)


STILL, DRIFT = Chain(iid_model(EIGHT, P)), Chain(iid_model(EIGHT, Q))


DRIFT_RELABELLED = Chain(
    iid_model(RELABELLED, [Q[EIGHT.ids[t]] if t in EIGHT.ids else 0 for t in RELABELLED.tokens])
)


SECOND_ORDER = {
    last: hashed_model(EIGHT, "pairs", 9).next_token(last) for last in product(range(8), repeat=2)
}


def second_order(context: Tokens) -> np.ndarray:
    return SECOND_ORDER[context[-2:] if len(context) > 1 else (0, 0)]


def relabelled(model: Model) -> Model:
    """The same model under other ids, with two tokens more, each of probability 1/4."""

    def next_token(context: Tokens) -> np.ndarray:
        known = (RELABELLED.tokens[token] for token in context)
        row = model.next_token(tuple(EIGHT.ids[t] for t in known if t in EIGHT.ids))
        return np.array(
            [row[EIGHT.ids[t]] / 2 if t in EIGHT.ids else row.sum() / 4 for t in RELABELLED.tokens]
        )

    return Model(RELABELLED, next_token)


PAIRS = Model(EIGHT, second_order)
