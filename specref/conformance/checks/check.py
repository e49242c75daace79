"""A check, how it is run, and the outcomes it can have."""

import math
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias, TypeVar

import numpy as np

from specref.conformance.judge import Judge
from specref.conformance.status import CheckResult, Finding, Outcome, Stage, Status
from specref.contracts.batch import Answer, Batch, draw_batch_coins
from specref.contracts.calling import Verifier
from specref.contracts.contract import BatchContract, Contract, ModelContract
from specref.contracts.errors import SITUATIONS, BrokenContractError, UntriedError
from specref.contracts.table import CONTRACTS
from specref.contracts.timeout import Deadline, HungError, described, within
from specref.probing.points import drawn_elsewhere
from specref.probing.probe import verification_program
from specref.spoiled import KIT, SpoiledError, unspoiled
from specref.tracebacks import traceback_lines

Kinds: TypeAlias = type[Contract] | tuple[type[Contract], ...]
DRAFTS, CALLS = BatchContract, ModelContract
RARE_EDGE = 1e-12
"""A token; what is impossible and comes more often is a failure."""
LARGE = 131_072
"""Tokens of a vocabulary for which edges are judged, unless the user names larger ones."""
GREEDY = "decodes greedily: no token is random; checks named greedy judge it"
SITUATIONAL = frozenset({Stage.BOUNDARY, Stage.INDEPENDENCE, Stage.STRATA})
"""Stages whose calls may be larger than an implementation has to take."""


@dataclass(frozen=True)
class Check:
    """One check of an implementation.

    * `kinds`: The kinds of contracts that it applies to; not_applicable under others.
    * `finding`: What a failure means, unless the outcome has a finding of its own.
    * `law`: Whether it needs random tokens; greedy decoding has none.
    * `exact`: Whether it needs laws without rounding; low precision has none.
    * `weight`: Its part of `seconds`, beside those of other checks: about what the default power
      takes.
    * `large`: Whether its calls may be larger than an implementation has to take, whatever the
      stage.
    """

    id: str
    kinds: Kinds
    ask: Callable[[Judge], Outcome]
    statistical: bool = False
    finding: Finding = Finding.LAW
    law: bool = False
    exact: bool = False
    weight: float = 1.0
    large: bool = False
    greedy: bool = False

    @property
    def stage(self) -> Stage:
        """The first part of the id."""
        return Stage(self.id.split("/")[0])

    def is_for(self, contract: Contract) -> bool:
        """Whether it applies to a contract."""
        return isinstance(contract, self.kinds)

    @property
    def contracts(self) -> tuple[Contract, ...]:
        """The contracts that it applies to."""
        return tuple(filter(self.is_for, CONTRACTS.values()))

    def run(self, judge: Judge) -> CheckResult:
        """Run the check; whatever the implementation does becomes an outcome."""
        started = time.perf_counter()
        if not self.is_for(judge.contract):
            outcome = not_applicable(f"not for the contract {judge.contract}")
        elif self.law and judge.capabilities.greedy:
            outcome = not_applicable(GREEDY)
        elif self.greedy and not judge.capabilities.greedy:
            outcome = not_applicable("does not claim greedy=true")
        elif self.exact and judge.capabilities.dtype in ("float16", "bfloat16"):
            outcome = not_applicable("low precision: the distribution is not exact")
        else:
            left_out: list[UntriedError] = []
            while True:  # again without what the implementation cannot be tried at
                judge.begin()
                try:
                    with few_threads(), unspoiled(KIT, "the sampler"):
                        outcome = self.ask(judge)
                except UntriedError as error:
                    if error.claim is not None and judge.may_leave_out(error.claim):
                        judge.leave_out(error.claim, error.said)
                        left_out.append(error)
                        continue
                    outcome = self._untried(error)
                except KeyboardInterrupt:
                    raise
                except BaseException as error:
                    outcome = of_error(error)
                break
            outcome = told_untried(refused(outcome, judge), judge.untried)
            for one in reversed(left_out):
                outcome = told_untried(outcome, [one.said], str(one))
        return self.result(outcome, time.perf_counter() - started)

    def _untried(self, error: UntriedError) -> Outcome:
        """The outcome where nothing is left to ask."""
        if error.claim is not None:  # somebody has claimed it
            return broken(error)
        if error.by_size and not (self.large or self.stage in SITUATIONAL):
            in_time = error.__cause__ is None
            return unanswered(str(error), hung=True) if in_time else broken(error)
        said = error.said if error.situation else f"{self.id} ({error.why})"
        return untried(said, str(error))

    def result(self, outcome: Outcome, seconds: float = 0.0) -> CheckResult:
        """The result of this check with a given outcome."""
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


sampled = partial(Check, statistical=True, law=True)
"""A check that samples a law: it spends a share of alpha, and needs random tokens."""


def few_threads() -> AbstractContextManager[None]:
    """torch with one thread, if it is loaded.

    Calls are small: on a busy machine threads of torch mostly wait for each other. Sums of floats
    do not depend on the machine's number of cores either.
    """
    if "torch" not in sys.modules:
        return nullcontext()
    from specref.contracts.process_state import one_thread

    return one_thread()


def passed(message: str = "", **evidence: object) -> Outcome:
    """The implementation did what it should."""
    return Outcome(Status.PASSED, message, evidence)


def failed(message: str, finding: Finding | None = None, /, **evidence: object) -> Outcome:
    """The implementation is wrong; `finding` replaces the finding of the check."""
    return Outcome(Status.FAILED, message, evidence, finding)


