"""Learning-free drafts on a trained target: tokens per call over k and w.

Stewart et al. 2024, "The N-Grammys". Exact match emits the target's own text whatever is drafted,
so texts are generated once and strategies measured on them. All tables are the target's own.

Run: python -m gpu_tests.benchmarks.ngrams --markdown docs/ngrams.md --plot docs/ngrams.png
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import click
import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from fixtures.model_pairs.storing import write_text
from gpu_tests.benchmarks.measurement_plots import plot_tokens_per_call
from gpu_tests.benchmarks.ngram_texts import Text, ceilings, code_prompts, written
from gpu_tests.benchmarks.ngrams_page import rate, render
from gpu_tests.forcing import forced_logits
from gpu_tests.pairs import Models
from proofs_tests.benchmarks.ngrams import Call, Strategies, measure
from specref.algorithms.ngrams.drafts import Table, context_drafts, table_drafts, unigram_drafts
from specref.algorithms.ngrams.tables import bigrams, extended, unigrams, unigrams_as_printed
from specref.contracts.torch_state import one_thread
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
class Measured:
    """Everything on the page: texts by how they were drawn, and a grid for each strategy.

    `ceilings` are, by k, the mean mass of the k likeliest tokens in the sampled texts: no k drafts
    of one token are accepted with more.
    """

    sizes: Sizes
    texts: Mapping[str, list[Text]]
    grids: Mapping[str, Mapping[str, Grid]]
    ceilings: Mapping[int, float]


def measured(sizes: Sizes) -> Measured:
    """Generate texts, build the tables, and measure every strategy."""
    pair = Models("cpu").pair(PAIR)
    strategies = strategies_of(pair.target, max(sizes.drafts), max(sizes.lookaheads))
    texts = {
        name: written(
            pair.target, code_prompts(sizes.prompts), temperature, sizes.tokens, sizes.seed
        )
        for name, temperature in TEMPERATURES.items()
    }
    grids = {
        name: {strategy: grid(parts, of, sizes) for strategy, parts in strategies.items()}
        for name, of in texts.items()
    }
    return Measured(sizes, texts, grids, ceilings(pair.target, texts["sampled"], sizes.drafts))


def strategies_of(target: PreTrainedModel, drafts: int, lookahead: int) -> dict[str, Strategies]:
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
    named: dict[str, Strategies] = {name: {name: propose} for name, propose in alone.items()}
    return named | {"mixed": mixed}


def embeddings(target: PreTrainedModel) -> tuple[np.ndarray, np.ndarray]:
    """Input and output embeddings, float64."""
    model: Any = target
    layers = model.get_input_embeddings(), model.get_output_embeddings()
    inputs, outputs = (layer.weight.detach().double().numpy() for layer in layers)
    return inputs, outputs


def next_logits(target: PreTrainedModel) -> np.ndarray:
    """The logits after each token alone in the context, shape (V, V)."""
    prompts = [[token] for token in range(target.config.vocab_size)]
    rows: Tensor = forced_logits(target, prompts, [[0]] * len(prompts))
    return rows.numpy()


def continued(target: PreTrainedModel, table: Table, lookahead: int) -> Table:
    """`tables.extended_by_model`, in batches; shape (V, k, lookahead)."""
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


def _greedy(target: PreTrainedModel, starts: Sequence[Tokens], tokens: int) -> Sequence[Tokens]:
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
    rates = {
        name: {at: rate(texts) for at, texts in of["mixed"].items()}
        for name, of in found.grids.items()
    }
    plot_tokens_per_call(rates, figure)
    write_text(markdown, render(found, figure.name) + "\n")


if __name__ == "__main__":
    main()
