"""Saved cases: everything that runs a failure again; a file that is none is refused."""

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from proofs_tests.helpers.bugs.verifiers import BUGS
from specref.conformance.public import check
from specref.conformance.saved import FORMAT, NEEDED, failing_cases, load_case
from specref.contracts.capabilities import Capabilities

pytestmark = pytest.mark.usefixtures("undiagnosed")

CASE = {
    "format": FORMAT,
    "target": "module:verify",
    "contract": "verify",
    "check": "joint/wide",
    "claims": {"rule": "standard"},
    "seed": 0,
    "alpha": 1e-9,
    "detect_tv": 0.05,
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "case.json"


def test_failures_are_saved_and_read_again(file: Path) -> None:
    only = ["smoke", "joint/wide"]
    report = check(
        BUGS["lenient"](), only=only, seed=3, detect_tv=0.1, trials=5_000, rule="standard"
    )
    (failure,) = report.wrong
    ((name, case),) = failing_cases(report, "module:verify", 7.5).items()
    assert name == "joint-wide-seed-3.json"
    file.write_text(json.dumps(case))
    assert load_case(str(file)) == {
        "format": FORMAT,
        "target": "module:verify",
        "folder": str(Path.cwd()),
        "contract": "verify",
        "check": "joint/wide",
        "claims": asdict(Capabilities(rule="standard")),
        "seed": 3,
        "alpha": report.alpha,
        "detect_tv": 0.1,
        "trials": 5_000,
        "patience": 7.5,
        "message": failure.message,
        "evidence": json.loads(json.dumps(dict(failure.evidence))),
    }


def test_what_is_needed_is_enough(file: Path) -> None:
    assert tuple(CASE) == NEEDED
    file.write_text(json.dumps(CASE))
    assert load_case(str(file)) == CASE


WRONG: dict[str, tuple[Any, str]] = {
    "no object": ([CASE], f"is no saved case: expected the format '{FORMAT}'"),
    "format": (
        {**CASE, "format": "specref case 0"},
        f"is no saved case: expected the format '{FORMAT}'",
    ),
    **{
        name: ({key: value for key, value in CASE.items() if key != name}, f"has no '{name}'")
        for name in NEEDED[1:]
    },
    "claims that are unknown": (
        {**CASE, "claims": {"rule": "standard", "speed": 1, "colour": 2}},
        "has unknown claims: ['colour', 'speed']",
    ),
}


@pytest.mark.parametrize(("case", "message"), WRONG.values(), ids=list(WRONG))
def test_what_is_no_case_is_refused(file: Path, case: Any, message: str) -> None:
    file.write_text(json.dumps(case))
    with pytest.raises(ValueError, match=f"^{re.escape(f'{file} {message}')}$"):
        load_case(str(file))


@pytest.mark.parametrize("content", [b"{", b"\xff"])
def test_what_is_no_json_is_refused(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(ValueError, match=f"^{re.escape(str(file))} is not JSON: "):
        load_case(str(file))
