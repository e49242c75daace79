"""Acceptance given what the companion says: a table from a profiling run, and its information.

Kim et al. 2025 (arXiv:2509.24328), sections 4 and 7.3, Table 2: similarity S and companion
acceptance A are cut into adaptive bins, and the target's acceptance is averaged in each cell.
Rates are exact for exact observations; entropies are floats, in bits.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import log2
from typing import NamedTuple

from specref.algorithms.companion.companion import check_lengths
from specref.algorithms.lookahead import positions
from specref.distributions import Probabilities, Probability
from specref.theory.goodput import Rates, survival

Edges = tuple[Probability, ...]


class EmptyBinError(ValueError):
    """The profiling run saw nothing in the bin that is asked for."""


class Observation(NamedTuple):
    """One profiled draft: what the companion said, and what the target did.

    `accepted` is its verdict (0 or 1) or, with less noise, the acceptance min(1, p / q).
    """

    similarity: Probability
    companion_acceptance: Probability
    accepted: Probability


class Gain(NamedTuple):
    """Entropy of the verdict in bits: before, given the bin, the difference, and its share."""

    entropy: float
    conditional: float
    information: float
    share: float


@dataclass(frozen=True)
class AcceptanceTable:
    """Mean acceptance by cell (similarity bin, companion acceptance bin).

    * `similarity_edges`, `acceptance_edges`: Where the second, third, … bin of an axis begins,
      increasing. The first begins at 0, the last ends at 1.
    * `counts`, `accepted`: Observations of each cell, and the sum of what they accepted.
    * `otherwise` (number in [0, 1]): The estimate for cells without observations; by default they
      raise.
    """

    similarity_edges: Edges
    acceptance_edges: Edges
    counts: tuple[tuple[int, ...], ...]
    accepted: tuple[tuple[Probability, ...], ...]
    otherwise: Probability | None = None

    def __call__(self, similarity: Probability, companion_acceptance: Probability) -> Probability:
        """The estimated acceptance of a drafted token.

        * raises `EmptyBinError`: No observation in the cell, and no `otherwise`.
        * raises `ValueError`: An argument is not in [0, 1].
        """
        row = _bin(self.similarity_edges, similarity, "similarity")
        column = _bin(self.acceptance_edges, companion_acceptance, "companion_acceptance")
        return self._mean(self.counts[row][column], self.accepted[row][column], row, column)

    def before_drawing(self, similarity: Probability) -> Probability:
        """The estimated acceptance of a draft not yet drawn: over all bins of A.

        Raises as a call; a row that `profile` made has observations.
        """
        row = _bin(self.similarity_edges, similarity, "similarity")
        return self._mean(sum(self.counts[row]), sum(self.accepted[row]), row)

    def gain(self) -> Gain:
        """What the cell tells about the verdict: `information_gain` of all cells."""
        return information_gain(
            [count for row in self.counts for count in row],
            [total for row in self.accepted for total in row],
        )

    def _mean(self, count: int, total: Probability, *cell: int) -> Probability:
        if count:
            return total / count
        if self.otherwise is None:
            raise EmptyBinError(
                f"no observation in bin {cell}: profile more, use fewer bins, or give otherwise"
            )
        return self.otherwise


def profile(
    observations: Sequence[Observation],
    bins: tuple[int, int],
    *,
    otherwise: Probability | None = None,
) -> AcceptanceTable:
    """Tabulate a profiling run with adaptive bins: edges at the quantiles of each axis.

    Equal values share a bin, so there may be fewer bins than asked for (A is 1 for many
    tokens). Every row and column has observations, but a cell need not.

    Parameters
    ----------
    observations : sequence of Observation
        At least one, all entries in [0, 1].
    bins : (int, int)
        The most bins of similarity and of companion acceptance; the paper has (27, 27).
    otherwise : number in [0, 1], optional
        As `AcceptanceTable`.

    Raises
    ------
    ValueError
        No observations, an entry not in [0, 1], or fewer than one bin.

    Examples
    --------
    >>> run = [Observation(Fraction(s, 4), Fraction(a, 2), int(s == a == 2))
    ...        for s in (1, 2) for a in (1, 2)]
    >>> table = profile(run, (2, 2))
    >>> table(Fraction(1, 2), 1), table.before_drawing(Fraction(1, 2))
    (Fraction(1, 1), Fraction(1, 2))
    """
    _check(observations, bins, otherwise)
    edges = [_quantiles([o[axis] for o in observations], bins[axis]) for axis in (0, 1)]
    counts = [[0] * (len(edges[1]) + 1) for _ in range(len(edges[0]) + 1)]
    accepted: list[list[Probability]] = [[Fraction(0)] * len(row) for row in counts]
    for similarity, acceptance, verdict in observations:
        row, column = bisect_right(edges[0], similarity), bisect_right(edges[1], acceptance)
        counts[row][column] += 1
        accepted[row][column] += verdict
    cells = tuple(map(tuple, counts)), tuple(map(tuple, accepted))
    return AcceptanceTable(edges[0], edges[1], *cells, otherwise)


def information_gain(counts: Sequence[int], accepted: Sequence[Probability]) -> Gain:
    """I(verdict; bin) of a table, by the plug-in estimate.

    Kim et al. 2025, Table 2, has gains of another variable, the acceptance probability itself:
    its entropies, 1.38 and 1.78, are more than the one bit that a verdict has at most.

    Biased upwards: where bin and verdict are independent the gain is positive all the same, and
    grows with the number of bins (Panzeri and Treves 1996). A gain that rises as bins get finer
    shows nothing by itself.

    * `counts`, `accepted`: For each bin, the observations and how many of them were accepted (or
      the sum of their acceptances).
    * raises `ValueError`: Different lengths, no observations, or some `accepted` not between 0 and
      its count.
    """
    if len(counts) != len(accepted) or not sum(counts) > 0:
        raise ValueError(f"counts {tuple(counts)}: expected observations, one count for each bin")
    for index, (count, total) in enumerate(zip(counts, accepted, strict=True)):
        if not 0 <= total <= count:
            raise ValueError(f"accepted[{index}] = {total}: expected 0 to {count}, its count")
    before = entropy(sum(accepted) / Fraction(sum(counts)))
    used = [
        (count, entropy(a / count)) for count, a in zip(counts, accepted, strict=True) if count
    ]
    given = sum(count * bits for count, bits in used) / sum(counts)
    return Gain(before, given, before - given, (before - given) / before if before else 0.0)


def entropy(acceptance: Probability) -> float:
    """The entropy of a verdict that is yes with this probability, in bits."""
    if not 0 <= acceptance <= 1:
        raise ValueError(f"acceptance = {acceptance}: expected a number in [0, 1]")
    weights = (float(acceptance), float(1 - acceptance))
    return sum((-weight * log2(weight) for weight in weights if weight > 0), start=0.0)


def _quantiles(values: Sequence[Probability], bins: int) -> Edges:
    """The values at ranks n/bins, 2n/bins, …: distinct, without the least."""
    ranked = sorted(values)
    cuts = {ranked[len(ranked) * k // bins] for k in range(1, bins)}
    return tuple(sorted(cuts - {ranked[0]}))


def _bin(edges: Edges, value: Probability, name: str) -> int:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} = {value}: expected a number in [0, 1]")
    return bisect_right(edges, value)


def _check(
    observations: Sequence[Observation], bins: tuple[int, int], otherwise: Probability | None
) -> None:
    if not len(observations):
        raise ValueError("observations is empty: expected a profiling run")
    for index, observation in enumerate(observations):
        for name, value in zip(Observation._fields, observation, strict=True):
            if not 0 <= value <= 1:
                raise ValueError(
                    f"observations[{index}].{name} = {value}: expected a number in [0, 1]"
                )
    if len(bins) != 2 or not all(len(positions(number)) for number in bins):
        raise ValueError(f"bins = {bins}: expected two integers >= 1")
    if otherwise is not None and not 0 <= otherwise <= 1:
        raise ValueError(f"otherwise = {otherwise}: expected a number in [0, 1]")


def accepted_length_law(rates: Rates, length: int) -> tuple[Probability, ...]:
    """P(N = 0), …, P(N = `length`) accepted drafts, if the first `length` are verified.

    Kim et al. 2025, section 5: the product of the first n rates, times 1 - the next if n is not
    all. Right if rate k is that of draft k *given that the earlier ones are accepted*; with
    averages over contexts that differ it is not (and too small: `expected_accepted`).

    * raises `ValueError`: A rate is not in [0, 1], or there are fewer than `length` >= 0.
    """
    reached = (*_survival(rates, length), 0)
    return tuple(now - later for now, later in pairwise(reached))


def expected_accepted(rates: Rates, length: int) -> Probability:
    """E[N] = a_1 + a_1 a_2 + … of `length` terms: Kim et al. 2025, section 5.

    Parameters and errors as `accepted_length_law`.
    """
    return sum(_survival(rates, length)[1:], start=Fraction(0))


def truncated_law(p: Probabilities, q: Probabilities, kept: Probabilities) -> Probabilities:
    """The law of a token if draft x is verified with probability kept[x], and else forgotten.

    min(p, q) w + E_q[w (1 - p / q)+] norm((p - q)+) + (1 - E_q[w]) p, w the probability. It is
    p for every p iff w is the same for all x that q can draft: for p = q it is
    q (1 + w - E_q[w]), as far from q as half the mean absolute deviation of w.

    * `p`, `q` (ndarray, shape (V,))
    * `kept` (ndarray, shape (V,)): Each in [0, 1].
    * raises `ValueError`: Different lengths, or an entry of `kept` is not in [0, 1].
    """
    check_lengths(p, q)
    check_lengths(q, kept)
    for token, weight in enumerate(kept):
        if not 0 <= weight <= 1:
            raise ValueError(f"kept[{token}] = {weight}: expected a number in [0, 1]")
    excess = (p - q) * (p > q)
    rejected = (kept * (q - p) * (q > p)).sum()
    residual = excess * (rejected / excess.sum()) if rejected else excess * 0
    law: Probabilities = kept * (p - excess) + residual + (1 - (q * kept).sum()) * p
    return law


def _survival(rates: Rates, length: int) -> tuple[Probability, ...]:
    """`survival`, which also takes no rates."""
    return survival(rates, length) if len(rates) or length else (Fraction(1),)
