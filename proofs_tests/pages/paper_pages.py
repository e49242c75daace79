"""The page of each paper: a verdict on each of its statements, from docs/claims.toml."""

import re
from collections.abc import Mapping
from functools import cache
from textwrap import shorten
from typing import Any

from proofs_tests.pages import claims
from proofs_tests.pages.claims import anchor
from proofs_tests.pages.links import PARAGRAPH, relinked, rows_of
from specref.rule import Rule
from specref.rules import RULES

TITLE = 64
"""Letters of a title, beside which a page's list of titles still reads."""
NOT_COVERED = "What is not covered, and why"


def paper_page(key: str, source: Mapping[str, Any], meanings: Mapping[str, str]) -> str:
    """Every statement of a source; those without a verdict at the end, with the reason."""
    judged = [row for row in source["rows"] if row["verdict"] != claims.UNTESTED]
    others = [row for row in source["rows"] if row["verdict"] == claims.UNTESTED]
    overview = rows_of(
        ("row", "verdict", "statement", "where"),
        (
            (f"[{row['id']}](#{anchor(row['id'])})", row["verdict"], row["says"], row["place"])
            for row in judged
        ),
    )
    name = short(source)
    names = [rule.name for rule in RULES.values() if uses(rule, name)]
    used = [f"[{one}](../rules/{one}.md)" for one in names]
    rules = f"Rules from it: {', '.join(used)}.\n\n" if used else ""
    have = "has" if len(others) == 1 else "have"
    verdicts = "".join(f"* **{name}**: {meaning}\n" for name, meaning in meanings.items())
    in_short = source.get("in_short", "")
    in_short = with_rows(in_short)
    return f"""# {name}

{in_short and f"**In short:** {in_short}{PARAGRAPH}"}\
[{source["title"]}]({source["link"]})

{source["note"]}

{rules}Written from the [ledger of claims](../../claims.md), which has all sources in one table.
{len(judged)} statements have a verdict, {len(others)} {have} none:
[{NOT_COVERED.lower()}](#not-covered-{key}).{FIND if "editions" in source else ""}
Tests are run in a checkout, with `pip install -e '.[strategies,pytest]'`.

{verdicts}
{overview}
{by_place(source)}\
## Statements

{"".join(map(statement, judged))}
(not-covered-{key})=
## {NOT_COVERED}

{"".join(map(statement, others)) or "Every row has a verdict."}"""


def by_place(source: Mapping[str, Any]) -> str:
    """An index by tables, figures and other places, of a source that has one; else nothing."""
    if "places" not in source:
        return ""
    two = "editions" in source
    told = {
        row["id"]: f"[{row['id']}](#{anchor(row['id'])}) {row['verdict']}"
        for row in source["rows"]
    }
    named = [(row["place"], told[row["id"]]) for row in source["rows"] if two]
    for one in source["places"]:
        rows = [told[id_] for id_ in one.get("rows", ())] or [f"not covered: {one['why']}"]
        named += [(one["place"], row) for row in rows]
    found: dict[tuple[str, ...], list[str]] = {}
    for named_place, row in named:
        for place in places(named_place) if two else [(named_place,)]:
            found.setdefault(place, []).append(row)
    order = sorted(found, key=lambda one: natural(next(filter(None, one))))
    titles = [f"in {one}" for one in source["editions"]] if two else ["where"]
    table = rows_of((*titles, "rows"), ((*place, "; ".join(found[place])) for place in order))
    title = "By place, in both numberings" if two else "Tables and figures by place"
    label, above = ("(by-place)=\n", f"{WHERE}\n\n") if two else ("", "")
    return f"{label}## {title}\n\n{above}{table}\n"


EDITION = re.compile(r"\b(A and B|A|B) (?=\w)")
FIND = " [By place](#by-place), in both numberings."
WHERE = "Where a row names one edition alone, the place in the other is left empty."
SAME = "the same"
DROPPED = "(dropped in B)"


