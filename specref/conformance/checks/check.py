"""A check, and how it is run."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from specref.conformance.judge import Judge
from specref.conformance.status import CheckResult, Finding, Outcome, Stage, Status
from specref.contracts.contract import BatchContract, Contract, ModelContract
from specref.contracts.errors import BrokenContractError
from specref.contracts.table import CONTRACTS
from specref.contracts.timeout import HungError, described
from specref.tracebacks import traceback_lines

DRAFTS, CALLS = BatchContract, ModelContract
RARE_EDGE = 1e-12
GREEDY = "decodes greedily: no token is random"


@dataclass(frozen=True)
class Check:
    """One question to an implementation.

    Attributes
    ----------
    id : str
        ``stage/name``.
    kinds : type or tuple of types
        The kinds of contracts that it is for; not_applicable under others.
    statistical : bool
        Whether it spends a share of alpha.
    finding : Finding
        What a failure says, unless the outcome says something else.
    law : bool
        Whether it asks for random tokens; greedy decoding has none.
    """

    id: str
    kinds: type[Contract] | tuple[type[Contract], ...]
    ask: Callable[[Judge], Outcome]
    statistical: bool = False
    finding: Finding = Finding.LAW
    law: bool = False

    @property
    def stage(self) -> Stage:
        """The first part of the id."""
        return Stage(self.id.split("/")[0])

    def is_for(self, contract: Contract) -> bool:
        """Whether it asks implementations of a contract anything."""
        return isinstance(contract, self.kinds)

    @property
    def contracts(self) -> tuple[Contract, ...]:
        """Those it is for."""
        return tuple(filter(self.is_for, CONTRACTS.values()))

    def run(self, judge: Judge) -> CheckResult:
        """Ask; whatever the implementation does becomes an outcome."""
        started = time.perf_counter()
        if not self.is_for(judge.contract):
            outcome = not_applicable(f"not for the contract {judge.contract}")
        elif self.law and judge.capabilities.greedy:
            outcome = not_applicable(GREEDY)
        else:
            try:
                outcome = self.ask(judge)
            except HungError as error:
                outcome = unanswered(str(error), **error.evidence)
            except BrokenContractError as error:
                outcome = broken(error)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # says nothing of the implementation
                outcome = inconclusive(f"the check itself raised {described(error)}")
        return self.result(outcome, time.perf_counter() - started)

    def result(self, outcome: Outcome, seconds: float = 0.0) -> CheckResult:
        """An outcome under this check's name."""
        finding = outcome.finding
        if finding is None and outcome.status == Status.FAILED:
            finding = self.finding
        return CheckResult(
            self.id,
            self.stage,
            outcome.status,
            outcome.message,
            outcome.evidence,
            seconds,
            finding,
            outcome.error,
        )


def passed(message: str = "", **evidence: object) -> Outcome:
    """The implementation did what it should."""
    return Outcome(Status.PASSED, message, evidence)


def failed(message: str, finding: Finding | None = None, /, **evidence: object) -> Outcome:
    """It did not; `finding` says what that means, if not what the check says."""
    return Outcome(Status.FAILED, message, evidence, finding)


def edge(message: str, chance: float, **evidence: object) -> Outcome:
    """Something impossible at the end of a uniform: a failure, unless that is too rare to matter.

    Parameters
    ----------
    message : str
    chance : float
        Of the number that does it, per draw.
    """
    status = Status.FAILED if chance >= RARE_EDGE else Status.PASSED
    often = f"chance {chance:.0e} a draw, {1e6 * chance:.0e} per million tokens at one draw each"
    numbers = {"chance": chance, "per_million_tokens": 1e6 * chance, **evidence}
    return Outcome(status, f"{message} ({often})", numbers, Finding.EDGE)


def broken(error: BrokenContractError) -> Outcome:
    """It raised, or gave no valid answer; with its traceback, if it raised."""
    cause: BaseException | None = error
    while isinstance(cause, BrokenContractError):
        cause = cause.__cause__
    lines = traceback_lines(cause)
    evidence = {**error.evidence, **({"traceback": lines} if lines else {})}
    return Outcome(Status.FAILED, str(error), evidence, Finding.CONTRACT, cause)


def unanswered(message: str, **evidence: object) -> Outcome:
    """It did not return in time, which says nothing of its law."""
    return Outcome(Status.INCONCLUSIVE, message, evidence, Finding.UNANSWERED)


def not_applicable(message: str) -> Outcome:
    """It does not claim this."""
    return Outcome(Status.NOT_APPLICABLE, message)


def not_run(message: str) -> Outcome:
    """Something else has to be mended first."""
    return Outcome(Status.NOT_RUN, message)


def inconclusive(message: str, **evidence: object) -> Outcome:
    """Not enough was seen."""
    return Outcome(Status.INCONCLUSIVE, message, evidence)
