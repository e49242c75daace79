"""The cases of a campaign: where to bet, on which bugs, and what was counted."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from specref.algorithms import ALGORITHMS, Step
from specref.chance import exact_distribution
from specref.distributions import Probability
from specref.losslessness import bets
from specref.losslessness.tree import PrefixTree, prefix_tree, starts
from specref.models import Model, as_float
from specref.theory import accepted_length_distribution
from specref.vocabulary import Tokens
from specref.zoo import Entry

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TRACE_GUARD = 1e-4


@dataclass
class CampaignCase:
    """One pair, context and lookahead, and what was counted on it.

    Attributes
    ----------
    tree : PrefixTree
        Where tokens are bet on.
    library : tuple
        The (mutant, strength) of each row of `log_bets`.
    log_bets : ndarray, shape (len(library), nodes, V)
    tilts : ndarray, shape (features, stakes, nodes, V)
    counts : ndarray, shape (nodes, V)
    lengths : ndarray
        How many blocks had 0, 1, … accepted tokens.
    last : ndarray
        The tokens of the block before, by position; -1 where it had none.
    """

    name: str
    tree: PrefixTree
    algorithm: str
    library: tuple[tuple[str, float], ...] = field(repr=False)
    log_bets: Floats = field(repr=False)
    tilts: Floats = field(repr=False)
    counts: Floats = field(repr=False)
    lengths: Ints = field(repr=False)
    last: Ints = field(repr=False)
    tolerance: float = 0.0
    trials: int = 0
    impossible: int = 0

    def count(self, blocks: Ints, nodes: Ints, bad: Ints) -> tuple[Floats, Floats]:
        """Count blocks at their nodes; return the new counts, and what lag bets won.

        Parameters
        ----------
        blocks : ndarray of int, shape (trials, longest)
        nodes : ndarray of int, shape (trials, longest)
        bad : ndarray of int
            From `walk`. Blocks that do the impossible are counted apart.

        Returns
        -------
        counts : ndarray, shape (nodes, V)
            Of these blocks alone.
        won : ndarray, shape (2, stakes)
        """
        possible = nodes >= 0
        possible[bad] = False
        flat = nodes[possible] * self.tree.p.shape[1] + blocks[possible]
        fresh = np.bincount(flat, minlength=self.counts.size).reshape(self.counts.shape)
        won = self._lag(nodes, blocks, possible)
        self.counts += fresh
        self.trials += len(blocks)
        self.impossible += len(bad)
        self.lengths += np.bincount((blocks >= 0).sum(axis=1) - 1, minlength=len(self.lengths))[
            : len(self.lengths)
        ]
        return fresh.astype(np.float64), won

    def check_texts(self, texts: Ints) -> None:
        """Raise `ValueError` unless every text is as long as declared, or ends with EOS."""
        lengths = (texts >= 0).sum(axis=1)
        for row in np.flatnonzero(lengths < self.tree.length):
            if not self.tree.target.vocabulary.ends(texts[row, : lengths[row]].tolist()):
                raise ValueError(
                    f"blocks[{row}] has {lengths[row]} tokens: a text needs "
                    f"{self.tree.length}, or EOS at its end"
                )

    def _lag(self, nodes: Ints, blocks: Ints, possible: NDArray[np.bool_]) -> Floats:
        won = np.zeros((2, len(bets.STAKES)))
        size = self.tree.p.shape[1]
        for j in range(blocks.shape[1]):
            token = blocks[:, j]
            previous = np.concatenate([self.last[j : j + 1], token[:-1]])
            both = possible[:, j] & (previous >= 0)
            triples = (nodes[both, j] * size + token[both]) * size + previous[both]
            happened, times = np.unique(triples, return_counts=True)
            node, pair = np.divmod(happened, size * size)
            p = self.tree.p[node]
            won += bets.lag_evidence(p, pair // size, pair % size, times, self.tolerance)
            self.last[j] = token[-1]
        return won


def declare(
    name: str,
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    algorithm: str,
    mutants: Mapping[str, Entry],
    tokens: int | None,
    tolerance: float,
) -> CampaignCase:
    """Build a case: its prefix tree and its tables of bets.

    Parameters
    ----------
    tokens : int or None
        The length of each text, if text is all that will be seen.

    Raises
    ------
    ValueError
        An unknown algorithm, or two vocabularies for standard.
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm = {algorithm!r}: expected one of {tuple(ALGORITHMS)}")
    accepted = accepted_length_distribution(algorithm, target, drafter, context, lookahead)
    longest = max(len(accepted), lookahead + 1) if tokens is None else tokens
    tree = prefix_tree(target, drafter, context, lookahead, longest)
    library = _library(tree, algorithm, mutants, tokens)
    stacked = np.array(list(library.values())).reshape(-1, *tree.p.shape)
    return CampaignCase(
        name=name,
        tree=tree,
        algorithm=algorithm,
        library=tuple(library),
        log_bets=bets.tolerate(stacked, tree.p, tolerance),
        tilts=bets.tolerate(bets.tilts(tree.p, tree.q), tree.p, tolerance),
        counts=np.zeros_like(tree.p),
        lengths=np.zeros(tree.length, dtype=np.int64),
        last=np.full(tree.length, -1),
        tolerance=tolerance,
    )


