"""What a verification of token trees refuses: shapes at once, values where it is asked to look."""

from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

import torch

from specref.torch_backend import NO_NODE, OUTSIDE, ROOT, Coins, validate_tree, verify_tree

NAN = torch.nan


def given(**changed: Any) -> dict[str, Any]:
    """Rows of three nodes and of one; the second of the three has a child."""
    p, coins = torch.full((2, 4, 2), 0.5), Coins(torch.zeros(2, 3), final=torch.zeros(2))
    tokens = torch.tensor([[0, 1, 1], [1, -1, -1]])
    parents = torch.tensor([[ROOT, ROOT, 1], [ROOT, NO_NODE, NO_NODE]])
    laws = {"target_probs": p, "draft_probs": p[:, 1:], "draft_tokens": tokens}
    return {**laws, "parents": parents, "coins": coins} | changed


def changed_at(name: str, place: tuple[int, ...], value: float) -> dict[str, Any]:
    tensor = given()[name].clone()
    tensor[place] = value
    return {name: tensor}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"target_probs": [0.5]}, "target_probs is of list: expected a tensor of floats"),
        ({"draft_probs": torch.ones(2, 3, 2).int()}, "draft_probs is of torch.int32"),
        ({"draft_tokens": torch.zeros(2, 3)}, "draft_tokens is of torch.float32: expected a t"),
        ({"parents": torch.zeros(2, 3)}, "parents is of torch.float32: expected a tensor of int"),
        ({"parents": None}, "parents is of NoneType: expected a tensor of integers"),
        ({"target_probs": torch.ones(4, 2)}, r"target_probs has shape \(4, 2\): expected \(B"),
        ({"draft_tokens": torch.ones(2, 4).long()}, r"draft_tokens has shape \(2, 4\): expected"),
        ({"draft_probs": torch.ones(2, 4, 2)}, r"draft_probs has shape \(2, 4, 2\): expected \("),
        ({"parents": torch.ones(3).long()}, r"parents has shape \(3,\): expected \(2, 3\)"),
        ({"coins": Coins(torch.ones(2, 4), torch.ones(2))}, r"coins.accept has shape \(2, 4\)"),
        ({"coins": Coins(torch.ones(2, 3))}, "coins.final and coins.race are None"),
    ],
)
def test_shapes_are_refused(changed: dict[str, Any], message: str) -> None:
    for function in (verify_tree, validate_tree):
        with pytest.raises((TypeError, ValueError), match=message):
            function(**given(**changed))


def test_other_rules_are_refused() -> None:
    with pytest.raises(ValueError, match=r"rule = 'top-down': expected one of topdown, traversal"):
        verify_tree(**given(rule="top-down"))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (changed_at("parents", (0, 0), 0), r"parents\[0, 0\] = 0: expected -1, a node before 0,"),
        (changed_at("parents", (0, 1), 2), r"parents\[0, 1\] = 2: expected -1, a node before 1,"),
        (changed_at("parents", (0, 2), -3), r"parents\[0, 2\] = -3: expected -1, a node before"),
        (changed_at("parents", (0, 1), -2), r"parents\[0, 2\] = 1: expected -2 after the last n"),
        (changed_at("parents", (1, 1), 0), r"draft_tokens\[1, 1\] = -1: expected 0 <= id < 2, or"),
        (changed_at("draft_tokens", (0, 1), 2), r"draft_tokens\[0, 1\] = 2: expected 0 <= id < 2"),
        (changed_at("draft_tokens", (0, 2), -1), r"draft_tokens\[0, 2\] = -1: expected 0 <= id"),
        (changed_at("draft_tokens", (1, 2), 0), r"draft_tokens\[1, 2\] = 0: expected -1 where th"),
        (changed_at("target_probs", (1, 1, 0), 0.75), r"sum of target_probs\[1, 1\] = 1.25: expe"),
        (changed_at("target_probs", (0, 3, 1), NAN), r"target_probs\[0, 3, 1\] = nan: expected a"),
        (changed_at("draft_probs", (1, 0, 0), -0.5), r"draft_probs\[1, 0, 0\] = -0.5: expected a"),
        (changed_at("draft_probs", (0, 2, 0), 0.75), r"sum of draft_probs\[0, 2\] = 1.25: expect"),
        (
            changed_at("draft_probs", (0, 1, 1), 0.0),
            r"q of draft_tokens\[0, 1\] = 0.0: expected >",
        ),
        ({"coins": Coins(torch.ones(2, 3), torch.zeros(2))}, r"coins.accept\[0, 0\] = 1.0"),
        ({"coins": Coins(torch.zeros(2, 3), torch.tensor([0, NAN]))}, r"coins.final\[1\] = nan"),
    ],
)
def test_values_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        validate_tree(**given(**changed))


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"draft_probs": None},
        changed_at("target_probs", (1, 2, 0), NAN),
        changed_at("draft_probs", (1, 1, 0), NAN),
        {"parents": given()["parents"].int(), "draft_tokens": given()["draft_tokens"].int()},
        {
            **changed_at("draft_tokens", (0, 1), OUTSIDE),
            **changed_at("target_probs", (0, slice(2, 4), 0), NAN),
            **changed_at("draft_probs", (0, 2, 0), NAN),
        },
    ],
)
def test_what_is_never_read_may_hold_anything(changed: dict[str, Any]) -> None:
    """Neither after the last node, nor at OUTSIDE and below it."""
    arguments = given(**changed)
    validate_tree(**arguments)
    clean = {
        name: arguments[name].nan_to_num(0.5)
        for name in ("target_probs", "draft_probs")
        if arguments[name] is not None
    }
    for rule in ("topdown", "traversal"):
        found = verify_tree(**arguments | clean, rule=rule)
        assert all(map(torch.equal, found, verify_tree(**arguments, rule=rule)))
