"""How checks are spread over the seconds of a run, over worker processes, and in which order.

Exact laws by numbers of drafts come before anything is sampled, from a copy of this process. A
sampler may keep random numbers from call to call. Those that it is handed while it is probed must
not come back later, so the probe runs in a fork, whose end they do not survive.
"""

import math
import os
import pickle
import selectors
import signal
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, TypeAlias, TypeVar

from specref.conformance.checks import CHECKS, Check
from specref.conformance.checks.check import DRAFTS
from specref.conformance.checks.strata import sent_as_text
from specref.conformance.judge import ExactLaw, Judge
from specref.conformance.options import CheckOptions
from specref.conformance.status import BLOCKS, FIRST, CheckResult, Stage, blocker, drafts_of
from specref.contracts.capabilities import Capabilities
from specref.contracts.contract import Contract, Subject
from specref.contracts.timeout import described

DRAWING = (Stage.JOINT, Stage.STRATA, Stage.ITERATIONS, Stage.END_TO_END)


class Pace:
    """How long a run still takes, by how long its work has taken so far.

    * `work`: {id of a check: its work}, in any unit; other checks are not counted.
    """

    def __init__(self, work: Mapping[str, float]) -> None:
        self.work, self.total = work, float(sum(work.values()))
        self.done = self.spent = 0.0
        self.started, self.of_this, self.drawn = time.perf_counter(), 0.0, 0

    def begin(self, id_: str) -> None:
        """Note that a check begins."""
        self.started, self.of_this, self.drawn = time.perf_counter(), self.work.get(id_, 0.0), 0

    def draw(self, trials: int) -> None:
        """Note that so much of the work of the check is done."""
        self.drawn += trials

    def end(self, *, whole: bool = True) -> None:
        """Note that the check has ended; by all of its work, or it says nothing of the rate."""
        if whole and self.of_this:
            self.done += self.of_this
            self.spent += time.perf_counter() - self.started
        elif self.of_this:
            self.total -= self.of_this
        self.of_this = 0.0

    @property
    def left(self) -> float | None:
        """Seconds; None while nothing is done, or where there is no work."""
        done, spent = self.done + min(self.drawn, self.of_this), self.spent
        spent += time.perf_counter() - self.started if self.of_this else 0.0
        return spent / done * (self.total - done) if done else None


class Clock:
    """Shares the seconds of a run among the checks that draw as much as they are let, by weight.

    What a check spends beyond its share is not counted, since laws are worked out before anything
    is drawn. What it leaves goes to those after it.

    * `seconds`: None: each check draws what its power needs.
    """

    def __init__(self, seconds: float | None, asked: Sequence[Check], contract: Contract) -> None:
        statistical = [one for one in asked if one.statistical and one.is_for(contract)]
        drawing = [one for one in statistical if one.stage in DRAWING] or statistical
        self.weights = [one.weight * (one in drawing) for one in asked]
        self.seconds, self.left = seconds, seconds or 0.0
        self.given: tuple[float, float] | None = None

    def share(self, number: int, most: float = math.inf) -> float | None:
        """The seconds of a check, of those that are left for it and for the checks after it.

        `most`: how many are left at most, if the run has a limit.
        """
        if self.seconds is None:
            return None
        if self.given:
            share, started = self.given
            self.left -= min(share, time.perf_counter() - started)
        self.left = min(self.left, max(most, 0.0))
        share = self.left * (self.weights[number] or 1) / (sum(self.weights[number:]) or 1)
        self.given = (share, time.perf_counter()) if self.weights[number] else None
        return share

    def draws(self, number: int) -> bool:
        """Whether a check draws for its share."""
        return self.weights[number] > 0

    def apart(self, number: int) -> float | None:
        """The seconds of a check if none of them waits for another."""
        if self.seconds is None:
            return None
        return self.seconds * (self.weights[number] or 1) / (sum(self.weights) or 1)


