"""Checks share the seconds of a run, run on worker processes, exact laws first."""

import json
import os
import pickle
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from proofs_tests.helpers.command import without_seconds
from specref.conformance import scheduling
from specref.conformance import trial as trials
from specref.conformance.checks import CHECKS, strata
from specref.conformance.checks.texts import estimated_seconds
from specref.conformance.options import LONGER, CheckOptions
from specref.conformance.public import check
from specref.conformance.report import Report
from specref.conformance.scheduling import Clock, Pace, in_a_copy, in_order, loaded
from specref.conformance.status import FIRST, Stage, Status, drafts_of, settled_by
from specref.conformance.strata import batches, stratum
from specref.conformance.strata.batches import Batches
from specref.conformance.strata.calling import Called
from specref.conformance.strata.campaign import Found
from specref.conformance.strata.shape import shapes
from specref.conformance.strata.stratum import Effort, Stratum, run
from specref.conformance.suite import prepare
from specref.contracts.capabilities import Capabilities
from specref.contracts.table import GENERATE, VERIFY
from specref.examples.correct import verify as correct
from specref.examples.lossy import verify as lossy
from specref.report.kit import kit_junit, kit_record
from specref.report.machine import as_json


class Hand:
    """A clock that goes on by `step` seconds whenever it is read."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def perf_counter(self) -> float:
        self.now += self.step
        return self.now


def generate(target, drafter, context, tokens, rng):
    text = list(context)
    for _ in range(tokens):
        p = np.asarray(target.next_token(tuple(text)), dtype=float)
        text.append(int(rng.choice(len(p), p=p / p.sum())))
        if target.vocabulary.ends(tuple(text)):
            break
    return text[len(context) :]


def test_seconds_are_shared_among_those_who_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling, "time", Hand(1.0))
    asked = [one for one in CHECKS if one.id in ("smoke/answers", "joint/wide", "joint/deep")]
    clock = Clock(11.0, asked, VERIFY)
    # smoke/answers draws nothing; joint/wide leaves 4.5 s of its 5.5 to joint/deep.
    assert [clock.share(number) for number in (1, 2)] == [5.5, 10.0]
    assert [clock.apart(number) for number in (1, 2)] == [5.5, 5.5]
    unspent = Clock(11.0, asked, VERIFY)
    assert unspent.share(0) is not None
    assert unspent.share(1) == 5.5
    assert Clock(None, asked, VERIFY).share(0) is None


def test_work_that_is_no_drawing_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that takes 100 s has drawn for its share alone; the next one has its own."""
    monkeypatch.setattr(scheduling, "time", Hand(100.0))
    asked = [one for one in CHECKS if one.id in ("joint/wide", "joint/deep")]
    clock = Clock(11.0, asked, VERIFY)
    assert [clock.share(number) for number in range(2)] == [5.5, 5.5]


def test_checks_whose_power_takes_more_have_more_seconds() -> None:
    asked = [one for one in CHECKS if one.id in ("strata/vocabulary-128k", "strata/one-draft")]
    large, small = sorted(
        (float(Clock(11.0, asked, VERIFY).apart(n) or 0) for n in range(2)), reverse=True
    )
    assert (large, small) == (9.625, 1.375)
    number = [one.id for one in asked].index("strata/vocabulary-128k")
    assert Clock(11.0, asked, VERIFY).apart(number) == large


def test_others_draw_if_nobody_else_does() -> None:
    asked = [one for one in CHECKS if one.id == "independence/rows-wide"]
    assert Clock(11.0, asked, VERIFY).apart(0) == 11.0


def test_a_campaign_ends_with_its_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """It draws more than the power needs if there is time, and says so."""
    monkeypatch.setattr(trials, "time", Hand(1.0))
    found = []
    for seconds in (8.0, 14.0):
        judge, _ = prepare(correct, CheckOptions(seconds=seconds))
        judge.seconds = seconds
        found.append(judge.blocks("deep").report)
    assert 8 <= found[0].trials < found[1].trials
    assert found[0].detectable > found[1].detectable
    judge, _ = prepare(correct, CheckOptions(detect_tv=0.3))
    assert found[1].trials > 2 * judge.blocks("deep").report.trials


def test_too_few_blocks_are_no_pass() -> None:
    report = check(correct, only=["joint/deep"], seconds=1e-6)
    (result,) = report.results
    assert result.status == Status.INCONCLUSIVE
    assert "8 trials are too few: nothing would be detected (" in result.message
    assert "(seen " not in result.message  # [0, 1] says nothing
    assert report.exit_code == 2


def test_a_bug_is_found_in_little_time() -> None:
    judge, _ = prepare(lossy, CheckOptions(seconds=60.0, claims={"one_hot": False}))
    judge.seconds = 60.0
    assert judge.blocks("wide").lossy


LATE = Stratum("late", shapes([8], [1], [2]), after=40)


def in_stratum(seconds: float, before: float | None = None) -> Found:
    verifier, rng = Called(correct, Capabilities(), None), np.random.default_rng(1)
    return run(Batches(LATE, verifier, rng, 0, before), Effort(1e-9, 1, 1, seconds=seconds))


