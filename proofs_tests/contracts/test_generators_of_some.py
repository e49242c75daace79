"""Samplers whose `generators` are a dict: rows without one draw from the global generators."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

import torch

from specref import check
from specref.conformance.checks import independence

pytestmark = pytest.mark.usefixtures("undiagnosed")

IDENTICAL = "independence/identical-rows"
LAW = ("smoke/answers", "smoke/deterministic", "joint/probed", IDENTICAL)


def sampler(bug: str = "") -> Callable[..., Any]:
    """The standard rule, by the noise of a batch; rows with a generator have their own."""

    def verify(
        target_probs, draft_probs, draft_tokens, *, generators: "dict[int, torch.Generator]"
    ):
        rows, k = draft_tokens.shape
        noise = torch.rand(rows, k + 1, dtype=torch.float64)
        for row, own in generators.items():
            noise[row] = torch.rand(k + 1, generator=own, dtype=torch.float64)
        for row in set(range(rows)) - set(generators):
            if bug == "noise of row 0":
                noise[row] = noise[0]
            elif bug == "a generator of the default seed":
                noise[row] = torch.rand(k + 1, generator=torch.Generator(), dtype=torch.float64)
            elif bug == "every row has one":
                noise[row] = torch.rand(k + 1, generator=generators[row], dtype=torch.float64)
        laws = (None,) * rows if draft_probs is None else draft_probs
        every = zip(target_probs, laws, draft_tokens, noise.numpy(), strict=True)
        blocks = [block(*one) for one in every]
        tokens = [one + [-1] * (k + 1 - len(one)) for one in blocks]
        return np.array(tokens), np.array(list(map(len, blocks)))

    return verify


def block(p, q, drafts, coins) -> list[int]:
    kept: list[int] = []
    for n, x in enumerate(drafts[drafts >= 0].tolist()):
        law = np.eye(p.shape[1])[x] if q is None else q[n]
        if coins[n] * law[x] < p[n, x]:
            kept.append(x)
            continue
        left = np.maximum(p[n] - law, 0)
        return [*kept, drawn(left if left.any() else p[n], coins[-1])]
    return [*kept, drawn(p[len(kept)], coins[-1])]


def drawn(weights, uniform: float) -> int:
    ends = weights.cumsum()
    return int(np.searchsorted(ends, uniform * ends[-1], side="right"))


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(independence, "SIZES", [(64, 100, independence.SIZE)])


@pytest.mark.deep
def test_a_sampler_that_draws_globally_for_the_others_passes() -> None:
    report = check(sampler(), contract="verify", only=LAW)
    assert report.counts["passed"] == len(LAW), report


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize(
    ("bug", "found"),
    [
        ("noise of row 0", IDENTICAL),
        ("a generator of the default seed", IDENTICAL),
        ("every row has one", "smoke/answers"),
    ],
)
def test_what_is_done_wrong_without_a_generator_is_found(bug: str, found: str) -> None:
    report = check(sampler(bug), contract="verify", only=[found])
    assert found in [one.id for one in report.failures], report


def test_a_list_is_of_all_rows() -> None:
    given: list[Any] = []

    def verify(target_probs, draft_probs, draft_tokens, *, generators):
        given.append((len(draft_tokens), generators))
        return sampler()(
            target_probs, draft_probs, draft_tokens, generators=dict(enumerate(generators))
        )

    assert not check(verify, contract="verify", only=["smoke/answers"]).failures
    assert all(len(generators) == rows for rows, generators in given)
