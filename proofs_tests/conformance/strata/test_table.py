"""The strata that are judged, and what none of them tries."""

import io
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from specref.adapters import reference
from specref.conformance.public import check
from specref.conformance.strata.table import (
    STEP_STRATA,
    STRATA,
    TEXT_STRATA,
    TREE_STRATA,
)
from specref.examples.correct import verify as correct
from specref.report.kit import kit_report, nowhere
from specref.report.kit_html import kit_html


def test_names_are_of_one_stratum() -> None:
    names = [
        one.name for table in (STRATA, STEP_STRATA, TEXT_STRATA, TREE_STRATA) for one in table
    ]
    assert len(names) == len(set(names))


@pytest.mark.deep
@pytest.mark.strata
def test_no_call_is_larger_than_the_report_says() -> None:
    sizes: list[Any] = []

    def seen(p: Any, q: Any, drafts: Any, *, rng: Any) -> Any:
        sizes.append((p.shape[2], drafts.shape[1], len(drafts)))
        return correct(p, q, drafts, rng=rng)

    only = ["strata/", "smoke", "independence", "joint/probed"]
    report = check(seen, only=only, trials=500)
    assert np.max(sizes, axis=0).tolist() == [262_144, 33, 8_192]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(kit_report(report, verbose=True))
    text = " ".join(console.export_text().split())
    (line,) = nowhere(report)
    assert line in text
    assert line in kit_html([report])


def test_a_report_of_few_checks_says_nothing_of_limits() -> None:
    assert nowhere(check(reference.verify, only=["smoke/batch-of-one"])) == []
