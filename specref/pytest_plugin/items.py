"""State that the items of one pytest process share; does not import pytest."""

import shlex
from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date

from specref.conformance.case_files import Expectation, expectation_for
from specref.conformance.checks import CHECKS, Check
from specref.conformance.differences import told
from specref.conformance.explaining import explanation
from specref.conformance.judge import Judge
from specref.conformance.options import Profile
from specref.conformance.status import CheckResult, Finding, Outcome, Stage, Status
from specref.conformance.suite import diagnosed, vacuous
from specref.conformance.summary import found_at
from specref.pytest_plugin.parametrize import Judged


@dataclass(frozen=True)
class Settings:
    """The options of the command line and the configuration file."""

    seed: int
    profile: Profile
    expectations: tuple[Expectation, ...]
    file: str
    inconclusive: str
    run_expected: bool
    today: date

    def expected(self, subject: Judged, id_: str) -> Expectation | None:
        """The expected failure of a check; that of the test takes precedence over the file."""
        if self.run_expected:
            return None
        own = expectation_for(subject.expected, id_, subject.name)
        return own or expectation_for(self.expectations, id_, subject.name)

    def expected_now(self, subject: Judged, id_: str) -> bool:
        """Whether a check is expected to fail today."""
        found = self.expected(subject, id_)
        return found is not None and not found.expired(self.today)


@dataclass(frozen=True)
class Question:
    """The parameter of an item."""

    subject: Judged
    check: Check

    def __repr__(self) -> str:
        return f"<{self.check.id} of {self.subject.name}>"


@dataclass
class Session:
    """One implementation in one run, and the results of its checks so far.

    * `gates`: Checks of stage smoke whose failure skips the other checks. Whether a check is
      skipped depends on them alone, never on what ran before it in the same process.
    """

    subject: Judged
    seed: int
    profile: Profile
    judge: Judge
    gates: tuple[Check, ...] = ()
    results: dict[str, CheckResult] = field(default_factory=dict)

    def result(self, check: Check) -> CheckResult:
        """The result of a check; cached."""
        if check.id not in self.results:
            self.results[check.id] = self._blocked(check) or check.run(self.judge)
        return self.results[check.id]

    def _blocked(self, check: Check) -> CheckResult | None:
        for gate in self.gates if check.stage != Stage.SMOKE else ():
            found = self.result(gate)
            if found.status == Status.FAILED or found.finding == Finding.UNANSWERED:
                return check.result(Outcome(Status.NOT_RUN, f"blocked by {gate.id}"))
        return None

    def warnings(self, check: Check) -> tuple[str, ...]:
        """Warnings of branches that a check has rarely taken."""
        return vacuous(self._alone(check))

    def failure(self, check: Check, nodeid: str) -> str:
        """Message: what failed, candidate explanations, and how to repeat it."""
        result, judge = self.result(check), self.judge
        power = f"TV >= {judge.detect_tv:g} is detected, alpha {judge.options.alpha:g}"
        again = f"--specref-seed {self.seed} --specref-profile {self.profile}"
        lines = [
            f"{result.finding}: {check.id}: {result.message}",
            *found_at(result),
            f"{self.subject.name}, contract {judge.contract}, seed {self.seed}, {power}",
            *(result.traceback if result.error is None else ()),  # else it is chained
            *(told(check.id, result.evidence["difference"]) if _compared(result) else ()),
            *filter(None, [judge.contract.rows_said if _compared(result) else ""]),
            *filter(None, [explanation(result, judge)]),
            *str(diagnosed(self._alone(check), [result]) or "").splitlines(),
            "again:",
            f"    pytest {shlex.quote(nodeid)} {again}",
            "or:",
        ]
        call = self.subject.call(check.id, self.seed, self.profile)
        return "\n".join([*lines, *(f"    {line}" for line in call.splitlines())])

    def _alone(self, check: Check) -> Judge:
        key = f"blocks/{check.id.rpartition('/')[2]}"
        return replace(self.judge, memo={k: v for k, v in self.judge.memo.items() if k == key})


def _compared(result: CheckResult) -> bool:
    """Whether it says where two laws differ; of blocks that depend on each other none can."""
    return result.finding in (Finding.LAW, Finding.PLAIN) and "difference" in result.evidence


@dataclass
class Run:
    """The state that the items of one pytest process share.

    Items share results under a key: only those of one test function with the same other
    parameters do, since a fixture may change what the implementation does.
    """

    settings: Settings
    subjects: list[Judged] = field(default_factory=list)
    gates: defaultdict[Hashable, list[Check]] = field(default_factory=lambda: defaultdict(list))
    sessions: dict[Hashable, Session] = field(default_factory=dict)

    def note(self, key: Hashable, question: Question) -> None:
        """Note an item that will run; those of stage smoke may skip others."""
        subject, check = question.subject, question.check
        if check.stage == Stage.SMOKE and not self.settings.expected_now(subject, check.id):
            self.gates[key].append(check)

    def session(self, key: Hashable, question: Question) -> Session:
        """The session in which an item is judged."""
        subject = question.subject
        if key not in self.sessions:
            seed, profile = self.settings.seed, self.settings.profile
            judge, _ = subject.prepare(seed, profile)
            gates = tuple(self.gates[key])
            self.sessions[key] = Session(subject, seed, profile, judge, gates)
        return self.sessions[key]

    def inapplicable(self) -> Iterator[str]:
        """Messages about expected failures of checks that apply to no test."""
        checks = {check.id: check for check in CHECKS}
        for entry in self.settings.expectations:
            whom = [one.options.contract for one in self.subjects if entry.applies_to(one.name)]
            if whom and not any(map(checks[entry.id].is_for, whom)):
                names = " or ".join(sorted(set(map(str, whom))))
                yield f"{entry.id!r} is not for the contract {names}"
