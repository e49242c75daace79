"""Proofs for every p and q: the verdict in words, and as a record that can be replayed."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from rich.console import Group, RenderableType

from specref.proofs.everywhere import Everywhere, Witness
from specref.proofs.everywhere.rows import Row, Rows
from specref.proofs.reached import Unreached
from specref.report.layout import Prose
from specref.report.rules import never_ran, never_ran_record, sum_of
from specref.vocabulary import Vocabulary

FORMAT = "specref rows 1"
MOST_CONDITIONS = 12
NOT_SAID = (
    "Nothing is said of other numbers of tokens or drafts, of contexts before the first draft, or "
    "of EOS.",
    "Nothing is said of a second draft (--tokens 2 --lookahead 2), of other numbers of tokens, of "
    "contexts before the first draft, or of EOS.",
)


def everywhere_report(
    name: str,
    found: Sequence[Everywhere],
    left_out: Sequence[str],
    unseen: Unreached | None = None,
) -> Any:
    """What is proved, refuted or open for each pair of vocabularies, and what never ran."""
    parts: list[RenderableType] = []
    for one in found:
        lines = f"; {unseen}" if unseen and one.verdict == "lossless" else ""
        parts.append(Prose(f"{name}: {sentence(one)}{lines}", _style(one)))
        parts.append(Prose(f"  {counts(one)}"))
        if one.witness:
            parts.append(Prose(_witness(one, one.witness)))
    parts += [Prose(f"{name}: not applicable to {one}") for one in left_out]
    if any(one.verdict == "lossless" for one in found):
        parts.append(Prose(NOT_SAID[found[0].lookahead == 1], "dim"))
    if found and (unseen is None or all(one.verdict != "lossless" for one in found)):
        parts.append(Prose(never_ran(unseen), "dim"))
    return Group(*parts)


def sentence(found: Everywhere) -> str:
    """The verdict in a sentence."""
    box = f"{spelled(found)}, lookahead {found.lookahead}"
    if found.verdict == "lossless":
        without = ", without EOS" if found.target.eos is None else ""
        return (
            f"lossless for every p and q over {box}{without}: {found.regions} regions, 0 open, "
            f"error of the identity tests <= 2^-{found.bits}"
        )
    known = f"{found.regions} regions, {found.open} open" if found.open else found.regions
    if found.verdict == "lossy" and not found.lossy:
        return f"lossy at rows that were tried; {found.regions} regions, {found.open} open; {box}"
    if found.verdict == "lossy":
        what = {True: "raises", False: "lossy", None: "lossy, or raises,"}[raises(found)]
        regions = f"{found.lossy} of {known}" + " regions" * (not found.open)
        return f"{what} at some rows of {regions}, over {box}"
    return (
        f"open for {box}: {found.regions} regions, of which {found.lossy} lossy; {found.open} open"
    )


def raises(found: Everywhere) -> bool | None:
    """Whether a rule that is not lossless raises in all regions where it is not; None: in some."""
    errors = [one.error is not None for part in found.slices for one in part.lossy]
    return all(errors) if all(errors) == any(errors) else None


def spelled(found: Everywhere) -> str:
    """The vocabularies: a number of tokens, or what the tokens are."""
    target, drafter = found.target, found.drafter
    if target.tokens == drafter.tokens:
        return f"{len(target)} tokens"
    return f"the tokens {listed(target)} of p and {listed(drafter)} of q"


def everywhere_record(
    name: str,
    found: Sequence[Everywhere],
    left_out: Sequence[str] = (),
    unseen: Unreached | None = None,
) -> dict[str, object]:
    """A record of each verdict, with the witness, and of what never ran."""
    return {
        "rule": name,
        "never_ran": never_ran_record(unseen),
        "not_applicable": list(left_out),
        "proofs": [
            {
                "verdict": one.verdict,
                "target": list(map(str, one.target.tokens)),
                "drafter": list(map(str, one.drafter.tokens)),
                "lookahead": one.lookahead,
                "outcomes": one.outcomes,
                "regions": one.regions,
                "lossy": one.lossy,
                "open": one.open,
                "with_equations": one.charts,
                "paths": one.paths,
                "flips": one.flips,
                "solver_calls": one.counts.calls,
                "error_bits": one.bits,
                "seconds": round(one.seconds, 3),
                "witness": one.witness and witness_record(name, one),
            }
            for one in found
        ],
    }


def witness_record(name: str, found: Everywhere) -> dict[str, object]:
    """The rows of a witness, with all that is needed to run the rule on them again."""
    witness = found.witness
    assert witness is not None
    return {
        "format": FORMAT,
        "rule": name,
        "target": list(map(str, found.target.tokens)),
        "drafter": list(map(str, found.drafter.tokens)),
        "eos": found.target.eos and str(found.target.eos),
        "lookahead": found.lookahead,
        "rows": [
            {"of": row.letter, "after": list(row.context), "row": [str(value) for value in law]}
            for row, law in witness.rows.items()
        ],
        "conditions": list(witness.conditions),
        "total_variation": None if witness.error else str(witness.distance),
        "error": witness.error,
    }


def rows_of(record: Mapping[str, Any]) -> Rows:
    """The rows of such a record.

    Raises
    ------
    ValueError
        The record is none.
    """
    if record.get("format") != FORMAT:
        raise ValueError(f"format = {record.get('format')!r}: expected {FORMAT!r}")
    return {
        Row(one["of"], tuple(one["after"])): [Fraction(value) for value in one["row"]]
        for one in record["rows"]
    }


def _style(found: Everywhere) -> str:
    return {"lossless": "bold green", "lossy": "bold red", "open": "bold yellow"}[found.verdict]


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


def row_name(row: Row, target: Vocabulary, drafter: Vocabulary) -> str:
    """A row with the tokens after which it is.

    Examples
    --------
    >>> row_name(Row("q", (1, 0)), Vocabulary("abc"), Vocabulary("xy"))
    'q(·|y x)'
    """
    vocabulary = target if row.letter == "p" else drafter
    after = " ".join(str(vocabulary.tokens[token]) for token in row.context)
    return f"{row.letter}(·|{after})" if after else f"{row.letter}(·)"


def listed(vocabulary: Vocabulary) -> str:
    """The tokens of a vocabulary."""
    return ", ".join(map(str, vocabulary.tokens))
