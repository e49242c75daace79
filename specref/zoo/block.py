"""Mutants and controls of block verification, over one vocabulary and over two.

They sit beside the kit's zoo, in `zoo.beside` and not in `zoo.ALL`: the clean rules are
`block.step` and `block_slrs.step`. Each comes with exact distances on named pairs; those that are
0 are pairs on which it survives, whatever the test. The kit tries those over one vocabulary on
verifiers that declare the rule "block" (`conformance.bugs`).
"""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from specref.zoo import block_controls
from specref.zoo import block_rules as rules
from specref.zoo.block_pairs import BlockEntry, exactly
from specref.zoo.block_parts import block_step

MUTANTS = (
    BlockEntry(
        "block-product-of-uniforms",
        "accept",
        formula="last i with P_i >= u_1 … u_i, residual (p - q)+",
        symptom="Accepts far too much: u_1 … u_i gets small by itself.",
        hint="Compare each u_i with h_i alone.",
        cites=("vllm-project/vllm-ascend#7807", "vllm-project/vllm-ascend#5542"),
        rule=partial(block_step, choose=rules.products_of_uniforms, weights=rules.tokenwise),
        distances={
            "coin": 0.2024346630666566,
            "c": 0.1684297688761878,
            "eos": 0.1609532521312889,
        },
        note="Distances are irrational: P(u_1 u_2 <= c) = c - c log c.",
    ),
    BlockEntry(
        "block-tokenwise-residual",
        "residual",
        formula="R_i = (p - q)+ in place of (P_i p - q)+",
        symptom="Only the token after a partly accepted block is off, and by little.",
        hint="Scale p by P_i: what is left to make up is P_i p, not p.",
        cites=("vllm-project/vllm-ascend#7807",),
        rule=partial(block_step, weights=rules.tokenwise),
        distances=exactly(coin="0", m="0", c="1/24", deep="0", spelled="1/96", ends="7/540"),
        note="0 where both are in proportion, as with two tokens: then each is one point mass.",
    ),
    BlockEntry(
        "block-stops-at-first",
        "accept",
        formula="accepted length = first i with u_i > h_i, less 1",
        symptom="Accepts less than token verification.",
        hint="The last success counts; failures before it do not.",
        cites=("vllm-project/vllm-ascend#11985",),
        rule=partial(block_step, choose=rules.first_failure),
        distances=exactly(coin="1/3", m="0", c="1/9", deep="64/285", spelled="7/27", ends="1/3"),
    ),
    BlockEntry(
        "block-one-uniform",
        "randomness",
        formula="last i with u <= h_i, for one u",
        symptom="Accepts too little: a high u fails everywhere at once.",
        hint="A uniform of its own for every i.",
        rule=partial(block_step, choose=rules.one_uniform),
        distances=exactly(
            coin="0", m="0", c="1/27", deep="218/1995", spelled="11/540", ends="1/99"
        ),
        note="On the coin h_i is 0 or 1 but for the last i.",
    ),
    BlockEntry(
        "block-uncapped-at-the-end",
        "accept",
        formula="h_n = min(1, p(x_1 … x_n) / q(x_1 … x_n)), other h_i as they are",
        symptom="Accepts more than block verification, which accepts the most.",
        hint="h_n = P_n, capped at every draft.",
        cites=("arXiv:2601.05724",),
        rule=partial(block_step, coin=rules.uncapped_at_the_end),
        distances=exactly(
            coin="1/9", m="0", c="1/18", deep="181/4725", spelled="1/36", ends="1/108"
        ),
    ),
    BlockEntry(
        "block-greedy-without-its-target",
        "accept",
        formula="P_i uncapped, h_i = min(1, sum R_i / sum (q - P_i p)+), and p as it is",
        symptom="Accepts as much as greedy block verification.",
        hint="Modify the target of the next tokens, or cap P_i.",
        cites=("arXiv:2403.10444",),
        rule=partial(block_step, grow=rules.joint, coin=rules.greedy),
        distances=exactly(coin="1/9", m="0", c="5/84", deep="56314/1172745"),
    ),
    BlockEntry(
        "block-survival-of-tokens",
        "accept",
        formula="P_i = prod min(1, p / q), R_i and h_i from it",
        symptom="Accepts less than block verification.",
        hint="Cap the product, not its factors; or use (P_i)(p - q)+, token verification.",
        rule=partial(block_step, grow=rules.each_capped),
        distances=exactly(
            coin="1/9",
            m="0",
            c="1/18",
            deep="784/17575",
            spelled="7/144",
            ends="709/16200",
        ),
    ),
    BlockEntry(
        "block-total-alone",
        "accept",
        formula="h_i = sum R_i",
        symptom="Accepts too little.",
        hint="The walk comes to i with probability sum R_i + 1 - P_i only: divide by it.",
        rule=partial(block_step, coin=rules.total_alone),
        distances=exactly(coin="2/81", m="0", c="29/648", spelled="713/5184", ends="2927/25920"),
    ),
    BlockEntry(
        "block-end-is-full-acceptance",
        "vocabulary",
        formula="where the text ends: h_m = P_m, last token ~ p, though psi > 0 is left",
        symptom="Right unless a drafted text is the start of another.",
        hint="R_m = (P_m p - psi)+, or psi given that the text goes on throughout.",
        rule=partial(block_step, submit=rules.without_end),
        distances=exactly(c="0", spelled="157/1620", ends="85/1296"),
        note="What psi has left is accepted from the longer texts, and so comes twice.",
    ),
    BlockEntry(
        "block-psi-given-more",
        "vocabulary",
        formula="psi / (1 - psi(END)) for the drafts, psi where the text ends",
        symptom="Right unless a drafted text is the start of another.",
        hint="One of the two throughout.",
        rule=partial(block_step, submit=rules.given_more),
        distances=exactly(c="0", spelled="1241/12960", ends="85/1296"),
    ),
    BlockEntry(
        "block-psi-normalised-at-the-end",
        "vocabulary",
        formula="where the text ends: R_m = (P_m p - psi / sum psi)+",
        symptom="Right unless a drafted text is the start of another.",
        hint="psi is a sub-law; what it lacks is END's.",
        rule=partial(block_step, submit=rules.tail_normalised),
        distances=exactly(c="0", spelled="1/216", ends="7/432"),
    ),
    BlockEntry(
        "block-psi-unconditional",
        "vocabulary",
        formula="psi(t_1 … t_k) in place of psi(t_k | t_<k)",
        symptom="Nearly everything is accepted, from the second token on.",
        hint="Divide by psi(t_<k).",
        rule=partial(block_step, submit=rules.unconditional),
        distances=exactly(c="771/7192", spelled="451/1836", ends="1985/7236"),
    ),
    BlockEntry(
        "block-end-is-never-refused",
        "vocabulary",
        formula="h_i = sum R_i / sum (q - P_i p)+",
        symptom="Right for full laws, where it is the same; too much where texts may end.",
        hint="Add the mass of END, or write sum R_i + 1 - P_i.",
        rule=partial(block_step, coin=rules.by_refused_drafts),
        distances=exactly(c="0", deep="0", spelled="5/36", ends="1/8"),
    ),
)

BLOCK: Mapping[str, BlockEntry] = MappingProxyType(
    {entry.id: entry for entry in (*MUTANTS, *block_controls.LOSSLESS)}
)
