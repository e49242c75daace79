"""The record of the attack as a table of the terminal, and as a page."""

from typing import Any

COMMAND = "python -m proofs_tests.attack --workers 2 --json docs/attack.json --markdown docs/attack.md"


def table(rows: list[dict[str, Any]]) -> str:
    return "".join("stub")


def page(record: dict[str, Any]) -> str:
    return ""
