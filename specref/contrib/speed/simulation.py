"""Goodput of schedulers, simulated: batches of requests, many trials at once.

A pass verifies the drafts of every request of a batch; each request then has its accepted drafts
and one token more. Goodput is tokens over time, of the whole run. The forms that are known are in
`speed.speedup` and `speed.latency`; this is for what has none: schedulers that adapt,
requests that persist in their class, recorded traces.
"""

from collections.abc import Callable, Mapping
from numbers import Integral

import numpy as np

from specref.arrays import Integers
from specref.contrib.speed.schedulers import Profile, Scheduler
from specref.contrib.speed.tallies import SpeedReport, Tally
from specref.contrib.speed.traces import Source

CHUNK = 1 << 16


def simulate_speed(
    source: Source,
    scheduler: Scheduler,
    profile: Profile,
    *,
    batch: int = 1,
    trials: int,
    steps: int = 1,
    rng: np.random.Generator,
    chunk: int = CHUNK,
    advance: Callable[[int], None] = lambda iterations: None,
) -> SpeedReport:
    """Simulate one scheduler. Parameters and errors as `compare_schedulers`.

    Examples
    --------
    >>> from specref.contrib.speed.traces import constant
    >>> from specref.contrib.speed.schedulers import Fixed
    >>> profile = Profile([0, 1, 1, 1], draft_cost=0.25)
    >>> rng = np.random.default_rng(1)
    >>> simulate_speed(constant(1.0, 1.0), Fixed(2), profile, trials=10, rng=rng).goodput
    2.0
    """
    schedulers = {"": scheduler}
    sizes = {"batch": batch, "trials": trials, "steps": steps, "chunk": chunk}
    return compare_schedulers(source, schedulers, profile, rng=rng, advance=advance, **sizes)[""]


def compare_schedulers(
    source: Source,
    schedulers: Mapping[str, Scheduler],
    profile: Profile,
    *,
    batch: int = 1,
    trials: int,
    steps: int = 1,
    rng: np.random.Generator,
    chunk: int = CHUNK,
    advance: Callable[[int], None] = lambda iterations: None,
) -> dict[str, SpeedReport]:
    """Simulate schedulers on the same iterations.

    Parameters
    ----------
    source : Source
        Where acceptances come from: `Classes` or `Traces`.
    schedulers : mapping
        {name: scheduler}.
    profile : Profile
        How long passes and drafts take.
    batch : int
        Requests that share a pass.
    trials : int
        Independent batches.
    steps : int
        Passes of each.
    rng : numpy.random.Generator
    chunk : int
        About how many iterations (trials * steps * batch) to simulate at once; at least one
        trial.
    advance : callable
        Told the number of iterations that are done, for a progress bar.

    Returns
    -------
    dict
        {name: SpeedReport}

    Raises
    ------
    ValueError
        A size < 1; no schedulers; latencies that end before the largest pass; a lookahead
        beyond the positions of `source`.

    Examples
    --------
    >>> from specref.contrib.speed.traces import constant
    >>> from specref.contrib.speed.schedulers import Fixed, Oracle
    >>> schedulers = {"none": Fixed(0), "two": Fixed(2), "oracle": Oracle()}
    >>> reports = compare_schedulers(
    ...     constant(0.5, 0.5), schedulers, Profile([0, 1, 1, 2]),
    ...     trials=1000, rng=np.random.default_rng(1),
    ... )
    >>> {name: round(report.goodput, 2) for name, report in reports.items()}
    {'none': 1.0, 'two': 0.87, 'oracle': 1.51}
    """
    sizes = {"batch": batch, "trials": trials, "steps": steps, "chunk": chunk}
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name} = {value!r}: expected an integer >= 1")
    if not schedulers:
        raise ValueError("schedulers is empty: expected at least one")
    tallies = {name: Tally(batch, steps, source.positions) for name in schedulers}
    at_once = max(1, chunk // (steps * batch))
    for first in range(0, trials, at_once):
        iterations = source.draw((min(at_once, trials - first), steps, batch), rng)
        for name, scheduler in schedulers.items():
            verified, drafted = scheduler(iterations, profile)
            times = profile.time(batch + verified.sum(axis=2), drafted)
            tallies[name].add(verified, emitted(iterations.reach, verified), times)
        advance(iterations.reach.size)
    return {name: tally.report() for name, tally in tallies.items()}


def emitted(reach: Integers, verified: Integers) -> Integers:
    """Tokens of each iteration: the accepted drafts, and the residual or bonus token."""
    return np.minimum(reach, verified) + 1
