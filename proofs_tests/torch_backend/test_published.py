"""Whole generations with models as they are published: windows, experts, states, padding rows."""

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from torch import Tensor
from transformers import Gemma3Config, Gemma3ForConditionalGeneration, PreTrainedModel

from proofs_tests.helpers.torch.families import SIZES, WITHOUT_CROPS
from proofs_tests.helpers.torch.generations import greedy, prompts
from proofs_tests.helpers.torch.models import gpt2, llama
from proofs_tests.helpers.torch.tokenizers import byte_level, unigram, word_piece
from specref.torch_backend import (
    Generation,
    LazySlrsDrafter,
    SlrsDrafter,
    generate,
    shape_logits,
)
from specref.torch_backend import generation as generation_module

TWO = ("union", "tli", "slem", "slrs")
Pair = tuple[Callable[[], Any], Callable[[], Any]]
PAIRS: dict[str, Pair] = {
    "byte fallback from byte level": (lambda: unigram(True, fallback=True), byte_level),
    "byte level from byte fallback": (byte_level, lambda: unigram(fallback=True)),
    "words from SentencePiece": (word_piece, unigram),
}
MORE = 40  # rows of the vocabulary that no tokenizer knows


def padded(names: str, method: str, rows: int, **options: Any) -> tuple[Generation, Any, int]:
    """Texts of a pair whose models have more tokens than their tokenizers; and the target."""
    tokenizer, other = (make() for make in PAIRS[names])
    target = gpt2(1, size=len(tokenizer) + MORE).double()
    drafter = llama(2, size=len(other) + MORE).double()
    found = generate(
        target,
        drafter,
        prompts(rows, len(tokenizer) + MORE),
        seeds=range(rows),
        method=method,
        tokenizer=tokenizer,
        drafter_tokenizer=other,
        **options,
    )
    return found, target, len(tokenizer)


@pytest.mark.deep(one_in=12)
@pytest.mark.parametrize("method", TWO)
@pytest.mark.parametrize("names", PAIRS)
def test_padding_rows_are_ordinary_tokens(names: str, method: str) -> None:
    """Greedy text is the target's, tokens without a string included."""
    found, target, known = padded(names, method, 3, temperature=0, max_new_tokens=20)
    size = target.config.vocab_size
    assert found.tokens == tuple(greedy(target, row, 20) for row in prompts(3, size))
    assert any(token >= known for text in found.tokens for token in text)


def surprise(texts: Generation, target: PreTrainedModel, known: int) -> float:
    """How many tokens are padding, less how many are expected, in standard deviations."""
    count = expected = variance = 0.0
    for row, text in zip(prompts(ROWS, target.config.vocab_size), texts.tokens, strict=True):
        with torch.no_grad():
            logits = target(torch.tensor([[*row, *text]])).logits[0, len(row) - 1 : -1]
        chances = logits.softmax(-1)[:, known:].sum(-1)
        count += sum(token >= known for token in text)
        expected += float(chances.sum())
        variance += float((chances * (1 - chances)).sum())
    return (count - expected) / variance**0.5


ROWS, BOUND = 40, 6  # a normal variable is further away once in 5e8


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("method", TWO)
def test_padding_rows_are_as_frequent_as_the_target_says(method: str) -> None:
    found = padded("byte fallback from byte level", method, ROWS, max_new_tokens=12)
    assert abs(surprise(*found)) < BOUND


def test_a_law_without_padding_rows_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    known = len(PAIRS["byte fallback from byte level"][0]())

    def without(logits: Tensor, **options: Any) -> Tensor:
        if logits.shape[-1] == known + MORE:
            logits = logits.clone()
            logits[..., known:] = -torch.inf
        return shape_logits(logits, **options)

    monkeypatch.setattr(generation_module, "shape_logits", without)
    found = padded("byte fallback from byte level", "tli", ROWS, max_new_tokens=12)
    assert abs(surprise(*found)) > BOUND


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("method", ["standard", "tli", "slem", "slrs"])
@pytest.mark.parametrize("name", ["mamba", "rwkv"])
def test_any_architecture_runs_without_a_cache(name: str, method: str) -> None:
    """As the target and as the drafter."""
    tokenizer = byte_level()
    state = WITHOUT_CROPS[name][0](size=len(tokenizer))
    other = llama(2, size=len(tokenizer))
    words = {"tokenizer": tokenizer, "drafter_tokenizer": tokenizer, "method": method}
    for target, drafter in ((state, other), (other, state)):
        options = {"seeds": [0, 1], "max_new_tokens": 6, "temperature": 0, **words}
        found = generate(target, drafter, [[1, 2, 3], [4]], **options, use_cache=False)
        assert found.tokens == tuple(greedy(target, row, 6) for row in ([1, 2, 3], [4]))


@pytest.mark.deep
def test_slrs_goes_by_its_former_names_too() -> None:
    texts = [
        padded("words from SentencePiece", name, 2, max_new_tokens=9)[0].tokens
        for name in ("slrs", "lazy-slrs")
    ]
    assert texts[0] == texts[1]
    assert LazySlrsDrafter is SlrsDrafter


@pytest.mark.parametrize("role", ["target", "drafter"])
def test_a_cache_that_cannot_be_cropped_is_refused_by_name(role: str) -> None:
    pair = {"target": llama(), "drafter": llama(1), role: WITHOUT_CROPS["mamba"][0]()}
    message = f"^{role}: MambaForCausalLM has a state that cannot be taken back, so that its cache"
    with pytest.raises(ValueError, match=message):
        generate(**pair, prompts=[[1]], seeds=[0])
    if role == "drafter":
        found = generate(
            **pair, prompts=[[1]], seeds=[0], method="autoregressive", max_new_tokens=3
        )
        assert found.acceptance_rate is None


def test_the_text_part_of_a_model_of_images() -> None:
    """Its configuration has the sizes of the text one level below."""
    text = {**SIZES, "vocab_size": 9, "head_dim": 8, "sliding_window": 8}
    text["layer_types"] = ["sliding_attention", "full_attention"]
    sight = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    sight |= {"num_attention_heads": 1, "image_size": 28, "patch_size": 14}
    torch.manual_seed(0)
    config = Gemma3Config(text_config=text, vision_config=sight, mm_tokens_per_image=4)
    target: Any = Gemma3ForConditionalGeneration(config).eval().double()
    rows = prompts(3, 9)
    options: dict[str, Any] = {"seeds": range(3), "max_new_tokens": 12, "temperature": 0}
    found = generate(target, llama(1, size=9).double(), rows, **options)
    assert found.tokens == tuple(greedy(target, row, 12) for row in rows)
