"""Figures of a log of iterations (contract `metrics`)."""

from collections import deque

import numpy as np

from proofs_tests.helpers.attack.second.entry import Samplers

METRICS = Samplers("metrics")


@METRICS.lossy(metric="acceptance_rate")
def rate_of_the_last_thousand(log):
    """The acceptance rate of the last 1,000 iterations, said to be that of the log."""
    recent = deque(log, maxlen=1000)
    return sum(i.accepted for i in recent) / sum(i.drafted for i in recent)


@METRICS.lossy(metric="acceptance_at_positions")
def eight_positions(log):
    """Acceptance at positions is counted in buffers of eight."""
    drafted, accepted = np.zeros(8), np.zeros(8)
    for i in log:
        drafted[: i.drafted] += 1
        accepted[: i.accepted] += 1
    n = min(max((i.drafted for i in log), default=0), 8)
    return (accepted[:n] / drafted[:n]).tolist()


@METRICS.lossy(metric="mean_accepted_length")
def emitted_less_one(log):
    """Accepted lengths as emitted - 1: one too few where an accepted EOS ended a text."""
    return sum(max(i.emitted - 1, 0) for i in log) / len(log)


@METRICS.lossless(metric="acceptance_rate")
def rate_in_floats(log):
    """The acceptance rate by sums of NumPy, in floats."""
    accepted = np.array([min(i.prefix, i.emitted) for i in log])
    drafted = np.array([len(i.verdicts) for i in log])
    return np.float64(accepted.sum() / drafted.sum())


@METRICS.lossless(metric="acceptance_at_positions")
def positions_as_an_array(log):
    """Acceptance at positions as an array."""
    positions = max((len(i.verdicts) for i in log), default=0)
    drafted, accepted = np.zeros(positions), np.zeros(positions)
    for i in log:
        drafted[: len(i.verdicts)] += 1
        accepted[: i.accepted] += 1
    return accepted / drafted


@METRICS.lossless(metric="tokens_per_iteration")
def sums_of_each_rank(log):
    """Tokens per iteration by a sum and a count of each rank."""
    known = {}
    for i in log:
        tokens, iterations = known.get(i.rank, (0, 0))
        known[i.rank] = tokens + i.emitted, iterations + 1
    return sum(s for s, _ in known.values()) / sum(n for _, n in known.values())
