"""The exact laws by numbers of drafts before anything is sampled, in a copy of this process.

A sampler may keep random numbers from call to call. Those that it is handed while it is probed
must not come back later, so the probe runs in a fork, whose end they do not survive.
"""

import os
import pickle
import selectors
import signal
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from specref.conformance.checks.check import DRAFTS, Check
from specref.conformance.checks.strata import sent_as_text
from specref.conformance.judge import ExactLaw, Judge
from specref.conformance.status import FIRST, CheckResult, Stage, drafts_of

Result = TypeVar("Result")
LONGEST = 30.0
"""Seconds; a probe of two drafts takes a tenth, in torch a few. Later it is tried again, here."""
READ = 1 << 16


def in_order(asked: Sequence[Check], judge: Judge) -> tuple[tuple[Check, ...], bool]:
    """The checks, with exact laws of drafts after those of smoke: of one draft and two, then more.

    Where the run has a time limit, those of one and two come before the checks of smoke that draw,
    the shortest first.

    They stay where they are, and the second value is False, where the process cannot be copied,
    or the code draws elsewhere.
    """
    claims = judge.capabilities
    copied = hasattr(os, "fork") and claims.device == "cpu" and not sent_as_text(judge)
    if not copied or claims.greedy or not isinstance(judge.contract, DRAFTS):
        return tuple(asked), False
    limited = judge.options.time_limit is not None
    first = [one for one in asked if one.id in FIRST]
    more = [one for one in asked if drafts_of(one.id) and one not in first]
    others = [one for one in asked if one not in (*first, *more)]
    if limited:
        first.sort(key=lambda one: FIRST.index(one.id))
    smoke = next((n for n, one in enumerate(others) if one.stage != Stage.SMOKE), len(others))
    draws = (n for n, one in enumerate(others[:smoke]) if limited and one.law)
    after = next(draws, smoke)
    return (*others[:after], *first, *others[after:smoke], *more, *others[smoke:]), True


def ahead_of_samples(one: Check, judge: Judge) -> CheckResult:
    """The result of a check from a copy of this process; from this one if that gives none."""

    def work() -> tuple[CheckResult, list[ExactLaw], str, dict[str, str]]:
        judge.advance = lambda trials: None
        result = one.run(judge)
        try:
            pickle.loads(pickle.dumps(result))
        except Exception:  # an exception of the sampler; its message and traceback are evidence
            result = replace(result, error=None)
        return result, judge.exact_laws, judge.unprobed, judge.left_out

    found = in_a_copy(work)
    if found is None:
        return one.run(judge)
    result, judge.exact_laws, judge.unprobed, left_out = found
    for claim, why in left_out.items():
        judge.leave_out(claim, why)
    return result


def in_a_copy(work: Callable[[], Result], longest: float = LONGEST) -> Result | None:
    """What a copy of this process returns for some work; None if it ends without, or is late."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads that wait are of no matter
        child = os.fork()
    if not child:
        # It ends without what this process would do at its end.
        try:
            with os.fdopen(write, "wb") as pipe:
                pickle.dump(work(), pipe)
        except BaseException:
            os._exit(1)
        finally:
            with suppress(Exception):
                sys.stderr.flush()
            os._exit(0)
    os.close(write)
    try:
        said = _read(read, time.monotonic() + longest)
    finally:
        os.close(read)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    try:
        found: Result = pickle.loads(said)
    except Exception:  # it has ended before all was written
        return None
    return found


def _read(read: int, until: float) -> bytes:
    """All that comes until the other end is closed, or the time is over."""
    found = b""
    with selectors.DefaultSelector() as ready:
        ready.register(read, selectors.EVENT_READ)
        while (left := until - time.monotonic()) > 0 and ready.select(left):
            part = os.read(read, READ)
            if not part:
                return found
            found += part
    return b""
