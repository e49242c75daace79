"""``specref vectors``: published test vectors, written, checked, put to a user's sampler."""

from typing import Any, NoReturn

import click

from specref.cli.cluster import cluster_option
from specref.cli.completion import targets
from specref.cli.options import Option, declare_option, json_option, timeout_option, workers_option
from specref.contrib.vectors.groups.verifications import BOTH
from specref.vectors.reading import DRAWS, POLICIES


@click.command("vectors")
@click.option("--write", metavar="FOLDER", help="Build every file into FOLDER.")
@click.option("--check", is_flag=True, help="Check that the files are what --write would build.")
@click.option(
    "--run",
    "target",
    metavar="TARGET",
    shell_complete=targets,
    help="Run the vectors on MODULE:FUNCTION.",
)
@click.argument("folder", required=False)
@click.option(
    "--rule",
    cls=Option,
    former=("--algorithm",),
    type=click.Choice(BOTH),
    help="By default what it declares.",
)
@click.option("--last", type=click.Choice(DRAWS), help="How it draws the last token.")
@click.option(
    "--policy",
    multiple=True,
    type=click.Choice(POLICIES),
    help="Your sampler follows this convention.",
)
@click.option("--only", default="", metavar="ID", help="Run cases whose ids start with ID.")
@timeout_option
@declare_option
@workers_option()
@cluster_option
@json_option
def vectors_command(**options: Any) -> NoReturn:
    """Run the published test vectors on YOUR sampler, or build them.

    FOLDER is where they are, by default those of the package. TARGET is MODULE:FUNCTION,
    FILE.py:FUNCTION, a registered name, or 'process:COMMAND'; the function takes
    target_probs [B, K+1, V], draft_probs [B, K, V], draft_tokens [B, K] and coins. One that takes
    rng instead, or draws from global generators, is judged by the exact law of its block.

    Takes a second or two for --check, or for a function in NumPy. With --workers, processes take
    chunks of 16 cases with --run, and files otherwise.

    Exit codes: 0 all is as published, 1 something is not, 2 misuse or nothing was run.

    \b
    Examples:
      specref vectors --run reference-verify
      specref vectors --run samplers:verify --rule block --last race
      specref vectors --check
      specref vectors --write specref/vectors/v1
    """
    from specref.contrib.vectors.using import use_vectors  # --help does not need it

    use_vectors(**options)
