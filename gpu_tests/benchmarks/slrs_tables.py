"""The tables of docs/slrs.md."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from gpu_tests.benchmarks.markdown import table
from gpu_tests.benchmarks.slrs_acceptance import SLEM, SLRS, STANDARD, TLI, UNION, WARM

Row: TypeAlias = dict[str, Any]
Record: TypeAlias = Mapping[str, Row]
LENGTHS = 4, 8, 16
TABLED = 0.0, 0.5, 1.0
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


def models(record: Record) -> dict[str, str]:
    """The models of each pair."""
    return {row["pair"]: " + ".join(names(row)) for row in record["temperature"]["rows"]}


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
    toys = [row for row in rows if row["pairs"] == "toys"]
    kinds = dict.fromkeys((row["rule"], row["verified"]) for row in toys)
    return table(columns, (_saved(row) for kind in kinds for row in _with_sum(toys, *kind)))


def _with_sum(rows: Sequence[Row], rule: str, verified: str) -> list[Row]:
    """The lookaheads of a rule, and all together."""
    mine = [row for row in rows if (row["rule"], row["verified"]) == (rule, verified)]
    whole = {name: sum(row[name] for row in mine) for name in ("lazy", "full")}
    return [*mine, {"rule": rule, "verified": verified, "lookahead": "all"} | whole]


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
    return *names(row), kind, sizes, f"{row['shared']:,}", *nodes, f"{row['open']:.1g}"


def temperature_table(rows: Sequence[Row]) -> str:
    """Acceptance by pair, temperature and method."""
    columns = "pair", "temperature", *NAMES.values(), f"SLRS, drafter at {WARM:g}"
    return table(columns, (_methods(row, T) for row in rows for T in TABLED))


def _methods(row: Row, temperature: float) -> tuple[object, ...]:
    at = acceptance(row)
    keys = [*((method, temperature, temperature) for method in NAMES), (SLRS, temperature, WARM)]
    cells = (shown(at[key]) if key in at else "" for key in keys)
    return " + ".join(names(row)), f"{temperature:g}", *cells


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
