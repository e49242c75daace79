"""Learning-free drafts on a trained target: tokens per call over k and w.

Stewart et al. 2024, "The N-Grammys". Exact match emits the target's own text whatever is drafted,
so texts are generated once and strategies measured on them. All tables are the target's own.

Run: python -m gpu_tests.benchmarks.ngrams --markdown docs/ngrams.md --plot docs/ngrams.png
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import click
import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from fixtures.model_pairs.samples import PROMPTS, read_documents
from fixtures.model_pairs.storing import MODELS, write_text
from gpu_tests.benchmarks.ngrams_page import plot, render
from gpu_tests.forcing import forced_logits
from gpu_tests.pairs import Models, load_tokenizer
from proofs_tests.benchmarks.ngrams import Call, Strategies, measure
from specref.algorithms.ngram_drafts import Table, context_drafts, table_drafts, unigram_drafts
from specref.algorithms.ngram_tables import bigrams, extended, unigrams, unigrams_as_printed
from specref.conformance.implementations.torch_state import one_thread
from specref.torch_backend import generate
from specref.vocabulary import Tokens

PAIR, QUERY, ROWS = "homogeneous", 1, 2048
TEMPERATURES: Mapping[str, float] = MappingProxyType({"greedy": 0.0, "sampled": 1.0})
Grid: TypeAlias = dict[tuple[int, int], list[list[Call]]]


@dataclass(frozen=True)
class Sizes:
    """What is generated, and the grid of k = `drafts` and w = `lookaheads`."""

    prompts: int = 10
    tokens: int = 64
    drafts: tuple[int, ...] = (1, 2, 5, 10)
    lookaheads: tuple[int, ...] = (1, 2, 4, 8)
    seed: int = 1


@dataclass(frozen=True)
class Text:
    """A prompt and what the target wrote after it."""

    prompt: Tokens
    written: Tokens


@dataclass(frozen=True)
class Measured:
    """Everything on the page: texts by how they were drawn, and a grid for each strategy."""

    sizes: Sizes
    texts: Mapping[str, list[Text]]
    grids: Mapping[str, Mapping[str, Grid]]


def measured(sizes: Sizes) -> Measured:
    """Generate texts, build the tables, and measure every strategy."""
    pair = Models("cpu").pair(PAIR)
    strategies = strategies_of(pair.target, max(sizes.drafts), max(sizes.lookaheads))
    texts = {
        name: written(pair.target, code_prompts(sizes.prompts), temperature, sizes)
        for name, temperature in TEMPERATURES.items()
    }
    grids = {
        name: {strategy: grid(parts, of, sizes) for strategy, parts in strategies.items()}
        for name, of in texts.items()
    }
    return Measured(sizes, texts, grids)


def code_prompts(count: int) -> list[Tokens]:
    """The first code prompts of the fixtures, in the target's tokens."""
    texts = [prompt.text for prompt in read_documents(MODELS / PROMPTS) if prompt.kind == "code"]
    return [tuple(load_tokenizer("target").encode(text)) for text in texts[:count]]


def written(
    target: PreTrainedModel, prompts: Sequence[Tokens], temperature: float, sizes: Sizes
) -> list[Text]:
    """What the target writes after each prompt, to the end of the document at most."""
    generation = generate(
        target,
        None,
        prompts,
        seeds=range(sizes.seed, sizes.seed + len(prompts)),
        method="autoregressive",
        max_new_tokens=sizes.tokens,
        temperature=temperature,
        eos=load_tokenizer("target").eos_token_id,
    )
    return [Text(*both) for both in zip(prompts, generation.tokens, strict=True)]


def strategies_of(
    target: PreTrainedModel, drafts: int, lookahead: int
) -> dict[str, Strategies]:
    """Each strategy by name; "mixed" is the context's drafts, then the model's."""
    table = bigrams(next_logits(target), drafts)
    alone = {
        "unigram, as stated": unigram_drafts(unigrams(*embeddings(target), drafts).tolist()),
        "unigram, as printed": unigram_drafts(
            unigrams_as_printed(*embeddings(target), drafts).tolist()
        ),
        "bigram": table_drafts(table),
        "chained bigram": table_drafts(extended(table, lookahead)),
        "extended bigram": table_drafts(continued(target, table, lookahead)),
        "context": context_drafts(QUERY),
    }
    mixed = {name: alone[name] for name in ("context", "extended bigram")}
    return {name: {name: propose} for name, propose in alone.items()} | {"mixed": mixed}


