"""``specref check URL``: a server with speculation against the same without, in one command."""

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click

from specref.cli.group import leave, progress, show
from specref.cli.options import json_option, verbosity
from specref.contrib.compare.asking import TOLERANCE, asks_a_server, field_option, logprobs_option
from specref.contrib.compare.beside import Drafts, speculation
from specref.contrib.compare.checking import (
    PLAIN,
    SPEC,
    Checked,
    Judging,
    declared_setting,
)
from specref.contrib.compare.looking import (
    AGAIN,
    GOES_ON,
    GREEDY_TOKENS,
    LEAST,
    LOOKS,
    Plan,
    looked,
    looks_of,
    note_source,
    refuse_others,
    stopped,
    texts_planned,
)
from specref.contrib.compare.report import checked_report
from specref.contrib.compare.server import Request
from specref.report.machine import as_json, write_json
from specref.statistics.campaign.levels import ALPHA

ROOM = 8
"""Pairs for a certificate of 256 equally frequent tokens, beside what it takes if both samples
are equal: chance takes the rest. Fewer tokens need less, as an earlier look says."""
LATE = 1.25
"""Times --minutes: a look that would come later is left to the next call of the command."""
UNCOUNTED = (
    "No answer counts drafted tokens, so that no verdict can be a pass: --metrics reads the "
    "server's own count, where it has one."
)


@click.command("check")
@click.argument("url")
@click.option("--plain", metavar="URL", help="The same model on a server without speculation.")
@field_option("on", "A field of the requests with speculation.")
@field_option("off", "A field of the requests without: what turns it off.")
@click.option(
    "--texts",
    type=click.IntRange(min=1),
    help="Texts of each prompt (default: as many as --minutes allows).",
)
@click.option(
    "--minutes",
    default=8.0,
    show_default=True,
    help="Generates as many texts as this allows, or fewer if they decide.",
)
@click.option("--folder", default="specref-texts", show_default=True, help="Keeps the texts.")
@click.option("--metrics", is_flag=True, help="Read counts of drafts from the page /metrics, too.")
@click.option("--within", default=0.05, show_default=True, help="Total variation to be excluded.")
@click.option("--alpha", default=ALPHA, show_default=True, help="False-positive rate.")
@logprobs_option
@click.option(
    "--logprob-tolerance",
    default=TOLERANCE,
    show_default=True,
    help="In nats; also decides what a near tie is.",
)
@verbosity
@json_option
@asks_a_server
def check_server(
    request: Request,
    prompts: tuple[str, ...],
    plain: str | None,
    on: dict[str, Any],
    off: dict[str, Any],
    texts: int | None,
    minutes: float,
    folder: str,
    metrics: bool,
    within: float,
    alpha: float,
    logprobs: str | None,
    logprob_tolerance: float,
    seed: int,
    workers: int,
    verbose: bool,
    quiet: bool,
    json_file: str | None,
) -> NoReturn:
    """Test a running OpenAI-compatible server: speculation on against off.

    Off is another server (--plain URL), or a field of the request (--off NAME=VALUE). It says the
    cost first, and asks for completions of short prompts at the declared settings, for texts at
    temperature 0, and for some texts again under their seeds. Nothing but the given addresses is
    called. What has come is kept; the same command goes on where it was. An eighth, a quarter and
    a half of the texts are judged as they come: the first verdict that is not inconclusive ends
    the run. These looks have equal parts of --alpha.

    Servers ignore fields that they do not know. If their answers do not count drafted tokens on
    the one side, and none on the other, the verdict says so, and is no pass.

    Exit codes: 0 no difference, none above --within, and drafts were used; 1 lossy, texts at
    temperature 0 that differ by more than a near-tie, or wrong log-probabilities; 2 inconclusive,
    not exercised, or misuse.

    \b
    Examples:
      specref check http://HOST:8000/v1 --plain http://HOST:8001/v1 --model mine
      specref check http://HOST:8080/v1 --model mine --off num_draft_tokens=0
    """
    if (plain is None) == (not off):
        raise ValueError(
            "expected --plain URL, a second server of the model that has no draft model, or --off "
            "NAME=VALUE, the field of a request that turns speculation off; llama.cpp and mlx-lm "
            "need a second server"
        )
    sides = _both(request, plain, on, off)
    for one in sides:
        one.refuse_no_model()
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    refuse_others(place, dict(zip((SPEC, PLAIN), sides, strict=True)))
    sides = [one.fitted(prompts[0]) for one in sides]
    tried = [_tried(one, prompts, workers) for one in sides]
    paces = [seconds for seconds, _ in tried]
    if speculation(tried[0][1], tried[1][1]).drafted[0] is None and not metrics:
        click.echo(UNCOUNTED, err=True)
    room = math.log(2 * 11 * len(LOOKS) / alpha)
    most = math.ceil(ROOM * (10 / 9) * room / within**2 / len(prompts))
    each = sum(paces) * len(prompts)
    number = texts or texts_planned(
        place,
        {"minutes": minutes, "within": within, "alpha": alpha, "prompts": prompts},
        max(LEAST, min(most, int(60 * minutes / each))),
    )
    plan = Plan(
        prompts, seed, workers, looks_of(number), _limit(texts, number < most, minutes),
        math.inf if texts else LATE * 60 * minutes, metrics,
    )  # fmt: skip
    asked = 2 * len(prompts) * (number + AGAIN + 1)
    tokens = 2 * len(prompts) * ((number + AGAIN) * request.max_tokens + GREEDY_TOKENS)
    takes = each * (number + AGAIN + GREEDY_TOKENS / request.max_tokens) / 60
    click.echo(
        f"At most {asked:,} requests of {len(prompts)} prompts, {tokens:,} tokens, about "
        f"{takes:.1f} minutes at {workers} requests at the same time, the first verdict after "
        f"{takes * plan.looks[0] / number:.1f}; {place} keeps what has come.",
        err=True,
    )
    _tell_kept(place)
    note_source(place, dict(zip((SPEC, PLAIN), sides, strict=True)))
    setting = declared_setting(request.settings)
    judging = Judging(alpha / len(plan.looks), within, logprob_tolerance, seed, setting, logprobs)
    deliver = partial(_deliver, verbose=verbose, quiet=quiet, json_file=json_file)
    looks = partial(looked, sides, place, judging, plan)
    checked = _last(looks, asked, plan.looks[0], deliver)
    deliver(checked)
    leave(checked.exit_code)


