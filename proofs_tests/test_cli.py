"""The command line as a user meets it: exit codes, one-line errors, JSON."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from specref import verification
from specref.algorithms import ALGORITHMS, standard
from specref.cli import main
from specref.conformance.implementations import transformers

RIGHT = "from specref.algorithms.standard import step\n"
WRONG = """
from specref.algorithms.standard import draft, verify

def step(target, drafter, context, lookahead, chance):
    drafts = draft(drafter, context, lookahead, chance)
    return verify(target, context, drafts[:-1], chance)[: 1 + bool(drafts[-1].token)]
"""
ALL_ZERO = """
import numpy as np

def step(target, drafter, context, lookahead, chance):
    return (chance.draw(np.zeros(3), "residual"),)
"""
EXITS = """
def step(target, drafter, context, lookahead, chance):
    raise SystemExit(0)
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def assert_one_line_error(result: Result, *parts: str) -> None:
    assert result.exit_code == 2
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    for part in parts:
        assert part in lines[0]


@pytest.fixture
def few_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(verification.TRIALS, "quick", 2_000)
    monkeypatch.setitem(verification.EPS, "quick", 0.25)


def test_help_has_examples() -> None:
    for command in main.commands:
        assert "Examples:" in run(command, "--help").output


@pytest.mark.usefixtures("few_trials")
def test_verify_holds_and_writes_json(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    result = run("verify", "--json", str(file), "--seed", "3")
    assert result.exit_code == 0, result.output
    record = json.loads(file.read_text())
    assert record["ok"] is True
    assert record["seed"] == 3
    assert [report["algorithm"] for report in record["reports"]] == list(ALGORITHMS)
    assert all(report["paths"] > 0 for report in record["reports"])
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.usefixtures("few_trials")
def test_verify_json_to_stdout_is_json_alone() -> None:
    assert json.loads(run("verify", "--json", "-").stdout)["profile"] == "quick"


@pytest.mark.usefixtures("few_trials")
def test_verify_fails_on_a_planted_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    def first_draft_unverified(target, drafter, context, lookahead, chance):
        drafts = standard.draft(drafter, context, lookahead, chance)
        seen = (*context, drafts[0].token)
        return (drafts[0].token, *standard.verify(target, seen, drafts[1:], chance))

    planted = {**ALGORITHMS, "standard": first_draft_unverified}
    monkeypatch.setattr(verification, "ALGORITHMS", planted)
    result = run("verify")
    assert result.exit_code == 1
    assert "lossy" in result.output


@pytest.mark.usefixtures("few_trials")
def test_verify_fails_on_a_planted_bug_of_the_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    """The samples are of the wrong algorithm; every exact check still holds."""
    right = verification.tabulate

    def lossless_but_other(algorithm, *arguments):
        return right("slem" if algorithm == "standard" else algorithm, *arguments)

    monkeypatch.setattr(verification, "tabulate", lossless_but_other)
    result = run("verify")
    assert result.exit_code == 1
    assert "standard: Monte Carlo" in result.output
    assert "1 checks failed" in result.output


@pytest.mark.parametrize("code", ["raise SystemExit(0)", EXITS])
def test_prove_is_not_left_by_an_exit(tmp_path: Path, code: str) -> None:
    rule = tmp_path / "rule.py"
    rule.write_text(code)
    assert_one_line_error(run("prove", f"{rule}:step"), "SystemExit")


def test_json_is_readable_by_others(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    assert run("plan", "--n", "1000", "--json", str(file)).exit_code == 0
    assert file.stat().st_mode & 0o444 == 0o444
    assert list(tmp_path.iterdir()) == [file]


def test_prove_accepts_a_file_and_a_module(tmp_path: Path) -> None:
    rule = tmp_path / "rule.py"
    rule.write_text(RIGHT)
    for name in (f"{rule}:step", "specref.algorithms.standard:step"):
        result = run("prove", name)
        assert result.exit_code == 0, result.output
        assert "LOSSLESS" in result.output


def test_prove_refutes_the_printed_algorithm_5() -> None:
    result = run("prove", "specref.zoo.printed:algorithm_5")
    assert result.exit_code == 1
    for part in ("biased coin", "lookahead 1", "3/8", "p = (1/2, 1/2), q = (3/4, 1/4)"):
        assert part in result.output


def test_prove_shows_a_trace_and_writes_json(tmp_path: Path) -> None:
    rule, file = tmp_path / "rule.py", tmp_path / "report.json"
    rule.write_text(WRONG)
    result = run("prove", f"{rule}:step", "--json", str(file))
    assert result.exit_code == 1
    assert "draft[0]" in result.output
    refuted = json.loads(file.read_text())["refuted"]
    assert refuted
    assert refuted[0]["trace"]


def test_prove_reports_a_rule_that_draws_from_nothing(tmp_path: Path) -> None:
    rule = tmp_path / "rule.py"
    rule.write_text(ALL_ZERO)
    assert_one_line_error(run("prove", f"{rule}:step"), "residual", "all zero")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("no_such_module:step", "no_such_module"),
        ("./no_such_file.py:step", "no_such_file.py"),
        ("specref.algorithms.standard:nothing", "no function 'nothing'"),
        ("specref.algorithms.standard", "MODULE:FUNCTION"),
    ],
)
def test_prove_misuse(name: str, part: str) -> None:
    assert_one_line_error(run("prove", name), part)


def test_prove_module_that_raises(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0")
    assert_one_line_error(run("prove", f"{broken}:step"), "ZeroDivisionError")


def test_check_without_the_package_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(seed: int) -> None:
        raise transformers.NotInstalledError("transformers is not installed")

    monkeypatch.setattr(transformers, "load", absent)
    result = run("check", "transformers")
    assert result.exit_code == 2
    assert "not_run (transformers is not installed)" in result.stderr


@pytest.mark.parametrize("option", [("--alpha", "2"), ("--trials", "3")])
def test_check_misuse(option: tuple[str, str]) -> None:
    pytest.importorskip("transformers")
    assert_one_line_error(run("check", "transformers", *option), "expected")


def test_unwritable_json(tmp_path: Path) -> None:
    result = run("prove", "specref.algorithms.standard:step", "--json", str(tmp_path / "no" / "f"))
    assert_one_line_error(result, "no")
