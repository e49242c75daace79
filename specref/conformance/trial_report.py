"""What a trial found, and where blocks fit the target's law least."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from specref.conformance.contract import Floats
from specref.conformance.fixtures import Place
from specref.losslessness.interval import trials_to_detect
from specref.losslessness.shares import bound_share
from specref.losslessness.statistics import BETA
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
    laws : tuple of ndarray
        The target's law of completed blocks at each place.
    allowances : tuple of float
        Total variation that is not held against the sampler there.
    after_eos : bool
        Whether blocks do the impossible in what follows an EOS, and nowhere else.
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
    laws: tuple[Floats, ...] = field(repr=False, compare=False)
    allowances: tuple[float, ...] = ()
    after_eos: bool = False
    shared: float = -math.inf

    def needed(self, tv: float) -> int | None:
        """Trials, over all places, after which any law at distance `tv` is found.

        None if no number is enough: as much is not held against the sampler.
        """
        beyond = tv - max(self.allowances)
        return trials_needed(self.laws, beyond, self.report.alpha) if beyond > 0 else None

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


def trials_needed(laws: Sequence[Floats], tv: float, alpha: float) -> int:
    """Trials, over all places, after which a campaign finds any law at distance `tv`."""
    share = bound_share(alpha, 1, len(laws))
    each = max(trials_to_detect(law, tv, share, BETA) for law in laws)
    return len(laws) * (each + each % 2)


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
