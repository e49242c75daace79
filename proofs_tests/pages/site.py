"""What the site has beside docs/*.md, written when it is built: rules, papers, API, references.

docs/conf.py calls `write`, and `relinked` for each page. Nothing of this is committed. Parts of
pages of docs are in built.py.
"""

import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from textwrap import shorten
from typing import Any

import specref
from proofs_tests.pages import api, claims
from proofs_tests.pages.console_blocks import ROOT
from proofs_tests.pages.when import ACCEPTS, DIFFERS, PICTURED, WHEN
from specref import Model, Vocabulary, is_lossless
from specref.chance import Replayed, Traced, enumerate_paths, exact_distribution, shown
from specref.cli import COMMANDS
from specref.models import iid_model
from specref.report.listing import SECTIONS, listing_of
from specref.report.listing import rules as listed_rules
from specref.rules import RULES, Rule
from specref.wings import registered
from specref.zoo import ALL

FENCED = re.compile(r"(^```.*?^```$)", flags=re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^][|]*)\]\(([^)\s:]+)\)")
PARAGRAPH = "\n\n"
TITLE = 64
"""Letters of a title, beside which a page's list of titles still reads."""
PICTURE = re.compile(
    r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">\s*'
    r'<img ([^>]*?)src="([^"]+)"([^>]*)>\s*</picture>'
)
"""Of the reader's system; the theme of the site has a button of its own."""
IMAGE = re.compile(r"\b(src|srcset)=\"([^\":]+)\"")
LOOKAHEAD = 2
"""Of the example of each rule."""
NOT_COVERED = "What is not covered, and why"
TEXTS = {
    "one": "the target's",
    "two": "any; nothing is drafted for a context that the draft model cannot spell",
    "two by text": "any two that can read each other's text",
}
RULE_PAGES = {
    Path(inspect.getsourcefile(listing_of(rule)) or "").relative_to(ROOT): name
    for name, rule in reversed(RULES.items())
}
"""{file of a listing: its rule}; of several, the first."""
PAGES_ELSEWHERE = {
    "ARCHITECTURE.md": "overview", "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changelog", "README.md": "../index",
    "docs/playground.html": "playground",
}  # fmt: skip


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
    yield "findings", described_page("findings", "Findings", "What a report may say.")
    yield "bugs", described_page("bugs", "Planted bugs", "What a diagnosis may name.")
    yield "playground", PLAYGROUND


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


def relinked(text: str, folder: str, page_folder: str) -> str:
    """Markdown whose links, written in one folder of the repository, work on a page in another.

    The file of a rule becomes the page of the rule, a folder becomes plain text, and any other
    file stays a file, which the site offers for download. A page that is named by its file is
    named by its title instead.

    >>> relinked("[a](../specref/algorithms/tli.py), [zoo.md](zoo.md#x)", "docs", "docs")
    '[a](generated/rules/tli.md), [](zoo.md#x)'
    >>> relinked("[vectors](specref/vectors/v1)", "", "docs/generated")
    'vectors'
    """

    def link(found: re.Match[str]) -> str:
        text, (target, hash_, anchor) = found[1], found[2].partition("#")
        path = Path(os.path.normpath(Path(folder, target)))
        outside = path.suffix == ".md" and str(path.parent) not in (".", "docs", "docs/records")
        if not target:
            return found[0]
        if Path(ROOT, path).is_dir() or outside:
            return text
        if path in RULE_PAGES:
            path = Path("docs/generated/rules", f"{RULE_PAGES[path]}.md")
        elif str(path) in PAGES_ELSEWHERE:
            path = Path("docs/generated", f"{PAGES_ELSEWHERE[str(path)]}.md")
        shown_text = "" if text.endswith(".md") else text
        return f"[{shown_text}]({os.path.relpath(path, page_folder)}{hash_}{anchor})"

    def image(found: re.Match[str]) -> str:
        path = os.path.normpath(Path(folder, found[2]))
        return f'{found[1]}="{os.path.relpath(path, page_folder)}"'

    parts = FENCED.split(text)
    for i in range(0, len(parts), 2):  # what is between fences
        parts[i] = LINK.sub(link, parts[i])
        parts[i] = IMAGE.sub(image, PICTURE.sub(by_theme, parts[i]))
    return "".join(parts)


def by_theme(found: re.Match[str]) -> str:
    """A picture of two, as the theme's button says."""
    dark, before, light, after = found.groups()
    return "\n".join(
        f'<img class="only-{name}" {before}src="{path}"{after}>'
        for name, path in (("light", light), ("dark", dark))
    )


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
        link = f"[{row['id']}](generated/papers/{source}.md#{anchor(row)})"
        page = page.replace(f"\n| {row['id']} |", f"\n| {link} |")
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


