"""A pair with random weights in bfloat16, over as many tokens as large models have.

Over more than 2,048 tokens `draw` picks a block of neighbours first, then a token in it: trained
pairs of `fixtures` are too small for that. Here every token that drafter or rule draws is looked
up by one sum over all tokens in float64; it may be off by 1e-6 of the total, where sums in float32
round. Alpha of tokens is 1e-9 and of accepted drafts 1e-6, as for the trained pairs.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel

from gpu_tests.judging import LOSSY, log10_evidence
from gpu_tests.pairs import Case
from gpu_tests.recording import Record, record
from gpu_tests.sizes import PRETENDED
from specref.contrib.real_models import planted
from specref.contrib.real_models.loading import Loaded
from specref.contrib.real_models.pairs import ONE_VOCABULARY, Pair
from specref.torch_backend import draw, shaping
from specref.torch_backend.drafters import drafts
from specref.torch_backend.verification import chains

SIZE = 152_064
NEAR = 1e-6
NOISE = 0.5
"""Of the drafter's last layer, beside the target's of 0.5: a third of its drafts is accepted."""
TEXTS = {"cpu": (4, 6), PRETENDED: (4, 6), "cuda": (64, 16)}
CASE = Case("standard", "random", dtype=torch.bfloat16)


def model(noise: float) -> PreTrainedModel:
    config = LlamaConfig(
        vocab_size=SIZE,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        initializer_range=0.5,
        max_position_embeddings=64,
        bos_token_id=None,
        eos_token_id=None,
    )
    torch.manual_seed(1)
    made = LlamaForCausalLM(config).eval().requires_grad_(False)
    made.lm_head.weight += noise * torch.randn(made.lm_head.weight.shape)
    return made


@pytest.fixture(scope="module")
def pair(device: str) -> Pair:
    models = (model(noise).to(device, torch.bfloat16) for noise in (0.0, NOISE))
    without_end = SimpleNamespace(eos_token_id=None)
    return Pair("random", *(Loaded("", one, without_end) for one in models), ONE_VOCABULARY)


def texts(pair: Pair, device: str, **bug: Callable[..., Any]) -> Record:
    rows, tokens = TEXTS[device]
    prompts = [[1 + 977 * row, 5 + 13 * row] for row in range(rows)]
    return record(pair, CASE, prompts, tokens, lookahead=3, planted=bug)


@contextmanager
def looked_up(drawn: Callable[[Tensor, Tensor], Tensor]) -> Iterator[list[bool]]:
    """Whether each token that is drawn inside is where one inverse CDF leads."""
    found: list[bool] = []

    def noted(law: Tensor, uniforms: Tensor) -> Tensor:
        assert law.shape[-1] == SIZE > 2 * shaping.BLOCK
        tokens = drawn(law, uniforms)
        ends, at = law.double().cumsum(-1), tokens[..., None]
        high, mass = ends.gather(-1, at)[..., 0], law.gather(-1, at)[..., 0]
        point, near = uniforms * ends[..., -1], NEAR * ends[..., -1]
        right = (high - mass - near <= point) & (point < high + near) & (mass > 0)
        found.extend(right.flatten().tolist())
        return tokens

    with patch.object(drafts, "draw", noted), patch.object(chains, "draw", noted):
        yield found


def test_tokens_have_the_laws_of_the_models(pair: Pair, device: str) -> None:
    with looked_up(draw) as found:
        made = texts(pair, device)
    assert len(found) > len(made.tokens)
    assert all(found)
    assert log10_evidence(made, device) < LOSSY


def one_number_for_both(weights: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    return first_beyond(weights, uniforms)[0], uniforms


def the_block_after(weights: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    chosen, left = first_beyond(weights, uniforms)
    return (chosen + 1) % weights.shape[-1], left


first_beyond = vars(shaping)["_first_beyond"]


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("bug", [one_number_for_both, the_block_after])
def test_other_draws_are_noticed(pair: Pair, device: str, bug: Any) -> None:
    with patch.object(shaping, "_first_beyond", bug), looked_up(draw) as found:
        texts(pair, device)
    assert not all(found)


@pytest.mark.deep
def test_leniency_is_noticed(pair: Pair, device: str) -> None:
    made = texts(pair, device, **planted.lenient(1.0))
    assert log10_evidence(made, device) >= LOSSY
