"""Files of expected failures, and of failing cases that are saved."""

import json
import re
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from proofs_tests.helpers.bugs.verifiers import BUGS
from specref.conformance.case_files import (
    FORMAT,
    NEEDED,
    Expectation,
    expectation_for,
    failing_cases,
    load_case,
    load_expected,
    read_expectations,
)
from specref.conformance.public import check
from specref.contracts.capabilities import Capabilities

ENTRY = '[[expected]]\nid = "joint/wide"\nreason = "known to be lenient"\n'
DEEP = ENTRY.replace("wide", "deep")
DAY = date(2030, 5, 1)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "known.toml"


def test_all_keys_are_read(file: Path) -> None:
    keys = 'url = "http://example.org/1"\nuntil = 2030-05-01\nimplementation = "mine"\n'
    file.write_text(ENTRY + keys + DEEP)
    wide, deep = read_expectations(file)
    reason = "known to be lenient"
    assert wide == Expectation("joint/wide", reason, "http://example.org/1", DAY, "mine")
    assert deep == Expectation("joint/deep", reason)
    assert str(wide) == f"{reason} (http://example.org/1; until 2030-05-01)"
    assert str(deep) == reason
    file.write_text("")
    assert read_expectations(file) == ()


WRONG = {
    "[expected]\nid = 'joint/wide'": ": expected tables [[expected]], and nothing else",
    "[[expect]]\nid = 'joint/wide'": ": expected tables [[expected]], and nothing else",
    f"{ENTRY}[more]\n": ": expected tables [[expected]], and nothing else",
    "expected = [1]": ", entry 1: 1: expected a table",
    "[[expected]]\nid = 'joint/wide'": ", entry 1: has no 'reason'",
    f"{ENTRY}[[expected]]\nreason = 'x'": ", entry 2: has no 'id'",
    "[[expected]]\nid = 'joint/wide'\nreason = ' '": (
        ", entry 1: reason = ' ': expected a text that is not empty"
    ),
    "[[expected]]\nid = 3\nreason = 'x'": ", entry 1: id = 3: expected a text that is not empty",
    f"{ENTRY}untill = 2030-01-01": (", entry 1: unknown key 'untill': did you mean 'until'?"),
    f"{ENTRY}zzz = 1": (
        ", entry 1: unknown key 'zzz': expected one of ('id', 'reason', 'url', 'until', "
        "'implementation')"
    ),
    f"{ENTRY}until = 'soon'": (", entry 1: until = 'soon': expected a day, such as 2030-12-31"),
    f"{ENTRY}until = 2030-01-01T00:00:00": (
        ", entry 1: until = datetime.datetime(2030, 1, 1, 0, 0): expected a day, such as "
        "2030-12-31"
    ),
    f"{ENTRY}url = 'example.org'": (
        ", entry 1: url = 'example.org': expected an address that starts with https://"
    ),
    f"{ENTRY}url = ''": ", entry 1: url = '': expected a text that is not empty",
    ENTRY + DEEP + ENTRY: ", entry 3: 'joint/wide' is there twice",
    ENTRY.replace("wide", "wied"): (
        ", entry 1: expected_failures has no check 'joint/wied': did you mean 'joint/wide'?"
    ),
    ENTRY.replace("joint/wide", "x"): ", entry 1: expected_failures has no check 'x'",
}


@pytest.mark.parametrize(("toml", "message"), WRONG.items())
def test_wrong_files_name_the_entry(file: Path, toml: str, message: str) -> None:
    file.write_text(toml)
    with pytest.raises(ValueError, match=f"^{re.escape(f'{file}{message}')}$"):
        read_expectations(file)


@pytest.mark.parametrize("content", [b"[[expected", b"\xff"])
def test_what_is_no_toml_is_refused(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(ValueError, match=f"^{re.escape(str(file))} is not TOML: "):
        read_expectations(file)


def test_one_check_may_be_expected_to_fail_for_several_implementations(file: Path) -> None:
    mine, theirs = (f'{ENTRY}implementation = "{name}"\n' for name in ("mine", "theirs"))
    file.write_text(ENTRY + mine + theirs)
    whole, one, other = entries = read_expectations(file)
    for order in (entries, entries[::-1]):
        assert expectation_for(order, "joint/wide", "module:mine") is one
        assert expectation_for(order, "joint/wide", "theirs") is other
        assert expectation_for(order, "joint/wide", "mine:yours") is whole
        assert expectation_for(order, "joint/deep", "mine") is None


def test_expected_failures_for_the_command_line(file: Path) -> None:
    file.write_text(f'{ENTRY}{DEEP}implementation = "verify"\nuntil = "2030-05-01"\n')
    reason = "known to be lenient"
    everything = {"joint/wide": reason, "joint/deep": f"{reason} (until 2030-05-01)"}
    assert load_expected(file, "samplers:verify", DAY) == everything
    assert load_expected(file, today=DAY) == everything
    assert load_expected(file, "samplers:other", date(2031, 1, 1)) == {"joint/wide": reason}
    message = f"{file}: 'joint/deep' expired on 2030-05-01: {reason}"
    for name in ("verify", None):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            load_expected(file, name, date(2030, 5, 2))


def test_an_entry_expires_today_unless_another_day_is_named(file: Path) -> None:
    file.write_text(f"{ENTRY}until = 2001-01-01")
    with pytest.raises(ValueError, match="'joint/wide' expired on 2001-01-01"):
        load_expected(file)
    assert load_expected(file, today=date(2001, 1, 1))


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
def case_file(tmp_path: Path) -> Path:
    return tmp_path / "case.json"


def test_failures_are_saved_and_read_again(case_file: Path) -> None:
    report = check(
        BUGS["lenient"](),
        only=["joint/wide"], seed=3, detect_tv=0.1, trials=5_000, rule="standard",
    )  # fmt: skip
    (failure,) = report.wrong
    ((name, case),) = failing_cases(report, "module:verify", 7.5).items()
    assert name == "joint-wide-seed-3.json"
    case_file.write_text(json.dumps(case))
    assert load_case(str(case_file)) == {
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


WRONG_CASES: dict[str, tuple[Any, str]] = {
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


@pytest.mark.parametrize(("case", "message"), WRONG_CASES.values(), ids=list(WRONG_CASES))
def test_what_is_no_case_is_refused(case_file: Path, case: Any, message: str) -> None:
    case_file.write_text(json.dumps(case))
    with pytest.raises(ValueError, match=f"^{re.escape(f'{case_file} {message}')}$"):
        load_case(str(case_file))


@pytest.mark.parametrize("content", [b"{", b"\xff"])
def test_what_is_no_json_is_refused(case_file: Path, content: bytes) -> None:
    case_file.write_bytes(content)
    with pytest.raises(ValueError, match=f"^{re.escape(str(case_file))} is not JSON: "):
        load_case(str(case_file))
