"""What the site has beside docs/*.md, written when it is built: rules, papers, API, references.

docs/conf.py calls `write`, and `relinked` for each page. Nothing of this is committed. Parts of
pages of docs are in built.py.
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

import specref
from proofs_tests.pages import api, claims, measured
from proofs_tests.pages.claims import anchor
from proofs_tests.pages.console_blocks import ROOT
from proofs_tests.pages.links import PAGES_ELSEWHERE, PARAGRAPH, relinked, rows_of
from proofs_tests.pages.paper_pages import paper_page, short
from proofs_tests.pages.rule_pages import rule_page
from specref.cli import COMMANDS
from specref.report.listing import SECTIONS, BugRow, bugs, findings
from specref.rules import RULES
from specref.wings import registered
from specref.zoo import ALL
from specref.zoo.entry import PLACES


def write(folder: Path) -> None:
    """Write all pages into a folder, and delete what else is there; touch none that is as it was.

    * `folder`: A folder named `generated` beside the pages of docs.
    """
    wanted = {folder / f"{name}.md": text for name, text in pages()}
    for path, text in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for path in set(folder.rglob("*.md")) - wanted.keys():
        path.unlink()


def pages() -> Iterator[tuple[str, str]]:
    """(name, Markdown) of each page."""
    for file in ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        text = (ROOT / file).read_text(encoding="utf-8")
        yield PAGES_ELSEWHERE[file], relinked(text, "", "docs/generated")
    for rule in RULES.values():
        yield f"rules/{rule.name}", rule_page(rule)
    ledger = claims.ledger()
    for source in claims.SOURCES:
        yield f"papers/{source}", paper_page(source, ledger[source], ledger["verdicts"])
    yield "references", REFERENCES
    yield "cli", cli_page()
    for module in ("specref", *api.MODULES):
        yield f"api/{module}", api_page(module)
    for section in ("contracts", "claims", "checks", "names"):
        yield LISTED_AS.get(section, section), listing_page(section)
    yield "findings", findings_page()
    yield "bugs", bugs_page()
    yield "playground", PLAYGROUND
    for name, page in MEASURED.items():
        yield f"records/{name}", relinked(page(), "docs/records", "docs/generated/records")


MEASURED: Mapping[str, Callable[[], str]] = {
    "zoo": measured.zoo_page,
    "everywhere_zoo": measured.everywhere_zoo_page,
    "dominance": measured.dominance_of_all,
}
"""Pages of what is on record as JSON; in the repository, links lead to that, or to the zoo."""
REFERENCES = """# Papers that are named

Five sources have pages with a verdict on each statement; the others are named for their rules,
and were not examined statement by statement.

```{bibliography}
:all:
```
"""
PLAYGROUND = """# Playground

Drag p and q, choose a rule, and step through an iteration. It is
<a href="../playground.html">a page of its own</a>, too.

<iframe class="playground" src="../playground.html" title="Playground"></iframe>
"""
WAY_BACK = (
    '<p><a href="index.html" target="_top">specref</a> · '
    '<a href="glossary.html" target="_top">the words of this page</a></p>'
)
"""Of the playground as a page of its own; in a checkout there is no such page."""


def home() -> str:
    """README as the first page, without its list of pages, which the sidebar has."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return relinked(text.split("\n## Read on")[0], "", "docs")


def linked_rows(page: str) -> str:
    """docs/claims.md with links to the page of each source, and from rows to their place there."""
    ledger = claims.ledger()
    for source in claims.SOURCES:
        what = "tables, figures and sections" if "places" in ledger[source] else "statements"
        above = f"\n## {short(ledger[source])}\n\n"
        link = f"[Its {what}, one by one](generated/papers/{source}.md).\n\n"
        page = page.replace(above, above + link)
    for source, row in claims.rows(ledger):
        id_, here = row["id"], anchor(row["id"])
        there = f"generated/papers/{source}.md#{here}"
        page = page.replace(f'\n| <a id="{here}"></a>{id_} |', f"\n| [{id_}]({there}) |")
        page = page.replace(f"](#{here})", f"]({there})")
    return page


