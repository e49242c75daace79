"""Rows of the scoreboard: which verdict a report gives, what its power was, and the page."""

from dataclasses import replace
from typing import Any

import pytest

from proofs_tests.helpers.engines import Speculating, engine
from proofs_tests.pages.scoreboard import board_page
from specref.conformance.public import check
from specref.contracts.table import ENGINE
from specref.contrib.engines.board_report import Row, exit_code_of, verdict_of
from specref.report.kit import kit_record


def result(id_: str, status: str, finding: str | None = None, **evidence: Any) -> dict[str, Any]:
    return {
        "id": id_, "status": status, "finding": finding, "message": f"m of {id_}",
        "evidence": evidence,
    }  # fmt: skip


def record(*results: dict[str, Any], **fields: Any) -> dict[str, Any]:
    told = {"version": "x 1", "finding": None, "exit_code": 0, "complete": True, "verdict": "v"}
    return {**told, **fields, "results": results}


TEXTS = "end-to-end/texts"
POWER = result("joint/wide", "passed", detectable_tv=0.1, trials=7)
ODD = result("joint/wide", "inconclusive", detectable_tv=0.8)


@pytest.mark.parametrize(
    ("report", "verdict", "evidence", "violated"),
    [
        (record(POWER), "passed", "1 checks passed, 7 trials", False),
        (
            record(result(TEXTS, "not_applicable"), result(f"{TEXTS}-same", "passed")),
            *("passed", f"1 checks passed, 0 trials; {TEXTS}-same: m of {TEXTS}-same", False),
        ),
        (
            record(POWER, result(TEXTS, "failed", "lossy law"), finding="lossy law", exit_code=1),
            *("LOSSY", f"{TEXTS}: m of {TEXTS}", True),
        ),
        (
            record(result(TEXTS, "expected_failure", "lossy law"), exit_code=0),
            *("LOSSY, known", f"{TEXTS}: m of {TEXTS}", False),
        ),
        (
            record(result("boundary/x", "expected_failure", "edge", per_million_tokens=0.0596)),
            *("passed", "0 checks passed, 0 trials; edge: boundary/x, 6e-02 per million tokens"),
            False,
        ),
        (
            record(result(TEXTS, "inconclusive", "not_exercised"), finding="not_exercised"),
            *("not_exercised", f"{TEXTS}: m of {TEXTS}", False),
        ),
        (
            record(ODD, exit_code=2, verdict="INCONCLUSIVE"),
            *("inconclusive", "joint/wide: m of joint/wide", False),
        ),
        (record(POWER, exit_code=2, verdict="stale"), "inconclusive", "stale", False),
        (record(POWER, complete=False), "interrupted", "1 checks passed, 7 trials", False),
    ],
)
def test_verdicts(report: dict[str, Any], verdict: str, evidence: str, violated: bool) -> None:
    found = verdict_of(report)
    assert (found["verdict"], found["evidence"]) == (verdict, evidence)
    assert found["violated"] == violated


@pytest.mark.parametrize(
    ("results", "power"),
    [
        ([POWER], "TV ≥ 0.1"),
        ([POWER, result("joint/deep", "passed", detectable_tv=0.3)], "TV ≥ 0.1 to 0.3, by check"),
        ([POWER, result(TEXTS, "passed", detectable_tv=0.3)], "TV ≥ 0.3"),
        ([POWER, result(TEXTS, "not_applicable")], "TV ≥ 0.1"),
        ([result(TEXTS, "inconclusive", detectable_tv=1.0)], "none"),
        (
            [result("joint/probed", "passed", total_variation=4e-8)],
            "exact distribution within 4e-08",
        ),
        ([result("smoke/answers", "passed")], ""),
    ],
)
def test_power(results: list[dict[str, Any]], power: str) -> None:
    assert verdict_of(record(*results))["power"] == power
    greedy = record(*results, capabilities={"greedy": True})
    assert verdict_of(greedy)["power"] == "greedy; no distribution is judged"


def test_what_did_not_end_has_no_power() -> None:
    """It would be that of another check than the one that was interrupted."""
    assert verdict_of(record(POWER), "time limit")["power"] == ""
    assert verdict_of(record(POWER, complete=False))["power"] == ""


def test_what_pip_did_not_add_is_shared_and_a_clone_has_no_size() -> None:
    packages = ("e 1.0", 3), ("e 1.0", 0), ("owner/name 0c1d", 0), ("", 0)
    rows = [Row("e", "e", "text", "passed", "", package=x, megabytes=n) for x, n in packages]
    (_, *lines), sizes = (
        board_page(rows).split("| engine, version | MB |"),
        ("3", "shared", "", ""),
    )
    table = [line for line in lines[0].splitlines() if "`e` | text | passed" in line]
    assert tuple(line.split("|")[2].strip() for line in table) == sizes


def test_paths_of_a_machine_are_left_out() -> None:
    found = {**POWER, "status": "failed", "finding": "broken contract", "id": "smoke/x"}
    found["message"] = "at /a/b/lib/python3.11/site-packages/it/file.py:3"
    told = verdict_of(record(found, finding="broken contract", exit_code=1))
    assert told["evidence"] == "smoke/x: at it/file.py:3"


def test_a_planted_engine_is_lossy_on_the_page() -> None:
    lossy = engine(Speculating(rest=lambda p, q: p))
    report = check(lossy, contract=ENGINE, detect_tv=0.2)
    row = Row("planted", "planted", "text", **verdict_of(kit_record(report)))
    assert (row.verdict, exit_code_of([row])) == ("LOSSY", 1)
    assert "evidence 10^" in row.evidence
    page = board_page([row, Row("b|c", "b|c", "text", "not_run", "no such")])
    assert "| planted |  | `planted` | text | LOSSY |  |  |" in page
    slow = [replace(row, seconds=90.0), replace(row, path="fast", seconds=2.0)]
    page_of_two = board_page(slow, sections={"planted": "it"})
    assert "| `planted` | text | [LOSSY](trophies.md#it) |  | 1.5 |" in page_of_two
    assert "| `fast` | text | LOSSY |  | <0.1 |" in page_of_two
    assert "| `b¦c` | no such |  |  |" in page
    assert "2 paths of 2 engines: 1 LOSSY, 1 not_run." in page
