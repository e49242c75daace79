"""A check, and how it is run."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from specref.conformance.batch import BrokenContractError
from specref.conformance.contract import Contract
from specref.conformance.judge import Judge
from specref.conformance.patience import HungError, described
from specref.conformance.status import CheckResult, Outcome, Stage, Status

VERIFY = frozenset({Contract.VERIFY})
TREE = frozenset({Contract.TREE})
DRAFTS = VERIFY | TREE
CALLS = frozenset({Contract.STEP, Contract.GENERATE})


@dataclass(frozen=True)
class Check:
    """One question to an implementation.

    Attributes
    ----------
    id : str
        ``stage/name``.
    contracts : frozenset of Contract
        Those it is for; not_applicable under others.
    statistical : bool
        Whether it spends a share of alpha.
    lossy : bool
        Whether a failure speaks of losslessness or a broken contract, not of acceptance.
    """

    id: str
    contracts: frozenset[Contract]
    ask: Callable[[Judge], Outcome]
    statistical: bool = False
    lossy: bool = True

    @property
    def stage(self) -> Stage:
        """The first part of the id."""
        return Stage(self.id.split("/")[0])

    def run(self, judge: Judge) -> CheckResult:
        """Ask; whatever the implementation does becomes an outcome."""
        started = time.perf_counter()
        if judge.contract in self.contracts:
            try:
                outcome = self.ask(judge)
            except HungError as error:
                outcome = failed(str(error), hung=True)
            except BrokenContractError as error:
                outcome = failed(str(error), **error.evidence)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # says nothing of the implementation
                outcome = inconclusive(f"the check itself raised {described(error)}")
        else:
            outcome = not_applicable(f"not for the contract {judge.contract}")
        return self.result(outcome, time.perf_counter() - started)

    def result(self, outcome: Outcome, seconds: float = 0.0) -> CheckResult:
        """An outcome under this check's name."""
        return CheckResult(
            self.id,
            self.stage,
            outcome.status,
            outcome.message,
            outcome.evidence,
            seconds,
            self.lossy,
        )


def passed(message: str = "", **evidence: object) -> Outcome:
    """The implementation did what it should."""
    return Outcome(Status.PASSED, message, evidence)


def failed(message: str, **evidence: object) -> Outcome:
    """It did not."""
    return Outcome(Status.FAILED, message, evidence)


def not_applicable(message: str) -> Outcome:
    """It does not claim this."""
    return Outcome(Status.NOT_APPLICABLE, message)


def not_run(message: str) -> Outcome:
    """Something else has to be mended first."""
    return Outcome(Status.NOT_RUN, message)


def inconclusive(message: str, **evidence: object) -> Outcome:
    """Not enough was seen."""
    return Outcome(Status.INCONCLUSIVE, message, evidence)
