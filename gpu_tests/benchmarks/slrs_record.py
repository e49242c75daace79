"""What docs/slrs.md is rendered from: parts that are measured one by one."""

import dataclasses
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from gpu_tests.benchmarks import slrs, slrs_blocks, slrs_bounds, slrs_growth, slrs_temperature
from gpu_tests.benchmarks.record import as_text, this_machine
from specref.report.machine import write_json

Row: TypeAlias = dict[str, Any]
MODULES: Mapping[str, Any] = MappingProxyType(
    {
        "growth": slrs_growth,
        "bounds": slrs_bounds,
        "generation": slrs,
        "temperature": slrs_temperature,
        "blocks": slrs_blocks,
    }
)
NOT_RECORDED = {"downloads"}
DIGITS = 6


def defaults() -> dict[str, Any]:
    """The sizes of each part."""
    return {part: module.Sizes() for part, module in MODULES.items()}


def write_record(file: Path, parts: Collection[str], sizes: Mapping[str, Any]) -> None:
    """Measure these parts; the others stay as they are. Written part by part."""
    record = read_record(file) if file.exists() else {}
    for part in MODULES:
        if part in parts:
            record[part] = measured(part, sizes[part])
            ordered = [record[name] for name in MODULES if name in record]
            write_json(str(file), as_text(ordered))


def measured(part: str, sizes: Any) -> Row:
    """One part of the record, on this machine."""
    rows = [rounded(row) for row in MODULES[part].rows(sizes)]
    of = {k: v for k, v in dataclasses.asdict(sizes).items() if k not in NOT_RECORDED}
    return {"part": part, "sizes": of, "machine": this_machine("cpu"), "rows": rows}


def read_record(file: Path) -> dict[str, Row]:
    """{name: part}.

    Raises
    ------
    ValueError
        The file holds no such record.
    """
    record = json.loads(file.read_text())
    if not isinstance(record, dict) or "parts" not in record:
        raise ValueError(f"{file} is no record of slrs_page")
    return {part["part"]: part for part in record["parts"]}


def rounded(value: Any) -> Any:
    """With floats of six significant digits.

    Examples
    --------
    >>> rounded({"a": [1 / 3, 2], "b": (1e-9 / 3,)})
    {'a': [0.333333, 2], 'b': [3.33333e-10]}
    """
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {name: rounded(each) for name, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list | tuple) else value
