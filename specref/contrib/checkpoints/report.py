"""Checkpoints that were written, and how far engines are from their laws."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType

from specref.contrib.checkpoints.fidelity import TOLERANCE, Fidelity
from specref.report.forms import (
    IDS,
    TEXT,
    Reports,
    form_of,
    listed,
    one_of,
    record,
    said,
    table,
)
from specref.report.layout import Column, Prose, Table


@dataclass(frozen=True)
class Verified:
    """One engine on one checkpoint.

    Attributes
    ----------
    checkpoint : str
        Target, drafter, or the folder of one alone.
    format, engine : str
    fidelity : Fidelity or None
        None if the engine was not run.
    reason : str
        Why it was not.
    """

    checkpoint: str
    format: str
    engine: str
    fidelity: Fidelity | None
    reason: str = ""

    @property
    def status(self) -> str:
        """``passed``, ``failed``, or ``not_run``."""
        if self.fidelity is None:
            return "not_run"
        return "passed" if self.fidelity.faithful else "failed"


def verified_report(rows: Sequence[Verified]) -> RenderableType:
    """A table of the engines, where a law is missed, and why engines were not run."""
    columns = [
        *(Column(name) for name in ("checkpoint", "engine")),
        *(Column(name, right=True) for name in ("contexts", "error", "impossible")),
        Column("status"),
    ]
    legend = (
        "error: the largest |computed - prescribed| probability of a token; impossible: the "
        "largest mass on tokens whose probability is 0."
    )
    reasons = {row.engine: row.reason for row in rows if row.fidelity is None}
    return Group(
        Table(columns, [_cells(row) for row in rows], keys=2),
        Prose(legend),
        *(Prose(f"{row.checkpoint}: {_missed(row)}") for row in rows if row.status == "failed"),
        *(Prose(f"{engine}: {reason}") for engine, reason in reasons.items()),
    )


def _cells(row: Verified) -> list[str]:
    if row.fidelity is None:
        return [row.checkpoint, row.engine, "", "", "", row.status]
    found = row.fidelity
    numbers = f"{found.contexts:,}", f"{found.largest:.0e}", f"{found.impossible:.0e}"
    return [row.checkpoint, row.engine, *numbers, row.status]


def _missed(row: Verified) -> str:
    found = row.fidelity
    assert found is not None
    return (
        f"{row.engine} is off by {found.largest:.2g} at token {found.token} after "
        f"{_ending(found.context)}; at most {TOLERANCE:g} is allowed"
    )


def _ending(context: Sequence[int]) -> str:
    ids = " ".join(map(str, context[-6:]))
    return f"(… {ids})" if len(context) > 6 else f"({ids})"


REPORTS: Reports = {
    "build-model": (
        "specref build-model --law LAW --out FOLDER",
        record(
            folders=said("{name of a law: its folder}.", table(TEXT)),
            formats=IDS,
            architecture=TEXT,
            verified=said(
                "With --verify, each engine on each checkpoint.",
                listed(
                    record(
                        **form_of(Verified)["properties"],
                        status=one_of("passed", "failed", "not_run"),
                    )
                ),
            ),
        ),
    ),
}
