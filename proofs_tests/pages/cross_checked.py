"""The tables of the published pairs, of docs/records/real_models.json, for its page."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from proofs_tests.pages.words import ROOT

RECORD = ROOT / "docs" / "records" / "real_models.json"
Row = dict[str, Any]


def tables(record: dict[str, Any] | None = None) -> str:
    """All of them, under headings."""
    found = json.loads(RECORD.read_text(encoding="utf-8")) if record is None else record
    rows = found["rows"]
    clean = [row for row in rows if row["case"]["bug"] is None]
    parts = [
        "### Rules",
        _table(
            "pair | method | settings | tokens | verdict | z | log10 e-value | accepted | expected"
            " | tokens a pass | detects",
            map(_rule, clean),
        ),
        "Accepted and expected are first draft tokens of a pass, and the closed form on the same "
        "distributions. *Detects* is the least mixture towards the draft model's distribution "
        "that so many tokens are expected to detect.",
        "### Blocks that are decided twice",
        "By the torch rule, and by the listing in float64 from the same random numbers:",
        _table("method | blocks | different | not explained by rounding", _decided(clean)),
        "### Planted bugs",
        _table(
            "pair | method | bug | tokens | found after",
            (_bug(row) for row in rows if row["case"]["bug"] is not None),
        ),
    ]
    same = list(_same_drafts(clean))
    if same:
        parts += [
            "### SLEM and SLRS on the same draft tokens",
            _table("pair | settings | draft tokens | SLEM accepts | SLRS accepts more", same),
        ]
    parts += ["### Speed", _speeds(found["parts"].get("speed", {}))]
    return "\n\n".join(parts) + "\n"


def _table(heads: str, rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {heads} |", "|" + "---|" * (heads.count("|") + 1)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def settings(row: Row) -> str:
    """Temperature and filters, in words.

    >>> settings({"case": {"setting": {"temperature": 1.0, "top_k": 50, "top_p": None}}})
    'top-k 50'
    """
    given = row["case"]["setting"]
    told = [
        f"{name.replace('_', '-')} {given[name]}" for name in ("top_k", "top_p") if given[name]
    ]
    temperature = given["temperature"]
    return ", ".join(told if told and temperature == 1 else [f"T = {temperature:g}", *told])


def _rule(row: Row) -> Sequence[str]:
    case, found = row["case"], row["figures"]
    first = found["acceptance"][0] if found["acceptance"] else None
    least = found["detected_mixture"]
    return (
        case["pair"].replace("<-", " ← "),
        case["method"],
        settings(row),
        f"{found['tokens']:,}",
        found["verdict"],
        f"{found['z']:+.2f}",
        f"{found['log10_evidence']:.1f}",
        f"{first['accepted']} of {first['reached']}" if first else "",
        _between(first["expected"]) if first else "",
        f"{found['tokens_per_iteration']:.2f}",
        "" if least is None else f"{least:.0%}",
    )


def _between(bounds: Sequence[float]) -> str:
    low, high = bounds
    return f"{low}" if low == high else f"{low} to {high}"


def _decided(rows: Iterable[Row]) -> Iterable[Sequence[str]]:
    sums: dict[str, list[int]] = {}
    for row in rows:
        twice = row["figures"]["decided_twice"]
        known = sums.setdefault(row["case"]["method"], [0, 0, 0])
        for at, name in enumerate(("blocks", "different", "unexplained")):
            known[at] += twice[name]
    return ((method, *(f"{one:,}" for one in counts)) for method, counts in sums.items())


def _bug(row: Row) -> Sequence[str]:
    case, found = row["case"], row["figures"]
    after = "not found yet"
    if found["found_at"] is not None:
        after = f"{found['found_at']:,} tokens"
    elif found["acceptance_off_at"] is not None:
        after = f"{found['acceptance_off_at']:,} tokens, by accepted draft tokens"
    pair = case["pair"].replace("<-", " ← ")
    return pair, case["method"], case["bug"], f"{found['tokens']:,}", after


def _same_drafts(rows: Iterable[Row]) -> Iterable[Sequence[str]]:
    for row in rows:
        for first in row["figures"]["acceptance"][:1]:
            if "same_drafts" in first:
                same = first["same_drafts"]
                yield (
                    row["case"]["pair"].replace("<-", " ← "),
                    settings(row),
                    f"{same['drafts']:,}",
                    f"{same['exact_match']:.3f}",
                    f"{same['slrs_more']:+.3f} ± {same['error']:.3f}",
                )


def _speeds(parts: dict[str, Any]) -> str:
    rows = [
        (
            key.split(",")[0].replace("<-", " ← "),
            f"{path['by']}, {path['method']}",
            "sampled" if path["sampled"] else "greedy",
            f"{path['tokens_per_forward']:.2f}",
            f"{path['tokens_per_second']:.1f}",
            "raises" if path["error"] else "" if path["sampled"] else _equal(path),
        )
        for key, part in parts.items()
        for path in part["paths"]
    ]
    heads = "pair | path | decoding | tokens a pass | tokens a second | texts as plain greedy"
    raised = [
        f"* {key}: {path['by']}, {path['method']} raises {path['error']}"
        for key, part in parts.items()
        for path in part["paths"]
        if path["error"]
    ]
    size = sorted({(part["prompts"], part["length"]) for part in parts.values()})
    told = "; ".join(f"{prompts} prompts, up to {length} tokens each" for prompts, length in size)
    return "\n\n".join(
        filter(None, [f"On the CPU, {told}.", _table(heads, rows), "\n".join(raised)])
    )


def _equal(path: Row) -> str:
    near = f", {path['near_ties']} near ties" if path["near_ties"] else ""
    return f"{path['equal']} of {path['texts']}{near}"


if __name__ == "__main__":
    print(tables())
