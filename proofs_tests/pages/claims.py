"""docs/claims.md: what the sources state, verdict by verdict, from docs/claims.toml.

Run from the root of a checkout:

    python -m proofs_tests.pages.claims

With SPECREF_PAPERS=FOLDER, a folder of the texts, it also checks the lines that rows name.
"""

import ast
import hashlib
import os
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from proofs_tests.pages.console_blocks import ROOT

LEDGER = ROOT / "docs" / "claims.toml"
PAGE = ROOT / "docs" / "claims.md"
SOURCES = ("timor", "ngrammys", "verification", "speculative", "explainer")
PUBLIC = "speculative"
"""The source whose rows name no lines: it is public, and `texts` has none of it."""
UNTESTED = "not testable here"
FOLDER = "SPECREF_PAPERS"
BY_ROW = "claims/"
"""Where a test is named by its row, so that the page names the file alone."""
DIGITS = 12
"""Of a hash; its 48 bits tell apart any lines that a text may have."""
HEAD = """# Claims

What five papers and texts state about speculative decoding, with a verdict on each statement.
specref enumerated statements in fractions, simulated them, or compared them with the source's own
figures.

The ten most important findings, each with an example. T and D are the vocabularies of target and
draft model, p and q their distributions, and TV is total variation:

"""
READ = """
## How to read the tables

* Statements are in our words. `001:264` is line 264 of the text 001.
* A verdict covers what the tests of its row cover: grids and random toy models, unless the row
  says more. What is proved for every p and q is [on record](records/index.md).
* In examples p and q hold after every context, unless a row says more.

"""
EXAMPLES = """
Statements of other papers whose rules specref has (Sun et al. 2024, SpecTr, SpecInfer, …) were not
examined one by one.

## Commands

The first line runs the tests of row H5.2. Take the file and the number of another row for its
tests; all need `pip install -e '.[strategies,pytest]'`. The other lines show what some rows state.
If the [package](records/vocabularies.md) of a vocabulary is not installed,
`specref vocabularies` says `not_run`.

<!-- not run (specref prove specref.zoo.standard): prove-a-rule.md runs it -->
<!-- not run (specref vocabularies): it reads packages that the tests do not all install -->
<!-- not run (python -m pytest): the tests are run as they are -->
```sh
python -m pytest proofs_tests/claims/test_timor.py -k h5_2_   # row H5.2
{commands}
```
"""
FOOT = """
*`python -m proofs_tests.pages.claims` writes this page from [claims.toml](claims.toml), which has
a hash of each line that a row names. If `SPECREF_PAPERS` names a folder of the texts, the command
checks these lines.*
"""
EXIT_CODES = {"specref prove": "   # exit code 1: lossy"}


@cache
def ledger() -> dict[str, Any]:
    """docs/claims.toml; not to be changed."""
    return tomllib.loads(LEDGER.read_text(encoding="utf-8"))


