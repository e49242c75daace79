"""The command line: a file a command, those of wings by the table of `specref.wings`.

A command is imported when it is used: so `--help`, and every command, starts fast.
"""

import re
from collections.abc import Sequence
from importlib import import_module

import click

from specref import __version__
from specref.cli.group import OneLineErrors
from specref.cli.options import no_color_option
from specref.wings import COMMANDS_OF_WINGS, registered

__all__ = ["main"]

COMMANDS = {
    "check": "Test whether YOUR sampler, decode loop or engine is lossless, and which bug it has.",
    "replay": "Run a saved failing case again.",
    "init": "Write a pytest file for YOUR sampler, or a program in another language.",
    "prove": "Prove or refute YOUR verification rule, exactly; with --all those of the project.",
    "list": "List capabilities, checks, contracts, adapters and rules.",
    "plan": "How many samples does a verdict need? Which lookahead is fastest?",
    "doctor": "Show installed optional parts, and how to get the others.",
    **COMMANDS_OF_WINGS,
}
GROUPS = {
    "Test your code": ("check", "compare", "replay", "init"),
    "Prove a rule": ("prove",),
    "Help and planning": ("list", "plan", "doctor"),
}
OTHERS = "Two models, and research"
FORMER = {"write": ("init",), "verify": ("prove", "--all")}
"""Names that commands had, which the help does not show."""

ADDRESSES = ("http://", "https://")
"""A TARGET of `check` that begins so is a server, which another command tests."""
BARE = re.compile(r"[\w.-]+:\d+(/\S*)?$")
"""An address without http://, which that command refuses; no function is named by digits."""


class ImportedWhenUsed(OneLineErrors):
    """Knows the commands by their names and first lines, and imports the one that is used."""

    def list_commands(self, context: click.Context) -> list[str]:
        brought = (name for name in registered("commands") if " " not in name)
        return [*dict.fromkeys((*COMMANDS, *brought))]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if " " in name:
            return None
        if name in registered("commands"):
            return _uncolourable(registered("commands")[name].load())
        if name not in COMMANDS:
            return None
        module = name.replace("-", "_")
        found = getattr(import_module(f"{__name__}.{module}"), f"{module}_command")
        return _uncolourable(found)

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] == "check" and _is_of_a_server(args[1:]):
            return "check", _uncolourable(registered("commands")["check server"].load()), args[1:]
        return super().resolve_command(context, [*FORMER.get(args[0], args[:1]), *args[1:]])

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        names = self.list_commands(context)
        grouped = {name for group in GROUPS.values() for name in group}
        others = tuple(name for name in names if name not in grouped)
        for title, group in (*GROUPS.items(), (OTHERS, others)):
            with formatter.section(title):
                # The widest name of all, so that the groups are aligned.
                formatter.write_dl([(f"{name:12}", self._told(context, name)) for name in group])

    def _told(self, context: click.Context, name: str) -> str:
        """A command in a sentence; those of other packages are imported for theirs."""
        command = None if name in COMMANDS else self.get_command(context, name)
        return COMMANDS[name] if command is None else command.get_short_help_str(limit=200)


def _is_of_a_server(given: Sequence[str]) -> bool:
    """Whether what follows `check` is of a server: by an address, or by the option for one."""
    return (
        any(one.startswith(ADDRESSES) for one in given)
        or any(one.partition("=")[0] == "--plain" for one in given)
        or any(BARE.match(one) for one in given[:1])
    )


def _uncolourable(command: click.Command) -> click.Command:
    if not any(one.name == "no_color" for one in command.params):
        command.params.append(no_color_option())
    return command


@click.group(
    cls=ImportedWhenUsed,
    commands=[click.Command(name) for name in COMMANDS],
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, "-V", "--version")
def main() -> None:
    """Test and prove that speculative decoding is lossless.

    Exit codes: 0 everything holds, 1 a violation was found, 2 misuse or not run,
    130 interrupted.

    Bash completes commands, targets, checks and rules after
    eval "$(_SPECREF_COMPLETE=bash_source specref)".
    """
