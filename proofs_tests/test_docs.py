"""What README and docs say is run: code blocks, commands, the architecture table."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from proofs_tests.test_architecture import FLOORS
from specref.algorithms import ALGORITHMS
from specref.cli import main
from specref.verification import prove_rule

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_blocks_run(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for code in blocks(page, "python"):
        assert names_after(code), f"a block of {page.name} defines nothing"


def names_after(code: str) -> set[str]:
    namespace: dict = {}
    exec(compile(code, "block", "exec"), namespace)
    return namespace.keys() - {"__builtins__"}


def test_a_block_that_is_wrong_is_noticed() -> None:
    with pytest.raises(AssertionError):
        names_after("assert 1 + 1 == 3")


def test_readme_oracle_example_is_fifteen_lines() -> None:
    example, *_ = blocks(ROOT / "README.md", "python")
    assert len(example.splitlines()) <= 15


def test_readme_console_output_is_what_the_command_prints() -> None:
    (session,) = blocks(ROOT / "README.md", "console")
    command, *expected = session.splitlines()
    result = CliRunner().invoke(main, command.removeprefix("$ specref ").split())
    printed = result.output.splitlines()
    assert all(line in printed for line in expected)


def code_of(page: Path) -> list[str]:
    inline = re.findall(r"`(specref [^`]+)`", page.read_text())
    return [*blocks(page, "sh"), *blocks(page, "console"), *inline]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_exist(page: Path) -> None:
    shown = re.findall(r"^(?:\$ )?specref (\w+)", "\n".join(code_of(page)), flags=re.MULTILINE)
    assert set(shown) <= set(main.commands)


def test_readme_names_every_algorithm_file() -> None:
    readme = (ROOT / "README.md").read_text()
    for name in ALGORITHMS:
        assert f"(specref/algorithms/{name}.py)" in readme


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / link).exists(), link


def test_readme_counts_the_vectors() -> None:
    readme, published = (
        (ROOT / name).read_text() for name in ("README.md", "fixtures/vectors/v1/published.txt")
    )
    (counted,) = re.findall(r"(\d+) cases in \[fixtures/vectors\]", readme)
    assert int(counted) == len(published.splitlines())


def test_the_page_of_vectors_says_what_a_note_is() -> None:
    page = (ROOT / "docs" / "vectors.md").read_text()
    published = json.loads((ROOT / "fixtures" / "vectors" / "v1" / "standard.json").read_text())
    (about,) = re.findall(
        r"`notes\[flag\]` of\s+the file is an object: (.*?)\. Flags are", page, re.S
    )
    for note in published["notes"].values():
        assert set(re.findall(r"`(\w+)`", about)) == note.keys()


def test_architecture_page_lists_the_floors_in_order() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| (`[^|]+`) \|", page, flags=re.MULTILINE)
    names = [name.strip("`/ ") for row in rows for name in row.split(",")]
    assert [name for name in names if name in FLOORS] == FLOORS


def test_readme_rule_is_lossless() -> None:
    _, rule, *_ = blocks(ROOT / "README.md", "python")
    namespace: dict = {}
    exec(compile(rule, "README", "exec"), namespace)
    report = prove_rule(namespace["my_step"])
    assert report.proved > 50
    assert not report.refuted
    assert not report.raised
