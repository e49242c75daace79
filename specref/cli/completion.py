"""What a shell completes: targets, checks, capabilities and rules.

Everything is imported when a shell asks.
"""

import ast
from pathlib import Path

import click
from click.shell_completion import CompletionItem

EXAMPLES = ("examples.correct:verify", "examples.lossy:verify")
"""They come with the package."""


def targets(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Registered names, and functions of Python files.

    Examples
    --------
    >>> [one.value for one in targets(None, None, "examples.c")]
    ['examples.correct:verify']
    >>> [one.value for one in targets(None, None, "specref.examples.correct:")]
    ['specref.examples.correct:verify']
    """
    from specref.adapters import IMPLEMENTATIONS

    file, colon, _ = incomplete.partition(":")
    module = file if file.endswith(".py") else f"{file.replace('.', '/')}.py"
    if colon and Path(module).is_file():
        return _starting([f"{file}:{name}" for name in functions(Path(module))], incomplete)
    place = Path(incomplete)
    folder = place if incomplete.endswith("/") else place.parent
    files = [f"{one}:" for one in sorted(folder.glob("*.py"))]
    deeper = [
        f"{one}/" for one in sorted(folder.glob("*/")) if not one.name.startswith((".", "_"))
    ]
    return _starting([*IMPLEMENTATIONS, *EXAMPLES, *files, *deeper], incomplete)


def functions(file: Path) -> list[str]:
    """The public functions and classes of a file, which is not run; none if it cannot be read."""
    try:
        body = ast.parse(file.read_text(encoding="utf-8")).body
    except (OSError, SyntaxError, ValueError):
        return []
    found = (n.name for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef))
    return [name for name in found if not name.startswith("_")]


def checks(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Ids of checks, and their stages."""
    from specref.conformance.checks import CHECKS

    return _starting(
        [*dict.fromkeys(str(one.stage) for one in CHECKS), *(one.id for one in CHECKS)], incomplete
    )


def capabilities(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """NAME=VALUE of every capability with words for values, and NAME= of the others.

    Examples
    --------
    >>> [one.value for one in capabilities(None, None, "ragged=")]
    ['ragged=true', 'ragged=false']
    """
    from specref.report.listing import claims

    known = []
    for row in claims():
        words = row["values"].split(", ")
        known += [f"{row['name']}={word}" for word in words if word.isalnum()] or [
            f"{row['name']}="
        ]
    return _starting(known, incomplete)


def rules(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of rules."""
    from specref.rules import RULES

    return _starting(list(RULES), incomplete)


def _starting(known: list[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(one) for one in known if one.startswith(incomplete)]
