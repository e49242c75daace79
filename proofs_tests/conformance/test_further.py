"""After a conviction the kit asks on, for the explanation."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from proofs_tests.helpers.bugs.verifiers import BUGS, clean
from specref.conformance import further as module
from specref.conformance import suite
from specref.conformance.further import further
from specref.conformance.judge import Judge
from specref.conformance.options import CheckOptions
from specref.conformance.public import check
from specref.conformance.report import Interrupted
from specref.conformance.status import Finding, Status
from specref.conformance.suite import diagnosed
from specref.contracts.capabilities import capabilities_of
from specref.contracts.contract import Subject

ONLY = ["joint/wide", "joint/eos"]
LOSSY = BUGS["residual is p"]


def judge_of(verify: Any) -> Judge:
    subject = Subject(verify, capabilities_of(verify))
    return Judge(subject, CheckOptions(detect_tv=0.15), checks=20)


def facts(results: Any) -> list[tuple[Any, ...]]:
    """Everything but the time."""
    return [
        (r.id, r.status, r.message, {k: v for k, v in r.evidence.items() if k != "seconds"})
        for r in results
    ]


def test_the_bug_is_named_by_many_more_blocks_than_convicted_it() -> None:
    report = check(LOSSY(), only=ONLY, detect_tv=0.15)
    assert sum(r.evidence["trials"] for r in report.results) < 10_000
    assert report.diagnosis is not None
    assert 190_000 < report.diagnosis.trials <= 200_000
    assert report.diagnosis.known
    assert report.diagnosis.candidates[0].ids == ("best-of-two", "residual-is-p")


@pytest.mark.deep
def test_the_verdict_is_the_same_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = check(LOSSY(), only=ONLY, detect_tv=0.15)
    monkeypatch.setattr(suite, "further", lambda judge, names: {})
    alone = check(LOSSY(), only=ONLY, detect_tv=0.15)
    assert facts(drawn.results) == facts(alone.results)
    assert drawn.verdict == alone.verdict
    assert alone.diagnosis is not None
    assert not alone.diagnosis.known  # too few blocks to say so
    assert "too few to say that it fits" in str(alone.diagnosis)


def test_blocks_are_drawn_once_and_the_same_again() -> None:
    one, two = judge_of(LOSSY()), judge_of(LOSSY())
    for judge in (one, two):
        judge.blocks("wide")
    first = further(one, ["wide"])
    assert further(one, ["wide"])["wide"] is first["wide"]
    assert first == further(two, ["wide"])
    assert one.memo["blocks/wide"].blocks != first["wide"]


def test_a_slow_sampler_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.3)
    judge = judge_of(LOSSY())
    judge.blocks("wide")
    lossy, asked = judge.implementation, [0]

    def slow(p: Any, q: Any, drafts: Any, *, rng: Any) -> Any:
        asked[0] += len(p)
        time.sleep(0.001 * len(p))
        return lossy(p, q, drafts, rng=rng)

    judge.subject = replace(judge.subject, function=slow)
    judge.memo["blocks/wide"] = replace(judge.memo["blocks/wide"], seconds=1.8)
    drawn = sum(sum(counts.values()) for counts in further(judge, ["wide"])["wide"].values())
    assert 0 < drawn < 600
    assert asked[0] < 600


def test_a_sampler_that_fails_later_is_diagnosed_by_what_it_gave() -> None:
    lossy, calls = LOSSY(), [0]

    def tired(p: Any, q: Any, drafts: Any, *, rng: Any) -> Any:
        calls[0] += 1
        if calls[0] > 10_000:
            raise RuntimeError("tired")
        return lossy(p, q, drafts, rng=rng)

    judge = judge_of(tired)
    results = [one.run(judge) for one in suite.chosen(["joint/wide"])]
    calls[0] = 10_000
    diagnosis = diagnosed(judge, results)
    assert diagnosis is not None
    assert diagnosis.trials == results[0].evidence["trials"]


def test_nothing_is_drawn_on_of_what_passed_was_interrupted_or_hangs() -> None:
    calls = [0]

    def counting(verify: Any) -> Any:
        def one(p: Any, q: Any, drafts: Any, *, rng: Any) -> Any:
            calls[0] += 1
            return verify(p, q, drafts, rng=rng)

        return one

    judge = judge_of(counting(clean))
    results = [one.run(judge) for one in suite.chosen(["joint/wide"])]
    before = calls[0]
    assert diagnosed(judge, results) is None
    assert calls[0] == before

    judge = judge_of(counting(LOSSY()))
    results = [one.run(judge) for one in suite.chosen(["joint/wide"])]
    hung = [replace(results[0], evidence={**results[0].evidence, "hung": True})]
    before = calls[0]
    for failures, draw_on in ((results, False), (hung, True)):
        diagnosis = diagnosed(judge, failures, draw_on=draw_on)
        assert diagnosis is not None
        assert calls[0] == before

    def interrupt(result: Any) -> None:
        before_last[0] = calls[0]
        raise KeyboardInterrupt

    before_last = [0]
    with pytest.raises(Interrupted) as caught:
        check(counting(LOSSY()), only=ONLY, detect_tv=0.15, on_result=interrupt)
    assert calls[0] == before_last[0]
    assert caught.value.report.diagnosis is not None
    assert np.isfinite(caught.value.report.diagnosis.trials)


# Strata that a failure blocks.

STRATA = ["joint/wide", "strata/one-draft", "strata/vocabulary-128k"]


def outcomes(verify: Any, only: list[str] = STRATA, **options: Any) -> dict[str, Any]:
    return {r.id: r for r in check(verify, only=only, detect_tv=0.15, **options).results}


@pytest.mark.strata
def test_a_failure_does_not_hide_in_which_situations_a_sampler_fails() -> None:
    """Wrong in many rows, as in stage joint, and in the last row of a few."""
    lossy = LOSSY()

    def verify(p: Any, q: Any, drafts: Any, *, rng: Any) -> Any:
        answers = [one(p, q, drafts, rng=rng) for one in (clean, lossy)]
        wrong = len(p) - 1 if len(p) < 600 else 0
        return tuple(np.concatenate([a[:wrong], b[wrong:]]) for a, b in zip(*answers, strict=True))

    only = ["joint/wide", "strata/batches-to-16", "strata/vocabulary-128k"]
    found = outcomes(verify, only)
    assert found["joint/wide"].status == Status.FAILED
    assert found["strata/batches-to-16"].status == Status.FAILED
    assert "in the last row" in found["strata/batches-to-16"].message
    assert found["strata/vocabulary-128k"].message == "blocked by joint/wide"  # not cheap
    # It has the share of alpha that it has anyway.
    alone = outcomes(verify, only[1:2])
    assert facts([found["strata/batches-to-16"]]) == facts(alone.values())


@pytest.mark.strata
def test_strata_of_dependent_blocks_of_no_answers_and_in_bad_form_stay_blocked() -> None:
    """Their bets take independence for granted."""
    found = outcomes(BUGS["rows share uniforms"]())
    assert found["joint/wide"].finding == Finding.DEPENDENCE
    assert found["strata/one-draft"].message == "blocked by joint/wide"
    asked = ["smoke/no-drafts", *STRATA]
    found = outcomes(BUGS["bonus of the longest row"](), asked)
    assert found["strata/one-draft"].message == "blocked by smoke/no-drafts"

    def hangs(p: Any, q: Any, drafts: Any, *, rng: Any) -> Any:
        time.sleep(1)

    found = outcomes(hangs, timeout=0.1)
    assert found["joint/wide"].finding == Finding.UNANSWERED
    assert found["strata/one-draft"].message == "blocked by joint/wide"


@pytest.mark.deep
@pytest.mark.strata
def test_what_strata_have_not_decided_in_time_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Right in small batches, so strata would go on to their end."""
    lossy, asked = LOSSY(), [0]

    def verify(p: Any, q: Any, drafts: Any, *, rng: Any) -> Any:
        if drafts.shape[1] == 1:  # not in joint/wide
            asked[0] += 1
            time.sleep(0.002)
        return (clean if len(p) < 600 else lossy)(p, q, drafts, rng=rng)

    monkeypatch.setattr(module, "EXPLAINING", 0.3)
    rows: list[int] = []
    found = outcomes(verify, ["joint/wide", "strata/one-draft", "strata/laws-flat"],
                     advance=rows.append)  # fmt: skip
    late = "blocked by joint/wide; other strata were tried for 0.3 s"
    assert found["strata/one-draft"].message == found["strata/laws-flat"].message == late
    assert 0 < asked[0] < 160
    assert sum(rows) > found["joint/wide"].evidence["trials"]
