"""What a shell completes: targets, checks, capabilities and rules.

Everything is imported when a shell asks. Bash cuts words at colons and equals signs: they are put
together again.
"""

import ast
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    split_arg_string,
)

EXAMPLES = ("examples.correct:verify", "examples.lossy:verify")
"""They come with the package."""
Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def completing(known: Callable[[str], Iterable[str]]) -> Complete:
    """What a shell asks: those of the known words that begin like an incomplete one."""

    def complete(
        context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(one) for one in known(incomplete) if one.startswith(incomplete)]

    return complete


@completing
def targets(incomplete: str) -> list[str]:
    from specref.adapters import IMPLEMENTATIONS

    file, colon, _ = incomplete.partition(":")
    module = file if file.endswith(".py") else f"{file.replace('.', '/')}.py"
    if colon and Path(module).is_file():
        return [f"{file}:{name}" for name in functions(Path(module))]
    place = Path(incomplete)
    folder = place if incomplete.endswith("/") else place.parent
    files = [f"{one}:" for one in sorted(folder.glob("*.py"))]
    deeper = [
        f"{one}/" for one in sorted(folder.glob("*/")) if not one.name.startswith((".", "_"))
    ]
    return [*IMPLEMENTATIONS, *EXAMPLES, *files, *deeper]


def functions(file: Path) -> list[str]:
    """The public functions and classes of a file, which is not run; none if it cannot be read."""
    try:
        body = ast.parse(file.read_text(encoding="utf-8")).body
    except (OSError, SyntaxError, ValueError):
        return []
    found = (n.name for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef))
    return [name for name in found if not name.startswith("_")]


@completing
def checks(incomplete: str) -> list[str]:
    from specref.conformance.checks import CHECKS

    return [*dict.fromkeys(str(one.stage) for one in CHECKS), *(one.id for one in CHECKS)]


@completing
def capabilities(incomplete: str) -> list[str]:
    """NAME=VALUE of every capability with words for values, and NAME= of the others."""
    from specref.report.listing import claims

    known = []
    for row in claims():
        words = row.values.split(", ")
        values = [f"{row.name}={word}" for word in words if word.isalnum()]
        known += values or [f"{row.name}="]
    return known


@completing
def rules(incomplete: str) -> Iterable[str]:
    from specref.rules import RULES

    return RULES


SOURCE = """\
%(complete_func)s() {
    local IFS=$'\\n' response type value
    response=$(env COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" \\
        %(complete_var)s=bash_complete $1)
    for completion in $response; do
        IFS=',' read type value <<< "$completion"
        if [[ $type == 'dir' ]]; then
            COMPREPLY=(); compopt -o dirnames
        elif [[ $type == 'file' ]]; then
            COMPREPLY=(); compopt -o default
        elif [[ $type == 'plain' ]]; then
            COMPREPLY+=($value)
        fi
    done
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[:/=] ]]; then compopt -o nospace; fi
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""
CUT = ":="


class WholeWords(BashComplete):
    """Bash, whose line is cut at blanks alone."""

    source_template = SOURCE

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor, and the part of one that stands at it."""
        line = os.environ["COMP_LINE"].encode()[: int(os.environ["COMP_POINT"])].decode()
        words = split_arg_string(line)
        incomplete = "" if line[-1:].isspace() else words.pop()
        return words[1:], incomplete

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """What may stand there, without what bash takes for words before it."""
        known = incomplete[: max(map(incomplete.rfind, CUT)) + 1]
        found = super().get_completions(args, incomplete)
        return [CompletionItem(one.value.removeprefix(known), one.type) for one in found]
