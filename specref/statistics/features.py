"""Evidence that features of tokens do not have the target's mean, whatever the rows are.

Every row may have another law, and be seen once. A feature f with values in [0, 1] is chosen for
each token before it is drawn: whether it is in a set, for one. Under the target's law the excess
S = sum of f(x) - E f is a martingale, and with V, the sum of the variances of f,

    exp(+-stake S - (exp(stake) - 1 - stake) V)

is a supermartingale with mean at most 1 (Bennett's inequality). The mean over features, signs and
stakes is one, too: by Ville's inequality it ever reaches 1 / alpha with probability at most alpha.
Sums are all that is kept: neither the size of the vocabulary nor the number of rows matters.
"""

import math
from typing import Any

import numpy as np

from specref.arrays import Bools, Floats
from specref.statistics.campaign.bets import log_mean
from specref.statistics.campaign.levels import BETA

STAKES = 2.0 ** np.arange(-9, 4)
PRICES = np.expm1(STAKES) - STAKES
HALVINGS = 50


class FeatureSums:
    """Sums of the features of tokens, beyond what the target's law expects.

    * `shape`: (features,) or (sums, features): the same features, of some of the tokens each.
    * `tolerance`: Total variation of a token that is not held against the sampler.
    * `tokens`, `excess`, `variance`, `spread`: Sums over the tokens for which the feature was bet
      on; `spread` is that of m (1 - m), m being the mean. It is the variance of a set, and the
      most that a feature can have.
    """

    def __init__(self, shape: tuple[int, ...], tolerance: float = 0.0) -> None:
        self.tolerance = tolerance
        self.tokens, self.excess, self.variance, self.spread = np.zeros((4, *shape))

    def add(
        self,
        values: Floats | Bools,
        mean: Floats,
        variance: Floats,
        chosen: Bools | None = None,
    ) -> None:
        """Add tokens: the values of their features, and what the target's law says of them.

        `chosen`, shape (sums, tokens), says which tokens each row of sums is of; by default all.
        """
        every = np.ones(len(values)) if chosen is None else chosen.astype(np.float64)
        number = every.sum(axis=-1)
        some: Any = ... if chosen is None else np.flatnonzero(number)
        self.tokens[some] += number[some][..., None]
        # Not `every @ …`: the order in which BLAS adds depends on its threads.
        self.excess[some] += np.einsum("...t,tf->...f", every[some], values - mean)
        self.variance[some] += np.einsum("...t,tf->...f", every[some], variance)
        self.spread[some] += np.einsum("...t,tf->...f", every[some], mean * (1 - mean))

    @property
    def log_wealth(self) -> Floats:
        """The logarithm of the wealth of each feature, sign and stake; (…, 2, stakes)."""
        # A tolerated shift raises the mean by at most that much a token, and so the variance.
        allowed = self.tolerance * self.tokens
        won = np.stack([self.excess - allowed, -self.excess - allowed], axis=-1)
        price = (self.variance + allowed)[..., None, None] * PRICES
        return np.asarray(STAKES * won[..., None] - price)

    @property
    def log_evidence(self) -> float:
        """The logarithm of the mean wealth of all features."""
        return log_mean(self.log_wealth)

    @property
    def most(self) -> tuple[tuple[int, ...], bool]:
        """The index of the feature with the most wealth, and whether it is too large."""
        wealth = self.log_wealth.max(axis=-1)
        *where, sign = np.unravel_index(int(wealth.argmax()), wealth.shape)
        return tuple(map(int, where)), sign == 0

    def detectable(self, alpha: float, beta: float = BETA) -> Floats:
        """The least shift of each feature that is found, as a mean over the tokens.

        If the expectation of the feature is larger by that much on average, smaller for none of
        the tokens, a sampler reaches evidence 1 / alpha after as many tokens with probability at
        least 1 - beta; and so if it is smaller, larger for none. 1 where no shift is found.

        The variance under another law is not V. But a number in [0, 1] with mean m has at most
        the variance m (1 - m), which a shift of m by d raises by at most d. So the excess is
        above n shift - sqrt(2 W log(1 / beta)) - log(1 / beta) / 3 with probability 1 - beta, by
        Bernstein's inequality with W = min(B + n shift, n / 4), B being the sum of m (1 - m)
        under the target's law: `spread`.
        """
        low, high = np.zeros_like(self.tokens), np.ones_like(self.tokens)
        needed = self._needed(alpha)
        found = self._finds(high, needed, beta)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            enough = self._finds(middle, needed, beta)
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.where(found, high, 1.0)

    def finds(self, shift: Floats, alpha: float, beta: float = BETA) -> Bools:
        """Whether a shift of each feature is found, in the sense of `detectable`."""
        return self._finds(shift, self._needed(alpha), beta)

    def _needed(self, alpha: float) -> Floats:
        allowed = self.tolerance * self.tokens
        spread = (self.variance + allowed)[..., None]
        family = 2 * len(STAKES) * self.tokens.size
        wanted = math.log(family / alpha) + PRICES * spread
        return np.asarray((wanted / STAKES).min(axis=-1) + allowed)

    def _finds(self, shift: Floats, needed: Floats, beta: float) -> Bools:
        n, miss = self.tokens, math.log(1 / beta)
        noise = np.sqrt(2 * np.minimum(self.spread + n * shift, n / 4) * miss) + miss / 3
        return np.asarray(n * shift - noise >= needed)


def tokens_to_detect(shift: float, alpha: float, features: int, beta: float = BETA) -> int:
    """Tokens after which a shift of any of so many features is found, whatever their laws."""
    tokens = 1
    while True:
        sums = FeatureSums((1,))
        sums.tokens += tokens
        sums.variance += tokens / 4
        sums.spread += tokens / 4
        if sums.finds(np.array([shift]), alpha / features, beta)[0]:
            return tokens
        tokens = math.ceil(tokens * 1.1)
