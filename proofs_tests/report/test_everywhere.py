"""Pages about every p and q: what they say, and that they fit a phone. Nothing is random."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from proofs_tests.helpers.pages import Page, measured
from specref.cli import main, proving
from specref.proofs.everywhere.solver import is_installed
from specref.report.all_rules import answers_document
from specref.report.document import page_of as html_of
from specref.verification.dominance import Question, questions_of
from specref.verification.everywhere import Answer, Box

pytestmark = pytest.mark.skipif(not is_installed(), reason="not_run (z3 is not installed)")
PRINTED = "specref.zoo.standard.printed:algorithm_5"
STANDARD, BLOCK = (f"specref.algorithms.{name}:step" for name in ("standard", "block"))
TWO_TOKENS = ("--everywhere", "--tokens", "2")


def page_of(folder: Path, *words: str) -> tuple[int, str]:
    """The exit code of a command, and the page that it wrote."""
    file = folder / "page.html"
    result = CliRunner().invoke(main, [*words, "--html", str(file)])
    text = file.read_text(encoding="utf-8")
    page = Page(text)
    assert page.problems == page.loaded == []
    assert all(len(str(one["aria-label"])) > 20 for one in page.all("svg"))
    return result.exit_code, text


@pytest.mark.deep
def test_a_refutation_has_rows_and_a_path(tmp_path: Path) -> None:
    """The least difference is 1/4 in place of 1/8, where the printed rule accepts all drafts."""
    code, text = page_of(tmp_path, "prove", PRINTED, *TWO_TOKENS, "--lookahead", "2")
    said = Page(text).text
    assert code == 1
    assert f"Lossy {PRINTED}: lossy, or raises, at some rows of 63 of 74 regions, over 2" in said
    assert "all rows 11 not lossless at some rows 63 pieces that are open 0" in said
    assert "total variation of the completed block: 3/8" in said
    assert "the target's 1/8 this rule's 1/4" in said
    assert "p(·|b b) = (0, 1)" in said
    assert "residual     0    with probability 1 from (1, 0)" in text
    found = measured(text, tmp_path, 390)
    assert found["width"] <= 390
    assert found["overlaps"] == 0


def test_a_rule_that_raises_is_not_called_lossy(tmp_path: Path) -> None:
    file = tmp_path / "rule.py"
    file.write_text(RAISING)
    code, text = page_of(tmp_path, "prove", f"{file}:step", *TWO_TOKENS)
    assert code == 1
    said = Page(text).text
    assert "It raises an error at some rows" in said
    assert ":step: raises at some rows of" in said
    assert "there the rule raises ZeroDivisionError" in said


RAISING = """
def step(target, drafter, context, lookahead, chance):
    p = target.next_token(context)
    return (chance.draw(p / p[0] * p[0], "token"),)
"""


@pytest.mark.deep
def test_a_comparison_shows_both_numbers(tmp_path: Path) -> None:
    asked = (*TWO_TOKENS, "--lookahead", "2", "--against", STANDARD)
    code, text = page_of(tmp_path, "prove", BLOCK, *asked)
    said = Page(text).text
    assert code == 0
    assert "At least as much, and more somewhere" in said
    rows = "q(·) = (1, 0), q(·|a) = (1/3, 2/3)"
    assert f"more at {rows}: 1 against 11/12" in said
    assert f"Expected accepted drafts at {rows}: {BLOCK}: 1; {STANDARD}: 11/12" in said
    assert f"{BLOCK} 1 {STANDARD} 11/12" in said
    assert measured(text, tmp_path, 390)["right"] <= 390.5
    asked = (*TWO_TOKENS, "--lookahead", "2", "--against", BLOCK)
    code, text = page_of(tmp_path, "prove", STANDARD, *asked)
    assert code == 1
    assert "At most as much, and less somewhere" in Page(text).text
    assert f"No: {BLOCK} accepts at least as many drafts as {STANDARD}" in Page(text).text


def test_answers_that_are_open_or_unknown_are_no_pass() -> None:
    letters = ("a", "b")
    box = Box("standard", letters, letters, 1)
    for answers, headline, kind in (
        ([Answer(box, "proved"), Answer(box, "open", open=3)], "1 of 2 are open", "open"),
        ([Answer(box, "proved"), Answer(box, "not run", note="<z3>")], "1 of 2 are open", "open"),
        ([Answer(box, "proved"), Answer(box, "lossy")], "1 answers are not as known", "bad"),
        ([Answer(box, "proved")], "Every answer is as known", "good"),
    ):
        text = html_of(answers_document(answers))
        assert headline in Page(text).text
        assert f'class="verdict {kind}"' in text
    assert "<z3>" not in text


@pytest.mark.deep
@pytest.mark.parametrize(
    ("question", "headline", "kind", "code"),
    [
        (None, "All 1 questions are decided", "good", 0),
        ("min(p, q / sum of q over shared tokens)", "1 closed forms are refuted", "bad", 1),
    ],
)
def test_which_rule_accepts_more_is_a_page(question, headline, kind, code, tmp_path, monkeypatch):
    asked = questions_of("quick")[:1]
    if question is not None:
        asked = (Question("union", question, ("a", "b", "c"), ("b", "c", "d"), 1),)
    monkeypatch.setattr(proving, "questions_of", lambda profile: asked)
    left, text = page_of(tmp_path, "verify", "--dominance")
    assert left == code
    assert headline in Page(text).text
    assert f'class="verdict {kind}"' in text
    page = tmp_path / "records" / "answers.md"
    page.parent.mkdir()
    CliRunner().invoke(main, ["verify", "--dominance", "--markdown", str(page)])
    assert "docs/proofs-for-all-p-and-q.md says by what" in page.read_text()
    assert "proofs-for-all-p-and-q.md)" not in page.read_text()
    (tmp_path / "proofs-for-all-p-and-q.md").touch()
    CliRunner().invoke(main, ["verify", "--dominance", "--markdown", str(page)])
    link = "[docs/proofs-for-all-p-and-q.md](../proofs-for-all-p-and-q.md)"
    assert f"{link} says by what argument" in page.read_text()
