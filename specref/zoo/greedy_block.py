"""Mutants of greedy block verification: its modified target forgotten, prolonged, or another one.

The clean rule is `greedy_block.iterate`: one iteration, with the modifications that
hold before and after it. Distances are those of the first tokens of the loop.
"""

from specref.algorithms import block
from specref.zoo.entry import Entry, exactly
from specref.zoo.parts.greedy_block import (
    by_the_last_token,
    finished,
    greedy_iterate,
    one_by_one,
)

ENTRIES = (
    Entry(
        "greedy-target-forgotten",
        "context",
        rule="greedy-block",
        formula="the target of the next iteration is p",
        symptom="Accepts the most, and what was refused is never made up for.",
        hint="Hand the joint ratio on, until `lookahead` tokens after the block began.",
        cites=("arXiv:2403.10444",),
        iterate=greedy_iterate(hand_on=lambda carried: ()),
        distances=exactly(coin="1/9", c="4/63", eos="3285/163592", c3="173/1512"),
        note="One iteration of it is `block-greedy-without-its-target`.",
    ),
    Entry(
        "greedy-target-too-long",
        "length",
        rule="greedy-block",
        formula="modified until lookahead + 1 tokens after the block began",
        symptom="The token after the modified ones is off too.",
        hint="The bonus token is from p, and so is its position after a shorter block.",
        iterate=greedy_iterate(prolonged=1),
        distances=exactly(coin="1/27", c="17/216", eos="195847/4660920", c3="0"),
        note="With three drafts it shows from the fourth token on.",
    ),
    Entry(
        "greedy-target-too-short",
        "length",
        rule="greedy-block",
        formula="modified until lookahead - 1 tokens after the block began",
        symptom="With two drafts, as if forgotten.",
        hint="Every position that was drafted is owed to, whether it was verified or not.",
        iterate=greedy_iterate(prolonged=-1),
        distances=exactly(coin="1/9", c="4/63", eos="3285/163592", c3="17/216"),
    ),
    Entry(
        "greedy-target-after-capped-joints",
        "accept",
        rule="greedy-block",
        formula="A_i = min(1, A_{i-1} p / q), and the target modified nevertheless",
        symptom="Two rules mixed: block verification needs no modified target.",
        hint="Cap nothing, or modify nothing.",
        iterate=greedy_iterate(verify=block.verify),
        distances=exactly(coin="1/9", c="37/504", eos="8730/388531", c3="167/1512"),
    ),
    Entry(
        "greedy-target-from-the-last-token",
        "residual",
        rule="greedy-block",
        formula="norm((W p - q)+) with W = 1 at the start of the next block",
        symptom="The residual of token verification, where the joint one is meant.",
        hint="W is the joint ratio since the modification's own block began.",
        iterate=greedy_iterate(hand_on=by_the_last_token),
        distances=exactly(coin="1/27", c="1/12", eos="405/13832", c3="1140491/10581480"),
    ),
    Entry(
        "greedy-older-modification-dropped",
        "context",
        rule="greedy-block",
        formula="the target of the next iteration is modified by the last one alone",
        symptom="Right for two drafts; wrong after two short blocks in a row for more.",
        hint="A modification holds until its own end, whatever later ones do.",
        iterate=greedy_iterate(hand_on=lambda carried: carried[-1:]),
        distances=exactly(coin="0", c="0", eos="0", c3="1352581/331136883"),
    ),
    Entry(
        "greedy-newer-modification-dropped",
        "context",
        rule="greedy-block",
        formula="no further modification while one holds",
        symptom="Right for two drafts; wrong after two short blocks in a row for more.",
        hint="The drafts are verified against the modified target, which is modified in turn.",
        iterate=greedy_iterate(hand_on=lambda carried: carried[:1]),
        distances=exactly(coin="0", c="0", eos="0", c3="12533/1773156"),
    ),
    Entry(
        "greedy-ratios-from-the-plain-target",
        "context",
        rule="greedy-block",
        formula="P = p(w) / q(w) with p as it is, though another modification held",
        symptom="Wrong from the second iteration on.",
        hint="The joint probability is that of the target as modified before.",
        iterate=greedy_iterate(follow=one_by_one),
        distances=exactly(coin="1/27", c="1153/407862", eos="61587/31311280", c3="1627/675488"),
    ),
)
CONTROLS = (
    Entry(
        "greedy-finishes-its-block",
        "length",
        rule="greedy-block",
        formula="the modified tokens are drawn at once, and the next iteration starts from p",
        symptom="No modified target is handed on.",
        hint="Exact: they are drawn from it. It takes a call of the target for each of them.",
        lossless=True,
        iterate=finished,
    ),
)
