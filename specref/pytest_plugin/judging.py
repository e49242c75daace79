"""The hooks of runs with tests of `specref.parametrize`, and the state that their items share."""

import shlex
import warnings
from collections import defaultdict
from collections.abc import Generator, Hashable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, get_args

import pytest

from specref.conformance.case_files import Expectation, expectation_for, read_expectations
from specref.conformance.checks import CHECKS, Check
from specref.conformance.differences import told
from specref.conformance.explaining import explanation
from specref.conformance.judge import Judge
from specref.conformance.options import DETECT_TV, Profile
from specref.conformance.status import CheckResult, Finding, Outcome, Stage, Status
from specref.conformance.suite import diagnosed, vacuous
from specref.conformance.summary import found_at
from specref.pytest_plugin.parametrize import MARK, Judged
from specref.statistics.campaign.levels import ALPHA
from specref.suggestions import did_you_mean
from specref.tracebacks import in_its_own_frames

ARGUMENT = "check"
INCONCLUSIVE = ("fail", "skip")


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
        return tuple(vacuous(self._alone(check)))

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
        expected = self.settings.expected(question.subject, question.check.id)
        fails = expected is not None and not expected.expired(self.settings.today)
        if question.check.stage == Stage.SMOKE and not fails:
            self.gates[key].append(question.check)

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


RUN = pytest.StashKey[Run]()


def _key(item: pytest.Function, question: Question) -> Hashable:
    others = sorted(pair for pair in item.callspec.indices.items() if pair[0] != ARGUMENT)
    parent = item.parent.nodeid if item.parent else ""
    return parent, item.originalname, question.subject, tuple(others)


def _question(item: pytest.Item) -> Question | None:
    value = getattr(getattr(item, "callspec", None), "params", {}).get(ARGUMENT)
    return value if isinstance(value, Question) else None


@dataclass(repr=False)
class Call:
    """The argument `check` of a test, which has to call it."""

    check: Check
    session: Session
    settings: Settings
    nodeid: str
    called: bool = False

    def __repr__(self) -> str:
        return repr(Question(self.session.subject, self.check))

    def __call__(self) -> CheckResult:
        """Run the check.

        Raises
        ------
        AssertionError
            It failed.
        """
        __tracebackhide__ = True
        self.called = True
        result = self.session.result(self.check)
        expected = self.settings.expected(self.session.subject, self.check.id)
        if expected is not None:
            self._compare(result, expected)
        return self._judge(result)

    def _compare(self, result: CheckResult, expected: Expectation) -> None:
        __tracebackhide__ = True
        entry = f"{result.id}, expected to fail: {expected}"
        if expected.expired(self.settings.today):
            found = f"It is {result.status} now. {result.message}".strip()
            pytest.fail(f"expired: {entry}. {found}", pytrace=False)
        if result.status == Status.FAILED:
            pytest.xfail(f"{result.id}: {expected}; {result.message}")
        if result.status == Status.PASSED:
            pytest.fail(f"[XPASS(strict)] {entry}. Remove what expects it", pytrace=False)
        if result.status == Status.NOT_APPLICABLE:
            warnings.warn(f"{entry}. But it is not_applicable: {result.message}", stacklevel=4)

    def _judge(self, result: CheckResult) -> CheckResult:
        __tracebackhide__ = True
        if result.status == Status.FAILED:
            failure = self.session.failure(self.check, self.nodeid)
            raise AssertionError(failure) from in_its_own_frames(result.error)
        if result.finding == Finding.UNANSWERED:
            pytest.fail(self.session.failure(self.check, self.nodeid), pytrace=False)
        if result.status == Status.INCONCLUSIVE and self.settings.inconclusive == "fail":
            pytest.fail(f"INCONCLUSIVE {result.id}: {result.message}", pytrace=False)
        if result.status != Status.PASSED:
            pytest.skip(f"{result.status} ({result.id}: {result.message})")
        if result.finding == Finding.EDGE:
            warnings.warn(f"{result.id}: {result.message}", stacklevel=3)
        for warning in self.session.warnings(self.check) if result.stage == Stage.JOINT else ():
            warnings.warn(warning, stacklevel=3)
        return result


