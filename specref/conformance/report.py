"""The report of a run of checks: results, verdict, exit code, and how to repeat it."""

import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from specref import __version__
from specref.conformance.checks import CHECKS
from specref.conformance.diagnosis import Diagnosis
from specref.conformance.differences import as_number
from specref.conformance.options import CheckOptions
from specref.conformance.status import LOSSY, CheckResult, Finding, Stage, Status, counted, grouped
from specref.conformance.summary import (
    ASSERTED,
    FAILURE,
    PASS,
    Summary,
    few,
    in_short,
    summarize,
    wrapped,
)
from specref.contracts.capabilities import Capabilities
from specref.contracts.contract import Contract

RUNNING = "interrupted while it ran"
FEW = 8
"""Of what was not tried, so many are in the verdict."""
VERDICTS: Mapping[Finding, str] = {
    Finding.DEPENDENCE: "LOSSY: blocks are not independent ({})",
    Finding.LAW: "LOSSY: the distribution is not the target's ({})",
    Finding.CONTRACT: "BROKEN CONTRACT ({}); no check found a wrong distribution",
    Finding.EDGE: "EDGE of a random number: something impossible at a rate that matters ({})",
    Finding.ACCEPTANCE: "acceptance does not follow the declared rule ({}); no check found a "
    "wrong distribution",
    Finding.PLAIN: "THE BASELINE IS WRONG: without speculation its distribution is not the one "
    "given ({}); speculation is not judged",
    Finding.UNANSWERED: "NOT ANSWERED in time ({}); no check found a wrong distribution",
    Finding.NOT_EXERCISED: "NOT_EXERCISED: no draft is known to have been accepted ({}), so "
    "nothing was learned of speculation",
}
OF_LAWS = (Stage.JOINT, Stage.STRATA, Stage.ITERATIONS, Stage.END_TO_END)
ALSO_DRAWN = (Stage.ACCEPTANCE, Stage.INDEPENDENCE)
UNDRAFTED = "BROKEN CONTRACT ({}): a block goes on after a token that was not drafted there"


