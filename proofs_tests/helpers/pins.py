"""The published instances of fixtures/pins.json."""

import json
from pathlib import Path

from specref import Vocabulary
from specref.models import iid_model, ngram_model

PINS = json.loads((Path(__file__).parents[2] / "fixtures" / "pins.json").read_text())


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
