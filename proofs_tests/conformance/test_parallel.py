"""Checks on workers: the results of one process, in its order, and errors that say what to do."""

import json
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from proofs_tests.helpers.records import without_seconds
from specref.conformance.parallel import loaded
from specref.conformance.public import check
from specref.conformance.report import Report
from specref.conformance.strata.calling import Called
from specref.conformance.strata.shape import shapes
from specref.conformance.strata.stratum import Stratum, run
from specref.contracts.capabilities import Capabilities
from specref.examples.correct import verify as correct
from specref.examples.lossy import verify as lossy
from specref.report.kit import kit_record
from specref.report.machine import as_json

SOME = [
    "smoke",
    "boundary",
    "joint/deep",
    "acceptance",
    "independence/rows-deep",
    "iterations/deep",
]


class Sent(Executor):
    """Runs what can be pickled at once, and notes the checks and the campaigns that were sent."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.known: list[set[str]] = []

    def submit(self, function: Callable, /, *arguments: Any, **options: Any) -> Future:
        *_, id_, kept = arguments
        self.ids.append(id_)
        self.known.append(set(kept["memo"]))
        function, arguments = pickle.loads(pickle.dumps((function, arguments)))
        future: Future = Future()
        future.set_result(pickle.loads(pickle.dumps(function(*arguments, **options))))
        return future


class RefusedError(Exception):
    """Cannot be unpickled: it is made of two arguments, and keeps one."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(first + second)


def refusing(target_probs, draft_probs, draft_tokens, *, rng):
    if draft_tokens.shape[0] == 1:
        raise RefusedError(1, 2)
    return correct(target_probs, draft_probs, draft_tokens, rng=rng)


def record(report: Report) -> Any:
    return without_seconds(json.loads(as_json(kit_record(report))))


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize(
    "verify", [pytest.param(correct, marks=pytest.mark.deep), lossy, refusing]
)
def test_results_do_not_depend_on_where_checks_run(verify: Callable) -> None:
    options: dict[str, Any] = {"only": SOME, "one_hot": False}
    here, there = check(verify, **options), check(verify, **options, executor=Sent())
    assert record(here) == record(there)
    assert here.exit_code == (verify is not correct)
    assert (here.diagnosis is not None) == (verify is lossy)


@pytest.mark.deep
def test_in_processes_in_the_same_order() -> None:
    with ProcessPoolExecutor(2) as processes:
        seen: list[str] = []
        listening = {"on_result": lambda result: seen.append(result.id)}
        report = check(correct, only=SOME, executor=processes, **listening)
    assert record(report) == record(check(correct, only=SOME))
    assert seen == [result.id for result in report.results]


def test_a_comparison_that_ignores_seconds_notices_the_rest() -> None:
    one, other = (record(check(correct, only=["smoke"], seed=seed)) for seed in (0, 1))
    assert one != other


def test_a_stratum_does_not_depend_on_how_many_calls_there_were() -> None:
    """A worker has made fewer calls than a process that runs all checks."""
    late = Stratum("late", shapes([8], [1], [2]), after=40)
    verifier = Called(correct, Capabilities(), None)
    found = []
    for before in (0, 30, 40):
        rng = np.random.default_rng(1)
        found.append(run(late, late.shapes, verifier, 1e-9, before, 200, 1 << 20, rng))
    assert found[0] == found[1] == found[2]
    assert found[0].tokens >= 200


def test_what_is_blocked_is_not_sent() -> None:
    sent = Sent()
    report = check(refusing, only=SOME, executor=sent)
    assert report.failures[0].id == "smoke/batch-of-one"
    assert sent.ids
    assert {id_.split("/")[0] for id_ in sent.ids} == {"smoke"}
    unblocked = Sent()
    check(refusing, only=["smoke", "boundary/tiny"], blocking=False, executor=unblocked)
    assert "boundary/tiny" in unblocked.ids


def test_campaigns_are_drawn_once() -> None:
    sent = Sent()
    check(correct, only=["joint/deep", "independence/rows-deep"], executor=sent)
    assert sent.ids == ["joint/deep", "independence/rows-deep"]
    assert sent.known == [set(), {"blocks/deep"}]


def test_a_function_without_a_name_cannot_be_sent() -> None:
    def inner(target_probs, draft_probs, draft_tokens, *, rng):
        return correct(target_probs, draft_probs, draft_tokens, rng=rng)

    with pytest.raises(TypeError, match=r"implementation = .*inner.*import by its name"):
        check(inner, only=["smoke"], executor=Sent())


def test_a_module_that_workers_lack_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("samplers_of_the_main_process")
    exec("def verify(target_probs, draft_probs, draft_tokens, *, rng): ...", module.__dict__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    payload = pickle.dumps(module.verify)
    monkeypatch.delitem(sys.modules, module.__name__)
    with pytest.raises(ImportError, match=r"samplers_of_the_main_process.*PYTHONPATH"):
        loaded(payload)
