"""``specref verify``: proofs of every rule over the toy pairs, and campaigns on some."""

import sys
from typing import NoReturn

import click

from specref.cli.cluster import cluster_option, executor_of
from specref.cli.group import (
    HOLDS,
    VIOLATED,
    json_option,
    profile_option,
    progress,
    seed_option,
    show,
    workers_option,
)
from specref.pairs import Profile
from specref.report.machine import as_json, write_json
from specref.report.main_job import verification_table
from specref.verification import cases_of, verify
from specref.verification.table import TRIED


@click.command("verify")
@profile_option
@seed_option
@workers_option
@cluster_option
@json_option
def verify_command(
    profile: Profile, seed: int, workers: int, cluster: str | None, json_file: str | None
) -> NoReturn:
    """Prove every rule over the family of toy pairs.

    \b
    Examples:
      specref verify
      specref verify --profile standard --workers 8 --json report.json
      specref verify --profile thorough --cluster tcp://host:8786
    """
    total = len(TRIED) * len(cases_of(profile))
    with executor_of(workers, cluster) as pool, progress(total, "cases") as advance:
        verification = verify(profile, seed, lambda name: advance(1), pool)
    show(verification_table(verification), json_file)
    if json_file:
        write_json(json_file, as_json(verification, ok=verification.ok))
    sys.exit(HOLDS if verification.ok else VIOLATED)
