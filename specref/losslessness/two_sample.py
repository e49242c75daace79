"""Speculative against plain sampling of the same system: the target's law is not known.

A bet h(token) in [-1, 1], fixed before a pair of tokens is seen, pays 1 + s h on the
speculative token and 1 - s h on the plain one. If both have the same law the product has mean
(1 + s m)(1 - s m) <= 1, so the running product is an e-process for "no difference" (after
Turner, Ly and Grünwald 2024). Bets are learned from earlier batches.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specref.losslessness.bets import log_mean
from specref.losslessness.statistics import ALPHA
from specref.losslessness.tree import as_blocks
from specref.losslessness.verdict import Verdict
from specref.vocabulary import Tokens

Ints = NDArray[np.int64]
STAKES = np.array([0.9, 0.5, 0.25, 0.1])
SHRINKAGE = 20.0
END = -1
Cell = tuple[Hashable, int]
VIEWS: dict[str, Callable[[Tokens], Hashable]] = {
    "prefix": lambda prefix: prefix,
    "position": len,
    "anywhere": lambda prefix: None,
}


@dataclass(frozen=True)
class TwoSampleReport:
    """The verdict on "both have the same law of N tokens".

    Attributes
    ----------
    trials : int
        Texts on each side.
    estimate, upper : float
        Total variation of the two samples; the truth is below `upper` but for alpha.
    needed : int or None
        Texts on each side that would decide, roughly, if inconclusive.
    """

    verdict: Verdict
    trials: int
    alpha: float
    eps: float
    log10_evidence: float
    estimate: float
    upper: float
    needed: int | None


class TwoSample:
    """Compares texts of N tokens from two samplers, batch by batch, at any time.

    Parameters
    ----------
    alpha : float
        The chance to call two samplers with one law LOSSY, however often one looks.
    eps : float
        LOSSLESS_WITHIN_EPS needs a provable bound of at most this.

    Raises
    ------
    ValueError
        `alpha` or `eps` is not in (0, 1).

    Examples
    --------
    >>> rng = np.random.default_rng(3)
    >>> test = TwoSample()
    >>> for _ in range(10):
    ...     test.add(rng.integers(0, 3, (500, 2)), rng.choice(3, (500, 2), p=[0.5, 0.3, 0.2]))
    >>> str(test.report().verdict)
    'LOSSY'
    """

    def __init__(self, *, alpha: float = ALPHA, eps: float = 0.05) -> None:
        for name, value in (("alpha", alpha), ("eps", eps)):
            if not 0 < value < 1:
                raise ValueError(f"{name} = {value}: expected a number in (0, 1)")
        self.alpha, self.eps = alpha, eps
        self.trials = 0
        self.peak = -math.inf
        self._looks = 0
        self._wealth = np.zeros((len(VIEWS), len(STAKES)))
        self._texts: tuple[Counter[Tokens], Counter[Tokens]] = (Counter(), Counter())
        self._seen: tuple[Counter[Cell], Counter[Cell]] = (Counter(), Counter())

    def add(self, speculative: Sequence[Tokens] | Ints, plain: Sequence[Tokens] | Ints) -> None:
        """Count equally many texts of both samplers, padded with -1 after EOS.

        Raises
        ------
        ValueError
            The numbers of texts differ, or a text is malformed.
        """
        sides = [as_blocks(speculative), as_blocks(plain)]
        if len(sides[0]) != len(sides[1]):
            raise ValueError(
                f"{len(sides[0])} speculative and {len(sides[1])} plain texts: expected as many"
            )
        texts = [[tuple(t for t in row if t >= 0) for row in side.tolist()] for side in sides]
        tokens = [_by_prefix(side) for side in texts]
        for prefix in tokens[0].keys() & tokens[1].keys():
            pairs = min(len(tokens[0][prefix]), len(tokens[1][prefix]))
            self._bet(prefix, tokens[0][prefix][:pairs], tokens[1][prefix][:pairs])
        for side in (0, 1):
            self._texts[side].update(texts[side])
            self._learn(side, tokens[side])
        self.trials += len(sides[0])
        self.peak = max(self.peak, log_mean(self._wealth.ravel()))

    def report(self) -> TwoSampleReport:
        """The verdict so far; each call is a look, and the bound pays for every one.

        Raises
        ------
        ValueError
            No text was added.
        """
        if not self.trials:
            raise ValueError("nothing to report: add texts first")
        self._looks += 1
        share = self.alpha * 6 / (math.pi * self._looks) ** 2
        estimate = self._distance()
        slack = math.sqrt(math.log(1 / share) / self.trials)
        upper = min(1.0, estimate + slack)
        verdict = Verdict.INCONCLUSIVE
        if self.peak >= -math.log(self.alpha):
            verdict = Verdict.LOSSY
        elif upper <= self.eps:
            verdict = Verdict.LOSSLESS_WITHIN_EPS
        needed = None
        if verdict == Verdict.INCONCLUSIVE:
            needed = math.ceil(self.trials * ((estimate + slack) / self.eps) ** 2)
        evidence = self.peak / math.log(10)
        return TwoSampleReport(
            verdict, self.trials, self.alpha, self.eps, evidence, estimate, upper, needed
        )

    def _bet(self, prefix: Tokens, speculative: list[int], plain: list[int]) -> None:
        for row, view in enumerate(VIEWS.values()):
            place = view(prefix)
            for sign, side in ((1, speculative), (-1, plain)):
                for token, count in Counter(side).items():
                    lean = sign * self._lean((place, token))
                    self._wealth[row] += count * np.log1p(STAKES * lean)

    def _lean(self, cell: Cell) -> float:
        more, fewer = self._seen[0][cell], self._seen[1][cell]
        return (more - fewer) / (more + fewer + SHRINKAGE)

    def _learn(self, side: int, tokens: dict[Tokens, list[int]]) -> None:
        for prefix, followed in tokens.items():
            for token, count in Counter(followed).items():
                for view in VIEWS.values():
                    self._seen[side][view(prefix), token] += count

    def _distance(self) -> float:
        left, right = self._texts
        gaps = [abs(left[text] - right[text]) for text in left.keys() | right.keys()]
        return sum(gaps) / (2 * self.trials)


def _by_prefix(texts: list[Tokens]) -> dict[Tokens, list[int]]:
    found: dict[Tokens, list[int]] = defaultdict(list)
    for text in texts:
        for j, token in enumerate((*text, END)):
            found[text[:j]].append(token)
    return found
