"""The library of a case: the laws of blocks that known bugs emit there."""

from collections.abc import Mapping
from functools import partial
from typing import Protocol

from specref.algorithms.decoding import Step
from specref.arrays import Floats
from specref.chance import TooManyPathsError
from specref.proofs.lazy import Enumerator, ReadableModel, or_reason
from specref.statistics.campaign.bets import STRENGTHS, Strengthened, library_bets
from specref.statistics.campaign.prefix_tree import PrefixTree, starts

STANDARD = "standard"
"""The rule that a sampler is of if it claims no other; every sampler may have its bugs."""
MOST_PATHS = 12_000
MOST_BETS = 1 << 25


class Bug(Protocol):
    """A known bug, as the zoo has them: a step, and the rule that it departs from."""

    @property
    def rule(self) -> str: ...

    @property
    def step(self) -> Step: ...


def known_bugs(
    tree: PrefixTree,
    algorithm: str,
    mutants: Mapping[str, Bug],
    tokens: int | None = None,
    max_paths: int = MOST_PATHS,
) -> tuple[dict[Strengthened, Floats], tuple[str, ...]]:
    """Log-bets on each mutant at each strength, and the mutants that are left out.

    * `algorithm`: The rule that the mutants are mixed with at strengths below 1.
    * `mutants`: {id: bug}; those that patch yet another algorithm are none of this library.
    * `tokens`: For texts of that many tokens rather than blocks.
    * `max_paths`: What the law of one rule may cost, so that a case is declared in bounded time.
    * returns: {(id, strength): ndarray of shape (nodes, V)}.
    * returns: ``id: reason``.
    """
    from specref.rules import RULES  # all algorithms: for who declares a case alone

    mutants = {n: entry for n, entry in mutants.items() if entry.rule in (STANDARD, algorithm)}
    if tree.p.size * len(mutants) * len(STRENGTHS) > MOST_BETS:
        return {}, _all(mutants, f"a tree of {tree.p.size} cells is too large for a library")
    laws = PrefixLaws(tree, tokens, max_paths)
    try:
        fair = laws.of(RULES[algorithm].step)
    except TooManyPathsError as error:
        return {}, _all(mutants, f"the clean rule has {error}")
    found = {name: or_reason(partial(laws.of, mutant.step)) for name, mutant in mutants.items()}
    masses = {name: mass for name, mass in found.items() if not isinstance(mass, str)}
    reasons = (f"{name}: {why}" for name, why in found.items() if isinstance(why, str))
    return library_bets(tree.p, fair, masses), tuple(reasons)


def _all(mutants: Mapping[str, Bug], reason: str) -> tuple[str, ...]:
    return tuple(f"{name}: {reason}" for name in mutants)


class PrefixLaws:
    """How often the blocks that a rule emits start with each node of a prefix tree."""

    def __init__(self, tree: PrefixTree, tokens: int | None, max_paths: int) -> None:
        self.tree, self.tokens, self.max_paths = tree, tokens, max_paths
        self.target, self.drafter = ReadableModel(tree.target), ReadableModel(tree.drafter)

    def of(self, step: Step) -> Floats:
        """P(block starts with prefix + token)."""
        given = self.target, self.drafter, self.tree.context, self.tree.lookahead
        law = Enumerator(self.max_paths).first_tokens(step, *given, tokens=self.tokens)
        return starts(self.tree, law)
