"""Options of commands that ask a server, and what every request has in common."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from specref.contrib.compare.server import PROMPTS, Request

TOLERANCE = 0.125
"""Nats: the distance of neighbouring bfloat16 numbers from 16 to 32, where logits often are."""


def fields_of(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> Any:
    """{name: value} of NAME=VALUE, the values as JSON where they are."""
    found: dict[str, Any] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals:
            raise ValueError(f"{parameter.opts[0]} {one}: expected NAME=VALUE")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def field_option(name: str, told: str) -> Callable[..., Any]:
    """An option NAME=VALUE that may be repeated."""
    return click.option(
        f"--{name}",
        "fields" if name == "field" else name,
        multiple=True,
        metavar="NAME=VALUE",
        callback=fields_of,
        help=told,
    )


logprobs_option = click.option(
    "--logprobs",
    type=click.Choice(("raw", "processed")),
    help="What the log-probabilities are: before temperature and filters, or after them.",
)
OPTIONS = (
    click.option(
        "--model",
        default="",
        metavar="NAME",
        help="The model's name on the server; always needed.",
    ),
    click.option("--max-tokens", default=8, show_default=True, type=click.IntRange(min=1)),
    click.option("--prompts", metavar="FILE", help="A prompt a line; by default eight of ours."),
    click.option("--temperature", default=1.0, show_default=True),
    click.option("--top-p", type=float),
    click.option("--top-k", type=int),
    field_option("field", "More of each request, as JSON."),
    click.option("--seed", default=0, show_default=True, help="Seed of the first text."),
    click.option(
        "--workers",
        default=8,
        show_default=True,
        type=click.IntRange(min=1),
        help="Requests at the same time.",
    ),
    click.option("--timeout", default=60.0, show_default=True, help="Seconds for an answer."),
    click.option("--key", envvar="OPENAI_API_KEY", help="API key, sent as a bearer token."),
)


def asks_a_server(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a request; the command is given `request` and `prompts` for them."""

    @functools.wraps(command)
    def called(url: str, prompts: str | None, **given: Any) -> Any:
        chosen = {name: given[name] for name in ("temperature", "top_p", "top_k")}
        settings = {name: value for name, value in chosen.items() if value is not None}
        request = Request(
            url,
            given.pop("model"),
            given.pop("max_tokens"),
            settings | given.pop("fields"),
            given.pop("timeout"),
            given.pop("key"),
        )
        for name in chosen:
            del given[name]
        request.check()
        return command(request=request, prompts=_lines(prompts), **given)

    return functools.reduce(lambda made, option: option(made), reversed(OPTIONS), called)


def _lines(file: str | None) -> tuple[str, ...]:
    if file is None:
        return PROMPTS
    lines = tuple(dict.fromkeys(filter(None, Path(file).read_text("utf-8").splitlines())))
    if not lines:
        raise ValueError(f"--prompts {file}: it has no line")
    return lines