def embeddings(target: PreTrainedModel) -> tuple[np.ndarray, np.ndarray]:
    """Input and output embeddings, float64."""
    layers: tuple[Any, Any] = target.get_input_embeddings(), target.get_output_embeddings()
    inputs, outputs = (layer.weight.detach().double().numpy() for layer in layers)
    return inputs, outputs


def next_logits(target: PreTrainedModel) -> np.ndarray:
    """The logits after each token alone in the context, shape (V, V)."""
    prompts = [[token] for token in range(target.config.vocab_size)]
    rows: Tensor = forced_logits(target, prompts, [[0]] * len(prompts))
    return rows.numpy()


def continued(target: PreTrainedModel, table: Table, lookahead: int) -> Table:
    """`ngram_tables.extended_by_model`, in batches; shape (V, k, lookahead)."""
    if lookahead == 1:
        return table[:, :, None]
    starts = [(token, int(first)) for token, row in enumerate(table) for first in row]
    tails = [
        generation
        for first in range(0, len(starts), ROWS)
        for generation in _greedy(target, starts[first : first + ROWS], lookahead - 1)
    ]
    drafts = [(start[1], *tail) for start, tail in zip(starts, tails, strict=True)]
    return np.array(drafts, dtype=np.int64).reshape(*table.shape, lookahead)


def _greedy(target: PreTrainedModel, starts: list[Tokens], tokens: int) -> Sequence[Tokens]:
    options: dict[str, Any] = {"method": "autoregressive", "temperature": 0.0}
    seeds = [0] * len(starts)
    return generate(target, None, starts, seeds=seeds, max_new_tokens=tokens, **options).tokens


def grid(strategies: Strategies, texts: Sequence[Text], sizes: Sizes) -> Grid:
    """The calls of each text, for each k and w."""
    return {
        (k, w): [
            measure(strategies, (*text.prompt, *text.written), k, w, len(text.prompt))
            for text in texts
        ]
        for k in sizes.drafts
        for w in sizes.lookaheads
    }


def repeated(texts: Sequence[Text], length: int = 4) -> float:
    """The share of written tokens whose last `length` tokens stood in the same text before."""
    return float(np.mean([*chain.from_iterable(_seen(text, length) for text in texts)]))


def _seen(text: Text, length: int) -> list[bool]:
    tokens, before = (*text.prompt, *text.written), len(text.prompt)
    grams = [tokens[end - length : end] for end in range(length, len(tokens) + 1)]
    return [gram in grams[:at] for at, gram in enumerate(grams) if at + length > before]


@click.command()
@click.option("--markdown", type=click.Path(path_type=Path), required=True)
@click.option("--plot", "figure", type=click.Path(path_type=Path), required=True)
@click.option("--prompts", default=Sizes.prompts, show_default=True)
@click.option("--tokens", default=Sizes.tokens, show_default=True)
@click.option("--drafts", type=int, multiple=True, default=Sizes.drafts, show_default=True)
@click.option("--lookaheads", type=int, multiple=True, default=Sizes.lookaheads, show_default=True)
@click.option("--seed", default=Sizes.seed, show_default=True)
def main(markdown: Path, figure: Path, **sizes: Any) -> None:
    """Measure, and write the page and its figure."""
    with one_thread(), torch.inference_mode():
        found = measured(Sizes(**sizes))
    plot(found.grids, found.sizes, figure)
    shares = {name: repeated(texts) for name, texts in found.texts.items()}
    counts = {name: sum(len(t.written) for t in texts) for name, texts in found.texts.items()}
    write_text(markdown, render(found, shares, counts, figure.name) + "\n")


if __name__ == "__main__":
    main()
