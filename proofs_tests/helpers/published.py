"""What is published: instances with their numbers, tables of papers, the verifier of a page."""

import json
import re
from pathlib import Path

from specref import Vocabulary
from specref.models import iid_model, ngram_model

ROOT = Path(__file__).parents[2]
PINS = json.loads((ROOT / "fixtures" / "pins.json").read_text())
TABLES = json.loads((ROOT / "fixtures" / "printed_tables.json").read_text(encoding="utf-8"))
TREE_VERIFIER = next(
    code
    for code in re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "trees-and-loops.md").read_text(), flags=re.DOTALL
    )
    if "def verify_tree" in code
)


def model(rows):
    """One row, {"*": row}, or rows by the last token (the empty key is the empty context)."""
    rows = rows.get("*", rows) if isinstance(rows, dict) else rows
    if isinstance(rows, list):
        return iid_model(Vocabulary("0123"[: len(rows)]), rows)
    by_last = {tuple(map(int, last)): row for last, row in rows.items()}
    return ngram_model(Vocabulary("0123"[: len(rows[""])]), 1, by_last, rows[""])


def models(instance):
    rows = PINS["instances"][instance]
    return model(rows["p"]), model(rows["q"])


def table(name: str) -> list[dict[str, str]]:
    """The rows of one, as printed."""
    columns = TABLES[name]["columns"]
    return [dict(zip(columns, map(str, row), strict=True)) for row in TABLES[name]["rows"]]
