"""Which tests run a line: by what coverage recorded, and by name for what runs on import."""

import os
from pathlib import Path

import pytest
from coverage import CoverageData

from proofs_tests import mutation
from proofs_tests.covering import Covering
from proofs_tests.mutation import Area, Mutant

CODE = """LIMIT = 3
TWICE = 2 * LIMIT


class Kind:
    size: int = 4

    def within(self, x: int = 5) -> bool:
        if (
            x < self.size
        ):
            return True
        return x < TWICE


def other() -> int:
    return 0


def made() -> int:
    return 7


NUMBER = made()


def used() -> int:
    return NUMBER
"""
OTHER = "from specref.toy.code import Kind\n\n\ndef size(kind):\n    return kind.size\n"
RAN = {
    "tests/toy/test_a.py::test_call[a | b]|run": ("code", [9, 10, 12]),
    "tests/toy/test_code.py::test|setup": ("code", [9, 10, 13]),
    "tests/test_other.py::test_size|teardown": ("other", [5]),
    "tests/toy/test_code.py::test_number|run": ("code", [28]),
    "": ("code", [1, 2, 5, 6, 8, 16, 20, 21, 24, 27]),
}
CALL = "tests/toy/test_a.py::test_call[a | b]"
MINE, SIZE = "tests/toy/test_code.py::test", "tests/test_other.py::test_size"


@pytest.fixture
def covering(tmp_path: Path) -> Covering:
    folder = tmp_path / "specref" / "toy"
    folder.mkdir(parents=True)
    for name, text in (("code", CODE), ("other", OTHER)):
        (folder / f"{name}.py").write_text(text)
    data = CoverageData(str(tmp_path / "recorded"))
    for context, (name, lines) in RAN.items():
        data.set_context(context)
        data.add_lines({str(folder / f"{name}.py"): lines})
    data.write()
    return Covering(tmp_path / "recorded", tmp_path)


@pytest.mark.parametrize(
    ("line", "tests"),
    [
        (9, [MINE, CALL]),
        (10, [MINE, CALL]),  # a header of several lines
        (12, [CALL]),
        (13, [MINE]),
        (8, [MINE, CALL]),  # a default
        (1, [MINE]),  # through another constant
        (2, [MINE]),
        (6, [MINE, CALL, SIZE]),  # an attribute, in another file
        (17, []),  # run by none
        (21, [f"{MINE}_number"]),  # run on import, for a number
    ],
)
def test_tests_of_a_line(covering: Covering, line: int, tests: list[str]) -> None:
    assert covering.tests("specref/toy/code.py", line) == tests


def test_rounds_are_those_tests_and_then_what_may_notice_unseen(covering: Covering) -> None:
    names = "toy/test_a.py", "toy/test_code.py", "test_other.py", "test_last.py", "test_api.py"
    for test in names:
        file = covering.root / "tests" / test
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("from specref.toy.code import Kind\n" * (file.stem == "test_other"))
    area = Area(("specref/toy",), ("/toy/test_*", "/test_other.py"), 0.9, ("/test_last.py",))
    path = "specref/toy/code.py"
    first = [path, "tests/test_api.py"]
    last = [["tests/test_other.py"], ["tests/test_api.py", "tests/test_last.py"]]

    def rounds(line: int, limit: int = 200) -> list[list[str]]:
        mutant = Mutant(path, line, 0, 0, "")
        return mutation.covering_tests(area, mutant, covering.root, covering, limit)

    assert rounds(6) == [first, [MINE, CALL, SIZE], *last]
    assert rounds(6, 2) == [first, [MINE, CALL], [SIZE], *last]
    assert rounds(12) == [first, [CALL], *last]
    assert rounds(17) == [first, *last]


def test_a_record_of_other_code_is_refused(covering: Covering, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing: it has no line of a file in"):
        Covering(tmp_path / "nothing", tmp_path)
    later = (tmp_path / "recorded").stat().st_mtime + 1
    os.utime(tmp_path / "specref" / "toy" / "other.py", (later, later))
    with pytest.raises(ValueError, match=r"other\.py has changed since; record again"):
        Covering(tmp_path / "recorded", tmp_path)
