"""Mutants of greedy block verification: its modified target forgotten, prolonged, or another one.

The clean rule is `greedy_block.iterate`: one iteration, with the modifications that
hold before and after it. Distances are those of the first tokens of the loop.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from specref.algorithms import block, greedy_block, standard
from specref.algorithms.greedy_block import Modification, Modifications, carry, modified
from specref.chance import Chance
from specref.models import Model
from specref.vocabulary import Tokens
from specref.zoo.entry import Entry, Iterate, Iterated, exactly
from specref.zoo.fixtures import BLOCK_TOKENS, ExactFixture, by_name

Verify: TypeAlias = Callable[[Model, Tokens, list[standard.Draft], Chance], Tokens]

# With two drafts at most one modification holds at a time; "c3" has three.
PAIRS: Mapping[str, ExactFixture] = by_name(
    *(replace(BLOCK_TOKENS[name], longest=3) for name in ("coin", "c", "eos")),
    replace(BLOCK_TOKENS["c"], name="c3", lookahead=3, longest=3),
)


def greedy_iterate(
    *,
    verify: Verify = greedy_block.verify,
    prolonged: int = 0,
    hand_on: Callable[[Modifications], Modifications] = lambda carried: carried,
    follow: Callable[..., Modifications] = carry,
) -> Iterate:
    """An iteration of greedy block verification in which some parts are replaced.

    * `verify`: As `greedy_block.verify`.
    * `prolonged`: How many tokens more its own modification lasts.
    * `hand_on`: modifications -> modifications: which of them the next iteration is told.
    * `follow`: As `greedy_block.carry`.
    """

    def iterate(
        target: Model,
        drafter: Model,
        context: Tokens,
        lookahead: int,
        chance: Chance,
        carried: Modifications,
    ) -> Iterated:
        drafts = standard.draft(drafter, context, lookahead, chance)
        emitted = verify(modified(target, drafter, context, carried), context, drafts, chance)
        own = Modification(1, len(context) + lookahead + prolonged)
        return emitted, hand_on(follow(target, drafter, context, emitted, (*carried, own)))

    return iterate


def by_the_last_token(carried: Modifications) -> Modifications:
    """The modifications as if each began with the token after the block."""
    return tuple(replaced._replace(ratio=1) for replaced in carried)


def one_by_one(
    target: Model, drafter: Model, context: Tokens, tokens: Tokens, carried: Modifications
) -> Modifications:
    """Every modification as if it alone were applied to p."""
    alone = (carry(target, drafter, context, tokens, (single,)) for single in carried)
    return tuple(one for kept in alone for one in kept)


def finished(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    carried: Modifications,
) -> Iterated:
    """An iteration that draws the modified tokens itself, and hands nothing on."""
    return greedy_block.step(target, drafter, context, lookahead, chance), ()


of_greedy_block = partial(Entry, rule="greedy-block")
ENTRIES = (
    of_greedy_block(
        "greedy-target-forgotten",
        "context",
        formula="the target of the next iteration is p",
        symptom="Accepts the most, and what was refused is never made up for.",
        hint="Hand the joint ratio on, until `lookahead` tokens after the block began.",
        cites=("arXiv:2403.10444",),
        iterate=greedy_iterate(hand_on=lambda carried: ()),
        distances=exactly(coin="1/9", c="4/63", eos="3285/163592", c3="173/1512"),
        note="One iteration of it is `block-greedy-without-its-target`.",
    ),
    of_greedy_block(
        "greedy-target-too-long",
        "length",
        formula="modified until lookahead + 1 tokens after the block began",
        symptom="The token after the modified ones is off too.",
        hint="The bonus token is from p, and so is its position after a shorter block.",
        iterate=greedy_iterate(prolonged=1),
        distances=exactly(coin="1/27", c="17/216", eos="195847/4660920", c3="0"),
        note="With three drafts it shows from the fourth token on.",
    ),
    of_greedy_block(
        "greedy-target-too-short",
        "length",
        formula="modified until lookahead - 1 tokens after the block began",
        symptom="With two drafts, as if forgotten.",
        hint="Every position that was drafted is owed to, whether it was verified or not.",
        iterate=greedy_iterate(prolonged=-1),
        distances=exactly(coin="1/9", c="4/63", eos="3285/163592", c3="17/216"),
    ),
    of_greedy_block(
        "greedy-target-after-capped-joints",
        "accept",
        formula="A_i = min(1, A_{i-1} p / q), and the target modified nevertheless",
        symptom="Two rules mixed: block verification needs no modified target.",
        hint="Cap nothing, or modify nothing.",
        iterate=greedy_iterate(verify=block.verify),
        distances=exactly(coin="1/9", c="37/504", eos="8730/388531", c3="167/1512"),
    ),
    of_greedy_block(
        "greedy-target-from-the-last-token",
        "residual",
        formula="norm((W p - q)+) with W = 1 at the start of the next block",
        symptom="The residual of token verification, where the joint one is meant.",
        hint="W is the joint ratio since the modification's own block began.",
        iterate=greedy_iterate(hand_on=by_the_last_token),
        distances=exactly(coin="1/27", c="1/12", eos="405/13832", c3="1140491/10581480"),
    ),
    of_greedy_block(
        "greedy-older-modification-dropped",
        "context",
        formula="the target of the next iteration is modified by the last one alone",
        symptom="Right for two drafts; wrong after two short blocks in a row for more.",
        hint="A modification holds until its own end, whatever later ones do.",
        iterate=greedy_iterate(hand_on=lambda carried: carried[-1:]),
        distances=exactly(coin="0", c="0", eos="0", c3="1352581/331136883"),
    ),
    of_greedy_block(
        "greedy-newer-modification-dropped",
        "context",
        formula="no further modification while one holds",
        symptom="Right for two drafts; wrong after two short blocks in a row for more.",
        hint="The drafts are verified against the modified target, which is modified in turn.",
        iterate=greedy_iterate(hand_on=lambda carried: carried[:1]),
        distances=exactly(coin="0", c="0", eos="0", c3="12533/1773156"),
    ),
    of_greedy_block(
        "greedy-ratios-from-the-plain-target",
        "context",
        formula="P = p(w) / q(w) with p as it is, though another modification held",
        symptom="Wrong from the second iteration on.",
        hint="The joint probability is that of the target as modified before.",
        iterate=greedy_iterate(follow=one_by_one),
        distances=exactly(coin="1/27", c="1153/407862", eos="61587/31311280", c3="1627/675488"),
    ),
)
CONTROLS = (
    of_greedy_block(
        "greedy-finishes-its-block",
        "length",
        formula="the modified tokens are drawn at once, and the next iteration starts from p",
        symptom="No modified target is handed on.",
        hint="Exact: they are drawn from it. It takes a call of the target for each of them.",
        lossless=True,
        iterate=finished,
    ),
)
