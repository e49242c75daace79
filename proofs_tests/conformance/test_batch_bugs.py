"""Bugs of batches are named by samplers written on their own; others are not taken for them.

Statistical: the chi-square tests exclude the true bug with probability 1e-6 on each of three
fixtures. Seeds are fixed.
"""

from functools import partial
from typing import Any

import numpy as np
import pytest

from proofs_tests.helpers.bugs.verifiers import last_row, verifying
from specref import check
from specref.conformance.batch_bugs import bugs_of_batches
from specref.examples.correct import verify as correct


def bonus_of_row(distance: int) -> Any:
    """The bonus token of a row is drawn from the law of one so far before it."""
    other = partial(np.roll, shift=distance, axis=0)
    return verifying(bonus=lambda p, lens: other(last_row(p, lens)), rule=None)


def hot_drafts(
    *, draft_token_ids, num_draft_tokens, target_logits, draft_logits, bonus_token_ids,
    temperature, max_spec_len, rng,
):  # fmt: skip
    """Verification request after request; the drafter's logits are not divided."""
    out = np.full((len(num_draft_tokens), max_spec_len + 1), -1)
    end = 0
    for row, n in enumerate(num_draft_tokens):
        start, end = end, end + n
        for i, at in enumerate(range(start, end)):
            x = draft_token_ids[at]
            p = np.exp(target_logits[at] / temperature[row])
            q = np.arange(len(p)) == x if draft_logits is None else np.exp(draft_logits[at])
            p, q = p / p.sum(), q / q.sum()
            if rng.random() * q[x] >= p[x]:
                p = np.maximum(p - q, 0) if (p > q).any() else p
                out[row, i] = rng.choice(len(p), p=p / p.sum())
                break
            out[row, i] = x
        else:
            out[row, n] = bonus_token_ids[row]
    return out


def diagnosis(sampler, **options):
    """With tiny budgets of trials: blocks are drawn for the diagnosis in any case."""
    return check(sampler, only=["joint/wide"], **options).diagnosis


@pytest.mark.deep
def test_a_bonus_row_of_the_request_before_is_named() -> None:
    found = diagnosis(bonus_of_row(1))
    assert found.known
    assert found.candidates[0].ids == ("bonus-of-row-before",)
    assert found.candidates[0].log10_over_clean > 6


@pytest.mark.deep
def test_a_bonus_row_of_the_request_after_is_taken_for_no_other() -> None:
    assert not diagnosis(bonus_of_row(-1)).known


@pytest.mark.deep
def test_a_temperature_that_only_p_has_is_named() -> None:
    report = check(hot_drafts, contract="ragged", only=["joint/deep"], detect_tv=0.02)
    assert report.diagnosis is not None
    assert report.diagnosis.known
    assert report.diagnosis.candidates[0].ids == ("temperature-missing-in-q",)


def test_what_passes_is_not_diagnosed() -> None:
    assert diagnosis(correct, detect_tv=0.2) is None


@pytest.mark.parametrize(("contract", "hot"), [("verify", False), ("ragged", True)])
def test_bugs_with_temperatures_are_compared_where_there_are_any(contract: str, hot: bool) -> None:
    ids = {bug.id for bug in bugs_of_batches(contract, hot=hot)}
    assert {"bonus-of-row-before", "min-commit"} <= ids
    assert ("temperature-missing-in-q" in ids) == hot
