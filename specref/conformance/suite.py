"""The suite: stages in order, causes before cascades, and a report."""

import difflib
import itertools
import platform
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module
from typing import Any

from specref.algorithms import ALGORITHMS
from specref.conformance.bugs import compared_with
from specref.conformance.checks import CHECKS, Check
from specref.conformance.contract import (
    TREE_RULES,
    Capabilities,
    Contract,
    accepted_keywords,
    capabilities_of,
    signed,
)
from specref.conformance.diagnosis import Diagnosis, Laws, Observed, diagnose, unnamed
from specref.conformance.further import further
from specref.conformance.judge import DETECT_TV, PATIENCE, Judge, Profile
from specref.conformance.status import LOSSY, CheckResult, Finding, Outcome, Stage, Status, counted
from specref.losslessness.statistics import ALPHA

BLOCKS: Mapping[Stage, tuple[Stage, ...]] = {
    Stage.SMOKE: (),
    Stage.REPLAY: (Stage.SMOKE,),
    Stage.BOUNDARY: (Stage.SMOKE,),
    Stage.JOINT: (Stage.SMOKE,),
    Stage.ACCEPTANCE: (Stage.SMOKE, Stage.JOINT),
    Stage.INDEPENDENCE: (Stage.SMOKE,),
    Stage.ITERATIONS: (Stage.SMOKE, Stage.JOINT, Stage.INDEPENDENCE),
    Stage.END_TO_END: (Stage.SMOKE, Stage.JOINT),
}
RARE = 0.01
RUNNING = "interrupted while it ran"
NEAR = 0.75
VERDICTS: Mapping[Finding, str] = {
    Finding.DEPENDENCE: "LOSSY: blocks are not independent ({})",
    Finding.LAW: "LOSSY: the law is not the target's ({})",
    Finding.CONTRACT: "BROKEN CONTRACT ({}); nothing found says that its law is off",
    Finding.EDGE: "EDGE of a uniform: something impossible at a rate that matters ({})",
    Finding.ACCEPTANCE: "acceptance does not follow the declared rule ({}); nothing found says "
    "that it is lossy",
    Finding.UNANSWERED: "NOT ANSWERED in time ({}); nothing found says that its law is off",
}


