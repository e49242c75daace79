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
GREEDY = "decodes greedily: no token is random"


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
    law : bool
        Whether it asks for random tokens; greedy decoding has none.
    """

    id: str
    contracts: frozenset[Contract]
    ask: Callable[[Judge], Outcome]
    statistical: bool = False
    lossy: bool = True
    law: bool = False

    @property
    def stage(self) -> Stage:
        """The first part of the id."""
        return Stage(self.id.split("/")[0])

    def run(self, judge: Judge) -> CheckResult:
        """Ask; whatever the implementation does becomes an outcome."""
        started = time.perf_counter()
        if judge.contract not in self.contracts:
            outcome = not_applicable(f"not for the contract {judge.contract}")
        elif self.law and judge.capabilities.greedy:
            outcome = not_applicable(GREEDY)
        else:
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


def inconclusive(message: str, **evidence: object) -> Outcome:
    """Not enough was seen."""
    return Outcome(Status.INCONCLUSIVE, message, evidence)
