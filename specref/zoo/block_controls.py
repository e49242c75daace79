"""Controls of block verification: they look wrong, and are exact."""

from functools import partial

from specref.zoo import block_rules as rules
from specref.zoo.block_pairs import BlockEntry
from specref.zoo.block_parts import block_step

LOSSLESS = (
    BlockEntry(
        "block-in-one-draw",
        "accept",
        formula="at i, draw from (R_i, 1 - P_i): a token, or one draft further back",
        symptom="There is no coin and no h_i.",
        hint="Exact: the coin and the residual in one.",
        cites=("ZhouYuxuanYX/Hierarchical-Speculative-Decoding",),
        lossless=True,
        rule=rules.one_draw,
    ),
    BlockEntry(
        "block-tossed-forwards",
        "accept",
        formula="u_1, …, u_n first, then the last i with u_i <= h_i",
        symptom="Accepts draft j after a failure at i < j.",
        hint="Exact: the listing as printed.",
        cites=("arXiv:2403.10444", "vllm-project/vllm-ascend#11985"),
        lossless=True,
        rule=partial(block_step, choose=rules.forwards),
    ),
    BlockEntry(
        "block-zero-over-zero-is-one",
        "accept",
        formula="h_i = 1 for 0/0",
        symptom="It would stop where there is no residual.",
        hint="Exact: no walk comes there.",
        lossless=True,
        rule=partial(block_step, coin=rules.or_one),
    ),
    BlockEntry(
        "block-by-tokens",
        "accept",
        formula="P_i = prod min(1, p / q), R_i = P_i (p - q)+",
        symptom="Neither P_i nor R_i is that of block verification.",
        hint="Exact: token verification, from the last draft back.",
        lossless=True,
        rule=partial(
            block_step,
            grow=rules.each_capped,
            coin=rules.token_coin,
            weights=rules.scaled,
        ),
    ),
    BlockEntry(
        "block-drafts-are-certain",
        "accept",
        formula="q = 1 at the draft, although it was sampled",
        symptom="A q that is not the drafter's.",
        hint="Exact: given the drafts, they are. It accepts less.",
        lossless=True,
        rule=partial(block_step, submit=rules.certain),
    ),
    BlockEntry(
        "block-given-more",
        "vocabulary",
        formula="psi / (1 - psi(END)) for the drafts, h_m = P_m and p where the text ends",
        symptom="END is full acceptance, and psi is not the law of the next token.",
        hint="Exact, as `slrs` with `ending` bonus: whether it ends is no coin of t_k's.",
        lossless=True,
        rule=partial(block_step, submit=lambda d: rules.given_more(rules.without_end(d))),
    ),
)
