"""Tiny random models with byte-level tokenizers, in folders as Hugging Face has them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    PreTrainedTokenizerFast,
)

from specref.contrib.real_models.generating import PROMPTS
from specref.contrib.real_models.loading import Loaded


def tokenizer(size: int) -> Any:
    backend: Any = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=alphabet, special_tokens=["<e>"], show_progress=False
    )
    texts = PROMPTS if size >= 300 else PROMPTS[8:]  # neither vocabulary is part of the other
    backend.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<e>")


def model(size: int, seed: int, positions: int = 256) -> Any:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=size,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=positions,
        initializer_range=0.3,
        eos_token_id=0,
        bos_token_id=None,
    )
    return LlamaForCausalLM(config).eval()


def of_words(words: Sequence[str]) -> Loaded:
    """A model of these tokens; the first is for unknown words, the last ends a text."""
    known = {word: number for number, word in enumerate(words)}
    backend: Any = Tokenizer(models.WordLevel(known, unk_token=words[0]))
    backend.decoder = decoders.Fuse()
    ends = {"unk_token": words[0], "eos_token": words[-1]}
    read = PreTrainedTokenizerFast(tokenizer_object=backend, **ends)
    return Loaded("words", model(len(words), 1), read)


def save(folder: Path, size: int, seed: int, **options: Any) -> Path:
    """A folder with a model and the tokenizer of its size."""
    made = tokenizer(size)
    model(len(made), seed, **options).save_pretrained(folder)
    made.save_pretrained(folder)
    return folder


def save_stateful(folder: Path, size: int, seed: int) -> Path:
    """A folder with a state-space model, whose state cannot be taken back."""
    made = tokenizer(size)
    torch.manual_seed(seed)
    config = MambaConfig(
        vocab_size=len(made), hidden_size=32, state_size=4, num_hidden_layers=2, eos_token_id=0
    )
    MambaForCausalLM(config).eval().save_pretrained(folder)
    made.save_pretrained(folder)
    return folder
