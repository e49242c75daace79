"""The sections of docs/slrs.md: what was done, the figures, and what they allow to say."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from gpu_tests.benchmarks.slrs_acceptance import SLRS, TLI, WARM
from gpu_tests.benchmarks.slrs_expansion import AT_ONCE
from gpu_tests.benchmarks.slrs_generation import spent
from gpu_tests.benchmarks.slrs_growth import BYTES
from gpu_tests.benchmarks.slrs_plots import FEWEST
from gpu_tests.benchmarks.slrs_tables import (
    WAYS,
    acceptance,
    blocks_table,
    bounds_table,
    growth_table,
    middle,
    models,
    pairs_table,
    saved,
    temperature_table,
)
from gpu_tests.benchmarks.slrs_verdict import outcomes_table

Row: TypeAlias = dict[str, Any]
Record: TypeAlias = Mapping[str, Row]
SHORT, LONG = 4, 16

GROWTH = """\
Every {every}token of these vocabularies that writes text (digests:
[vocabularies](vocabularies.md)), as bytes, spelled by its own vocabulary, by the others and by
single bytes. *Decompositions* are counted exactly by dynamic programming; *forwards* are the
contexts after which the drafter's law is needed for the masses of all of them. psi in full takes
at least as many: a draft may also go on beyond the token. Quantiles are values that occur.

![Decompositions of tokens by their length](slrs_growth.png)

Medians, and the most at any length. The figure has medians at the lengths that at least {fewest}
tokens have.

{table}

{claims}"""

BOUNDS = """\
A verdict asks only whether psi(t) is below a number that the coin fixes. Bounds of psi(t) from a
tree that is grown best first decide it (`specref.algorithms.text.lazy_slrs`), with the verdicts
and the law of psi in full. Toy pairs are enumerated in fractions: expected forwards of the drafter
in an iteration, summed over the pairs, the two laws asserted equal. *Fixed* drafts as many tokens
as the lookahead, *until determined* at most as many: it stops where the first token of the target
is certain. *One token* verifies that one alone, as Algorithm 3 is printed; *all tokens* goes on to
the next ones.

![Forwards by bounds and in full](slrs_bounds.png)

{table}

{claims}

{generation}"""

TEMPERATURE = """\
Trained pairs of `fixtures/models`, {contexts} contexts: {places} random places in each of
{documents} held-out documents (seed {seed}). p, the drafter's law and psi are computed at each,
and acceptance is a sum over them: no coin is thrown. Models are read once for each context and
shaped by temperature afterwards. The drafter has the target's temperature, and in one line 1
throughout.

