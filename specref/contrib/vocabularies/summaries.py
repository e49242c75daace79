"""How many decompositions the tokens of a whole vocabulary have: Timor et al. 2025, Appendix D."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from specref.theory.counting import spellings
from specref.vocabulary import Text, Vocabulary

SHORTEST = 150_000


@dataclass(frozen=True)
class Summary:
    """The columns of the paper's table; `deviation` is that of a sample, with n - 1."""

    mean: float
    deviation: float
    least: int
    quartiles: tuple[float, float, float]
    most: int


@dataclass(frozen=True)
class Decompositions:
    """Figures of a whole vocabulary, and of its shortest tokens, in the order (length, id).

    * `shortest`: How many the summaries are of. The paper states no rule for which of several
      tokens of one length are in: what depends on it is bounded by `means`.
    * `lengths`, `counts`, `forwards`: Of the shortest tokens: characters of their strings,
      decompositions, and contexts at which the drafter's law is needed.
    * `sequences`: The decompositions of the shortest tokens together.
    * `tied`, `taken`: How many tokens are as long as the last that is in, and how many of them are
      in.
    * `means`: The least and the greatest mean of `counts` over all choices among those.
    * `rest`: The decompositions of every longer token, in ascending order.
    * `more_forwards`: For how many tokens forwards are more than decompositions.
    * `longest_spellings`: For how many tokens n_max is their length.
    """

    tokens: int
    shortest: int
    lengths: Summary
    counts: Summary
    forwards: Summary
    sequences: int
    tied: int
    taken: int
    means: tuple[Fraction, Fraction]
    rest: tuple[int, ...]
    more_forwards: int
    longest_spellings: int


def summarise(vocabulary: Vocabulary, shortest: int = SHORTEST) -> Decompositions:
    """Count the decompositions of every token.

    * raises `ValueError`: `shortest` is not between 2 and the number of tokens.

    Examples
    --------
    >>> summarise(Vocabulary(["a", "b", "ab", "aab"]), 3).counts.mean
    1.3333333333333333
    """
    if not 2 <= shortest <= len(vocabulary):
        raise ValueError(f"shortest = {shortest}: expected 2 to {len(vocabulary)}, the tokens")
    order: list[Text] = sorted(vocabulary.tokens, key=len)
    found = (spellings(token, vocabulary) for token in order)
    figures = [(one.count, one.forwards, one.n_max) for one in found]
    counts, forwards, n_maxs = map(list, zip(*figures, strict=True))
    lengths = [len(token) for token in order]
    last = lengths[shortest - 1]
    tied = [count for count, length in zip(counts, lengths, strict=True) if length == last]
    taken = sum(length == last for length in lengths[:shortest])
    return Decompositions(
        tokens=len(order),
        shortest=shortest,
        lengths=_summary(lengths[:shortest]),
        counts=_summary(counts[:shortest]),
        forwards=_summary(forwards[:shortest]),
        sequences=sum(counts[:shortest]),
        tied=len(tied),
        taken=taken,
        means=_means(counts[: shortest - taken], sorted(tied), taken),
        rest=tuple(sorted(counts[shortest:])),
        more_forwards=sum(f > c for f, c in zip(forwards, counts, strict=True)),
        longest_spellings=sum(n == length for n, length in zip(n_maxs, lengths, strict=True)),
    )


def _means(shorter: list[int], tied: list[int], taken: int) -> tuple[Fraction, Fraction]:
    size = len(shorter) + taken
    least, most = (sum(shorter) + sum(some) for some in (tied[:taken], tied[-taken:]))
    return Fraction(least, size), Fraction(most, size)


def _summary(values: Sequence[int]) -> Summary:
    array = np.array(values, dtype=np.float64)
    low, median, high = np.percentile(array, [25, 50, 75]).tolist()
    deviation = float(array.std(ddof=1))
    return Summary(float(array.mean()), deviation, min(values), (low, median, high), max(values))
