"""Acceptances that a companion model predicts, and how many drafts to verify.

Kim et al. 2025, "Speculative Verification" (arXiv:2509.24328), sections 4 and 5. The companion,
of the drafter's size, gives a law c beside the drafter's q: how alike they are and how c likes the
drafted token (`algorithms.companion.signals`) predict whether the target accepts it. A bound is
all that holds of any models: the target's acceptance is within 1 - S of the overlap of p and c.
Latencies are tables as in `speed.latency`; goodput counts the residual or bonus token.
"""

from fractions import Fraction
from itertools import pairwise

from specref.algorithms.companion.signals import check_lengths
from specref.distributions import Probabilities, Probability
from specref.theory.goodput import Rates, survival


def accepted_length_law(rates: Rates, length: int) -> tuple[Probability, ...]:
    """P(N = 0), …, P(N = `length`) accepted drafts, if the first `length` are verified.

    Kim et al. 2025, section 5: the product of the first n rates, times 1 - the next if n is not
    all. Right if rate k is that of draft k *given that the earlier ones are accepted*; with
    averages over contexts that differ it is not (and too small: `expected_accepted`).

    Raises
    ------
    ValueError
        A rate is not in [0, 1], or there are fewer than `length` >= 0.

    Examples
    --------
    >>> [str(x) for x in accepted_length_law([Fraction(1, 2), Fraction(1, 3)], 2)]
    ['1/2', '1/3', '1/6']
    """
    reached = (*_survival(rates, length), 0)
    return tuple(now - later for now, later in pairwise(reached))


def expected_accepted(rates: Rates, length: int) -> Probability:
    """E[N] = a_1 + a_1 a_2 + … of `length` terms: Kim et al. 2025, section 5.

    Parameters and errors as `accepted_length_law`.

    Examples
    --------
    >>> easy, hard = [Fraction(1)] * 2, [Fraction(0)] * 2
    >>> (expected_accepted(easy, 2) + expected_accepted(hard, 2)) / 2
    Fraction(1, 1)
    >>> expected_accepted([Fraction(1, 2)] * 2, 2)  # from the averages
    Fraction(3, 4)
    """
    return sum(_survival(rates, length)[1:], start=Fraction(0))


def truncated_law(p: Probabilities, q: Probabilities, kept: Probabilities) -> Probabilities:
    """The law of a token if draft x is verified with probability kept[x], and else forgotten.

    min(p, q) w + E_q[w (1 - p / q)+] norm((p - q)+) + (1 - E_q[w]) p, w the probability. It is
    p for every p iff w is the same for all x that q can draft: for p = q it is
    q (1 + w - E_q[w]), as far from q as half the mean absolute deviation of w.

    Parameters
    ----------
    p, q : ndarray, shape (V,)
    kept : ndarray, shape (V,)
        Each in [0, 1].

    Raises
    ------
    ValueError
        Different lengths, or an entry of `kept` is not in [0, 1].

    Examples
    --------
    >>> from specref.distributions import as_distribution
    >>> half = as_distribution(["1/2", "1/2"])
    >>> truncated_law(half, half, as_distribution([0, 1]))
    array([Fraction(1, 4), Fraction(3, 4)], dtype=object)
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
