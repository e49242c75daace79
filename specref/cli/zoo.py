"""``specref zoo``: every check against every planted bug and every lossless look-alike."""

import sys
from typing import NoReturn

import click

from specref.cli.group import HOLDS, VIOLATED, json_option, progress, seed_option, show
from specref.report.machine import as_json, check_destination, write_json
from specref.report.zoo import zoo_markdown, zoo_record, zoo_table
from specref.verification.kill_matrix import kill_matrix
from specref.zoo import ALL


@click.command("zoo")
@click.argument("ids", nargs=-1)
@click.option("--detect-tv", default=0.1, show_default=True, help="As in specref check.")
@click.option("--markdown", metavar="FILE", help="Write the matrix as a table for docs.")
@seed_option
@json_option
def zoo_command(
    ids: tuple[str, ...],
    detect_tv: float,
    markdown: str | None,
    seed: int,
    json_file: str | None,
) -> NoReturn:
    """The kill matrix: does every check fail a bug, and is every bug found?

    Exit code 1 on a surviving mutant, an idle check, or a control that fails. With IDS, only
    those are run, and checks are not called idle.

    \b
    Examples:
      specref zoo
      specref zoo residual-is-p shared-u
      specref zoo --markdown zoo.md --json zoo.json
    """
    if markdown:
        check_destination(markdown)
    with progress(len(ids or ALL), "mutants and controls") as advance:
        matrix = kill_matrix(
            ids or None, detect_tv=detect_tv, seed=seed, advance=lambda id_: advance(1)
        )
    show(zoo_table(matrix), json_file)
    if json_file:
        write_json(json_file, as_json(zoo_record(matrix)))
    if markdown:
        write_json(markdown, zoo_markdown(matrix))
    sys.exit(VIOLATED if matrix.problems else HOLDS)
