"""Code of a rule that never ran is named with the verdict."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from specref.algorithms.standard import step
from specref.cli import main
from specref.cli.cluster import worker_processes
from specref.cli.loading import Loaded, load_function
from specref.proofs.reached import Unreached, functions_of, watched
from specref.verification import prove

RULE = """from functools import lru_cache
from specref.algorithms import standard

def argmax(row):
    return (max(range(len(row)), key=row.__getitem__),)

@lru_cache
def kept(n):
    if n > 500_000:
        return None
    return n

def unused():
    return 1

def step(target, drafter, context, lookahead, chance):
    "A rule that is lossy where nobody looks."
    q = drafter.next_token(context)
    if max(q) < 0: return argmax(target.next_token(context))
    if len(context) == 200:
        block = argmax(
            target.next_token(context)
        )
        return block
    many = 1 if kept(lookahead) else 2
    return standard.step(target, drafter, context, lookahead, chance)
"""
LINES, PARTS = (5, 10, 21, 22, 23, 24), (19, 25)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "rule.py").write_text(RULE)
    return tmp_path / "rule.py"


def ran(rule: Callable[..., Any], *arguments: tuple[Any, ...]) -> Unreached | None:
    with watched(rule) as (seen, never):
        for one in arguments:
            seen(*one)
        return never()


def test_what_never_ran_is_told_by_line_and_by_part(file: Path) -> None:
    step = load_function(f"{file}:step")
    codes = [one.__code__ for one in functions_of(step)]
    report = prove(step, only=["EOS"])
    assert report.never_ran == Unreached("rule.py", LINES, PARTS)
    assert [one.__code__ for one in functions_of(step)] == codes


def test_code_that_runs_on_a_single_path_is_not_named(tmp_path: Path) -> None:
    text = (
        "def step(target, drafter, context, lookahead, chance):\n"
        "    first = chance.draw(target.next_token(context), 'first')\n"
        "    if first == 0:\n"
        "        return (first,)\n"
        "    return (first,)\n"
    )
    (tmp_path / "rule.py").write_text(text)
    report = prove(load_function(f"{tmp_path}/rule.py:step"), only=["EOS"])
    assert report.never_ran == Unreached("rule.py", (), ())


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("everywhere", [False, True])
def test_the_verdict_itself_says_so(file: Path, everywhere: bool) -> None:
    how = ("--everywhere", "--tokens", "2") if everywhere else ("--only", "EOS")
    page, record = file.with_suffix(".html"), file.with_suffix(".json")
    files = ("--html", str(page), "--json", str(record))
    found = CliRunner().invoke(main, ["prove", f"{file}:step", *how, *files])
    assert found.exit_code == 0, found.output
    named = "6 lines never ran: rule.py:5, 10, 21-24"
    said = " ".join(found.stdout.split())
    assert "lossless" in said.partition(named)[0].lower()
    assert "a part of lines 19, 25 never ran" in said
    assert named in page.read_text()
    known = json.loads(record.read_text())["never_ran"]
    assert known == {"file": "rule.py", "lines": list(LINES), "parts": list(PARTS)}


@pytest.mark.deep
def test_runs_in_workers_are_seen(file: Path) -> None:
    step = Loaded(f"{file}:step", load_function(f"{file}:step"))
    with worker_processes(2) as pool:
        report = prove(step, only=["EOS"], executor=pool)
    assert report.never_ran == Unreached("rule.py", LINES, PARTS)


def test_a_rule_without_source_is_not_watched() -> None:
    names: dict[str, Any] = {}
    exec("def rule(x):\n    return x", names)
    assert ran(names["rule"], (1,)) is None
    assert ran(len, ([],)) is None


def test_a_rule_that_is_watched_already_is_not_watched_twice(file: Path) -> None:
    step = load_function(f"{file}:step")
    with watched(step) as (_, outer):
        assert prove(step, only=["EOS"]).never_ran is None
        assert outer() == Unreached("rule.py", LINES, PARTS)


RAISING = """class Found(Exception):
    pass

class Row:
    def __init__(self, row):
        self.row = row

    def __getitem__(self, i):
        if i > 99:
            raise IndexError(i)
        return self.row[i]

def wrong(n):
    raise TypeError("no number")

def rule(n):
    if n < 0:
        message = f"n = {n}: expected at least 0"
        if n < -5:
            raise ValueError(message)
        else:
            raise TypeError(message)
    elif n > 100:
        if n > 101:
            return n
        raise ValueError("too large")
    if n == 50: raise Found(n)
    if n == 51: raise NotImplementedError
    if n == 52: wrong(n)
    return Row([0, 1])[n]
"""


def test_code_that_can_only_raise_is_not_named(tmp_path: Path) -> None:
    def unreached(text: str) -> Unreached | None:
        (tmp_path / "raising.py").write_text(text)
        return ran(load_function(f"{tmp_path}/raising.py:rule"), (1,))

    assert unreached(RAISING) == Unreached("raising.py", (10, 24, 25), (27, 29))
    catching = "def caught():\n    try: rule(-1)\n    except ValueError as one: return one\n"
    everything = unreached(RAISING + catching)
    assert {14, 18, 20, 22, 26} < set(everything.lines)
    assert 28 in everything.parts


def test_the_validations_of_the_standard_rule_are_not_named() -> None:
    assert prove(step, only=["EOS"]).never_ran == Unreached("standard.py", (), ())


class Called:
    def __init__(self, most: int) -> None:
        self.most = most

    def __call__(self, n: int) -> int:
        inner = [self.small(k) and "" for k in range(n) if k > self.most]
        return len(inner)

    def small(self, k: int) -> bool:
        return k > 1


def test_methods_closures_and_comprehensions_are_watched() -> None:
    start = Called.__call__.__code__.co_firstlineno
    assert ran(Called(1), (1,)) == Unreached("test_reached.py", (start + 5,), (start + 1,))
    assert ran(Called(1), (4,)) == Unreached("test_reached.py", (), ())

    def made(inner: Callable[[int], int]) -> Callable[[int], int]:
        return lambda n: inner(n) if n else 0

    rule = made(lambda n: n)
    found = ran(rule, (0,))
    assert len(found.parts) == 1
