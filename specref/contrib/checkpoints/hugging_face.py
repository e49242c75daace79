"""A checkpoint as a folder that Hugging Face Transformers, mlx-lm and others load."""

import json
import re
from pathlib import Path
from typing import Any

from safetensors.numpy import save_file

from specref.contrib.checkpoints.law import START, Law
from specref.contrib.checkpoints.weights import Weights


def write_hugging_face(law: Law, weights: Weights, folder: Path) -> None:
    """Write config, weights in float32 and tokenizer into a folder that exists."""
    save_file(weights.tensors, folder / "model.safetensors", metadata={"format": "pt"})
    special = {"bos_token": START, "unk_token": START}
    if law.eos is not None:
        special |= dict.fromkeys(("eos_token", "pad_token"), str(law.vocabulary.eos))
    for name, content in {
        "config": weights.config,
        "generation_config": weights.generation_config(),
        "tokenizer": tokenizer(law),
        "tokenizer_config": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "clean_up_tokenization_spaces": False,
            "model_max_length": weights.config.get("n_positions")
            or weights.config["max_position_embeddings"],
            **special,
        },
    }.items():
        (folder / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")


def tokenizer(law: Law) -> dict[str, Any]:
    """What `tokenizer.json` holds: greedy longest match after the start token.

    Text that no token matches is read as the start token.
    """
    ids = {str(token): index for token, index in law.vocabulary.ids.items()} | {START: law.start}
    special = [START] if law.eos is None else [str(law.vocabulary.eos), START]
    ordinary = sorted(set(ids) - set(special), key=lambda token: (-len(token), ids[token]))
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    sequence = {"Sequence": {"id": "A", "type_id": 0}}
    start = {"SpecialToken": {"id": START, "type_id": 0}}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": ids[token], "content": token, **flags, "special": True} for token in special
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"Regex": "|".join(map(re.escape, ordinary))},
            "behavior": "Isolated",
            "invert": False,
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [start, sequence],
            "pair": [start, sequence, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {START: {"id": START, "ids": [law.start], "tokens": [START]}},
        },
        "decoder": {"type": "Fuse"},
        "model": {"type": "WordLevel", "vocab": ids, "unk_token": START},
    }
