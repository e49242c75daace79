"""The pytest plugin, by runs of pytest on small test files.

Alpha: a lossless sampler fails such a run with a probability of at most 1e-9, over all checks.
Power: any law at TV 0.05 is found 999 times in 1,000; `lossy` keeps drafts 1 / 0.7 times too
often, which is further away on every fixture. Seeds are fixed, so outcomes are too.
"""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import scipy.special
import scipy.stats

import specref
import specref.conformance.suite
from specref.pytest_plugin import judging

pytest_plugins = ["pytester"]
# A run in this process forgets what it imported; these modules can be loaded only once.
LOADED = (scipy.special, scipy.stats, specref.conformance.suite, judging)

INSTALLED = any(one.value == "specref.pytest_plugin" for one in entry_points(group="pytest11"))
LOAD = () if INSTALLED else ("-p", "specref.pytest_plugin")
SAMPLERS = """
import pytest
import specref
from specref.adapters.reference import step, verify

def lossless(p, q, drafts, *, rng):
    return verify(p, q, drafts, rng=rng)

def lossy(p, q, drafts, *, rng):
    return verify(p, None if q is None else 0.7 * q, drafts, rng=rng)

def broken(p, q, drafts, *, rng):
    return None
"""
TEST = """
@specref.parametrize({arguments})
def test_it(check):
    check()
"""
ENTRY = '[[expected]]\nid = "{id}"\nreason = "known to be lenient"\n'
LIST = ("-rA", "-p", "no:cacheprovider", "-p", "no:hypothesispytest")


@pytest.fixture
def run(pytester: pytest.Pytester):
    """Run pytest on a file with one decorated test, or with the given tests."""

    def run(arguments: str, *options: str, tests: str = TEST):
        pytester.makepyfile(test_file=SAMPLERS + tests.format(arguments=arguments))
        return pytester.runpytest_inprocess(*LOAD, *LIST, *options)

    return run


