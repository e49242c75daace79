"""``specref prove``: a user's verification rule, proved or refuted."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NoReturn

import click

from specref.cli.cluster import Run, cluster_option
from specref.cli.completion import rules, targets
from specref.cli.group import refuse_given
from specref.cli.options import (
    InSections,
    Option,
    html_option,
    json_option,
    profile_option,
    seed_option,
    workers_option,
    writable,
)
from specref.pairs import Profile
from specref.proofs.everywhere.proof import BUDGET
from specref.verification.situations import SITUATIONS

TOY = ("only", "pairs")
EVERYWHERE = ("against", "iterations", "tokens", "lookahead", "save")
OF_ONE = (*TOY, *EVERYWHERE)
OF_ALL = ("compare", "known_bugs", "markdown")


class ProveCommand(InSections):
    sections: ClassVar[Mapping[str, Iterable[str]]] = {
        "What to prove": ("every", "profile", *TOY),
        "For every p and q": ("everywhere", "budget", *EVERYWHERE),
        "With --all": OF_ALL,
        "Running and output": (),
    }


@click.command("prove", cls=ProveCommand)
@click.argument("rule", metavar="MODULE:FUNCTION", required=False, shell_complete=targets)
@click.option(
    "--all", "every", is_flag=True, help="Prove every rule of the project instead of yours."
)
@profile_option
@click.option(
    "--pairs",
    type=click.Choice(["same", "all", "one", "two"]),
    default="same",
    show_default=True,
    help="Model pairs over one vocabulary, or also draft models with another one; with "
    "--everywhere one vocabulary, or a list of two.",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(tuple(SITUATIONS)),
    metavar="SITUATION",
    help=f"Only this situation; repeat for more. There are: {', '.join(SITUATIONS)}.",
)
@click.option("--everywhere", is_flag=True, help="Prove it for all p and q over a few tokens.")
@click.option(
    "--against",
    metavar="RULE",
    shell_complete=rules,
    help="Does it accept at least as many draft tokens as RULE? MODULE:FUNCTION, or a name of "
    "`specref list rules`.",
)
@click.option(
    "--iterations",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="With --against: compare the tokens of this many iterations.",
)
@click.option("--tokens", default=3, show_default=True, help="Size of the vocabulary.")
@click.option("--lookahead", default=1, show_default=True, help="Number of draft tokens.")
@click.option("--budget", type=float, help="CPU seconds.  [default: 60; with --compare 20]")
@click.option(
    "--save",
    metavar="FILE",
    callback=writable,
    help="Write a counterexample for `specref replay`.",
)
@click.option(
    "--compare",
    cls=Option,
    former=("--dominance",),
    is_flag=True,
    help="Compare which rules accept more, for all p and q.",
)
@click.option(
    "--known-bugs",
    cls=Option,
    former=("--zoo",),
    is_flag=True,
    help="With --everywhere: the library of known bugs, too.",
)
@click.option("--markdown", metavar="FILE", callback=writable, help="Write these as a page.")
@seed_option
@workers_option()
@cluster_option
@html_option
@json_option
def prove_command(
    rule: str | None,
    every: bool,
    compare: bool,
    known_bugs: bool,
    budget: float | None,
    profile: Profile,
    everywhere: bool,
    only: tuple[str, ...],
    pairs: str,
    against: str | None,
    iterations: int,
    tokens: int,
    lookahead: int,
    save: str | None,
    **run: Any,
) -> NoReturn:
    """Prove or refute YOUR verification rule, exactly; with --all those of the project.

    MODULE:FUNCTION (or FILE.py:FUNCTION) names a function
    step(target, drafter, context, lookahead, chance) that returns a tuple of token ids and
    takes every random decision from chance.draw(probabilities, site) and
    chance.accept(probability, site). Paths are run again, the first 32 and every 16th: a
    rule that does something else on the same choices, or never asks for any, is not judged.
    A table says what was enumerated: prompts of up to 1,025 tokens, up to 1,030 tokens, up to 16
    drafts, p and q down to 1e-15, EOS at any id. That takes 2 to 6 seconds of CPU time for most
    rules with one draft of a token, and up to 25 for the costliest of those with several.

    --everywhere is about one iteration, over vocabularies without EOS: run it without, too.

    --all proves every rule of the project: 90 seconds of CPU time by default, and so does
    --everywhere; with --known-bugs 4 minutes more, and --compare --profile thorough 53.

    Exit codes: 0 lossless on every case, 1 lossy on one, 2 open, failed or cannot be judged.
    With --against: 0 the rule accepts at least as many drafts for every p and q, 1 fewer for
    some, 2 open, or one of the rules raises. Of an open outcome the report says which --budget
    to try.

    \b
    Examples:
      specref prove my_rules:my_step
      specref prove ./my_rule.py:step --profile standard --workers 4
      specref prove my_rules:my_step --cluster tcp://host:8786
      specref prove ./my_rule.py:step --only lookaheads --only EOS
      specref prove specref.algorithms.tli:step --pairs all
      specref prove my_rules:my_step --everywhere --tokens 3 --lookahead 2
      specref prove my_rules:my_step --everywhere --against standard
      specref prove --all
      specref prove --all --everywhere
      specref prove --all --compare --profile standard
    """
    from specref.cli.proving import prove_all, prove_rule  # --help does not need it

    if every or rule is None:
        refuse_given(OF_ONE, "without --all")
        if not every or rule:
            raise ValueError("expected MODULE:FUNCTION or --all, and not both")
        prove_all(profile, everywhere, budget, Run(**run), compare, known_bugs)
    refuse_given(OF_ALL, "with --all")
    budget = BUDGET if budget is None else budget
    of_one = pairs, only, against, iterations, tokens, lookahead, save
    prove_rule(rule, profile, everywhere, budget, Run(**run), *of_one)