def rows_of(title: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    """A table."""
    lines = [title, ["---"] * len(title), *rows]
    escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in escaped)


# Rules


JOINT = ("block", "greedy-block")
"""Rules that keep as much as standard on the usual pair, and more on another."""


def pair(rule: Rule) -> tuple[Model, Model]:
    """The toy pair that a rule is shown on."""
    if rule.by_text:
        target = iid_model(Vocabulary("ab"), ["2/3", "1/3"])
        return target, iid_model(Vocabulary(["a", "b", "ab"]), ["1/4", "1/4", "1/2"])
    if rule.name in JOINT:
        two = Vocabulary("ab")
        return iid_model(two, ["1/3", "2/3"]), iid_model(two, ["2/3", "1/3"])
    even, odd = ["1/3", 0, "2/3"], ["1/2", "1/3", "1/6"]
    target = Model(Vocabulary("abc"), lambda context: odd if len(context) % 2 else even)
    drafter = Vocabulary("abc" if rule.same_vocabulary else "bcx")
    return target, iid_model(drafter, ["1/6", "1/3", "1/2"])


def rule_page(rule: Rule) -> str:
    """The page of a rule."""
    listing = listing_of(rule)
    module = listing if inspect.ismodule(listing) else sys.modules[listing.__module__]
    (told,) = (row for row in listed_rules() if row.name == rule.name)
    facts = {
        "from": "; ".join(cited(paper) for paper in rule.papers),
        "differs from the paper": DIFFERS.get(rule.name, "no difference is listed"),
        "vocabulary of the draft model": TEXTS[rule.vocabularies],
        "lossless": is_lossless_said(rule),
        "a verified draft token is accepted wherever p = q": "yes"
        if rule.accepts_equals
        else "no",
        "may be declared under the contracts": ", ".join(told.contracts) or "none",
        "when to use it": f"{WHEN.get(rule.name, '')} [Choose](../../choose-an-algorithm.md)",
        "statements about it": rows_about(rule),
        "published test vectors": "[yes](../../other-languages.md)" if rule.vectors else "no",
    }
    parts = [
        f"# {rule.name}\n\n*{told.text.rstrip('.')}.*\n",
        rows_of(("", ""), iter(facts.items())),
    ]
    said = [(inspect.getdoc(module) or "").partition(PARAGRAPH)[2]]
    said += [paragraphs(listing)] if listing is not module else []
    said = [one.removeprefix(told.text).lstrip() for one in said]
    if any(said):
        parts += ["## What it does, and why\n", *(f"{one}\n" for one in said)]
    return "\n".join(
        [
            *parts,
            formula(rule),
            example(rule),
            acceptance(rule),
            proofs(rule, listing),
            f"## Listing\n\n{included(module)}",
            bugs(rule),
        ]
    )


def formula(rule: Rule) -> str:
    """The acceptance formula of a rule, and a picture, of those that have one."""
    parts = []
    if rule.name in ACCEPTS:
        parts.append(f"## Acceptance formula\n\n$$\n{ACCEPTS[rule.name]}\n$$\n")
    if rule.name in PICTURED:
        picture, said = PICTURED[rule.name]
        parts += [
            f'<img class="only-{theme}" alt="{said}" width="640" '
            f'src="../../pictures/{picture}-{theme}.svg">\n'
            for theme in ("light", "dark")
        ]
    return "\n".join(parts)


def is_lossless_said(rule: Rule) -> str:
    """Whether a rule is lossless as specref lists it, and what is known of it as printed."""
    if not rule.lossless:
        return "**no**: published, and refuted"
    ledger = claims.ledger()
    told = "yes, as listed here"
    for key in claims.SOURCES:
        name, page = short(ledger[key]), f"../papers/{key}.md"
        by_id = {row["id"]: row for row in ledger[key]["rows"]}
        rows = [by_id[id_] for id_ in ledger[key].get("as_printed", {}).get(rule.name, ())]
        links = ", ".join(f"[{row['id']}]({page}#{anchor(row)})" for row in rows)
        if rows:
            told += f"; as printed in {name} **no**: {links}, in the editions that these rows name"
        elif uses(rule, name):
            told += f"; [verdicts on statements of {name}]({page})"
    return told


def rows_about(rule: Rule) -> str:
    """Links to the rows of the ledger that are about a rule."""
    ledger = claims.ledger()
    named = ledger["rules"].get(rule.name, ())
    links = (
        f"[{row['id']}](../papers/{source}.md#{anchor(row)}) {row['verdict']}"
        for source, row in claims.rows(ledger)
        if row["id"] in named
    )
    return "; ".join(links) or "none was examined"