@pytest.fixture
def unexplained(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure of the plugin says neither which bug it resembles nor why: that takes seconds."""
    monkeypatch.setattr(judging, "diagnosed", lambda judge, results: None)
    monkeypatch.setattr(judging, "explanation", lambda result, judge: "")


def outcomes(result: pytest.RunResult) -> dict[str, str]:
    """{id of a check: outcome} from the short summary."""
    lines = re.findall(r"^(PASSED|FAILED|XFAIL) \S+\[(\S+)\]", result.stdout.str(), re.MULTILINE)
    skipped = re.findall(r"^SKIPPED .*?(\w+ \([^:]+):", result.stdout.str(), re.MULTILINE)
    return {id_: outcome for outcome, id_ in lines} | {
        reason.partition(" (")[2]: reason.partition(" (")[0] for reason in skipped
    }


def test_lossless_sampler_passes_and_what_it_does_not_claim_is_skipped(run) -> None:
    result = run('lossless, only=["boundary/equal", "boundary/tiny", "joint/wide"]')
    result.assert_outcomes(passed=2, skipped=1)
    assert outcomes(result) == {
        "boundary/equal-rows": "not_applicable",
        "boundary/tiny": "PASSED",
        "joint/wide": "PASSED",
    }
    result.stdout.fnmatch_lines(
        ["specref: seed 0, profile quick, alpha 1e-09, set to detect TV >= 0.05"]
    )


@pytest.mark.strata
def test_items_are_the_checks_of_the_contract_and_no_others(run) -> None:
    from specref.conformance.checks import CHECKS
    from specref.contracts.table import STEP

    result = run('step, contract="step"', "--collect-only", "-q")
    ids = re.findall(r"test_it\[(.*)\]", result.stdout.str())
    assert ids == [check.id for check in CHECKS if STEP in check.contracts]
    assert "smoke/calls" in ids
    assert "smoke/answers" not in ids


@pytest.mark.usefixtures("undiagnosed", "few_blocks")
def test_lossy_sampler_fails_and_its_snippet_repeats_the_failure(
    run, pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str], monkeypatch
) -> None:
    monkeypatch.setattr(judging, "diagnosed", lambda judge, results: "Likely cause:\na bug")
    result = run('lossy, algorithm="standard", only=["joint/wide"]', "--specref-seed", "3")
    result.assert_outcomes(failed=1)
    failure = [line[1:].strip() for line in result.outlines if line.startswith("E  ")]
    message = failure[0].removeprefix("AssertionError: lossy law: joint/wide: ")
    assert message.startswith("the distribution is not the target's: TV at least about 0.")
    assert failure[1] == "lossy, contract verify, seed 3, TV >= 0.05 is detected, alpha 1e-09"
    assert re.match(r"joint/wide, .*: furthest off, in [\d,]+ blocks drawn there$", failure[2])
    assert re.match(r"block \(.*\): expected 0\.\d+, observed 0\.\d+ \(", failure[3])
    assert {"Likely cause:", "a bug"} <= {*failure}
    again = failure[failure.index("again:") + 1]
    expected = "pytest 'test_file.py::test_it[joint/wide]' --specref-seed 3"
    assert again == f"{expected} --specref-profile quick"
    snippet = failure[failure.index("or:") + 1 :]
    monkeypatch.syspath_prepend(pytester.path)
    capsys.readouterr()
    exec("\n".join(snippet), {})
    assert message in " ".join(capsys.readouterr().out.split())


def test_k_selects_by_id(run) -> None:
    only = 'lossless, only=["boundary", "smoke/answers"]'
    result = run(only, "-k", "boundary/tiny or boundary/certain")
    assert set(outcomes(result)) == {"boundary/tiny", "boundary/certain"}
    assert set(outcomes(run(only, "-k", "smoke"))) == {"smoke/answers"}


@pytest.mark.deep
def test_seed_changes_the_run(run) -> None:
    def found(seed: str) -> str:
        result = run('lossy, only=["joint/wide"]', f"--specref-seed={seed}")
        result.stdout.fnmatch_lines([f"specref: seed {seed}, *"])
        return next(line for line in result.outlines if "lossy law: joint/wide: " in line)

    assert found("1") == found("1") != found("2")


@pytest.mark.usefixtures("unexplained")
def test_options_may_stand_in_the_configuration_file(run, pytester: pytest.Pytester) -> None:
    pytester.makefile(".toml", known=ENTRY.format(id="joint/wide"))
    pytester.makeini(
        "[pytest]\nspecref_seed = 5\nspecref_profile = thorough\nspecref_expected = known.toml"
    )
    result = run('lossy, only=["joint/wide"]')
    result.assert_outcomes(xfailed=1)
    result.stdout.fnmatch_lines(
        ["specref: seed 5, profile thorough, * TV >= 0.01, 1 expected failures (*known.toml)"]
    )
    result = run('lossy, only=["joint/wide"]', "--specref-profile", "quick", "--collect-only")
    result.stdout.fnmatch_lines(["specref: seed 5, profile quick, *"])


class TestExpectedFailures:
    def run(self, run, pytester: pytest.Pytester, toml: str, arguments: str, *options: str):
        pytester.makefile(".toml", known=toml)
        return run(arguments, "--specref-expected", "known.toml", *options)

    @pytest.mark.usefixtures("unexplained")
    def test_failing_is_expected(self, run, pytester: pytest.Pytester) -> None:
        toml = ENTRY.format(id="joint/wide") + 'url = "https://example.org/1"\nuntil = 2999-12-31'
        result = self.run(run, pytester, toml, 'lossy, only=["joint/wide"]')
        result.assert_outcomes(xfailed=1)
        result.stdout.fnmatch_lines(
            ["XFAIL *[[]joint/wide] - joint/wide: known to be lenient "
             "(https://example.org/1; until 2999-12-31); the distribution is not the target's: *"]
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("id_", "line"),
        [
            ("boundary/tiny", "[[]XPASS(strict)[]] boundary/tiny, * known to be lenient*"),
            ("joint/exact", "*'joint/exact' is not for the contract verify*"),
            ("boundary/equal-rows", "*But it is not_applicable: *"),
        ],
    )
    def test_what_does_not_fail_is_told(self, run, pytester, id_: str, line: str) -> None:
        only = 'lossless, only=["boundary/tiny", "boundary/equal-rows"]'
        result = self.run(run, pytester, ENTRY.format(id=id_), only)
        tiny = "failed" if id_ == "boundary/tiny" else "passed"
        result.assert_outcomes(**{tiny: 1, "skipped": 1})
        result.stdout.fnmatch_lines([line])

    @pytest.mark.usefixtures("unexplained")
    def test_runxfail_expects_nothing(self, run, pytester: pytest.Pytester) -> None:
        toml = ENTRY.format(id="boundary/tiny") + ENTRY.format(id="joint/wide")
        only = 'lossy, only=["boundary/tiny", "joint/wide"]'
        result = self.run(run, pytester, toml, only, "--runxfail")
        result.assert_outcomes(passed=1, failed=1)

    @pytest.mark.deep(one_in=2)
    @pytest.mark.usefixtures("unexplained")
    @pytest.mark.parametrize("sampler", ["lossy", "lossless"])
    def test_expired_entry_fails(self, run, pytester: pytest.Pytester, sampler: str) -> None:
        toml = ENTRY.format(id="joint/wide") + "until = 2001-01-01"
        result = self.run(run, pytester, toml, f'{sampler}, only=["joint/wide"]')
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["expired: joint/wide, * (until 2001-01-01). It is *"])

    def test_stale_id_ends_the_run_with_a_suggestion(self, run, pytester) -> None:
        result = self.run(run, pytester, ENTRY.format(id="joint/wied"), "lossless")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(
            ["ERROR: specref: *known.toml, entry 1: *'joint/wied': did you mean 'joint/wide'[?]"]
        )

    @pytest.mark.deep
    @pytest.mark.usefixtures("unexplained")
    def test_entries_may_be_for_one_implementation(self, run, pytester) -> None:
        toml = ENTRY.format(id="joint/wide") + 'implementation = "lossy"'
        only = 'only=["joint/wide"]'
        self.run(run, pytester, toml, f"lossy, {only}").assert_outcomes(xfailed=1)
        self.run(run, pytester, toml, f"lossless, {only}").assert_outcomes(passed=1)
        renamed = f'lossy, {only}, name="mine"'
        self.run(run, pytester, toml, renamed).assert_outcomes(failed=1)

    def test_of_a_decorator_come_before_those_of_the_file(self, run, pytester) -> None:
        known = 'lossy, only=["joint/wide"], expected_failures={"joint/wide": "says the test"}'
        toml = ENTRY.format(id="joint/wide") + "until = 2001-01-01"
        result = self.run(run, pytester, toml, known)
        result.assert_outcomes(xfailed=1)
        result.stdout.fnmatch_lines(["XFAIL * says the test; *"])

    def test_inconclusive_is_not_the_failure_that_is_expected(self, run, pytester) -> None:
        toml = ENTRY.format(id="joint/wide")
        result = self.run(run, pytester, toml, 'lossless, only=["joint/wide"], trials=60')
        result.assert_outcomes(failed=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--specref-seed", "-1"), "--specref-seed = '-1': expected a whole number"),
        (("--specref-seed", "x"), "--specref-seed = 'x': expected a whole number"),
        (("--specref-profile", "quik"), "did you mean 'quick'?"),
        (("--specref-expected", "none.toml"), "none.toml"),
    ],
)
def test_wrong_options_end_the_run(run, options: tuple[str, ...], message: str) -> None:
    result = run("lossless", "=".join(options))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str()


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("lossless, seed=3", "seed is an option of the run, --specref-seed"),
        ('lossless, contract="trees"', "contract = 'trees': expected one of"),
        ("3", "implementation = 3: expected a function"),
        ('lossless, only=["jiont"]', "did you mean 'joint"),
        ('lossless, expected_failures=dict(x="y")', "has no check 'x'"),
        ("lossless, raged=True", "raged"),
    ],
)
def test_wrong_arguments_are_errors_of_collection(run, arguments: str, message: str) -> None:
    result = run(arguments)
    result.assert_outcomes(errors=1)
    assert message in result.stdout.str()


def test_inconclusive_fails_unless_told_otherwise(run, pytester: pytest.Pytester) -> None:
    arguments = 'lossless, only=["joint/wide"], trials=60'
    result = run(arguments)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["INCONCLUSIVE joint/wide: *"])
    pytester.makeini("[pytest]\nspecref_inconclusive = skip")
    assert outcomes(run(arguments)) == {"joint/wide": "inconclusive"}


def test_failed_smoke_check_leaves_the_rest_out_if_it_is_run(run) -> None:
    arguments = 'broken, only=["smoke/answers", "smoke/batch", "boundary/tiny"]'
    result = run(arguments)
    result.assert_outcomes(failed=2, skipped=1)
    assert "not_run (boundary/tiny: blocked by smoke/answers)" in result.stdout.str()
    run(arguments, "-k", "boundary").assert_outcomes(failed=1)
    known = arguments + ', expected_failures={"smoke/answers": "a", "smoke/batch-of-one": "b"}'
    run(known).assert_outcomes(xfailed=2, failed=1)


def test_test_that_does_not_call_its_check_fails(run) -> None:
    tests = TEST.replace("check()\n", "check\n")
    result = run('lossless, only=["boundary/tiny"]', tests=tests)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["nothing was checked: the test did not call check()"])


@pytest.mark.deep
def test_results_are_not_shared_over_other_parameters(run) -> None:
    """The sampler is lossy in mode "bad" alone: a shared campaign would hide it."""
    tests = """
MODE = []

def moody(p, q, drafts, *, rng):
    return (lossy if MODE == ["bad"] else lossless)(p, q, drafts, rng=rng)

@pytest.mark.parametrize("mode", ["good", "bad"])
@specref.parametrize(moody, only=["joint/wide", "independence/rows-wide"])
def test_it(check, mode):
    MODE[:] = [mode]
    check()
"""
    found = outcomes(run("", tests=tests))
    assert {id_: outcome for id_, outcome in found.items() if id_.startswith("joint")} == {
        "joint/wide-good": "PASSED",
        "joint/wide-bad": "FAILED",
    }


def test_branches_that_were_hardly_taken_are_warned_of(run) -> None:
    """Drawing one token from the target is lossless, and says nothing of bonus tokens."""
    tests = """
def one_token(p, q, drafts, *, rng):
    blocks = [[rng.choice(len(rows[0]), p=rows[0])] + [-1] * drafts.shape[1] for rows in p]
    return blocks, [1] * len(p)
""" + TEST.format(arguments='one_token, only=["joint/wide"], detect_tv=0.3, ragged=False')
    result = run("", tests=tests)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*blocks/wide: 0 of * blocks ended in a bonus token*"])


def test_several_implementations_of_one_test_have_their_names_in_the_ids(run) -> None:
    stacked = '@specref.parametrize(lossless, only=["boundary/tiny"]){name}'
    tests = "\n{arguments}" + TEST.replace("{arguments}", 'lossy, only=["boundary/tiny"]')
    result = run(stacked.format(name=""), tests=tests)
    assert set(outcomes(result)) == {"lossless-boundary/tiny", "lossy-boundary/tiny"}
    result = run('@specref.parametrize(lossless, name="lossy")', tests=tests)
    result.assert_outcomes(errors=1)
    assert "two implementations are called 'lossy'" in result.stdout.str()


@pytest.mark.deep
def test_xdist_changes_nothing(run, pytester: pytest.Pytester) -> None:
    """Campaigns are shared in one process and drawn anew in another: from the same randomness."""
    pytester.makefile(".toml", known=ENTRY.format(id="joint/wide"))
    tests = """
@specref.parametrize(broken, only=["smoke/answers", "boundary/tiny", "boundary/certain"])
def test_broken(check):
    check()

@specref.parametrize(lossy, only=["joint/wide", "joint/deep", "independence/rows-wide"])
def test_lossy(check):
    check()
"""
    options = ("--specref-expected", "known.toml", "--specref-seed", "2")
    one, two = (run("", *options, *more, tests=tests) for more in ((), ("-n", "2")))
    assert one.parseoutcomes() == two.parseoutcomes()
    assert outcomes(one) == outcomes(two)
    assert len(outcomes(one)) == 6
    assert outcomes(one)["joint/deep"] == "FAILED"
    assert reasons(one) == reasons(two)


def reasons(result: pytest.RunResult) -> set[str]:
    return {line for line in result.outlines if line.startswith(("E  ", "XFAIL", "SKIPPED"))}


def test_pytest_is_needed_by_the_plugin_alone() -> None:
    program = "import sys, specref.cli; sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_plugin_is_declared() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    (name,) = project["project"]["entry-points"]["pytest11"].values()
    assert name == "specref.pytest_plugin"
    assert not any("pytest" in one for one in project["project"]["dependencies"])
    assert specref.parametrize.__module__ == "specref.pytest_plugin.parametrize"


def test_a_run_without_samplers_does_not_load_the_kit() -> None:
    """The plugin is loaded by every pytest run where specref is installed."""
    heavy = {"scipy", "torch", "specref.conformance"}
    script = f"import sys, specref.pytest_plugin; print({heavy} & set(sys.modules))"
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "set()", run.stderr
