"""The words of what the program says: its messages, tables, help texts and reports.

Run from the root of a checkout, as `make docs` does:

    python -m proofs_tests.pages.displayed

They are the strings of specref that have a space, and the docstrings that the site shows
(`docstrings`). What stands in backticks, behind `--` or as the first word, in lower case, is a
name: errors begin with the argument.
"""

import ast
import re
import sys
from collections.abc import Iterator

from proofs_tests.pages import docstrings
from proofs_tests.pages.words import BANNED, ROOT

PUBLISHED = "specref/contrib/vectors/groups", "specref/contrib/vectors/flags.py"
"""Notes of the published vectors: they stay as they were published."""
NAMES = frozenset(
    {
        # what is passed, by the names of parameters and of keys
        "rng and coins are both None: expected one of them",
        "coins.final and coins.race are None: expected one of them",
        "without coins and lens",
        "neither coins nor lens is an optional parameter",
        ": expected a list of 'coins' and 'seed'",
        ": expected (target, drafter, context, lookahead)",
        ": expected the target, then the drafter",
        ": expected target and drafter",
        "TARGET DRAFTER",
        ", as the law",
        "by the exact distribution of the block, as it takes no coins",
        "an accepted length 0 …",
        ": expected None, since the law names it",
        "specref law",
        "{name of a law: its folder}.",
        # values in JSON, ids of pairs and paths, and names of streams of random numbers
        "lossy law",
        "biased coin",
        "swapped coin",
        "lower-casing drafter",
        "space-merging drafter",
        "llama.cpp, drafter's argmax against a draw of the target",
        "llama.cpp, drafter's argmax, temperature and top-p",
        "llama.cpp, drafter's argmax, temperature and top-k",
        "llama.cpp, drafter's argmax, repeat penalty",
        "equal coins",
        "permuted coins",
    }
)
NAMED = re.compile(r"`[^`]*`|\{[^{}]*\}|--\w[\w-]* \S+|\b\w+/[\w-]+")


def messages(source: str) -> Iterator[tuple[int, str]]:
    """The line and the text of each string that is shown."""
    tree = ast.parse(source)
    statements = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    for one in ast.walk(tree):
        if not isinstance(one, ast.Constant) or not isinstance(one.value, str):
            continue
        if id(one) not in statements and " " in one.value.strip():
            yield one.lineno, one.value


def complaints(source: str) -> Iterator[tuple[int, str]]:
    """The line, and what to write instead, of each private word in what is shown."""
    for line, text in messages(source):
        if text.strip() in NAMES:
            continue
        shown = NAMED.sub("", text)
        for pattern, instead in BANNED.items():
            for found in re.finditer(rf"\b{pattern}\b", shown, flags=re.IGNORECASE):
                if found.start() or not found.group().islower():
                    yield line, f'"{found.group()}": write {instead}'


def all_complaints() -> Iterator[str]:
    """Of every file of specref, with its address; then of the docstrings that are shown."""
    for path in sorted((ROOT / "specref").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(PUBLISHED):
            for line, complaint in complaints(path.read_text(encoding="utf-8")):
                yield f"{name}:{line}: {complaint}"
    yield from docstrings.all_complaints()


if __name__ == "__main__":
    found = list(all_complaints())
    sys.exit("\n".join(found) or 0)
