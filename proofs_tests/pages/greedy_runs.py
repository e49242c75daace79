"""Expected tokens of each iteration of a loop that carries state to the next one."""

from collections.abc import Callable, Mapping
from fractions import Fraction

from specref.algorithms.greedy_block import Modification, Modifications
from specref.chance import Chance, exact_distribution
from specref.distributions import Probability
from specref.models import Model
from specref.vocabulary import Tokens
from specref.zoo.fixtures import ExactFixture
from specref.zoo.parts.greedy_block import Iterate, Iterated


def tokens_of_iterations(
    iterate: Iterate, fixture: ExactFixture, lookahead: int, iterations: int
) -> list[Probability]:
    """The expected number of tokens of the 1st, 2nd, … iteration, for models of order 1 at most.

    Iterations meet in the last token and in what is carried, seen from there.

    >>> from specref.algorithms import greedy_block
    >>> from specref.zoo.fixtures import BLOCK_TOKENS
    >>> coin = BLOCK_TOKENS["coin"]
    >>> [str(x) for x in tokens_of_iterations(greedy_block.iterate, coin, 2, 3)]
    ['7/3', '19/9', '19/9']
    """
    states: dict[Iterated, Probability] = {((), ()): Fraction(1)}
    means: list[Probability] = []
    for _ in range(iterations):
        following: dict[Iterated, Probability] = {}
        means.append(0)
        for (last, carried), weight in states.items():
            for (tokens, left), probability in _blocks(
                iterate, fixture, last, lookahead, carried
            ).items():
                means[-1] += weight * probability * len(tokens)
                ago = len(last) + len(tokens) - 1  # contexts are cut to their last token
                state = tokens[-1:], tuple(Modification(r, end - ago) for r, end in left)
                following[state] = following.get(state, 0) + weight * probability
        states = following
    return means


def _blocks(
    iterate: Iterate, fixture: ExactFixture, last: Tokens, lookahead: int, carried: Modifications
) -> Mapping[Iterated, Probability]:
    return exact_distribution(
        lambda chance: iterate(fixture.target, fixture.drafter, last, lookahead, chance, carried)
    )


def stateless(step: Callable[..., Tokens]) -> Iterate:
    """An algorithm that carries nothing from one iteration to the next."""

    def iterate(
        target: Model,
        drafter: Model,
        context: Tokens,
        lookahead: int,
        chance: Chance,
        carried: Modifications,
    ) -> Iterated:
        return step(target, drafter, context, lookahead, chance), ()

    return iterate
