"""The evidence of a campaign: the wealth of every component, averaged once.

Components (known bugs, tilted features, Dirichlet mixtures, lag bets) are summed in logarithms
over every token of every case. The mean over a family, and then over families, is an e-process.

A case says where to bet, on which bugs, and what was counted.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np

from specref.algorithms.decoding import Step
from specref.arrays import Floats, Ints
from specref.chance import TooManyPathsError
from specref.models import Model
from specref.proofs.lazy import Enumerator, ReadableModel, or_reason
from specref.statistics.campaign import bets, large
from specref.statistics.campaign.bets import (
    LAG_SHAPE,
    STRENGTHS,
    Recent,
    Strengthened,
    library_bets,
)
from specref.statistics.campaign.planning import FAMILIES
from specref.statistics.campaign.prefix_tree import PrefixTree, prefix_tree, starts
from specref.statistics.campaign.verdict import Suspect
from specref.vocabulary import Tokens

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

    `tokens` is the length of each text, if text is all that will be seen.
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


SUSPECTS = 5


@dataclass
class Evidence:
    """The wealth of the bets on cases and on single tokens.

    * `observer`: Bets on single tokens.
    * `peak`: The logarithm of the average wealth, at the look where it was highest.
    """

    tolerance: float
    peak: float = -math.inf

    _at_peak: dict[str, Floats] = field(default_factory=dict)
    _bugs: dict[bets.Strengthened, int] = field(default_factory=dict)
    _library: Floats = field(default_factory=lambda: np.zeros(0))
    _tilts: Floats = field(default_factory=lambda: np.zeros(large.TILT_SHAPE))
    _lags: Floats = field(default_factory=lambda: np.zeros(LAG_SHAPE))

    def __post_init__(self) -> None:
        self.observer = large.Observer(self.tolerance)

    def declare(self, case: CampaignCase) -> None:
        """Bet on the bugs of a case from now on.

        A bug that is first bet on now gets the average wealth of the others: like moving
        money between bets, that keeps their average what it is.
        """
        new = [bug for bug in case.library if bug not in self._bugs]
        average = bets.log_mean(self._library) if self._bugs else 0.0
        self._bugs |= {bug: len(self._bugs) + index for index, bug in enumerate(new)}
        self._library = np.append(self._library, np.full(len(new), average))

    def bet(self, case: CampaignCase, fresh: Floats, lags: Floats) -> None:
        """Add the log-wealth that bets won on new counts, and that of lag bets."""
        node, token = np.nonzero(fresh)
        rows = [self._bugs[bug] for bug in case.library]
        self._library[rows] += case.log_bets[:, node, token] @ fresh[node, token]
        self._tilts += bets.tilt_evidence(fresh, case.tilts, case.tree.position)
        self._lags += lags

    def look(self, cases: Sequence[CampaignCase]) -> None:
        """Compare the evidence with its highest so far."""
        families = self.families(cases)
        total = bets.log_mean(np.array([bets.log_mean(f) for f in families.values()]))
        if total >= self.peak:
            self.peak, self._at_peak = total, families

    def families(self, cases: Sequence[CampaignCase]) -> dict[str, Floats]:
        """The log-wealth of every component, given all cases and their counts.

        Every family counts from the start, with a wealth of 1 while it has nothing to bet on:
        one that joined later would change the weights of the others.
        """
        dirichlet = np.zeros(len(bets.CONCENTRATIONS))
        for case in cases if not self.tolerance else ():
            dirichlet += bets.dirichlet_evidence(case.counts, case.tree.p)
        wealth = (
            self._library.copy() if self._bugs else np.zeros(1),
            (self._tilts + self.observer.tilts).ravel(),
            (self._lags + self.observer.lags).ravel(),
            self.observer.library.ravel(),
            dirichlet,
        )
        return dict(zip(FAMILIES, wealth, strict=True))

    def suspects(self) -> tuple[Suspect, ...]:
        """The strongest components when the evidence was highest."""
        library = list(self._bugs) or [("no bug", 0.0)]
        best: dict[str, float] = {}
        places = [(f, i) for f, values in self._at_peak.items() for i in range(len(values))]
        wealth = np.concatenate([np.zeros(0), *self._at_peak.values()])
        for place in np.argsort(-wealth, kind="stable"):
            family, index = places[place]
            # Members of one name differ by their stake or strength only.
            name = f"{family}: {large.label(family, index, library)}"
            best.setdefault(name, float(wealth[place]))
            if len(best) == SUSPECTS:
                break
        return tuple(Suspect(name, value / math.log(10)) for name, value in best.items())