@pytest.mark.deep
def test_a_stratum_ends_with_its_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The 40 calls before, of a second each, are not counted."""
    for module in (batches, stratum):
        monkeypatch.setattr(module, "time", Hand(1.0))
    few, more = in_stratum(2.5), in_stratum(8.5)
    assert 0 < few.tokens < more.tokens
    assert few.detectable > more.detectable
    assert few.before == more.before == 40


def test_fewer_calls_before_are_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def counted(p: Any, q: Any, drafts: Any, *, rng: Any) -> Any:
        made.append(len(drafts))
        return correct(p, q, drafts, rng=rng)

    judge, _ = prepare(counted, CheckOptions(detect_tv=0.2))
    late = replace(LATE, after=judge.calls_made + 400)
    found = strata.judged(late, judge)
    assert found.status == Status.PASSED
    assert judge.calls_made == len(made) > 400
    hurried, _ = prepare(correct, CheckOptions(seconds=0.002))
    found = strata.judged(replace(LATE, after=1_000_000), hurried)
    assert found.status == Status.INCONCLUSIVE
    assert found.evidence["tokens"] > 0
    assert "calls came before it in time, and 1,000,000 should" in found.message
    assert hurried.calls_made < 1_000_000


@pytest.mark.deep
@pytest.mark.parametrize("only", ["end-to-end/markov", "end-to-end/deep"])
def test_texts_end_with_their_seconds(only: str) -> None:
    (short,) = check(generate, contract="generate", only=[only], seconds=1e-6).results
    assert short.status == Status.INCONCLUSIVE
    (longer,) = check(generate, contract="generate", only=[only], seconds=2.0).results
    counted = "tokens" if only.endswith("markov") else "trials"
    assert longer.evidence[counted] > short.evidence[counted]


@pytest.mark.strata
def test_how_long_texts_take_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specref.conformance.checks.texts.time", Hand(0.2))
    options: dict[str, Any] = {"contract": GENERATE, "only": ["end-to-end/deep"]}
    judge, asked = prepare(generate, CheckOptions(**options, trials=300))
    assert estimated_seconds(judge, asked) == pytest.approx(300 * 0.2)
    judge, asked = prepare(generate, CheckOptions(**options))
    assert estimated_seconds(judge, asked) == pytest.approx(0.2 * judge.needed("deep"))
    judge, asked = prepare(generate, CheckOptions(**options, claims={"greedy": True}))
    assert estimated_seconds(judge, asked) == 0
    judge, asked = prepare(generate, CheckOptions(contract=GENERATE, only=["smoke"]))
    assert estimated_seconds(judge, asked) == 0
    only = ["strata/text-ending", "strata/text-laws-flat"]
    options = {"contract": GENERATE, "only": only, "detect_tv": 0.2}
    judge, asked = prepare(generate, CheckOptions(**options))
    tokens = sum(one.run(judge).evidence["tokens"] for one in asked)
    assert estimated_seconds(judge, asked) == pytest.approx(0.2 * tokens / 4, rel=0.1)


def test_measured_rates_tell_how_much_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Hand(0.0)
    monkeypatch.setattr(scheduling, "time", clock)
    run = Pace({"slow": 100, "fails": 800, "rest": 300})
    run.begin("another")
    clock.now = 1000.0
    run.end()
    assert run.left is None  # nothing is known of texts so far
    run.begin("slow")
    clock.now, _ = 1010.0, run.draw(50)
    assert run.left == pytest.approx(10 / 50 * 1150)
    clock.now = 1040.0
    run.end()
    assert run.left == pytest.approx(40 / 100 * 1100)
    run.begin("fails")
    clock.now = 1041.0
    run.end(whole=False)
    assert run.left == pytest.approx(40 / 100 * 300)
    run.begin("rest")
    clock.now = 1161.0
    run.end()
    assert run.left == 0


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


@pytest.mark.usefixtures("few_blocks")
@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize(
    "verify", [pytest.param(correct, marks=pytest.mark.deep), lossy, refusing]
)
def test_results_do_not_depend_on_where_checks_run(verify: Callable) -> None:
    options: dict[str, Any] = {"only": SOME, "one_hot": False, "detect_tv": 0.3}
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


def test_a_stratum_does_not_depend_on_how_many_calls_there_were() -> None:
    """A worker has made fewer calls than a process that runs all checks."""
    late = Stratum("late", shapes([8], [1], [2]), after=40)
    verifier = Called(correct, Capabilities(), None)
    found = []
    for before in (0, 30, 40):
        rng = np.random.default_rng(1)
        found.append(run(Batches(late, verifier, rng, before), Effort(1e-9, 200, 1 << 20)))
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


# Exact laws come before samples, in a copy of the process, and name the bug.

FEW = ["smoke/answers", "joint/probed", "joint/wide"]


@pytest.fixture(scope="module")
def quickly_told() -> Any:
    return check(lossy, name="mine.py:verify")


def test_what_an_exact_law_settles_is_not_sampled_and_the_bug_is_named_by_it(
    quickly_told: Any,
) -> None:
    failed = [one.id for one in quickly_told.failures]
    assert failed == [*FIRST[::-1]]
    for one in quickly_told.results:
        if one.stage in (Stage.JOINT, Stage.STRATA, Stage.INDEPENDENCE) and one.id not in FIRST:
            assert one.status in (Status.NOT_RUN, Status.NOT_APPLICABLE)
    assert quickly_told.diagnosis.known
    assert "residual-is-p" in quickly_told.diagnosis.candidates[0].ids
    assert quickly_told.diagnosis.trials == 0


def at_most_four(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
    """Takes the fifth draft token as refused, whatever it is."""
    if draft_tokens.shape[1] > 4:
        rows = np.arange(len(draft_tokens))
        target_probs = target_probs.copy()
        target_probs[rows, 4, draft_tokens[:, 4]] = 0
        target_probs[:, 4] /= np.maximum(target_probs[:, 4].sum(axis=1, keepdims=True), 1e-300)
    return correct(target_probs, draft_probs, draft_tokens, rng=rng)


def test_a_wrong_law_of_five_drafts_settles_what_would_be_sampled() -> None:
    options = CheckOptions(claims={"one_hot": False})
    for given in (options, replace(options, time_limit=20.0)):
        order = [one.id for one in in_order(*prepare(correct, given)[::-1])[0]]
        laws = [one for one in order if drafts_of(one)]
        assert len(laws) > len(FIRST)
        assert max(map(order.index, laws)) < order.index("joint/wide")
    judge, _ = prepare(at_most_four, options)
    (five,) = (one for one in CHECKS if one.id == "joint/probed-5-drafts")
    wrong = five.run(judge)
    assert wrong.status == Status.FAILED
    assert settled_by("joint/wide", [wrong]) == five.id
    assert settled_by("joint/probed-6-drafts", [wrong]) is None


def test_the_first_failure_may_be_the_last_check() -> None:
    stopped = check(lossy, one_hot=False, only=FEW, exitfirst=True)
    status = {one.id: one.status for one in stopped.results}
    assert status["joint/wide"] == Status.NOT_RUN
    assert stopped.exit_code == 1


def test_smoke_samples_nothing_and_says_so() -> None:
    quick = check(correct, profile="smoke")
    assert "boundary/rare-draft" not in {one.id for one in quick.results}
    assert quick.exit_code == 0
    assert not quick.has_power
    assert "exact distributions" in quick.power
    ids, said = {one.id for one in CHECKS}, " ".join(str(quick).split())
    assert not set(LONGER) - ids
    assert not set(LONGER) & {one.id for one in quick.results}
    assert all(one.removeprefix("joint/probed-") in said for one in LONGER)
    assert not any(one.evidence.get("trials") for one in quick.results)


class Keeping:
    """Lossless: it draws its uniforms a thousand at a time, and keeps what is left of them."""

    def __init__(self) -> None:
        self.left: list[Any] = []

    def __call__(
        self, target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any
    ) -> tuple[Any, Any]:
        def drawn(shape: tuple[int, ...]) -> Any:
            wanted = int(np.prod(shape))
            while len(self.left) < wanted:
                self.left += list(rng.random(1000))
            taken, self.left = self.left[:wanted], self.left[wanted:]
            return np.array(taken).reshape(shape)

        kept: Any = SimpleNamespace(random=drawn)
        return correct(target_probs, draft_probs, draft_tokens, rng=kept)


def test_numbers_of_a_probe_do_not_come_back() -> None:
    """A sampler that keeps numbers cannot be probed, and is judged by samples alone."""
    keeping = Keeping()
    found = check(keeping, only=FEW)
    assert {one.id: one.status for one in found.results} == {
        "smoke/answers": Status.PASSED,
        "joint/probed": Status.NOT_APPLICABLE,
        "joint/wide": Status.PASSED,
    }
    assert all(isinstance(number, float) for number in keeping.left)


def ends() -> None:
    os._exit(0)


def hangs() -> None:
    time.sleep(60)


@pytest.mark.parametrize("work", [ends, hangs])
def test_a_copy_that_gives_nothing_is_done_without(work: Callable[[], None]) -> None:
    assert in_a_copy(work, longest=0.2) is None


def test_pytest_and_junit_lead_with_the_line_too(quickly_told: Any) -> None:
    """A value of an assertion is shown with at most 240 characters."""
    assert len(repr(quickly_told)) <= 240
    assert "lossy.py:34: residual[0] gives token 1 with 0.3333" in repr(quickly_told)
    assert "residual-is-p" in repr(quickly_told)
    (suite,) = ElementTree.fromstring(kit_junit([quickly_told]))
    (verdict,) = suite.iter("property")
    assert "lossy.py:34: residual[0] gives token 1" in verdict.get("value", "")
    whole = [one for one in suite.iter("failure") if one.text]
    assert [one.text for one in whole] == ["\n".join(quickly_told.answer)]
