"""``specref check --contract tree``: verdicts, exit codes, files.

Campaigns have fixed seeds, alpha 1e-9 and detect_tv = 0.3; the planted bug is at 0.26.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from proofs_tests.helpers.command import run
from proofs_tests.helpers.schemas import assert_fits
from proofs_tests.helpers.trees_page import CODE

LOSSY = CODE.replace("rest[lost] / rest[lost].sum(axis=1, keepdims=True)", "p[lost]")
QUICK = ["--detect-tv", "0.3"]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: Any) -> Path:
    monkeypatch.chdir(tmp_path)
    assert LOSSY != CODE
    Path("right.py").write_text(CODE)
    Path("wrong.py").write_text(LOSSY)
    return tmp_path


@pytest.mark.deep
def test_a_lossless_sampler_passes(files: Path) -> None:
    declared = ("--contract", "tree", "--algorithm", "topdown")
    result = run("check", "right.py:verify_tree", *declared, *QUICK, "--json", "report.json")
    assert result.exit_code == 0, result.output
    assert "rule topdown" in " ".join(result.output.split())
    assert json.loads(Path("report.json").read_text())["contract"] == "tree"
    assert_fits("check", Path("report.json").read_text())


@pytest.mark.deep
def test_a_lossy_one_fails_and_is_not_taken_for_a_bug_near_it(files: Path) -> None:
    """It never updates p, where `siblings-last-from-p` forgets that it did."""
    arguments = ("--contract", "tree", *QUICK, "--only", "joint/siblings", "--save", "failures")
    result = run("check", "wrong.py:verify_tree", *arguments)
    assert result.exit_code == 1, result.output
    output = " ".join(result.output.split())
    assert "Unlike anything known" in output
    assert "siblings-last-from-p (off by 0." in output
    again = run("replay", "failures/joint-siblings-seed-0.json")
    assert again.exit_code == 1, again.output


def test_a_registered_name_brings_its_contract_and_rule() -> None:
    result = run("check", "reference-verify-tree-traversal", "--only", "boundary/certain")
    assert result.exit_code == 0, result.output
    assert "rule traversal" in " ".join(result.output.split())


def test_a_rule_without_trees_is_misuse(files: Path) -> None:
    result = run("check", "right.py:verify_tree", "--contract", "tree", "--algorithm", "block")
    assert result.exit_code == 2
    assert "rule = 'block': the contract tree has one of ('topdown', 'traversal')" in " ".join(
        result.output.split()
    )
