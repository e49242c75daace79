"""Batched block verification: its exact law is that of the enumerated algorithm.

Nothing in the proofs is random: thresholds of the coins are bisected on their grid of 2^-53.
The kit's sampled checks have alpha 1e-9 and find a total variation of 0.1 with a probability of
0.999.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

import torch
from torch import Tensor

from proofs_tests.helpers.bugs import torch_tree
from proofs_tests.helpers.torch.laws import (
    LAST,
    Case,
    Law,
    block_laws,
    drafted,
    outputs,
    ragged_batch,
    verified_laws,
)
from specref.adapters.torch_backend import load_verify_block
from specref.algorithms import block as enumerated
from specref.algorithms import standard, union
from specref.chance import exact_distribution
from specref.conformance.public import check
from specref.distributions import total_variation
from specref.pairs import Pair, toy_pairs
from specref.proofs.exact import completed
from specref.torch_backend.verification import block, chains, trees
from specref.torch_backend.verification.block import verify_block
from specref.torch_backend.verification.chains import OUTSIDE, Coins
from specref.torch_backend.verification.trees import ROOT, verify_tree

EXACT = 1e-12
Verified = tuple[Tensor, Tensor]


def judged(p: Tensor, q: Tensor | None, tokens: Tensor, coins: Coins) -> Verified:
    return verify_block(p, q, tokens, coins=coins)


# `standard` drafts for same vocabularies; those of `union` are partly OUTSIDE, q below 1.
DRAFTING = {"block": enumerated, "union": union}


def pairs(name: str) -> Iterator[Pair]:
    for pair in toy_pairs("quick"):
        if pair.same_vocabulary == (name == "block"):
            yield pair


@cache
def drafts_of(name: str, pair: Pair, lookahead: int) -> Case:
    step, context = DRAFTING[name].step, pair.contexts[-1]
    drafts = drafted(step, pair.target, pair.drafter, context, lookahead)
    return Case(pair.target, context, drafts)


def right_law(name: str, pair: Pair, lookahead: int) -> Law:
    """Of blocks, in fractions: drafts of the algorithm, verified by `algorithms.block`."""
    target, context, drafts = drafts_of(name, pair, lookahead)
    found: Law = {}
    for (tokens, rows), weight in drafts.items():
        drafted = [standard.Draft(*one) for one in zip(tokens, map(_law_of, rows), strict=True)]
        law = exact_distribution(
            lambda chance, drafted=drafted: enumerated.verify(target, context, drafted, chance)
        )
        for text, chance in law.items():
            found[text] = found.get(text, 0.0) + float(weight * chance)
    return found


def _law_of(row: Any) -> Any:
    return np.array(row, dtype=object)


def differences(name: str, lookahead: int, few: int = 99) -> Iterator[str]:
    """Where blocks have another law than the algorithm, or their completion than the target."""
    where = list(pairs(name))[:few]
    found = outputs(judged, block_laws, [drafts_of(name, pair, lookahead) for pair in where])
    for pair, law in zip(where, found, strict=True):
        right = right_law(name, pair, lookahead)
        if total_variation(law, right) > EXACT:
            yield f"{pair.name}: blocks"
        length, context = max(map(len, right | law)), pair.contexts[-1]
        texts = (completed(one, pair.target, context, length) for one in (law, {(): 1.0}))
        if total_variation(*texts) > EXACT:
            yield f"{pair.name}: completed blocks"


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize(("name", "lookahead"), [("block", 1), ("block", 2), ("union", 2)])
def test_blocks_have_the_law_of_the_algorithm(name: str, lookahead: int) -> None:
    assert len(list(pairs(name))) >= 5
    assert list(differences(name, lookahead)) == []


@pytest.mark.deep
def test_longer_blocks_have_the_law_of_the_algorithm() -> None:
    assert list(differences("block", 3, few=4)) == []
    assert list(differences("union", 3, few=2)) == []


# Planted bugs: in what is passed on to `verify_tree`, or a function of its module, replaced.


def told(**changes: Callable[[Tensor], Tensor]) -> Callable[..., Verified]:
    """`verify_tree` with other parents, or other coins of drafts."""

    def verified(*given: Any, coins: Coins, **rule: str) -> Verified:
        *laws_and_drafts, parents = given
        accept = changes.get("accept", same)(coins.accept)
        parents = changes.get("parents", same)(parents)
        return verify_tree(*laws_and_drafts, parents, coins=coins._replace(accept=accept), **rule)

    return verified


def same(given: Tensor) -> Tensor:
    return given


def siblings(parents: Tensor) -> Tensor:
    return parents.clamp(max=ROOT)


def of_one_coin(uniforms: Tensor) -> Tensor:
    return uniforms[:, :1].expand_as(uniforms)


def products(uniforms: Tensor) -> Tensor:
    """As vllm-ascend #5542: the longest prefix with P >= the product of its coins."""
    return uniforms.cumprod(dim=1)


def stopping_at_the_first_failure(trees: Any, found: Tensor) -> Tensor:
    return found


def none_for_outside(weights: Tensor, trees: Any, i: int) -> Tensor:
    outside = trees.drafts[:, i, None] == OUTSIDE
    return torch.where(outside, weights, CLEAN_LESS(weights.clone(), trees, i))


def normalised(weights: Tensor, trees: Any, i: int) -> Tensor:
    laws = trees.q / trees.q.sum(dim=2, keepdim=True).clamp(min=1e-9)
    return CLEAN_LESS(weights, trees._replace(q=laws), i)


