"""``specref check``: a user's sampler, judged by the conformance kit."""

from typing import Any, NoReturn, get_args

import click

from specref.cli.claims import claim_option
from specref.cli.cluster import cluster_option
from specref.cli.group import (
    html_option,
    json_option,
    timeout_option,
    verbosity,
    workers_option,
    writable,
)
from specref.conformance.options import Profile
from specref.contracts.capabilities import Dtype
from specref.contracts.table import CONTRACTS
from specref.rules import declarable
from specref.statistics.campaign.levels import ALPHA


@click.command("check")
@click.argument("target")
@click.option(
    "--contract",
    type=click.Choice(tuple(CONTRACTS)),
    help="How it is called; by default verify, or what a registered name is made for.",
)
@click.option(
    "--algorithm",
    type=click.Choice(declarable()),
    metavar="RULE",
    help="The rule that it declares (specref list rules); then accepted lengths are judged, too.",
)
@click.option(
    "--profile",
    type=click.Choice(get_args(Profile)),
    default="quick",
    show_default=True,
    help="The distance that is surely detected: 0.05, 0.02, 0.01; smoke samples nothing.",
)
@click.option("--detect-tv", type=float, help="That distance itself.")
@click.option("--alpha", default=ALPHA, show_default=True, help="False alarms, over all checks.")
@click.option("--trials", type=int, help="For each statistical check, instead of --detect-tv.")
@click.option(
    "--seconds",
    type=float,
    help="Draw for so long in all instead, and say what would have been found.",
)
@timeout_option
@click.option("-x", "--exitfirst", is_flag=True, help="Stop after the first failure.")
@click.option(
    "--keep-going",
    is_flag=True,
    help="Run every check, also those that a failure has settled or left nothing to judge in.",
)
@click.option("--only", multiple=True, metavar="ID", help="Checks whose ids start like this.")
@click.option("--skip", multiple=True, metavar="ID", help="Not checks whose ids start like this.")
@click.option("--seed", default=0, show_default=True, help="Of everything random.")
@click.option(
    "--vocabulary", type=int, multiple=True, help="Judge it at this size besides; repeat for more."
)
@click.option("--lookahead", type=int, multiple=True, help="Drafts of a row there.")
@click.option("--batch", type=int, multiple=True, help="Rows of a batch there.")
@click.option(
    "--dtype", type=click.Choice(get_args(Dtype)), multiple=True, help="What it is given there."
)
@claim_option
@click.option(
    "--strict",
    is_flag=True,
    help="Exit code 2 if something optional could not be tried; else the verdict lists it.",
)
@click.option(
    "--isolate",
    is_flag=True,
    help="Ask an engine in a process of its own, so that the kit outlives a crash of it.",
)
@click.option(
    "--texts",
    metavar="FILE",
    callback=writable,
    help="Write texts of an engine there as they come; a second run goes on from them.",
)
@click.option("--expected", metavar="FILE.toml", help="Expected failures, with reasons.")
@click.option("--save", metavar="FOLDER", help="Write failing cases for `specref replay`.")
@click.option("--junit", metavar="FILE", help="Write JUnit XML.")
@html_option
@verbosity
@workers_option
@cluster_option
@json_option
def check_command(
    vocabulary: tuple[int, ...],
    lookahead: tuple[int, ...],
    batch: tuple[int, ...],
    dtype: tuple[Dtype, ...],
    save: str | None,
    junit: str | None,
    html_file: str | None,
    json_file: str | None,
    keep_going: bool,
    verbose: bool,
    quiet: bool,
    **options: Any,
) -> NoReturn:
    """Test whether YOUR sampler, decode loop or engine is lossless, and which bug it has.

    TARGET is MODULE:FUNCTION, FILE.py:FUNCTION, a registered name such as transformers, or a
    program in any language, 'process:COMMAND', as `specref write --language` prints one. The
    function takes target_probs [B, K+1, V], draft_probs [B, K, V], draft_tokens [B, K] and rng,
    and returns tokens [B, K+1] padded with -1, and counts [B]. With --contract tree, parents
    [B, K] come after draft_tokens: the node before each draft, -1 for the root, -2 for no draft.
    With --contract text, TARGET is an Engine: it is asked for whole texts, and these are compared
    with its law or its plain mode; drafts have to be proposed and accepted, else the verdict is
    NOT_EXERCISED.

    TARGET engines is every registered engine that is installed, one after the other in its quick
    form and in a process of its own; a crash is a row. Exit code 1 if one of them fails where that
    is not expected; 2 if an installed one has no verdict, or none is installed.

    A sampler in NumPy takes 2 to 60 seconds, in torch up to 115, those that fail early the least;
    whole texts take minutes, and how many is said before. With --seconds 10 drawing takes 10 s in
    all; exact laws and independence come on top.

    Exit codes: 0 lossless at the declared power, 1 lossy or a broken contract (or accepted
    lengths that are not those of --algorithm), 2 misuse, inconclusive, not answered in time, not
    exercised or not run; 130 after Ctrl-C or SIGTERM. The JSON file is rewritten after each check.

    \b
    Examples:
      specref check examples.correct:verify
      specref check samplers:verify --algorithm standard --detect-tv 0.02
      specref check samplers:step --contract step --save failures
      specref check samplers:verify_tree --contract tree --algorithm topdown
      specref check samplers:verify --vocabulary 151936 --lookahead 5 --batch 32
      specref check transformers --contract generate --json report.json
      specref check samplers:verify --workers 4
      specref check samplers:verify --seconds 10
      specref check engines.py:mine --contract text --texts texts.jsonl
      specref check 'process:./my_sampler --flag'
      specref check engines --json engines.json
    """
    from specref.cli.judging import Files, Shown, judge_target  # --help does not need it

    judge_target(
        sizes=(vocabulary, lookahead, batch),
        dtypes=dtype,
        files=Files(save, junit, html_file, json_file),
        shown=Shown(verbose, quiet),
        blocking=not keep_going,
        **options,
    )
