"""The speedup of speculative decoding, and its cost in operations.

The unit of time is one pass of the target; `cost` is what one draft takes of it. `acceptance` is
one number, the same for every draft (Leviathan et al. 2023, section 3.1), or one for each
position: the probability that this draft is accepted if all before it were, as
`Rule.acceptance_by_position` gives it. With one for each position every formula is exact,
whatever the models (without EOS, after which there is no bonus token); with the average in its
place, only if acceptances are independent. Results are exact for `Fraction` and int.
"""

from fractions import Fraction
from itertools import accumulate, islice
from operator import mul

from specref.algorithms.lookahead import positions
from specref.distributions import Probability
from specref.theory.goodput import NUMBER, Acceptance, rates_of, survival

BISECTIONS = 60


def expected_block_length(acceptance: Acceptance, lookahead: int) -> Probability:
    """Tokens of one iteration, with the residual or bonus token.

    Leviathan et al. 2023, Equation 1, for one number: (1 - a^(g + 1)) / (1 - a), or g + 1 at
    a = 1. For one number each position: 1 + a_1 + a_1 a_2 + …, the sum of `survival`, since
    the accepted length is the sum over k of the indicator that it is at least k.

    Parameters and errors as `survival`.

    Examples
    --------
    >>> expected_block_length(Fraction(1, 2), 2), expected_block_length(Fraction(1), 2)
    (Fraction(7, 4), Fraction(3, 1))
    >>> expected_block_length([Fraction(1, 2), Fraction(1)], 2)
    Fraction(2, 1)
    """
    return sum(survival(acceptance, lookahead), start=Fraction(0))


def walltime_improvement(acceptance: Acceptance, lookahead: int, cost: Probability) -> Probability:
    """How many times faster than autoregressive decoding an iteration makes its tokens.

    Leviathan et al. 2023, Theorem 3.8: the expected block length over 1 + g c. It takes a pass
    over g + 1 tokens to last no longer than over one; `speed.latency` does not.

    * `acceptance`, `lookahead`: As `survival`.
    * `cost` (number > 0): c, the time of one draft over that of a pass of the target; a free
      drafter gains `expected_block_length`.
    * raises `ValueError`: As `survival`, or `cost` <= 0.
    """
    return expected_block_length(acceptance, lookahead) / (1 + lookahead * _checked(cost))


def operations_increase(
    acceptance: Acceptance, lookahead: int, operations_ratio: Probability
) -> Probability:
    """How many times more operations than autoregressive decoding a token takes.

    Leviathan et al. 2023, Theorem 3.11: g c^ + g + 1 over the expected block length, where c^
    (`operations_ratio`, >= 0) is the drafter's operations for a token over the target's.
    """
    if not 0 <= operations_ratio < float("inf"):
        raise ValueError(f"operations_ratio = {operations_ratio}: expected a number >= 0")
    operations = lookahead * operations_ratio + lookahead + 1
    return operations / expected_block_length(acceptance, lookahead)


def optimal_lookahead(
    acceptance: Acceptance, cost: Probability, lookahead_max: int | None = None
) -> int:
    """The smallest lookahead with the greatest walltime improvement.

    Leviathan et al. 2023, section 3.5. What a draft gains never grows with its position and
    what it costs is always c, so the improvement is quasi-concave in the lookahead: where it
    first does not grow is the argmax (exactly for `Fraction`; floats as they round).

    Parameters
    ----------
    acceptance, cost
        As `walltime_improvement`.
    lookahead_max : int, optional
        By default as many as `acceptance` has positions, or no limit for one number.

    Raises
    ------
    ValueError
        As `walltime_improvement`, or no finite lookahead is best: acceptance 1 and cost < 1.

    Examples
    --------
    >>> optimal_lookahead(Fraction(7, 10), Fraction(1, 20))
    6
    >>> optimal_lookahead(Fraction(1, 20), Fraction(1, 20))  # none is as fast as one
    0
    """
    _checked(cost)
    if lookahead_max is not None:
        survival(acceptance, lookahead_max)
    elif isinstance(acceptance, NUMBER) and acceptance == 1 and cost < 1:
        raise ValueError("lookahead_max is needed: at acceptance 1 more is always better")
    tokens: Probability = Fraction(1)
    lookahead = 0
    for gain in islice(accumulate(rates_of(acceptance), mul), lookahead_max):
        if gain * (1 + lookahead * cost) <= tokens * cost:
            break
        tokens += gain
        lookahead += 1
    return lookahead


def is_faster(acceptance: Acceptance, cost: Probability) -> bool:
    """Whether some lookahead is faster than none: iff the first draft's acceptance exceeds c.

    Leviathan et al. 2023, Corollary 3.9, says "if"; and only if, because g drafts gain g a_1
    tokens at most and cost g c. Then lookahead 1 improves by (1 + a_1) / (1 + c).
    """
    return next(rates_of(acceptance)) > _checked(cost)


def break_even_acceptance(lookahead: int, cost: Probability) -> float:
    """The constant acceptance above which this lookahead is faster than none.

    The root of a + … + a^g = g c, to float precision: c itself for g = 1, and more for more.

    * raises `ValueError`: `lookahead` < 1, or `cost` is not in (0, 1): from c = 1 on no acceptance
      is enough.
    """
    if len(positions(lookahead)) < 1:
        raise ValueError(f"lookahead = {lookahead}: expected an integer >= 1")
    if not _checked(cost) < 1:
        raise ValueError(f"cost = {cost}: expected less than 1")
    low, high = float(cost), 1.0
    for _ in range(BISECTIONS if lookahead > 1 else 0):
        middle = (low + high) / 2
        enough = expected_block_length(middle, lookahead) > 1 + lookahead * cost
        low, high = (low, middle) if enough else (middle, high)
    return low


def _checked(cost: Probability) -> Probability:
    if not 0 < cost < float("inf"):
        raise ValueError(f"cost = {cost}: expected a number > 0")
    return cost