CLEAN_LESS = trees._less
BUGS: dict[str, tuple[str, Any, str, Callable[..., Any]]] = {
    "drafts are siblings": ("block", block, "verify_tree", told(parents=siblings)),
    "products of coins": ("block", block, "verify_tree", told(accept=products)),
    "one coin for all": ("block", block, "verify_tree", told(accept=of_one_coin)),
    "stops at the first failure": ("block", trees, "_leading", stopping_at_the_first_failure),
    "h is P": ("block", trees, "_refused", torch_tree.survival_kept),
    "residual token by token": ("block", trees, "_refused", torch_tree.token_by_token),
    "P not kept below 1": ("block", trees, "_chance", torch_tree.ratio_unbounded),
    "no residual after OUTSIDE": ("union", trees, "_less", none_for_outside),
    "q normalised": ("union", trees, "_less", normalised),
}


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_have_another_law(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, module, function, broken = BUGS[bug]
    monkeypatch.setattr(module, function, broken)
    assert next(differences(name, 2), None)


def test_pinned_lengths() -> None:
    """The paper's toy: of 2 drafts 11/9 are accepted, where the standard rule accepts 10/9."""
    p = torch.tensor([1 / 3, 2 / 3], dtype=torch.float64)
    tokens = torch.cartesian_prod(*[torch.arange(2)] * 2)
    q = p.flip(0)
    given = p.expand(4, 3, 2), q.expand(4, 2, 2), tokens
    expected = 0.0
    for weight, law in zip(
        q[tokens].prod(dim=1).tolist(), block_laws(judged, *given), strict=True
    ):
        expected += weight * sum((len(text) - 1) * chance for text, chance in law.items())
    assert expected == pytest.approx(11 / 9, abs=EXACT)


@pytest.mark.parametrize("q_given", [True, False])
def test_one_draft_or_certain_drafts_are_verified_as_by_the_standard_rule(q_given: bool) -> None:
    """The same law, by other coins where drafts are certain; with one draft the same blocks."""
    p, q, tokens, coins = ragged_batch()
    one = Coins(coins.accept[:, :1], coins.final)
    given = p[:, :2], q[:, :1] if q_given else None, tokens[:, :1]
    found, right = judged(*given, one), chains.verify(*given, coins=one)
    assert all(map(torch.equal, found, right))
    certain = p[::12], None, tokens[::12]
    pairs = zip(block_laws(judged, *certain), verified_laws(standard_rule, *certain), strict=True)
    assert max(total_variation(*pair) for pair in pairs) < EXACT


def standard_rule(p: Tensor, q: Tensor | None, tokens: Tensor, coins: Coins) -> Verified:
    return chains.verify(p, q, tokens, coins=coins)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("u", [0.0, LAST])
def test_ends_of_the_coins(dtype: torch.dtype, u: float) -> None:
    """P = 0 is refused at 0, P = 1 accepted just below 1; no weight 0 is drawn."""
    p = torch.tensor([[0.0, 0.5, 0.5, 0.0], [0.0, 0.25, 0.75, 0.0]], dtype=dtype)
    p = p[[0, 1, 1]].repeat(3, 1, 1)
    q = torch.tensor([[0.5, 0.0, 0.0, 0.5], [0.0, 0.5, 0.5, 0.0], [0.0, 0.25, 0.75, 0.0]])
    q = torch.stack([q[[0, 1]], q[[1, 2]], q[[1, 0]]]).to(dtype)
    tokens, uniforms = (
        torch.tensor([[0, 1], [1, 1], [2, 3]]),
        torch.full((3, 2), u, dtype=torch.float64),
    )
    for coins in (Coins(uniforms, uniforms[:, 0]), Coins(uniforms, race=uniforms.repeat(1, 2))):
        found, counts = judged(p, q, tokens, coins)
        assert counts.tolist() == [1, 3, 2]
        for row, count in zip(found.tolist(), counts.tolist(), strict=True):
            assert set(row[:count]) <= {1, 2}


@pytest.mark.parametrize("after", [0, 1])
def test_a_draft_of_0_over_0_is_refused_with_all_after_it(after: int) -> None:
    """Also if q excludes the next one, but p does not: 0 * inf."""
    p = torch.tensor([0.5, 0.5, 0.0]).expand(1, 3, 3)
    q = torch.tensor([[[0.25, 0.75, 0.0], [0.0, 1.0, 0.0]]])
    certain = torch.zeros(1, 2, dtype=torch.float64)
    coins = Coins(certain, final=torch.tensor([LAST]))
    tokens, counts = judged(p, q, torch.tensor([[2, after]]), coins)
    assert (tokens.tolist(), counts.tolist()) == ([[0, -1, -1]], [1])


@pytest.mark.parametrize(("side", "count"), [(-(2.0**-40), 2), (2.0**-40, 1)])
def test_acceptance_is_decided_in_float64(side: float, count: int) -> None:
    p, q = torch.tensor([[[0.1, 0.9]] * 2]), torch.tensor([[[0.3, 0.7]]])
    threshold = p[0, 0, 0].double() / q[0, 0, 0].double()
    coins = Coins((threshold + side).view(1, 1), final=torch.zeros(1))
    assert judged(p, q, torch.tensor([[0]]), coins)[1].tolist() == [count]


@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.deep
@pytest.mark.parametrize("bug", ["stops at the first failure", "products of coins"])
def test_the_kit_finds_planted_bugs(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, module, function, broken = BUGS[bug]
    monkeypatch.setattr(module, function, broken)
    report = check(load_verify_block(), only=["joint/deep"], detect_tv=0.1, blocking=False)
    assert report.counts["failed"] == len(report.results) == 1, report