Implementation: TypeAlias = Callable[..., Any]
Kept: TypeAlias = Mapping[str, Any]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Workers:
    """Where checks are run, and how a worker gets the implementation.

    * `load`: Returns the implementation; picklable. By default the implementation itself is sent,
      as the name by which it can be imported.
    """

    executor: Executor
    load: Callable[[], Implementation] | None = None

    def payload(self, implementation: Implementation) -> bytes:
        """What `loaded` reads in a worker."""
        try:
            return pickle.dumps(self.load or partial(_itself, implementation))
        except Exception as error:  # pickle raises several
            raise TypeError(
                f"implementation = {implementation!r}: expected a function that workers can "
                f"import by its name ({described(error)})"
            ) from None


def _itself(implementation: Implementation) -> Implementation:
    return implementation


@lru_cache(maxsize=1)
def loaded(payload: bytes) -> Implementation:
    """The implementation in a worker; loaded once for all checks."""
    try:
        implementation: Implementation = pickle.loads(payload)()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a user's module may raise anything
        raise ImportError(
            f"a worker cannot load the implementation: {described(error)} (is its folder on the "
            "PYTHONPATH of the workers?)"
        ) from None
    return implementation


def run_check(
    payload: bytes,
    capabilities: Capabilities,
    options: CheckOptions,
    checks: int,
    seconds: float | None,
    id_: str,
    kept: Kept,
) -> tuple[CheckResult, Kept]:
    """Run a check in a worker: its result, and what the judge has kept since."""
    subject = Subject(loaded(payload), capabilities, options.timeout)
    judge = Judge(subject, options, checks, seconds=seconds, **kept)
    result = next(one for one in CHECKS if one.id == id_).run(judge)
    try:
        pickle.loads(pickle.dumps(result.error))
    except Exception:  # its message and traceback are in the evidence
        result = replace(result, error=None)
    return result, kept_by(judge)


def kept_by(judge: Judge) -> Kept:
    """What checks leave for later ones; copied."""
    return {
        "memo": dict(judge.memo),
        "first": judge.first,
        "first_drafts": judge.first_drafts,
        "left_out": dict(judge.left_out),
    }


@dataclass
class Ahead:
    """Runs checks on workers before they are asked for, and returns their results in order.

    A check is sent once the stages that may block it are done, and the campaigns of stage joint.

    * `seconds`: Number of a check -> how long it may draw, or None.
    """

    asked: Sequence[Check]
    judge: Judge
    workers: Workers
    blocking: bool = True
    seconds: Callable[[int], float | None] = lambda number: None
    futures: dict[str, Future[tuple[CheckResult, Kept]]] = field(default_factory=dict)
    sent: int = 0

    def __post_init__(self) -> None:
        self.payload = self.workers.payload(self.judge.implementation)

    def send(self, results: Sequence[CheckResult]) -> None:
        """Send the checks that may run, given the results so far."""
        while self.sent < len(self.asked):
            one = self.asked[self.sent]
            stages = {*BLOCKS[one.stage], Stage.JOINT} - {one.stage}
            if any(other.stage in stages for other in self.asked[len(results) : self.sent]):
                return
            blocked = self.blocking and blocker(one.stage, results)
            if one.is_for(self.judge.contract) and not blocked:
                judge = self.judge
                self.futures[one.id] = self.workers.executor.submit(
                    run_check,
                    self.payload,
                    judge.capabilities,
                    judge.options,
                    judge.checks,
                    self.seconds(self.sent),
                    one.id,
                    kept_by(judge),
                )
            self.sent += 1

    def result(self, one: Check) -> CheckResult:
        """Wait for the result of a check that was sent, or run it here if it was not."""
        if one.id not in self.futures:
            return one.run(self.judge)
        result, kept = self.futures.pop(one.id).result()
        self.judge.memo |= kept["memo"]
        self.judge.first = self.judge.first or kept["first"]
        self.judge.first_drafts = self.judge.first_drafts or kept["first_drafts"]
        for claim, why in kept["left_out"].items():
            self.judge.leave_out(claim, why)
        return result

    def cancel(self) -> None:
        """Cancel what has not begun."""
        for future in self.futures.values():
            future.cancel()


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
