"""The claims ledger: rows and tests belong to each other, and the page is written from it."""

import copy
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proofs_tests.pages import claims

TESTS = Path(__file__).parents[1]
LEDGER = claims.ledger()
# Test files of which every test is of a row, and one test of another file that says so.
OF_ROWS = [f"claims/test_{name}.py" for name in claims.SOURCES]
NAMED_LEDGER = "def test_ledger_"
NOT_THERE = ("not in the paper", "not said", "not in the explainer")
"""Places of what no text states; it has no line."""


def problems(ledger: dict[str, Any]) -> list[str]:
    """What is wrong between rows and tests."""
    found = []
    given = [(row["id"], test) for _, row in claims.rows(ledger) for test in row.get("tests", ())]
    for id_, test in given:
        file, name = test.split("::")
        path = TESTS / file
        if not path.exists() or name not in claims.tests_of(path):
            found.append(f"{id_}: there is no {test}")
    for source, row in claims.rows(ledger):
        told = source == claims.PUBLIC or any(one in row["place"] for one in NOT_THERE)
        if not (told and "as printed" not in row["verdict"]) and not row.get("lines"):
            found.append(f"{row['id']}: no line of a text")
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
    for one in ledger["findings"]:
        if not one.get("example"):
            found.append(f"{one['says']} No example")
    for one in (*ledger["findings"], *({"rows": named} for named in ledger["rules"].values())):
        found += [f"there is no row {id_}" for id_ in one["rows"] if not ids[id_]]
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
        "H1.2: claims/test_timor.py::test_t_0_rows_of_the_table",
        "V.30: claims/test_verification.py::test_v_3_accepted_length",
    ]


def first(ledger: dict[str, Any], id_: str) -> dict[str, Any]:
    return next(row for _, row in claims.rows(ledger) if row["id"] == id_)


PLANTED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "H5.2: there is no claims/test_timor.py::test_h5_2": lambda x: first(x, "H5.2").update(
        tests=["claims/test_timor.py::test_h5_2"]
    ),
    "G.1: true, with 0 tests": lambda x: first(x, "G.1").pop("tests"),
    "T.7: true, with 0 tests": lambda x: first(x, "T.7").update(verdict="true"),
    "A Table 4: no row T.99": lambda x: x["timor"]["places"][1].update(rows=["T.99"]),
    "A Table 4: neither rows nor why there is none": lambda x: (
        x["timor"]["places"][1].clear() or x["timor"]["places"][1].update(place="A Table 4")
    ),
    "H5.3: no line of a text": lambda x: first(x, "H5.3").pop("lines"),
    "V.11: no line of a text": lambda x: first(x, "V.11").update(verdict="false as printed"),
    "there is no row T.99": lambda x: x["findings"][0]["rows"].append("T.99"),
    f"{LEDGER['findings'][-1]['says']} No example": lambda x: x["findings"][-1].pop("example"),
    "there is no row T.98": lambda x: x["rules"]["tli"].append("T.98"),
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
    assert len(misnamed(ledger)) == len(misnamed(LEDGER)) + 1


def test_no_verdict_but_true_reads_as_true():
    """Who scans the column of verdicts takes "true" for what it says, whatever follows."""
    assert [name for name in LEDGER["verdicts"] if "true" in name] == ["true"]
    given = Counter(row["verdict"] for _, row in claims.rows(LEDGER))
    assert given.keys() == LEDGER["verdicts"].keys()


def test_lines_of_another_text_are_noticed(tmp_path):
    """A word more in one line is the reference of another line."""
    ledger = copy.deepcopy(LEDGER)
    for name, file in ledger["texts"].items():
        lines = [f"line {i} of {name}" for i in range(1, 700)]
        (tmp_path / file).write_text("\n".join(lines), encoding="utf-8")
    read = claims.texts(ledger, tmp_path)
    for _, row in claims.rows(ledger):
        row["lines"] = [
            claims.reference(text, read[text], int(first), int(last or first))
            for text, where, _ in (named.split(":") for named in row.get("lines", ()))
            for first, _, last in [where.partition("-")]
        ]
    assert claims.wrong_lines(ledger, tmp_path) == []
    file = tmp_path / ledger["texts"]["001"]
    file.write_text(file.read_text(encoding="utf-8").replace("line 267 ", "a line 267 "), "utf-8")
    assert {one.partition(":")[0] for one in claims.wrong_lines(ledger, tmp_path)} == {
        "H5.2",
        "H5.3",
    }


@pytest.mark.skipif(not claims.folder(), reason="SPECREF_PAPERS names no folder of the texts")
def test_lines_are_those_of_the_texts():
    assert claims.wrong_lines(LEDGER, claims.folder()) == []
