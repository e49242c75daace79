"""The published vectors, read once."""

import json
from fractions import Fraction
from pathlib import Path

from specref.contrib.vectors.building import PUBLISHED

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "specref" / "vectors" / "v1"
FILES = {name: json.loads((FOLDER / f"{name}.json").read_text()) for name in PUBLISHED}
SCHEMA = json.loads((FOLDER / "schema.json").read_text())
CASES = [case for file in FILES.values() for case in file["cases"]]
VERIFY = [case for case in CASES if case["level"] == "verify"]
STEPS = [case for case in CASES if case["level"] == "step"]


def rule(case):
    return case["id"].split("/")[0]


def exact_law(case):
    return {tuple(map(int, key.split())): Fraction(p) for key, p in case["law"].items()}
