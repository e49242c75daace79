"""Rounds of calls end when a campaign has decided, or seen enough."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from specref.conformance.strata.shape import Shape
from specref.conformance.strata.stratum import MOST_CELLS, Effort, run_rounds

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
