"""Greedy block verification in parts, and the law of the first tokens of its loop."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from specref.algorithms import greedy_block, standard
from specref.algorithms.greedy_block import Modification, Modifications, carry, modified
from specref.chance import Chance, exact_distribution
from specref.distributions import Probability
from specref.laws import Law, first_tokens_carrying
from specref.models import Model
from specref.vocabulary import Tokens
from specref.zoo.fixtures import BLOCK_TOKENS, ExactFixture, by_name

Case: TypeAlias = tuple[Model, Model, Tokens, int]
Iterated: TypeAlias = tuple[Tokens, Modifications]
Blocks: TypeAlias = dict[Iterated, Probability]
Iterate: TypeAlias = Callable[[Model, Model, Tokens, int, Chance, Modifications], Iterated]
Verify: TypeAlias = Callable[[Model, Tokens, list[standard.Draft], Chance], Tokens]

# With two drafts at most one modification holds at a time; "c3" has three.
PAIRS: Mapping[str, ExactFixture] = by_name(
    *(replace(BLOCK_TOKENS[name], longest=3) for name in ("coin", "c", "eos")),
    replace(BLOCK_TOKENS["c"], name="c3", lookahead=3, longest=3),
)


def first_tokens(iterate: Iterate, fixture: ExactFixture) -> Law:
    """The law of the first `fixture.length` tokens of a loop, or up to EOS.

    Iterations meet in the tokens so far and in what is carried: paths that share both are merged.

    >>> coin = PAIRS["coin"]
    >>> first_tokens(greedy_block.iterate, coin) == coin.continued()
    True
    """

    def after(text: Tokens, carried: Modifications) -> Blocks:
        case = fixture.target, fixture.drafter, (*fixture.context, *text), fixture.lookahead
        return iterated(iterate, case, carried)

    start: Modifications = ()
    return first_tokens_carrying(after, fixture.target.vocabulary, fixture.length, start)


def iterated(iterate: Iterate, case: Case, carried: Modifications = ()) -> Blocks:
    """The joint law of an iteration's block and the modifications carried after it."""
    return exact_distribution(lambda chance: iterate(*case, chance, carried))


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
