"""A document in a terminal, as Markdown and as an HTML page: each shows what it can."""

from rich.console import Console
from rich.text import Text

from proofs_tests.helpers.pages import Page
from specref.report.document import Bars, Document, Heading, bullets, markdown, page_of
from specref.report.layout import Column, Prose, Table

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
