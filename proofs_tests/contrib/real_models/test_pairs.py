"""Pairs of a target and a drafter: drafters of a model's own weights, and the published pairs.

Where `make models` has not run, the tests of these have not run either.
"""

from collections.abc import Callable

import pytest

pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, LlamaConfig, LlamaForCausalLM

from specref.contrib.real_models.conversion import is_converted
from specref.contrib.real_models.generating import PROMPTS
from specref.contrib.real_models.loading import Loaded, check_tokenizer
from specref.contrib.real_models.pairs import (
    GEMMA,
    PAIRS,
    SMOLLM2,
    TWO_VOCABULARIES,
    Pair,
    Published,
    first_layers,
    ids_of,
    paired,
    rounded,
    rounded_weights,
    same_vocabulary,
    shared_tokens,
)
from specref.contrib.real_models.running import prompts_of


def of_published(test: Callable[..., None]) -> Callable[..., None]:
    """A test that `make models` has to come before."""
    there = all(map(is_converted, (GEMMA, SMOLLM2)))
    return pytest.mark.deep(pytest.mark.skipif(not there, reason="not_run (make models)")(test))


@pytest.fixture(scope="module")
def published() -> Published:
    return Published()


@pytest.fixture(scope="module")
def both(published: Published) -> Pair:
    return published.pair("gemma<-smollm2")


@of_published
def test_two_vocabularies(both: Pair) -> None:
    assert (ids_of(both.target), ids_of(both.drafter)) == (262_144, 49_152)
    assert not same_vocabulary(both.target, both.drafter)
    assert 0 < shared_tokens(both.target, both.drafter) < 49_152
    assert paired(both.target, both.drafter).methods == TWO_VOCABULARIES
    assert len(prompts_of(both)) == len(PROMPTS)


@of_published
def test_the_other_model_s_tokenizer_is_refused(both: Pair) -> None:
    with pytest.raises(ValueError, match="expected the tokenizer that it was trained with"):
        check_tokenizer(both.drafter.tokenizer, both.target.model, "target")
    with pytest.raises(ValueError, match="they do not belong together"):
        check_tokenizer(both.target.tokenizer, both.drafter.model, "drafter")


@torch.inference_mode()
def law(loaded: Loaded, text: str) -> torch.Tensor:
    ids = torch.tensor([loaded.tokenizer.encode(text)])
    return loaded.model(input_ids=ids).logits[0].double().softmax(-1)


@of_published
@pytest.mark.parametrize("name", [name for name in PAIRS if name.startswith(SMOLLM2[:7])][1:])
def test_drafters_of_own_weights_are_near_and_not_the_same(
    published: Published, name: str
) -> None:
    pair = published.pair(name)
    assert same_vocabulary(pair.target, pair.drafter)
    text = "The committee met on Tuesday to discuss the new budget for schools."
    overlap = torch.minimum(law(pair.target, text), law(pair.drafter, text)).sum(1).mean()
    assert 0.1 < overlap < 0.9


pytest.importorskip("transformers", reason="not_run (transformers is not installed)")


SIZES = {
    "vocab_size": 40,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
}


def llama(layers=3):
    return LlamaForCausalLM(LlamaConfig(num_hidden_layers=layers, **SIZES)).eval()


@pytest.mark.parametrize("bits", [1, 3])
def test_levels_are_those_of_the_bits_and_include_the_ends(bits):
    weights = torch.randn(5, 64, generator=torch.Generator().manual_seed(1))
    found = rounded_weights(weights, bits).unflatten(1, (2, 32))
    given = weights.unflatten(1, (2, 32))
    for row in found.flatten(0, 1):
        assert 2 <= len(row.unique()) <= 2**bits
    torch.testing.assert_close(found.amin(2), given.amin(2))
    torch.testing.assert_close(found.amax(2), given.amax(2))
    step = (given.amax(2) - given.amin(2)) / (2**bits - 1)
    assert ((found - given).abs().amax(2) <= step / 2 + 1e-6).all()


def test_a_constant_block_stays():
    assert torch.equal(rounded_weights(torch.full((1, 32), 0.3), 3), torch.full((1, 32), 0.3))


@pytest.mark.parametrize(("bits", "block"), [(0, 32), (9, 32), (3, 31)])
def test_what_cannot_be_rounded_is_refused(bits, block):
    with pytest.raises(ValueError, match="expected"):
        rounded_weights(torch.zeros(1, 64), bits, block)


def test_the_model_itself_is_not_rounded():
    model = llama()
    before = {name: one.clone() for name, one in model.state_dict().items()}
    drafter = rounded(model)
    assert all(torch.equal(one, before[name]) for name, one in model.state_dict().items())
    assert not torch.equal(drafter.lm_head.weight, model.lm_head.weight)
    assert torch.equal(drafter.model.norm.weight, model.model.norm.weight)


def test_early_exit_is_the_hidden_state_after_these_layers():
    model, ids = llama(), torch.tensor([[1, 2, 3, 4]])
    drafter = first_layers(model, 2)
    hidden = model(ids, output_hidden_states=True).hidden_states[2]
    expected = model.lm_head(model.model.norm(hidden))
    torch.testing.assert_close(drafter(ids).logits, expected)
    with pytest.raises(ValueError, match="layers = 3: expected 1 to 2"):
        first_layers(model, 3)


def test_early_exit_keeps_the_kinds_of_layers():
    kinds = ["sliding_attention", "sliding_attention", "full_attention"]
    config = Gemma3TextConfig(num_hidden_layers=3, layer_types=kinds, sliding_window=4, **SIZES)
    drafter = first_layers(Gemma3ForCausalLM(config).eval(), 2)
    assert drafter.config.layer_types == kinds[:2]
    assert drafter(torch.tensor([[1, 2, 3, 4, 5, 6]])).logits.shape == (1, 6, 40)
