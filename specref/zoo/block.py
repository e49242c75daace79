"""Mutants and controls of block verification, over one vocabulary and over two.

The clean rules are `block.step` and `block_slrs.step`; the steps here take either kind of pair.
Each mutant comes with exact distances on named pairs; those that are 0 are pairs on which it
survives, whatever the test.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from math import log
from typing import NamedTuple, TypeAlias

import numpy as np

from specref.algorithms import standard
from specref.algorithms.decoding import Step
from specref.algorithms.lookahead import fixed
from specref.algorithms.standard import Draft
from specref.algorithms.text.slrs import propose
from specref.chance import Chance
from specref.distributions import Probabilities, Probability, normalise
from specref.models import Model
from specref.vocabulary import Tokens
from specref.zoo.entry import Entry, exactly
from specref.zoo.fixtures import BLOCK_TOKENS
from specref.zoo.parts.standard import one_hot

CERTAIN = np.array([Fraction(1)], dtype=object)


class Row(NamedTuple):
    """The drafts so far, A_i, the joint ratio p(x_1 … x_i) / q(x_1 … x_i), and what comes next."""

    block: Tokens
    survival: Probability
    ratio: Probability
    p: Probabilities
    q: Probabilities


Grow: TypeAlias = Callable[[Row, int], Probability]
Weights: TypeAlias = Callable[[Row], Probabilities]
Coin: TypeAlias = Callable[[Row], Probability]
Choose: TypeAlias = Callable[[Sequence[Row], Sequence[Probability], Chance], int]


def drafted(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> list[Draft]:
    """Tokens of one vocabulary; of two, the target's tokens of a drafted text, then END."""
    if target.vocabulary.tokens == drafter.vocabulary.tokens:
        return standard.draft(drafter, context, lookahead, chance)
    tokens, psi = propose(target, drafter, context, lookahead, chance, fixed)
    laws = (psi[tokens[:k]] for k in range(len(tokens) + 1))
    return [Draft(token, law) for token, law in zip((*tokens, None), laws, strict=True)]


def capped(row: Row, token: int) -> Probability:
    """A_{i+1} = min(1, A_i p / q)."""
    ratio: Probability = row.survival * row.p[token] / row.q[token]
    return min(1, ratio)


def excess(row: Row) -> Probabilities:
    """R_i = (A_i p - q)+."""
    weights: Probabilities = np.maximum(row.survival * row.p - row.q, 0)
    return weights


def stopping(row: Row) -> Probability:
    """h_i = sum R_i / (sum R_i + 1 - A_i), or 0 for 0/0."""
    total: Probability = excess(row).sum()
    return total / (total + (1 - row.survival)) if total else total


def last_success(rows: Sequence[Row], coins: Sequence[Probability], chance: Chance) -> int:
    """The longest prefix whose coin succeeds, or the empty one."""
    backwards = range(len(rows) - 1, 0, -1)
    return next((i for i in backwards if chance.accept(coins[i], f"accept[{i - 1}]")), 0)