def rows(ledger: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each row, with the name of its source."""
    for source in SOURCES:
        for row in ledger[source]["rows"]:
            yield source, row


@cache
def tests_of(path: Path) -> frozenset[str]:
    """The names of the test functions of a file, without importing it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


def folder() -> Path | None:
    """The folder of the texts, if one is named."""
    named = os.environ.get(FOLDER)
    return Path(named) if named else None


def texts(ledger: Mapping[str, Any], folder: Path) -> dict[str, list[str]]:
    """{name: lines} of each text."""
    return {
        name: (folder / file).read_text(encoding="utf-8").split("\n")
        for name, file in ledger["texts"].items()
    }


def reference(text: str, lines: Sequence[str], first: int, last: int) -> str:
    """Lines of a text, as a row names them.

    Examples
    --------
    >>> reference("001", ["a", "b", "c"], 1, 1), reference("001", ["a", "b", "c"], 2, 3)
    ('001:1:ca978112ca1b', '001:2-3:6c516cfc306e')
    """
    told = "\n".join(lines[first - 1 : last])
    where = str(first) if first == last else f"{first}-{last}"
    return f"{text}:{where}:{hashlib.sha256(told.encode()).hexdigest()[:DIGITS]}"


def wrong_lines(ledger: dict[str, Any], folder: Path) -> list[str]:
    """References of rows that are not those of the texts in a folder."""
    read = texts(ledger, folder)
    wrong = []
    for _, row in rows(ledger):
        for named in row.get("lines", ()):
            text, where, _ = named.split(":")
            first, _, last = where.partition("-")
            if named != reference(text, read[text], int(first), int(last or first)):
                wrong.append(f"{row['id']}: {named}")
    return wrong


def page(ledger: dict[str, Any]) -> str:
    """The whole page."""
    counts = Counter(row["verdict"] for _, row in rows(ledger))
    lines = [
        f"1. **{one['says'].rstrip('.')}**. {one['example']} "
        f"({', '.join(map(_link, one['rows']))})\n"
        for one in ledger["findings"]
    ]
    lines.append(READ)
    lines += ["| verdict | rows | |\n| --- | --- | --- |\n"]
    lines += [
        f"| {name} | {counts[name]} | {told} |\n" for name, told in ledger["verdicts"].items()
    ]
    commands = [row["command"] for _, row in rows(ledger) if "command" in row]
    shown = [
        command + EXIT_CODES.get(" ".join(command.split()[:2]), "")
        for command in dict.fromkeys(commands)
    ]
    lines.append(EXAMPLES.format(commands="\n".join(shown)))
    for source in SOURCES:
        told = ledger[source]
        name, _, title = told["title"].partition(' "')
        lines.append(f"\n## {name.rstrip(',')}\n\n")
        lines.append(f"[{title.rstrip(chr(34))}]({told['link']}). {told['note']}\n\n")
        lines.append("| row | verdict | statement | where | found | tests |\n")
        lines.append("| --- | --- | --- | --- | --- | --- |\n")
        lines += [_line(row) for row in told["rows"]]
        lines += [f"\n{line}\n" for line in not_covered(told)]
    lines.append(FOOT)
    return HEAD + "".join(lines)


def not_covered(source: dict[str, Any]) -> list[str]:
    """Tables and figures that no row is about, and why."""
    return [
        f"{one['place']}: not covered, {one['why']}."
        for one in source.get("places", ())
        if "why" in one
    ]


def where(row: Mapping[str, Any]) -> str:
    """The place of a row, with lines of the text.

    Examples
    --------
    >>> where({"place": "ch. 1", "lines": ["004:93:ab", "004:95-97:cd", "001:3:ef"]})
    'ch. 1 (004:93, 95-97; 001:3)'
    """
    found: dict[str, list[str]] = {}
    for named in row.get("lines", ()):
        text, lines, _ = named.split(":")
        found.setdefault(text, []).append(lines)
    told = "; ".join(f"{text}:{', '.join(lines)}" for text, lines in found.items())
    return f"{row['place']} ({told})" if told else str(row["place"])


def anchor(id_: str) -> str:
    """What links to a row end in, here and on the site.

    >>> anchor("H5.2")
    'claim-h5-2'
    """
    return f"claim-{id_.lower().replace('.', '-')}"


def _link(id_: str) -> str:
    return f"[{id_}](#{anchor(id_)})"


def _line(row: dict[str, Any]) -> str:
    found = row["found"] + (f"; `{row['command']}`" if "command" in row else "")
    named = dict.fromkeys(
        (file, Path(file).stem.removeprefix("test_") if file.startswith(BY_ROW) else name)
        for file, name in (test.split("::") for test in row.get("tests", ()))
    )
    tests = ", ".join(f"[{shown}](../proofs_tests/{file})" for file, shown in named)
    marked = f'<a id="{anchor(row["id"])}"></a>{row["id"]}'
    cells = (marked, f"**{row['verdict']}**", row["says"], where(row), found, tests)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def main() -> int:
    """Write the page, and check lines where there are texts."""
    PAGE.write_text(page(ledger()), encoding="utf-8")
    at = folder()
    if at is None:
        print(f"lines of the texts: not run ({FOLDER} names no folder of them)")
        return 0
    wrong = wrong_lines(ledger(), at)
    named = sum(len(row.get("lines", ())) for _, row in rows(ledger()))
    print(
        f"lines of the texts: {named - len(wrong)} of {named} references are theirs",
        *wrong,
        sep="\n",
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
