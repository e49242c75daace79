"""Stage acceptance, for metrics: whether a reported figure follows its definition."""

from functools import partial

from specref.conformance.checks.check import Check, failed, passed
from specref.conformance.judge import Judge
from specref.conformance.status import Finding, Outcome
from specref.contracts.functions import MetricsContract
from specref.contracts.timeout import within
from specref.theory.metrics import METRICS, Iteration, Log

YES, NO = True, False
# Decisions after a rejection, an accepted EOS, iterations without drafts, uneven lengths, two
# requests of different length, a second process: cases that published figures got wrong.
LOGS: tuple[Log, ...] = (
    (
        Iteration((YES, YES, NO), 3),
        Iteration((NO, YES, YES), 1),
        Iteration((YES, NO), 2, request=1),
        Iteration((), 1, request=1),
        Iteration((YES, YES, YES), 4, request=1, rank=1),
        Iteration((YES, YES), 1, request=2, rank=1),
    ),
    (
        Iteration((YES, YES), 3),
        Iteration((YES,), 2),
        Iteration((NO, NO), 1, request=1),
        Iteration((NO, YES), 1, request=1, rank=1),
        Iteration((YES, NO, YES), 2, request=1, rank=1),
    ),
)


def _long_log(iterations: int) -> Log:
    """Of many requests, with up to 12 drafts; of those, some first ones are kept."""
    return tuple(
        Iteration(
            tuple(place != i * 5 % 17 for place in range(i * 7 % 13)),
            min(i * 7 % 13, i * 5 % 17) + 1,
            request=i // 7,
            rank=i // 7 % 3,
        )
        for i in range(iterations)
    )


LONG = _long_log(3_000)
FEW = 20


def reported(judge: Judge) -> Outcome:
    """The figure equals its definition on logs with everything that public figures missed."""
    metric = judge.capabilities.metric
    for number, log in enumerate((*LOGS, LONG)):
        got = within(judge.timeout, partial(judge.implementation, log))
        expected = METRICS[metric](log)
        if not _equal(got, expected):
            of = f"log {number}" if len(log) <= FEW else f"a log of {len(log):,} iterations"
            shown = list(map(str, log[:FEW]))
            return failed(f"{of}: {metric} is {expected}, not {got}", log=shown)
    return passed(f"{metric} on {len(LOGS)} logs, and on one of {len(LONG):,} iterations")


def _equal(got: object, expected: object) -> bool:
    try:
        if isinstance(expected, tuple):
            pairs = zip(got, expected, strict=True)  # type: ignore[call-overload]
            return all(abs(float(x) - float(y)) < 1e-9 for x, y in pairs)
        return abs(float(got) - float(expected)) < 1e-9  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False


CHECKS = (Check("acceptance/reported", MetricsContract, reported, finding=Finding.ACCEPTANCE),)
