"""Records of reports, without what differs between two runs of the same."""

from typing import Any


def without_seconds(record: Any) -> Any:
    """The record without its durations, at whatever depth they are."""
    if isinstance(record, dict):
        return {name: without_seconds(one) for name, one in record.items() if name != "seconds"}
    return [*map(without_seconds, record)] if isinstance(record, list) else record
