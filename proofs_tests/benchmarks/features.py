"""Is the shift that a stratum names found as often as it says? For every kind of feature.

Each run is a campaign of n tokens of one law, under another law whose mean of the feature is off
by the shift that `FeatureSums.detectable` names, up or down. The other law puts the values of the
feature where their variance is the largest: on its least and its largest value. Beside the
feature the campaign bets on as many others as a stratum does. A miss is a run whose evidence does
not reach 1 / alpha; at most 0.1 % are promised. The interval is exact (Clopper-Pearson), 99.9 %.

Of "seen before", which depends on the tokens so far, another law repeats a token too often, by
one shift; runs that name no larger one are counted.

Run: python -m proofs_tests.benchmarks.features [--runs 20000] [--tokens 10000 100000] [--seed 0]
     [--record FILE]
"""

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from specref.arrays import Floats
from specref.conformance.strata.campaign import PLACES
from specref.conformance.strata.laws import AGAIN, FEATURES, SETS, SHARES, drawn_pool
from specref.statistics.campaign.acceptance import binomial_interval
from specref.statistics.campaign.levels import BETA
from specref.statistics.features import FeatureSums

ALPHA = 1e-9
BETS = len(PLACES) * len(FEATURES)
REPEATED, REPEATS = 2_000, 4_000
"""The vocabulary, and the tokens, of runs in which tokens repeat."""


@dataclass(frozen=True)
class Feature:
    """The values that a feature can have, and how probable they are under the target's law."""

    values: tuple[float, ...]
    law: tuple[float, ...]

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and variance."""
        values, law = np.array(self.values), np.array(self.law)
        mean = float(law @ values)
        return mean, float(law @ (values - mean) ** 2)


def of_set(chance: float) -> Feature:
    """A set with this probability."""
    return Feature((0.0, 1.0), (1 - chance, chance))


def of_pool(name: str) -> Feature:
    """A number feature of the first pair of laws that strata draw over 64 tokens."""
    pool = drawn_pool(np.random.default_rng(0), 64, 1)
    values, law = SHARES[name](pool.p[0], pool.q[0]), pool.p[0]
    return Feature(tuple(values[law > 0].tolist()), tuple(law[law > 0].tolist()))


POSSIBLE: Mapping[str, Feature] = {
    **{f"set, probability {x:g}": of_set(x) for x in (0.001, 0.05, 0.3, 0.5, 0.9)},
    "number, .49 or .51, rarely 0 or 1": Feature((0, 0.49, 0.51, 1), (5e-4, 0.4995, 0.4995, 5e-4)),
    "number, .09 or .11, rarely 0 or 1": Feature((0, 0.09, 0.11, 1), (5e-4, 0.4995, 0.4995, 5e-4)),
    "number, 0 to 1 in fifths": Feature((0, 0.25, 0.5, 0.75, 1), (0.2,) * 5),
    **{f"number, {name}": of_pool(name) for name in SHARES},
}


@dataclass(frozen=True)
class Missed:
    """How many of the runs with a shift that is named did not find it."""

    shift: float
    runs: int
    misses: int

    @property
    def interval(self) -> tuple[float, float]:
        """Of the chance to miss."""
        return binomial_interval(self.misses, self.runs, 1e-3)


def sums_of(tokens: int, mean: float, variance: float) -> FeatureSums:
    """The sums of a stratum, before anything is off; the first feature is the one in question."""
    sums = FeatureSums((BETS,))
    sums.tokens += tokens
    sums.variance += tokens / 4
    sums.spread += tokens / 4
    sums.variance[0], sums.spread[0] = tokens * variance, tokens * mean * (1 - mean)
    return sums


def missed(
    feature: Feature, tokens: int, sign: int, runs: int, rng: np.random.Generator
) -> Missed:
    """Runs under the law with two values whose mean is off by the shift that is named.

    Where the values cannot have a mean so far off, there are no runs.
    """
    mean, variance = feature.moments
    sums = sums_of(tokens, mean, variance)
    shift = float(sums.detectable(ALPHA)[0])
    low, high = min(feature.values), max(feature.values)
    largest = (mean + sign * shift - low) / (high - low)
    if not 0 <= largest <= 1:
        return Missed(shift, 0, 0)
    many = rng.binomial(tokens, largest, size=runs)
    excess = many * high + (tokens - many) * low - tokens * mean
    return Missed(shift, runs, runs - found(sums, excess))


def found(sums: FeatureSums, excess: Floats) -> int:
    """How many of these sums reach evidence 1 / alpha."""
    count = 0
    for one, times in zip(*np.unique(excess, return_counts=True), strict=True):
        sums.excess[0] = one
        count += int(times) * int(sums.log_evidence >= -np.log(ALPHA))
    return count


def missed_repeats(runs: int, rng: np.random.Generator) -> Missed:
    """Runs under a law that repeats earlier tokens too often, of a uniform target."""
    shift = _named_without(rng)
    distinct = np.ones(runs)
    excess, spread = np.zeros(runs), np.zeros(runs)
    for _ in range(REPEATS):
        seen = distinct / REPEATED
        again = rng.random(runs) < np.minimum(seen + shift, 1)
        excess += again - seen
        spread += seen * (1 - seen)
        distinct += ~again
    named = misses = 0
    for won, variance in zip(excess, spread, strict=True):
        sums = sums_of(REPEATS, 0.5, 0.25)
        sums.variance[0] = sums.spread[0] = variance
        if sums.detectable(ALPHA)[0] <= shift:
            named += 1
            misses += 1 - found(sums, np.array([won]))
    return Missed(shift, named, misses)


def _named_without(rng: np.random.Generator) -> float:
    """A shift that most such runs name: a fifth above that of a run of the target's law."""
    distinct, spread = 1.0, 0.0
    for _ in range(REPEATS):
        seen = distinct / REPEATED
        spread += seen * (1 - seen)
        distinct += rng.random() >= seen
    sums = sums_of(REPEATS, 0.5, 0.25)
    sums.variance[0] = sums.spread[0] = spread
    return 1.2 * float(sums.detectable(ALPHA)[0])


def main() -> None:
    """Print a table, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--tokens", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    told = [
        (name, tokens, word, missed(feature, tokens, sign, options.runs, rng))
        for tokens in options.tokens
        for name, feature in POSSIBLE.items()
        for word, sign in (("more", 1), ("less", -1))
    ]
    told.append((AGAIN, REPEATS, "more", missed_repeats(options.runs, rng)))
    rows = [
        {"feature": name, "tokens": tokens, "off": word, **asdict(one), "chance": one.interval}
        for name, tokens, word, one in told
        if one.runs
    ]
    print(f"alpha {ALPHA:g}, {BETS} bets, {len(SETS)} sets; at most {BETA:.1%} are promised")
    for row in rows:
        low, high = row["chance"]
        print(
            f"{row['feature']:<36} n {row['tokens']:>7,}  {row['off']}  shift {row['shift']:.4f}"
            f"  missed {row['misses']:>4} of {row['runs']:,}  ({low:.2%} to {high:.2%})"
        )
    if options.record:
        record = {"alpha": ALPHA, "bets": BETS, "seed": options.seed, "rows": rows}
        lines = ",\n".join(map(json.dumps, rows))
        head = json.dumps({name: value for name, value in record.items() if name != "rows"})
        options.record.write_text(f'{head[:-1]}, "rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
