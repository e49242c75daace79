"""The cases of an algorithm, with their ids, from the groups that are written by hand."""

import hashlib
from collections.abc import Mapping
from types import MappingProxyType

from specref.rules import RULES
from specref.vectors.cases import Case, StepCase, Toss, VerifyCase, row
from specref.vectors.groups import (
    ITERATIONS,
    VERIFICATIONS,
    Group,
    StepGroup,
)
from specref.vectors.groups.iterations import BY_TEXT, BY_TOKEN, ONE_VOCABULARY

RETIRED: Mapping[str, str] = MappingProxyType({})
PUBLISHED = (*ONE_VOCABULARY, *BY_TOKEN, *BY_TEXT)


def cases(algorithm: str) -> list[Case]:
    """Every case of an algorithm that is not retired.

    Examples
    --------
    >>> cases("standard")[0].id, len(cases("slem")) >= 20
    ('standard/interior/001', True)
    """
    found: list[Case] = []
    for group in VERIFICATIONS:
        if algorithm in group.rules:
            found += [_verify(algorithm, group, n) for n in range(len(group.coins))]
    for pair in ITERATIONS:
        if algorithm in pair.algorithms:
            found += [_step(algorithm, pair, n) for n in range(len(pair.places))]
    return [case for case in found if case.id not in RETIRED]


def _id(algorithm: str, slug: str, n: int) -> str:
    return f"{algorithm}/{slug}/{n + 1:03d}"


def _verify(rule: str, group: Group, n: int) -> VerifyCase:
    p = tuple(map(row, group.p))
    coins = group.coins[n]
    race = coins.race or _noise(len(p[0]), f"{group.slug}/{n}")
    toss = Toss(coins.accept, coins.final, race)
    q = None if group.q is None else tuple(map(row, group.q))
    cites = (RULES[rule].papers[0],)
    return VerifyCase(
        _id(rule, group.slug, n), rule, group.comment, cites, p, q, group.drafts, toss
    )


def _step(algorithm: str, group: StepGroup, n: int) -> StepCase:
    context, lookahead = group.places[n]
    return StepCase(
        _id(algorithm, group.slug, n),
        algorithm,
        group.comment,
        (RULES[algorithm].papers[0],),
        group.target,
        group.drafter,
        context,
        lookahead,
    )


def _noise(size: int, key: str) -> tuple[float, ...]:
    """Numbers from 1/64 to 4, all different."""
    picks: dict[int, None] = {}
    for n in range(16):
        picks |= dict.fromkeys(hashlib.blake2b(f"{key}/{n}".encode()).digest())
    return tuple((1 + pick) / 64 for pick in picks)[:size]
