"""Companion-guided verification on a trained triple: correlation, information, goodput.

Kim et al. 2025, "Speculative Verification" (arXiv:2509.24328). Drafts are made at every place of
texts of the target; half of the texts profile, the other half is what schedulers run on.

Run: python -m gpu_tests.benchmarks.companions --markdown docs/companions_measured.md \
    --plot docs/companions.png
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import torch

from fixtures.model_pairs.storing import MODELS, load_model, read_card, write_text
from gpu_tests.benchmarks.companion_information import Information, correlations, information
from gpu_tests.benchmarks.companion_speed import Distance, Run, Simulated, distances, simulated
from gpu_tests.benchmarks.companion_traces import Traces, traces
from gpu_tests.benchmarks.companions_page import render
from gpu_tests.benchmarks.measurement_plots import plot_companions
from gpu_tests.pairs import Models
from specref.contracts.torch_state import one_thread
from specref.speed.companion_table import profile

TRIPLE = "target", "companion", "drafter_bpe2k"
BINS = 8, 8


@dataclass(frozen=True)
class Sizes:
    """What is generated."""

    prompts: int = 40
    tokens: int = 40
    lookahead: int = 4
    seed: int = 1


@dataclass(frozen=True, eq=False)
class Measured:
    """Everything on the page; `costs` are the passes of drafter and companion over a target's."""

    sizes: Sizes
    simulated: Simulated
    traces: Traces
    correlations: list[tuple[str, float, float]]
    information: list[Information]
    runs: list[Run]
    distances: list[Distance]
    costs: tuple[float, float]


def recorded(sizes: Sizes) -> Traces:
    """The drafts of the triple."""
    pair = Models("cpu").pair("homogeneous")
    companion = load_model(MODELS / TRIPLE[1])
    prompts = [tuple(prompt) for prompt in pair.prompts(sizes.prompts)]
    options = {"tokens": sizes.tokens, "lookahead": sizes.lookahead, "seed": sizes.seed}
    return traces(pair.target, companion, pair.drafter, prompts, **options)


def measured(found: Traces, sizes: Sizes, simulation: Simulated) -> Measured:
    """Profile one half of the texts, and simulate on the other."""
    card = read_card()["models"]
    target, companion, drafter = (card[name]["parameters"] for name in TRIPLE)
    costs = drafter / target, companion / target
    even = found.observations(found.text % 2 == 0)
    mean = sum(float(one.accepted) for one in even) / len(even)
    table = profile(even, BINS, otherwise=mean)
    runs = [*simulated(found, table, costs, sizes.lookahead, simulation)]
    return Measured(
        sizes,
        simulation,
        found,
        [*correlations(found)],
        [*information(found, sizes.seed)],
        runs,
        [*distances(found, table, runs, simulation)],
        costs,
    )


@click.command()
@click.option("--markdown", type=click.Path(path_type=Path), required=True)
@click.option("--plot", "figure", type=click.Path(path_type=Path), required=True)
@click.option("--prompts", default=Sizes.prompts, show_default=True)
@click.option("--tokens", default=Sizes.tokens, show_default=True)
@click.option("--lookahead", default=Sizes.lookahead, show_default=True)
@click.option("--seed", default=Sizes.seed, show_default=True)
@click.option("--trials", default=Simulated.trials, show_default=True)
@click.option("--places", default=Simulated.places, show_default=True)
def main(markdown: Path, figure: Path, trials: int, places: int, **sizes: Any) -> None:
    """Measure, and write the page and its figure."""
    with one_thread(), torch.inference_mode():
        of = Sizes(**sizes)
        simulation = Simulated(trials, places=places, seed=of.seed)
        found = measured(recorded(of), of, simulation)
    plot_companions(found, figure)
    write_text(markdown, render(found, figure.name) + "\n")


if __name__ == "__main__":
    main()
