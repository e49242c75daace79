"""Misuse in one form: one line, what was expected, and what may have been meant."""

import re
import time
from typing import Any

import click

from specref.cli.group import INTERRUPTED, STARTED, Verdict, ended_as_by_ctrl_c, leave, misused
from specref.optional import remedy_of
from specref.suggestions import did_you_mean
from specref.supervised import Notes
from specref.tracebacks import traceback_lines

GIVEN = re.compile(r"'(.*?)' is not (?:one of|a valid)")


NEAREST = "; did you mean {!r}?"


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
        given = GIVEN.search(error.message)
        word = given[1] if given else ""
        is_option = isinstance(error.param, click.Option)
        name = error.param.opts[0] if is_option else error.param.human_readable_name
        known = list(map(str, choices))
        return f"{name} = {word!r}: expected one of {', '.join(known)}{did_you_mean(word, known)}"
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        near = did_you_mean(error.option_name, error.possibilities)
        said = (
            f"no such option {error.option_name!r}{near or NEAREST.format(error.possibilities[0])}"
        )
        return f"{said} (see {command} --help)"
    said = error.format_message().removesuffix(".")
    said = said.replace(". Did you mean", ": did you mean")
    argument = re.sub(r"^Invalid value for '(.*?)'", r"\1", said)
    said = f"{said[:1].lower()}{said[1:]}" if argument == said else argument  # a name stays
    return f"{said} (see {command} --help)"