def pytest_configure(config: pytest.Config) -> None:
    """Read the options; a wrong one ends the run."""
    try:
        config.stash[RUN] = Run(_settings(config))
    except (OSError, ValueError) as error:
        raise pytest.UsageError(f"specref: {error}") from None


def _settings(config: pytest.Config) -> Settings:
    seed = _value(config, "seed") or "0"
    if not seed.isdecimal():
        raise ValueError(f"--specref-seed = {seed!r}: expected a whole number, 0 or more")
    file = _file(config)
    return Settings(
        seed=int(seed),
        profile=_one_of("--specref-profile", _value(config, "profile"), get_args(Profile)),
        expectations=read_expectations(file) if file else (),
        file=str(file or ""),
        inconclusive=_one_of(
            "specref_inconclusive", config.getini("specref_inconclusive"), INCONCLUSIVE
        ),
        run_expected=config.getoption("runxfail"),
        today=date.today(),
    )


def _value(config: pytest.Config, name: str) -> str:
    given = config.getoption(f"specref_{name}")
    return str(config.getini(f"specref_{name}") if given is None else given)


def _one_of(option: str, value: str, known: tuple[str, ...]) -> Any:
    if value and value not in known:
        hint = did_you_mean(value, known)
        raise ValueError(f"{option} = {value!r}: expected one of {', '.join(known)}{hint}")
    return value or known[0]


def _file(config: pytest.Config) -> Path | None:
    """The file of expected failures, relative to the directory of the call or of the ini file."""
    given = config.getoption("specref_expected")
    if given is not None:
        return config.invocation_params.dir / str(given)
    home = config.inipath.parent if config.inipath else config.rootpath
    named = config.getini("specref_expected")
    return home / named if named else None


def pytest_report_collectionfinish(config: pytest.Config) -> str:
    """Show seed and profile: with them, every failure can be repeated."""
    settings = config.stash[RUN].settings
    power = f"alpha {ALPHA:g}, set to detect TV >= {DETECT_TV[settings.profile]:g}"
    count = len(settings.expectations)
    expected = f", {count} expected failures ({settings.file})" if settings.file else ""
    return f"specref: seed {settings.seed}, profile {settings.profile}, {power}{expected}"


def make_items(metafunc: pytest.Metafunc) -> None:
    """Make an item of each check that the implementations of a test are asked.

    Two implementations of one name end the collection of the test as a failure.
    """
    marks = [*metafunc.definition.iter_markers(MARK)][::-1]
    subjects = [mark.args[0] for mark in marks]
    run = metafunc.config.stash[RUN]
    names = [subject.name for subject in subjects]
    for name in names:
        if names.count(name) > 1:
            pytest.fail(f"two implementations are called {name!r}: give a name=", pytrace=False)
    run.subjects += subjects
    parameters = [
        pytest.param(Question(one, check), id=f"{one.name}-" * (len(names) > 1) + check.id)
        for one in subjects
        for check in one.prepare(run.settings.seed, run.settings.profile)[1]
    ]
    metafunc.parametrize(ARGUMENT, parameters)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note which items will run, and warn of expected failures that apply to none."""
    run = session.config.stash[RUN]
    for item in session.items:
        question = _question(item)
        if question is not None and isinstance(item, pytest.Function):
            run.note(_key(item, question), question)
    for text in run.inapplicable():
        warnings.warn(f"{run.settings.file}: {text}", stacklevel=1)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """Pass the check to the test, and fail if it is not called."""
    question = _question(pyfuncitem)
    if question is None:
        return (yield)
    run = pyfuncitem.config.stash[RUN]
    session = run.session(_key(pyfuncitem, question), question)
    call = Call(question.check, session, run.settings, pyfuncitem.nodeid)
    pyfuncitem.funcargs[ARGUMENT] = call
    done = yield
    if not call.called:
        pytest.fail("nothing was checked: the test did not call check()", pytrace=False)
    return done