def _limit(texts: int | None, fewer: bool, minutes: float) -> str:
    """Why there are no more texts than are planned."""
    if texts:
        return "--texts asks for no more"
    return f"--minutes {minutes:g} allows no more" if fewer else "--within was to need no more"


def _last(
    looks: Callable[..., Iterator[Checked]],
    asked: int,
    first: int,
    deliver: Callable[[Checked | str], None],
) -> Checked:
    """The verdict of the last look; that of a run which is ended is delivered before it is."""
    checked: Checked | None = None
    try:
        with progress(asked, "texts") as advance:
            for found in looks(advance):
                checked = found
    except (KeyboardInterrupt, OSError, ValueError) as error:
        why = "a request failed" if isinstance(error, OSError) else "an error"
        why = "interrupted" if isinstance(error, KeyboardInterrupt) else why
        none = f"NO VERDICT: {why}; the first one comes after {first:,} texts of each prompt."
        deliver(none if checked is None else stopped(checked, f"{why}; {GOES_ON}"))
        raise
    assert checked is not None
    return checked


def _deliver(checked: Checked | str, verbose: bool, quiet: bool, json_file: str | None) -> None:
    """Print and write the verdict, or a line that there is none."""
    if isinstance(checked, str):
        show(checked, json_file)
        return
    if quiet:
        click.echo(checked.head)
    else:
        show(checked_report(checked, verbose), json_file)
    if json_file:
        write_json(json_file, as_json(checked.record()))


def _both(
    request: Request, plain: str | None, on: dict[str, Any], off: dict[str, Any]
) -> list[Request]:
    """A request with speculation, and one without."""
    sides = [
        replace(request, settings={**request.settings, **on}),
        replace(request, url=plain or request.url, settings={**request.settings, **off}),
    ]
    for one in sides:
        one.check()
    return sides


def _tell_kept(place: Path) -> None:
    """Say that texts of an earlier run count."""
    files = [place / f"{side}.jsonl" for side in (SPEC, PLAIN)]
    kept = sum(len(one.read_bytes().splitlines()) for one in files if one.exists())
    if kept:
        click.echo(
            f"{kept:,} texts of an earlier run are in {place} and count: after a change of a "
            "server choose another --folder.",
            err=True,
        )


def _tried(request: Request, prompts: tuple[str, ...], workers: int) -> tuple[float, Drafts]:
    """Seconds for a text when so many are asked for at the same time, and what answers say."""
    asked = [prompts[number % len(prompts)] for number in range(2 * workers)]
    drafts, started = Drafts(), time.monotonic()
    with ThreadPoolExecutor(workers) as pool:
        for found in pool.map(request.send, asked, [-1 - number for number in range(len(asked))]):
            drafts.add(0, found)
    return (time.monotonic() - started) / len(asked), drafts
