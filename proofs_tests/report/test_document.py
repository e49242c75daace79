"""A document in a terminal, as Markdown and as a page; lines fit, and no word or id is cut."""

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest
from click.testing import CliRunner
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from proofs_tests.helpers.command import assert_fits
from proofs_tests.helpers.pages import Page
from specref.cli import main, proving
from specref.conformance.checks import CHECKS
from specref.conformance.status import Stage, Status
from specref.contrib.selftest import kill_matrix as zoo_command
from specref.contrib.selftest.kill_matrix import Matrix, Row
from specref.report.document import Bars, Document, Heading, bullets, markdown, page_of
from specref.report.layout import Column, Prose, Table
from specref.verification import cases_of, verify
from specref.verification import main_job as job
from specref.zoo import MUTANTS

COLUMNS = [Column("rule"), Column("P(a|b)", right=True)]
TOLD = Document(
    "a | b",
    "bad",
    "Lossy",
    [
        Prose("in short", "bold red"),
        "",
        Table(COLUMNS, [(Text("p|q", "red"), "1/2")]),
        Prose("first\n  then"),
    ],
    [
        Heading("More"),
        *bullets(["`one`", "[two](https://a.b/2)", "[three](../three.md)"]),
        Bars("Share", [("<p>", "1/2", [("expected", 0.5)])], ("p", "q")),
    ],
)


def test_a_terminal_shows_the_parts_and_no_more() -> None:
    console = Console(width=40)
    with console.capture() as capture:
        console.print(TOLD)
    lines = capture.get().splitlines()
    assert lines == [
        "in short",
        "",
        "rule P(a|b)",
        "───────────",
        "p|q     1/2",
        "first",
        "  then",
    ]


def test_markdown_has_all_of_it() -> None:
    assert markdown(TOLD).split("\n\n") == [
        "# a | b",
        "**Lossy**",
        "in short",
        "| rule | P(a\\|b) |\n| --- | --: |\n| p\\|q | 1/2 |",
        "```text\nfirst\n  then\n```",
        "## More",
        "* `one`\n* [two](https://a.b/2)\n* [three](../three.md)",
        "Share:",
        "* <p>: 1/2",
    ]


def test_a_page_has_all_of_it_escaped_and_how_to_run_it_again() -> None:
    text = page_of(TOLD, "specref prove a", ("seed", "7"))
    page = Page(text)
    assert page.problems == page.loaded == []
    said = "Lossy in short rule P(a|b) p|q 1/2 first then More one two three Share: p, upper bar;"
    assert said in page.text
    assert "specref prove a seed 7 specref" in page.text
    assert '<span class="status bad">p|q</span>' in text
    assert [one["href"] for one in page.all("a")] == ["https://a.b/2"]
    assert "<li><code>one</code></li>" in text
    assert "&lt;p&gt;" in text
    assert "Run it again" not in page_of(TOLD)


WIDTHS = [60, 80]
DRAWS_WRONG = """
from specref.adapters.reference import verify as reference

def verify(target_probs, draft_probs, draft_tokens, *, coins):
    coins = type(coins)(coins.accept[::-1] / 2, coins.race[:, ::-1])
    return reference(target_probs, draft_probs, draft_tokens, rng=None, coins=coins)
"""


def printed(width: int | None, *arguments: str) -> str:
    """What a command prints into a pipe."""
    return CliRunner(env={"COLUMNS": width and str(width)}).invoke(main, arguments).stdout


def words(text: str) -> set[str]:
    return set(text.split())


def check_fits(text: str, width: int) -> None:
    assert text.strip()
    assert max(map(cell_len, text.splitlines())) <= width


ALGORITHM_5 = "specref.zoo.standard.printed:algorithm_5"


@pytest.mark.usefixtures("few_blocks")
@pytest.mark.deep
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "options",
    [
        (
            *("examples.lossy:verify", "--only", "smoke", "--only", "joint/wide"),
            *("--detect-tv", "0.2"),
        ),
        ("transformers", "--only", "boundary/zero-coin", "--only", "boundary/empty-residual"),
    ],
    ids=lambda options: options[0],
)
def test_reports_of_the_kit_fit(options: tuple[str, ...], width: int, tmp_path: Path) -> None:
    if options[0] == "transformers":
        pytest.importorskip("transformers", reason="not_run (no transformers)")
    file = tmp_path / "report.json"
    text = printed(width, "check", *options, "--verbose", "--json", str(file))
    check_fits(text, width)
    results = [one for one in json.loads(file.read_text())["results"] if asked(one)]
    blocked = Counter(one["message"] for one in results if one["status"] == "not_run")
    for why, number in blocked.items():
        alone = number == 1  # in the table
        assert alone or f"{number} not_run {why}" in " ".join(text.split())
    seen = [one for one in results if one["status"] != "not_run"]
    assert {one["id"] for one in seen} <= words(text)
    assert {one["status"] for one in seen} <= words(text)
    for one in seen:
        short = {word for word in one["message"].split() if "/" not in word}
        assert short <= words(text)
    assert_fits("check", file.read_text())


