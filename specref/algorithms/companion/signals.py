"""What a companion's law c says of a draft from q: how alike they are, and how c likes the token.

Kim et al. 2025, "Speculative Verification" (arXiv:2509.24328), section 4.2.
"""

from specref.distributions import Probabilities, Probability, is_exact, overlap


def similarity(q: Probabilities, c: Probabilities) -> Probability:
    """S = sum min(q, c) = 1 - TV(q, c): what is known before the token is drawn.

    Kim et al. 2025, section 4.2. It is the mean of `companion_acceptance` over tokens from q.

    Raises
    ------
    ValueError
        The laws have different lengths.

    Examples
    --------
    >>> from specref.distributions import as_distribution
    >>> similarity(as_distribution(["1/2", "1/2"]), as_distribution(["1/10", "9/10"]))
    Fraction(3, 5)
    """
    check_lengths(q, c)
    shared = overlap(q, c)
    exact = is_exact(q) and is_exact(c)
    return shared if exact else min(shared, 1.0)  # floats may add up to a little more


def companion_acceptance(q: Probabilities, c: Probabilities, token: int) -> Probability:
    """A = min(1, c / q) at the drafted token: a function of the token itself.

    Kim et al. 2025, section 4.2.

    Raises
    ------
    ValueError
        The laws have different lengths, or q(token) = 0: it cannot have been drafted.

    Examples
    --------
    >>> from specref.distributions import as_distribution
    >>> companion_acceptance(as_distribution(["1/2", "1/2"]), as_distribution(["1/10", "9/10"]), 0)
    Fraction(1, 5)
    """
    check_lengths(q, c)
    if not 0 <= token < len(q):
        raise ValueError(f"token = {token}: expected 0 <= id < {len(q)}")
    if q[token] == 0:
        raise ValueError(f"token = {token} has q = 0: it cannot have been drafted")
    ratio: Probability = c[token] / q[token]
    return min(ratio, 1)


def check_lengths(q: Probabilities, c: Probabilities) -> None:
    """Raise `ValueError` unless two laws have one length."""
    if len(q) != len(c):
        raise ValueError(f"laws of {len(q)} and {len(c)} tokens: expected one vocabulary")
