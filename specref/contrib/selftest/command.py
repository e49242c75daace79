"""``specref zoo``: every check against every planted bug and every lossless look-alike."""

from typing import Any, NoReturn

import click

from specref.cli.cluster import cluster_option
from specref.cli.options import html_option, json_option, seed_option, workers_option


@click.command("zoo")
@click.argument("ids", nargs=-1)
@click.option("--detect-tv", default=0.1, show_default=True, help="As in specref check.")
@click.option("--markdown", metavar="FILE", help="Write the matrix as a table for docs.")
@click.option(
    "--triggers",
    is_flag=True,
    help="Bugs that act in one situation instead: which are found, and by which stratum?",
)
@click.option("--every", is_flag=True, help="With --triggers: all strata, not the first to find.")
@seed_option
@workers_option(None)
@cluster_option
@html_option
@json_option
def zoo_command(**options: Any) -> NoReturn:
    """The kill matrix: does every check fail a bug, and is every bug found?

    Exit code 1 on a surviving mutant, an idle check, or a control that fails; with --triggers if
    fewer than 95 % are found. With IDS, only those are run, and checks are not called idle.

    The whole zoo takes 8 minutes on one core, --triggers 30, shared by all cores; a mutant 2
    seconds on average.

    \b
    Examples:
      specref zoo
      specref zoo residual-is-p shared-u
      specref zoo --markdown zoo.md --json zoo.json
      specref zoo --triggers one-draft row-0 --workers 2
    """
    from specref.contrib.selftest.matrices import judge_zoo  # --help does not need it

    judge_zoo(**options)
