"""Proofs for every p and q: the verdict as a document, and as a record that can be replayed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal

from specref.proofs.everywhere import Everywhere, Witness
from specref.proofs.everywhere.proof import BUDGET, Verdict
from specref.proofs.everywhere.rows import Row, Rows, row_name
from specref.proofs.reached import Unreached
from specref.report.document import Bars, Document, Heading, Kind, Part
from specref.report.forms import Exact, Form, Ids, Seconds, Whole, one_of
from specref.report.layout import Prose
from specref.report.rules import NeverRan, bars_of, never_ran, sum_of
from specref.vocabulary import Vocabulary

ABOUT = (
    "The question is about all rows of p and q over these vocabularies: zeros, ties, equal rows "
    "and point masses included. Not tested: other numbers of tokens, floats, "
    "kernels and random number generators."
)
FORMAT = "specref rows 1"
MOST_CONDITIONS = 12
STYLES = {"lossless": "bold green", "lossy": "bold red", "open": "bold yellow"}
LONGER = 4
"""Times the budget, where it left something open."""
NOT_SAID = (
    "Not tested: other numbers of tokens or drafts, contexts before the first draft, EOS.",
    "Not tested: a second draft, or a residual after an accepted one (--tokens 3 --lookahead 2), "
    "other numbers of tokens, contexts before the first draft, EOS.",
)
TWO_TOKENS = (
    "Over 2 tokens max(p - q, 0) has one token at most, so how it is drawn is not tested: "
    "--tokens 3 --lookahead {lookahead} tests it."
)


def everywhere_document(
    name: str,
    found: Sequence[Everywhere],
    left_out: Sequence[str],
    unseen: Unreached | None = None,
    budget: float | None = None,
) -> Document:
    """What is proved, refuted or open for each pair of vocabularies, and what never ran.

    * `budget`: The seconds that the search had, for what to try where it left something open.
    """
    parts: list[Part] = []
    for one in found:
        lines = f"; {unseen}" if unseen and one.verdict == "lossless" else ""
        parts.append(Prose(f"{name}: {sentence(one)}{lines}", STYLES[one.verdict]))
        parts.append(Prose(f"  {counts(one)}"))
        if one.witness:
            parts.append(Prose(_witness(one, one.witness)))
    if budget and any(one.verdict == "open" for one in found):
        parts.append(Prose(longer(budget)))
    parts += [Prose(f"{name}: not applicable to {one}") for one in left_out]
    if any(one.verdict == "lossless" for one in found):
        parts.append(Prose(NOT_SAID[found[0].lookahead == 1], "dim"))
        if any(len(one.target.tokens) == 2 and one.target == one.drafter for one in found):
            parts.append(Prose(TWO_TOKENS.format(lookahead=found[0].lookahead), "dim"))
    if found and (unseen is None or all(one.verdict != "lossless" for one in found)):
        parts.append(Prose(never_ran(unseen), "dim"))
    title = f"{name} under specref prove --everywhere"
    pictures = [part for one in found for part in _pictures(one)]
    return Document(title, *headline(found), parts, [Prose(ABOUT, "dim"), *pictures])


def enlarged(budget: float) -> float:
    """The seconds to try next: several times as many, and no fewer than by default."""
    return max(LONGER * budget, BUDGET)


def longer(budget: float) -> str:
    """What to try where something is open."""
    return f"Open: try --budget {enlarged(budget):g}, or a smaller --tokens or --lookahead."


def headline(found: Sequence[Everywhere]) -> tuple[Kind, str]:
    """The gravest verdict, in a few words."""
    verdicts = [one.verdict for one in found]
    if "lossy" in verdicts:
        raising = all(raises(one) for one in found if one.lossy)
        return "bad", "It raises an error at some rows" if raising else "Lossy"
    if "open" in verdicts or not verdicts:
        return "open", "Neither proved nor refuted"
    return "good", "Lossless for every p and q"


def _pictures(found: Everywhere) -> list[Part]:
    """The regions, and the probability that a rule gets wrong."""
    numbers = (
        ("lossless at all rows", found.regions - found.lossy, "expected"),
        ("not lossless at some rows", found.lossy, "observed"),
        ("pieces that are open", found.open, "open"),
    )
    parts: list[Part] = [
        Heading(f"Over {box(found.target, found.drafter, found.lookahead)}"),
        Bars(
            "Regions: sets of rows on which all paths run alike, summed over completed blocks",
            [(name, f"{number:,}", [(kind, float(number))]) for name, number, kind in numbers],
        ),
    ]
    proof = found.witness.proof if found.witness else None
    if proof is not None and proof.difference is not None:
        parts.append(bars_of(proof.difference))
    return parts


def sentence(found: Everywhere) -> str:
    over = box(found.target, found.drafter, found.lookahead)
    if found.verdict == "lossless":
        without = ", without EOS" if found.target.eos is None else ""
        return (
            f"lossless for every p and q over {over}{without}: {found.regions} regions, 0 open, "
            f"error of the identity tests <= 2^-{found.bits}"
        )
    known = f"{found.regions} regions, {found.open} open" if found.open else found.regions
    if found.verdict == "lossy" and not found.lossy:
        return f"lossy at rows that were tried; {found.regions} regions, {found.open} open; {over}"
    if found.verdict == "lossy":
        what = {True: "raises", False: "lossy", None: "lossy, or raises,"}[raises(found)]
        regions = f"{found.lossy} of {known}" + " regions" * (not found.open)
        return f"{what} at some rows of {regions}, over {over}"
    regions = f"{found.regions} regions, of which {found.lossy} lossy"
    return f"open for {over}: {regions}; {found.open} open"


def raises(found: Everywhere) -> bool | None:
    """Whether a rule that is not lossless raises in all regions where it is not; None: in some."""
    errors = [one.error is not None for part in found.slices for one in part.lossy]
    return all(errors) if all(errors) == any(errors) else None


def box(target: Vocabulary, drafter: Vocabulary, lookahead: int) -> str:
    """The vocabularies, by their number of tokens or by the tokens, and the lookahead."""
    if target.tokens == drafter.tokens:
        return f"{len(target)} tokens, lookahead {lookahead}"
    return f"the tokens {listed(target)} of p and {listed(drafter)} of q, lookahead {lookahead}"


@dataclass(frozen=True)
class Law:
    of: Literal["p", "q"]
    after: Sequence[Whole]
    row: Sequence[Exact]


@dataclass(frozen=True)
class WitnessRecord:
    """Rows at which a rule is lossy, with all that is needed to run it on them again."""

    format: Annotated[str, Form(one_of(FORMAT))]
    rule: str
    target: Ids
    drafter: Ids
    eos: str | None
    lookahead: Whole
    rows: Annotated[Sequence[Law], "Other rows are uniform."]
    conditions: Annotated[Ids, "Where the rule is lossy like this."]
    total_variation: Annotated[Exact | None, "Null where the rule raises."]
    error: str | None


@dataclass(frozen=True)
class EverywhereProof:
    """The verdict on a pair of vocabularies."""

    verdict: Verdict
    target: Ids
    drafter: Ids
    lookahead: Whole
    outcomes: Annotated[Whole, "Completed blocks that there are."]
    regions: Annotated[Whole, "Sets of rows on which all paths run alike, over all outcomes."]
    lossy: Annotated[Whole, "Regions with rows at which the rule is lossy."]
    open: Annotated[Whole, "Pieces of which nothing is known."]
    with_equations: Annotated[Whole, "Pieces on which an equation holds."]
    paths: Whole
    flips: Annotated[Whole, "Conditions that were flipped."]
    solver_calls: Whole
    error_bits: Annotated[Whole, "Numbers were distinguished rightly, but for 2^-bits."]
    seconds: Seconds
    witness: WitnessRecord | None


@dataclass(frozen=True)
class EverywhereRecord:
    """What ``specref prove --everywhere`` writes as JSON."""

    rule: str
    never_ran: NeverRan
    not_applicable: Annotated[Ids, "Pairs of vocabularies that the rule cannot read."]
    proofs: Sequence[EverywhereProof]


def everywhere_record(
    name: str,
    found: Sequence[Everywhere],
    left_out: Sequence[str] = (),
    unseen: Unreached | None = None,
) -> EverywhereRecord:
    """A record of each verdict, with the witness, and of what never ran."""
    return EverywhereRecord(name, unseen, left_out, [_proof(name, one) for one in found])


def _proof(name: str, found: Everywhere) -> EverywhereProof:
    return EverywhereProof(
        verdict=found.verdict,
        target=list(map(str, found.target.tokens)),
        drafter=list(map(str, found.drafter.tokens)),
        lookahead=found.lookahead,
        outcomes=found.outcomes,
        regions=found.regions,
        lossy=found.lossy,
        open=found.open,
        with_equations=found.charts,
        paths=found.paths,
        flips=found.flips,
        solver_calls=found.counts.calls,
        error_bits=found.bits,
        seconds=round(found.seconds, 3),
        witness=witness_record(name, found) if found.witness else None,
    )


def witness_record(name: str, found: Everywhere) -> WitnessRecord:
    """The rows of a witness, with all that is needed to run the rule on them again."""
    witness = found.witness
    assert witness is not None
    return WitnessRecord(
        format=FORMAT,
        rule=name,
        target=list(map(str, found.target.tokens)),
        drafter=list(map(str, found.drafter.tokens)),
        eos=None if found.target.eos is None else str(found.target.eos),
        lookahead=found.lookahead,
        rows=laws_of(witness.rows),
        conditions=witness.conditions,
        total_variation=None if witness.error else str(witness.distance),
        error=witness.error,
    )


def laws_of(rows: Rows) -> list[Law]:
    return [Law(row.letter, row.context, list(map(str, law))) for row, law in rows.items()]


def rows_of(record: Mapping[str, Any]) -> Rows:
    if record.get("format") != FORMAT:
        raise ValueError(f"format = {record.get('format')!r}: expected {FORMAT!r}")
    return {
        Row(one["of"], tuple(one["after"])): [Fraction(value) for value in one["row"]]
        for one in record["rows"]
    }


def counts(found: Everywhere) -> str:
    """What was covered, and what it took."""
    eos = "no EOS" if found.target.eos is None else f"EOS {found.target.eos!s}"
    return (
        f"one iteration from the empty context, {eos}; "
        f"{found.outcomes} outcomes, {found.paths:,} paths; zeros, ties, equal rows and point "
        f"masses included ({found.charts} pieces with an equation); {found.flips:,} conditions "
        f"flipped, {found.counts.calls:,} calls of z3; {found.seconds:.1f} s"
    )


def _witness(found: Everywhere, witness: Witness) -> str:
    shown = witness.conditions[:MOST_CONDITIONS]
    more = len(witness.conditions) - len(shown)
    where = "  where " + ", ".join(shown) + (f", and {more} more conditions" if more else "")
    lines = [
        where if shown else f"  {nowhere_else(found)}",
        "  for example, other rows uniform:",
        *(
            f"    {row_name(row, found.target, found.drafter)} = ({', '.join(map(str, law))})"
            for row, law in witness.rows.items()
        ),
    ]
    if witness.error:
        return "\n".join([*lines, f"  there the rule raises {witness.error}"])
    assert witness.proof is not None
    lines.append(f"  total variation of the completed block: {witness.proof.total_variation}")
    if off := witness.proof.difference:
        tokens = " ".join(str(found.target.tokens[token]) for token in off.tokens)
        lines.append(f"  P({tokens}) = {off.output}, the target's is {off.expected}")
        lines += sum_of(off, witness.shares)
    block = " ".join(str(found.target.tokens[token]) for token in witness.block)
    lines += [
        f"  a path to block {block}, tokens by number:",
        *("    " + line for line in witness.trace.splitlines()),
    ]
    return "\n".join(lines)


def nowhere_else(found: Everywhere) -> str:
    """Where a rule is lossy if no conditions tell these rows from others."""
    if not found.lossy:
        return "at rows that were tried, among open pieces"
    return "at some rows of every region of one outcome"


def listed(vocabulary: Vocabulary) -> str:
    return ", ".join(map(str, vocabulary.tokens))
