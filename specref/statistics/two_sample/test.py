"""Speculative against plain sampling of the same system: the target's law is not known.

Half of alpha pays for one e-process (`bets`); the other half, in three parts, for a
lower and an upper bound on total variation that hold at every number of texts, and for a test
whose power is proved (`bounds`).
"""

import math
import time

from specref.arrays import Ints
from specref.statistics.campaign.least import Least, least_of
from specref.statistics.campaign.levels import ALPHA
from specref.statistics.campaign.verdict import Verdict
from specref.statistics.two_sample.bets import Bets
from specref.statistics.two_sample.bounds import (
    PARTS,
    Distance,
    least_trials,
    measure,
    trials_to_find,
    width,
)
from specref.statistics.two_sample.report import TwoSampleReport
from specref.statistics.two_sample.texts import Texts, as_texts

__all__ = ["TwoSample", "TwoSampleReport"]

EPS = 0.05
FIRST_SLICE = 32
GROWTH = 1.5


class TwoSample:
    """Compares texts of two samplers, batch by batch, at any time.

    Texts of N tokens (or up to EOS) are drawn from one prompt, independently, by the system
    with speculation and by the same system without. Memory grows with the number of different
    prefixes.

    Parameters
    ----------
    alpha : float
        The chance to call two samplers with one distribution LOSSY, however often one looks.
    eps : float, optional
        LOSSLESS_WITHIN_EPS needs a provable bound on total variation of at most this. None:
        only look for differences; what is not LOSSY stays INCONCLUSIVE.
    seed : int, optional
        Reported with the verdict.

    Raises
    ------
    ValueError
        `alpha` or `eps` is not in (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(3)
    >>> test = TwoSample()
    >>> test.add(rng.integers(0, 3, (5000, 2)), rng.choice(3, (5000, 2), p=[0.5, 0.3, 0.2]))
    >>> report = test.report()
    >>> str(report.verdict), report.suspects[0].component
    ('LOSSY', 'prefix: token 0 after (0,), less often')
    """

    def __init__(
        self, *, alpha: float = ALPHA, eps: float | None = EPS, seed: int | None = None
    ) -> None:
        for name, value in (("alpha", alpha), ("eps", 0.5 if eps is None else eps)):
            if not 0 < value < 1:
                raise ValueError(f"{name} = {value}: expected a number in (0, 1)")
        self.alpha, self.eps, self.seed = alpha, eps, seed
        self.trials, self.tokens = 0, 0
        self.stopped: str | None = None
        self._bets = Bets()
        self._lower, self._upper = 0.0, 1.0
        self._looks, self._too_far = 0, False
        self._cut = FIRST_SLICE
        self._started = time.perf_counter()

    def add(self, speculative: Texts, plain: Texts) -> None:
        """Count equally many texts of both samplers, in the order in which they were drawn.

        Bets are learned after 32 texts, then whenever their number has grown by half, and
        after each call. No text may be left out, or moved, for what is in it.

        Parameters
        ----------
        speculative, plain : list of tuple, or ndarray of int, shape (trials, longest)
            Token ids; a text that ended early is shorter, or padded with -1.

        Raises
        ------
        TypeError
            Tokens are not integers.
        ValueError
            The numbers of texts differ, or a text is empty or malformed.
        """
        left, right = as_texts(speculative, "speculative"), as_texts(plain, "plain")
        if len(left) != len(right):
            raise ValueError(
                f"{len(left)} speculative and {len(right)} plain texts: expected as many"
            )
        start = 0
        while start < len(left):
            end = min(len(left), start + self._cut - self.trials)
            self._slice(left[start:end], right[start:end])
            start = end

    @property
    def peak(self) -> float:
        """The logarithm of the evidence, its highest."""
        return self._bets.peak

    @property
    def evidence(self) -> float:
        """The logarithm of the evidence now: that of independent tests may be added up."""
        return self._bets.evidence

    @property
    def decided_lossy(self) -> bool:
        """Whether evidence, a bound, or an earlier report has decided already."""
        return self.peak >= -math.log(self.alpha / 2) or self._lower > 0 or self._too_far

    def least(self) -> Least:
        """How far the distributions are apart at least, by beginnings of texts or by one token.

        A number with its standard error, which is no bound: `report` has one.
        """
        return least_of(self._bets.views(), max(self.trials, 1), both=True)

    def report(self) -> TwoSampleReport:
        """The verdict.

        Evidence and bounds may be evaluated whenever one likes. For `threshold` and
        `detectable` each call is a look, and they pay for every one; they hold for looks at
        numbers of texts that were not chosen from the texts.

        Raises
        ------
        ValueError
            No text was added, and nothing stopped a sampler.
        """
        if not (self.trials or self.stopped):
            raise ValueError("nothing to report: add texts first")
        self._looks += 1
        found = measure(self._bets.text_counts(), self.alpha / PARTS, self._looks)
        self._too_far |= found.estimate > found.threshold
        reach = found.estimate + width(self.trials, self.alpha / PARTS)
        self._upper = min(self._upper, reach)
        verdict, needed, to_find = self._verdict(), None, None
        if verdict == Verdict.INCONCLUSIVE:
            needed, tv = self._needed(found), self.eps or EPS
            trials = trials_to_find(tv, self.trials, found, self.alpha / PARTS, self._looks + 1)
            to_find = tv, trials
        return TwoSampleReport(
            verdict=verdict,
            trials=self.trials,
            tokens=self.tokens,
            alpha=self.alpha,
            eps=self.eps,
            log10_evidence=self.peak / math.log(10),
            estimate=found.estimate,
            noise=found.noise,
            lower=self._lower,
            upper=self._upper,
            threshold=found.threshold,
            detectable=found.detectable if found.detectable < 1 else None,
            suspects=self._bets.suspects(),
            needed=needed,
            to_find=to_find,
            seed=self.seed,
            seconds=time.perf_counter() - self._started,
            stopped=self.stopped,
        )

    def _slice(self, speculative: Ints, plain: Ints) -> None:
        self._bets.bet(speculative, plain)
        self.trials += len(plain)
        self.tokens += int((speculative >= 0).sum() + (plain >= 0).sum())
        lower = self._bets.hits / self.trials - width(self.trials, self.alpha / PARTS)
        self._lower = max(self._lower, lower)
        if self.trials == self._cut:
            self._cut = math.ceil(self._cut * GROWTH)

    def _verdict(self) -> Verdict:
        if self.decided_lossy:
            return Verdict.LOSSY
        if self.stopped or self.eps is None or self._upper > self.eps:
            return Verdict.INCONCLUSIVE
        return Verdict.LOSSLESS_WITHIN_EPS

    def _needed(self, found: Distance) -> int | None:
        if self.eps is None:
            return None
        least = least_trials(self.eps, self.alpha / PARTS)
        noise = max(found.estimate, found.noise) + width(self.trials, self.alpha / PARTS)
        return max(least, math.ceil(self.trials * (noise / self.eps) ** 2))
