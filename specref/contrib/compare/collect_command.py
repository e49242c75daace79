"""``specref collect``: texts of a running server, for ``specref compare``."""

import json
from pathlib import Path
from typing import Any, NoReturn

import click

from specref.cli.group import HOLDS, leave, progress


def _fields(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> Any:
    found: dict[str, Any] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals:
            raise ValueError(f"--field {one}: expected NAME=VALUE")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


@click.command("collect")
@click.argument("url")
@click.argument("out", metavar="OUT.jsonl", type=click.Path(dir_okay=False))
@click.option("--model", required=True, metavar="NAME", help="As the server calls it.")
@click.option("--texts", default=500, show_default=True, help="Of each prompt.")
@click.option("--max-tokens", default=8, show_default=True)
@click.option("--prompts", metavar="FILE", help="A prompt a line; by default eight of ours.")
@click.option("--temperature", default=1.0, show_default=True)
@click.option("--top-p", type=float)
@click.option("--top-k", type=int)
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_fields,
    help="More of the request, as JSON.",
)
@click.option("--seed", default=0, show_default=True, help="Of the first text of each prompt.")
@click.option("--workers", default=8, show_default=True, help="Requests at the same time.")
@click.option("--timeout", default=60.0, show_default=True, help="Seconds for an answer.")
@click.option("--key", envvar="OPENAI_API_KEY", help="Sent as a bearer token.")
def collect_command(
    url: str,
    out: str,
    model: str,
    texts: int,
    max_tokens: int,
    prompts: str | None,
    temperature: float,
    top_p: float | None,
    top_k: int | None,
    fields: dict[str, Any],
    seed: int,
    workers: int,
    timeout: float,
    key: str | None,
) -> NoReturn:
    """Collect sequences from an OpenAI-compatible server, for `specref compare`.

    Run it twice: with speculation on and off, by two servers or by a field of the request. Give
    the second run another --seed: two runs with equal seeds may give equal texts. Each text is
    written as it comes; the same command goes on where it was. It takes some minutes, or as long
    as the server needs.

    \b
    Examples:
      specref collect http://127.0.0.1:8000/v1 on.jsonl --model mine
      specref collect http://127.0.0.1:8001/v1 off.jsonl --model mine --seed 1000
      specref compare on.jsonl off.jsonl
    """
    from specref.contrib.compare.server import PROMPTS, Request, collect

    lines = PROMPTS
    if prompts is not None:
        lines = tuple(filter(None, Path(prompts).read_text(encoding="utf-8").splitlines()))
        if not lines:
            raise ValueError(f"--prompts {prompts}: it has no line")
    chosen = {"temperature": temperature, "top_p": top_p, "top_k": top_k}
    settings = {name: value for name, value in chosen.items() if value is not None} | fields
    request = Request(url, model, max_tokens, settings, timeout, key)
    total = texts * len(lines)
    click.echo(
        f"{total:,} requests of {len(lines)} prompts, at most {total * max_tokens:,} tokens; "
        f"{out} keeps what has come.",
        err=True,
    )
    with progress(total, "texts") as advance:
        came = collect(request, lines, texts, Path(out), workers, seed, advance)
    click.echo(f"{came:,} texts came; {out} has all that were asked for.")
    leave(HOLDS)
