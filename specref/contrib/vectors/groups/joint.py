"""Drafts that are accepted jointly: what block verification alone decides."""

from specref.contrib.vectors.cases import Coins
from specref.contrib.vectors.groups.verifications import BLOCK, Group, around

JOINT = (
    Group(
        "joint-ratio",
        "p / q is 1/2, then 2: refused alone, the drafts are certain together.",
        ("1/3 2/3", "1/3 2/3", "1/3 2/3"),
        ("2/3 1/3", "2/3 1/3"),
        (0, 1),
        (Coins((0.9, 0.9), 0.2), Coins((0.1, 0.99), 0.7)),
        BLOCK,
    ),
    Group(
        "coins-at-thresholds",
        "h is 1/2 after the first draft and after both; coins at 1/2, and a double beside it.",
        ("3/8 3/8 1/4", "1/2 1/4 1/4", "1/4 1/2 1/4"),
        ("1/2 1/4 1/4", "1/8 3/8 1/2"),
        (0, 1),
        (
            *(Coins((0.9, u), 0.5) for u in around(0.5)),
            *(Coins((u, 0.75), 0.5) for u in around(0.5)),
            Coins((0.0, 0.5), 0.0),
        ),
        BLOCK,
    ),
    Group(
        "residual-of-prefix",
        "After the first draft, P = 1/2: the residual is (p / 2 - q)+, which is not (p - q)+.",
        ("1/4 1/4 1/4 1/4", "1/2 1/4 1/8 1/8", "1/4 1/4 1/4 1/4"),
        ("1/2 1/4 1/8 1/8", "1/16 1/16 3/8 1/2"),
        (0, 3),
        (Coins((0.2, 0.5), 0.72), Coins((0.2, 0.5), 0.8), Coins((0.4, 0.5), 0.8)),
        BLOCK,
    ),
    Group(
        "residual-zero",
        "After the first draft nothing is left of p / 2 - q: no coin stops there, not even 0.",
        ("1/4 3/4", "1/2 1/2", "1/4 3/4"),
        ("1/2 1/2", "1/2 1/2"),
        (0, 1),
        (Coins((0.0, 0.75), 0.5), Coins((0.75, 0.25), 0.5), Coins((0.0, 0.5), 0.5)),
        BLOCK,
    ),
    Group(
        "impossible-later",
        "p of the second draft is 0: only the first can be accepted.",
        ("1/4 1/4 1/2", "1/2 0/1 1/2", "1/4 1/4 1/2"),
        ("1/2 1/4 1/4", "1/8 3/4 1/8"),
        (0, 1),
        (Coins((0.1, 0.0), 0.25), Coins((0.75, 0.0), 0.25)),
        BLOCK,
    ),
    Group(
        "failures-overruled",
        "A success overrules the failures before it: of the last coin, or of the one before.",
        ("1/8 3/8 1/2", "1/2 1/4 1/4", "1/4 1/4 1/2", "1/2 1/4 1/4"),
        ("1/2 1/4 1/4", "1/4 1/2 1/4", "1/16 9/16 3/8"),
        (0, 0, 2),
        (Coins((0.95, 0.95, 0.6), 0.6), Coins((0.95, 0.05, 0.9), 0.6)),
        BLOCK,
    ),
)
