"""What a trial found, and where blocks fit the target's law least."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from specref.conformance.contract import Floats
from specref.conformance.fixtures import Place
from specref.losslessness.verdict import CampaignReport, Interval
from specref.vocabulary import Tokens


@dataclass(frozen=True)
class TrialReport:
    """What one campaign of a check found.

    Attributes
    ----------
    law, dependence : float
        log10 of the evidence against the law of blocks, and against their independence.
    threshold : float
        From where on either decides.
    far : bool
        Whether the total-variation test decides.
    worst : Interval
        Of the place where blocks fit the target's law least.
    hits : mapping
        How often a block with drafts ended in a "residual" or a "bonus" token.
    kept : mapping
        {place: {k: how often the first k drafts were kept, for k = 0 if there was one}}.
    blocks : mapping
        {place: counts of raw blocks}, for diagnosis.
    shared : float
        log10 of the evidence that rows depend on each other whatever their law, asked for
        where law or dependence was decided.
    """

    report: CampaignReport
    law: float
    dependence: float
    threshold: float
    far: bool
    worst: Interval
    hits: Mapping[str, int]
    kept: Mapping[Place, Mapping[int, int]]
    blocks: Mapping[Place, Mapping[Tokens, int]]
    seconds: float
    shared: float = -math.inf

    @property
    def lossy(self) -> bool:
        """Whether blocks are provably no independent draws from the target's law."""
        return self.far or self.report.impossible is not None or self.law >= self.threshold

    @property
    def dependent(self) -> bool:
        """Whether bets at the target's odds, on what was seen before, have won."""
        return self.dependence >= self.threshold or self.sharing

    @property
    def sharing(self) -> bool:
        """Whether blocks are provably not independent, whatever their law."""
        return self.shared >= self.threshold


def misfit(counts: Floats, p: Floats) -> float:
    """The likelihood ratio of counted tokens against p, less what it is by chance.

    Examples
    --------
    >>> misfit(np.array([[50.0, 50.0]]), np.array([[0.5, 0.5]]))
    -1.0
    >>> round(misfit(np.array([[60.0, 40.0]]), np.array([[0.5, 0.5]])), 2)
    3.03
    """
    expected = counts.sum(axis=1, keepdims=True) * p
    seen = (counts > 0) & (p > 0)
    deviance = 2 * (counts[seen] * np.log(counts[seen] / expected[seen])).sum()
    return float(deviance - ((expected > 0).sum() - (expected > 0).any(axis=1).sum()))
