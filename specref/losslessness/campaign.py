"""A campaign: one anytime-valid test of a black-box sampler, over all its cases and runs.

Half of alpha pays for the evidence, an e-process that bets on every token; the other half for a
total-variation test whose power is proved.
"""

import math
import time

from specref.losslessness.acceptance import compare_lengths
from specref.losslessness.cases import CampaignCase
from specref.losslessness.collection import Collection, View
from specref.losslessness.interval import interval, needed_trials
from specref.losslessness.shares import LOOKS, bound_share, evidence_threshold
from specref.losslessness.statistics import ALPHA
from specref.losslessness.verdict import AcceptanceResult, CampaignReport, Interval, Verdict

EPS = 0.02


class Campaign(Collection):
    """Collects samples, bets on every token, and gives a verdict at any time.

    Parameters
    ----------
    alpha : float
        The chance that a lossless sampler is ever called LOSSY, in the whole campaign.
    eps : float, optional
        LOSSLESS_WITHIN_EPS needs a provable bound on total variation of at most this. None:
        only look for bugs; what is not LOSSY stays INCONCLUSIVE.
    view : {"boundary", "stream", "trace"}
        What is seen: blocks; only text; or blocks with their drafts. The last takes for
        granted that the rule is standard speculative decoding with the drafter's own q:
        other lossless rules do what that one never does, and are called LOSSY.
    tolerance : float
        Total variation at each token that is not held against the sampler (for low precision;
        a token that the target excludes still decides). Dirichlet bets are left out if it is
        not 0.
    seed : int, optional
        Reported with the verdict.

    Raises
    ------
    ValueError
        A parameter is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from specref.models import hashed_model
    >>> from specref.simulate import simulate
    >>> from specref.vocabulary import Vocabulary
    >>> abc = Vocabulary("abc")
    >>> target, drafter = hashed_model(abc, "p"), hashed_model(abc, "q")
    >>> campaign = Campaign(seed=1)
    >>> case = campaign.case(target, drafter, lookahead=1)
    >>> rng = np.random.default_rng(1)
    >>> blocks = simulate("standard", target, drafter, lookahead=1, trials=200_000, rng=rng)
    >>> campaign.add(case, blocks.blocks)
    >>> str(campaign.report().verdict)
    'LOSSLESS_WITHIN_EPS'
    """

    def __init__(
        self,
        *,
        alpha: float = ALPHA,
        eps: float | None = EPS,
        view: View = "boundary",
        tolerance: float = 0.0,
        seed: int | None = None,
    ) -> None:
        super().__init__(view, tolerance)
        for name, value in (("alpha", alpha), ("eps", 0.5 if eps is None else eps)):
            if not 0 < value < 1:
                raise ValueError(f"{name} = {value}: expected a number in (0, 1)")
        self.alpha, self.eps, self.seed = alpha, eps, seed
        self.stopped: str | None = None
        self._looks = 0
        self._too_far = False
        self._started = time.perf_counter()

    @property
    def decided_lossy(self) -> bool:
        """Whether evidence, an impossible token, or an earlier report has decided already."""
        enough = self.peak >= evidence_threshold(self.alpha)
        return self.impossible is not None or enough or self._too_far

    def report(self) -> CampaignReport:
        """The verdict so far. Each call is a look; the interval pays for every one.

        The evidence may be looked at whenever one likes. The interval, and the
        total-variation test that goes with it, hold for looks at trial numbers that were not
        chosen from the counts, and for independent blocks of one law.

        Returns
        -------
        CampaignReport

        Raises
        ------
        ValueError
            Nothing was added or observed, and nothing stopped the sampler.
        """
        seen = self._sampled()
        self.evidence.look()
        self._looks += 1
        intervals = tuple(map(self._interval, seen))
        verdict = self._verdict(intervals)
        return CampaignReport(
            verdict=verdict,
            trials=sum(case.trials for case in seen),
            tokens=int(sum(c.counts.sum() for c in seen)) + self.evidence.observer.tokens,
            alpha=self.alpha,
            eps=self.eps,
            tolerance=self.tolerance,
            view=self.view,
            log10_evidence=math.inf if self.impossible else self.peak / math.log(10),
            impossible=self.impossible,
            intervals=intervals,
            suspects=self.evidence.suspects(),
            acceptance=tuple(self._acceptance(case) for case in seen if self._has_lengths(case)),
            needed=self._needed_by_all() if verdict == Verdict.INCONCLUSIVE else None,
            seed=self.seed,
            seconds=time.perf_counter() - self._started,
            stopped=self.stopped,
            left_out=sum(len(case.left_out) for case in self.cases),
        )

    def _sampled(self) -> list[CampaignCase]:
        seen = [case for case in self.cases if case.trials]
        if not (seen or self.evidence.observer.tokens or self.stopped):
            raise ValueError("campaign is empty: add blocks, or observe tokens, before a report")
        return seen

    def _needed_by_all(self) -> int | None:
        if self.eps is None:
            return None
        return max((self.needed(case) or 0 for case in self.cases), default=None)

    def needed(self, case: CampaignCase) -> int | None:
        """Trials on a case that certify a lossless sampler within `eps`, 9 times in 10.

        That is at the next report, which has a smaller share of alpha than the last.
        """
        if self.eps is None:
            return None
        return needed_trials(case.tree, self.eps, self._share(self._looks + 1))

    def _share(self, look: int) -> float:
        return bound_share(self.alpha, look, max(1, len(self.cases)))

    def _interval(self, case: CampaignCase) -> Interval:
        return interval(
            case.name,
            case.tree,
            case.counts,
            case.trials,
            self._share(self._looks),
            impossible=case.impossible,
            allowance=self.tolerance * case.tree.length,
        )

    def _verdict(self, intervals: tuple[Interval, ...]) -> Verdict:
        self._too_far |= any(found.estimate > found.threshold for found in intervals)
        if self.decided_lossy:
            return Verdict.LOSSY
        if self.stopped:
            return Verdict.INCONCLUSIVE
        # Tokens that were only observed have no interval, and cannot be certified.
        complete = len(intervals) == len(self.cases) > 0 and not self.evidence.observer.tokens
        eps = self.eps
        if complete and eps is not None and all(found.upper <= eps for found in intervals):
            return Verdict.LOSSLESS_WITHIN_EPS
        return Verdict.INCONCLUSIVE

    def _has_lengths(self, case: CampaignCase) -> bool:
        # An accepted EOS ends a block without a last token of its own.
        return self.view != "stream" and case.tree.target.vocabulary.eos is None

    def _acceptance(self, case: CampaignCase) -> AcceptanceResult:
        alpha = self.alpha / (LOOKS * self._looks**2) / len(self.cases)
        return compare_lengths(case.name, case.lengths, case.accepted, alpha)
