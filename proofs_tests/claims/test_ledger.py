"""The claims ledger: rows and tests belong to each other, and the page is written from it."""

import copy
import re
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proofs_tests.pages import claims

TESTS = Path(__file__).parents[1]
LEDGER = tomllib.loads(claims.LEDGER.read_text(encoding="utf-8"))
# Test files of which every test is of a row, and one test of another file that says so.
OF_ROWS = [f"claims/test_{name}.py" for name in claims.SOURCES]
NAMED_LEDGER = "def test_ledger_"


def problems(ledger: dict[str, Any]) -> list[str]:
    """What is wrong between rows and tests."""
    found = []
    given = [(row["id"], test) for _, row in claims.rows(ledger) for test in row.get("tests", ())]
    for id_, test in given:
        file, name = test.split("::")
        path = TESTS / file
        if not path.exists() or name not in claims.tests_of(path):
            found.append(f"{id_}: there is no {test}")
    for _, row in claims.rows(ledger):
        if row["verdict"] not in ledger["verdicts"]:
            found.append(f"{row['id']}: verdict {row['verdict']!r}")
        if bool(row.get("tests")) == (row["verdict"] == claims.UNTESTED):
            found.append(f"{row['id']}: {row['verdict']}, with {len(row.get('tests', ()))} tests")
        if not row["found"] or not row["place"] or not row["says"]:
            found.append(f"{row['id']}: something is not said")
    ids = Counter(row["id"] for _, row in claims.rows(ledger))
    for one in (one for name in claims.SOURCES for one in ledger[name].get("places", ())):
        if not one.get("rows") and not one.get("why"):
            found.append(f"{one['place']}: neither rows nor why there is none")
        found += [f"{one['place']}: no row {id_}" for id_ in one.get("rows", ()) if not ids[id_]]
    found += [f"{id_} is there {count} times" for id_, count in ids.items() if count > 1]
    have = {test for _, test in given}
    for file in OF_ROWS:
        found += [
            f"{file}::{name} is of no row"
            for name in sorted(claims.tests_of(TESTS / file))
            if f"{file}::{name}" not in have
        ]
    for path in TESTS.rglob("test_*.py"):
        if path != Path(__file__) and NAMED_LEDGER in path.read_text(encoding="utf-8"):
            file = path.relative_to(TESTS).as_posix()
            found += [
                f"{file}::{name} is of no row"
                for name in claims.tests_of(path)
                if name.startswith("test_ledger_") and f"{file}::{name}" not in have
            ]
    return found


def misnamed(ledger: dict[str, Any]) -> list[str]:
    """Tests of the four files that stand in the row of another id than their name's."""
    return [
        f"{row['id']}: {test}"
        for _, row in claims.rows(ledger)
        for test in row.get("tests", ())
        if re.match(
            r"claims/test_\w+\.py::test_[a-z]\d+_\d+b?_|claims/test_\w+\.py::test_[a-z]_\d", test
        )
        and f"::test_{row['id'].lower().replace('.', '_')}_" not in test
    ]


def test_each_row_has_its_tests_and_each_test_its_row():
    assert problems(LEDGER) == []


def test_tests_are_named_for_their_rows():
    assert misnamed(LEDGER) == [
        "H1.2: claims/test_timor.py::test_h4_8_acceptance_rows_of_the_table"
    ]


def first(ledger: dict[str, Any], id_: str) -> dict[str, Any]:
    return next(row for _, row in claims.rows(ledger) if row["id"] == id_)


PLANTED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "H5.2: there is no claims/test_timor.py::test_h5_2": lambda x: first(x, "H5.2").update(
        tests=["claims/test_timor.py::test_h5_2"]
    ),
    "G.1: true, with 0 tests": lambda x: first(x, "G.1").pop("tests"),
    "T.1: true, with 0 tests": lambda x: first(x, "T.1").update(verdict="true"),
    "B Table 1: no row T.99": lambda x: x["timor"]["places"][1].update(rows=["T.99"]),
    "B Table 1: neither rows nor why there is none": lambda x: (
        x["timor"]["places"][1].clear() or x["timor"]["places"][1].update(place="B Table 1")
    ),
    "H5.2: verdict 'lossy'": lambda x: first(x, "H5.2").update(verdict="lossy"),
    "H5.2: something is not said": lambda x: first(x, "H5.2").update(found=""),
    "H5.2 is there 2 times": lambda x: first(x, "H5.3").update(id="H5.2"),
    "theory/test_goodput.py::test_ledger_v6_goodput_is_not_concave_and_its_first_decline_is_not_"
    "the_best is of no row": lambda x: first(x, "V.6")["tests"].pop(),
}


@pytest.mark.parametrize("problem", PLANTED)
def test_what_is_wrong_is_noticed(problem):
    ledger = copy.deepcopy(LEDGER)
    PLANTED[problem](ledger)
    assert problem in problems(ledger)


def test_a_test_in_the_row_of_another_is_noticed():
    ledger = copy.deepcopy(LEDGER)
    first(ledger, "H5.3")["tests"] = first(ledger, "H5.2")["tests"]
    assert len(misnamed(ledger)) == 2


def test_no_verdict_but_true_reads_as_true():
    """Who scans the column of verdicts takes "true" for what it says, whatever follows."""
    assert [name for name in LEDGER["verdicts"] if "true" in name] == ["true"]
    given = Counter(row["verdict"] for _, row in claims.rows(LEDGER))
    assert given.keys() == LEDGER["verdicts"].keys()
