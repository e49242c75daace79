"""docs/claims.md: what the sources state, verdict by verdict, from docs/claims.toml.

Run from the root of a checkout:

    python -m proofs_tests.pages.claims
"""

import ast
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from proofs_tests.pages.console_blocks import ROOT

LEDGER = ROOT / "docs" / "claims.toml"
PAGE = ROOT / "docs" / "claims.md"
SOURCES = ("timor", "ngrammys", "verification", "explainer")
UNTESTED = "not testable here"
HEAD = """# Claims

What four sources state about speculative decoding, and what came of each statement when it was
enumerated in fractions, simulated, or held against their own figures. Written from
[claims.toml](claims.toml) by `python -m proofs_tests.pages.claims`; a test holds rows and tests
together. Statements are in our words. A verdict reaches as far as the tests of its row: grids and
random toy models, unless it says more. What is proved for every p and q is in
[everywhere_rules.md](everywhere_rules.md) and [dominance.md](dominance.md). What a sampler
claims of itself, `--claim`, is another thing: `specref list claims`.

"""
EXAMPLES = """
Statements of other papers whose rules are here (Sun et al. 2024, SpecTr, SpecInfer, …) were not
examined one by one. Tests are named by the row, and on the site by the page of its source.
All need `pip install -e '.[strategies,pytest]'`. The first line runs those of row H5.2, and with
another file and number those of another row; the others show what some rows state:

<!-- not run (specref prove): README shows it -->
<!-- not run (specref vocabularies): README runs it -->
<!-- not run (python -m pytest): the tests are run as they are -->
```sh
python -m pytest proofs_tests/claims/test_timor.py -k h5_2_   # row H5.2
{commands}
```
"""
EXIT_CODES = {"specref prove": "   # exit code 1: lossy"}


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


def page(ledger: dict[str, Any]) -> str:
    """The whole page."""
    counts = Counter(row["verdict"] for _, row in rows(ledger))
    lines = ["| verdict | rows | |\n| --- | --- | --- |\n"]
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
        if "in_short" in told:
            lines.append(f"**In short:** {told['in_short']}\n\n")
        lines.append("| row | verdict | statement | where | found | tests |\n")
        lines.append("| --- | --- | --- | --- | --- | --- |\n")
        lines += [_line(row) for row in told["rows"]]
        lines += [f"\n{line}\n" for line in not_covered(told)]
    return HEAD + "".join(lines)


def not_covered(source: dict[str, Any]) -> list[str]:
    """Tables and figures that no row is about, and why."""
    return [
        f"{one['place']}: not covered, {one['why']}."
        for one in source.get("places", ())
        if "why" in one
    ]


def _line(row: dict[str, Any]) -> str:
    found = row["found"] + (f"; `{row['command']}`" if "command" in row else "")
    tests = ", ".join(
        f"[{name}](../proofs_tests/{file})"
        for file, name in (test.split("::") for test in row.get("tests", ()))
    )
    cells = (row["id"], f"**{row['verdict']}**", row["says"], row["place"], found, tests)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(tomllib.loads(LEDGER.read_text(encoding="utf-8"))), encoding="utf-8")
