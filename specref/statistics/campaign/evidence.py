"""The evidence of a campaign: the wealth of every component, averaged once.

Components (known bugs, tilted features, Dirichlet mixtures, lag bets) are summed in logarithms
over every token of every case. The mean over a family, and then over families, is an e-process.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from specref.arrays import Floats
from specref.statistics.campaign import bets, large
from specref.statistics.campaign.bets import LAG_SHAPE
from specref.statistics.campaign.cases import CampaignCase
from specref.statistics.campaign.planning import FAMILIES
from specref.statistics.campaign.verdict import Suspect

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
