"""The published vectors never change: ids, regeneration, writes that fail."""

import subprocess
from pathlib import Path

import pytest

from proofs_tests.vector_files import CASES, FILES, FOLDER, ROOT, rule
from specref.conformance.vectors import building, collecting, publishing
from specref.conformance.vectors.reading import load_cases


@pytest.fixture
def prebuilt(monkeypatch):
    monkeypatch.setattr(publishing, "build_file", FILES.__getitem__)


def test_ids_are_unique_and_all_published():
    ids = [case["id"] for case in CASES]
    assert len(ids) == len(set(ids))
    assert publishing.read_published(FOLDER).keys() == set(ids)
    assert all(rule(case) == name for name, file in FILES.items() for case in file["cases"])


def test_what_was_published_stays():
    path = "fixtures/vectors/v1/published.txt"
    command = ["git", "-C", str(ROOT), "show", f"HEAD:{path}"]
    before = subprocess.run(command, capture_output=True, text=True, check=False)
    if before.returncode:
        pytest.skip("not_run (no published.txt in a git history here)")
    assert (ROOT / path).read_text().startswith(before.stdout)


@pytest.mark.usefixtures("prebuilt")
def test_a_published_case_cannot_change_or_go(tmp_path):
    publishing.write(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    published = tmp_path / "published.txt"
    for lines, message in (
        ("standard/interior/001 0000000000000000\n", "standard/interior/001 was published as"),
        ("standard/interior/999 0000000000000000\n", "standard/interior/999 was published, and"),
        ("standard/interior/001\n", "line 1"),
    ):
        published.write_text(lines)
        with pytest.raises(ValueError, match=message):
            publishing.write(tmp_path)
        after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        assert after == before | {published.name: lines.encode()}


def test_a_retired_case_is_left_out_and_its_id_kept(tmp_path, monkeypatch):
    id_ = "slem/lookahead-zero/002"
    for module in (collecting, building, publishing):
        monkeypatch.setattr(module, "RETIRED", {id_: "two readings"})
    file = building.build_file("slem")
    assert file["retired"] == {id_: "two readings"}
    assert {case["id"] for case in FILES["slem"]["cases"]} - {
        case["id"] for case in file["cases"]
    } == {id_}
    assert building.build_file("slrs")["retired"] == {}
    monkeypatch.setattr(publishing, "build_file", {**FILES, "slem": file}.__getitem__)
    (tmp_path / "published.txt").write_text(f"{id_} 0000000000000000\n")
    publishing.write(tmp_path)
    assert publishing.read_published(tmp_path)[id_] == "0000000000000000"


def test_regeneration_is_byte_identical():
    assert publishing.differences(FOLDER) == []


@pytest.mark.usefixtures("prebuilt")
def test_differences_are_named(tmp_path):
    publishing.write(tmp_path)
    path = tmp_path / "union.json"
    path.write_text(path.read_text().replace('"u": 0.5}', '"u": 0.4}', 1))
    (tmp_path / "slem.json").unlink()
    (tmp_path / "tli.json").write_text("{")
    assert publishing.differences(tmp_path) == [
        "union.json differs, first at union/partly-shared/001",
        "tli.json differs",
        "slem.json is missing",
    ]


@pytest.mark.usefixtures("prebuilt")
def test_nothing_is_replaced_when_building_fails(tmp_path, monkeypatch):
    (tmp_path / "standard.json").write_text("mine")
    monkeypatch.setattr(publishing, "build_schema", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        publishing.write(tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.usefixtures("prebuilt")
def test_nothing_is_left_when_writing_fails(tmp_path, monkeypatch):
    def full(self, text, **options):
        if "tli" in self.name:
            raise OSError("No space left on device")
        self.touch()

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        publishing.write(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_corrupted_case_is_noticed(tmp_path):
    path = tmp_path / "standard.json"
    text = (FOLDER / path.name).read_text()
    path.write_text(text.replace('"final": 0.125', '"final": 0.126', 1))
    with pytest.raises(ValueError, match="not those that it was published with"):
        load_cases(tmp_path, "standard")
    path.write_text(text.replace('"schema_version": 1', '"schema_version": 2'))
    with pytest.raises(ValueError, match="schema version 2: expected 1"):
        load_cases(tmp_path, "standard")
    path.write_text("[]")
    with pytest.raises(ValueError, match="no file of vectors"):
        load_cases(tmp_path, "standard")
