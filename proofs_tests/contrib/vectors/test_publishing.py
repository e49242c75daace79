"""The published vectors never change: ids, regeneration, writes that fail."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from proofs_tests.helpers.vectors.files import CASES, FILES, FOLDER, ROOT, rule
from specref.contrib.vectors import building, publishing
from specref.contrib.vectors.building import EDITIONS, Edition
from specref.vectors import reading
from specref.vectors.reading import load_cases

PINNED = {"1.0": (336, "26b928542aca20318659deeaf4796a1634cf28aa8708a7c710587bd7a9bc6c89")}


@pytest.fixture
def prebuilt(monkeypatch):
    monkeypatch.setattr(publishing, "build_file", FILES.__getitem__)


def test_ids_are_unique_and_all_published():
    ids = [case["id"] for case in CASES]
    assert len(ids) == len(set(ids))
    assert reading.read_published(FOLDER).keys() == set(ids)
    assert all(rule(case) == name for name, file in FILES.items() for case in file["cases"])


def test_what_was_published_stays():
    """Whoever edits PINNED, other than by adding a line, breaks a promise to other projects."""
    lines = (FOLDER / "published.txt").read_text().splitlines(keepends=True)
    for version, (number, sha256) in PINNED.items():
        first = "".join(lines[:number])
        assert hashlib.sha256(first.encode()).hexdigest() == sha256, version


def test_the_version_says_how_many_cases_there_are():
    assert EDITIONS.items() >= PINNED.items()
    numbers = [edition.ids for edition in EDITIONS.values()]
    assert numbers == sorted(set(numbers))
    assert len((FOLDER / "published.txt").read_text().splitlines()) == numbers[-1]
    assert {file["spec_version"] for file in FILES.values()} == {[*EDITIONS][-1]}


def with_case(id_, **changes):
    """The files with a case changed, or put there."""
    algorithm = id_.split("/")[0]
    cases = {case["id"]: case for case in FILES[algorithm]["cases"]}
    cases[id_] = {**cases.get(id_, {}), "id": id_, **changes}
    return {**FILES, algorithm: {**FILES[algorithm], "cases": [*cases.values()]}}


def test_a_new_case_needs_a_new_version():
    published = reading.read_published(FOLDER)
    with pytest.raises(ValueError, match="they need a spec version of their own"):
        publishing.ids_text(published, with_case("slrs/more/001"))


@pytest.mark.usefixtures("prebuilt")
def test_a_new_folder_has_the_ids_in_the_order_of_publication(tmp_path, monkeypatch):
    """New cases come after all older ones, wherever their group stands in the code."""
    new = with_case("slem/aa/001")
    slem = {**new["slem"], "cases": sorted(new["slem"]["cases"], key=lambda case: case["id"])}
    monkeypatch.setattr(publishing, "build_file", {**new, "slem": slem}.__getitem__)
    (older := tmp_path / "older").mkdir()
    lines = (FOLDER / "published.txt").read_text().splitlines(keepends=True)
    lines += [f"slem/aa/001 {publishing.fingerprint({'id': 'slem/aa/001'})}\n"]
    (older / "published.txt").write_text("".join(lines))
    monkeypatch.setattr(publishing, "FOLDER", older)
    edition = Edition(len(lines), hashlib.sha256("".join(lines).encode()).hexdigest())
    known = {**EDITIONS, "1.99": edition}
    monkeypatch.setattr(building, "EDITIONS", known)
    monkeypatch.setattr(building, "SPEC_VERSION", "1.99")
    publishing.write(tmp_path / "newer")
    assert (tmp_path / "newer" / "published.txt").read_text() == "".join(lines)
    assert publishing.differences(tmp_path / "newer") == []


def test_a_change_is_refused_though_published_is_deleted():
    with pytest.raises(ValueError, match=r"not those of spec version 1\.0"):
        publishing.ids_text({}, with_case("standard/interior/001", draft_tokens=[2]))


def test_a_fingerprint_is_of_all_but_words_and_flags():
    for case in (FILES["standard"]["cases"][0], FILES["slrs"]["cases"][0]):
        known = publishing.fingerprint(case)
        for field in case:
            words = field in ("comment", "cites", "flags")
            assert (publishing.fingerprint({**case, field: "x"}) == known) == words, field


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
    for module in (building, publishing):
        monkeypatch.setattr(module, "RETIRED", {id_: "two readings"})
    file = building.build_file("slem")
    assert file["retired"] == {id_: "two readings"}
    assert {case["id"] for case in FILES["slem"]["cases"]} - {
        case["id"] for case in file["cases"]
    } == {id_}
    assert building.build_file("slrs")["retired"] == {}
    monkeypatch.setattr(publishing, "build_file", {**FILES, "slem": file}.__getitem__)
    shutil.copy(FOLDER / "published.txt", tmp_path)
    publishing.write(tmp_path)
    assert reading.read_published(tmp_path) == reading.read_published(FOLDER)
    assert id_ not in {case["id"] for case in load_cases(tmp_path, "slem")}


def test_two_cases_of_one_id_are_refused(monkeypatch):
    known = building.cases("block")
    monkeypatch.setattr(building, "cases", lambda rule: [*known[:2], known[1]])
    id_ = building.build_case(known[1])["id"]
    with pytest.raises(ValueError, match=f"^block: two cases have the id {id_}$"):
        building.build_file("block")


@pytest.mark.usefixtures("prebuilt")
def test_differences_are_named(tmp_path):
    publishing.write(tmp_path)
    path = tmp_path / "slrs.json"
    record = json.loads(path.read_text())
    several = len(record["cases"])
    path.write_text(json.dumps({**record, "cases": record["cases"][:-1]}))
    path = tmp_path / "union.json"
    path.write_text(path.read_text().replace('"u": 0.5}', '"u": 0.4}', 1))
    (tmp_path / "slem.json").unlink()
    (tmp_path / "tli.json").write_text("{")
    assert publishing.differences(tmp_path) == [
        "union.json differs, first at union/partly-shared/001",
        "tli.json differs",
        "slem.json is missing",
        f"slrs.json differs: {several - 1} cases, expected {several}",
    ]


def swapped(text):
    first, second, *rest = text.splitlines(keepends=True)
    return "".join([second, first, *rest])


NOTICED = {
    ("schema.json", lambda text: text.replace("draft/2020-12", "draft-07")): "schema.json differs",
    ("published.txt", swapped): "published.txt: the first 336 ids are not those of spec version",
    ("published.txt", lambda text: text[:-60]): "published.txt, line ",
    ("published.txt", lambda text: text.removesuffix("\n")): "published.txt differs",
    ("published.txt", lambda text: text.replace("\n", "\r\n")): "published.txt differs",
    ("published.txt", lambda text: ""): "published.txt differs",
    (
        "published.txt",
        lambda text: text.replace("001 ", "001 0", 1),
    ): "published.txt: standard/interior/001 was published as another case",
    ("published.txt", lambda text: text + "a/b/001 0\n"): "published.txt: a/b/001 was published",
    (".notes", lambda text: "mine"): ".notes is no file of these",
}


@pytest.mark.deep(one_in=3)
@pytest.mark.usefixtures("prebuilt")
@pytest.mark.parametrize("change", NOTICED, ids=NOTICED.values())
def test_every_file_of_the_folder_is_checked(tmp_path, change):
    copy = shutil.copytree(FOLDER, tmp_path / "v1")
    name, changed = change
    text = (copy / name).read_text() if (copy / name).exists() else ""
    (copy / name).write_text(changed(text), newline="")
    (found,) = publishing.differences(copy)
    assert found.startswith(NOTICED[change])


@pytest.mark.usefixtures("prebuilt")
@pytest.mark.parametrize("name", ["schema.json", "published.txt"])
def test_a_missing_file_is_named(tmp_path, name):
    copy = shutil.copytree(FOLDER, tmp_path / "v1")
    (copy / name).unlink()
    assert publishing.differences(copy) == [f"{name} is missing"]


def test_line_ends_are_the_same_in_every_checkout():
    command = ["git", "-C", str(ROOT), "check-attr", "eol", "--", "specref/vectors/v1/slrs.json"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not_run (no git checkout)")
    assert found.endswith("eol: lf\n")


@pytest.mark.usefixtures("prebuilt")
def test_nothing_is_replaced_when_building_fails(tmp_path, monkeypatch):
    (tmp_path / "standard.json").write_text("mine")
    monkeypatch.setattr(publishing, "build_schema", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        publishing.write(tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.usefixtures("prebuilt")
def test_nothing_is_replaced_when_one_cannot_be(tmp_path):
    copy = shutil.copytree(FOLDER, tmp_path / "v1")
    (copy / "standard.json").write_text("mine")
    (copy / "schema.json").unlink()
    (copy / "schema.json").mkdir()
    with pytest.raises(IsADirectoryError, match=r"schema\.json is a folder"):
        publishing.write(copy)
    assert (copy / "standard.json").read_text() == "mine"
    assert {path.name for path in copy.iterdir()} == {path.name for path in FOLDER.iterdir()}


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


def dropped(file):
    del file["cases"][3]


def repeated(file):
    file["cases"].append(file["cases"][0])


def renamed(file):
    file["cases"][0]["id"] = "standard/interior/999"


def altered(file):
    file["cases"][0]["coins"]["final"] = 0.126
    file["generator"]["cases_sha256"] = building.digest(file["cases"])


def forged(file):
    file["cases"][0]["expected"]["tokens"]["race"] = [2, 2]


def reworded(file):
    file["cases"][0]["flags"] = []


def as_block(file):
    file["algorithm"] = "block"


CORRUPTED = {
    dropped: "standard/interior/004 was published, and is not there",
    repeated: "standard/interior/001 is there twice",
    renamed: "standard/interior/999 was never published",
    altered: "standard/interior/001 is not the case that was published",
    forged: "standard/interior/001 is not the case that was published",
    reworded: "not those that it was written with",
    as_block: "its cases are of block: expected standard",
    lambda file: file.update(schema_version=2): "schema version 2: expected 1",
    lambda file: file.pop("algorithm"): "no file of vectors",
    lambda file: file.update(cases=[3]): "no file of vectors",
}


@pytest.mark.parametrize("corrupt", CORRUPTED, ids=CORRUPTED.values())
def test_a_corrupted_file_is_not_read(tmp_path, corrupt):
    shutil.copy(FOLDER / "published.txt", tmp_path)
    file = json.loads((FOLDER / "standard.json").read_text())
    corrupt(file)
    (tmp_path / "standard.json").write_text(json.dumps(file))
    with pytest.raises(ValueError, match=CORRUPTED[corrupt]):
        load_cases(tmp_path, "standard")


def test_a_copied_file_is_not_read(tmp_path):
    shutil.copy(FOLDER / "standard.json", tmp_path)
    with pytest.raises(ValueError, match=r"no published\.txt next to it has cases of standard"):
        load_cases(tmp_path, "standard")
    shutil.copy(FOLDER / "published.txt", tmp_path)
    assert load_cases(tmp_path, "standard") == FILES["standard"]["cases"]
    shutil.copy(FOLDER / "standard.json", tmp_path / "block.json")
    with pytest.raises(ValueError, match="its cases are of standard: expected block"):
        load_cases(tmp_path, "block")
    (tmp_path / "standard.json").write_text("[]")
    with pytest.raises(ValueError, match="no file of vectors"):
        load_cases(tmp_path, "standard")
