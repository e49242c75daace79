"""Options that commands share, and how the help shows options."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, get_args

import click

from specref.cli.completion import capabilities
from specref.contracts.timeout import TIMEOUT
from specref.pairs import Profile
from specref.report.machine import STDOUT, check_destination
from specref.rules import declarable

AUTO = "auto"


class Option(click.Option):
    """An option that answers to former names, too; the help does not show them."""

    def __init__(
        self, names: Sequence[str], *, former: Sequence[str] = (), **settings: Any
    ) -> None:
        super().__init__([*names, *former], **settings)
        self.former = former

    def get_help_record(self, context: click.Context) -> tuple[str, str] | None:
        known = self.opts
        self.opts = [name for name in known if name not in self.former]
        try:
            return super().get_help_record(context)
        finally:
            self.opts = known


class InSections(click.Command):
    """A command whose options are listed in sections.

    * `sections`: {title: names of parameters}; the last takes those that are in none.
    """

    sections: ClassVar[Mapping[str, Iterable[str]]] = {}

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        place = {name: title for title, names in self.sections.items() for name in names}
        rows: dict[str, list[tuple[str, str]]] = {title: [] for title in self.sections}
        *_, last = rows
        for one in self.get_params(context):
            record = one.get_help_record(context) if isinstance(one, click.Option) else None
            if record:
                rows[place.get(str(one.name), last)].append(record)
        for title, records in rows.items():
            with formatter.section(title):
                formatter.write_dl(records)


def without_colour(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Note that nothing is coloured: `show` asks for it."""
    if value:
        context.find_root().color = False


def no_color_option() -> click.Option:
    return click.Option(
        ["--no-color"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=without_colour,
        help="Print without colours, as NO_COLOR=1 does.",
    )


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


class Workers(click.ParamType[Any]):
    """A number of processes, or `auto`: the cores, at most 16."""

    name = f"N|{AUTO}"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> int:
        from specref.cli.cluster import cores

        if value == AUTO:
            return cores()
        if str(value).isdigit() and int(value) >= 1:
            return int(value)
        raise ValueError(f"workers = {value!r}: expected an integer >= 1, or {AUTO}")


def workers_option(default: int | str | None = 1) -> Callable[..., Any]:
    return click.option(
        "--workers",
        type=Workers(),
        default=default,
        show_default=default is not None,
        help="Processes; the result does not depend on it. auto: the cores, at most 16.",
    )


rule_option = click.option(
    "--rule",
    cls=Option,
    former=("--algorithm",),
    type=click.Choice(declarable()),
    metavar="RULE",
    help="The rule that it implements (specref list rules): tests accepted tokens, too.",
)
profile_option = click.option(
    "--profile",
    type=click.Choice(get_args(Profile)),
    default="quick",
    show_default=True,
    help="How many model pairs and lookaheads.",
)
seed_option = click.option("--seed", default=0, show_default=True, help="Random seed.")
timeout_option = click.option(
    "--timeout",
    cls=Option,
    former=("--patience",),
    default=TIMEOUT,
    show_default=True,
    help="Seconds until a call counts as not answered.",
)
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


def verbosity(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options -v and -q: how much of a report is printed."""
    verbose = click.option(
        "-v", "--verbose", is_flag=True, help="Print a row for each check, too."
    )
    quiet = click.option("-q", "--quiet", is_flag=True, help="Print the verdict in one line.")
    return verbose(quiet(command))


WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "none": None}
declare_option = click.option(
    "--declare",
    cls=Option,
    former=("--claim",),
    multiple=True,
    metavar="NAME=VALUE",
    shell_complete=capabilities,
    help="A capability, such as ragged=false; `specref list capabilities` has all.",
)


def read_claims(pairs: Sequence[str]) -> dict[str, Any]:
    """Claims as NAME=VALUE; values are true, false, none, numbers or words.

    Examples
    --------
    >>> read_claims(["ragged=false", "batch=1", "dtype=float32"])
    {'ragged': False, 'batch': 1, 'dtype': 'float32'}
    """
    claims: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"--declare {pair!r}: expected NAME=VALUE, such as ragged=false")
        claims[name] = WORDS.get(value.lower(), value)
        if value.isdigit():
            claims[name] = int(value)
        elif name == "tolerance":
            with suppress(ValueError):  # what is no number is refused with the other claims
                claims[name] = float(value)
    return claims
