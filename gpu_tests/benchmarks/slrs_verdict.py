"""When to use which: sentences that a record of measurements allows."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from gpu_tests.benchmarks.markdown import table
from gpu_tests.benchmarks.slrs_acceptance import SLEM, SLRS, STANDARD, TLI, WARM
from gpu_tests.benchmarks.slrs_generation import fastest, pairs, speed
from gpu_tests.benchmarks.slrs_tables import NAMES, acceptance, middle, models, names

Row: TypeAlias = dict[str, Any]
Record: TypeAlias = Mapping[str, Row]
Outcome: TypeAlias = Literal["more", "less", "not decided"]
COLD, ERRORS = 0.0, 2
WORTH_IT = "Use SLRS (`slrs`) if what it takes, below, is cheap beside the target."
OUTCOMES: tuple[Outcome, ...] = ("more", "less", "not decided")


def outcome(row: Row, method: str, temperature: float) -> Outcome:
    """Whether SLRS accepts more than a method on a pair, by two standard errors beyond bounds."""
    difference = acceptance(row)[method, temperature, temperature]["over_slrs"]
    if difference["high"] + ERRORS * difference["error"] < 0:
        return "more"
    return "less" if difference["low"] - ERRORS * difference["error"] > 0 else "not decided"


def outcomes_table(rows: Sequence[Row], method: str) -> str:
    """On which pairs SLRS accepts more than a method, by temperature."""
    temperatures = sorted({at[1] for row in rows for at in acceptance(row)})
    lines = []
    for temperature in temperatures:
        found = [outcome(row, method, temperature) for row in rows]
        lines.append((f"{temperature:g}", *(found.count(one) for one in OUTCOMES)))
    return table(("temperature", *OUTCOMES), lines)


def verdict(record: Record) -> str:
    """The bullets of the last section."""
    rows = record["temperature"]["rows"]
    bullets = [
        summary(rows, record["generation"]["rows"]),
        one_vocabulary([row for row in rows if _has(row, STANDARD)]),
        greedy(rows),
        sampled(rows),
        *(two_vocabularies(row) for row in rows if not _has(row, STANDARD)),
        cost(record),
        *speed(record["generation"], models(record), accepts_more(rows)),
        blocks(record["blocks"]["rows"]),
    ]
    return "\n".join(f"* {bullet}" for bullet in bullets if bullet)


def summary(rows: Sequence[Row], generation: Sequence[Row]) -> str:
    """On how many pairs SLRS accepts the most, and on how many it is the fastest."""
    two = [row for row in rows if not _has(row, STANDARD)]
    more = len(accepts_more(two))
    return (
        f"**In short:** at temperature 1 SLRS accepts more than TLI on {more} of the {len(two)} "
        f"pairs with two vocabularies; of the {len(pairs(generation))} pairs that were timed "
        f"it is clearly the fastest way on {len(fastest(generation))}, on this CPU."
    )


def accepts_more(rows: Sequence[Row]) -> list[str]:
    """The pairs on which SLRS accepts more than TLI at temperature 1."""
    return [row["pair"] for row in rows if outcome(row, TLI, WARM) == "more"]


def one_vocabulary(rows: Sequence[Row]) -> str:
    """Standard speculative decoding beside text, where both are possible."""
    return " ".join(
        f"**{_pair(row)}, one vocabulary:** {_against(row, STANDARD)} {_advice(row)}"
        for row in rows
    )


def _advice(row: Row) -> str:
    if outcome(row, STANDARD, WARM) == "more":
        return WORTH_IT
    return "Use standard speculative decoding, which needs no psi."


def greedy(rows: Sequence[Row]) -> str:
    """SLEM and SLRS at temperature 0."""
    apart = [acceptance(row)[SLEM, COLD, COLD]["over_slrs"] for row in rows]
    worst = max(max(abs(one["low"]), abs(one["high"])) for one in apart)
    if worst:
        return f"**Temperature 0:** SLEM and SLRS differ by up to {worst:.1g}."
    return (
        f"**Temperature 0:** SLEM accepts as often as SLRS (all {len(rows)} pairs: laws are point "
        "masses, and min(p, psi) = p psi), where longest match reads the text. `generate` lets "
        "the target's own tokeniser read it for SLEM, and may keep more. Use SLEM, or TLI: "
        "neither needs psi."
    )


def sampled(rows: Sequence[Row]) -> str:
    """SLEM and SLRS at temperature 1."""
    ratios = [_ratio(row, SLEM) for row in rows]
    return (
        f"**Temperature 1:** SLRS accepts {min(ratios):.1f} to {max(ratios):.1f} times as often "
        "as SLEM, from the same text (never less: min(p, psi) >= p psi)."
    )


def two_vocabularies(row: Row) -> str:
    """TLI and SLRS on a pair at temperature 1."""
    found = outcome(row, TLI, WARM)
    advice = {
        "more": WORTH_IT,
        "less": "Use TLI, which needs no psi.",
        "not decided": "Use TLI: nothing is seen that would pay for psi.",
    }
    shared = f"{row['shared'] / row['target_tokens']:.0%} of the target's tokens shared"
    return f"**{_pair(row)}, {shared}:** {_against(row, TLI)} {advice[found]}"


def _against(row: Row, method: str) -> str:
    found, at = outcome(row, method, WARM), acceptance(row)
    mine, other = (middle(at[name, WARM, WARM]) for name in (SLRS, method))
    known = found != "not decided"
    verb = f"accepts {found} often than" if known else "is not known to accept more or less than"
    figures = f"{mine:.2f} against {other:.2f}" + ("" if known else ", within two errors")
    return f"at temperature 1 SLRS {verb} {NAMES[method]} ({figures})."


def cost(record: Record) -> str:
    """What psi takes, in full and by bounds."""
    rows = record["temperature"]["rows"]
    paths = [row["nodes"]["median"] for row in rows]
    words = [row for row in record["bounds"]["rows"] if row["pairs"] == "words"]
    longest = max(words, key=lambda row: int(row["lookahead"]))
    tolerance = record["temperature"]["sizes"]["tolerance"]
    return (
        f"**Cost:** psi of one draft, all but {tolerance:g} of it, took {min(paths):,} to "
        f"{max(paths):,} paths of the drafter (medians of the pairs, all temperatures together), "
        "where SLEM and TLI read one for each token that they draft. Bounds decide with fewer: "
        f"{longest['lazy']:.1f} instead of {longest['full']:.1f} forwards on the largest toys."
    )


def blocks(rows: Sequence[Row]) -> str:
    """Block verification beside SLRS."""
    last = rows[-1]["means"]
    if any(row["less"][name] for row in rows for name in row["less"]):
        return "**Block verification:** it is not always the longest here."
    gain = last["block"] / last["residual"] - 1
    return (
        f"**Block verification:** {gain:.1%} more tokens than SLRS (residual) at lookahead "
        f"{rows[-1]['lookahead']} on toy pairs, and in no case fewer. It asks for psi of all "
        "tokens after each prefix of the draft, so that it is for drafters whose psi is at hand "
        "in full."
    )


def _has(row: Row, method: str) -> bool:
    return (method, WARM, WARM) in acceptance(row)


def _ratio(row: Row, method: str) -> float:
    at = acceptance(row)
    return middle(at[SLRS, WARM, WARM]) / middle(at[method, WARM, WARM])


def _pair(row: Row) -> str:
    return " + ".join(names(row))
