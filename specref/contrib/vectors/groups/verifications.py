"""Groups of cases that verify a row of drafts: the same laws and drafts, and other coins."""

from dataclasses import dataclass
from math import nextafter

from specref.contrib.vectors.groups import Coins
from specref.rules import RULES

VERIFIERS = [rule for rule in RULES.values() if rule.vectors and rule.verify]
BOTH = tuple(rule.name for rule in VERIFIERS)
TOKEN = tuple(rule.name for rule in VERIFIERS if rule.coins == "token by token")
BLOCK = tuple(rule.name for rule in VERIFIERS if rule.coins == "jointly")
ONE = nextafter(1, 0)


@dataclass(frozen=True)
class Group:
    """Laws and drafts, and coins for one case each: their places are ids, so add at the end."""

    slug: str
    comment: str
    p: tuple[str, ...]
    q: tuple[str, ...] | None
    drafts: tuple[int, ...]
    coins: tuple[Coins, ...]
    rules: tuple[str, ...] = BOTH


def around(edge: float) -> tuple[float, float, float]:
    """A number, the double before it and the double after it."""
    return nextafter(edge, 0), edge, nextafter(edge, 1)


def crossed(accepts: tuple[float, ...], finals: tuple[float, ...]) -> tuple[Coins, ...]:
    """Every coin with every last uniform."""
    return tuple(Coins((u,), final) for u in accepts for final in finals)


TINY = 2**130
LAST = "0/1 0/1 0/1 1/1"
P, Q = ("1/4 1/8 3/8 1/4", "1/2 0/1 1/4 1/4"), ("1/8 1/4 1/2 1/8",)

