"""`specref prove --everywhere` and `prove --all --everywhere`: verdicts, files, exit codes."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from proofs_tests.helpers.command import run
from proofs_tests.helpers.schemas import assert_fits
from specref.cli import proving as module

STANDARD = "specref.algorithms.standard:step"
LOSSY = "proofs_tests.cli.test_everywhere:lossy"


def lossy(target, drafter, context, lookahead, chance):
    """The drafter's token where it is nearly sure, and right elsewhere."""
    from fractions import Fraction

    q = drafter.next_token(context)
    model = drafter if q[0] > Fraction(99, 100) else target
    return (chance.draw(model.next_token(context), "draw"),)


def converting(target, drafter, context, lookahead, chance):
    if float(target.next_token(context)[0]) > 2:
        return (0,)
    return (chance.draw(target.next_token(context), "draw"),)


def in_numpy(target, drafter, context, lookahead, chance):
    if np.isnan(target.next_token(context)).any():
        return (0,)
    return (chance.draw(target.next_token(context), "draw"),)


def test_proved_is_0_and_says_for_what() -> None:
    result = run("prove", STANDARD, "--everywhere", "--tokens", "2")
    assert result.exit_code == 0
    assert "lossless for every p and q over 2 tokens" in result.output
    said = " ".join(result.output.split())
    assert "10 regions, 0 open, error of the identity tests <= 2^-126" in said
    assert "--tokens 3 --lookahead 2" in said


def test_lossy_is_1_with_a_witness_that_replays(tmp_path: Path) -> None:
    case, record = tmp_path / "rows.json", tmp_path / "record.json"
    files = "--save", str(case), "--json", str(record)
    result = run("prove", LOSSY, "--everywhere", "--tokens", "2", *files)
    assert result.exit_code == 1
    assert "q(a) > 99/100" in result.output
    # Tokens have the names that the conditions have.
    assert re.search(r"^  P\(a\) = [\d/]+, the target's is [\d/]+$", result.output, re.MULTILINE)
    saved = json.loads(case.read_text())
    (proof,) = json.loads(record.read_text())["proofs"]
    assert proof["verdict"] == "lossy"
    assert proof["witness"]["rows"] == saved["rows"]
    again = run("replay", str(case))
    assert again.exit_code == 1
    assert f"total variation {saved['total_variation']}" in again.output
    assert_fits("prove-everywhere", record.read_text())


@pytest.mark.deep
def test_workers_write_the_same_record(tmp_path: Path) -> None:
    records = []
    for workers in ("1", "2"):
        file = tmp_path / f"{workers}.json"
        run("prove", LOSSY, "--everywhere", "--tokens", "2", "--workers", workers, "--json", file)
        record = json.loads(file.read_text())
        record["proofs"][0].pop("seconds")
        records.append(record)
    assert records[0] == records[1]
    assert records[0]["proofs"][0]["verdict"] == "lossy"


def test_open_is_2() -> None:
    result = run("prove", STANDARD, "--everywhere", "--budget", "1e-9")
    assert result.exit_code == 2
    assert "9 open" in result.output
    assert "try --budget 60" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--everywhere", "--tokens", "1"], "tokens = 1: expected 2 to 10"),
        (["--everywhere", "--lookahead", "-1"], "lookahead = -1: expected an integer >= 0"),
        (["--everywhere", "--budget", "0"], "budget = 0.0: expected seconds > 0"),
        (["--tokens", "2"], "tokens: expected with --everywhere"),
        (["--everywhere", "--profile", "quick"], "profile: expected without --everywhere"),
        (["--pairs", "two"], "pairs = 'two': expected same or all without --everywhere"),
        (["--save", "x.json"], "save: expected with --everywhere"),
    ],
)
def test_misuse_is_one_line(arguments: list[str], said: str) -> None:
    done = run("prove", STANDARD, *arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_rule_that_converts_is_refused_with_its_line() -> None:
    result = run("prove", "proofs_tests.cli.test_everywhere:converting", "--everywhere")
    assert result.exit_code == 2
    line = converting.__code__.co_firstlineno + 1
    assert f"NotForAllError (line {line} of test_everywhere.py)" in result.output


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("rule", ["leaving", "endless"])
def test_what_does_not_return_is_2_with_its_line(rule: str) -> None:
    name = f"proofs_tests.proofs.everywhere.test_watch:{rule}"
    result = run("prove", name, "--everywhere", "--tokens", "2", "--budget", "1")
    assert result.exit_code == 2
    assert re.search(r"NotForAllError \(line \d+ of test_watch.py\): the rule ", result.output)


def test_a_call_that_needs_floats_is_refused_with_its_line_and_what_to_write() -> None:
    result = run("prove", "proofs_tests.cli.test_everywhere:in_numpy", "--everywhere")
    assert result.exit_code == 2
    line = in_numpy.__code__.co_firstlineno + 1
    assert f"TypeError (line {line} of test_everywhere.py)" in result.output
    assert "expected + - * /, whole powers and comparisons" in result.output


def test_without_z3_nothing_is_run(monkeypatch) -> None:
    monkeypatch.setattr(module, "is_installed", lambda: False)
    result = run("prove", STANDARD, "--everywhere")
    assert result.exit_code == 2
    assert "not_run: z3 is not installed; pip install z3-solver" in result.output