def asked(result: dict) -> bool:
    return result["status"] != Status.NOT_APPLICABLE


@pytest.mark.parametrize("width", WIDTHS)
def test_the_kill_matrix_fits(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    longest = max(MUTANTS, key=len)
    monkeypatch.setattr(zoo_command, "kill_matrix", lambda ids, **options: matrix_of(ids))
    text = printed(width, "zoo", longest, "shared-u")
    check_fits(text, width)
    assert {longest, "shared-u"} <= words(text)
    assert len(re.findall(r"\d/\d", text)) >= len(Stage)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_main_job_fits(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proving, "verify", lambda *given: main_job())
    text = printed(width, "verify")
    check_fits(text, width)
    for report in main_job().reports:
        assert f"{report.paths:,}" in words(text)
        assert report.monte_carlo is None or f"{report.monte_carlo.trials:,}" in words(text)


def matrix_of(ids: tuple[str, ...]) -> Matrix:
    """One check of each stage fails each."""
    asked = frozenset(one.id for one in CHECKS)
    killers = {one.stage: one.id for one in CHECKS}
    return Matrix(tuple(Row(id_, (*killers.values(),), asked, 0.25) for id_ in ids), 0, 0.05)


@cache
def main_job():
    """All rows, of a few cases each."""
    few = cases_of("quick")[:4]
    with (
        patch.object(job, "cases_of", lambda profile: few),
        patch.dict(job.TRIALS, quick=2_000),
        patch.dict(job.EPS, quick=0.25),
    ):
        return verify("quick")


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    ("arguments", "whole"),
    [
        (("plan", "--tv", "0.01"), ["fixture", "wide"]),
        (("plan", "--mutant", "residual-is-p"), ["expected", "wide"]),
        (("plan", "speed", "--acceptance", "0.7", "--cost", "0.05"), ["break-even", "2.353x"]),
        (("psi", "hello" * 12, "--tokens", "h,e,l,o,he,llo"), ["decompositions", "'llo'"]),
        (("prove", ALGORITHM_5, "--only", "toy pairs"), ["LOSSY", "counterexample:"]),
        (("vocabularies", "--only", "overlap"), ["mixtral-8x22b", "vocabularies"]),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_other_commands_fit(arguments: tuple[str, ...], whole: list[str], width: int) -> None:
    text = printed(width, *arguments)
    check_fits(text, width)
    assert set(whole) <= words(text)


@pytest.mark.parametrize("width", WIDTHS)
def test_failed_vectors_fit(width: int, tmp_path: Path) -> None:
    file, record = tmp_path / "wrong.py", tmp_path / "wrong.json"
    file.write_text(DRAWS_WRONG)
    text = printed(width, "vectors", "--run", f"{file}:verify", "--json", str(record))
    check_fits(text, width)
    results = json.loads(record.read_text())["results"]
    failed = [one["id"] for one in results if one["status"] == "failed"]
    assert failed
    assert set(failed[:40]) <= words(text)


def test_a_pipe_has_80_columns_unless_told() -> None:
    text = printed(None, "plan", "speed", "--acceptance", "0.7", "--cost", "0.05")
    assert text == printed(80, "plan", "speed", "--acceptance", "0.7", "--cost", "0.05")
    assert text != printed(60, "plan", "speed", "--acceptance", "0.7", "--cost", "0.05")


def rendered(what: object, width: int) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(what)
    return captured.get().splitlines()


def test_what_does_not_fit_goes_below_or_into_another_table() -> None:
    columns = [Column("id"), Column("seen", folds=True), Column("s", right=True)]
    table = Table(columns, [("joint/wide", "a much longer message than fits", "0.1")])
    assert rendered(table, 60)[-1] == "joint/wide a much longer message than fits 0.1"
    assert rendered(table, 20)[2:] == [
        "joint/wide 0.1",
        "  a much longer",
        "  message than fits",
    ]
    numbers = Table([Column(name, right=True) for name in ("key", "one", "two")], [(1, 22, 333)])
    assert [line.split() for line in rendered(numbers, 8)] == [
        *(["key", "one"], ["───────"], ["1", "22"], []),
        *(["key", "two"], ["───────"], ["1", "333"]),
    ]


def test_a_row_that_fits_in_no_table_is_a_record() -> None:
    table = Table([Column("id"), Column("name")], [("one", "of_fourteen_14"), ("two", "")])
    assert rendered(table, 12) == ["one", "  name:", "  of_fourtee", "  n_14", "two"]


def test_paragraphs_keep_their_indent() -> None:
    assert rendered(Prose("1. one\n   more than there is room for"), 18) == [
        *("1. one", "   more than there", "   is room for"),
    ]