@dataclass(frozen=True, repr=False)
class Report:
    """What the checks found, and how to repeat them.

    Attributes
    ----------
    results : tuple of CheckResult
        In order of stages.
    warnings : tuple of str
        Branches that were hardly ever taken, so that little was learned of them.
    diagnosis : Diagnosis or None
        Which known bug a failure looks like.
    complete : bool
        False while `check` runs, and where it was interrupted.
    """

    name: str
    version: str
    contract: Contract
    capabilities: Capabilities
    seed: int
    alpha: float
    detect_tv: float
    results: tuple[CheckResult, ...]
    warnings: tuple[str, ...] = ()
    diagnosis: Diagnosis | None = None
    seconds: float = 0.0
    complete: bool = True
    python: str = field(default_factory=platform.python_version)

    @property
    def partial(self) -> bool:
        """Whether some checks were left out, by `only`."""
        return len(self.results) < len(CHECKS)

    @property
    def counts(self) -> dict[str, int]:
        """How often each of the seven statuses occurs."""
        return counted(self.results)

    @property
    def failures(self) -> tuple[CheckResult, ...]:
        """The checks that failed without being expected to."""
        return tuple(result for result in self.results if result.status == Status.FAILED)

    @property
    def tracebacks(self) -> Mapping[str, tuple[str, ...]]:
        """{ids of checks: the traceback of what the implementation raised in them}."""
        found: dict[tuple[str, ...], list[str]] = {}
        for result in self.results:
            if result.traceback:
                found.setdefault(result.traceback, []).append(result.id)
        return {", ".join(ids): lines for lines, ids in found.items()}

    @property
    def lossy(self) -> bool:
        """Whether a failure says that the law of a block, or of several together, is off."""
        return self.finding in LOSSY

    @property
    def wrong(self) -> tuple[CheckResult, ...]:
        """The failures, and the checks that were not answered in time."""
        return tuple(
            result
            for result in self.results
            if result.status == Status.FAILED or result.finding == Finding.UNANSWERED
        )

    @property
    def finding(self) -> Finding | None:
        """The gravest of what is wrong, if anything; an edge too rare to fail for is not."""
        found = {result.finding for result in self.wrong}
        return next((finding for finding in Finding if finding in found), None)

    @property
    def exit_code(self) -> int:
        """0 not distinguishable from lossless at the declared power, 1 violation, 2 open.

        Checks that do not apply are no obstacle; stale expected failures, and checks that
        were not run, not answered or not decided, are.
        """
        if self.failures:
            return 1
        seen = {result.status for result in self.results}
        undecided = seen & {Status.INCONCLUSIVE, Status.NOT_RUN, Status.UNEXPECTED_PASS}
        return 2 if undecided or not seen & {Status.PASSED, Status.EXPECTED_FAILURE} else 0

    @property
    def passed(self) -> bool:
        """Whether the exit code is 0; so is the truth value of a report."""
        return self.exit_code == 0

    def __bool__(self) -> bool:
        return self.passed

    def raise_for_status(self) -> None:
        """Do nothing if the exit code is 0.

        Raises
        ------
        NotPassedError
            It is not; the message is the report, the cause what the implementation raised.

        Examples
        --------
        >>> from specref.examples.lossy import verify
        >>> check(verify, one_hot=False, only=["joint/wide"]).raise_for_status()
        Traceback (most recent call last):
        specref.conformance.suite.NotPassedError: ...
        """
        if not self.passed:
            errors = (result.error for result in self.results)
            raise NotPassedError(self) from next(filter(None, errors), None)

    @property
    def verdict(self) -> str:
        """One line."""
        if self.finding is not None:
            return VERDICTS[self.finding].format(self._first(self.finding))
        if not self.complete:
            running = [r.id for r in self.results if r.message == RUNNING]
            why = f"interrupted in {', '.join(running)}" if running else "not finished"
            return f"INCONCLUSIVE: {why}"
        stale = [r.id for r in self.results if r.status == Status.UNEXPECTED_PASS]
        if stale:
            return f"expected failures that passed, to be taken off the list: {', '.join(stale)}"
        if self.exit_code:
            return "INCONCLUSIVE"
        power = self._power()
        known = [r for r in self.results if r.status == Status.EXPECTED_FAILURE]
        if any(result.lossy for result in known):
            return f"LOSSY as expected: {len(known)} known failures, and nothing else ({power})"
        but = f", but for {len(known)} expected failures" if known else ""
        part = f" in the {len(self.results)} checks that were asked for" if self.partial else ""
        rare = [r for r in self.results if r.finding == Finding.EDGE and r.status == Status.PASSED]
        edges = f"; edges of uniforms in {', '.join(r.id for r in rare)}" if rare else ""
        return f"no difference from lossless{part}{but} ({power}){edges}"

    def _first(self, finding: Finding) -> str:
        """The id of the first check that found this."""
        return next(result.id for result in self.wrong if result.finding == finding)

    def _power(self) -> str:
        if self.capabilities.greedy:
            return "greedy=true: blocks and texts were compared with argmax, and no law was judged"
        found = {r.id: r.evidence.get("detectable_tv") or 0.0 for r in self.results}
        if not any(found.values()):
            return "nothing was sampled, or not enough to say what would have been found"
        coarse = [id_ for id_, tv in found.items() if tv > self.detect_tv]
        if len(coarse) == sum(tv > 0 for tv in found.values()):
            largest = max(found.values())
            return f"TV ≥ {largest:.2g} would have been found, false alarms {self.alpha:g}"
        but = f", by {', '.join(coarse)} only TV ≥ {max(found.values()):.2g}" if coarse else ""
        return f"TV ≥ {self.detect_tv:g} would have been found{but}, false alarms {self.alpha:g}"

    def __repr__(self) -> str:
        """The report itself: what `assert check(…)` shows."""
        return f"<{self}>"

    def __str__(self) -> str:
        lines = [f"{self.name} {self.version}, contract {self.contract}, seed {self.seed}"]
        lines += [f"  {r.status}: {r.id}: {r.finding}: {r.message}" for r in self.wrong]
        for ids, traceback in self.tracebacks.items():
            lines += [f"  traceback of {ids}:", *(f"    {line}" for line in traceback)]
        lines += [f"  warning: {warning}" for warning in self.warnings]
        lines += [f"  {line}" for line in str(self.diagnosis or "").splitlines()]
        return "\n".join([*lines, self.verdict])


class NotPassedError(AssertionError):
    """A report whose exit code is not 0, raised by `Report.raise_for_status`."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during `check`; carries the report of what was found until then.

    Its cause is the KeyboardInterrupt.
    """

    def __init__(self, report: Report) -> None:
        super().__init__()
        self.report = report


