"""Logits along drafts that a text left, read in one pass, are those of a pass for each."""

import pytest

pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig

from proofs_tests.contrib.real_models.tiny import model
from specref.contrib.real_models import judging
from specref.contrib.real_models.judging import Branch, branch_logits, forced_logits

PROMPT, TEXT = [5, 9, 2], [7, 1, 4, 4, 8]
BRANCHES = [Branch(0, [7, 3]), Branch(2, [4, 6, 1]), Branch(5, [2]), Branch(5, [])]


def apart(reader) -> float:
    """The largest difference from a pass for each branch."""
    found = branch_logits(reader, PROMPT, TEXT, BRANCHES)
    assert len(found) == len(BRANCHES)
    each = [
        forced_logits(reader, [PROMPT + TEXT[: one.start]], [[*one.tokens, 0]]) for one in BRANCHES
    ]
    return max(float((a - b).abs().max()) for a, b in zip(found, each, strict=True))


def test_one_pass_is_a_pass_for_each():
    reader = model(40, 1).double()
    assert judging._reads_branches(reader)
    assert apart(reader) < 1e-9
    # A branch that is told another place in the text gives other logits.
    moved = [Branch(one.start + 1, one.tokens) for one in BRANCHES[:2]]
    found = branch_logits(reader, PROMPT, TEXT, moved)
    right = branch_logits(reader, PROMPT, TEXT, BRANCHES[:2])
    assert float((found[0] - right[0]).abs().max()) > 1e-3


def test_windows_are_read_branch_by_branch():
    torch.manual_seed(0)
    config = Gemma3TextConfig(
        vocab_size=40,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        sliding_window=4,
        layer_types=["sliding_attention", "full_attention"],
    )
    reader = Gemma3ForCausalLM(config).eval().double()
    assert not judging._reads_branches(reader)
    assert apart(reader) == 0
