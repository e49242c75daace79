"""More drafts than one: coins, rows and lengths that are easily mixed up."""

from specref.contrib.vectors.cases import Coins
from specref.contrib.vectors.groups.verifications import ONE, Group

ROWS_P = (
    "1/4 1/8 3/8 1/4",
    "1/2 1/8 1/8 1/4",
    "1/8 1/8 1/4 1/2",
    "1/8 5/8 1/8 1/8",
)
ROWS_Q = ("1/8 1/4 1/2 1/8", "1/4 1/4 1/4 1/4", "1/4 1/4 3/8 1/8")
LAST = "0/1 0/1 0/1 1/1"
# Twelve tokens, all rows different: sixty-fourths, so that float16 holds them.
WIDE_P = (
    "1/64 7/64 0/1 9/64 5/64 3/64 11/64 2/64 8/64 6/64 4/64 8/64",
    "6/64 2/64 10/64 0/1 4/64 12/64 3/64 7/64 1/64 9/64 5/64 5/64",
    "3/64 9/64 5/64 7/64 0/1 2/64 8/64 10/64 6/64 4/64 9/64 1/64",
    "8/64 4/64 2/64 6/64 10/64 1/64 7/64 0/1 9/64 3/64 5/64 9/64",
)
WIDE_Q = (
    "5/64 3/64 6/64 4/64 9/64 8/64 2/64 7/64 0/1 10/64 9/64 1/64",
    "2/64 8/64 4/64 6/64 7/64 5/64 9/64 1/64 10/64 3/64 0/1 9/64",
    "9/64 1/64 7/64 3/64 8/64 6/64 4/64 2/64 5/64 10/64 3/64 6/64",
)
WIDE_DRAFTS = (4, 1, 9)

MORE_DRAFTS = (
    Group(
        "coins-in-order",
        "p / q = 1/2 at both drafts: each has its own coin.",
        ("1/4 1/2 1/4", "1/8 3/8 1/2", "1/2 1/4 1/4"),
        ("1/2 1/4 1/4", "1/4 1/2 1/4"),
        (0, 0),
        (
            Coins((0.1, 0.9), 0.3),
            Coins((0.9, 0.1), 0.3),
            Coins((0.1, 0.1), 0.3),
            Coins((0.6, 0.6), 0.8),
        ),
    ),
    Group(
        "bonus-of-last-row",
        "All three drafts are accepted: the bonus is from row 3, and no other.",
        ROWS_P,
        ROWS_Q,
        (0, 0, 3),
        (
            Coins((0.5, 0.5, 0.5), 0.0625),
            Coins((0.5, 0.5, 0.5), 0.6),
            Coins((0.5, 0.5, 0.5), 0.9375),
        ),
    ),
    Group(
        "residual-of-its-row",
        "Where a draft in the middle is refused, the residual is of its row, and no other.",
        ROWS_P,
        ROWS_Q,
        (3, 1, 2),
        (
            Coins((0.5, 0.8, 0.9), 0.1),
            Coins((0.5, 0.8, 0.1), 0.9),
            Coins((0.5, 0.15, 0.9), 0.3),
            Coins((0.5, 0.15, 0.9), 0.9),
        ),
    ),
    Group(
        "later-coins",
        "The first coin fails, the later ones succeed: token verification stops, block goes on.",
        ROWS_P,
        ROWS_Q,
        (1, 0, 3),
        (Coins((0.75, 0.0, 0.0), 0.25), Coins((0.75, 0.25, 0.5), 0.75)),
    ),
    Group(
        "truncated-draft",
        "One of three drafts exists: the bonus is of the row after it, and the rest are traps.",
        (*ROWS_P[:2], LAST, LAST),
        (ROWS_Q[0], LAST, LAST),
        (2, -1, -1),
        (
            Coins((0.5, 0.0, 0.0), 0.25),
            Coins((0.5, 0.9, 0.9), 0.625),
            Coins((0.9, 0.0, 0.0), 0.25),
        ),
    ),
    Group(
        "disjoint-support",
        "p and q share no token: the first draft is rejected, and the residual is p.",
        ("1/4 3/4 0/1 0/1", "1/2 1/2 0/1 0/1", "0/1 0/1 1/2 1/2"),
        ("0/1 0/1 1/2 1/2", "0/1 0/1 1/4 3/4"),
        (2, 3),
        (Coins((0.0, 0.0), 0.125), Coins((0.0, 0.5), 0.75)),
    ),
    Group(
        "equal-distributions",
        "p = q at both drafts: both are accepted, whatever the coins.",
        ("1/4 1/4 1/2", "1/2 1/4 1/4", "1/8 5/8 1/4"),
        ("1/4 1/4 1/2", "1/2 1/4 1/4"),
        (1, 0),
        (Coins((ONE, ONE), 0.5), Coins((0.0, ONE), 0.0), Coins((ONE, 0.5), 0.875)),
    ),
    Group(
        "one-hot-drafts",
        "Two certain drafts: accepted with p, replaced by the rest of p.",
        ("1/4 1/2 1/4", "1/8 3/8 1/2", "1/2 1/4 1/4"),
        None,
        (1, 2),
        (Coins((0.3, 0.3), 0.6), Coins((0.3, 0.7), 0.6), Coins((0.7, 0.3), 0.6)),
    ),
    Group(
        "wide",
        "Twelve tokens, three drafts, rows that all differ.",
        WIDE_P,
        WIDE_Q,
        WIDE_DRAFTS,
        (
            Coins((0.1, 0.1, 0.1), 0.35),
            Coins((0.3, 0.5, 0.05), 0.7),
            Coins((0.2, 0.9, 0.4), 0.85),
            Coins((0.6, 0.05, 0.2), 0.15),
            Coins((0.95, 0.95, 0.95), 0.55),
        ),
    ),
)