def check(
    implementation: Callable[..., Any],
    *,
    contract: Contract | str = Contract.VERIFY,
    algorithm: str | None = None,
    expected_failures: Mapping[str, str] | None = None,
    only: Sequence[str] | None = None,
    profile: Profile = "quick",
    detect_tv: float | None = None,
    alpha: float = ALPHA,
    seed: int = 0,
    trials: int | None = None,
    patience: float | None = PATIENCE,
    blocking: bool = True,
    name: str | None = None,
    version: str = "",
    advance: Callable[[int], None] = lambda trials: None,
    on_start: Callable[[Check], None] = lambda one: None,
    on_result: Callable[[CheckResult], None] = lambda result: None,
    on_report: Callable[[Report], None] = lambda report: None,
    **claims: Any,
) -> Report:
    """Judge somebody's sampler by every check of its contract.

    Parameters
    ----------
    implementation : callable
        A function of the contract: see `Verify`, `VerifyTree`, `Step`, `Generate`, `Drafter`.
    contract : {"verify", "tree", "step", "generate", "drafter"}
    algorithm : str, optional
        The rule that it declares; then accepted lengths are judged as well.
    expected_failures : mapping, optional
        {id of a check: reason}. Failing there counts as expected_failure, passing as
        unexpected_pass.
    only : sequence of str, optional
        Ids of checks, or starts of them; the rest is not in the report.
    profile : {"quick", "standard", "thorough"}
        Which distance is detected: 0.05, 0.02, 0.01.
    detect_tv : float, optional
        The distance itself.
    alpha : float
        The chance that a lossless sampler fails, over all statistical checks.
    seed : int
        Of everything; a check's randomness depends on the seed and its own id alone.
    trials : int, optional
        For each statistical check, instead of what `detect_tv` needs; too few of them are
        inconclusive.
    patience : float or None
        Seconds that a call may take.
    blocking : bool
        Leave out what depends on a failed stage.
    name, version : str, optional
        For the report.
    advance, on_start, on_result : callable
        Told about trials, checks and results as they come.
    on_report : callable
        Given the report so far after each check but the last; the checks that are left are
        not_run in it, and nothing is diagnosed yet.
    **claims
        Fields of `Capabilities`, instead of those that the implementation carries.

    Returns
    -------
    Report

    Raises
    ------
    TypeError
        The implementation is not callable, or lacks `parents` where the contract has them, or
        the reverse; or a claim is unknown.
    ValueError
        A parameter is out of range, an id of an expected failure does not exist, or the rule is
        none of the contract.
    Interrupted
        A KeyboardInterrupt with the report so far; what is left is not_run.

    Examples
    --------
    >>> from specref.conformance.implementations.reference import verify
    >>> report = check(verify, only=["smoke", "boundary"])
    >>> report.exit_code, report.counts["failed"]
    (0, 0)
    """
    started = time.perf_counter()
    judge, asked = prepare(
        implementation, contract, algorithm, only, profile, detect_tv, alpha, seed, trials,
        patience, advance, claims,
    )  # fmt: skip
    expected = known_ids(expected_failures or {})
    own = getattr(implementation, "__qualname__", type(implementation).__name__)
    report = partial(_report, judge, name or str(own), version, seed, alpha, started)
    results: list[CheckResult] = []

    def so_far(why: str) -> list[CheckResult]:
        left = [one for one in asked[len(results) :] if judge.contract in one.contracts]
        return results + [one.result(Outcome(Status.NOT_RUN, why)) for one in left]

    try:
        for one in asked:
            on_start(one)
            results.append(_run(one, judge, results if blocking else [], expected))
            on_result(results[-1])
            if len(results) < len(asked):
                on_report(report(so_far("not yet"), complete=False))
        return report(results, diagnosed(judge, results))
    except KeyboardInterrupt as stop:
        found = so_far("interrupted")
        if len(results) < len(found):
            running = found[len(results)]
            lines = [line for note in getattr(stop, "__notes__", ()) for line in note.splitlines()]
            evidence = {"traceback": tuple(lines)} if lines else {}
            found[len(results)] = replace(running, message=RUNNING, evidence=evidence)
        diagnosis = diagnosed(judge, found, draw_on=False)
        raise Interrupted(report(found, diagnosis, complete=False)) from stop


