"""Batched verification in torch: its exact law is that of the enumerated algorithms.

Nothing here is random: thresholds of the coins are bisected on their grid of 2^-53, and the law
that follows is compared with the one that `exact_distribution` gives in fractions.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

import torch
from torch import Tensor

from proofs_tests.helpers.torch.laws import (
    LAST,
    Case,
    Drafted,
    Law,
    drafted,
    matched_laws,
    outputs,
    ragged_batch,
    verified_laws,
)
from specref.chance import exact_distribution
from specref.distributions import Probability, total_variation
from specref.pairs import Pair, toy_pairs
from specref.proofs.exact import completed
from specref.rules import RULES
from specref.torch_backend.verification import chains
from specref.torch_backend.verification.chains import (
    NO_DRAFT,
    OUTSIDE,
    Coins,
    verify,
    verify_matching,
)
from specref.vocabulary import Tokens

EXACT = 1e-12


class Place(NamedTuple):
    """Where drafts are made."""

    pair: Pair
    context: Tokens
    lookahead: int


def standard(p: Tensor, q: Tensor | None, tokens: Tensor, coins: Coins) -> tuple[Tensor, Tensor]:
    return verify(p, q, tokens, coins=coins)


def matching(p: Tensor, q: None, tokens: Tensor, coins: Coins) -> tuple[Tensor, Tensor]:
    return verify_matching(p, tokens, coins=coins)


def pairs(name: str) -> Iterator[Pair]:
    for pair in toy_pairs("quick"):
        by_text = name in ("slem", "slrs")
        if pair.by_text if by_text else pair.same_vocabulary or name != "standard":
            yield pair


def places(name: str) -> list[Place]:
    return [Place(pair, context, 2) for pair in pairs(name) for context in pair.contexts]


def found_laws(name: str, where: Sequence[Place]) -> list[Law]:
    cases = [Case(pair.target, context, drafts_at(name, pair, context, lookahead))
             for pair, context, lookahead in where]  # fmt: skip
    if name == "slem":
        return outputs(matching, matched_laws, cases)
    return outputs(standard, verified_laws, cases)


@cache
def drafts_at(name: str, *place: Any) -> Mapping[Drafted, Probability]:
    pair, context, lookahead = place
    return drafted(RULES[name].step, pair.target, pair.drafter, context, lookahead)


@cache
def right_law(name: str, *place: Any) -> Law:
    pair, context, lookahead = place
    step, models = RULES[name].step, (pair.target, pair.drafter)
    law = exact_distribution(lambda chance: step(*models, context, lookahead, chance))
    return {block: float(weight) for block, weight in law.items()}


def differences(name: str, where: Sequence[Place]) -> Iterator[str]:
    """Where blocks or completed blocks have another law than the algorithm and the target."""
    for place, found in zip(where, found_laws(name, where), strict=True):
        right, target = right_law(name, *place), place.pair.target
        if set(found) != set(right) or total_variation(found, right) > EXACT:
            yield f"{name}, {place.pair.name}: blocks"
        length = max(map(len, right | found))
        texts = (completed(blocks, target, place.context, length) for blocks in (found, {(): 1.0}))
        if total_variation(*texts) > EXACT:
            yield f"{name}, {place.pair.name}: completed blocks"


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize("name", ["standard", "union", "tli", "slrs", "slem"])
def test_blocks_have_the_law_of_the_algorithm(name: str) -> None:
    """All quick pairs, both contexts, lookahead 2: the law of blocks, and their joint law."""
    assert len(places(name)) >= 30
    assert list(differences(name, places(name))) == []


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize(("name", "lookahead"), [("standard", 4), ("union", 3), ("slem", 3)])
def test_longer_blocks_have_the_law_of_the_algorithm(name: str, lookahead: int) -> None:
    small = [pair for pair in pairs(name) if len(pair.target.vocabulary) <= 3][:6]
    where = [Place(pair, pair.contexts[0], lookahead) for pair in small]
    assert list(differences(name, where)) == []


# Planted bugs: each is one function of the module, replaced.


def accepting_equals(p: Tensor, q: Tensor | None, drafts: Tensor, u: Tensor) -> Tensor:
    tokens = drafts[:, :-1, None]
    chance = [laws.gather(2, tokens.clamp(min=0))[..., 0].double() for laws in (p[:, :-1], q)]
    return (u <= chance[0] / chance[1]) & (drafts[:, :-1] >= 0)


def of_position_before(q: Any, drafts: Tensor, kept: Tensor, like: Tensor) -> Tensor:
    return CLEAN["rejected_law"](q, drafts, (kept - (drafts[:, 0] >= 0).long()).clamp(min=0), like)


def of_every_row(q: Any, drafts: Tensor, kept: Tensor, like: Tensor) -> Tensor:
    return q[torch.arange(len(kept)), kept.clamp(max=q.shape[1] - 1)].nan_to_num()


def none_for_outside(q: Any, drafts: Tensor, kept: Tensor, like: Tensor) -> Tensor:
    law = CLEAN["rejected_law"](q, drafts, kept, like)
    return law * (drafts.gather(1, kept[:, None]) != OUTSIDE)


def normalised(q: Any, drafts: Tensor, kept: Tensor, like: Tensor) -> Tensor:
    law = CLEAN["rejected_law"](q, drafts, kept, like)
    return law / law.sum(dim=1, keepdim=True).clamp(min=1e-9)


def by_first_coin(weights: Tensor, coins: Coins) -> Tensor:
    return CLEAN["last_token"](weights, coins._replace(final=coins.accept[:, 0]))


CLEAN = {name: getattr(chains, name) for name in ("rejected_law", "last_token")}
BUGS: dict[str, tuple[str, str, Callable[..., Tensor]]] = {
    "accepts p = 0 at u = 0": ("standard", "_accepted", accepting_equals),
    "residual of the position before": ("standard", "rejected_law", of_position_before),
    "bonus from a residual": ("standard", "rejected_law", of_every_row),
    "last token by the first coin": ("standard", "last_token", by_first_coin),
    "no residual after OUTSIDE": ("union", "rejected_law", none_for_outside),
    "q normalised": ("union", "rejected_law", normalised),
}


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_have_another_law(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, function, broken = BUGS[bug]
    monkeypatch.setattr(chains, function, broken)
    assert next(differences(name, places(name)), None)


def test_matching_that_keeps_what_differs_has_another_law(monkeypatch: pytest.MonkeyPatch) -> None:
    late = chains._leading
    monkeypatch.setattr(chains, "_leading", lambda flags: (late(flags) + 1).clamp(max=2))
    assert next(differences("slem", places("slem")[:6]), None)


# Batches.


def test_certain_drafts_need_no_laws() -> None:
    """`draft_probs` None is a point mass on each draft, and no mass anywhere for OUTSIDE."""
    p, _, tokens, coins = ragged_batch()
    point = torch.nn.functional.one_hot(tokens.clamp(min=0), p.shape[2]) * (tokens >= 0)[..., None]
    found = verify(p, None, tokens, coins=coins)
    assert all(map(torch.equal, found, verify(p, point.double(), tokens, coins=coins)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("u", [0.0, LAST])
def test_ends_of_the_coins(dtype: torch.dtype, u: float) -> None:
    """p = 0 is rejected at 0, p = q accepted just below 1, 0 / 0 refused; no weight 0 is drawn."""
    p = torch.tensor([[0.0, 0.5, 0.5, 0.0], [0.0, 0.25, 0.75, 0.0]], dtype=dtype).repeat(4, 1, 1)
    q = torch.tensor([[[0.5, 0.0, 0.0, 0.5]], [[0.0, 0.5, 0.5, 0.0]]] * 2, dtype=dtype)
    more = torch.tensor([[0.0, 0.5, 0.5, 0.0]], dtype=dtype) * (1 + torch.finfo(dtype).eps)
    q[2], q[3] = more, torch.tensor([0.0, 0.5, 0.5, 0.0], dtype=dtype)
    tokens, uniform = (
        torch.tensor([[0], [1], [1], [0]]),
        torch.full((4, 1), u, dtype=torch.float64),
    )
    race = torch.full((4, 4), -torch.log1p(torch.tensor(-u, dtype=torch.float64)).item())
    for coins in (Coins(uniform, final=uniform[:, 0]), Coins(uniform, race=race)):
        found, counts = verify(p, q, tokens, coins=coins)
        assert counts.tolist() == [1, 2, 2 if u == 0 else 1, 1]
        assert set(found[:, 0].tolist()) <= {1, 2}
        assert set(found[:, 1].tolist()) <= {1, 2, NO_DRAFT}
