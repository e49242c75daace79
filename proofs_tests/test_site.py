"""The site is built once, without a warning; pages and public names are reached from its index.

Building it takes 20 seconds of CPU time. Without the packages of the extra `site` it is not run.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

import specref
from proofs_tests.helpers.pages import measured
from proofs_tests.pages import links
from proofs_tests.pages import site as pages
from proofs_tests.pages.claims import SOURCES
from proofs_tests.pages.console_blocks import ROOT
from proofs_tests.pages.links import Page, broken, read, targets
from specref.cli import COMMANDS
from specref.rules import RULES
from specref.zoo import ALL
from specref.zoo.entry import address

NEEDED = ("sphinx", "myst_parser", "furo", "sphinxcontrib.bibtex", "sphinx_click", "hypothesis")
WRITTEN = ("build", "dist", "site", "doctrees")
Build = Callable[..., subprocess.CompletedProcess]


def missing(name: str) -> bool:
    return find_spec(name.split(".")[0]) is None or find_spec(name) is None


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Build the site of a copy of docs; its other folders are those of the checkout."""
    if lacking := [name for name in NEEDED if missing(name)]:
        pytest.skip(f"not_run (no {', '.join(lacking)}: pip install '.[site]')")
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("generated"))
    for path in ROOT.iterdir():
        if path.name not in ("docs", *WRITTEN) and not path.name.startswith("."):
            (folder / path.name).symlink_to(path)

    def run(*options: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", *options]
        return subprocess.run(
            [*command, "-d", "doctrees", "docs", "site"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
            timeout=300,
        )

    run.folder = folder
    return run


@pytest.fixture(scope="module")
def built(build: Build) -> Path:
    """The folder of the site."""
    done = build()
    assert (done.returncode, done.stderr) == (0, "")
    return build.folder / "site"


PHONE = 390


@pytest.mark.parametrize(
    "page", ["index", "judge-your-sampler", "strata", "claims", "generated/rules/standard"]
)
def test_no_page_is_wider_than_a_phone(page: str, built: Path) -> None:
    """Wide tables and listings scroll by themselves."""
    file = built / f"{page}.html"
    found = measured(file.read_text(encoding="utf-8"), file.parent, PHONE)
    assert found["window"] == PHONE
    assert found["width"] <= PHONE


SEPARATOR = re.compile(r"\|[|:\s-]*-[|:\s-]*\|")


def tables(text: str) -> list[list[str]]:
    """The lines of each table of a page, without the one below the header."""
    lines = [*"".join(pages.FENCED.split(text)[::2]).splitlines(), ""]
    found = []
    for i, line in enumerate(lines):
        if SEPARATOR.fullmatch(line):
            end = next(j for j in range(i, len(lines)) if not lines[j].startswith("|"))
            found.append([lines[i - 1], *lines[i + 1 : end]])
    return found


def uneven(text: str) -> list[str]:
    """Lines of tables with more or fewer cells than their header, by `|` that is not escaped."""
    width = re.compile(r"(?<!\\)\|")
    return [
        line
        for lines in tables(text)
        for line in lines
        if len(width.findall(line)) != len(width.findall(lines[0]))
    ]


def reached(site: dict[Path, Page], index: Path) -> set[Path]:
    found, waiting = {index}, [index]
    while waiting:
        path = waiting.pop()
        new = {file for _, file, _ in targets(path, site[path]) if file in site} - found
        found |= new
        waiting += new
    return found


def test_every_page_and_name_is_reached_from_the_index(built: Path) -> None:
    site = read(built)
    pages_reached = reached(site, (built / "index.html").resolve())
    found = {str(path.relative_to(built.resolve())) for path in pages_reached}
    assert {f"{path.stem}.html" for path in (ROOT / "docs").glob("*.md")} <= found
    assert {f"generated/rules/{name}.html" for name in RULES} <= found
    assert {f"generated/papers/{source}.html" for source in SOURCES} <= found
    names = site[(built / "api.html").resolve()].links
    for name in specref.__all__:
        assert f"generated/api/specref.html#specref.{name}" in names
    commands = site[(built / "generated" / "cli.html").resolve()].ids
    assert {f"specref-{name}" for name in COMMANDS} <= commands


def test_no_link_leads_to_nothing(built: Path) -> None:
    assert broken(read(built)) == []


def test_tables_have_all_their_rows_and_cells(built: Path, build: Build) -> None:
    docs = build.folder / "docs"
    sources = sorted([*docs.glob("*.md"), *docs.glob("generated/**/*.md")])
    seen = 0
    for path in sources:
        text = path.read_text(encoding="utf-8")
        if path.name == "index.md":
            text = pages.beginning_of_readme()
        assert uneven(text) == []
        page = built / path.relative_to(docs).with_suffix(".html")
        rows = sum(map(len, tables(text)))
        assert (path, page.read_text(encoding="utf-8").count("<tr")) == (path, rows)
        seen += rows
    assert seen > 1000


def test_cells_that_are_cut_are_noticed() -> None:
    table = "| a | b |\n|---|---|\n| `p(a\\|a)` | |\n"
    assert tables(f"{table}\n|x| in text.\n") == [["| a | b |", "| `p(a\\|a)` | |"]]
    assert uneven(table) == []
    cut = table.replace("\\", "")
    assert uneven(cut) == ["| `p(a|a)` | |"]


def test_brackets_that_are_no_link_stay() -> None:
    text = "| a number in [0, 1) |\n| see [architecture.md](architecture.md) |\n"
    assert pages.relinked(text, "docs", "docs") == text.replace("[architecture.md]", "[]")


def test_links_that_lead_to_nothing_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<a href="other.html#here"></a><a href="other.html#there"></a><a href="no.html"></a>'
        '<img src="no.png"><a href="https://example.org/no"></a>'
        '<a href="tcp://host:1"></a><a href="mailto:somebody"></a>'
    )
    (tmp_path / "other.html").write_text('<p id="here"></p>')
    (tmp_path / "alone.html").write_text("")
    site = read(tmp_path)
    nowhere = ("no.html", "no.png", "other.html#there", "tcp://host:1")
    assert broken(site) == [f"index.html: {link}" for link in nowhere]
    names = {path.name for path in reached(site, (tmp_path / "index.html").resolve())}
    assert names == {"index.html", "other.html"}


def test_links_to_the_web_are_not_run_where_nothing_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "index.html"
    assert links.main(str(tmp_path)) == 2
    page.write_text('<a href="https://example.org/no"></a><a href="#here" id="here"></a>')
    monkeypatch.setattr(links, "answers", lambda host: False)
    assert links.main(str(tmp_path)) == 2
    assert "not_run (none of example.org answers)" in capsys.readouterr().out
    monkeypatch.setattr(links, "answers", lambda host: host == "example.org")
    assert links.main(str(tmp_path)) == 0
    page.write_text('<a href="https://example.org/no"></a><a href="#here"></a>')
    assert links.main(str(tmp_path)) == 1
    assert "index.html: #here" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (links.urllib.error.HTTPError("", 403, "", None, None), True),
        (links.urllib.error.URLError("no such host"), False),
        (TimeoutError(), False),
    ],
)
def test_what_answers_with_an_error_answers(
    error: OSError, said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(url: str, timeout: float) -> None:
        raise error

    monkeypatch.setattr(links.urllib.request, "urlopen", refused)
    assert links.answers("example.org") == said


def test_no_picture_is_left_to_the_system(built: Path) -> None:
    page = (built / "pictures.html").read_text(encoding="utf-8")
    assert "<picture" not in page + (built / "index.html").read_text(encoding="utf-8")
    assert page.count("only-light") == page.count("only-dark") > 3


def test_places_of_the_zoo_and_papers_are_links(built: Path) -> None:
    text, links = (
        (built / "zoo.html").read_text(),
        read(built)[(built / "zoo.html").resolve()].links,
    )
    shown = [entry for entry in ALL.values() if f"{entry.id}<" in text]
    assert shown
    for entry in shown:
        assert {address(cite) for cite in entry.cites} <= links
    assert "https://arxiv.org/abs/2505.12398" in Page(built / "multi-draft.html").links


@pytest.mark.deep
def test_a_broken_link_and_a_page_out_of_reach_end_the_build(built: Path, build: Build) -> None:
    docs = build.folder / "docs"
    with (docs / "faq.md").open("a") as page:
        page.write("\n[nowhere](nowhere.md)\n")
    (docs / "alone.md").write_text("# Alone\n")
    done = build("-b", "dummy")
    assert done.returncode == 1
    assert "cross-reference target not found: 'nowhere.md'" in done.stderr
    assert re.search(r"alone\.md.*isn't included in any toctree", done.stderr)


def test_papers_of_rules_are_in_the_bibliography() -> None:
    for rule in RULES.values():
        for paper in rule.papers:
            assert "{cite:p}" in pages.cited(paper) or paper == "the definition"
    assert pages.cited("Sun et al. 2024 (SpecHub)").endswith("{cite:p}`sun2024spechub`")
    assert pages.cited("Sun et al. 2024, Algorithm 2").endswith("{cite:p}`sun2024block`")
    assert pages.cited("Nobody et al. 1900") == "Nobody et al. 1900"


def test_pages_of_rules_show_what_the_rule_does() -> None:
    page = pages.rule_page(RULES["standard"])
    assert "a total variation of 0 between" in " ".join(page.split())
    assert "specref prove specref.algorithms.standard:step\n" in page
    page = pages.rule_page(RULES["companion-published"])
    assert "a total variation of 1/9 between" in " ".join(page.split())
    assert "| lossless | **no**: published, and refuted |" in page


def test_pages_of_rules_say_when_to_take_them_and_have_no_empty_part() -> None:
    assert pages.WHEN.keys() == RULES.keys()
    for name in ("autoregressive", "spechub"):
        page = pages.rule_page(RULES[name])
        assert f"| when to take it | {pages.WHEN[name]} [Which rule?](" in page
        assert not re.search(r"^## .*\n\s*^## ", page, flags=re.MULTILINE)


def test_papers_by_authors_and_year_have_addresses() -> None:
    found = pages.named_papers("url")
    assert found.keys() == set(pages.named_papers().values())
    assert found["Sun et al. 2024"] != found["Sun et al. 2024 (SpecHub)"]
    assert all(one.startswith("https://arxiv.org/abs/") for one in found.values())


def test_pages_of_rules_say_what_their_papers_print() -> None:
    page = pages.rule_page(RULES["standard"])
    assert "yes, as listed here; as printed in Timor et al. 2025 **no**: [H5.2](" in page
    assert "**no**" not in pages.is_lossless_said(RULES["block"])
    ledger = pages.tomllib.loads(pages.claims.LEDGER.read_text(encoding="utf-8"))
    verdicts = {row["id"]: row["verdict"] for _, row in pages.claims.rows(ledger)}
    for source in SOURCES:
        for rule, ids in ledger[source].get("as_printed", {}).items():
            assert RULES[rule].lossless
            assert {verdicts[id_] for id_ in ids} <= {
                "false as printed",
                "false as printed, repaired",
            }
            said = pages.is_lossless_said(RULES[rule])
            assert all(f"papers/{source}.md#claim-" in said and f"[{id_}]" in said for id_ in ids)


def test_what_a_paper_says_in_short_links_to_its_rows() -> None:
    ledger = pages.tomllib.loads(pages.claims.LEDGER.read_text(encoding="utf-8"))
    page = pages.paper_page("timor", ledger["timor"], ledger["verdicts"])
    (short,) = (line for line in page.splitlines() if line.startswith("**In short:**"))
    ids = re.findall(r"[A-Z]\d\.\d+", ledger["timor"]["in_short"])
    assert len(ids) == 17
    for id_ in ids:
        assert f"[{id_}](timor.md#claim-{id_.lower().replace('.', '-')})" in short


def test_every_place_of_a_paper_with_two_editions_is_found_in_both_numberings() -> None:
    ledger = pages.tomllib.loads(pages.claims.LEDGER.read_text(encoding="utf-8"))
    index = pages.by_place(ledger["timor"])
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in index.splitlines()]
    rows = {(a, b): ids for a, b, ids in (line for line in lines if len(line) == 3)}
    assert "[H3.23](#claim-h3-23)" in rows["Lemma 3.3", "Lemma 3.1"]
    assert "[T.7](#claim-t-7)" in rows["App. F", "Table 11"]
    assert rows["Table 7", "(dropped in B)"] == "[T.3b](#claim-t-3b) not testable here"
    assert {f"Table {n}" for n in range(2, 9)} < {a for a, b in rows}
    assert {f"Table {n}" for n in range(1, 12)} < {b for a, b in rows}
    assert rows["", "Alg. 1 to 5"].startswith("not covered: ")
    assert {b for a, b in rows if "Alg." in a} == {""}, "no listing of B was read"
    assert rows["Table 3", ""].startswith("not covered: ")
    assert not any(a.endswith(")") or b.endswith("3)") for a, b in rows)
    for row in ledger["timor"]["rows"]:
        beside = row["place"].startswith("not in the paper") and "A" not in row["place"]
        assert (f"[{row['id']}](" in index) != beside, row["place"]
    assert "| each figure by its number | not covered: " in pages.by_place(ledger["ngrammys"])
    assert "| Table 2 | [V.15](#claim-v-15) false as printed |" in (
        pages.by_place(ledger["verification"])
    )
    assert "by number | not covered: " in pages.by_place(ledger["explainer"])
    assert pages.by_place({"rows": ledger["explainer"]["rows"]}) == ""


