"""A generation with key-value caches, cropped after each rejection, is one without caches.

In float64 token for token, by the same seeds. In float32 logits round differently, and a coin
that falls next to a boundary may change a text from there on: counted, and at most one text in
ten. (A probability moves by about 1e-6; a text of n tokens tosses some 5 n coins.)
"""

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

from collections.abc import Callable
from unittest.mock import patch

import torch
from torch import Tensor

from gpu_tests.greedy import Texts
from gpu_tests.lab import Figure, Lab
from gpu_tests.pairs import prompts_of
from specref.contrib.real_models.pairs import Pair
from specref.torch_backend import TreeModel, generate
from specref.torch_backend.models.slotted import Slots
from specref.torch_backend.models.trees import Tree

PAIRS = {"standard": "homogeneous", "tli": "large intersection"}
MOVED = 0.1


def texts(pair: Pair, method: str, prompts: Texts, tokens: int, use_cache: bool) -> Texts:
    return generate(
        pair.target.model,
        pair.drafter.model,
        prompts,
        seeds=range(len(prompts)),
        method=method,
        tokenizer=pair.target.tokenizer,
        drafter_tokenizer=pair.drafter.tokenizer,
        max_new_tokens=tokens,
        use_cache=use_cache,
    ).tokens


@pytest.mark.parametrize("method", ["standard", pytest.param("tli", marks=pytest.mark.deep)])
def test_caches_change_no_token_in_float64(lab: Lab, method: str) -> None:
    pair, (count, tokens) = lab.pair(PAIRS[method], torch.float64), lab.sizes.few
    prompts = prompts_of(pair, count)
    with_cache, without = (
        texts(pair, method, prompts, tokens, use_cache) for use_cache in (True, False)
    )
    assert with_cache == without


@pytest.mark.deep
def test_caches_in_float32(lab: Lab, figure: Figure) -> None:
    pair, (count, tokens) = lab.pair("homogeneous"), lab.sizes.few
    prompts = prompts_of(pair, count)
    with_cache, without = (
        texts(pair, "standard", prompts, tokens, use_cache) for use_cache in (True, False)
    )
    moved = sum(a != b for a, b in zip(with_cache, without, strict=True))
    figure(f"caches in float32: {moved} of {count} texts moved")
    assert moved <= MOVED * count


def test_a_rejected_draft_left_in_the_cache_is_noticed(lab: Lab) -> None:
    pair, (count, tokens) = lab.pair("homogeneous", torch.float64), lab.sizes.few
    prompts = prompts_of(pair, count)
    right = texts(pair, "standard", prompts, tokens, True)
    with patch.object(Slots, "crop", too_little):
        wrong = texts(pair, "standard", prompts, tokens, True)
    assert sum(a != b for a, b in zip(right, wrong, strict=True)) > count // 2


TREES = (([[0, 0, 1], [0]], [[1, 2, 1], [5]]), ([[2], [1, 1]], [[7], [3, 4]]))


def grown(pair: Pair, use_cache: bool) -> list[Tensor]:
    """What the target says after the nodes of two trees, step by step."""
    model = TreeModel(pair.target.model, use_cache)
    begun = model.begin([[1, 2, 3], [4]])
    return [begun, *(one for step in TREES for one in model.grow(*step))]


def test_caches_change_no_tree(lab: Lab) -> None:
    pair = lab.pair("homogeneous", torch.float64)
    for one, same in zip(grown(pair, True), grown(pair, False), strict=True):
        torch.testing.assert_close(one, same, rtol=0, atol=1e-9)


def test_a_node_at_another_place_is_noticed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    pair, places = lab.pair("homogeneous", torch.float64), Tree.positions
    right = grown(pair, False)
    monkeypatch.setattr(Tree, "positions", lambda *given: [one + 1 for one in places(*given)])
    pairs = zip(right, grown(pair, True), strict=True)
    assert any((one - same).abs().max() > 1e-3 for one, same in pairs)


def too_little(slots: Slots, lengths: list[int], crop: Callable[..., None] = Slots.crop) -> None:
    """Keep one more of the tokens that a row holds."""
    crop(slots, [min(one + 1, held) for one, held in zip(lengths, slots.lengths, strict=True)])
