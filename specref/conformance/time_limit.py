"""The end of a run that has a time limit: each check, and what explains a failure, ends in time.

A check that is late is interrupted as by Ctrl-C, by an alarm of the process, and counts as not
tried. Where there are no alarms, or another thread runs the checks, only drawing is cut short.
"""

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType
from typing import TYPE_CHECKING

from specref.conformance.status import FIRST, CheckResult, Outcome, Stage, Status
from specref.contracts.contract import Contract

if TYPE_CHECKING:
    from specref.conformance.checks import Check

DONE, EXPLAINED, LATEST = 0.92, 1.1, 1.15
"""Parts of the limit after which no check runs, nothing more is explained, and the first exact law
ends: whether a distribution was compared, and so the exit code, is no matter of a busy machine."""
AGAIN = 2.0
"""Seconds after which an alarm is repeated, if the code that it met went on."""
SOON = 0.01
"""Seconds after which an alarm is repeated, if it met code that holds a lock."""
LOCKING = {"logging", "importlib._bootstrap", "importlib._bootstrap_external"}
RELEASES = {"acquire", "release", "__enter__", "__exit__", "__del__"}
"""Modules, with all that they call, and functions that an alarm does not interrupt: a lock that
stays taken makes all other threads of the process wait forever."""
LEAST = 0.005
"""Part of the limit that a check needs to begin."""
PARTS = {Stage.SMOKE: 0.25}
LAW, OTHER = 0.5, 0.1
"""Parts of the limit for a check that does not draw: of the first exact laws, and of others."""
OVER, START = 1.5, 0.05
"""How far one that draws may exceed its share: by a factor, and by a part of the limit."""


class LateError(KeyboardInterrupt):
    """The time of a check is over; like Ctrl-C, it is not taken for an error of user code."""


@dataclass(frozen=True)
class TimeLimit:
    """When a run, and each of its checks, has to end.

    * `contract`: Checks of others do not apply, late or not.
    """

    seconds: float | None = None
    started: float = 0.0
    contract: Contract | None = None

    def left(self, part: float = DONE) -> float:
        """Seconds until a part of the limit is over."""
        if self.seconds is None:
            return math.inf
        return self.started + part * self.seconds - time.perf_counter()

    def run(
        self,
        one: "Check",
        run: "Callable[[Check], CheckResult]",
        share: float | None,
        *,
        elsewhere: bool = False,
    ) -> CheckResult:
        """The result of a check, which is not tried if it takes too long.

        `share`: the seconds that it draws; None or 0 if it draws as much as it has to.
        `elsewhere`: a worker runs it, which may have begun before or may begin later.
        """
        if self.seconds is None or (self.contract and not one.is_for(self.contract)):
            return run(one)
        began, left = time.perf_counter(), self.left(LATEST if one.id == FIRST[0] else DONE)
        most = self.seconds * (LAW if one.id in FIRST else PARTS.get(one.stage, OTHER))
        if share:
            most = OVER * share + START * self.seconds
        if elsewhere or one.id == FIRST[0]:
            most = left
        why = "no time left"
        if left > LEAST * self.seconds:
            try:
                with at_most(min(left, most)):
                    return self._told(one, run(one))
            except LateError:
                why = "over its part of the time" if most < left else why
        return one.result(_untried(one, why), time.perf_counter() - began)

    def _told(self, one: "Check", result: CheckResult) -> CheckResult:
        """A result, where too few draws count as not tried: the limit is why there are no more."""
        short = result.status == Status.INCONCLUSIVE and result.finding is None
        if not short or not one.statistical:
            return result
        less = _untried(one, "too few samples in the time")
        evidence = {**result.evidence, **less.evidence}
        message = f"{less.message}: {result.message}"
        return replace(result, status=less.status, message=message, evidence=evidence)


def _untried(one: "Check", why: str) -> Outcome:
    said = f"{one.id} ({why})"
    return Outcome(Status.NOT_RUN, f"not tried: {said}", {"not_tried": [said]})


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise `LateError` where the code is after so many seconds, if an alarm can be set."""
    alarms = hasattr(signal, "setitimer") and math.isfinite(seconds)
    if not alarms or threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(number: int, frame: FrameType | None) -> None:
        if _holds_a_lock(frame, outer):
            signal.setitimer(signal.ITIMER_REAL, SOON, AGAIN)
            return
        raise LateError

    outer = sys._getframe(2)  # of the `with`, below the context manager's own
    before = signal.signal(signal.SIGALRM, late)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6), AGAIN)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _holds_a_lock(met: FrameType | None, outer: FrameType) -> bool:
    """Whether the code that an alarm meets, called by `outer`, may hold a lock of the process."""
    if met is not None and met.f_code.co_name in RELEASES:
        return True
    while met is not None and met is not outer:
        if met.f_globals.get("__name__") in LOCKING:
            return True
        met = met.f_back
    return False