def block_step(
    *,
    submit: Callable[[list[Draft]], list[Draft]] = lambda drafts: drafts,
    grow: Grow = capped,
    coin: Coin = stopping,
    choose: Choose = last_success,
    weights: Weights = excess,
) -> Step:
    """A step of block verification in which some parts are replaced.

    * `submit`: drafts -> drafts: what the verifier is given.
    * `grow`: (row, token) -> P of the prefix with this token.
    * `coin`, `weights`: Row -> probability to stop there, and weights of the token that then comes
      next.
    * `choose`: (rows, coins, chance) -> the row to stop at.

    >>> from specref.algorithms import block
    >>> from specref.zoo.fixtures import FIXTURES
    >>> FIXTURES["c"].blocks(block_step()) == FIXTURES["c"].blocks(block.step)
    True
    """

    def step(
        target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> Tokens:
        drafts = submit(drafted(target, drafter, context, lookahead, chance))
        rows = rows_of(target, context, drafts, grow)
        row = rows[choose(rows, [coin(row) for row in rows], chance)]
        if target.vocabulary.ends(row.block):
            return row.block
        after = weights(row)
        law = normalise(after if after.any() else row.p)
        return (*row.block, chance.draw(law, "residual"))

    return step


def rows_of(target: Model, context: Tokens, drafts: list[Draft], grow: Grow) -> list[Row]:
    """A row before each draft, and one after the last, unless that is END."""
    rows: list[Row] = []
    block: Tokens = ()
    survival: Probability = 1
    ratio: Probability = 1
    for token, q in drafts:
        row = Row(block, survival, ratio, target.next_token((*context, *block)), q)
        rows.append(row)
        if token is None:
            return rows
        block, survival, ratio = (*block, token), grow(row, token), ratio * row.p[token] / q[token]
        if target.vocabulary.ends(block):
            return [*rows, Row(block, survival, ratio, CERTAIN, CERTAIN * 0)]
    p = target.next_token((*context, *block))
    return [*rows, Row(block, survival, ratio, p, p * 0)]


# Parts as they have been got wrong, or otherwise right.


def products_of_uniforms(rows: Sequence[Row], coins: Sequence[Probability], chance: Chance) -> int:
    """The last i with A_i >= u_1 … u_i, for up to two drafts: P(u_1 u_2 <= c) = c - c log c."""
    limits = [float(row.survival) for row in rows[1:]]
    if len(limits) > 2:
        raise ValueError(f"{len(limits)} drafts: expected at most 2")
    one, two = (*limits, 0.0, 0.0)[:2]
    full = two - two * log(two) if two else two
    shared = two - two * log(two / one) if 0 < two < one else min(one, two)
    return chance.draw(np.array([1 - full - one + shared, one - shared, full]), "accept")


def first_failure(rows: Sequence[Row], coins: Sequence[Probability], chance: Chance) -> int:
    """The longest prefix before the first coin that fails."""
    tossed = (i for i in range(1, len(rows)) if not chance.accept(coins[i], f"accept[{i - 1}]"))
    return next(tossed, len(rows)) - 1


def one_uniform(rows: Sequence[Row], coins: Sequence[Probability], chance: Chance) -> int:
    """The last i with u <= h_i, for a single u."""
    highest = [1, *(max(coins[i:]) for i in range(1, len(coins))), 0]
    return chance.draw(-np.diff(np.array(highest, dtype=object)), "accept")


def forwards(rows: Sequence[Row], coins: Sequence[Probability], chance: Chance) -> int:
    """Every coin in the order of the drafts; the last success."""
    tossed = [chance.accept(coin, f"accept[{i}]") for i, coin in enumerate(coins[1:])]
    return max((i + 1 for i, success in enumerate(tossed) if success), default=0)


def uncapped_at_the_end(row: Row) -> Probability:
    """h_i, and min(1, p(x_1 … x_n) / q(x_1 … x_n)) after all drafts."""
    return stopping(row) if row.q.any() else min(1, row.ratio)


def joint(row: Row, token: int) -> Probability:
    """p(x_1 … x_i) / q(x_1 … x_i), never capped."""
    ratio: Probability = row.ratio * row.p[token] / row.q[token]
    return ratio


def greedy(row: Row) -> Probability:
    """The coin of greedy block verification, with the joint ratio for A_i."""
    if not row.q.any():
        return min(1, row.survival)
    return by_refused_drafts(row)


def each_capped(row: Row, token: int) -> Probability:
    """A_i = prod min(1, p / q): what token verification accepts."""
    ratio: Probability = row.p[token] / row.q[token]
    return row.survival * min(1, ratio)


def total_alone(row: Row) -> Probability:
    """sum R_i, though the walk does not always come here."""
    total: Probability = excess(row).sum()
    return min(1, total)


def by_refused_drafts(row: Row) -> Probability:
    """sum R_i / sum (q - A_i p)+: h_i if the drafts are all that can come to i, without END."""
    total: Probability = excess(row).sum()
    refused: Probability = np.maximum(row.q - row.survival * row.p, 0).sum()
    if not row.q.any():
        return row.survival
    return min(1, total / refused) if refused else int(total > 0)


def token_coin(row: Row) -> Probability:
    """h_i with R_i = A_i (p - q)+."""
    total: Probability = scaled(row).sum()
    return total / (total + (1 - row.survival)) if total else total


def or_one(row: Row) -> Probability:
    """h_i, and 1 for 0/0."""
    settled = row.survival == 1 and not excess(row).any()
    return 1 if settled else stopping(row)


def tokenwise(row: Row) -> Probabilities:
    """(p - q)+, the residual of token verification."""
    weights: Probabilities = np.maximum(row.p - row.q, 0)
    return weights


def scaled(row: Row) -> Probabilities:
    """A_i (p - q)+."""
    weights: Probabilities = row.survival * tokenwise(row)
    return weights


def without_end(drafts: list[Draft]) -> list[Draft]:
    """The drafts alone, as if the text could not have gone on."""
    return [draft for draft in drafts if draft.token is not None]


def given_more(drafts: list[Draft]) -> list[Draft]:
    """Every draft with its law given that the text goes on; END as it is."""
    return [Draft(t, q if t is None else normalise(q)) for t, q in drafts]


def tail_normalised(drafts: list[Draft]) -> list[Draft]:
    """END with the law of what would have come, had the text gone on."""
    return [Draft(t, normalise(q) if t is None and q.any() else q) for t, q in drafts]


def unconditional(drafts: list[Draft]) -> list[Draft]:
    """Every draft with the joint probability of it and those before it as its law."""
    mass, declared = 1, []
    for token, q in drafts:
        declared.append(Draft(token, mass * q))
        mass = mass * q[token] if token is not None else mass
    return declared


def one_draw(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    """Coin and token at once: from the weights R_i, or with 1 - A_i one draft further back."""
    drafts = drafted(target, drafter, context, lookahead, chance)
    for row in reversed(rows_of(target, context, drafts, capped)):
        weights = np.append(excess(row), 1 - row.survival)
        if not weights.any():
            continue
        token = chance.draw(normalise(weights), "residual")
        if token < len(weights) - 1:
            ended = target.vocabulary.ends(row.block)
            return row.block if ended else (*row.block, token)
    raise ValueError("p nowhere exceeds q, and all drafts were refused")


def certain(drafts: list[Draft]) -> list[Draft]:
    """Every draft as if nothing else could have been drafted: q = 1."""
    return [Draft(t, one_hot(t, q)) for t, q in drafts if t is not None]


of_block = partial(Entry, rule="block")
of_block_slrs = partial(Entry, rule="block-slrs")
ENTRIES = (
    of_block(
        "block-product-of-uniforms",
        "accept",
        formula="last i with A_i >= u_1 … u_i, residual (p - q)+",
        symptom="Accepts far too much: u_1 … u_i gets small by itself.",
        hint="Compare each u_i with h_i alone.",
        cites=("vllm-project/vllm-ascend#7807", "vllm-project/vllm-ascend#5542"),
        step=block_step(choose=products_of_uniforms, weights=tokenwise),
        distances={
            "coin": 0.2024346630666566,
            "c": 0.1684297688761878,
            "eos": 0.1609532521312889,
        },
        note="Distances are irrational: P(u_1 u_2 <= c) = c - c log c.",
        case=BLOCK_TOKENS["coin"],
    ),
    of_block(
        "block-tokenwise-residual",
        "residual",
        formula="R_i = (p - q)+ in place of (A_i p - q)+",
        symptom="Only the token after a partly accepted block is off, and by little.",
        hint="Scale p by A_i: what is left to make up is A_i p, not p.",
        cites=("vllm-project/vllm-ascend#7807",),
        step=block_step(weights=tokenwise),
        distances=exactly(coin="0", m="0", c="1/24", deep="0", spelled="1/96", ends="7/540"),
        note="0 where both are in proportion, as with two tokens: then each is one point mass.",
    ),
    of_block(
        "block-stops-at-first",
        "accept",
        formula="accepted = first i with u_i > h_i, less 1",
        symptom="Accepts less than token verification.",
        hint="The last success counts; failures before it do not.",
        cites=("vllm-project/vllm-ascend#11985",),
        step=block_step(choose=first_failure),
        distances=exactly(coin="1/3", m="0", c="1/9", deep="64/285", spelled="7/27", ends="1/3"),
    ),
    of_block(
        "block-one-uniform",
        "randomness",
        formula="last i with u <= h_i, for one u",
        symptom="Accepts too little: a high u fails everywhere at once.",
        hint="A uniform of its own for every i.",
        step=block_step(choose=one_uniform),
        distances=exactly(
            coin="0", m="0", c="1/27", deep="218/1995", spelled="11/540", ends="1/99"
        ),
        note="In each path h_i is 0 or 1 but for the last i.",
    ),
    of_block(
        "block-uncapped-at-the-end",
        "accept",
        formula="h_n = min(1, p(x_1 … x_n) / q(x_1 … x_n)), other h_i as they are",
        symptom="Accepts more than block verification, which accepts the most.",
        hint="h_n = A_n, capped at every draft.",
        cites=("arXiv:2601.05724",),
        step=block_step(coin=uncapped_at_the_end),
        distances=exactly(
            coin="1/9", m="0", c="1/18", deep="181/4725", spelled="1/36", ends="1/108"
        ),
    ),
    of_block(
        "block-greedy-without-its-target",
        "accept",
        formula="A_i uncapped, h_i = min(1, sum R_i / sum (q - A_i p)+), and p as it is",
        symptom="Accepts as much as greedy block verification.",
        hint="Modify the target of the next tokens, or cap A_i.",
        cites=("arXiv:2403.10444",),
        step=block_step(grow=joint, coin=greedy),
        distances=exactly(coin="1/9", m="0", c="5/84", deep="56314/1172745"),
    ),
    of_block(
        "block-survival-of-tokens",
        "accept",
        formula="A_i = prod min(1, p / q), R_i and h_i from it",
        symptom="Accepts less than block verification.",
        hint="Cap the product, not its factors; or use (A_i)(p - q)+, token verification.",
        step=block_step(grow=each_capped),
        distances=exactly(
            coin="1/9",
            m="0",
            c="1/18",
            deep="784/17575",
            spelled="7/144",
            ends="709/16200",
        ),
    ),
    of_block(
        "block-total-alone",
        "accept",
        formula="h_i = sum R_i",
        symptom="Accepts too little.",
        hint="The walk comes to i with probability sum R_i + 1 - A_i only: divide by it.",
        step=block_step(coin=total_alone),
        distances=exactly(coin="2/81", m="0", c="29/648", spelled="713/5184", ends="2927/25920"),
    ),
    of_block_slrs(
        "block-end-is-full-acceptance",
        "vocabulary",
        formula="where the text ends: h_m = P_m, last token ~ p, though psi > 0 is left",
        symptom="Right unless a drafted text is the start of another.",
        hint="R_m = (P_m p - psi)+, or psi given that the text goes on throughout.",
        step=block_step(submit=without_end),
        distances=exactly(c="0", spelled="157/1620", ends="85/1296"),
        note="What psi has left is accepted from the longer texts, and so comes twice.",
    ),
    of_block_slrs(
        "block-psi-given-more",
        "vocabulary",
        formula="psi / (1 - psi(END)) for the drafts, psi where the text ends",
        symptom="Right unless a drafted text is the start of another.",
        hint="One of the two throughout.",
        step=block_step(submit=given_more),
        distances=exactly(c="0", spelled="1241/12960", ends="85/1296"),
    ),
    of_block_slrs(
        "block-psi-normalised-at-the-end",
        "vocabulary",
        formula="where the text ends: R_m = (P_m p - psi / sum psi)+",
        symptom="Right unless a drafted text is the start of another.",
        hint="psi is a sub-distribution; what it lacks is END's.",
        step=block_step(submit=tail_normalised),
        distances=exactly(c="0", spelled="1/216", ends="7/432"),
    ),
    of_block_slrs(
        "block-psi-unconditional",
        "vocabulary",
        formula="psi(t_1 … t_k) in place of psi(t_k | t_<k)",
        symptom="Nearly everything is accepted, from the second token on.",
        hint="Divide by psi(t_<k).",
        step=block_step(submit=unconditional),
        distances=exactly(c="771/7192", spelled="451/1836", ends="1985/7236"),
    ),
    of_block_slrs(
        "block-end-is-never-refused",
        "vocabulary",
        formula="h_i = sum R_i / sum (q - A_i p)+",
        symptom="Right for full distributions, where it is the same; too much where texts may "
        "end.",
        hint="Add the mass of END, or write sum R_i + 1 - A_i.",
        step=block_step(coin=by_refused_drafts),
        distances=exactly(c="0", deep="0", spelled="5/36", ends="1/8"),
    ),
)
CONTROLS = (
    of_block(
        "block-in-one-draw",
        "accept",
        formula="at i, draw from (R_i, 1 - A_i): a token, or one draft further back",
        symptom="There is no random number and no h_i.",
        hint="Exact: the random number and the residual in one.",
        cites=("ZhouYuxuanYX/Hierarchical-Speculative-Decoding",),
        lossless=True,
        step=one_draw,
    ),
    of_block(
        "block-tossed-forwards",
        "accept",
        formula="u_1, …, u_n first, then the last i with u_i <= h_i",
        symptom="Accepts draft j after a failure at i < j.",
        hint="Exact: the listing as printed.",
        cites=("arXiv:2403.10444", "vllm-project/vllm-ascend#11985"),
        lossless=True,
        step=block_step(choose=forwards),
    ),
    of_block(
        "block-zero-over-zero-is-one",
        "accept",
        formula="h_i = 1 for 0/0",
        symptom="It would stop where there is no residual.",
        hint="Exact: no walk comes there.",
        lossless=True,
        step=block_step(coin=or_one),
    ),
    of_block(
        "block-by-tokens",
        "accept",
        formula="A_i = prod min(1, p / q), R_i = A_i (p - q)+",
        symptom="Neither A_i nor R_i is that of block verification.",
        hint="Exact: token verification, from the last draft back.",
        lossless=True,
        step=block_step(grow=each_capped, coin=token_coin, weights=scaled),
    ),
    of_block(
        "block-drafts-are-certain",
        "accept",
        formula="q = 1 at the draft, although it was sampled",
        symptom="A q that is not the draft model's.",
        hint="Exact: given the drafts, they are. It accepts less.",
        lossless=True,
        step=block_step(submit=certain),
    ),
    of_block_slrs(
        "block-given-more",
        "vocabulary",
        formula="psi / (1 - psi(END)) for the drafts, h_m = P_m and p where the text ends",
        symptom="END is full acceptance, and psi is not the distribution of the next token.",
        hint="Exact, as `slrs` with `ending` bonus: no random number of t_k decides whether it "
        "ends.",
        lossless=True,
        step=block_step(submit=lambda d: given_more(without_end(d))),
    ),
)
