"""The tables of docs/slrs.md."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from gpu_tests.benchmarks.markdown import table
from gpu_tests.benchmarks.slrs_acceptance import SLEM, SLRS, STANDARD, TLI, UNION, WARM

Row: TypeAlias = dict[str, Any]
LENGTHS = 4, 8, 16
NAMES = {SLRS: "SLRS", TLI: "TLI", UNION: "union", SLEM: "SLEM", STANDARD: "standard"}
WAYS = {
    "slem": "SLEM",
    "bonus": "SLRS (bonus)",
    "residual": "SLRS (residual)",
    "block": "block verification",
}


def growth_table(rows: Sequence[Row]) -> str:
    """By target and drafter, medians at a few lengths, and the most at any."""
    columns = (
        *("tokens of", "by", "tokens"),
        *(f"{length} bytes" for length in LENGTHS),
        *("the most", "forwards, 8 bytes"),
    )
    return table(columns, _growth(rows))


def _growth(rows: Sequence[Row]) -> Iterator[tuple[object, ...]]:
    for target, drafter in dict.fromkeys((row["target"], row["drafter"]) for row in rows):
        of = {row["length"]: row for row in rows if names(row) == (target, drafter)}
        medians = (of[length]["decompositions"]["median"] for length in LENGTHS)
        yield (
            target,
            drafter,
            f"{sum(row['tokens'] for row in of.values()):,}",
            *map(count, medians),
            count(max(row["decompositions"]["max"] for row in of.values())),
            count(of[8]["forwards"]),
        )


def names(row: Row) -> tuple[str, str]:
    """The target and the drafter of a row."""
    return row["target"], row["drafter"]


def count(number: int) -> str:
    """A number, in powers of ten where it is long.

    Examples
    --------
    >>> count(65536), count(2**127)
    ('65,536', '1.7e+38')
    """
    return f"{number:,}" if number < 10**9 else f"{float(number):.1e}"


def bounds_table(rows: Sequence[Row]) -> str:
    """Forwards by bounds and in full, over toy pairs."""
    columns = ("stop", "verified", "lookahead", "by bounds", "in full", "saved")
    return table(columns, (_saved(row) for row in rows if row["pairs"] == "toys"))


def _saved(row: Row) -> tuple[object, ...]:
    lazy, full = row["lazy"], row["full"]
    rule = row["rule"].replace("_", " ")
    return rule, row["verified"], row["lookahead"], f"{lazy:.2f}", f"{full:.2f}", saved(row)


def saved(row: Row) -> str:
    """The share of forwards that are not made."""
    return f"{1 - row['lazy'] / row['full']:.0%}"


def pairs_table(rows: Sequence[Row]) -> str:
    """The pairs, and what psi took."""
    columns = (
        "target",
        "drafter",
        "kind",
        "tokens",
        "shared",
        "paths read, median",
        "most",
        "open",
    )
    return table(columns, (_pair(row) for row in rows))


def _pair(row: Row) -> tuple[object, ...]:
    sizes = f"{row['target_tokens']:,} and {row['drafter_tokens']:,}"
    nodes = (f"{row['nodes'][name]:,}" for name in ("median", "max"))
    kind = row["pair"].split(",")[0]
    return *names(row), kind, sizes, row["shared"], *nodes, f"{row['open']:.1g}"


def temperature_tables(rows: Sequence[Row]) -> str:
    """For each pair, acceptance by method and temperature."""
    return "\n\n".join(
        f"### {row['target']} + {row['drafter']}\n\n{_methods(row)}" for row in rows
    )


def _methods(row: Row) -> str:
    at = acceptance(row)
    temperatures = sorted({temperature for _, temperature, _ in at})
    lines = [
        (NAMES[method], *(shown(at[method, T, T]) for T in temperatures))
        for method in NAMES
        if (method, WARM, WARM) in at
    ]
    warm = ("SLRS, drafter at 1", *(shown(at[SLRS, T, WARM]) for T in temperatures))
    return table(("method", *(f"T = {T:g}" for T in temperatures)), [*lines, warm])


def acceptance(row: Row) -> Mapping[tuple[str, float, float], Row]:
    """{(method, temperature, drafter's temperature): row} of a pair."""
    return {
        (r["method"], r["temperature"], r["drafter_temperature"]): r for r in row["acceptance"]
    }


def middle(row: Row) -> float:
    """The middle of the bounds."""
    return float(row["low"] + row["high"]) / 2


def shown(row: Row) -> str:
    """The middle of the bounds and the standard error.

    Examples
    --------
    >>> shown({"low": 0.5, "high": 0.501, "error": 0.02})
    '0.500 ± 0.020'
    """
    return f"{middle(row):.3f} ± {row['error']:.3f}"


def blocks_table(rows: Sequence[Row]) -> str:
    """Mean tokens of an iteration by how the text is verified, and where that is more."""
    names = [*rows[0]["means"]]
    columns = ("lookahead", "cases", *(WAYS[name] for name in names), "more than the one before")
    return table(columns, (_block(row, names) for row in rows))


def _block(row: Row, names: Sequence[str]) -> tuple[object, ...]:
    means = (f"{row['means'][name]:.3f}" for name in names)
    more = ", ".join(str(row["more"][name]) for name in names[1:])
    return row["lookahead"], row["cases"], *means, more
