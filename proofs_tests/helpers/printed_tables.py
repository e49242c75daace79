"""The tables that the papers print, by name."""

import json
from pathlib import Path

TABLES = json.loads(
    (Path(__file__).parents[2] / "fixtures" / "printed_tables.json").read_text(encoding="utf-8")
)


def table(name: str) -> list[dict[str, str]]:
    """The rows of one, as printed."""
    columns = TABLES[name]["columns"]
    return [dict(zip(columns, map(str, row), strict=True)) for row in TABLES[name]["rows"]]