@dataclass(frozen=True, repr=False)
class Report:
    """The results of a run of checks, and how to repeat it.

    Attributes
    ----------
    options : CheckOptions
        The options of the run.
    capabilities : Capabilities
        What the implementation claims, or is claimed to.
    results : tuple of CheckResult
        In order of stages.
    warnings : tuple of str
        Branches that were taken too rarely to learn much about them.
    diagnosis : Diagnosis or None
        The known bugs that may explain a failure.
    complete : bool
        False while `check` runs, and where it was interrupted.
    told : tuple of str
        What it is given by the names, annotations and defaults of its parameters.
    passed_on : tuple of str
        What each of its parameters is given.
    """

    options: CheckOptions
    capabilities: Capabilities
    results: tuple[CheckResult, ...]
    warnings: tuple[str, ...] = ()
    diagnosis: Diagnosis | None = None
    seconds: float = 0.0
    complete: bool = True
    python: str = field(default_factory=platform.python_version)
    told: tuple[str, ...] = ()
    passed_on: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.options.name

    @property
    def version(self) -> str:
        return self.options.version

    @property
    def contract(self) -> Contract:
        return self.options.contract

    @property
    def seed(self) -> int:
        return self.options.seed

    @property
    def alpha(self) -> float:
        """The chance that a lossless sampler fails, over all statistical checks."""
        return self.options.alpha

    @property
    def detect_tv(self) -> float:
        return self.options.tv

    @property
    def partial(self) -> bool:
        """Whether some checks were left out, by `only`."""
        return len(self.results) < len(CHECKS)

    @property
    def counts(self) -> dict[str, int]:
        """The number of results with each of the seven statuses."""
        return counted(self.results)

    @property
    def failures(self) -> tuple[CheckResult, ...]:
        """The checks that failed without being expected to."""
        return tuple(result for result in self.results if result.status == Status.FAILED)

    @property
    def tracebacks(self) -> Mapping[str, tuple[str, ...]]:
        """{ids of checks: the traceback of what the implementation raised there, in the first}."""

        def place(lines: Sequence[str]) -> tuple[str, ...]:
            frames = (line for line in lines if line.startswith('  File "'))
            return (*frames, lines[-1].split(":")[0])

        found = grouped((place(one.traceback), one) for one in self.results if one.traceback)
        return {", ".join(x.id for x in each): each[0].traceback for each in found.values()}

    @property
    def seen(self) -> Mapping[str, str]:
        """{id: what was seen}: of failures that say the same the later ones name the first."""
        told: dict[str, str] = {}
        first: dict[str, str] = {}
        for one in self.results:
            words = f"{one.finding}: {one.message}" if one.finding else one.message
            same = first.setdefault(words, one.id) if one.status == Status.FAILED else one.id
            told[one.id] = words if same == one.id else f"as {same}"
        return told

    @property
    def lossy(self) -> bool:
        """Whether a failure shows a wrong distribution, of one block or of several together."""
        return self.finding in LOSSY

    @property
    def lossy_as_expected(self) -> bool:
        """Whether an expected failure shows that, and the run passed."""
        known = [one for one in self.results if one.status == Status.EXPECTED_FAILURE]
        return self.passed and self.complete and any(one.lossy for one in known)

    @property
    def wrong(self) -> tuple[CheckResult, ...]:
        """The failures, and the checks that were not answered in time or saw no speculation."""
        open_ = {Finding.UNANSWERED, Finding.NOT_EXERCISED}
        return tuple(r for r in self.results if r.status == Status.FAILED or r.finding in open_)

    @property
    def strata(self) -> tuple[CheckResult, ...]:
        """The checks of the contract's situations: what was tested, and what not."""
        ids = {one.id for one in CHECKS if one.stage == Stage.STRATA and one.is_for(self.contract)}
        return tuple(result for result in self.results if result.id in ids)

    @property
    def other_contracts(self) -> int:
        """How many of the checks belong to other contracts."""
        return len(self.of_other_contracts)

    @property
    def of_other_contracts(self) -> frozenset[str]:
        """The ids of those."""
        return frozenset(one.id for one in self._not_applicable(own=False))

    @property
    def switched_off(self) -> Mapping[str, tuple[str, ...]]:
        """{reason: ids}: the checks of this contract that do not apply to what is claimed."""
        return grouped((one.message, one.id) for one in self._not_applicable(own=True))

    def _not_applicable(self, *, own: bool) -> list[CheckResult]:
        ids = {one.id for one in CHECKS if one.is_for(self.contract)}
        left_out = (one for one in self.results if one.status == Status.NOT_APPLICABLE)
        return [one for one in left_out if (one.id in ids) == own]

    @property
    def worst(self) -> CheckResult | None:
        """The first failure that compares two distributions; `differences.told` shows where."""
        failed, off = (Status.FAILED, Status.EXPECTED_FAILURE), (Finding.LAW, Finding.PLAIN)
        compared = [r for r in self.results if r.status in failed and "difference" in r.evidence]
        # Of blocks that depend on each other the law cannot be told.
        told = (result for result in compared if result.finding in off)
        return min(told, key=lambda result: result.status != Status.FAILED, default=None)

    @property
    def worst_exactly(self) -> CheckResult | None:
        """The first failure whose distribution was computed, if that of `worst` was sampled."""
        if self.worst is None or self.worst.evidence["difference"]["trials"] is None:
            return None
        failed = (one for one in self.failures if one.finding == Finding.LAW)
        compared = ((one, one.evidence.get("difference")) for one in failed)
        return next((one for one, law in compared if law and law["trials"] is None), None)

    @property
    def blocked(self) -> Mapping[str, tuple[str, ...]]:
        """{why: ids} of the checks that were not run for a reason that several share."""
        not_run = (one for one in self.results if one.status == Status.NOT_RUN)
        found = grouped((one.message, one.id) for one in not_run)
        return {why: ids for why, ids in found.items() if len(ids) > 1}

    @property
    def not_tried(self) -> Mapping[str, tuple[str, ...]]:
        """{what was not tried, and why: ids of the checks that asked for it}."""
        return grouped((said, one.id) for one in self.results for said in one.not_tried)

    @property
    def growth(self) -> list[str]:
        """How the evidence of `worst` grew; without that, of the first failure with looks."""
        looked = [self.worst] if self.worst else [r for r in self.failures if r.growth][:1]
        return [f"{one.id}: {one.growth}" for one in looked if one.growth]

    @property
    def never(self) -> str:
        """What was never seen in the campaigns over single iterations: an accepted draft, a bonus.

        Empty if both were, or nothing was drawn. An accepted EOS may be the only token of a block.
        """
        # Campaigns over texts have no lengths, and what they count as a bonus is none.
        single = [r.evidence for r in self.results if r.evidence.get("lengths")]
        lengths = sum((Counter(one["lengths"]) for one in single), Counter[int]())
        bonus = sum(one["hits"]["bonus"] for one in single)
        if not lengths or bonus:
            return ""
        what = "ended in a bonus token"
        if max(lengths) == 1:
            what = "had a second token: no draft is known to have been accepted"
        return f"none of {lengths.total():,} blocks with drafts {what}"

    @property
    def finding(self) -> Finding | None:
        """The most serious finding, if any; not counting edges too rare to be a failure."""
        found = {result.finding for result in self.wrong}
        return next((finding for finding in Finding if finding in found), None)

    @property
    def exit_code(self) -> int:
        """0: not distinguishable from lossless at the declared power, 1: violation, 2: undecided.

        Checks that do not apply do not matter; outdated expected failures, and checks that
        were not run, not answered or not decided, leave the run undecided. So does what could
        not be tried, with the option `strict`; else the verdict lists it.
        """
        if self.failures:
            return 1
        seen = {result.status for result in self.results}
        open_ = {Status.INCONCLUSIVE, Status.NOT_RUN, Status.UNEXPECTED_PASS}
        undecided = any(one.status in open_ and not one.not_tried for one in self.results)
        undecided |= self.options.strict and bool(self.not_tried)
        undecided |= self.law_not_reached
        return 2 if undecided or not seen & {Status.PASSED, Status.EXPECTED_FAILURE} else 0

    @property
    def law_not_reached(self) -> bool:
        """Whether a time limit left no check that compares distributions its time."""
        of_laws = [r for r in self.results if r.stage in OF_LAWS]
        # Where none of them was asked for, what else is drawn.
        asked = of_laws or [r for r in self.results if r.stage in ALSO_DRAWN]
        late = self.options.time_limit is not None and any(r.not_tried for r in asked)
        return late and not any(r.status == Status.PASSED for r in of_laws)

    @property
    def passed(self) -> bool:
        """Whether the exit code is 0; also the truth value of a report."""
        return self.exit_code == 0

    def __bool__(self) -> bool:
        return self.passed

    def raise_for_status(self) -> None:
        """Do nothing if the exit code is 0.

        Raises
        ------
        NotPassedError
            It is not 0; the message is the report, the cause what the implementation raised.

        Examples
        --------
        >>> from specref.conformance.public import check
        >>> from specref.examples.lossy import verify
        >>> check(verify, one_hot=False, only=["joint/wide"]).raise_for_status()
        Traceback (most recent call last):
        specref.conformance.report.NotPassedError: ...
        """
        __tracebackhide__ = True  # pytest shows where it is asked for, and the report
        if not self.passed:
            errors = (result.error for result in self.results)
            raise NotPassedError(self) from next(filter(None, errors), None)

    @property
    def verdict(self) -> str:
        """The verdict in one line."""
        return "; ".join(filter(None, (self._verdict(), self.never, self._untried())))

    @property
    def untried_by_reason(self) -> Mapping[str, tuple[str, ...]]:
        """{why: what was not tried}."""
        parts = (said.rpartition(" (") for said in self.not_tried)
        return grouped((why, situation) for situation, _, why in parts)

    def _untried(self) -> str:
        """What was not tried, and why; empty if there is nothing."""
        told = (f"{few(some, FEW, '; ')} ({why}" for why, some in self.untried_by_reason.items())
        return f"not tried: {', '.join(told)}" if self.not_tried else ""

    def _verdict(self) -> str:
        if self.finding is not None:
            first = next(result for result in self.wrong if result.finding == self.finding)
            if first.evidence.get("undrafted"):
                return UNDRAFTED.format(first.id)
            return VERDICTS[self.finding].format(first.id)
        if not self.complete:
            running = [r.id for r in self.results if r.message == RUNNING]
            why = f"interrupted in {', '.join(running)}" if running else "not finished"
            return f"INCONCLUSIVE: {why}"
        stale = [r.id for r in self.results if r.status == Status.UNEXPECTED_PASS]
        if stale:
            return f"expected failures that passed, to be taken off the list: {', '.join(stale)}"
        if self.exit_code:
            return f"INCONCLUSIVE: {self._undecided()}"
        known = self.counts[Status.EXPECTED_FAILURE]
        if self.lossy_as_expected:
            return f"LOSSY as expected: {known} known failures, and nothing else ({self.power})"
        but = f", but for {known} expected failures" if known else ""
        rare = [r for r in self.results if r.finding == Finding.EDGE and r.status == Status.PASSED]
        edges = f"; edges of random numbers in {', '.join(r.id for r in rare)}" if rare else ""
        return f"no difference from lossless{self._asked()}{but} ({self.power}){edges}"

    def _undecided(self) -> str:
        """Which checks have no verdict, or that none applies."""
        for status in (Status.INCONCLUSIVE, Status.NOT_RUN):
            left = (one for one in self.results if one.status == status and not one.not_tried)
            ids = [result.id for result in left]
            if ids:
                return f"{status} {few(ids, 3)}"
        if self.law_not_reached:
            limit = f"{self.options.time_limit:g} s"
            return f"no distribution was compared within {limit}: give it more time"
        if self.not_tried:
            return "strict: not all was tried" if self.options.strict else "nothing was tried"
        said = f"no check that was asked for applies under contract {self.contract}"
        return ": ".join(filter(None, [said, *list(self.switched_off)[:1]]))

    def _asked(self) -> str:
        """In how many checks, if some were left out."""
        if not self.partial:
            return ""
        own = len(self.results) - self.other_contracts
        asked = "the check that was" if own == 1 else f"the {own} checks that were"
        asked += " asked for"
        applied = sum(result.status != Status.NOT_APPLICABLE for result in self.results)
        if applied == own:
            return f" in {asked}"
        return f" in {applied} of {asked}, the others do not apply"

    @property
    def power(self) -> str:
        """What would be detected, and where. Nothing else was tested."""
        if self.capabilities.greedy:
            return (
                "greedy=true: blocks and texts were compared with argmax, or with those of "
                "non-speculative decoding, and no distribution was judged"
            )
        parts = list(filter(None, (self.power_on_fixtures, self._power_in_strata())))
        usual = [result.evidence.get("usual_tv") for result in self.results]
        if not parts and any(usual):
            parts = [f"a TV of about {max(filter(None, usual)):.2g} is usually found"]
        if not parts and self.lossy_as_expected:
            return "no other check says what it would have found"
        exact = [one for one in self.results if one.exact and one.status == Status.PASSED]
        if not parts and exact:
            most = max(float(as_number(one.evidence["total_variation"])) for one in exact)
            many = f"{len(exact)} exact distribution{'s' * (len(exact) != 1)}"
            return f"{many}, TV at most {most:.1g}; nothing was sampled"
        if not parts:
            return "nothing was sampled, or not enough to say what would be detected"
        return f"{'; '.join(parts)}; false positives {self.alpha:g}"

    @property
    def has_power(self) -> bool:
        """Whether `power` says of any difference that it would be detected.

        Never of a run that was interrupted, failed or is undecided.
        """
        return self.detected_tv is not None or bool(self._shifts())

    @property
    def detected_tv(self) -> float | None:
        """The total variation that would be detected by campaigns, if that is known.

        What some of them would have found only at a larger distance is in `power_on_fixtures`.
        """
        found = self._detectable().values()
        if not found:
            return None
        limited = self.options.seconds is not None or min(found) > self.detect_tv
        return max(found) if limited else self.detect_tv

    @property
    def power_on_fixtures(self) -> str:
        """What campaigns would have found; empty if `detected_tv` is None."""
        tv = self.detected_tv
        if tv is None:
            return ""
        coarse = {id_: x for id_, x in self._detectable().items() if x > tv}
        least = f"{max(coarse.values(), default=0):.2g}"
        but = f"; only TV ≥ {least} by {', '.join(coarse)}" if coarse else ""
        told = f"{tv:g}" if tv == self.detect_tv else f"{tv:.2g}"
        return f"TV ≥ {told} would be detected {self.contract.tried_on}{but}"

    def _detectable(self) -> dict[str, float]:
        """{id: the total variation that would have been found}, in a run that passed."""
        if self.exit_code or not self.complete or self.capabilities.greedy:
            return {}
        held = (one for one in self.results if one.status == Status.PASSED)
        known = {one.id: one.evidence.get("detectable_tv") or 1.0 for one in held}
        return {id_: tv for id_, tv in known.items() if tv < 1}

    def _power_in_strata(self) -> str:
        found = self._shifts()
        if not found:
            return ""
        low, high = f"{min(found):.2g}", f"{max(found):.2g}"
        shifts = f"of {low}" if low == high else f"of {low} to {high}"
        return f"in {len(found)} situations shifts {shifts}, as listed"

    def _shifts(self) -> list[float]:
        if self.exit_code or not self.complete or self.capabilities.greedy:
            return []
        told = (one.evidence.get("detectable_shift") for one in self.results)
        return [shift for shift in told if shift is not None]

    @property
    def heading(self) -> tuple[str, ...]:
        """What was judged, and how: everything needed to repeat the run."""
        claims, rule = self.capabilities, self.capabilities.rule
        name = f"{self.name} {self.version}".rstrip()
        how = f"{claims.dtype}, {claims.device} · seed {self.seed}"
        said = f"specref {__version__} · {name} · contract {self.contract} · {how} · " + (
            f"rule {rule}" if rule else "no rule declared"
        )
        if not self.passed_on:
            return tuple(wrapped(said))
        return (*wrapped(said), *wrapped(f"your parameters: {', '.join(self.passed_on)}"))

    @property
    def summary(self) -> Summary:
        """The verdict, how sure it is, where it fails, why, and what to do next."""
        return summarize(self)

    @property
    def answer(self) -> list[str]:
        """The lines of the summary, of which so few are shown that the verdict stays on a screen.

        With `heading` they are 25 of a pass, and 60 of a failure, at most.
        """
        most = FAILURE if self.exit_code else PASS
        return self.summary.fitted(most - len(self.heading) - 1).lines(self.seconds)

    def __repr__(self) -> str:
        """The verdict, where and why, in one line: what `assert check(…)` shows."""
        return f"<{in_short(self, ASSERTED)}>"

    def __str__(self) -> str:
        return "\n".join([*self.heading, "", *self.answer])


class NotPassedError(AssertionError):
    """A report whose exit code is not 0, raised by `Report.raise_for_status`."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during `check`; carries the report of the results so far.

    Its cause is the KeyboardInterrupt.
    """

    def __init__(self, report: Report) -> None:
        super().__init__()
        self.report = report
