"""Transformers computes the prescribed law from the weights, and planted bugs are noticed.

Deterministic: probabilities are compared with the law, nothing is sampled.
"""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from specref.contrib.checkpoints.building import build
from specref.contrib.checkpoints.fidelity import Fidelity, compare
from specref.contrib.checkpoints.law import NAMED, Law, as_law, named_pair, plain
from specref.contrib.checkpoints.weights import FLOOR, GPT2_CONTEXT, LLAMA_CONTEXT, Float32s
from specref.contrib.engines.checkpoints import by_transformers

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")
import torch
from safetensors.numpy import load_file, save_file
from transformers import AutoModelForCausalLM, DynamicCache

LOOKBACK = named_pair("lookback-3")["target"]


def verified(law: Law, folder: Path, length: int = 200) -> Fidelity:
    return compare(law, by_transformers(folder), np.random.default_rng(2), length)


@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
@pytest.mark.parametrize("name", NAMED)
def test_probabilities_are_the_law(name: str, architecture: str, tmp_path: Path) -> None:
    pair = named_pair(name)
    for role, folder in build(pair, tmp_path / "pair", architecture=architecture).items():
        found = verified(pair[role], folder)
        assert found.largest < 5e-7
        assert found.impossible < len(pair[role].vocabulary) * math.exp(FLOOR) * 1.1


@pytest.mark.parametrize(
    ("architecture", "back", "context"),
    [("llama", 6, LLAMA_CONTEXT), ("gpt2", 3, GPT2_CONTEXT), ("gpt2", 100, GPT2_CONTEXT)],
)
def test_whole_contexts_and_the_farthest_positions(
    architecture: str, back: int, context: int, tmp_path: Path
) -> None:
    law = as_law({**plain(LOOKBACK), "back": back})
    folder = build({"": law}, tmp_path / "one", architecture=architecture)[""]
    found = verified(law, folder, context - 8)
    assert context - 8 < found.contexts <= context
    assert found.largest < 5e-7


def test_a_law_without_eos_with_more_than_one_head(tmp_path: Path) -> None:
    names = [f"t{index}" for index in range(70)]
    rng = np.random.default_rng(3)
    rows = {name: rng.dirichlet(np.full(70, 0.3)).tolist() for name in names}
    law = as_law({"tokens": names, "back": 2, "initial": rows["t0"], "rows": rows})
    folder = build({"": law}, tmp_path / "one")[""]
    found = verified(law, folder)
    assert found.rows == 71
    assert found.largest < 5e-7


def permuted(tensors: dict[str, Float32s]) -> None:
    tensors["lm_head.weight"] = tensors["lm_head.weight"][[1, 0, *range(2, 6)]]


def unrotated(tensors: dict[str, Float32s]) -> None:
    name = "model.layers.0.self_attn.q_proj.weight"
    tensors[name] = tensors["model.layers.0.self_attn.k_proj.weight"] * tensors[name].max()


def dull(tensors: dict[str, Float32s]) -> None:
    tensors["model.layers.0.self_attn.q_proj.weight"] /= 8


def shrunk(tensors: dict[str, Float32s]) -> None:
    tensors["model.norm.weight"] *= 0.999


@pytest.mark.parametrize("bug", [permuted, unrotated, dull, shrunk])
def test_planted_bugs_are_noticed(
    bug: Callable[[dict[str, Float32s]], None], tmp_path: Path
) -> None:
    folder = build({"": LOOKBACK}, tmp_path / "one")[""]
    tensors = load_file(folder / "model.safetensors")
    bug(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    assert verified(LOOKBACK, folder).largest > 1e-5


@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
@pytest.mark.parametrize("back", [2, 4])
def test_a_wrong_lookback_is_noticed(back: int, architecture: str, tmp_path: Path) -> None:
    wrong = as_law({**plain(LOOKBACK), "back": back})
    folder = build({"": wrong}, tmp_path / "one", architecture=architecture)[""]
    found = verified(LOOKBACK, folder)
    assert not found.faithful
    assert found.largest > 0.1


@pytest.mark.parametrize(("name", "shows"), [("lookback", True), ("order-1", False)])
def test_a_cache_that_keeps_a_rejected_draft_shows_where_attention_matters(
    name: str, shows: bool, tmp_path: Path
) -> None:
    law = named_pair(name)["target"]
    model = AutoModelForCausalLM.from_pretrained(build({"": law}, tmp_path / "one")[""])
    kept, draft, *after = 0, 1, 2, 0

    def largest_error(crop: bool) -> float:
        cache, last = DynamicCache(), np.zeros(0)
        # The positions are right in any case: only the draft's key and value are left behind.
        for position, token in (
            (0, law.start),
            (1, kept),
            (2, draft),
            (2, after[0]),
            (3, after[1]),
        ):
            if (position, token) == (2, after[0]) and crop:
                cache.crop(-1)
            with torch.inference_mode():
                logits = model(
                    input_ids=torch.tensor([[token]]),
                    position_ids=torch.tensor([[position]]),
                    past_key_values=cache,
                ).logits
            last = logits[0, -1, : law.size - 1].double().softmax(dim=-1).numpy()
        return float(abs(last - law.model.next_token((kept, *after)).astype(float)).max())

    assert largest_error(crop=True) < 5e-7
    assert (largest_error(crop=False) > 0.1) == shows
