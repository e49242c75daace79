"""The hooks of runs with tests of `specref.parametrize`: one item for each check."""

import warnings
from collections.abc import Generator, Hashable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, get_args

import pytest

from specref.conformance.case_files import Expectation, read_expectations
from specref.conformance.checks import Check
from specref.conformance.options import DETECT_TV, Profile
from specref.conformance.status import CheckResult, Finding, Stage, Status
from specref.pytest_plugin.items import Question, Run, Session, Settings
from specref.pytest_plugin.parametrize import MARK
from specref.statistics.campaign.levels import ALPHA
from specref.suggestions import did_you_mean
from specref.tracebacks import in_its_own_frames

ARGUMENT = "check"
INCONCLUSIVE = ("fail", "skip")


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