def edge(
    message: str, chance: float, vocabulary: int | None = None, **evidence: object
) -> Outcome:
    """Something impossible at the end of a number; a failure unless that is very rare.

    `chance` is that of one draw; each token of a `vocabulary` has one.
    """
    rate = -math.expm1(vocabulary * math.log1p(-chance)) if vocabulary else chance
    status = Status.FAILED if rate >= RARE_EDGE else Status.PASSED
    at = f"{vocabulary:,} draws, one for each id" if vocabulary else "one draw each"
    often = f"chance {chance:.0e} a draw, {1e6 * rate:.0e} per million tokens at {at}"
    often = often if chance else "never by the generator of this call"
    numbers = {"chance": chance, "per_million_tokens": 1e6 * rate, **evidence}
    return Outcome(status, f"{message} ({often})", numbers, Finding.EDGE)


def of_error(error: BaseException) -> Outcome:
    """What it says of an implementation that its check raised."""
    if isinstance(error, SpoiledError):
        return failed(str(error), Finding.CONTRACT)
    if isinstance(error, HungError):
        return unanswered(str(error), **error.evidence)
    if isinstance(error, BrokenContractError):
        return broken(error)
    return inconclusive(f"the check itself raised {described(error)}")


def broken(error: BrokenContractError) -> Outcome:
    """The implementation raised, or gave no valid answer; includes its traceback if it raised."""
    cause: BaseException | None = error
    while isinstance(cause, BrokenContractError):
        cause = cause.__cause__
    lines = traceback_lines(cause)
    evidence = {**error.evidence, **({"traceback": lines} if lines else {})}
    return Outcome(Status.FAILED, str(error), evidence, Finding.CONTRACT, cause)


def unanswered(message: str, **evidence: object) -> Outcome:
    """The implementation did not return in time, which says nothing about its law."""
    return Outcome(Status.INCONCLUSIVE, message, evidence, Finding.UNANSWERED)


def not_applicable(message: str) -> Outcome:
    """The implementation does not claim what the check asks for."""
    return Outcome(Status.NOT_APPLICABLE, message)


def not_run(message: str) -> Outcome:
    """Another failure has to be fixed first."""
    return Outcome(Status.NOT_RUN, message)


def untried(said: str, message: str = "") -> Outcome:
    """The implementation cannot be tried there: nothing is said of it, good or bad."""
    told = f"not tried: {said}" + f": {message}" * bool(message)
    return Outcome(Status.NOT_RUN, told, {"not_tried": [said]})


def told_untried(outcome: Outcome, said: Sequence[str], why: str = "") -> Outcome:
    """An outcome with what was left out of it, and why at more length."""
    known = list(outcome.evidence.get("not_tried", ()))
    new = [one for one in dict.fromkeys(said) if one not in known]
    told = f"not tried: {'; '.join(new)}" if new else ""
    message = "; ".join(filter(None, [outcome.message, told])) + f": {why}" * bool(why)
    if message == outcome.message:
        return outcome
    return replace(
        outcome, message=message, evidence={**outcome.evidence, "not_tried": [*known, *new]}
    )


def refused(outcome: Outcome, judge: Judge) -> Outcome:
    """What does not apply to claims that were left out was not tried."""
    if outcome.status != Status.NOT_APPLICABLE:
        return outcome
    for one in SITUATIONS:
        if one.claim in judge.left_out and one.refused in outcome.message:
            return untried(judge.left_out[one.claim])
    return outcome


def inconclusive(message: str, **evidence: object) -> Outcome:
    """There is too little evidence to decide."""
    return Outcome(Status.INCONCLUSIVE, message, evidence)


Result = TypeVar("Result")
ROWS = 500


def intercepted(judge: Judge, work: Callable[[], Result], most: float | None = None) -> Result:
    """Do work with the judge's timeout, which starts anew whenever a run returns.

    Exceptions of the implementation are outcomes of its runs; any other one is raised here.

    `most`: seconds for all of the work.
    """

    def attempt() -> Result | Exception:
        try:
            return work()
        except Exception as error:
            return error

    found = within(judge.timeout, attempt, Deadline(most))
    if isinstance(found, Exception):
        raise found
    return found


def repeated_answers(
    judge: Judge,
    verifier: Verifier,
    batch: Batch,
    calls: int,
    name: str,
    deadline: Deadline | None = None,
) -> list[Answer]:
    """The answers to the same batch in repeated calls, with the generator of this name."""
    rng, deadline = judge.rng(name), deadline or Deadline()

    def ask() -> list[Answer]:
        return [verifier.answer(batch, rng, deadline=deadline) for _ in range(calls)]

    return within(judge.timeout, ask, deadline)


def other_randomness(judge: Judge) -> str:
    """What else than its coins decides a block of a sampler that declares coins, or "".

    Tried on two drafts, of which either may be rejected.
    """
    p = np.array([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5], [0.25, 0.5, 0.25]])
    q = np.array([[0.25, 0.5, 0.25], [0.25, 0.5, 0.25]])
    program = verification_program(
        judge.implementation, p, q, (1, 1), judge.capabilities, kind=type(judge.verifier)
    )
    found = intercepted(judge, partial(drawn_elsewhere, program))
    if found is not None:
        return found
    # It cannot be intercepted: compare blocks of equal coins with different other randomness.
    batch = judge.sample("wide", ROWS, "equal coins")
    coins = draw_batch_coins(batch, judge.rng("equal coins"))
    one, other = (
        judge.verifier(batch, judge.rng(name), coins).tokens for name in ("one", "other")
    )
    for row in np.flatnonzero((one != other).any(axis=1))[:1].tolist():
        return (
            "declares random numbers, but they do not decide its block alone: equal random "
            f"numbers give {one[row].tolist()}, then {other[row].tolist()}"
        )
    return ""
