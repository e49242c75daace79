"""Strata: when rounds of calls end, which strata there are, and what none of them tries."""

import io
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from specref.adapters import reference
from specref.conformance.public import check
from specref.conformance.strata.shape import Shape
from specref.conformance.strata.stratum import MOST_CELLS, Effort, run_rounds
from specref.conformance.strata.table import (
    STEP_STRATA,
    STRATA,
    TEXT_STRATA,
    TREE_STRATA,
)
from specref.examples.correct import verify as correct
from specref.report.kit import kit_report, nowhere
from specref.report.kit_html import kit_html

TOKENS_OF_A_CALL, SECONDS_OF_A_CALL = 10, 0.5
SHAPE = Shape(vocabulary=5, lookahead=1, batch=2)


class Counted:
    """A campaign that counts, and decides after so many calls."""

    def __init__(self, decides: int | None = None) -> None:
        self.decides, self.calls, self.rows, self.longer = decides, 0, 0, 1
        self.sums = SimpleNamespace(tokens=np.zeros((1, 1), dtype=int))

    def add(self, shape: Shape, found: Any) -> None:
        self.sums.tokens[0, 0] += found.tokens

    def decided(self, alpha: float) -> bool:
        return self.decides is not None and self.calls >= self.decides


def calls_of(
    monkeypatch: pytest.MonkeyPatch, shape: Shape = SHAPE, decides: int | None = None, **most: Any
) -> list[int]:
    """How many calls are asked for at once, under limits; a call takes half a second."""
    asked: list[int] = []

    def ask(shape: Shape, calls: int, first: int) -> SimpleNamespace:
        assert first == sum(asked)
        asked.append(calls)
        return SimpleNamespace(rows=shape.batch, tokens=calls * TOKENS_OF_A_CALL)

    clock = SimpleNamespace(perf_counter=lambda: sum(asked) * SECONDS_OF_A_CALL)
    monkeypatch.setattr("specref.conformance.strata.stratum.time", clock)
    campaign: Any = Counted(decides)
    limits = {"tokens": 10**9, "cells": 10**9, **most}
    rows: list[int] = []
    drawing: Any = SimpleNamespace(ask=ask, turns=lambda shape: 1)
    run_rounds(campaign, [shape], drawing, Effort(1e-9, advance=rows.append, **limits))
    assert campaign.calls == sum(asked)
    assert sum(rows) == campaign.rows == shape.batch * sum(asked)
    return asked


@pytest.mark.parametrize(
    ("most", "rounds"),
    [
        ({"tokens": 200}, [1, 1, 2, 4, 8, 4]),
        ({"tokens": 1}, [1]),
        ({"cells": 7 * SHAPE.cells}, [1, 1, 2, 3]),
        ({"seconds": 10.0}, [1, 1, 2, 4, 8, 4]),
        ({"seconds": 0.1}, [1]),
        ({"seconds": 2.0, "tokens": 10}, [1, 1, 2]),
        ({"tokens": 200, "decides": 3}, [1, 1, 2]),
    ],
)
def test_rounds_double_until_a_limit(
    monkeypatch: pytest.MonkeyPatch, most: dict[str, Any], rounds: list[int]
) -> None:
    assert calls_of(monkeypatch, **most) == rounds


def test_no_more_numbers_are_held_at_once_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    large = Shape(vocabulary=MOST_CELLS // 10, lookahead=1, batch=2)
    together = MOST_CELLS // large.cells
    asked = calls_of(monkeypatch, large, tokens=200)
    assert max(asked) == together
    assert sum(asked) == 20


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
