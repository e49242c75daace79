"""The figures to reach, and whether a record reaches them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from gpu_tests.benchmarks.cases import FLOOR
from gpu_tests.benchmarks.lines import BLOCK, PLAIN

Row: TypeAlias = dict[str, Any]
MET, MISSED = "met", "missed"
BATCH, VOCABULARY = 64, 152_064
LIMITS: Mapping[tuple[str, str], float] = MappingProxyType(
    {
        ("logits", "float32"): 1.2,
        ("logits", "bfloat16"): 1.2,
        ("probabilities", "float32"): 1.5,
        ("probabilities", "bfloat16"): 2.0,
    }
)
"""Times over the floor. Of probabilities so little is read that launches and latency weigh."""
LOSSY = "tli", "Transformers"


class Figure(NamedTuple):
    """What was to be reached, the verdict, and by what."""

    text: str
    outcome: str
    evidence: str


def figures(parts: Sequence[Row]) -> Iterator[Figure]:
    """All of them, by device where they are of several.

    Parameters
    ----------
    parts : sequence of dict
        The parts of a record.
    """
    rows = {(part["part"], part["device"]): part["rows"] for part in parts}
    for given, dtype in LIMITS:
        yield near_floor(rows["verification", "cuda"], given, dtype)
    for device in ("cpu", "cuda"):
        yield no_slower(rows["generation", device], device)
    for device in ("cpu", "cuda"):
        yield faster_than_plain(rows["generation", device], device)


def near_floor(rows: Iterable[Row], given: str, dtype: str) -> Figure:
    """Verification on CUDA, the better of the variants, over all lookaheads."""
    most, floor = LIMITS[given, dtype], FLOOR[given]
    where = f"B = {BATCH}, V = {VOCABULARY:,}, {dtype}, CUDA"
    text = f"verification of {given} <= {most} x the floor of {floor} at {where}"
    at = [r for r in rows if (r["batch"], r["vocabulary"]) == (BATCH, VOCABULARY)]
    at = [r for r in at if (r["input"], r["dtype"]) == (given, dtype)]
    ratios = []
    for _, variants in groupby(sorted(at, key=_lookahead), _lookahead):
        found = [over_floors(row)[floor] for row in variants if row["status"] == "measured"]
        ratios += [min(found)] if found else []
    if not ratios:
        return Figure(text, _reason(at), "")
    return Figure(text, _verdict(max(ratios) <= most), f"{min(ratios):.2f} to {max(ratios):.2f}")


def no_slower(rows: Iterable[Row], device: str) -> Figure:
    """Tokens per second over those of Transformers, wherever it has the method and is lossless."""
    text = f"tokens/s >= Transformers', each method and pair, {device.upper()}"
    rows = list(rows)
    ratios = {
        f"{row['method']}, {row['pair']}, {_how(row)}": ratio
        for row in rows
        for peer, ratio in row.get("ratio_to", {}).items()
        if (row["method"], peer) != LOSSY
    }
    if not ratios:
        return Figure(text, _reason(rows), "")
    slower = [
        f"{name}: {ratio['median']:.2f} x ({ratio['low']:.2f} to {ratio['high']:.2f})"
        for name, ratio in ratios.items()
        if ratio["median"] < 1
    ]
    reached = f"{len(ratios) - len(slower)} of {len(ratios)}"
    return Figure(text, _verdict(not slower), "; ".join([reached, *slower]))


def faster_than_plain(rows: Iterable[Row], device: str) -> Figure:
    """SLEM and TLI against this backend without drafts, batch 1, on the best pair of each."""
    text = (
        "SLEM and TLI faster than autoregression on a pair with two vocabularies, "
        f"{device.upper()}"
    )
    rows, best = list(rows), dict[str, tuple[float, str]]()
    for row in rows:
        ratio = row.get("ratio_to_autoregressive")
        if ratio and row["method"] in ("slem", "tli") and row["batch"] == 1 and _is_ours(row):
            found = ratio["median"], f"{row['pair']}, {_how(row)}"
            best[row["method"]] = max(best.get(row["method"], found), found)
    if not best:
        return Figure(text, _reason(rows), "")
    evidence = "; ".join(f"{name} {ratio:.2f} x ({how})" for name, (ratio, how) in best.items())
    return Figure(text, _verdict(all(ratio > 1 for ratio, _ in best.values())), evidence)


def _how(row: Row) -> str:
    """At which temperature, with how many drafts, and by which verification if not the usual."""
    how = [f"T {row['temperature']:g}"]
    how += [f"lookahead {row['lookahead']}"] if row["method"] != PLAIN else []
    return ", ".join(how + ["by block"] * (row["verification"] == BLOCK))


def over_floors(row: Row) -> dict[str, float]:
    """Median time over each floor."""
    median = row["seconds"]["median"]
    return {name: float(median / floor) for name, floor in row["floor_seconds"].items()}


def _lookahead(row: Row) -> int:
    return int(row["lookahead"])


def _is_ours(row: Row) -> bool:
    return bool(row["implementation"] == "specref")


def _verdict(reached: bool) -> str:
    return MET if reached else MISSED


def _reason(rows: Sequence[Row]) -> str:
    return str(rows[0]["status"]) if rows else "not_run (no such row)"