ONE_DRAFT = (
    Group(
        "interior",
        "p / q = 1/2, and no coin near an edge: whoever fails here has an error in the set-up.",
        P,
        Q,
        (1,),
        (*crossed((0.25,), (0.125, 0.625, 0.875)), *crossed((0.75,), (0.25, 0.75))),
    ),
    Group(
        "coin-at-ratio",
        "p / q = 1/2, and the coin at 0, at 1/2, a double before and after it, and below 1.",
        P,
        Q,
        (1,),
        crossed((0.0, *around(0.5), ONE), (0.25,)),
    ),
    Group(
        "coin-at-three-quarters",
        "The same for p / q = 3/4.",
        P,
        Q,
        (2,),
        crossed(around(0.75), (0.625,)),
        TOKEN,
    ),
    Group(
        "final-at-edge-of-residual",
        "Rejected; the residual is half token 0, half token 3: the last uniform is at its edges.",
        P,
        Q,
        (1,),
        crossed((0.75,), (0.0, *around(0.5), ONE)),
    ),
    Group(
        "final-at-edge-of-bonus",
        "Accepted; the bonus law has an empty token inside, and the last uniform is at its edges.",
        P,
        Q,
        (1,),
        crossed((0.25,), (0.0, *around(0.5), 0.75, ONE)),
        TOKEN,
    ),
    Group(
        "zeros-at-the-ends",
        "The first and the last token of the bonus law are impossible.",
        ("1/4 1/8 3/8 1/4", "0/1 1/2 1/2 0/1"),
        Q,
        (0,),
        crossed((0.5,), (0.0, 0.5, ONE)),
        TOKEN,
    ),
    Group(
        "ratio-above-one",
        "p / q = 2: no coin rejects.",
        P,
        Q,
        (3,),
        crossed((0.5, ONE), (0.375,)),
        TOKEN,
    ),
    Group(
        "zero-draft-mass",
        "q never drafts tokens 2 and 3, p says them half of the time: only the residual can.",
        ("1/8 3/8 1/4 1/4", "1/4 1/4 1/4 1/4"),
        ("5/8 3/8 0/1 0/1",),
        (0,),
        crossed((0.125, 0.5), (0.25, 0.75)),
    ),
    Group(
        "zero-target-mass",
        "p of the draft is 0: rejected, at u = 0 too.",
        ("0/1 1/2 1/2", "1/4 1/4 1/2"),
        ("1/2 1/2 0/1",),
        (0,),
        crossed((0.0, 2.0**-53, 0.5), (0.5,)),
    ),
    Group(
        "tie-at-one",
        "p = q at the draft and not elsewhere: no coin rejects.",
        ("1/4 1/2 1/4", "1/2 1/4 1/4"),
        ("1/4 1/4 1/2",),
        (0,),
        crossed((0.5, ONE), (0.625,)),
        TOKEN,
    ),
    Group(
        "equal-law",
        "p = q everywhere: there is no residual, and no coin asks for one.",
        ("1/4 1/4 1/2", "1/8 5/8 1/4"),
        ("1/4 1/4 1/2",),
        (2,),
        crossed((0.0, ONE), (0.5,)),
    ),
    Group(
        "subnormal-ratio",
        "p / q = 2^-129, smaller than the least normal float32, is not 0.",
        (f"1/{TINY} {TINY - 1}/{TINY}", "1/4 3/4"),
        ("1/2 1/2",),
        (0,),
        crossed((0.0, 2.0**-130, 2.0**-129, 2.0**-128), (0.5,)),
    ),
    Group(
        "certain-target",
        "p is certain of another token than the draft: no coin accepts.",
        ("0/1 0/1 1/1", "1/2 1/4 1/4"),
        ("1/4 1/2 1/4",),
        (0,),
        crossed((0.0, 0.5), (0.75,)),
        TOKEN,
    ),
    Group(
        "certain-target-drafted",
        "p is certain of the draft: no coin rejects.",
        ("0/1 0/1 1/1", "1/2 1/4 1/4"),
        ("1/4 1/2 1/4",),
        (2,),
        crossed((ONE,), (0.25, 0.75)),
        TOKEN,
    ),
    Group(
        "certain-draft",
        "q is certain: accepted with p, replaced by the rest of p.",
        ("1/4 1/4 1/2", "1/2 1/4 1/4"),
        ("0/1 1/1 0/1",),
        (1,),
        crossed(around(0.25), (0.25,)),
        TOKEN,
    ),
    Group(
        "one-hot-draft",
        "The same without q: every draft is certain.",
        ("1/4 1/4 1/2", "1/2 1/4 1/4"),
        None,
        (1,),
        (*crossed((0.0, *around(0.25)), (0.25,)), Coins((0.5,), 0.75)),
    ),
    Group(
        "noise-zero",
        "In a race, noise 0 at an impossible token does not win it.",
        P,
        Q,
        (1,),
        (Coins((0.25,), 0.25, (3.0, 0.0, 1.0, 2.0)), Coins((0.75,), 0.75, (3.0, 0.0, 0.0, 2.0))),
        TOKEN,
    ),
    Group(
        "twelfths",
        "No number here is a float.",
        ("5/12 2/12 1/12 4/12", "1/3 1/6 1/3 1/6"),
        ("1/12 2/12 6/12 3/12",),
        (2,),
        crossed((0.15, 0.2), (0.1, 0.4, 0.9)),
        TOKEN,
    ),
)
NO_DRAFTS = (
    Group(
        "no-room",
        "No place for drafts at all: one token of p.",
        ("1/4 1/2 1/4",),
        (),
        (),
        (Coins((), 0.0), Coins((), 0.25), Coins((), 0.875)),
    ),
    Group(
        "no-draft",
        "Two places and no draft: one token of the first row. The other rows are traps.",
        ("1/4 1/2 1/8 1/8", LAST, LAST),
        (LAST, LAST),
        (-1, -1),
        (Coins((0.0, 0.0), 0.5), Coins((0.5, 0.5), 0.125)),
    ),
)


ROWS_P = ("1/4 1/8 3/8 1/4", "1/2 1/8 1/8 1/4", "1/8 1/8 1/4 1/2", "1/8 5/8 1/8 1/8")
ROWS_Q = ("1/8 1/4 1/2 1/8", "1/4 1/4 1/4 1/4", "1/4 1/4 3/8 1/8")
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


VERIFICATIONS = (*ONE_DRAFT, *NO_DRAFTS, *MORE_DRAFTS, *JOINT)
