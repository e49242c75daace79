"""Block verification in parts: with no part replaced it is `block.step`, or `block_slrs.step`.

Full acceptance is a row like the others, after which nothing is drafted: q = 0, so that h = P and
the next token is from p. After an accepted EOS, p is the certainty of the end.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np

from specref.algorithms import Step, standard
from specref.algorithms.slrs import propose
from specref.algorithms.standard import Draft
from specref.chance import Chance
from specref.distributions import Probabilities, Probability, normalise
from specref.models import Model
from specref.theory.lookahead import fixed
from specref.vocabulary import Tokens

CERTAIN = np.array([Fraction(1)], dtype=object)


class Row(NamedTuple):
    """The drafts so far, P_i, the joint ratio p(x_1 … x_i) / q(x_1 … x_i), and what comes next."""

    block: Tokens
    survival: Probability
    ratio: Probability
    p: Probabilities
    q: Probabilities


Drafting: TypeAlias = Callable[[Model, Model, Tokens, int, Chance], list[Draft]]
Grow: TypeAlias = Callable[[Row, int], Probability]
Weights: TypeAlias = Callable[[Row], Probabilities]
Coin: TypeAlias = Callable[[Row], Probability]
Choose: TypeAlias = Callable[[Sequence[Row], Sequence[Probability], Chance], int]


def drafted_text(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> list[Draft]:
    """The target's tokens of a drafted text, then END, as `block_slrs` has them."""
    tokens, psi = propose(target, drafter, context, lookahead, chance, fixed)
    laws = (psi[tokens[:k]] for k in range(len(tokens) + 1))
    return [Draft(token, law) for token, law in zip((*tokens, None), laws, strict=True)]


def capped(row: Row, token: int) -> Probability:
    """P_{i+1} = min(1, P_i p / q)."""
    ratio: Probability = row.survival * row.p[token] / row.q[token]
    return min(1, ratio)


def excess(row: Row) -> Probabilities:
    """R_i = (P_i p - q)+."""
    weights: Probabilities = np.maximum(row.survival * row.p - row.q, 0)
    return weights


def stopping(row: Row) -> Probability:
    """h_i = sum R_i / (sum R_i + 1 - P_i), or 0 for 0/0."""
    total: Probability = excess(row).sum()
    return total / (total + (1 - row.survival)) if total else total


def last_success(rows: Sequence[Row], coins: Sequence[Probability], chance: Chance) -> int:
    """The longest prefix whose coin succeeds, or the empty one."""
    backwards = range(len(rows) - 1, 0, -1)
    return next((i for i in backwards if chance.accept(coins[i], f"accept[{i - 1}]")), 0)


def drafted_tokens(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> list[Draft]:
    """Drafts over the target's own vocabulary."""
    return standard.draft(drafter, context, lookahead, chance)


def block_step(
    drafting: Drafting = drafted_tokens,
    *,
    submit: Callable[[list[Draft]], list[Draft]] = lambda drafts: drafts,
    grow: Grow = capped,
    coin: Coin = stopping,
    choose: Choose = last_success,
    weights: Weights = excess,
) -> Step:
    """A step of block verification in which some parts are replaced.

    Parameters
    ----------
    drafting : callable
        `drafted_tokens` or `drafted_text`.
    submit : callable
        drafts -> drafts: what the verifier is given.
    grow : callable
        (row, token) -> P of the prefix with this token.
    coin, weights : callable
        Row -> probability to stop there, and weights of the token that then comes next.
    choose : callable
        (rows, coins, chance) -> the row to stop at.

    Examples
    --------
    >>> from specref.algorithms import block
    >>> from specref.zoo.fixtures import FIXTURES
    >>> FIXTURES["c"].blocks(block_step()) == FIXTURES["c"].blocks(block.step)
    True
    """

    def step(
        target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> Tokens:
        drafts = submit(drafting(target, drafter, context, lookahead, chance))
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
