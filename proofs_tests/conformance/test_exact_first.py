"""Exact laws come before samples, in a copy of the process, and name the bug."""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import specref
from specref.conformance.checks import CHECKS
from specref.conformance.exact_first import in_a_copy, in_order
from specref.conformance.options import LONGER, CheckOptions
from specref.conformance.status import FIRST, Stage, Status, drafts_of, settled_by
from specref.conformance.suite import prepare
from specref.examples import correct, lossy
from specref.report.kit import kit_junit

FEW = ["smoke/answers", "joint/probed", "joint/wide"]


@pytest.fixture(scope="module")
def report() -> Any:
    return specref.check(lossy.verify, name="mine.py:verify")


def test_what_an_exact_law_settles_is_not_sampled(report: Any) -> None:
    failed = [one.id for one in report.failures]
    assert failed == [*FIRST[::-1]]
    for one in report.results:
        if one.stage in (Stage.JOINT, Stage.STRATA, Stage.INDEPENDENCE) and one.id not in FIRST:
            assert one.status in (Status.NOT_RUN, Status.NOT_APPLICABLE)


def at_most_four(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
    """Takes the fifth draft token as refused, whatever it is."""
    if draft_tokens.shape[1] > 4:
        rows = np.arange(len(draft_tokens))
        target_probs = target_probs.copy()
        target_probs[rows, 4, draft_tokens[:, 4]] = 0
        target_probs[:, 4] /= np.maximum(target_probs[:, 4].sum(axis=1, keepdims=True), 1e-300)
    return correct.verify(target_probs, draft_probs, draft_tokens, rng=rng)


def test_a_wrong_law_of_five_drafts_settles_what_would_be_sampled() -> None:
    options = CheckOptions(claims={"one_hot": False})
    for given in (options, replace(options, time_limit=20.0)):
        order = [one.id for one in in_order(*prepare(correct.verify, given)[::-1])[0]]
        laws = [one for one in order if drafts_of(one)]
        assert len(laws) > len(FIRST)
        assert max(map(order.index, laws)) < order.index("joint/wide")
    judge, _ = prepare(at_most_four, options)
    (five,) = (one for one in CHECKS if one.id == "joint/probed-5-drafts")
    wrong = five.run(judge)
    assert wrong.status == Status.FAILED
    assert settled_by("joint/wide", [wrong]) == five.id
    assert settled_by("joint/probed-6-drafts", [wrong]) is None


def test_the_bug_is_named_by_its_exact_law(report: Any) -> None:
    assert report.diagnosis.known
    assert "residual-is-p" in report.diagnosis.candidates[0].ids
    assert report.diagnosis.trials == 0


def test_a_report_leads_with_the_verdict_and_is_short(report: Any) -> None:
    lines = str(report).splitlines()
    assert lines[len(report.heading) + 1] == report.summary.headline
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 80
    assert len(repr(report)) <= 600
    assert report.summary.next[0].endswith("--only joint/probed")


def test_the_first_failure_may_be_the_last_check() -> None:
    stopped = specref.check(lossy.verify, one_hot=False, only=FEW, exitfirst=True)
    status = {one.id: one.status for one in stopped.results}
    assert status["joint/wide"] == Status.NOT_RUN
    assert stopped.exit_code == 1


def test_smoke_samples_nothing_and_says_so() -> None:
    quick = specref.check(correct.verify, profile="smoke")
    assert "boundary/rare-draft" not in {one.id for one in quick.results}
    assert quick.exit_code == 0
    assert not quick.has_power
    assert "exact distributions" in quick.power
    ids, said = {one.id for one in CHECKS}, " ".join(str(quick).split())
    assert not set(LONGER) - ids
    assert not set(LONGER) & {one.id for one in quick.results}
    assert all(one.removeprefix("joint/probed-") in said for one in LONGER)
    assert not any(one.evidence.get("trials") for one in quick.results)


def test_what_is_skipped_is_not_in_the_report() -> None:
    asked = specref.check(correct.verify, only=["smoke"], skip=["smoke/rows", "smoke/answers"])
    ids = {one.id for one in asked.results}
    assert not ids & {"smoke/rows-vary", "smoke/answers"}
    assert "smoke/one-hot" in ids
    with pytest.raises(ValueError, match="skip = 'jiont': no check has an id like that"):
        specref.check(correct.verify, skip=["jiont"])


class Ahead:
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
        return correct.verify(target_probs, draft_probs, draft_tokens, rng=kept)


def test_numbers_of_a_probe_do_not_come_back() -> None:
    """A sampler that keeps numbers cannot be probed, and is judged by samples alone."""
    ahead = Ahead()
    found = specref.check(ahead, only=FEW)
    assert {one.id: one.status for one in found.results} == {
        "smoke/answers": Status.PASSED,
        "joint/probed": Status.NOT_APPLICABLE,
        "joint/wide": Status.PASSED,
    }
    assert all(isinstance(number, float) for number in ahead.left)


def ends() -> None:
    os._exit(0)


def hangs() -> None:
    time.sleep(60)


@pytest.mark.parametrize("work", [ends, hangs])
def test_a_copy_that_gives_nothing_is_done_without(work: Callable[[], None]) -> None:
    assert in_a_copy(work, longest=0.2) is None


def test_pytest_and_junit_lead_with_the_line_too(report: Any) -> None:
    """A value of an assertion is shown with at most 240 characters."""
    assert len(repr(report)) <= 240
    assert "lossy.py:34: residual[0] gives token 1 with 0.3333" in repr(report)
    assert "residual-is-p" in repr(report)
    (suite,) = ElementTree.fromstring(kit_junit([report]))
    (verdict,) = suite.iter("property")
    assert "lossy.py:34: residual[0] gives token 1" in verdict.get("value", "")
    whole = [one for one in suite.iter("failure") if one.text]
    assert [one.text for one in whole] == ["\n".join(report.answer)]