def prepare(
    implementation: Callable[..., Any],
    contract: Contract | str,
    algorithm: str | None,
    only: Sequence[str] | None,
    profile: Profile,
    detect_tv: float | None,
    alpha: float,
    seed: int,
    trials: int | None,
    patience: float | None,
    advance: Callable[[int], None],
    claims: Mapping[str, Any],
) -> tuple[Judge, tuple[Check, ...]]:
    """The judge and the checks that `check` asks for; validates every argument."""
    accepted_keywords(implementation)
    contract = _contract(contract)
    if profile not in DETECT_TV:
        raise ValueError(f"profile = {profile!r}: expected one of {tuple(DETECT_TV)}")
    tv = DETECT_TV[profile] if detect_tv is None else detect_tv
    for label, value in (("alpha", alpha), ("detect_tv", tv)):
        if not 0 < value < 1:
            raise ValueError(f"{label} = {value}: expected a number in (0, 1)")
    if seed < 0:
        raise ValueError(f"seed = {seed}: expected at least 0")
    if patience is not None and not patience > 0:
        raise ValueError(f"patience = {patience}: expected a positive number of seconds, or None")
    if trials is not None and trials < 1:
        raise ValueError(f"trials = {trials}: expected at least 1")
    rule = {} if algorithm is None else {"rule": algorithm}
    capabilities = capabilities_of(implementation, **{**rule, **claims})
    reachable(capabilities)
    fitting(capabilities.rule, contract)
    signed(implementation, contract)
    statistical = sum(one.statistical and contract in one.contracts for one in CHECKS)
    judge = Judge(
        implementation, contract, capabilities, tv, alpha, seed, patience, statistical, trials,
        advance,
    )  # fmt: skip
    return judge, chosen(only)


def reachable(capabilities: Capabilities) -> None:
    """Raise `ValueError` if what is claimed cannot be used on this machine."""
    if capabilities.arrays == "numpy":
        if capabilities.dtype in ("bfloat16", "float16") or capabilities.device != "cpu":
            raise ValueError(
                f"dtype = {capabilities.dtype}, device = {capabilities.device}: NumPy arrays are "
                "float64 or float32 on the CPU (arrays='torch' for others)"
            )
        return
    torch = import_module("torch")
    try:
        torch.zeros(1, device=capabilities.device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"device = {capabilities.device!r} cannot be used: {reason}") from None


def fitting(rule: str | None, contract: Contract) -> None:
    """Raise `ValueError` if a rule is none of the contract: trees have their own."""
    if rule is not None and (rule in TREE_RULES) != (contract == Contract.TREE):
        known = TREE_RULES if contract == Contract.TREE else tuple(ALGORITHMS)
        raise ValueError(f"rule = {rule!r}: the contract {contract} has one of {known}, or None")


def _contract(contract: Contract | str) -> Contract:
    known = [str(each) for each in Contract]
    if str(contract) not in known:
        raise ValueError(f"contract = {str(contract)!r}: expected one of {known}")
    return Contract(contract)


def chosen(only: Sequence[str] | None) -> tuple[Check, ...]:
    """The checks with these ids, and those whose ids start with one that is no id itself.

    Raises
    ------
    ValueError
        None starts like that.
    """
    if isinstance(only, str):
        raise TypeError(f"only = {only!r}: expected a list of ids, such as [{only!r}]")
    for start in only or ():
        if not any(one.id.startswith(start) for one in CHECKS):
            hint = _suggestion(start, list(map(str, Stage)))
            raise ValueError(f"only = {start!r}: no check has an id like that{hint}")
    ids = {one.id for one in CHECKS}
    exact = {start for start in only or () if start in ids}
    starts = tuple(start for start in only or () if start not in exact)
    return tuple(
        one for one in CHECKS if only is None or one.id in exact or one.id.startswith(starts)
    )


def known_ids(expected: Mapping[str, str]) -> Mapping[str, str]:
    """Expected failures, if every id exists.

    Raises
    ------
    ValueError
        One does not; with the id that it resembles.
    """
    ids = {one.id for one in CHECKS}
    for id_ in expected:
        if id_ not in ids:
            raise ValueError(f"expected_failures has no check {id_!r}{_suggestion(id_)}")
    return expected


