"""The library of a case: the laws of blocks that known bugs emit there."""

from collections.abc import Mapping
from functools import partial

from specref.algorithms import Step
from specref.arrays import Floats
from specref.chance import TooManyPathsError
from specref.proofs.lazy import Enumerator, ReadableModel, or_reason
from specref.rules import DEFAULT, RULES
from specref.statistics.campaign.bets import STRENGTHS, library_bets
from specref.statistics.campaign.prefix_tree import PrefixTree, starts
from specref.zoo import Entry

Bug = tuple[str, float]
MOST_PATHS = 12_000
MOST_BETS = 1 << 25


def known_bugs(
    tree: PrefixTree,
    algorithm: str,
    mutants: Mapping[str, Entry],
    tokens: int | None = None,
    max_paths: int = MOST_PATHS,
) -> tuple[dict[Bug, Floats], tuple[str, ...]]:
    """Log-bets on each mutant at each strength, and the mutants that are left out.

    Parameters
    ----------
    tree : PrefixTree
    algorithm : str
        The rule that the mutants are mixed with at strengths below 1.
    mutants : mapping
        {id: Entry}; those that patch yet another algorithm are none of this library.
    tokens : int, optional
        For texts of that many tokens rather than blocks.
    max_paths : int
        What the law of one rule may cost, so that a case is declared in bounded time.

    Returns
    -------
    log_bets : dict
        {(id, strength): ndarray of shape (nodes, V)}.
    left_out : tuple of str
        ``id: reason``.
    """
    mutants = {n: entry for n, entry in mutants.items() if entry.rule in (DEFAULT, algorithm)}
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


def _all(mutants: Mapping[str, Entry], reason: str) -> tuple[str, ...]:
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
