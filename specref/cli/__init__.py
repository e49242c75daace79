"""The command line: a file a command, those of wings by the table of `specref.wings`.

A command is imported when it is used: so `--help`, and every command, starts fast.
"""

import re
import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from specref import __version__
from specref.cli.group import INTERRUPTED, STARTED, Verdict, ended_as_by_ctrl_c, leave, misused
from specref.cli.options import no_color_option
from specref.optional import remedy_of
from specref.suggestions import did_you_mean
from specref.supervised import Notes
from specref.tracebacks import traceback_lines
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


class OneLineErrors(click.Group):
    """Reports misuse (exit code 2), Ctrl-C and SIGTERM (130) in one line on standard error."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        notes = options.get("obj")
        started = notes.began if isinstance(notes, Notes) else time.perf_counter()
        try:
            context = super().make_context(*arguments, **options)
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            misused(told(error))
        context.meta[STARTED] = started
        return context

    def invoke(self, context: click.Context) -> Any:
        try:
            with ended_as_by_ctrl_c():
                return super().invoke(context)
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            misused(told(error))
        except ModuleNotFoundError as error:
            remedy = remedy_of(error.name)
            misused(f"{error}: {remedy}" if remedy else str(error))
        except (ValueError, TypeError, ImportError, OSError) as error:
            misused(str(error))
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            leave(INTERRUPTED)
        except Verdict:
            raise
        except SystemExit as error:
            lines = "; ".join(line.strip() for line in traceback_lines(error))
            misused(f"judged code has raised SystemExit({error.code!r}){lines and ': '}{lines}")


def told(error: click.UsageError) -> str:
    """What is wrong with the words of a command, what was expected, and where help is."""
    command = error.ctx.command_path.replace("main", "specref", 1) if error.ctx else "specref"
    choices = getattr(getattr(getattr(error, "param", None), "type", None), "choices", None)
    if isinstance(error, click.BadParameter) and choices and error.param is not None:
        given = re.search(r"'(.*?)' is not (?:one of|a valid)", error.message)
        word = given[1] if given else ""
        is_option = isinstance(error.param, click.Option)
        name = error.param.opts[0] if is_option else error.param.human_readable_name
        known = list(map(str, choices))
        return f"{name} = {word!r}: expected one of {', '.join(known)}{did_you_mean(word, known)}"
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        near = did_you_mean(error.option_name, error.possibilities)
        near = near or f"; did you mean {error.possibilities[0]!r}?"
        return f"no such option {error.option_name!r}{near} (see {command} --help)"
    said = error.format_message().removesuffix(".")
    said = said.replace(". Did you mean", ": did you mean")
    argument = re.sub(r"^Invalid value for '(.*?)'", r"\1", said)
    said = f"{said[:1].lower()}{said[1:]}" if argument == said else argument  # a name stays
    return f"{said} (see {command} --help)"


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
    """The command with the option --no-color."""
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