Compared is the acceptance of one draft that is a token of the target: sum min(p, q) for union and
for *standard*; sum min(p, q') for TLI, with q renormalised on shared tokens; sum p psi for SLEM;
sum min(p, psi) for SLRS, by longest match. What a draft costs is not in it: a draft of SLEM or
SLRS may be written by several tokens of the drafter.

![Acceptance over temperature](slrs_temperature.png)

In the figure errors are two standard errors. Those in the table are one, of the means of
documents, as contexts of one document are alike. The record has all temperatures.

{pairs}

*Paths read* are the contexts after which the drafter's law was read for psi, up to {at_once} at
once, at all temperatures together; *open* is the greatest mass of psi, at any context and
temperature, that was left. Where it is not 0, SLRS and SLEM are known up to bounds, and the table
has their middle: they are at most {width:.2g} apart.

{tables}

### Against TLI

On how many of the {count} pairs SLRS accepts more than TLI, or less, by two standard errors of the
difference at the same contexts, each comparison for itself:

{outcomes}

{claims}"""

BLOCKS = """\
Expected tokens of an iteration, in fractions, over the toy pairs of two vocabularies that read
each other's text. SLEM, SLRS with its two endings, and block verification (Sun et al. 2024) of the
drafted text against psi and the probability that the text ends
(`specref.algorithms.text.block_slrs`) read the same drafts, as many tokens of the drafter as the
lookahead. Where the text ends, psi may have mass left on longer texts: *residual* draws the last
token from norm((p - psi)+) all the same; *bonus* verifies with psi given that the text goes on,
and draws the last token from p.

{table}

The last column counts the cases in which a way has more tokens than the one to its left, from
{second} on; {fewer}"""


def growth(part: Row) -> str:
    """Decompositions of real vocabularies."""
    every = part["sizes"]["every"]
    return GROWTH.format(
        every="" if every == 1 else f"{every}th ",
        fewest=FEWEST,
        table=growth_table(part["rows"]),
        claims=growth_claims(part["rows"]),
    )


def growth_claims(rows: Sequence[Row]) -> str:
    """What the rows say of how fast it grows."""
    of = {(row["target"], row["drafter"], row["length"]): row["decompositions"] for row in rows}
    pairs = [key[:2] for key in of if key[1] != BYTES and key[2] == SHORT]
    rates = [of[*key, LONG]["median"] / of[*key, SHORT]["median"] for key in pairs]
    each = [rate ** (1 / (LONG - SHORT)) for rate in rates]
    by_bytes = [row for row in rows if row["drafter"] == BYTES]
    lone = all(row["decompositions"]["max"] == 1 for row in by_bytes)
    most = sum(row["n_max"] == row["length"] for row in rows)
    return (
        f"From {SHORT} to {LONG} bytes each byte multiplies the median by {min(each):.2f} to "
        f"{max(each):.2f}; a token of n bytes has 2^(n-1) at most. "
        + ("By bytes there is one way, and there are as many forwards as bytes. " if lone else "")
        + f"n_max, the most tokens that spell one, is its length in {most:,} of {len(rows):,} "
        "combinations of target, drafter and length."
    )


def bounds(record: Record) -> str:
    """Forwards that bounds save."""
    part, spending = record["bounds"], spent(record["generation"], models(record))
    table = bounds_table(part["rows"])
    return BOUNDS.format(table=table, claims=bounds_claims(part), generation=spending)


def bounds_claims(part: Row) -> str:
    """What the rows say of how much is saved."""
    toys, words = ([r for r in part["rows"] if r["pairs"] == of] for of in ("toys", "words"))
    first, last = words[0], words[-1]
    none = all(row["lazy"] == row["full"] for row in toys if row["lookahead"] == 1)
    start = "With lookahead 1 nothing is saved: the forward that drafts is all of it. "
    return (start if none else "") + (
        "In the middle of the figure targets have all words of up to so many letters, the drafter "
        f"letters: means of {part['sizes']['runs']} pseudo-random pairs "
        f"(seed {part['sizes']['seed']}), one draft each. Bounds save {saved(first)} at "
        f"{first['lookahead']} letters and {saved(last)} at {last['lookahead']}: "
        f"{last['lazy']:.2f} ± {last['error']:.2f} forwards instead of {last['full']:.2f}."
    )


def temperature(part: Row) -> str:
    """Acceptance over temperature."""
    rows, sizes = part["rows"], part["sizes"]
    every = [row for pair in rows for row in pair["acceptance"]]
    return TEMPERATURE.format(
        contexts=rows[0]["contexts"],
        places=sizes["places"],
        documents=rows[0]["documents"],
        seed=sizes["seed"],
        pairs=pairs_table(rows),
        at_once=AT_ONCE,
        width=max(row["high"] - row["low"] for row in every),
        tables=temperature_table(rows),
        count=len(rows),
        outcomes=outcomes_table(rows, TLI),
        claims=temperature_claims(rows),
    )


def temperature_claims(rows: Sequence[Row]) -> str:
    """How SLRS moves with temperature, and what a drafter at 1 does."""
    coldest = min(row["temperature"] for row in rows[0]["acceptance"])
    lines = [acceptance(row) for row in rows]
    rises = sum(middle(at[SLRS, WARM, WARM]) > middle(at[SLRS, coldest, coldest]) for at in lines)
    cooler = sum(
        middle(at[SLRS, coldest, WARM]) < middle(at[SLRS, coldest, coldest]) for at in lines
    )
    return (
        f"On average SLRS accepts more at temperature {WARM:g} than at {coldest:g} on {rises} of "
        f"{len(rows)} pairs. With a drafter that stays at {WARM:g} it accepts less at {coldest:g} "
        f"than with one that is cooled with its target on {cooler} of {len(rows)}."
    )


def blocks(part: Row) -> str:
    """Expected tokens by how a text is verified."""
    rows = part["rows"]
    fewer = sum(row["less"][name] for row in rows for name in row["less"])
    order = " <= ".join(WAYS[name] for name in rows[0]["means"])
    return BLOCKS.format(
        table=blocks_table(rows),
        second=WAYS[[*rows[0]["means"]][1]],
        fewer=f"none has fewer: {order}." if not fewer else f"{fewer} times it has fewer.",
    )
