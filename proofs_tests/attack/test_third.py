"""The page of the third attack says what its record says; what was missed at first is found."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

from proofs_tests.helpers.attack.third.situations import SITUATIONS
from proofs_tests.helpers.attack.third.tables import THIRD
from proofs_tests.pages.attack.page import alarms, missed
from proofs_tests.pages.attack.third import REASONS, SINCE, page
from specref import check
from specref.conformance.status import Status

DOCS = Path(__file__).parents[2] / "docs"
RECORD = json.loads((DOCS / "attack-third.json").read_text())
ROWS = {row["sampler"]: row for row in RECORD["rows"]}
LOSSLESS = [one.name for one in THIRD.values() if one.expected == "lossless"]


def test_page_is_that_of_the_record() -> None:
    assert (DOCS / "attack-third.md").read_text() == page(RECORD)


def test_record_has_every_sampler_and_its_description() -> None:
    assert {*ROWS, *RECORD["not_judged"]} == {*THIRD}
    assert {*SITUATIONS} == {*THIRD} - {*LOSSLESS}
    for name, row in ROWS.items():
        one = THIRD[name]
        known = (one.contract, one.expected, one.what, dict(one.options))
        assert (row["contract"], row["expected"], row["what"], row["options"]) == known


def test_every_miss_and_every_alarm_has_a_reason_and_nothing_else() -> None:
    wrong = {row["sampler"] for row in (*missed(RECORD["rows"]), *alarms(RECORD["rows"]))}
    found = {row["sampler"] for row in RECORD["rows"]} - wrong
    assert wrong | ({*SINCE} & found) == {*REASONS} - {*RECORD["not_judged"]}


@pytest.mark.strata
@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("name", SINCE)
def test_what_was_missed_at_first_is_found(name: str) -> None:
    one = THIRD[name]
    report = check(one.make(), contract=one.contract, only=[SINCE[name]], **one.options)
    (result,) = report.results
    assert result.status == Status.FAILED
    assert result.id == SINCE[name] == ROWS[name]["failed"][0][0]


def test_samplers_keep_nothing_of_those_before() -> None:
    one, other = (THIRD["graph_captured_while_greedy"].make() for _ in range(2))
    assert one.__globals__["_GRAPHS"] is not other.__globals__["_GRAPHS"]
