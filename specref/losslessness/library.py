"""The library of a case: what each known bug would emit there, as far as that is known."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from specref.algorithms import ALGORITHMS, Step
from specref.chance import TooManyPathsError
from specref.losslessness.bets import STRENGTHS, library_bets
from specref.losslessness.lazy import Enumerator, Law, ReadableModel
from specref.losslessness.tree import PrefixTree, starts
from specref.vocabulary import Tokens
from specref.zoo import Entry

Floats = NDArray[np.float64]
Bug = tuple[str, float]
STANDARD = "standard"
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
    mutants = {
        n: entry for n, entry in mutants.items() if entry.algorithm in (STANDARD, algorithm)
    }
    if tree.p.size * len(mutants) * len(STRENGTHS) > MOST_BETS:
        return {}, _all(mutants, f"a tree of {tree.p.size} cells is too large for a library")
    laws = Laws(tree, tokens, max_paths)
    try:
        fair = laws.of(ALGORITHMS[algorithm])
    except TooManyPathsError as error:
        return {}, _all(mutants, f"the clean rule has {error}")
    found = {name: laws.tried(mutant.step) for name, mutant in mutants.items()}
    masses = {name: mass for name, mass in found.items() if not isinstance(mass, str)}
    reasons = (f"{name}: {why}" for name, why in found.items() if isinstance(why, str))
    return library_bets(tree.p, fair, masses), tuple(reasons)


def _all(mutants: Mapping[str, Entry], reason: str) -> tuple[str, ...]:
    return tuple(f"{name}: {reason}" for name in mutants)


class Laws:
    """What rules emit on a prefix tree."""

    def __init__(self, tree: PrefixTree, tokens: int | None, max_paths: int) -> None:
        self.tree, self.tokens, self.max_paths = tree, tokens, max_paths
        self.target, self.drafter = ReadableModel(tree.target), ReadableModel(tree.drafter)

    def of(self, step: Step) -> Floats:
        """P(block starts with prefix + token)."""
        return starts(self.tree, self._law(step))

    def tried(self, step: Step) -> Floats | str:
        """The same; or the reason, if there is none."""
        try:
            return self.of(step)
        except Exception as error:  # a mutant may crash in any way
            return f"{type(error).__name__}: {error}"

    def _law(self, step: Step) -> Law:
        tree, enumerator = self.tree, Enumerator(self.max_paths)

        def after(text: Tokens) -> Law:
            context = (*tree.context, *text)
            return enumerator.law(step, self.target, self.drafter, context, tree.lookahead)

        if self.tokens is None:
            return after(())
        # Iterations meet only in the text so far: each text is continued once.
        texts: Law = {}
        unfinished: Law = {(): 1.0}
        while unfinished:
            text = min(unfinished, key=len)
            weight = unfinished.pop(text)
            for block, probability in after(text).items():
                longer = (*text, *block)[: self.tokens]
                if longer == text:
                    raise ValueError(f"step returned an empty block after {text}")
                done = len(longer) == self.tokens or self.target.vocabulary.ends(longer)
                law = texts if done else unfinished
                law[longer] = law.get(longer, 0) + weight * probability
        return texts
