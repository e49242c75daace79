"""What signals tell of acceptance: correlations, and the information of their bins.

Kim et al. 2025 (arXiv:2509.24328), sections 4.1 and 7.3.
"""

from collections.abc import Iterator, Sequence
from math import log2
from typing import Any, NamedTuple

import numpy as np

from gpu_tests.benchmarks.companion_traces import Floats, Traces
from specref.speed.companion_table import Observation, profile

BINS = 2, 4, 8, 27


class Information(NamedTuple):
    """Share of the verdict's entropy: as the paper has it, of shuffled verdicts, on new texts."""

    signals: str
    bins: int
    cells: int
    plugin: float
    shuffled: float
    held_out: float


def correlations(found: Traces) -> Iterator[tuple[str, float, float]]:
    """Pearson's and Spearman's with sum min(p, q), at the first draft of each place."""
    overlap = found.overlap[:, 0]
    for name, signal in (("S", found.similarity), ("max q", found.confidence)):
        yield (
            name,
            correlation(signal[:, 0], overlap),
            correlation(*map(ranks, (signal[:, 0], overlap))),
        )


def correlation(left: Floats, right: Floats) -> float:
    """Pearson's; 0 where one of the two does not vary."""
    left, right = (values - values.mean() for values in (left, right))
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
    verdicts = rng.permutation([float(o.accepted) for o in fitted]).tolist()
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