def _suggestion(word: str, others: Sequence[str] = ()) -> str:
    """The id that is nearly this word, in whole or after its stage; nothing if none is near."""
    ids = {one.id.partition("/")[2]: one.id for one in reversed(CHECKS)}
    known = ids | {one.id: one.id for one in CHECKS} | {other: other for other in others}
    close = difflib.get_close_matches(word, known, n=1, cutoff=NEAR)
    return f": did you mean {known[close[0]]!r}?" if close else ""


def _report(
    judge: Judge,
    name: str,
    version: str,
    seed: int,
    alpha: float,
    started: float,
    results: Sequence[CheckResult],
    diagnosis: Diagnosis | None = None,
    complete: bool = True,
) -> Report:
    return Report(
        name=name,
        version=version,
        contract=judge.contract,
        capabilities=judge.capabilities,
        seed=seed,
        alpha=alpha,
        detect_tv=judge.detect_tv,
        results=tuple(results),
        warnings=(*rare_edges(results), *vacuous(judge)),
        diagnosis=diagnosis,
        seconds=time.perf_counter() - started,
        complete=complete,
    )


def _run(
    one: Check, judge: Judge, before: Sequence[CheckResult], expected: Mapping[str, str]
) -> CheckResult:
    # After a timeout, later calls would time out too.
    hung = (r.id for r in before if r.finding == Finding.UNANSWERED)
    failed = (r.id for r in before if r.status == Status.FAILED and r.stage in BLOCKS[one.stage])
    blocker = next(itertools.chain(hung, failed), None)
    if blocker is not None and judge.contract in one.contracts:
        return one.result(Outcome(Status.NOT_RUN, f"blocked by {blocker}"))
    result = one.run(judge)
    if one.id not in expected:
        return result
    reason = expected[one.id]
    if result.status == Status.FAILED:
        message = f"{reason} ({result.message})"
        return replace(result, status=Status.EXPECTED_FAILURE, message=message)
    if result.status == Status.PASSED:
        return replace(result, status=Status.UNEXPECTED_PASS, message=f"passed, though: {reason}")
    return result


def rare_edges(results: Sequence[CheckResult]) -> tuple[str, ...]:
    """What happens at the ends of uniforms, too rarely to fail for."""
    rare = (r for r in results if r.finding == Finding.EDGE and r.status == Status.PASSED)
    return tuple(f"{result.id}: {result.message}" for result in rare)


def vacuous(judge: Judge) -> tuple[str, ...]:
    """Branches that were taken in under 1 % of the trials of a campaign."""
    warnings = []
    for key, found in judge.memo.items():
        total = sum(found.hits.values())
        for branch, hits in found.hits.items():
            if key.startswith("blocks") and hits < RARE * total:
                warnings.append(
                    f"{key}: {hits:,} of {total:,} blocks ended in a {branch} token; little was "
                    "learned of that branch"
                )
    return tuple(warnings)


def diagnosed(
    judge: Judge, results: Sequence[CheckResult], *, draw_on: bool = True
) -> Diagnosis | None:
    """Which known bug the failures look like, if a law of blocks or a length failed.

    Parameters
    ----------
    draw_on : bool
        Whether the sampler is asked for more blocks: see `further`.
    """
    suspicious = (Stage.JOINT, Stage.ACCEPTANCE)
    if not any(r.stage in suspicious and r.status == Status.FAILED for r in results):
        return None
    sharing = tuple(key for key, found in judge.memo.items() if found.sharing)
    if sharing:
        return unnamed(sharing)
    hung = any(result.evidence.get("hung") for result in results)
    seen, rule = observed(judge, draw_on=draw_on and not hung), judge.algorithm
    if not seen:
        return None
    return diagnose(seen, compared_with(rule), algorithm=rule, laws=laws_beside(rule))


def observed(judge: Judge, *, draw_on: bool) -> list[Observed]:
    """The blocks of all campaigns over single iterations, and of `further`."""
    names = [name for name in judge.fixtures if f"blocks/{name}" in judge.memo]
    more = further(judge, names) if draw_on else judge.further
    return [
        Observed(
            f"blocks/{name}, {place.name}",
            judge.teeth(name).target,
            judge.teeth(name).drafter,
            place.context,
            place.lookahead,
            counts,
            options=place.options,
        )
        for name in names
        for place, seen in judge.memo[f"blocks/{name}"].blocks.items()
        if (counts := Counter(seen) + more.get(name, {}).get(place, Counter()))
    ]


@cache
def laws_beside(rule: str) -> Laws:
    """What a failure is compared with, computed once for each fixture."""
    return Laws(compared_with(rule), algorithm=rule)