def places(place: str) -> list[tuple[str, str]]:
    """(in A, in B) of the places that a row of the ledger names; of a listing, B is empty.

    >>> places("A Alg. 2, lines 4 and 8; A and B sec. 3.2")
    [('Alg. 2, lines 4 and 8', ''), ('sec. 3.2', 'the same')]
    >>> places("A Lemma 3.3, B Lemma 3.1"), places("not in the paper")
    ([('Lemma 3.3', 'Lemma 3.1')], [])
    >>> places("A and B sec. 3.2, A App. F and B Table 11"), places("A Table 7 (dropped in B)")
    ([('sec. 3.2', 'the same'), ('App. F', 'Table 11')], [('Table 7', '(dropped in B)')])
    """
    _, *parts = EDITION.split(place)
    named = [
        (edition, re.sub(r"[,;]?( and)? *$", "", text if "(" in text else text.rstrip(")")))
        for edition, text in zip(parts[::2], parts[1::2], strict=True)
    ]
    found: list[tuple[str, str]] = []
    for i, (edition, text) in enumerate(named):
        other = named[i + 1] if i + 1 < len(named) else ("", "")
        if edition == "A and B":
            found.append((text, SAME))
        elif edition == "A":
            kept = text.removesuffix(DROPPED).strip()
            dropped = DROPPED if kept != text else ""
            found.append((kept, other[1] if other[0] == "B" else dropped))
        elif i == 0 or named[i - 1][0] != "A":
            found.append((other[1] if other[0] == "A" else "", text))
    if [edition for edition, _ in named] == ["B", "A"]:
        return found[:1]
    return found


def natural(text: str) -> list[tuple[str, int]]:
    """A key for sorting, in which 10 comes after 9."""
    return [(word, int(number or 0)) for word, number in re.findall(r"(\D+)(\d*)", text)]


def short(source: Mapping[str, Any]) -> str:
    """How a source is called in text: authors and year."""
    return re.sub(r",? \".*", "", source["title"])


def uses(rule: Rule, source: str) -> bool:
    """Whether a rule is from a source; an explainer is not."""
    return any(paper.startswith(source) for paper in rule.papers)


PAPERS = "docs/generated/papers"


@cache
def row_pages() -> Mapping[str, str]:
    """{id: the page of papers that has the row}."""
    ledger = claims.ledger()
    return {row["id"]: key for key in claims.SOURCES for row in ledger[key]["rows"]}


def with_rows(text: str) -> str:
    """Markdown of a page of papers whose rows are links.

    >>> with_rows("as H5.6, not as B.99")
    'as [H5.6](timor.md#claim-h5-6), not as B.99'
    """

    def link(found: re.Match[str]) -> str:
        page = row_pages().get(found[0])
        return f"[{found[0]}]({page}.md#{anchor(found[0])})" if page else found[0]

    return re.sub(r"\b[A-Z]\d*\.\d+[a-z]?\b", link, text)


def statement(row: Mapping[str, Any]) -> str:
    """A row of the ledger, in full."""
    title = shorten(row["says"], TITLE, placeholder=" …")
    said = "" if title == row["says"] else f"{row['says']}.{PARAGRAPH}"
    lines = [
        f"({anchor(row['id'])})=\n### {title}: {row['verdict'].partition(',')[0]}\n",
        f"{said}**{row['id']}, {row['verdict']}.** *{claims.where(row)}*\n",
        f"**Found:** {with_rows(relinked(row['found'], 'docs', PAPERS))}.\n",
    ]
    if "command" in row:
        lines.append(f"```sh\n{row['command']}\n```\n")
    tests = row.get("tests", ())
    named = (test.split("::") for test in tests)
    shown_tests = ", ".join(f"[{name}](../../../proofs_tests/{file})" for file, name in named)
    run = " \\\n  ".join(f"proofs_tests/{test}" for test in tests)
    lines += [f"Tested by {shown_tests}.\n\n```sh\npytest {run}\n```\n"] if tests else []
    return "\n".join(lines) + "\n"