def _library(
    tree: PrefixTree, algorithm: str, mutants: Mapping[str, Entry], stream: int | None
) -> dict[tuple[str, float], Floats]:
    if tree.target.vocabulary.tokens != tree.drafter.vocabulary.tokens:
        return {}
    target, drafter = as_float(tree.target), as_float(tree.drafter)

    def law(step: Step) -> Floats:
        return starts(tree, _blocks(step, target, drafter, tree, stream))

    laws = {}
    for name, mutant in mutants.items():
        try:
            laws[name] = law(mutant.step)
        except ValueError:
            continue  # a mutant that crashes here has no law to bet on
    return bets.library_bets(tree.p, law(ALGORITHMS[algorithm]), laws)


def _blocks(
    step: Step, target: Model, drafter: Model, tree: PrefixTree, stream: int | None
) -> dict[Tokens, Probability]:
    def after(context: Tokens) -> dict[Tokens, Probability]:
        return exact_distribution(
            lambda chance: step(target, drafter, context, tree.lookahead, chance)
        )

    if stream is None:
        return after(tree.context)
    # Iterations meet only in the text so far: each text is continued once.
    texts: dict[Tokens, Probability] = {}
    unfinished: dict[Tokens, Probability] = {(): 1.0}
    while unfinished:
        text = min(unfinished, key=len)
        weight = unfinished.pop(text)
        for block, probability in after((*tree.context, *text)).items():
            longer = (*text, *block)[:stream]
            if longer == text:
                raise ValueError(f"step returned an empty block after {text}")
            done = len(longer) == stream or target.vocabulary.ends(longer)
            law = texts if done else unfinished
            law[longer] = law.get(longer, 0) + weight * probability
    return texts


def impossible_traces(tree: PrefixTree, blocks: Ints, nodes: Ints, drafts: Ints) -> Ints:
    """Rows that standard speculative decoding cannot produce from these drafts.

    A draft with p >= q is never rejected, and what replaces a rejected one has p > q. A
    relative guard of 1e-4 keeps rounding from looking like a finding.
    """
    wrong = np.zeros(len(blocks), dtype=bool)
    agreed = np.ones(len(blocks), dtype=bool)
    for j in range(min(drafts.shape[1], blocks.shape[1])):
        at = agreed & (nodes[:, j] >= 0) & (drafts[:, j] >= 0)
        node, token, draft = nodes[at, j], blocks[at, j], drafts[at, j]
        differs = token != draft
        p, q = tree.p[node], tree.q[node]
        rows = np.arange(len(node))
        sure = p[rows, draft] > q[rows, draft] * (1 + TRACE_GUARD)
        not_residual = p[rows, token] < q[rows, token] * (1 - TRACE_GUARD)
        wrong[at] |= differs & (sure | not_residual)
        agreed[at] = ~differs
    return np.flatnonzero(wrong)
