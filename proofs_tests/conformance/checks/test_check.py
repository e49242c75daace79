"""A sampler that raises in optional situations is judged in everything else."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from specref.conformance.status import Status
from specref.conformance.suite import check
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


def test_the_sampler_of_the_readme_is_lossy_without_any_claim() -> None:
    report = check(lossy.verify, only=SMOKE)
    assert report.lossy
    assert report.exit_code == 1
    assert report.verdict.startswith("LOSSY")
    assert report.verdict.endswith("not tried: without draft_probs (raises TypeError)")


@pytest.mark.parametrize(
    ("situation", "said"),
    [(no_laws, "without draft_probs"), (gaps, "with rows of fewer drafts")],
)
def test_what_it_raises_at_is_not_tried_and_the_rest_is(situation: Any, said: str) -> None:
    right = {one.id: one.status for one in check(correct.verify, trials=50).results}
    report = check(without(situation), trials=50)
    assert list(report.not_tried) == [f"{said} (raises TypeError)"]
    for one in report.results:
        assert one.status in (right[one.id], Status.NOT_RUN), one
        assert one.not_tried or one.status != Status.NOT_RUN
    assert sum(one.status == Status.NOT_RUN for one in report.results) < 10


def test_strict_makes_of_what_was_not_tried_an_open_verdict() -> None:
    report = check(without(no_laws), only=SMOKE)
    assert (report.exit_code, report.finding) == (0, None)
    strict = check(without(no_laws), only=SMOKE, strict=True)
    assert strict.exit_code == 2
    assert strict.verdict.startswith("INCONCLUSIVE")
    assert check(correct.verify, only=SMOKE, strict=True).exit_code == 0
    assert check(without(no_laws, lossy.verify), only=SMOKE, strict=True).exit_code == 1


def test_what_somebody_claims_is_not_optional() -> None:
    assert check(without(no_laws), only=SMOKE, one_hot=True).exit_code == 1
    assert check(capable(one_hot=True)(without(no_laws)), only=SMOKE).exit_code == 1
    assert check(capable(ragged=True)(without(no_laws)), only=SMOKE).exit_code == 0


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

    report = check(small, only=["smoke", "strata/vocabulary-32k", "strata/vocabulary-128k"])
    status = {one.id: one.status for one in report.results}
    assert report.exit_code == 0
    assert status["strata/vocabulary-32k"] == Status.PASSED
    assert status["strata/vocabulary-128k"] == Status.NOT_RUN
    assert "4 rows, 1 draft, 65,537 tokens (not enough memory)" in report.not_tried
    assert not any("32,768" in one for one in report.not_tried)
