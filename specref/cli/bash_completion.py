"""Completion in bash, which cuts words at colons and equals signs: they are put together again."""

import os

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    split_arg_string,
)

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


def install() -> None:
    """Have it complete the commands of this process.

    Examples
    --------
    >>> from click.shell_completion import get_completion_class
    >>> install()
    >>> get_completion_class("bash").__name__
    'WholeWords'
    """
    add_completion_class(WholeWords)
