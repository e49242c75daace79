"""Drafters made of a model's own weights."""

import pytest

pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, LlamaConfig, LlamaForCausalLM

from specref.contrib.real_models.drafters import first_layers, rounded, rounded_weights

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
