"""Shared by the commands: exit codes, errors in one line, what is printed, the progress bar."""

import math
import os
import re
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

import click
from click.core import ParameterSource
from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from specref.optional import remedy_of
from specref.report.document import Document, markdown, page_of
from specref.report.machine import STDOUT, write_json
from specref.suggestions import did_you_mean
from specref.supervised import Notes
from specref.tracebacks import traceback_lines

PIPED = 80
EVERY = 60.0
HOLDS, VIOLATED, MISUSED, INTERRUPTED = 0, 1, 2, 130
WRITTEN = ("json_file", "html_file", "markdown", "save")
ENDINGS = ("SIGINT", "SIGTERM", "SIGHUP")
STARTED = "specref.started"
"""Where a context has when the command began."""
TWICE = 1.0
"""Seconds within which a signal that comes again is the same: `timeout` and a terminal send it to
all processes of a group, and the parent of this one passes it on."""


class Verdict(SystemExit):
    """The end of a command, with its exit code; other `SystemExit`s are raised by judged code."""


def leave(code: int) -> NoReturn:
    """End the command with an exit code, as nothing else can."""
    raise Verdict(code)


@contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """Let signals that would end the process raise `KeyboardInterrupt`, so that it can report."""
    numbers = [getattr(signal, name) for name in ENDINGS if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    ending = [n for n in numbers if before[n] in (signal.SIG_DFL, signal.default_int_handler)]
    if threading.current_thread() is not threading.main_thread():
        ending = []  # signals reach no other
    came: dict[int, float] = {}

    def interrupt(number: int, frame: FrameType | None) -> None:
        last, came[number] = came.get(number, -math.inf), time.monotonic()
        if came[number] - last > TWICE:
            raise KeyboardInterrupt

    for number in ending:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in ending:
            signal.signal(number, before[number])


def misused(message: str) -> NoReturn:
    """Leave with one line on standard error and exit code 2."""
    click.echo(f"error: {' '.join(message.split())}", err=True)
    leave(MISUSED)


class OneLineErrors(click.Group):
    """Reports misuse (exit code 2), Ctrl-C and SIGTERM (130) in one line on standard error."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        notes = options.get("obj")
        started = notes.began if isinstance(notes, Notes) else time.perf_counter()
        with _usage_in_one_line():
            context = super().make_context(*arguments, **options)
        context.meta[STARTED] = started
        return context

    def invoke(self, context: click.Context) -> Any:
        try:
            with _usage_in_one_line(), ended_as_by_ctrl_c():
                return super().invoke(context)
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


@contextmanager
def _usage_in_one_line() -> Iterator[None]:
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        misused(told(error))


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


def refuse_given(names: Iterable[str], how: str) -> None:
    """Refuse options that would do nothing."""
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise ValueError(f"{name.replace('_', '-')}: expected {how}")


def command_line() -> str:
    """The command that runs now, without the files that it writes."""
    context = click.get_current_context()
    words = ["specref", str(context.info_name)]
    for parameter in context.command.params:
        name, value = str(parameter.name), context.params.get(str(parameter.name))
        if name in WRITTEN or context.get_parameter_source(name) != ParameterSource.COMMANDLINE:
            continue
        values = [str(one) for one in value] if isinstance(value, (list, tuple)) else [str(value)]
        if isinstance(parameter, click.Argument):
            words += values
        elif isinstance(parameter, click.Option) and parameter.is_flag:
            words.append(parameter.opts[0] if value else parameter.secondary_opts[0])
        else:
            words += [word for one in values for word in (parameter.opts[0], one)]
    return shlex.join(words)


def show(report: RenderableType, json_file: str | None) -> None:
    """Print a report for people, unless standard output is for JSON.

    It is as wide as the terminal, or as COLUMNS says; 80 columns into a file or a pipe. A string
    is one line.
    """
    if json_file != STDOUT:
        told = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
        console = Console(width=None if told else PIPED, no_color=uncoloured())
        one_line = isinstance(report, str)
        console.print(report, highlight=False, markup=not one_line, soft_wrap=one_line)


def uncoloured() -> bool | None:
    """Whether --no-color was given; None leaves it to NO_COLOR and the terminal."""
    context = click.get_current_context(silent=True)
    return True if context and context.find_root().color is False else None


def deliver(
    told: Document,
    record: str,
    json_file: str | None,
    html_file: str | None,
    markdown_file: str | None = None,
    *given: tuple[str, str],
) -> None:
    """Print a result, and write it where it was asked for."""
    show(told, json_file)
    if json_file:
        write_json(json_file, record)
    if markdown_file:
        write_json(markdown_file, markdown(told))
    if html_file:
        write_json(html_file, page_of(told, command_line(), *given))


@contextmanager
def progress(total: int, unit: str) -> Iterator[Callable[..., None]]:
    """A progress bar on standard error, or a line a minute if that is no terminal.

    Yields a function to advance it.

    The function takes a count, a second argument for what is being done now, a third for a line
    to print, and the seconds that are left, if more is known of them than the count says.
    """
    console = Console(stderr=True, no_color=uncoloured())
    at = noted()
    if not console.is_terminal:
        yield _lines(total, unit, at)
        return
    columns = (
        *(BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn()),
        *(TextColumn("{task.description}"), TimeElapsedColumn()),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)

        def advance(
            count: int, doing: str = "", line: str = "", left: float | None = None
        ) -> None:
            at(doing)
            rest = "" if left is None else f" · {told_left(left)}"
            bar.update(task, advance=count, description=f"{doing}{rest}")
            if line:
                console.print(line, markup=False, highlight=False)

        yield advance


def noted() -> Callable[[str], None]:
    """Notes what the command is at, for the process that supervises this one, if one does."""
    context = click.get_current_context(silent=True)
    notes = context.find_root().obj if context else None
    return notes.at if isinstance(notes, Notes) else lambda doing: None


def told_left(seconds: float) -> str:
    """How long something still takes."""
    return f"about {seconds / 60:.0f} min left"


def _lines(total: int, unit: str, at: Callable[[str], None]) -> Callable[..., None]:
    """A function that is called as things are done, and says every minute how far they are."""
    started = told = time.monotonic()
    done = 0

    def advance(count: int, doing: str = "", line: str = "", left: float | None = None) -> None:
        nonlocal told, done
        at(doing)
        if line:
            click.echo(line, err=True)
        now, done = time.monotonic(), done + count
        if now - told >= EVERY:
            told = now
            if left is None:
                left = (now - started) * (total - done) / max(done, 1)
            rest = f", {told_left(left)}" if total > done > 0 else ""
            minutes = f"{(now - started) / 60:.0f} min{rest}"
            where = f" ({doing})" if doing else ""
            click.echo(f"{done:,} of {total:,} {unit} after {minutes}{where}", err=True)

    return advance
