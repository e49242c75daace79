"""Block verification in parts: with no part replaced it is `block.step`, or `block_slrs.step`.

Full acceptance is a row like the others, after which nothing is drafted: q = 0, so that h = P and
the next token is from p. After an accepted EOS, p is the certainty of the end.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
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
