"""``specref collect``: texts of a running server, for ``specref compare``."""

from pathlib import Path
from typing import NoReturn

import click

from specref.cli.group import HOLDS, leave, progress
from specref.contrib.compare.asking import asks_a_server
from specref.contrib.compare.server import Request, collect


@click.command("collect")
@click.argument("url")
@click.argument("out", metavar="OUT.jsonl", type=click.Path(dir_okay=False))
@click.option("--texts", default=500, show_default=True, help="Texts of each prompt.")
@asks_a_server
def collect_command(
    request: Request, prompts: tuple[str, ...], out: str, texts: int, seed: int, workers: int
) -> NoReturn:
    """Collect sequences from an OpenAI-compatible server, for `specref compare`.

    Run it twice: with speculation on and off, by two servers or by a field of the request. Give
    the second run another --seed: two runs with equal seeds may give equal texts. Each text is
    written as it comes; the same command goes on where it was. It takes some minutes, or as long
    as the server needs. `specref check URL` does all of it.

    \b
    Examples:
      specref collect http://127.0.0.1:8000/v1 on.jsonl --model mine
      specref collect http://127.0.0.1:8001/v1 off.jsonl --model mine --seed 1000
      specref compare on.jsonl off.jsonl
    """
    request.refuse_no_model()
    total = texts * len(prompts)
    click.echo(
        f"{total:,} requests of {len(prompts)} prompts, at most "
        f"{total * request.max_tokens:,} tokens; {out} keeps what has come.",
        err=True,
    )
    with progress(total, "texts") as advance:
        came = collect(request, prompts, texts, Path(out), workers, seed, advance)
    click.echo(f"{came:,} texts came; {out} has all that were asked for.")
    leave(HOLDS)
