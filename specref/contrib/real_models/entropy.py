"""Surprise against entropy: an anytime-valid test of real models, on their own rows.

Given the past, -log p(x) of a token drawn from p has mean H(p), so sum (-log p(x) - H(p)) is a
martingale. Its conditional cumulant is known exactly, in O(V): with Z = sum_y p(y)^(1 - l),

    exp(l * (-log p(x) - H) - log E exp(l * (-log p - H))) = p(x)^-l / Z = r(x) / p(x)

where r = p^(1 - l) / Z is p at temperature 1 / (1 - l). So the product over tokens is a
martingale with mean 1, and the bet is that the text is flatter (l > 0) or sharper (l < 0) than
p. A wrong temperature, and drift to a drafter's law, are of that kind.
"""

import math
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from specref.arrays import Floats
from specref.statistics.campaign.bets import log_mean
from specref.statistics.campaign.large import SUM_TOLERANCE, as_index, as_row
from specref.statistics.campaign.levels import ALPHA

STAKES = np.array([s * x for x in (0.5, 0.25, 0.1, 0.05, 0.02, 0.01) for s in (1, -1)])


@dataclass(frozen=True)
class EntropyReport:
    """The evidence from the surprise of a text so far.

    Attributes
    ----------
    tokens : int
    surprise, entropy : float
        The means of -log p(x) and of H(p), in nats.
    z : float
        Their difference in standard deviations, for information only.
    log10_evidence : float
        The highest value that the e-process reached; it decides at -log10(alpha).
    temperature : float
        The distribution p ** (1 / temperature) that the text fits best, among those bet on.
    impossible : str or None
        A token that p excludes, which decides at once.
    """

    tokens: int
    surprise: float
    entropy: float
    z: float
    alpha: float
    log10_evidence: float
    temperature: float
    impossible: str | None

    @property
    def lossy(self) -> bool:
        """Whether the text is not the target's; wrong with probability at most alpha."""
        return self.log10_evidence >= -math.log10(self.alpha)

    @property
    def anytime_p(self) -> float:
        """min(1, 1 / E): valid however often one has looked."""
        return float(min(1.0, 10.0**-self.log10_evidence))

    def __str__(self) -> str:
        verdict = "LOSSY" if self.lossy else "nothing found"
        found = f" impossible: {self.impossible}." if self.impossible else ""
        return (
            f"{verdict}: {self.tokens:,} tokens, surprise {self.surprise:.4f}, entropy "
            f"{self.entropy:.4f} nats (z {self.z:+.2f}), evidence 10^{self.log10_evidence:.1f} "
            f"(LOSSY at 10^{-math.log10(self.alpha):.1f}), fits temperature "
            f"{self.temperature:.2f}.{found}"
        )


class EntropyMartingale:
    """Bets on every token of a text that p is not its law, based on surprise alone.

    * `alpha`: The probability that a text from p is ever called lossy, however often one looks.
    * `log_wealth`: Logarithm of the wealth of the bet on each of `STAKES`.
    * `expected`: What it would be on average, if each text were the one that is bet on.
    * `impossible`: The first token that p excludes.

    >>> martingale = EntropyMartingale(alpha=1e-3)
    >>> rng = np.random.default_rng(0)
    >>> for token in rng.choice(3, size=1000, p=[0.4, 0.3, 0.3]):
    ...     martingale.observe([0.8, 0.1, 0.1], token)
    >>> martingale.report().lossy
    True
    """

    def __init__(self, alpha: float = ALPHA) -> None:
        if not 0 < alpha < 1:
            raise ValueError(f"alpha = {alpha}: expected a number in (0, 1)")
        self.alpha, self.tokens = alpha, 0
        self.impossible: str | None = None
        self.log_wealth = np.zeros(len(STAKES))
        self.expected = np.zeros(len(STAKES))
        self._peak = 0.0
        self._surprise = self._entropy = self._variance = 0.0

    @property
    def evidence(self) -> float:
        """The average wealth, at its highest so far; infinite after an impossible token."""
        if self.impossible or self._peak > math.log(np.finfo(float).max):
            return math.inf
        return math.exp(self._peak)

    def observe(self, p: ArrayLike, token: SupportsIndex) -> None:
        """Bet on one token, in time O(V).

        * `p`: The target's law of the token given all tokens before it, as the sampler used it. It
          is normalised if its sum is within 1e-6 of 1, as in single precision.
        """
        row, index = as_row(p, "p"), as_index(token, "token")
        _check(row, index)
        self.tokens += 1
        if not row[index]:
            self.impossible = self.impossible or f"token {index} at {self.tokens - 1}"
            return
        law = row[row > 0] / row.sum()
        log_p = np.log(law)
        surprise = -math.log(row[index] / row.sum())
        log_sums, means = _tilted(law, log_p)
        self.log_wealth += STAKES * surprise - log_sums
        self.expected -= STAKES * means + log_sums  # the relative entropy of r to p
        self._peak = max(self._peak, log_mean(self.log_wealth))
        entropy = -float(law @ log_p)
        self._surprise += surprise
        self._entropy += entropy
        self._variance += float(law @ (log_p + entropy) ** 2)

    def report(self) -> EntropyReport:
        """The evidence so far.

        * raises `ValueError`: Nothing was observed.
        """
        if not self.tokens:
            raise ValueError("nothing was observed: expected at least one token")
        spread = math.sqrt(self._variance)
        gap = self._surprise - self._entropy
        log10_evidence = math.inf if self.impossible else self._peak / math.log(10)
        return EntropyReport(
            tokens=self.tokens,
            surprise=self._surprise / self.tokens,
            entropy=self._entropy / self.tokens,
            z=gap / spread if spread else 0.0,
            alpha=self.alpha,
            log10_evidence=log10_evidence,
            temperature=float(1 / (1 - STAKES[np.argmax(self.log_wealth)])),
            impossible=self.impossible,
        )


def _tilted(p: Floats, log_p: Floats) -> tuple[Floats, Floats]:
    """For each stake l, with r = p^(1 - l) / Z: log Z, and the mean of log p under r."""
    powers = np.empty((len(STAKES), len(p)))  # p^-l: one exponential, since it is what takes long
    one = np.exp(-0.01 * log_p)
    two = one * one
    five = two * two * one
    ten = five * five
    quarter = ten * ten * five
    powers[::2] = quarter * quarter, quarter, ten, five, two, one
    np.divide(1, powers[::2], out=powers[1::2])
    sums = powers @ p
    return np.log(sums), powers @ (p * log_p) / sums


def _check(p: Floats, token: int) -> None:
    if p.ndim != 1:
        raise ValueError(f"p has shape {p.shape}: expected a vector")
    if not 0 <= token < len(p):
        raise ValueError(f"token = {token}: expected 0 <= id < {len(p)}")
    if not (p >= 0).all():
        worst = int(np.argmin(np.nan_to_num(p, nan=-np.inf)))
        raise ValueError(f"p[{worst}] = {p[worst]}: expected a probability")
    if not math.isclose(p.sum(), 1, abs_tol=SUM_TOLERANCE):
        raise ValueError(f"p sums to {p.sum()}: expected 1")
