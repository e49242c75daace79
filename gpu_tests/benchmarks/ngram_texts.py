"""Texts of a trained target, and how they repeat themselves."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from transformers import PreTrainedModel

from fixtures.model_pairs.samples import PROMPTS, read_documents
from fixtures.model_pairs.storing import MODELS
from gpu_tests.forcing import forced_logits
from gpu_tests.pairs import load_tokenizer
from specref.torch_backend import generate
from specref.vocabulary import Tokens


@dataclass(frozen=True)
class Text:
    """A prompt and what the target wrote after it."""

    prompt: Tokens
    written: Tokens


def code_prompts(count: int) -> list[Tokens]:
    """The first code prompts of the fixtures, in the target's tokens."""
    texts = [prompt.text for prompt in read_documents(MODELS / PROMPTS) if prompt.kind == "code"]
    return [tuple(load_tokenizer("target").encode(text)) for text in texts[:count]]


def written(
    target: PreTrainedModel, prompts: Sequence[Tokens], temperature: float, tokens: int, seed: int
) -> list[Text]:
    """What the target writes after each prompt, to the end of the document at most."""
    generation = generate(
        target,
        None,
        prompts,
        seeds=range(seed, seed + len(prompts)),
        method="autoregressive",
        max_new_tokens=tokens,
        temperature=temperature,
        eos=load_tokenizer("target").eos_token_id,
    )
    return [Text(*both) for both in zip(prompts, generation.tokens, strict=True)]


def ceilings(
    target: PreTrainedModel, texts: Sequence[Text], drafts: Sequence[int]
) -> dict[int, float]:
    """The mean mass of the k likeliest tokens over the places of texts, by k."""
    prompts, written = [text.prompt for text in texts], [text.written for text in texts]
    likeliest = forced_logits(target, prompts, written).softmax(-1).topk(max(drafts)).values
    masses = likeliest.double().cumsum(-1).mean(0)
    return {k: float(masses[k - 1]) for k in drafts}


def repeated(texts: Sequence[Text], length: int = 4) -> float:
    """The share of written tokens whose last `length` tokens stood in the same text before."""
    return float(np.mean([*chain.from_iterable(_seen(text, length) for text in texts)]))


def _seen(text: Text, length: int) -> list[bool]:
    tokens, before = (*text.prompt, *text.written), len(text.prompt)
    grams = [tokens[end - length : end] for end in range(length, len(tokens) + 1)]
    return [gram in grams[:at] for at, gram in enumerate(grams) if at + length > before]
