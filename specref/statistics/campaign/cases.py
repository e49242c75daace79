"""The cases of a campaign: where to bet, on which bugs, and what was counted."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from specref.arrays import Floats, Ints
from specref.models import Model
from specref.statistics.campaign import bets
from specref.statistics.campaign.bets import Recent
from specref.statistics.campaign.library import Bug, known_bugs
from specref.statistics.campaign.prefix_tree import PrefixTree, prefix_tree
from specref.vocabulary import Tokens


@dataclass
class CampaignCase:
    """One pair, context and lookahead, and what was counted on it.

    Attributes
    ----------
    tree : PrefixTree
        Where tokens are bet on.
    library : tuple
        The (mutant, strength) of each row of `log_bets`.
    left_out : tuple of str
        The mutants that are not bet on here, each with the reason.
    log_bets : ndarray, shape (len(library), nodes, V)
    tilts : ndarray, shape (features, stakes, nodes, V)
    accepted : tuple of float, or None
        The closed form of the distribution of numbers of accepted tokens, if the rule has one.
    counts : ndarray, shape (nodes, V)
    lengths : ndarray
        How many blocks had 0, 1, … accepted tokens.
    recent : Recent
        The last blocks, for lag bets.
    """

    name: str
    tree: PrefixTree
    algorithm: str
    library: tuple[bets.Strengthened, ...] = field(repr=False)
    left_out: tuple[str, ...] = field(repr=False)
    log_bets: Floats = field(repr=False)
    tilts: Floats = field(repr=False)
    accepted: tuple[float, ...] | None = field(repr=False)
    counts: Floats = field(repr=False)
    lengths: Ints = field(repr=False)
    recent: Recent = field(repr=False)
    tolerance: float = 0.0
    tokens: int | None = None
    trials: int = 0
    impossible: int = 0

    def emptied(self) -> "CampaignCase":
        """The same case without samples; it shares the tables of bets."""
        return replace(
            self,
            counts=np.zeros_like(self.counts),
            lengths=np.zeros_like(self.lengths),
            recent=Recent(self.tree.p, self.tree.length, self.tolerance),
            trials=0,
            impossible=0,
        )

    def count(self, blocks: Ints, nodes: Ints, bad: Ints) -> tuple[Floats, Floats]:
        """Count blocks at their nodes; return the new counts, and the log-wealth of lag bets.

        Parameters
        ----------
        blocks, nodes : ndarray of int, shape (trials, longest block)
        bad : ndarray of int
            From `walk`. Blocks that do the impossible are counted apart.

        Returns
        -------
        counts : ndarray, shape (nodes, V)
            Of these blocks alone.
        won : ndarray, shape (lags, kinds, stakes)
        """
        possible = nodes >= 0
        possible[bad] = False
        flat = nodes[possible] * self.tree.p.shape[1] + blocks[possible]
        fresh = np.bincount(flat, minlength=self.counts.size).reshape(self.counts.shape)
        self.counts += fresh
        self.trials += len(blocks)
        self.impossible += len(bad)
        self.lengths += np.bincount((blocks >= 0).sum(axis=1) - 1, minlength=len(self.lengths))
        return fresh.astype(np.float64), self.recent.bet(nodes, blocks, possible)

    def check_texts(self, texts: Ints) -> None:
        """Raise `ValueError` unless every text is as long as declared, or ends with EOS."""
        lengths = (texts >= 0).sum(axis=1)
        for row in np.flatnonzero(lengths < self.tree.length):
            if not self.tree.target.vocabulary.ends(texts[row, : lengths[row]].tolist()):
                raise ValueError(
                    f"blocks[{row}] has {lengths[row]} tokens: a text needs "
                    f"{self.tree.length}, or EOS at its end"
                )


def declare(
    name: str,
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    algorithm: str,
    mutants: Mapping[str, Bug],
    tokens: int | None,
    tolerance: float,
) -> CampaignCase:
    """Build a case: its prefix tree and its tables of bets.

    * `tokens`: The length of each text, if text is all that will be seen.
    * raises `ValueError`: An unknown algorithm, or two vocabularies for standard.
    """
    from specref.rules import rule_of  # all algorithms: for who declares a case alone

    lengths = rule_of(algorithm).accepted_lengths
    accepted = None
    if lengths is not None:
        accepted = tuple(map(float, lengths(target, drafter, context, lookahead)))
    longest = max(len(accepted or ()), lookahead + 1) if tokens is None else tokens
    tree = prefix_tree(target, drafter, context, lookahead, longest)
    library, left_out = known_bugs(tree, algorithm, mutants, tokens)
    stacked = np.array(list(library.values())).reshape(-1, *tree.p.shape)
    return CampaignCase(
        name=name,
        tree=tree,
        algorithm=algorithm,
        library=tuple(library),
        left_out=left_out,
        log_bets=bets.tolerate(stacked, tree.p, tolerance),
        tilts=bets.tolerate(bets.tilts(tree.p, tree.q), tree.p, tolerance),
        accepted=accepted,
        counts=np.zeros_like(tree.p),
        lengths=np.zeros(tree.length, dtype=np.int64),
        recent=Recent(tree.p, tree.length, tolerance),
        tolerance=tolerance,
        tokens=tokens,
    )
