"""Iterations of one vocabulary."""

from specref.contrib.vectors.groups.iterations import (
    AB,
    EOS,
    EOS_DRAFTER,
    ONE_VOCABULARY,
    ORDER_ONE,
    ORDER_ONE_DRAFTER,
    START,
    THREE,
    StepGroup,
    toy,
)

SAME = (
    StepGroup(
        "step-swapped-coin",
        "Two tokens, p and q swapped.",
        toy(AB, "1/3 2/3"),
        toy(AB, "2/3 1/3"),
        THREE,
        ONE_VOCABULARY,
    ),
    StepGroup(
        "step-order-one",
        "Laws depend on the last token, and have zeros on either side.",
        ORDER_ONE,
        ORDER_ONE_DRAFTER,
        (((), 1), ((), 2), ((1, 0), 2)),
        ONE_VOCABULARY,
    ),
    StepGroup(
        "step-eos",
        "A drafted EOS ends drafting; an accepted one ends the block without a bonus token.",
        EOS,
        EOS_DRAFTER,
        (((), 1), ((), 2), ((0,), 2)),
        ONE_VOCABULARY,
    ),
    StepGroup(
        "step-disjoint-support",
        "p and q share no token.",
        toy(AB, "1/1 0/1"),
        toy(AB, "0/1 1/1"),
        START,
        ONE_VOCABULARY,
    ),
    StepGroup(
        "step-lookahead-zero",
        "Nothing is drafted: one token of p.",
        toy(AB, "1/3 2/3"),
        toy(AB, "2/3 1/3"),
        (((), 0),),
        ONE_VOCABULARY,
    ),
)
