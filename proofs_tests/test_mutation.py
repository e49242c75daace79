"""Sampled mutation testing, on a toy: what a test notices is killed, the rest is said."""

import itertools
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proofs_tests import mutation
from proofs_tests.mutation import Area, Mutant, Result, Tree, described, files_of, key, mutants

SIGN = '''"""The sign of a number, 1 for 0."""


def sign(x: int = 3) -> int:
    if x < 0:
        return -1
    return 1
'''
WAIT = "def wait(x):\n    while x > 0:\n        x -= 1\n    return x\n"
# 0 itself is not tried.
TEST = """from toy.sign import sign
from toy.wait import wait

def test_sign():
    assert (sign(-1), sign(5), sign()) == (-1, 1, 1)

def test_wait():
    assert wait(2) == 0
"""
AREAS = {"toy": Area(("toy",), ("test_toy.py",), 0.9), "wait": Area(("toy/wait.py",), (), 0.5)}
SURVIVORS = {
    "if (x <= 0):",
    "if x < 1:",
    "def sign(x: int = 4) -> int:",
    "def sign(x: int = 2) -> int:",
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    folder = tmp_path / "root"
    for name, text in {
        "toy/__init__.py": "",
        "toy/sign.py": SIGN,
        "toy/wait.py": WAIT,
        "tests/test_toy.py": TEST,
        "conftest.py": "",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def ran(root: Path, size: int = 99, **options: Any) -> Result:
    output = root.parent / "mutants.json"
    return mutation.run(["toy"], size, 1, areas=AREAS, root=root, output=output, **options)["toy"]


def changed(found: dict[str, str]) -> str:
    return next(line for line in found["diff"].splitlines() if line.startswith("+"))[1:].strip()


def test_what_no_test_notices_survives_and_what_is_marked_is_not_run(root: Path) -> None:
    output = root.parent / "mutants.json"
    output.write_text('{"other": {"killed": 3}}')
    boundary = next(one for one in mutants(SIGN, "toy/sign.py") if one.text == "(x <= 0)")
    marked = key(described(boundary, root))
    assert marked == "toy/sign.py: - if x < 0: + if (x <= 0):"
    result = ran(root, equivalent={marked: "0 has no sign"}, workers=2)
    assert {changed(found) for found in result.survivors} == SURVIVORS - {"if (x <= 0):"}
    assert [(changed(one), one["reason"]) for one in result.equivalent] == [
        ("if (x <= 0):", "0 has no sign")
    ]
    assert {found["at"] for found in result.survivors} == {"toy/sign.py:4", "toy/sign.py:5"}
    assert result.possible == result.sampled == len(mutants(SIGN, "toy/sign.py"))
    assert (result.timed_out, result.judged) == ([], result.sampled - 1)
    assert result.killed == result.judged - 3
    assert result.score == pytest.approx(result.killed / result.judged)
    stored = json.loads(output.read_text())
    assert stored["other"] == {"killed": 3}
    assert Result(**stored["toy"]) == result
    assert "missed" in mutation.table({"toy": result})
    assert (root / "toy" / "sign.py").read_text() == SIGN


@pytest.mark.deep
def test_a_quick_run_has_only_the_tests_that_import_the_file(root: Path) -> None:
    (root / "tests" / "test_toy.py").write_text(TEST.replace("from toy.sign import sign", ""))
    (root / "tests" / "test_other.py").write_text(
        "def test_sign():\n    from importlib import import_module\n"
        "    sign = import_module('toy.sign').sign\n"
        "    assert (sign(-1), sign(5), sign()) == (-1, 1, 1)\n"
    )
    areas = {**AREAS, "toy": Area(("toy",), ("test_other.py",), 0.9)}
    output, killed = root.parent / "mutants.json", {}
    for quick in (True, False):
        found = mutation.run(["toy"], 4, 1, areas=areas, root=root, output=output, quick=quick)
        killed[quick] = found["toy"].killed
        assert Result(**json.loads(output.read_text())["toy"]).quick == quick
        assert ("quick" in mutation.table(found)) == quick
    assert killed[True] == 0 < killed[False]
    late = mutation.run(["toy"], 4, 1, areas=areas, root=root, output=output, enough=-1.0)
    assert (late["toy"].killed, late["toy"].quick) == (0, True)


def test_doctests_run_first_and_then_quick_tests_of_those_that_run_the_line(root: Path) -> None:
    class Known:
        def tests(self, path: str, line: int) -> list[str]:
            return ["tests/test_a.py::one", "tests/test_b.py::two", "tests/test_a.py::three"]

    area = Area(("toy",), (), 0.9, first=("*/test_b.py::*",))
    (mutant, *_) = mutation.mutants(SIGN, "toy/sign.py")
    doctests, first, *_ = mutation.covering_tests(area, mutant, root, Known())  # type: ignore[arg-type]
    assert doctests == ["toy/sign.py"]
    assert first == ["tests/test_b.py::two", "tests/test_a.py::one", "tests/test_a.py::three"]


@pytest.mark.deep
def test_survivors_are_put_to_the_tests_of_today(root: Path) -> None:
    output = root.parent / "mutants.json"
    options: dict[str, Any] = {"areas": AREAS, "root": root, "output": output}
    first = ran(root)
    (root / "tests" / "test_toy.py").write_text(TEST + "    assert sign(0) == 1\n")
    (root / "toy" / "sign.py").write_text("\n" + SIGN.replace("= 3", "= 5"))
    listed = key(next(one for one in first.survivors if changed(one) == "if x < 1:"))
    found = mutation.again(["toy"], equivalent={listed: "as a trial"}, **options)["toy"]
    assert {changed(one): one["since"] for one in found.survivors} == {
        "if (x <= 0):": "noticed",
        "def sign(x: int = 4) -> int:": "the code has changed",
        "def sign(x: int = 2) -> int:": "the code has changed",
    }
    assert [(changed(one), one["reason"]) for one in found.equivalent] == [
        ("if x < 1:", "as a trial")
    ]
    assert (found.killed, found.judged) == (first.killed, first.judged - 1)
    assert Result(**json.loads(output.read_text())["toy"]) == found
    (root / "tests" / "test_toy.py").write_text(TEST)
    found = mutation.again(["toy"], **options)["toy"]
    assert [one["since"] for one in found.survivors].count("survives") == 1


@pytest.mark.deep
def test_a_mutant_that_never_ends_is_timed_out_and_taken_back(root: Path) -> None:
    tree = Tree(root, root.parent / "copy")
    endless = next(one for one in mutants(WAIT, "toy/wait.py") if one.text == "x += 1")
    with tree.with_mutant(endless):
        assert "x += 1" in (tree.copy / "toy" / "wait.py").read_text()
        assert tree.run(["tests/test_toy.py"], 4)[0] is None
    assert (tree.copy / "toy" / "wait.py").read_text() == WAIT
    assert tree.run(["tests/test_toy.py"], 60)[0] == 0
    assert (root / "toy" / "wait.py").read_text() == WAIT


def test_no_module_is_read_from_a_cache_of_another_mutant(root: Path) -> None:
    """A cached module is taken for current if the second and the size of its file agree."""
    tree = Tree(root, root.parent / "copy")
    cached = tree.copy / "toy" / "__pycache__" / "sign.cpython-311.pyc"
    other = cached.with_name("signature.cpython-311.pyc")
    cached.parent.mkdir()
    other.touch()
    cached.touch()
    with tree.with_mutant(mutants(SIGN, "toy/sign.py")[0]):
        assert not cached.exists()
        cached.touch()
    assert (cached.exists(), other.exists()) == (False, True)


def test_an_interrupt_keeps_what_was_found(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save, saves = mutation._save, itertools.count(1)

    def interrupted(*arguments: Any) -> None:
        save(*arguments)
        if next(saves) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(mutation, "_save", interrupted)
    monkeypatch.setattr(mutation.Runner, "code", lambda *arguments: 1)
    with pytest.raises(KeyboardInterrupt):
        ran(root)
    stored = Result(**json.loads((root.parent / "mutants.json").read_text())["toy"])
    assert (stored.killed, stored.judged, stored.sampled) == (3, 3, stored.possible)
    assert not list(root.parent.glob("*.tmp"))


def test_an_interrupt_ends_the_tests_that_run(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was killed by it is no failure that is tried again without the mutant."""
    (root / "tests" / "test_toy.py").write_text("import time\ntime.sleep(60)\n")

    def interrupted(futures: Any) -> Any:
        time.sleep(3)
        raise KeyboardInterrupt

    monkeypatch.setattr(mutation, "as_completed", interrupted)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        ran(root)
    assert time.monotonic() - started < 30
    assert not (root.parent / "mutants.json").exists()


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("def test_wrong():\n    assert False\n", "test_toy.py::test_wrong: end with 1 without"),
        ("import nothing_like_it\n", "--collect-only tests/test_toy.py: end with 2 without"),
    ],
)
def test_what_fails_without_a_mutant_judges_nothing(root: Path, test: str, message: str) -> None:
    (root / "tests" / "test_toy.py").write_text(test)
    with pytest.raises(RuntimeError, match=message):
        ran(root)


def test_a_file_without_tests_that_cannot_be_imported_any_more_notices_it(root: Path) -> None:
    (root / "tests" / "test_toy.py").write_text("from toy.sign import sign\nassert sign(-1) < 0\n")
    assert ran(root, 30).killed > 0


def test_tests_that_take_too_long_without_a_mutant_judge_nothing(root: Path) -> None:
    with pytest.raises(RuntimeError, match=r"take longer than 0\.01 s without a mutant"):
        ran(root, limit=0.01)


def test_a_sample_depends_on_its_seed_alone(root: Path) -> None:
    drawn = [mutation.sampled(["toy/sign.py"], root, 5, seed) for seed in ("1", "1", "2")]
    assert drawn[0] == drawn[1] != drawn[2]
    assert {len(one) for _, one in drawn} == {5}


def test_a_file_belongs_to_the_narrowest_area(root: Path) -> None:
    assert files_of("toy", AREAS, root) == ["toy/__init__.py", "toy/sign.py"]
    assert files_of("wait", AREAS, root) == ["toy/wait.py"]


IMPORTS = {
    "test_module.py": "from specref.theory.psi import psi",
    "test_whole.py": "import specref.theory.psi",
    "test_name.py": "from specref.theory import conditional_psi as f",
    "test_psi.py": "def test():\n    from specref.theory import psi",
    "test_other.py": "from specref.algorithms.text.lazy_psi import psi",
    "test_word.py": "psi = 1",
}


def test_the_tests_of_a_module_are_those_that_import_it(tmp_path: Path) -> None:
    for name, text in IMPORTS.items():
        (tmp_path / name).write_text(text)
    for name, text in (("psi", "def conditional_psi(): ..."), ("counting", "")):
        file = tmp_path / "specref" / "theory" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    names = tuple(f"/{name}" for name in IMPORTS)
    area = Area(("specref/theory",), names[:1] + names[2:5], 1.0, (names[1], *names[4:]))
    path = "specref/theory/psi.py"
    mine = ["test_psi.py", "test_module.py", "test_name.py"]
    assert mutation.tests_of(area, path, tmp_path, False) == [
        [path, *mine],
        ["test_other.py"],
        ["test_whole.py", "test_word.py"],
    ]
    path = "specref/theory/counting.py"  # imported by none
    rounds = mutation.tests_of(area, path, tmp_path, False)
    others = sorted(set(IMPORTS) - {"test_whole.py", "test_word.py"})
    assert rounds[:2] == [[path], others]
    slow = replace(area, slow=(names[0], names[2]))
    assert mutation.tests_of(slow, path, tmp_path, False)[1] == others[2:]
    assert mutation.tests_of(slow, "specref/theory/psi.py", tmp_path, False)[0][1:] == mine
    near = tmp_path / "proofs_tests" / "theory" / "test_near.py"
    near.parent.mkdir(parents=True)
    near.write_text("psi = 1")
    (near.parent / "test_far.py").write_text("epsilon = 1")
    whole = replace(area, tests=("/theory/*", *area.tests))
    first = [["specref/theory/psi.py", *mine], ["proofs_tests/theory/test_near.py"]]
    for quick in (True, False):
        rounds = mutation.tests_of(whole, "specref/theory/psi.py", tmp_path, quick)
        assert rounds[:2] == first
        assert (len(rounds) == 2) == quick
    assert rounds[2] == ["proofs_tests/theory/test_far.py", "test_other.py"]


def test_a_mutant_that_survives_a_round_is_put_to_the_next(root: Path) -> None:
    runner = mutation.Runner([Tree(root, root.parent / "copy")], 60)
    noticed = next(one for one in mutants(SIGN, "toy/sign.py") if one.text == "return None")
    (root.parent / "copy" / "tests" / "test_none.py").write_text("def test(): pass\n")
    none, toy = "tests/test_none.py", "tests/test_toy.py"
    assert runner.code(noticed, [[none]]) == 0
    assert runner.code(noticed, [[none], [toy]]) == 1
    assert runner.code(noticed, [[toy], [none]]) == 1


KINDS = [
    ("a < b <= c", {"(a <= b <= c)", "(a < b < c)"}),
    ("a is not b", {"(a is b)"}),
    ("a and b", {"(a or b)"}),
    ("a - b", {"(a + b)"}),
    ("a ** b", {"(a * b)"}),
    ("not a", {"(a)"}),
    ("7", {"8", "6"}),
    ("True", {"False"}),
    ("b if a else c", {"(not (a))"}),
    ("'text' + a", set()),
    ("f'{a + 1}'", set()),
]


@pytest.mark.parametrize(("expression", "texts"), KINDS)
def test_the_mutants_of_an_expression(expression: str, texts: set[str]) -> None:
    assert {one.text for one in mutants(f"x = {expression}", "")} == texts


STATEMENTS = [
    ("a += b", {"a -= b", "pass"}),
    ("call()", {"pass"}),
    ("'a docstring'", set()),
    ("def f(a: 1 = b) -> 2:\n    return a", {"return None"}),
    ("def f():\n    return", set()),
    ("@cache(1)\ndef f():\n    return None", set()),
    ("if a:\n    raise E(1)", {"(not (a))", "pass"}),
    ("if a:\n    b = c\nelse:\n    b = d", {"(not (a))"}),
    ("import a", set()),
]


@pytest.mark.parametrize(("statement", "texts"), STATEMENTS)
def test_the_mutants_of_a_statement(statement: str, texts: set[str]) -> None:
    found = mutants(statement, "")
    assert {one.text for one in found} == texts
    if statement.startswith("if a:\n    raise"):
        whole = [one for one in found if one.applied(statement.encode()) == b"pass"]
        assert len(whole) == 1  # the guard, and the statement in it, which is another mutant
        assert len([one for one in found if one.text == "pass"]) == 2


def test_bytes_before_a_mutant_may_be_several_to_a_character() -> None:
    source = "x = 'ä', a < b"
    (one,) = mutants(source, "")
    assert one == Mutant("", 1, 10, 15, "(a <= b)")
    assert one.applied(source.encode()).decode() == "x = 'ä', (a <= b)"


def test_the_record_is_one_of_todays_form() -> None:
    record = {name: Result(**one) for name, one in json.loads(mutation.OUTPUT.read_text()).items()}
    assert set(record) == set(mutation.AREAS)
    for name, one in record.items():
        assert 0 < one.score <= 1, name
        assert one.judged + len(one.equivalent) <= one.sampled <= one.possible, name
        changes = [*one.survivors, *one.equivalent, *one.timed_out]
        assert all({"at", "diff"} <= change.keys() for change in changes), name
