"""``specref prove``: a user's verification rule, proved or refuted."""

from typing import Any, NoReturn

import click

from specref.cli.cluster import cluster_option
from specref.cli.group import (
    html_option,
    json_option,
    profile_option,
    seed_option,
    workers_option,
    writable,
)
from specref.proofs.everywhere.proof import BUDGET
from specref.verification.situations import SITUATIONS


@click.command("prove")
@click.argument("rule", metavar="MODULE:FUNCTION")
@profile_option
@click.option(
    "--pairs",
    type=click.Choice(["same", "all", "one", "two"]),
    default="same",
    show_default=True,
    help="Toy pairs over one vocabulary, or also drafters with another vocabulary; with "
    "--everywhere one vocabulary, or a list of two.",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(tuple(SITUATIONS)),
    metavar="SITUATION",
    help=f"Only this situation; repeat for more. There are: {', '.join(SITUATIONS)}.",
)
@workers_option
@cluster_option
@click.option("--everywhere", is_flag=True, help="For every p and q, in place of the toy pairs.")
@click.option(
    "--against",
    metavar="RULE",
    help="With --everywhere: whether it accepts at least as many drafts as this one; "
    "MODULE:FUNCTION, or a name of `specref list rules`.",
)
@click.option(
    "--iterations",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="With --against: compare the tokens that so many iterations emit.",
)
@click.option("--tokens", default=3, show_default=True, help="With --everywhere: of a vocabulary.")
@click.option("--lookahead", default=1, show_default=True, help="With --everywhere.")
@click.option(
    "--budget", default=BUDGET, show_default=True, help="With --everywhere: CPU seconds."
)
@click.option(
    "--save",
    metavar="FILE",
    callback=writable,
    help="With --everywhere: write a witness, to be replayed.",
)
@seed_option
@html_option
@json_option
def prove_command(**options: Any) -> NoReturn:
    """Prove or refute YOUR verification rule, exactly.

    MODULE:FUNCTION (or FILE.py:FUNCTION) names a function
    step(target, drafter, context, lookahead, chance) that returns a tuple of token ids and
    takes every random decision from chance.draw(probabilities, site) and
    chance.accept(probability, site). Paths are run again, the first 32 and every 16th: a
    rule that does something else on the same choices, or never asks for any, is not judged.
    A table says what was enumerated: prompts of up to 1,025 tokens, up to 1,030 tokens, up to 16
    drafts, p and q down to 1e-15, EOS at any id. That takes 2 to 6 seconds of CPU time for most
    rules with one draft of a token, and up to 25 for the costliest of those with several.

    --everywhere is about one iteration, over vocabularies without EOS: run it without, too.

    Exit codes: 0 lossless on every case, 1 lossy on one, 2 it failed or cannot be judged.

    \b
    Examples:
      specref prove my_rules:my_step
      specref prove ./my_rule.py:step --profile standard --workers 4
      specref prove my_rules:my_step --cluster tcp://host:8786
      specref prove ./my_rule.py:step --only lookaheads --only EOS
      specref prove specref.algorithms.tli:step --pairs all
      specref prove my_rules:my_step --everywhere --tokens 3 --lookahead 2
      specref prove my_rules:my_step --everywhere --against standard
    """
    from specref.cli.proving import prove_rule  # --help does not need it

    prove_rule(**options)
