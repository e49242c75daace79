"""``specref cross-check``: generated texts of a pair of models against the target alone."""

from pathlib import Path
from typing import NoReturn

import click

from specref.cli.group import HOLDS, MISUSED, VIOLATED, leave, progress, show
from specref.cli.options import writable

DEVICES, DTYPES = ("cpu", "cuda", "mps"), ("float32", "bfloat16", "float16")


@click.command("cross-check")
@click.option("--target", metavar="FOLDER", help="A Hugging Face model with its tokenizer.")
@click.option("--drafter", metavar="FOLDER", help="Another; with --target.")
@click.option(
    "--pair", "names", multiple=True, metavar="NAME", help="A published pair, of several."
)
@click.option("--method", "methods", multiple=True, metavar="NAME", help="Only this one.")
@click.option(
    "--profile", type=click.Choice(["quick", "record"]), default="quick", show_default=True
)
@click.option("--device", type=click.Choice(DEVICES), default="cpu", show_default=True)
@click.option("--dtype", type=click.Choice(DTYPES), default="float32", show_default=True)
@click.option(
    "--no-cache",
    "use_cache",
    flag_value=False,
    default=True,
    help="Read every text again in each pass: for models whose cache cannot be cropped.",
)
@click.option(
    "--record",
    "path",
    metavar="FILE",
    default="real_models.json",
    show_default=True,
    callback=writable,
    help="JSON that is written after every batch; rows in it go on.",
)
def cross_check_command(
    target: str | None,
    drafter: str | None,
    names: tuple[str, ...],
    methods: tuple[str, ...],
    profile: str,
    device: str,
    dtype: str,
    use_cache: bool,
    path: str,
) -> NoReturn:
    """Test generation with two models, method by method, against the target.

    Without --target and --drafter the published pairs are run, which `make models` installs.
    Every token is judged by p from a pass of the target alone over the whole text, in float64:
    bets that the text has another distribution decide at 1e9 (alpha 1e-9), and accepted drafts
    are compared with the closed forms. Planted bugs run beside, to show what would be found.

    A row takes minutes: a token of the published pairs took 0.04 to 0.7 s on a busy machine.
    quick has 500 tokens a row, and plants one bug, in standard verification and TLI. record has
    5,000, and 1,000 at temperature 0.7, top-k 50 and top-p 0.9, and plants all bugs. How long all
    rows take is said before. An interrupted run goes on with the same --record.

    Exit codes: 0 nothing found, and every planted bug; 1 a text has another distribution, or
    acceptance is off; 2 misuse, or a planted bug was not found yet.

    \b
    Examples:
      specref cross-check
      specref cross-check --target ./my-model --drafter ./my-drafter --device cuda
      specref cross-check --pair 'smollm2<-3 bits' --method block --profile record
    """
    # --help does not need torch
    from specref.contrib.real_models.running import Chosen, checked

    chosen = Chosen(target, drafter, names, methods, profile, device, dtype, use_cache)
    try:
        report, verdicts = checked(chosen, path, progress)
    except KeyboardInterrupt:
        if Path(path).exists():
            click.echo(f"what is finished is in {path}; the same command goes on", err=True)
        raise
    show(report, None)
    if verdicts - {"nothing found", "found", "found by acceptance", "not found yet"}:
        leave(VIOLATED)
    leave(MISUSED if "not found yet" in verdicts else HOLDS)
