"""What a batched verification refuses: shapes at once, values where it is asked to look."""

from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

import torch

from proofs_tests.helpers.torch.laws import ragged_batch
from specref.torch_backend.validation import NO_DRAFT, OUTSIDE, Coins, validate
from specref.torch_backend.verification.chains import verify, verify_matching


def given(**changed: Any) -> dict[str, Any]:
    p = torch.full((2, 3, 2), 0.5)
    coins = Coins(torch.zeros(2, 2), final=torch.zeros(2))
    tokens = torch.tensor([[0, 1], [1, NO_DRAFT]])
    arguments = {"target_probs": p, "draft_probs": p[:, 1:], "draft_tokens": tokens}
    return {**arguments, "lens": None, "coins": coins} | changed


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"target_probs": torch.ones(2, 3, 2).long()},
            "target_probs is of torch.int64: expected a",
        ),
        ({"target_probs": [0.5]}, "target_probs is of list: expected a tensor of floats"),
        ({"draft_probs": torch.ones(2, 2, 2).int()}, "draft_probs is of torch.int32"),
        (
            {"draft_tokens": torch.zeros(2, 2)},
            "draft_tokens is of torch.float32: expected a tensor",
        ),
        ({"lens": torch.zeros(2).bool()}, "lens is of torch.bool: expected a tensor of integers"),
        ({"target_probs": torch.ones(3, 2)}, r"target_probs has shape \(3, 2\): expected \(B, K"),
        (
            {"draft_tokens": torch.ones(2, 3).long()},
            r"draft_tokens has shape \(2, 3\): expected \(2, 2",
        ),
        (
            {"draft_probs": torch.ones(2, 2, 3)},
            r"draft_probs has shape \(2, 2, 3\): expected \(2, 2, 2",
        ),
        ({"lens": torch.ones(3).long()}, r"lens has shape \(3,\): expected \(2,\)"),
        ({"coins": Coins(torch.ones(2, 3), torch.ones(2))}, r"coins.accept has shape \(2, 3\)"),
        ({"coins": Coins(torch.ones(2, 2), torch.ones(3))}, r"coins.final has shape \(3,\)"),
        (
            {"coins": Coins(torch.ones(2, 2), race=torch.ones(2, 3))},
            r"coins.race has shape \(2, 3\)",
        ),
        ({"coins": Coins(torch.ones(2, 2))}, "coins.final and coins.race are None"),
    ],
)
def test_shapes_are_refused(changed: dict[str, Any], message: str) -> None:
    for function in (verify, validate):
        with pytest.raises((TypeError, ValueError), match=message):
            function(**given(**changed))


def changed_at(name: str, place: tuple[int, ...], value: float) -> dict[str, Any]:
    tensor = given()[name].clone()
    tensor[place] = value
    return {name: tensor}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            changed_at("draft_tokens", (0, 1), 2),
            r"draft_tokens\[0, 1\] = 2: expected 0 <= id < 2, or -2",
        ),
        (changed_at("draft_tokens", (0, 0), -1), r"draft_tokens\[0, 1\] = 1: expected -1 after"),
        ({"lens": torch.tensor([2, 3])}, r"lens\[1\] = 3: expected 0 to 2"),
        ({"lens": torch.tensor([2, 2])}, r"draft_tokens\[1, 1\] = -1: expected 0 <= id"),
        (
            changed_at("target_probs", (1, 1, 0), 0.75),
            r"sum of target_probs\[1, 1\] = 1.25: expected 1 ",
        ),
        (changed_at("target_probs", (0, 2, 1), torch.nan), r"target_probs\[0, 2, 1\] = nan"),
        (changed_at("draft_probs", (1, 0, 0), -0.5), r"draft_probs\[1, 0, 0\] = -0.5"),
        (
            changed_at("draft_probs", (0, 1, 0), 0.75),
            r"sum of draft_probs\[0, 1\] = 1.25: expected at most",
        ),
        (
            changed_at("draft_probs", (0, 1, 1), 0.0),
            r"q of draft_tokens\[0, 1\] = 0.0: expected > 0",
        ),
        ({"coins": Coins(torch.ones(2, 2), torch.zeros(2))}, r"coins.accept\[0, 0\] = 1.0"),
        ({"coins": Coins(torch.zeros(2, 2), torch.tensor([0, -1.0]))}, r"coins.final\[1\] = -1.0"),
        (
            {"coins": Coins(torch.zeros(2, 2), race=-torch.ones(2, 2))},
            r"coins.race\[0, 0\] = -1.0",
        ),
    ],
)
def test_values_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        validate(**given(**changed))


def test_what_is_never_read_may_hold_anything() -> None:
    p, q, tokens, coins = ragged_batch()
    assert bool(p.isnan().any() & q.isnan().any() & (tokens == OUTSIDE).any())
    validate(p, q, tokens, coins=coins)
    validate(**given(**changed_at("target_probs", (1, 2, 0), torch.nan)))
    validate(**given(**changed_at("draft_probs", (1, 1, 0), torch.nan)))
    validate(**given(lens=torch.tensor([2, 1]), **changed_at("draft_tokens", (1, 1), 9)))


def test_matching_needs_a_coin_for_the_last_token() -> None:
    coins = Coins(torch.zeros(2, 2), race=torch.ones(2, 2))
    with pytest.raises(ValueError, match=r"coins\.final is None"):
        verify_matching(torch.full((2, 3, 2), 0.5), torch.zeros(2, 2).long(), coins=coins)
