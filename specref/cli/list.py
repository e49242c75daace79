"""``specref list``: claims, checks, contracts, registered names and rules."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NoReturn

import click

from specref.cli.group import HOLDS, leave, show
from specref.cli.options import json_option
from specref.contracts.table import CONTRACTS
from specref.report.listing import SECTIONS, listing, listing_record
from specref.report.machine import as_json, write_json

FIRST = 5
"""Sections that are listed by default: what can be asked for."""


OTHER_WORDS: Mapping[str, str] = MappingProxyType({"capabilities": "claims", "adapters": "names"})
"""What the pages call sections whose names are those of the JSON."""


class Section(click.Choice[str]):
    """A section, by its name, that of one thing in it (`check` is `checks`), or as pages say."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        value = OTHER_WORDS.get(value, value)
        several = f"{value}s"
        return super().convert(several if several in SECTIONS else value, param, ctx)


@click.command("list")
@click.argument("sections", nargs=-1, type=Section(tuple(SECTIONS)))
@click.option(
    "--contract",
    type=click.Choice(tuple(CONTRACTS)),
    metavar="CONTRACT",
    help="Only the checks, names and rules of this contract, and itself; claims are for all.",
)
@json_option
def list_command(
    sections: tuple[str, ...], contract: str | None, json_file: str | None
) -> NoReturn:
    """List capabilities, checks, contracts, adapters and rules.

    SECTIONS are claims or capabilities (--declare NAME=VALUE), checks (--only ID; an id is its
    stage and a name), contracts (--contract), names or adapters (specref check NAME), rules
    (--rule), findings (what a report may say) and bugs (what a diagnosis may name); the first
    five by default. Nothing is imported to say whether a name is installed. Takes a second or two.

    \b
    Examples:
      specref list
      specref list capabilities
      specref list checks --contract tree
      specref list names rules --json -
    """
    asked = sections or tuple(SECTIONS)[:FIRST]
    chosen = None if contract is None else CONTRACTS[contract]
    show(listing(asked, chosen), json_file)
    if json_file:
        write_json(json_file, as_json(listing_record(asked, chosen)))
    leave(HOLDS)
