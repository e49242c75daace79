"""Shared by the commands: errors in one line, exit codes, options, the progress bar."""

import math
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn, get_args

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

from specref.contracts.timeout import TIMEOUT
from specref.pairs import Profile
from specref.report.machine import STDOUT, check_destination
from specref.supervised import Notes
from specref.tracebacks import traceback_lines

PIPED = 80
EVERY = 60.0
HOLDS, VIOLATED, MISUSED, INTERRUPTED = 0, 1, 2, 130
WRITTEN = ("json_file", "html_file", "markdown", "save")
ENDINGS = ("SIGINT", "SIGTERM", "SIGHUP")
TWICE = 1.0
"""Seconds within which a signal that comes again is the same: `timeout` and a terminal send it to
all processes of a group, and the parent of this one passes it on."""


class Verdict(SystemExit):
    """The end of a command, with its exit code; any other `SystemExit` is raised by judged code.

    Parameters
    ----------
    code : int
    """


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


class OneLineErrors(click.Group):
    """Reports misuse (exit code 2), Ctrl-C and SIGTERM (130) in one line on standard error."""

    def invoke(self, context: click.Context) -> Any:
        try:
            with ended_as_by_ctrl_c():
                return super().invoke(context)
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


def misused(message: str) -> NoReturn:
    """Leave with one line on standard error and exit code 2."""
    click.echo(f"error: {' '.join(message.split())}", err=True)
    leave(MISUSED)


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

    It is as wide as the terminal, or as COLUMNS says; 80 columns into a file or a pipe.

    Parameters
    ----------
    report : renderable
    json_file : str or None
    """
    if json_file != STDOUT:
        told = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
        Console(width=None if told else PIPED).print(report, highlight=False)


@contextmanager
def progress(total: int, unit: str) -> Iterator[Callable[..., None]]:
    """A progress bar on standard error, or a line a minute if that is no terminal.

    Yields a function to advance it.

    The function takes a count, a second argument for what is being done now, a third for a line
    to print, and the seconds that are left, if more is known of them than the count says.

    Parameters
    ----------
    total : int
        Where the count ends.
    unit : str
        What is counted: "cases", "trials".
    """
    console = Console(stderr=True)
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
    """How long something still takes.

    Examples
    --------
    >>> told_left(130), told_left(12)
    ('about 2 min left', 'about 0 min left')
    """
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


def writable(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """An option's file, checked before the work begins."""
    if value is not None:
        check_destination(value)
    return value


def page_file(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """The file of a page: none is written to standard output, where the table is."""
    if value == STDOUT:
        raise ValueError("html = '-': expected a file, since the table is on standard output")
    return writable(context, parameter, value)


profile_option = click.option(
    "--profile",
    type=click.Choice(get_args(Profile)),
    default="quick",
    show_default=True,
    help="How many pairs and lookaheads.",
)
seed_option = click.option("--seed", default=0, show_default=True, help="Of everything sampled.")
workers_option = click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Processes; the result does not depend on it.",
)
timeout_option = click.option(
    "--timeout",
    "--patience",
    "timeout",
    default=TIMEOUT,
    show_default=True,
    help="Seconds for a call.",
)


def verbosity(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options -v and -q: how much of a report is printed."""
    verbose = click.option(
        "-v", "--verbose", is_flag=True, help="Print a row for each check, too."
    )
    quiet = click.option("-q", "--quiet", is_flag=True, help="Print the verdict in one line.")
    return verbose(quiet(command))


json_option = click.option(
    "--json",
    "json_file",
    metavar="FILE",
    callback=writable,
    help="Write the report as JSON to FILE, or - for stdout.",
)
html_option = click.option(
    "--html", "html_file", metavar="FILE", callback=page_file, help="Write the report as a page."
)
downloads_option = click.option(
    "--from",
    "downloads",
    multiple=True,
    metavar="PATH",
    type=click.Path(),
    help="A downloaded wheel, sdist or npm tarball, or a folder of them.",
)