def test_modules_have_their_own_paths() -> None:
    pages.api_page("specref.algorithms")
    assert pages.path_of("specref.algorithms", "slrs") == "specref.algorithms.text.slrs"
    assert pages.path_of("specref.algorithms", "decode") == "specref.algorithms.decode"
    for module in ("specref", *pages.api.MODULES):
        shown = re.findall(r"^\.\. py:module:: (.*)$", pages.api_page(module), re.M)
        assert all(find_spec(name) for name in shown)


def test_pictures_follow_the_theme() -> None:
    picture = (
        '<picture>\n  <source media="(prefers-color-scheme: dark)" srcset="docs/dark.svg">\n'
        '  <img alt="a" src="docs/light.svg" width="9">\n</picture>'
    )
    assert pages.relinked(picture, "", "docs") == (
        '<img class="only-light" alt="a" src="light.svg" width="9">\n'
        '<img class="only-dark" alt="a" src="dark.svg" width="9">'
    )


def test_every_statement_is_on_the_page_of_its_paper() -> None:
    ledger = pages.tomllib.loads(pages.claims.LEDGER.read_text(encoding="utf-8"))
    for source in SOURCES:
        page = pages.paper_page(source, ledger[source], ledger["verdicts"])
        judged, others = page.split(f"## {pages.NOT_COVERED}")
        for row in ledger[source]["rows"]:
            part = others if row["verdict"] == pages.claims.UNTESTED else judged
            title = f"### {row['id']}: {row['verdict']}"
            assert f"{title}\n\n*{row['place']}*\n\n{row['says']}.\n" in part
            found = part.split(title)[1].split("**Found:** ")[1].split(".\n")[0]
            unlinked = re.compile(r"\[([^]]*)\]\([^)]*\)")
            assert unlinked.sub(r"\1", found) == unlinked.sub(r"\1", row["found"])


def test_no_docstring_of_a_property_is_read_as_a_type(built: Path) -> None:
    """Napoleon takes what is before a colon for one."""
    pages_of_names = list((built / "generated" / "api").glob("*.html"))
    assert len(pages_of_names) > 10
    for page in pages_of_names:
        assert not re.search(r'class="field-\w+">Type', page.read_text(encoding="utf-8")), page
