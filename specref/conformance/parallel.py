"""Checks on worker processes: each by a judge of its own, which has loaded the implementation.

A check depends on the options and on its own id, and on what the judge kept from earlier checks,
such as campaigns. That is sent with it, and what it adds comes back, so results do not depend on
where a check runs, provided that the implementation keeps nothing from one check to another.
"""

import pickle
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, TypeAlias

from specref.conformance.checks import CHECKS, Check
from specref.conformance.judge import Judge
from specref.conformance.options import CheckOptions
from specref.conformance.status import BLOCKS, CheckResult, Stage, blocker
from specref.contracts.capabilities import Capabilities
from specref.contracts.contract import Subject
from specref.contracts.timeout import described

Implementation: TypeAlias = Callable[..., Any]
Kept: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Workers:
    """Where checks are run, and how a worker gets the implementation.

    Attributes
    ----------
    executor : concurrent.futures.Executor
        Processes on this machine or others.
    load : callable, optional
        Returns the implementation; picklable. By default the implementation itself is sent, as
        the name by which it can be imported.
    """

    executor: Executor
    load: Callable[[], Implementation] | None = None

    def payload(self, implementation: Implementation) -> bytes:
        """What `loaded` reads in a worker.

        Raises
        ------
        TypeError
            It cannot be sent.
        """
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
    """The implementation in a worker; loaded once for all checks.

    Raises
    ------
    ImportError
        The worker cannot import it.
    """
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

    Parameters
    ----------
    asked : sequence of Check
    judge : Judge
        It receives what the judges of the workers keep.
    workers : Workers
    blocking : bool
        Whether checks that depend on a failed stage are skipped.
    seconds : callable
        Number of a check -> how long it may draw, or None.
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
        """Wait for the result of a check that was sent, or run it here if it was not.

        Raises
        ------
        ImportError
            The worker cannot load the implementation.
        BrokenExecutor
            A worker died.
        """
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
