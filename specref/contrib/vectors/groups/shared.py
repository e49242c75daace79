"""Iterations of two vocabularies, for every rule that takes them."""

from specref.contrib.vectors.groups.iterations import (
    AB,
    ALL,
    EOS,
    EOS_MOVED,
    START,
    StepGroup,
    toy,
)

SHARED = (
    StepGroup(
        "reordered",
        "The same tokens with other ids.",
        toy("a b ab", "1/4 1/4 1/2"),
        toy("ab b a", "1/4 1/4 1/2"),
        START,
        ALL,
    ),
    StepGroup(
        "zero-draft-mass",
        "The drafter never says b; the target does, half of the time.",
        toy("a b c", "1/4 1/2 1/4"),
        toy("c b a", "1/3 0/1 2/3"),
        START,
        ALL,
    ),
    StepGroup(
        "point-mass",
        "Both are certain: of the same token, then of others.",
        toy(AB, "0/1 1/1", "1/1 0/1", "1/1 0/1"),
        toy("b a", "1/1 0/1", "1/1 0/1", "1/2 1/2"),
        START,
        ALL,
    ),
    StepGroup(
        "eos",
        "EOS has another id; drafted, it ends drafting; accepted, it ends the block.",
        EOS,
        EOS_MOVED,
        (((), 1), ((), 2), ((0,), 2)),
        ALL,
    ),
    StepGroup(
        "lookahead-zero",
        "Nothing is drafted: one token of p.",
        toy(AB, "1/3 2/3"),
        toy("b a", "1/2 1/2"),
        (((), 0), ((1,), 0)),
        ALL,
    ),
)
