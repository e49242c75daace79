"""Companion-guided verification on a trained triple: correlation, information, goodput.

Kim et al. 2025, "Speculative Verification" (arXiv:2509.24328). Drafts are made at every place of
texts of the target; half of the texts profile, the other half is what schedulers run on.

Run: python -m gpu_tests.benchmarks.companions --markdown docs/companions_measured.md \
    --plot docs/companions.png
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log2
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import torch
from numpy.typing import ArrayLike

from fixtures.model_pairs.storing import MODELS, load_model, read_card, write_text
from gpu_tests.benchmarks.companion_traces import Floats, Traces, traces
from gpu_tests.benchmarks.companions_page import plot, render
from gpu_tests.pairs import Models
from specref.conformance.implementations.torch_state import one_thread
from specref.simulate import traces as recorded
from specref.simulate.budgets import FirstDecline
from specref.simulate.schedulers import Fixed, Oracle, Profile, Scheduler
from specref.simulate.speed import simulate_speed
from specref.simulate.tallies import SpeedReport
from specref.theory.companion import companion_acceptance, similarity, truncated_law
from specref.theory.companion_table import AcceptanceTable, Observation, profile

TRIPLE = "target", "companion", "drafter_bpe2k"
BINS, SCHEDULED = (2, 4, 8, 27), 8


@dataclass(frozen=True)
class Sizes:
    """What is generated and simulated."""

    prompts: int = 40
    tokens: int = 40
    lookahead: int = 4
    trials: int = 500
    steps: int = 20
    places: int = 200
    seed: int = 1


class Information(NamedTuple):
    """Share of the verdict's entropy: as the paper has it, of shuffled verdicts, on new texts."""

    signals: str
    bins: int
    cells: int
    plugin: float
    shuffled: float
    held_out: float


class Run(NamedTuple):
    """A scheduler on one latency profile."""

    profile: str
    batch: int
    scheduler: str
    lossless: str
    report: SpeedReport


@dataclass(frozen=True, eq=False)
class Measured:
    """Everything on the page."""

    sizes: Sizes
    traces: Traces
    correlations: list[tuple[str, float, float]]
    information: list[Information]
    runs: list[Run]
    distances: list[tuple[int, float, float, float]]
    costs: tuple[float, float]


def measured(sizes: Sizes) -> Measured:
    """Generate, profile one half of the texts, and simulate on the other."""
    pair = Models("cpu").pair("homogeneous")
    models = pair.target, load_model(MODELS / TRIPLE[1]), pair.drafter
    prompts = [tuple(prompt) for prompt in pair.prompts(sizes.prompts)]
    options = {"tokens": sizes.tokens, "lookahead": sizes.lookahead, "seed": sizes.seed}
    found = traces(models[0], models[1], models[2], prompts, **options)
    card = read_card()["models"]
    target, companion, drafter = (card[name]["parameters"] for name in TRIPLE)
    costs = drafter / target, companion / target
    table = profile(found.observations(found.text % 2 == 0), (SCHEDULED,) * 2, otherwise=0.5)
    runs = [*simulated(found, table, costs, sizes)]
    return Measured(
        sizes,
        found,
        [*correlations(found)],
        [*information(found, sizes.seed)],
        runs,
        [*distances(found, table, runs, sizes)],
        costs,
    )


def correlations(found: Traces) -> Iterator[tuple[str, float, float]]:
    """Pearson's and Spearman's with sum min(p, q), at the first draft of each place."""
    overlap = found.overlap[:, 0]
    for name, signal in (("S", found.similarity), ("max q", found.confidence)):
        yield name, correlation(signal[:, 0], overlap), correlation(*map(ranks, (signal[:, 0], overlap)))


def correlation(left: ArrayLike, right: ArrayLike) -> float:
    """Pearson's; 0 where one of the two does not vary."""
    left, right = (np.asarray(values) - np.mean(values) for values in (left, right))
    scale = float(np.sqrt((left @ left) * (right @ right)))
    return float(left @ right) / scale if scale > 1e-12 else 0.0


def ranks(values: Floats) -> Floats:
    """The mean rank of equal values."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    means: Floats = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return means


def information(found: Traces, seed: int) -> Iterator[Information]:
    """The gain of binned signals, of the companion and of the drafter itself."""
    rng, even = np.random.default_rng(seed), found.text % 2 == 0
    for of, names in (("companion", ("S", "A")), ("drafter", ("max q", "q(x)"))):
        fitted, new = (found.observations(half, of=of) for half in (even, ~even))
        for bins in BINS:
            for first, second in ((bins, 1), (bins, bins)):
                name = names[0] if second == 1 else ", ".join(names)
                yield informed(name, fitted, new, (first, second), rng)


def informed(
    name: str,
    fitted: Sequence[Observation],
    new: Sequence[Observation],
    bins: tuple[int, int],
    rng: np.random.Generator,
) -> Information:
    """One row: profiled on one half, judged there and on the other."""
    mean = sum(o.accepted for o in fitted) / len(fitted)
    table = profile(fitted, bins, otherwise=mean)
    verdicts = rng.permutation([o.accepted for o in fitted]).tolist()
    null = profile([o._replace(accepted=v) for o, v in zip(fitted, verdicts, strict=True)], bins)
    cells = sum(count > 0 for row in table.counts for count in row)
    before, after = (surprise(new, rule) for rule in (lambda s, a: mean, table))
    shares = table.gain().share, null.gain().share, 1 - after / before
    return Information(name, bins[0], cells, *shares)


def surprise(observations: Sequence[Observation], rule: Any) -> float:
    """Mean bits of the verdicts under estimates, those kept one thousandth off 0 and 1."""
    rates = [min(max(float(rule(o[0], o[1])), 1e-3), 1 - 1e-3) for o in observations]
    chances = [r if o.accepted else 1 - r for r, o in zip(rates, observations, strict=True)]
    return -sum(map(log2, chances)) / len(chances)
