"""How a campaign divides its alpha, in campaigns and in plans.

Half pays for the evidence. The other half pays for the bounds on total variation: at look
j = 1, 2, … a share 6 / (pi j)^2 of it, split over the cases, and over both ends of each bound.
"""

import math

FAMILIES = ("library", "tilt", "lag", "pointwise", "dirichlet")
LOOKS = math.pi**2 / 6
ENDS = 2


def evidence_threshold(alpha: float) -> float:
    """The log-evidence from which on a campaign is LOSSY.

    Examples
    --------
    >>> round(math.exp(evidence_threshold(0.01)), 9)
    200.0
    """
    return -math.log(alpha / 2)


def bound_share(alpha: float, look: int = 1, cases: int = 1) -> float:
    """The chance that one end of one case's bound may fail at a look.

    Examples
    --------
    >>> alpha, cases = 0.01, 3
    >>> shares = [cases * 2 * bound_share(alpha, look, cases) for look in range(1, 100_000)]
    >>> alpha / 2 - 1e-7 < sum(shares) < alpha / 2
    True
    """
    return alpha / 2 / (LOOKS * look**2) / cases / ENDS
