"""Failing cases as files, with everything that is needed to run them again."""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from specref.conformance.report import Report
from specref.contracts.capabilities import Capabilities

FORMAT = "specref case 1"
NEEDED = ("format", "target", "contract", "check", "claims", "seed", "alpha", "detect_tv")


def failing_cases(report: Report, target: str, timeout: float | None) -> dict[str, Any]:
    """{file name: case} for each failure of a report, and each check that was not answered.

    Parameters
    ----------
    report : Report
    target : str
        The name of the implementation on the command line.
    timeout : float or None
        Seconds for a call, as in the options: a program keeps the time itself.
    """
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
    """Read a saved case.

    Raises
    ------
    ValueError
        The file is not a saved case, or a field is missing or unknown.
    """
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
