"""The cases of an algorithm, with their ids, from the groups that are written by hand."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from specref.contrib.vectors.cases import Case, StepCase, VerifyCase, row
from specref.contrib.vectors.groups import ITERATIONS, VERIFICATIONS
from specref.contrib.vectors.groups.iterations import BY_TEXT, BY_TOKEN, ONE_VOCABULARY
from specref.rules import RULES

RETIRED: Mapping[str, str] = MappingProxyType({})
PUBLISHED = (*ONE_VOCABULARY, *BY_TOKEN, *BY_TEXT)


def cases(algorithm: str) -> list[Case]:
    """Every case of an algorithm that is not retired."""
    cites = (RULES[algorithm].papers[0],)
    found: list[Case] = []
    for group in VERIFICATIONS:
        p = tuple(map(row, group.p))
        q = None if group.q is None else tuple(map(row, group.q))
        for n, coins in enumerate(group.coins if algorithm in group.rules else ()):
            id_ = f"{algorithm}/{group.slug}/{n + 1:03d}"
            race = coins.race or _noise(len(p[0]), f"{group.slug}/{n}")
            given = (p, q, group.drafts, replace(coins, race=race))
            found.append(VerifyCase(id_, algorithm, group.comment, cites, *given))
    for pair in ITERATIONS:
        models = pair.target, pair.drafter
        for n, place in enumerate(pair.places if algorithm in pair.algorithms else ()):
            id_ = f"{algorithm}/{pair.slug}/{n + 1:03d}"
            found.append(StepCase(id_, algorithm, pair.comment, cites, *models, *place))
    return [case for case in found if case.id not in RETIRED]


def _noise(size: int, key: str) -> tuple[float, ...]:
    """Numbers from 1/64 to 4, all different."""
    picks: dict[int, None] = {}
    for n in range(16):
        picks |= dict.fromkeys(hashlib.blake2b(f"{key}/{n}".encode()).digest())
    return tuple((1 + pick) / 64 for pick in picks)[:size]