def cited(paper: str) -> str:
    """A paper as the table of rules names it, with its entry in the bibliography."""
    keys = [key for key, name in named_papers().items() if name in paper]
    longest = [
        key
        for key in keys
        if not any(named_papers()[key] in named_papers()[o] and o != key for o in keys)
    ]
    return f"{paper} {{cite:p}}`{','.join(longest)}`" if longest else paper


def named_papers(field: str = "") -> Mapping[str, str]:
    """{key: how specref names it} of the bibliography; with `field`, {that name: the field}."""
    text = (ROOT / "docs" / "references.bib").read_text(encoding="utf-8")
    first = rf"\b{field}\s*=\s*\{{(.*?)\}}" if field else r"@\w+\{([\w-]+),"
    last = r".*?keywords\s*=\s*\{(.*?)\}"
    found: list[tuple[str, str]] = re.findall(first + last, text, flags=re.DOTALL)
    return {name: value for value, name in found} if field else dict(found)


def paragraphs(described: object) -> str:
    """A docstring up to its sections, or examples."""
    return re.split(r"\n\n(?=[^\n]+\n---+\n)", inspect.getdoc(described) or "")[0]


def included(described: object, *, whole: bool = True) -> str:
    """The source of a module or, with `whole` False, of a function."""
    path = os.path.relpath(inspect.getsourcefile(described) or "", ROOT / "docs/generated/rules")
    only = "" if whole else f":pyobject: {described.__qualname__}\n"  # type: ignore[attr-defined]
    return f"```{{literalinclude}} {path}\n:language: python\n{only}```\n"


def example(rule: Rule) -> str:
    """The rule on its toy pair: both laws, a traced path, and what all paths give."""
    target, drafter = pair(rule)

    def program(chance: Any) -> tuple[int, ...]:
        return rule.step(target, drafter, (), LOOKAHEAD, chance)

    paths = list(enumerate_paths(program))
    traces = [Traced(Replayed(path.choices)) for path in paths]
    for trace in traces:
        program(trace)
    # The likeliest of those that show most: both an acceptance and a rejection, if there are any.
    order = [(len({*verdicts(t)}), path.weight) for t, path in zip(traces, paths, strict=True)]
    best = max(range(len(paths)), key=order.__getitem__)
    proof = is_lossless(rule.step, target, drafter, lookahead=LOOKAHEAD)
    mean = expected_tokens(rule, target, drafter)
    many = "1 token" if mean == 1 else f"{mean} tokens"
    usual = RULES["standard"]
    if rule.same_vocabulary and rule is not usual:
        many += f" (standard: {expected_tokens(usual, target, drafter)})"
    rows = []
    for name, model in (("p", target), ("q", drafter)):
        tokens = ", ".join(model.vocabulary.tokens)
        first, second = (shown(model.next_token(context)) for context in ((), (0,)))
        every = first if first == second else f"{first} after an even number of tokens; {second}"
        rows.append((name, tokens, every))
    return f"""## On a toy pair

{rows_of(("", "tokens", "distribution of the next token"), iter(rows))}
One random path with {LOOKAHEAD} drafts, from the empty context, as `Traced` records it; tokens are
numbered from 0, each by its own vocabulary:

```text
{traces[best]}
block {paths[best].outcome}, probability {paths[best].weight}
```

Enumerated when this page was built: {len(paths)} random paths, {many} in expectation, and a
total variation of {proof.total_variation} between the completed block and the target.
"""


def expected_tokens(rule: Rule, target: Model, drafter: Model) -> Any:
    """The mean length of a block, by all random paths."""
    law = exact_distribution(lambda chance: rule.step(target, drafter, (), LOOKAHEAD, chance))
    return sum(len(block) * mass for block, mass in law.items())


def verdicts(trace: Traced) -> list[bool]:
    """What was accepted on a path, and what was not."""
    return [step.choice for step in trace.steps if isinstance(step.choice, bool)]


def acceptance(rule: Rule) -> str:
    """The closed form of what is accepted, and its value on the toy pair."""
    target, drafter = pair(rule)
    if rule.accepted_lengths:
        lengths = rule.accepted_lengths(target, drafter, (), LOOKAHEAD)
        formula = inspect.getclosurevars(rule.accepted_lengths).nonlocals.get("read")
        listed = formula or rule.accepted_lengths
        value = f"P(accepted length = 0), P(= 1), …: {', '.join(map(str, lengths))}"
    elif rule.accepts_first:
        first = rule.accepts_first(target.next_token(()), drafter.next_token(()))
        listed = getattr(rule.accepts_first, "func", rule.accepts_first)
        value = f"P(a draft of the first position is accepted): {first}"
    else:
        return "## Acceptance\n\nNo closed form is known to specref.\n"
    module = sys.modules[listed.__module__]
    above = inspect.getdoc(module) if module.__name__.startswith("specref.theory.") else None
    return f"""## Acceptance

On the pair above, in closed form: {value}. The closed form is this function of
`{listed.__module__}`:

{included(listed, whole=False)}
""" + (f"That module says: {above}\n" if above else "")


