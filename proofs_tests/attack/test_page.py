"""The page of the attack says what its record says, and some rows of the record come out again."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

from proofs_tests.helpers.attack.lossless import LOSSLESS, fresh
from proofs_tests.helpers.attack.lossy import LOSSY
from proofs_tests.helpers.attack.situations import distance
from proofs_tests.pages.attack.__main__ import FoundError
from proofs_tests.pages.attack.page import DISTANCE, REASONS, alarms, missed, page, table
from specref import check
from specref.conformance.status import Status

DOCS = Path(__file__).parents[2] / "docs"
RECORD = json.loads((DOCS / "attack.json").read_text())
ROWS = {row["sampler"]: row for row in RECORD["rows"]}
# Cheap ones, of different checks.
FOUND = ("floor_of_the_residual", "unsure_drafts_dropped", "clamped_log_ratio")


def test_page_is_that_of_the_record() -> None:
    assert (DOCS / "attack.md").read_text() == page(RECORD)


def test_a_changed_verdict_changes_the_page() -> None:
    rows = [dict(row) for row in RECORD["rows"]]
    rows[0].update(verdict="passed", failed=[])
    assert page({**RECORD, "rows": rows}) != page(RECORD)


def test_record_has_every_sampler_and_its_description() -> None:
    assert {*ROWS, *RECORD["not_judged"]} == {*LOSSLESS, *LOSSY}
    assert not {*ROWS} & {*RECORD["not_judged"]}
    assert len(LOSSLESS) >= 40
    assert len(LOSSY) >= 40
    for name, lossy in LOSSY.items():
        assert name not in ROWS or ROWS[name]["what"] == lossy.mistake


def test_what_is_not_judged_is_said() -> None:
    record = {**RECORD, "complete": False, "not_judged": ["memory_order"]}
    assert "Not judged so far: memory_order." in page(record)


def test_every_miss_and_every_alarm_has_a_reason_and_nothing_else() -> None:
    wrong = [*missed(RECORD["rows"]), *alarms(RECORD["rows"])]
    assert {row["sampler"] for row in wrong} == set(REASONS)


def test_table_fits_80_columns() -> None:
    assert max(len(line) for line in table(RECORD["rows"]).splitlines()) <= 80


@pytest.mark.parametrize("name", FOUND)
def test_row_comes_out_again(name: str) -> None:
    """The check that the record names fails again, alone."""
    (id, finding, _), *_ = ROWS[name]["failed"]
    (result,) = check(LOSSY[name].make(), seed=RECORD["seed"], only=[id]).results
    assert (result.status, str(result.finding)) == (Status.FAILED, finding)


@pytest.mark.parametrize("name", ["ratios_in_steps", "second_candidate"])
def test_lossless_samplers_pass_the_exact_checks(name: str) -> None:
    report = check(fresh(name), seed=RECORD["seed"], only=["boundary", "joint/probed"])
    assert report.exit_code == 0


def test_distance_comes_out_again() -> None:
    lossy = LOSSY["squeezed_single_row"]
    measured = distance(lossy.make, lossy.situation(), RECORD["seed"])
    assert measured.tv == pytest.approx(ROWS[lossy.name]["tv"], abs=1e-4)
    assert measured.tv - 4 * measured.error > DISTANCE


def test_a_lossless_sampler_is_not_measured_as_lossy() -> None:
    situation = LOSSY["squeezed_single_row"].situation()
    measured = distance(lambda: fresh("races_for_the_last_token"), situation, 0)
    assert measured.tv < 5 * measured.error < DISTANCE + 0.03


def test_found_stops_a_run() -> None:
    results = []

    def stop(result) -> None:
        results.append(result)
        raise FoundError

    with pytest.raises(FoundError):
        check(LOSSY["single_draft_bonus"].make(), only=["smoke"], on_result=stop)
    assert len(results) == 1
