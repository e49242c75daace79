"""Files of users: expected failures in TOML, and failing cases that are saved."""

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import date, datetime
from pathlib import Path
from typing import Any

from specref.conformance.report import Report
from specref.conformance.suite import known_ids
from specref.contracts.capabilities import Capabilities
from specref.suggestions import did_you_mean

REQUIRED = ("id", "reason")
KEYS = (*REQUIRED, "url", "until", "implementation")


@dataclass(frozen=True)
class Expectation:
    """A check that is expected to fail.

    * `implementation`: The only implementation that it applies to; None for any.
    """

    id: str
    reason: str
    url: str = ""
    until: date | None = None
    implementation: str | None = None

    def __post_init__(self) -> None:
        known_ids({self.id: self.reason})

    def __str__(self) -> str:
        last = f"until {self.until}" if self.until else ""
        notes = "; ".join(filter(None, (self.url, last)))
        return f"{self.reason} ({notes})" if notes else self.reason

    def expired(self, today: date) -> bool:
        """Whether its last day has passed."""
        return self.until is not None and today > self.until

    def applies_to(self, implementation: str) -> bool:
        """Whether it applies to an implementation, named FUNCTION or MODULE:FUNCTION."""
        return self.implementation in (
            None,
            implementation,
            implementation.rpartition(":")[2],
        )


def expectation_for(
    expectations: Iterable[Expectation], id_: str, implementation: str
) -> Expectation | None:
    """The entry for a check; one that names the implementation takes precedence."""
    found = [one for one in expectations if one.id == id_ and one.applies_to(implementation)]
    return next((one for one in found if one.implementation), found[0] if found else None)


def read_expectations(path: str | Path) -> tuple[Expectation, ...]:
    """The entries of a file of expected failures.

    A `ValueError` names the entry that is wrong, and suggests a similar id.
    """
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    entries = content.pop("expected", [])
    if content or not isinstance(entries, list):
        raise ValueError(f"{path}: expected tables [[expected]], and nothing else")
    found: dict[tuple[str, str | None], Expectation] = {}
    for number, raw in enumerate(entries, 1):
        try:
            entry = _entry(raw)
        except ValueError as error:
            raise ValueError(f"{path}, entry {number}: {error}") from None
        if found.setdefault((entry.id, entry.implementation), entry) is not entry:
            raise ValueError(f"{path}, entry {number}: {entry.id!r} is there twice")
    return tuple(found.values())


def load_expected(
    path: str | Path, implementation: str | None = None, today: date | None = None
) -> dict[str, str]:
    """{id of a check: reason} for `check`, from a file.

    Those for other implementations are left out; one that has expired is a `ValueError`.
    """
    entries = read_expectations(path)
    wanted = [e for e in entries if implementation is None or e.applies_to(implementation)]
    for entry in wanted:
        if entry.expired(today or date.today()):
            raise ValueError(f"{path}: {entry.id!r} expired on {entry.until}: {entry.reason}")
    named = sorted(wanted, key=lambda entry: entry.implementation is not None)
    return {entry.id: str(entry) for entry in named}


def _entry(raw: Any) -> Expectation:
    if not isinstance(raw, dict):
        raise ValueError(f"{raw!r}: expected a table")
    for key in raw:
        if key not in KEYS:
            hint = did_you_mean(key, KEYS).removeprefix("; ") or f"expected one of {KEYS}"
            raise ValueError(f"unknown key {key!r}: {hint}")
    for key in REQUIRED:
        if key not in raw:
            raise ValueError(f"has no {key!r}")
    values: dict[str, Any] = {k: _day(v) if k == "until" else _text(k, v) for k, v in raw.items()}
    return Expectation(**values)


def _text(key: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{key} = {value!r}: expected a text that is not empty")
    if key == "url" and not value.startswith(("https://", "http://")):
        raise ValueError(f"url = {value!r}: expected an address that starts with https://")
    return value


def _day(value: object) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        raise ValueError(f"until = {value!r}: expected a day, such as 2030-12-31") from None


FORMAT = "specref case 1"
NEEDED = ("format", "target", "contract", "check", "claims", "seed", "alpha", "detect_tv")


def failing_cases(report: Report, target: str, timeout: float | None) -> dict[str, Any]:
    """{file name: case} for each failure of a report, and each check that was not answered."""
    shapes, dtypes = report.options.shapes, report.options.dtypes
    own = {"shapes": list(map(list, shapes)), "dtypes": list(dtypes)} if shapes else {}
    return {
        f"{result.id.replace('/', '-')}-seed-{report.seed}.json": {
            "format": FORMAT,
            "target": target,
            "folder": str(Path.cwd()),
            "contract": str(report.contract),
            "check": result.id,
            "claims": asdict(report.capabilities),
            "seed": report.seed,
            "alpha": report.alpha,
            "detect_tv": report.detect_tv,
            "trials": report.options.trials,
            "patience": timeout,
            "message": result.message,
            "evidence": dict(result.evidence),
            **own,
        }
        for result in report.wrong
    }


def load_case(path: str) -> Mapping[str, Any]:
    """Read a saved case."""
    try:
        case = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(case, dict) or case.get("format") != FORMAT:
        raise ValueError(f"{path} is no saved case: expected the format {FORMAT!r}")
    for name in NEEDED:
        if name not in case:
            raise ValueError(f"{path} has no {name!r}")
    unknown = set(case["claims"]) - {field.name for field in fields(Capabilities)}
    if unknown:
        raise ValueError(f"{path} has unknown claims: {sorted(unknown)}")
    return case
