"""``specref plan speed``: which lookahead, and what it gains."""

from fractions import Fraction
from typing import NoReturn

import click

from specref.cli.group import HOLDS, leave, show
from specref.cli.options import json_option
from specref.contrib.speed.plot import draw_speed_plan, load_matplotlib
from specref.contrib.speed.report import speed_plan, speed_table
from specref.report.machine import as_json, check_destination, write_json

LOOKAHEAD_MAX = 16
LARGEST = 200


@click.command(
    "speed",
    short_help="How much faster is decoding with 1, 2, … drafts, and which lookahead is best?",
)
@click.option(
    "--acceptance",
    required=True,
    metavar="A[,A…]",
    help="Of a draft: one number for all, or one for each position given the earlier ones.",
)
@click.option(
    "--cost", required=True, metavar="C", help="The time of a draft over that of a target pass."
)
@click.option(
    "--operations", metavar="C", help="The same for arithmetic operations; by default the cost."
)
@click.option(
    "--lookahead-max", type=int, help=f"By default {LOOKAHEAD_MAX}, or the positions if fewer."
)
@click.option("--plot", metavar="FILE.png", help="Draw it; needs matplotlib.")
@json_option
def plan_speed_command(
    acceptance: str,
    cost: str,
    operations: str | None,
    lookahead_max: int | None,
    plot: str | None,
    json_file: str | None,
) -> NoReturn:
    """How much faster is decoding with 1, 2, … drafts, and which lookahead is best?

    Numbers are decimals or fractions, and the arithmetic is exact. Takes a second.

    \b
    Examples:
      specref plan speed --acceptance 0.7 --cost 0.05
      specref plan speed --acceptance 0.85,0.7,0.5 --cost 1/20 --json -
      specref plan speed --acceptance 0.7 --cost 0.05 --plot speed.png
    """
    if plot:
        load_matplotlib()
        check_destination(plot)
    rates = [_number(text, "acceptance") for text in acceptance.split(",")]
    ratio = _number(cost, "cost")
    plan = speed_plan(
        rates[0] if len(rates) == 1 else rates,
        ratio,
        ratio if operations is None else _number(operations, "operations"),
        _limit(lookahead_max, len(rates)),
    )
    if plot:
        draw_speed_plan(plan, plot)
        click.echo(f"wrote {plot}", err=True)
    show(speed_table(plan), json_file)
    if json_file:
        write_json(json_file, as_json(plan))
    leave(HOLDS)


def _limit(lookahead_max: int | None, positions: int) -> int:
    if lookahead_max is None:
        return LOOKAHEAD_MAX if positions == 1 else min(LOOKAHEAD_MAX, positions)
    if not 0 <= lookahead_max <= LARGEST:
        raise ValueError(
            f"lookahead_max = {lookahead_max}: expected an integer from 0 to {LARGEST}"
        )
    return lookahead_max


def _number(text: str, name: str) -> Fraction:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{name} = {text!r}: expected a number such as 0.05 or 1/20") from None