def linked_names(page: str) -> str:
    """docs/api.md with links from its names to their docstrings."""
    sections = re.split(r"^(## `specref[\w.]*`)$", page, flags=re.MULTILINE)
    for i in range(1, len(sections), 2):
        module = sections[i].strip("#` ")

        def role(found: re.Match[str], module: str = module) -> str:
            return f"| {{py:obj}}`{found[1]} <{path_of(module, found[1])}>` |"

        sections[i + 1] = re.sub(r"^\| `(\w+)` \|", role, sections[i + 1], flags=re.MULTILINE)
    return "".join(sections)


def path_of(module: str, name: str) -> str:
    """Where a public name is: a module by its own path, where a package only hands it on."""
    value = getattr(sys.modules.get(module), name, None)
    return value.__name__ if inspect.ismodule(value) else f"{module}.{name}"


# Reference


def api_page(module: str) -> str:
    """The public names of a module, by their docstrings."""
    top = set(specref.__all__)
    try:
        loaded = import_module(module)
    except ImportError as error:
        return f"# {module}\n\nNot shown: {error}. [](../../api.md) lists the names.\n"
    names = specref.__all__ if module == "specref" else api.own_names(loaded)
    names = [name for name in names if module == "specref" or name not in top]
    body = "\n".join(directive(module, name, getattr(loaded, name)) for name in sorted(names))
    return f"# {module}\n\n{inspect.getdoc(loaded) or ''}\n\n```{{eval-rst}}\n{body}\n```\n"


def directive(module: str, name: str, value: Any) -> str:
    """How autodoc shows a name."""
    kinds: list[tuple[Callable[[Any], bool], str]] = [
        (inspect.ismodule, "module"),
        (lambda x: inspect.isclass(x) and issubclass(x, BaseException), "exception"),
        (inspect.isclass, "class"),
        (inspect.isroutine, "function"),
        (lambda x: True, "data"),
    ]
    kind = next(kind for fits, kind in kinds if fits(value))
    options = {"class": ":members:", "exception": ":members:"}.get(kind, "")
    if kind == "module":
        path = value.__name__
        given = f"``{path}``, by ``from {module} import {name}``"
        return f".. py:module:: {path}\n\n{given}: {summary(value)}\n"
    if kind == "data":
        return f".. py:data:: {module}.{name}\n\n   {api.told(value)}\n"
    if inspect.isclass(value) and issubclass(value, Enum):
        options += "\n   :undoc-members:"
    return f".. auto{kind}:: {module}.{name}\n   {options}\n"


def summary(value: Any) -> str:
    """The first paragraph of a docstring, in one line."""
    return " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())


# Pages of `specref list` with another name on the site, where "claims" are those of papers.
LISTED_AS = {"claims": "capabilities"}
INTRODUCTIONS = {
    "contracts": "How specref calls your code: `--contract NAME`. The guides have examples: "
    "[verify](../check-a-sampler.md), [ragged](../check-an-engine-sampler.md), "
    "[text](../check-an-engine.md).",
    "claims": "What you declare of your code: `--declare NAME=VALUE`, or `@capable`. specref "
    "skips the checks of what you do not declare, and counts them as `not_applicable`.",
    "checks": "All checks, by id: `--only ID`. [Checks](../checks.md) explains their stages.",
    "names": "Implementations that specref knows by name: `specref check NAME`. "
    "`specref list names` says which of them are installed on your machine.",
}
LEFT_OUT = ("installed", "missing")


def cli_page() -> str:
    """The commands, each with its help and options."""
    body = "\n".join(
        f".. click:: {place_of_command(name)}\n   :prog: specref {name}\n" for name in COMMANDS
    )
    return f"""# Command line

What `specref COMMAND --help` prints. [Exit codes](../checks.md#exit-codes) are one list.

```{{eval-rst}}
{body}
```
"""


