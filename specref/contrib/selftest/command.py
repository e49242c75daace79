"""``specref zoo``: every check against every planted bug and every lossless look-alike."""

from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import click

from specref.cli.cluster import cluster_option, cores, executor_of
from specref.cli.group import HOLDS, VIOLATED, deliver, leave, progress
from specref.cli.options import html_option, json_option, seed_option, workers_option, writable
from specref.report.machine import as_json

if TYPE_CHECKING:
    from specref.report.document import Document


@click.command("zoo")
@click.argument("ids", nargs=-1)
@click.option("--detect-tv", default=0.1, show_default=True, help="As in specref check.")
@click.option(
    "--markdown", metavar="FILE", callback=writable, help="Write the matrix as a table for docs."
)
@click.option(
    "--triggers",
    is_flag=True,
    help="Bugs that act in one situation instead: which are found, and by which situation?",
)
@click.option(
    "--every", is_flag=True, help="With --triggers: all situations, not the first to find."
)
@seed_option
@workers_option(None)
@cluster_option
@html_option
@json_option
def zoo_command(
    ids: tuple[str, ...],
    detect_tv: float,
    markdown: str | None,
    triggers: bool,
    every: bool,
    seed: int,
    workers: int | None,
    cluster: str | None,
    json_file: str | None,
    html_file: str | None,
) -> NoReturn:
    """Run the checks against the library of known bugs.

    The table has a row for each known bug (mutant, lossy) and each look-alike (control, lossless).
    A column for each stage of specref check says how many checks failed of those that apply: 2/9.
    Stage says where the bug is, TV how far its tokens are from the target. Lines below the table
    explain each column.

    Exit code 1 on a mutant that no check fails, a check that fails no mutant, or a control that
    fails; with --triggers if fewer than 95 % are found. With IDS, only those are run.

    The whole zoo takes 8 minutes on one core, --triggers 30, shared by all cores; a mutant 2
    seconds on average.

    \b
    Examples:
      specref zoo
      specref zoo residual-is-p shared-u
      specref zoo --markdown zoo.md --json zoo.json
      specref zoo --triggers one-draft row-0 --workers 2
    """
    workers = workers or (1 if ids or cluster else cores())
    judged = partial(_triggers, every) if triggers else partial(_entries, detect_tv)
    with executor_of(workers, cluster) as pool:
        document, record, good = judged(ids or None, seed, pool)
    deliver(document, as_json(record), json_file, html_file, markdown, ("seed", f"{seed}"))
    leave(HOLDS if good else VIOLATED)


# Imported inside: --help does not need them.
def _entries(
    detect_tv: float, ids: tuple[str, ...] | None, seed: int, pool: Executor | None
) -> "tuple[Document, Any, bool]":
    """The kill matrix, and whether it has no problem."""
    from specref.contrib.selftest.kill_matrix import kill_matrix
    from specref.contrib.selftest.kills_report import kills_document, kills_record
    from specref.zoo import ALL

    with progress(len(ids or ALL), "mutants and controls") as advance:
        matrix = kill_matrix(
            ids, detect_tv=detect_tv, seed=seed, executor=pool, advance=lambda id_: advance(1)
        )
    return kills_document(matrix), kills_record(matrix), not matrix.problems


def _triggers(
    every: bool, ids: tuple[str, ...] | None, seed: int, pool: Executor | None
) -> "tuple[Document, Any, bool]":
    """The matrix of triggers, and whether enough are found."""
    from specref.contrib.selftest import trigger_matrix as matrices

    with progress(len(matrices.keys_of(ids)), "situations and bugs") as advance:
        matrix = matrices.trigger_matrix(
            ids, seed=seed, every=every, executor=pool, advance=lambda id_: advance(1)
        )
    good = matrix.share >= matrices.WANTED
    return matrices.triggers_document(matrix), matrices.triggers_record(matrix), good