def proofs(rule: Rule, listing: object) -> str:
    """The commands that prove it."""
    target = f"{rule.step.__module__}:step" if not isinstance(rule.step, partial) else ""
    pairs = "" if rule.same_vocabulary else " --pairs all"
    command = (
        f"specref prove {target}{pairs}"
        if target
        else f"specref prove --all   # row {rule.name}; a minute on two cores"
    )
    return f"""## {"Prove it" if rule.lossless else "Refute it"}

```sh
{command}
specref prove --all --everywhere
```

The first enumerates toy pairs. The second is for every p and q over small vocabularies
([what that means](../../proofs-for-all-p-and-q.md));
[the page of all rules](../../records/everywhere_rules.md) has what it proved.
"""


def bugs(rule: Rule) -> str:
    """What the zoo plants into it."""
    entries = [entry for entry in ALL.values() if entry.rule == rule.name]
    if not entries:
        return "## Known bugs\n\nThe zoo has none for this rule.\n"
    rows = (
        (f"`{one.id}`", one.formula, "lossless" if one.lossless else "lossy", ", ".join(one.cites))
        for one in entries
    )
    return f"""## Known bugs, and rules that look like one

From [the zoo](../../records/zoo.md), where the checks that find each are listed:

{rows_of(("id", "formula", "distribution", "seen in"), rows)}"""


# Papers


def paper_page(key: str, source: Mapping[str, Any], meanings: Mapping[str, str]) -> str:
    """Every statement of a source; those without a verdict at the end, with the reason."""
    judged = [row for row in source["rows"] if row["verdict"] != claims.UNTESTED]
    others = [row for row in source["rows"] if row["verdict"] == claims.UNTESTED]
    overview = rows_of(
        ("row", "verdict", "statement", "where"),
        (
            (f"[{row['id']}](#{anchor(row)})", row["verdict"], row["says"], row["place"])
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
    told = {row["id"]: f"[{row['id']}](#{anchor(row)}) {row['verdict']}" for row in source["rows"]}
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
        return f"[{found[0]}]({page}.md#{anchor({'id': found[0]})})" if page else found[0]

    return re.sub(r"\b[A-Z]\d*\.\d+[a-z]?\b", link, text)


def anchor(row: Mapping[str, Any]) -> str:
    """The name of a row in links."""
    return f"claim-{row['id'].lower().replace('.', '-')}"


def statement(row: Mapping[str, Any]) -> str:
    """A row of the ledger, in full."""
    title = shorten(row["says"], TITLE, placeholder=" …")
    said = "" if title == row["says"] else f"{row['says']}.{PARAGRAPH}"
    lines = [
        f"({anchor(row)})=\n### {title}: {row['verdict'].partition(',')[0]}\n",
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
    "contracts": "How an implementation is called: `--contract NAME`. The guides have examples: "
    "[verify](../check-a-sampler.md), [ragged](../check-an-engine-sampler.md), "
    "[text](../check-an-engine.md).",
    "claims": "What an implementation says of itself: `--declare NAME=VALUE`, or `@capable`. What "
    "is not claimed is not checked, and counted as `not_applicable`.",
    "checks": "What the kit asks: `--only ID`. Stages are said in [the guide](../checks.md).",
    "names": "Implementations that are known by name: `specref check NAME`. Whether one is "
    "installed is said by `specref list names` on your machine.",
}
LEFT_OUT = ("installed", "missing")


def cli_page() -> str:
    """The commands, each with its help and options."""
    body = "\n".join(
        f".. click:: {place_of_command(name)}\n   :prog: specref {name}\n" for name in COMMANDS
    )
    return f"""# Command line

What `specref COMMAND --help` prints, of each command. Exit codes, where a command does not say
more: 0 everything holds, 1 a violation was found, 2 misuse or not run, 130 interrupted.

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


def described_page(section: str, title: str, what: str) -> str:
    """A section of `specref list` with a heading for each row: reports have its address."""
    parts = [f"# {title}\n\n{what} `specref list {section}` prints it."]
    for row in SECTIONS[section](None):
        lines = [row.text]
        if section == "bugs":
            kind = "Exact because" if row.lossless else "Fix"
            lines += [f"Rule: `{row.rule}`", f"Formula: {row.formula}"]
            lines += [f"{kind}: {row.fix}", *map("Seen in {}".format, row.seen_in)]
        parts.append(f"## {row.name}\n\n{PARAGRAPH.join(map(escaped, lines))}")
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