def place_of_command(name: str) -> str:
    """MODULE:NAME of a command, which may be one of a wing.

    >>> place_of_command("check"), place_of_command("psi")
    ('specref.cli.check:check_command', 'specref.contrib.vocabularies.psi_command:psi_command')
    """
    if name in registered("commands"):
        return registered("commands")[name].value
    module = name.replace("-", "_")
    return f"specref.cli.{module}:{module}_command"


def listing_page(section: str) -> str:
    """What `specref list SECTION` has, as a table."""
    rows = SECTIONS[section](None)
    titles = [key for key in vars(rows[0]) if key not in LEFT_OUT]
    cells = ([cell(getattr(row, title)) for title in titles] for row in rows)
    name = {"claims": "Capabilities", "names": "Registered implementations"}
    return f"""# {name.get(section, section.capitalize())}

{INTRODUCTIONS[section]} `specref list {section}` prints them, with `--json` for machines.

{rows_of(titles, cells)}"""


def findings_page() -> str:
    """What a report may say of a failure, with a heading for each: reports have its address."""
    parts = ["# Findings\n\nWhat a report says of a failure. `specref list findings` prints it."]
    parts += [f"## {row.name}\n\n{escaped(row.text)}" for row in findings()]
    return PARAGRAPH.join(parts) + "\n"


LETTERS = """p and q are the distributions of target and draft model, x is the drafted token, and
(v)+ is max(v, 0) for each token. p_i, q_i and x_i are those of position i, and n is the number of
draft tokens. u is a random number in [0, 1), and norm divides by the sum. A_i, R_i and h_i are
those of [block verification](../choose-an-algorithm.md#one-chain), p' and A those of
[traversal](rules/traversal.md), and psi that of
[drafts by text](../choose-an-algorithm.md#through-text)."""
WARPED = "standard with sampling parameters"


def bugs_page() -> str:
    """Planted bugs by their rule and their place in an iteration; look-alikes come last."""
    groups: dict[str, list[BugRow]] = {}
    for row in bugs():
        where = "Lossless look-alikes of" if row.lossless else "Bugs in"
        place = f": {PLACES[ALL[row.name].stage]}" * (not row.lossless)
        rule = WARPED if row.rule == "warped" else row.rule
        groups.setdefault(f"{where} {rule}{place}", []).append(row)
    parts = [
        "# Known bugs\n\nThe bugs that a report may name: first those of `standard`, in the order "
        "of an iteration, then those of other rules. Lossless rules that look like a bug come "
        "last. `specref list bugs` prints this list. [The zoo](records/zoo.md) says what finds "
        "each.",
        f"**Letters.** {LETTERS}",
    ]
    for title, rows in groups.items():
        parts.append(f"## {title}")
        for row in rows:
            kind = "Exact because" if row.lossless else "Fix"
            lines = [row.text, f"Formula: {row.formula}", f"{kind}: {row.fix}"]
            lines += [f"Seen in {', '.join(row.seen_in)}"] * bool(row.seen_in)
            parts.append(f"### {row.name}\n\n{PARAGRAPH.join(map(escaped, lines))}")
    return PARAGRAPH.join(parts) + "\n"


def escaped(text: str) -> str:
    """A text whose signs are no Markdown.

    >>> escaped("max(p_i - q_i, 0)*"), escaped("`rule`")
    ('max(p\\\\_i - q\\\\_i, 0)\\\\*', '`rule`')
    """
    return re.sub(r"([*_<>\[\]$#])", r"\\\1", text) if "`" not in text else text


def cell(value: Any) -> str:
    """A value of a listing."""
    if isinstance(value, bool):
        return "yes" if value else ""
    text = ", ".join(value) if isinstance(value, list) else str(value)
    return text.replace("$", "\\$")  # else a formula
