"""`check`, as users call it; what judges is imported when it is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Unpack

from specref.conformance.strata.shape import Shape
from specref.contracts.timeout import TIMEOUT
from specref.statistics.campaign.levels import ALPHA

if TYPE_CHECKING:
    from typing import Any

    from specref.conformance.checks import Check
    from specref.conformance.options import ClaimsOfCheck, Profile
    from specref.conformance.report import Report
    from specref.conformance.status import CheckResult
    from specref.contracts.capabilities import Dtype
    from specref.contracts.contract import Contract


def check(
    implementation: Callable[..., Any],
    *,
    contract: Contract | str = "verify",
    algorithm: str | None = None,
    expected_failures: Mapping[str, str] | None = None,
    only: Sequence[str] | None = None,
    skip: Sequence[str] = (),
    profile: Profile = "quick",
    detect_tv: float | None = None,
    alpha: float = ALPHA,
    seed: int = 0,
    trials: int | None = None,
    seconds: float | None = None,
    time_limit: float | None = None,
    timeout: float | None = TIMEOUT,
    blocking: bool = True,
    exitfirst: bool = False,
    name: str | None = None,
    version: str = "",
    advance: Callable[[int], None] = lambda trials: None,
    on_start: Callable[[Check], None] = lambda one: None,
    on_result: Callable[[CheckResult], None] = lambda result: None,
    on_report: Callable[[Report], None] = lambda report: None,
    shapes: Sequence[tuple[int, int, int]] = (),
    dtypes: Sequence[Dtype] = (),
    strict: bool = False,
    texts: str | None = None,
    executor: Executor | None = None,
    **claims: Unpack[ClaimsOfCheck],
) -> Report:
    """Judge a sampler by every check of its contract.

    Parameters
    ----------
    implementation : callable
        A function as the contract calls it: `specref list contracts` shows them all; or an
        `Engine`.
    contract : Contract or str
        One of `CONTRACTS`, or its name.
    algorithm : str, optional
        The rule that it declares; then numbers of accepted tokens are judged as well.
    expected_failures : mapping, optional
        {id of a check: reason}. Failing there counts as expected_failure, passing as
        unexpected_pass; as inconclusive, where `seconds` end what is drawn.
    only : sequence of str, optional
        Ids of checks, or starts of them; the rest is not in the report.
    skip : sequence of str, optional
        Ids of checks, or starts of them, that are left out.
    profile : {"quick", "standard", "thorough", "smoke"}
        Which distance is detected: 0.05, 0.02, 0.01; "smoke" asks for exact distributions and
        boundaries alone, and samples no distribution.
    detect_tv : float, optional
        The distance itself.
    alpha : float
        The chance that a lossless sampler fails, over all statistical checks.
    seed : int
        Seed of all randomness; that of a check depends on the seed and its own id alone.
    trials : int, optional
        For each statistical check, instead of what `detect_tv` needs; too few of them are
        inconclusive. A situation with a suspicion draws up to four times as many.
    seconds : float, optional
        How long to draw, instead: as much as that time allows, whatever it shows. The report
        says what would be detected. With an executor it is the work of all workers. What
        else the checks do is not shortened.
    time_limit : float, optional
        How long the run may take in all. Drawing is shared as by `seconds`; a check that is late
        is interrupted and counts as not tried. The report lists these.
    timeout : float or None
        Seconds that a call may take; `patience` is another name for it.
    blocking : bool
        Skip checks that depend on a failed stage; and all sampling, if the exact distribution
        after some number of drafts is wrong and `only` is not given.
    exitfirst : bool
        Stop after the first failure.
    name, version : str, optional
        For the report.
    advance, on_start, on_result : callable
        Called with the number of trials, with checks and with results as they come.
    on_report : callable
        Called with the report after each check but the last; the remaining checks are
        not_run in it, and nothing is diagnosed yet.
    shapes : sequence of (vocabulary, lookahead, batch), optional
        Shapes at which it is judged, too, by the check ``strata/own-shape``.
    dtypes : sequence of str, optional
        What it is given there, instead of the dtype that it claims.
    strict : bool
        Whether exit code 2 is given to a run in which something optional could not be tried, such
        as calls without `draft_probs` where the sampler raises; else the verdict lists it.
    texts : str, optional
        Under the contract ``text``: a file that texts are written to as they come. A second run
        takes them from there, and asks the engine only for what is missing.
    executor : concurrent.futures.Executor, optional
        Runs the checks: processes that can import the implementation by its name, on this
        machine or others. The results do not depend on it, if what the implementation does
        depends on its arguments alone. `advance` is not called.
    **claims
        Fields of `Capabilities`, instead of those that the implementation carries.

    Returns
    -------
    Report

    Raises
    ------
    TypeError
        The implementation is not callable, or not as the contract calls it; or a claim is
        unknown; or it cannot be sent to the executor.
    ImportError
        The workers of the executor cannot import it.
    ValueError
        A parameter is out of range, an id of an expected failure does not exist, or the rule is
        none of the contract.
    Interrupted
        A KeyboardInterrupt with the report; what is left is not_run.

    Examples
    --------
    >>> from specref.adapters.reference import verify
    >>> report = check(verify, only=["smoke", "boundary"])
    >>> report.exit_code, report.counts["failed"]
    (0, 0)
    """
    from specref.conformance.options import CheckOptions, Listener, timeout_of
    from specref.conformance.scheduling import Workers
    from specref.conformance.suite import run_checks
    from specref.contracts.table import contract_named

    options = CheckOptions(
        contract=contract_named(contract),
        algorithm=algorithm,
        expected_failures=expected_failures or {},
        only=only,
        skip=skip,
        profile=profile,
        detect_tv=detect_tv,
        alpha=alpha,
        seed=seed,
        trials=trials,
        seconds=seconds,
        time_limit=time_limit,
        timeout=timeout_of(timeout, claims),
        blocking=blocking,
        exitfirst=exitfirst,
        name=name or "",
        version=version,
        claims=claims,
        shapes=tuple(Shape(*shape) for shape in shapes),
        dtypes=tuple(dtypes),
        strict=strict,
        texts=texts,
    )
    listener = Listener(advance, on_start, on_result, on_report)
    workers = None if executor is None else Workers(executor)
    return run_checks(implementation, options, listener, workers)
