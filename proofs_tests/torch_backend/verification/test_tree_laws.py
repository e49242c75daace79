"""Batched verification of token trees: its exact laws are those of the enumerated algorithms.

Nothing here is random: thresholds of the coins are bisected on their grid of 2^-53, and other
coins are of a fixed seed.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

import torch
from torch import Tensor

from proofs_tests.helpers.bugs import trees as tree_bugs
from proofs_tests.helpers.bugs.torch_tree import BUGS, planted
from proofs_tests.helpers.torch.laws import Law
from proofs_tests.helpers.torch.tree_laws import (
    EACH_RULE,
    RULES,
    Batch,
    Pick,
    Row,
    Verified,
    breadth_first,
    depth_first,
    tree_laws,
    up_to_eos,
)
from proofs_tests.helpers.tree_cases import Case, top_tree
from specref import Vocabulary
from specref.algorithms.trees import topdown
from specref.algorithms.trees.topdown import Tree
from specref.chance import exact_distribution
from specref.distributions import Probability, total_variation
from specref.models import hashed_model, iid_model
from specref.proofs.exact import completed
from specref.torch_backend import Coins, verify_tree

EXACT = 1e-12
AB, ABC, ABS = Vocabulary("ab"), Vocabulary("abc"), Vocabulary("abc", eos="c")


def judged(rule: str) -> Callable[..., Verified]:
    def verified(p: Tensor, q: Any, tokens: Tensor, parents: Tensor, coins: Coins) -> Verified:
        return verify_tree(p, q, tokens, parents, rule=rule, coins=coins)

    return verified


def hashed(vocabulary: Vocabulary, key: str, *shape: Any) -> Case:
    models = [hashed_model(vocabulary, f"{side}{key}") for side in ("p", "q")]
    return Case(models[0], models[1], (), *shape)


HALVES, COIN = iid_model(ABC, ["1/2", "1/2", 0]), iid_model(AB, ["1/3", "2/3"])
# After c is refused, a and b are left, and a is drafted more often than it is wanted.
LEFT = iid_model(ABC, ["9/20", "9/20", "1/10"])
CASES = (
    *(hashed(ABC, "1", *shape) for shape in (((), True), ((2,), True), ((3,), False))),
    *(hashed(ABC, key, (2, 1), replacement) for key in "12" for replacement in (True, False)),
    *(hashed(ABC, "3", (1, 2), replacement) for replacement in (True, False)),
    *(hashed(AB, "4", (2, 2), replacement) for replacement in (True, False)),
    hashed(ABC, "5", (1, 1, 1), True),
    hashed(AB, "6", (2, 1, 1), False),
    hashed(ABS, "7", (2, 2), False),
    Case(HALVES, HALVES, (), (2, 1), False),
    Case(HALVES, iid_model(ABC, [0, "1/2", "1/2"]), (), (3,), True),
    Case(COIN, iid_model(AB, ["2/3", "1/3"]), (), (2, 1), True),
    Case(LEFT, iid_model(ABC, ["2/5", "1/10", "1/2"]), (), (2, 1), False),
)
FEW = (CASES[4], CASES[7], CASES[9], CASES[13], CASES[-2], CASES[-1])


@cache
def drafts_of(case: Case) -> tuple[tuple[Tree, Probability], ...]:
    """All trees of a case, with their probabilities."""
    known: dict[str, Tree] = {}

    def program(chance: Any) -> str:
        tree = topdown.draft(
            case.drafter, case.context, case.branching, chance, replacement=case.replacement
        )
        known[repr(tree)] = tree
        return repr(tree)

    return tuple((known[name], weight) for name, weight in exact_distribution(program).items())


@cache
def rows_of(cases: Sequence[Case]) -> list[Row]:
    return [Row(case.target, case.context, tree) for case in cases for tree, _ in drafts_of(case)]


@cache
def right_laws(rule: str, cases: Sequence[Case]) -> list[dict[Any, Probability]]:
    return [
        exact_distribution(lambda chance, row=row: RULES[rule].verify(*row, chance))
        for row in rows_of(cases)
    ]


def mixed(families: int) -> int:
    return families // 2


def differences(
    rule: str,
    cases: Sequence[Case] = CASES,
    pick: Pick = breadth_first,
    verified: Any = None,
    change: Any = lambda tree: tree,
) -> Iterator[str]:
    """Where a tree has another law than by the algorithm, or completed blocks than the target."""
    rows = [row._replace(tree=change(row.tree)) for row in rows_of(cases)]
    laws = tree_laws(verified or judged(rule), Batch(rows, pick), rule)
    found = [up_to_eos(law, row.target) for law, row in zip(laws, rows, strict=True)]
    for row, law, right in zip(rows, found, right_laws(rule, cases), strict=True):
        if total_variation(law, right) > EXACT:
            yield f"{row.tree}"
    drawn = iter(found)
    for case in cases:
        texts: Law = {}
        for (_, weight), law in zip(drafts_of(case), drawn, strict=False):
            for block, chance in law.items():
                texts[block] = texts.get(block, 0.0) + float(weight) * chance
        both = (completed(one, *case[:1], (), 1 + len(case.branching)) for one in (texts, {(): 1}))
        if total_variation(*both) > EXACT:
            yield f"{case}"


@pytest.mark.deep(one_in=6)
@EACH_RULE
@pytest.mark.parametrize("pick", [breadth_first, depth_first, mixed])
def test_trees_have_the_law_of_the_algorithm(rule: str, pick: Pick) -> None:
    """All in one ragged batch, whatever the order of the nodes."""
    assert len(rows_of(CASES)) >= 200
    assert list(differences(rule, pick=pick)) == []


@pytest.mark.deep(one_in=2)
@EACH_RULE
def test_certain_drafts_have_the_law_of_the_algorithm(rule: str) -> None:
    """The likeliest tokens; without their laws, and with point masses for laws."""
    rows = [
        Row(target, (), top_tree(drafter, (), branching))
        for key in "123"
        for target, drafter, *_ in [hashed(ABC, key, (), True)]
        for branching in [(), (3,), (2, 2), (1, 2, 1)]
    ]
    batch = Batch(rows)
    given = batch.p, None, *batch.given[2:]
    right = [exact_distribution(lambda chance, row=row: RULES[rule].verify(*row, chance))
             for row in rows]  # fmt: skip
    found = tree_laws(lambda p, q, *more: judged(rule)(p, None, *more), batch, rule)
    assert max(map(total_variation, found, right)) < EXACT
    both = judged(rule)(*given, batch.coins), judged(rule)(*batch.given, batch.coins)
    assert all(map(torch.equal, *both))


@pytest.mark.deep(one_in=16)
@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_have_another_law(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = planted(bug, monkeypatch.setattr)
    assert next(differences(rule, FEW), None)


@pytest.mark.deep(one_in=2)
@EACH_RULE
def test_siblings_whose_laws_are_not_restricted_have_another_law(rule: str) -> None:
    assert next(differences(rule, FEW, change=tree_bugs.declared), None)


@pytest.mark.deep(one_in=4)
@EACH_RULE
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_low_precision_has_the_law_of_the_same_numbers(rule: str, dtype: torch.dtype) -> None:
    """To float32's rounding."""
    both = [Batch(rows_of(FEW)) for _ in range(2)]
    for batch, kind in zip(both, (dtype, torch.float64), strict=True):
        batch.p, batch.q = (laws.to(dtype).to(kind) for laws in (batch.p, batch.q))
    laws = (tree_laws(judged(rule), batch, rule) for batch in both)
    assert max(map(total_variation, *laws)) < 1e-6
