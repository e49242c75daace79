"""A sampler that raises in optional situations is judged in everything else."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from specref.conformance.checks import independence
from specref.conformance.public import check
from specref.conformance.status import Finding, Status
from specref.contracts.capabilities import capable
from specref.examples import correct, lossy

Sampler = Callable[..., Any]
SMOKE = ["smoke", "joint/wide", "joint/one-hot"]


def without(situation: Callable[[Any, Any, Any], bool], then: Sampler = correct.verify) -> Sampler:
    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        if situation(target_probs, draft_probs, draft_tokens):
            raise TypeError("not that")
        return then(target_probs, draft_probs, draft_tokens, rng=rng)

    return verify


def no_laws(p: Any, q: Any, drafts: Any) -> bool:
    return q is None


def gaps(p: Any, q: Any, drafts: Any) -> bool:
    return bool((drafts < 0).any())


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize(
    ("situation", "said"),
    [(no_laws, "without draft_probs"), (gaps, "with rows of fewer drafts")],
)
def test_what_it_raises_at_is_not_tried_and_the_rest_is(situation: Any, said: str) -> None:
    asked: dict[str, Any] = {
        "only": ["smoke", "replay", "boundary", "joint/wide", "joint/one-hot"],
        "skip": ["boundary/rare-draft"],  # it takes a second, in plain calls
        "trials": 50,
    }
    right = {one.id: one.status for one in check(correct.verify, **asked).results}
    report = check(without(situation), **asked)
    assert list(report.not_tried) == [f"{said} (raises TypeError)"]
    for one in report.results:
        assert one.status in (right[one.id], Status.NOT_RUN), one
        assert one.not_tried or one.status != Status.NOT_RUN
    assert sum(one.status == Status.NOT_RUN for one in report.results) < 10


@pytest.mark.usefixtures("undiagnosed")
def test_strict_makes_of_what_was_not_tried_an_open_verdict() -> None:
    few: dict[str, Any] = {"only": SMOKE[1:], "detect_tv": 0.3}
    report = check(without(no_laws), **few)
    assert (report.exit_code, report.finding) == (0, None)
    strict = check(without(no_laws), **few, strict=True)
    assert strict.exit_code == 2
    assert strict.verdict.startswith("INCONCLUSIVE")
    assert check(correct.verify, **few, strict=True).exit_code == 0
    lossy_too = check(without(no_laws, lossy.verify), **few, strict=True)
    assert lossy_too.exit_code == 1
    assert lossy_too.verdict.startswith("LOSSY")
    assert lossy_too.verdict.endswith("not tried: without draft_probs (raises TypeError)")


def test_what_somebody_claims_is_not_optional() -> None:
    assert check(without(no_laws), only=["smoke"], one_hot=True).exit_code == 1
    assert check(capable(one_hot=True)(without(no_laws)), only=["smoke"]).exit_code == 1
    assert check(capable(ragged=True)(without(no_laws)), only=["smoke"]).exit_code == 0


def test_a_crash_in_plain_calls_is_a_broken_contract() -> None:
    report = check(without(lambda p, q, drafts: len(drafts) > 3), only=["smoke"])
    assert report.exit_code == 1
    assert not report.not_tried


@pytest.mark.strata
def test_nothing_tried_is_no_pass() -> None:
    def ids(p: Any, q: Any, drafts: Any) -> bool:
        return bool(drafts.dtype == np.int32)

    report = check(without(ids), only=["strata/int32-ids"])
    assert report.exit_code == 2
    assert list(report.not_tried) == ["with int32 ids (raises TypeError)"]


@pytest.mark.strata
def test_a_wrong_answer_in_an_optional_situation_is_a_failure() -> None:
    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        tokens, counts = correct.verify(target_probs, draft_probs, draft_tokens, rng=rng)
        return tokens, counts + 9 * (draft_tokens.dtype == np.int32)

    assert check(verify, only=["smoke", "strata/int32-ids"]).exit_code == 1


@pytest.mark.strata
def test_sizes_for_which_there_is_no_memory_are_left_out_and_smaller_ones_judged() -> None:
    def small(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        if target_probs.shape[2] > 40_000:
            raise MemoryError
        return correct.verify(target_probs, draft_probs, draft_tokens, rng=rng)

    report = check(small, only=["strata/vocabulary-32k", "strata/vocabulary-128k"], trials=500)
    status = {one.id: one.status for one in report.results}
    assert report.exit_code == 0
    assert status["strata/vocabulary-32k"] == Status.PASSED
    assert status["strata/vocabulary-128k"] == Status.NOT_RUN
    assert "4 rows, 1 draft, 65,537 tokens (not enough memory)" in report.not_tried
    assert not any("32,768" in one for one in report.not_tried)


def slow_above(size: int, seconds: float) -> Sampler:
    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        time.sleep(seconds * (target_probs.shape[2] > size))
        return correct.verify(target_probs, draft_probs, draft_tokens, rng=rng)

    return verify


def test_many_calls_that_take_too_long_are_left_out_and_the_rest_is_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(independence, "patience", lambda timeout: 1.5)
    only = ["independence/identical-rows"]
    report = check(slow_above(30_000, 0.05), only=only)
    (result,) = report.results
    assert result.status == Status.PASSED
    assert "8,192 identical rows" in result.message
    assert result.not_tried == ("400 calls of 2 rows, 1 draft, 32,768 tokens (more than 1.5 s)",)
    assert report.exit_code == 0


@pytest.mark.deep
@pytest.mark.strata
def test_a_large_call_that_does_not_return_is_left_out_and_larger_ones_are_not_asked() -> None:
    only = ["strata/vocabulary-32k", "strata/vocabulary-128k", "strata/one-draft"]
    report = check(slow_above(60_000, 5), only=only, timeout=1.5)
    status = {one.id: one.status for one in report.results}
    assert report.exit_code == 0, report
    assert status["strata/vocabulary-32k"] == status["strata/one-draft"] == Status.PASSED
    assert "4 rows, 1 draft, 65,537 tokens (more than 1.5 s)" in report.not_tried
    assert report.seconds < 60


def test_a_call_of_a_usual_size_that_does_not_return_leaves_the_verdict_open() -> None:
    report = check(slow_above(3, 5), only=["smoke/answers", "joint/wide"], timeout=0.5)
    assert report.exit_code == 2
    assert report.finding == Finding.UNANSWERED
    assert not report.not_tried


def test_searches_without_end_are_not_tried() -> None:
    def drawn_again(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        """Draws until a token is kept, which takes long where next to nothing is."""
        p, q, x = target_probs[0, 0], draft_probs[0, 0], draft_tokens[0, 0]
        if rng.random() * q[x] < p[x]:
            return np.array([[x, rng.choice(len(p), p=target_probs[0, 1])]]), np.array([2])
        for _ in range(50):
            y = rng.choice(len(p), p=p / p.sum())
            if rng.random() * p[y] >= q[y]:
                break
        return np.array([[y, -1]]), np.array([1])

    # Neither is the second, after the first: it would take as long.
    report = check(
        drawn_again, only=["boundary/zero-coin", "boundary/empty-residual"], timeout=0.2
    )
    assert [one.status for one in report.results] == [Status.NOT_RUN] * 2
    assert list(report.not_tried) == ["ends of uniforms (more than 0.2 s)"]
