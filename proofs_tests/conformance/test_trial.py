"""Dependence of rows is proved whatever their law, and named first; a wrong law is not it.

Planted bugs of both kinds are told apart. What is not: a law that changes from call to call, for
all rows of a call at once, is dependence of its rows.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from proofs_tests.helpers.bugs.outside import BUGS as WRONG_LAWS
from proofs_tests.helpers.bugs.verifiers import (
    BUGS,
    exponential,
    first_row,
    period,
    uniform,
    verifying,
)
from specref.arrays import Ints
from specref.conformance import trial as module
from specref.conformance.public import check
from specref.conformance.report import Report
from specref.conformance.status import Finding, Status
from specref.conformance.trial import (
    GROUP,
    dependence,
    log_mean_of_orders,
    wealth,
)
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import capabilities_of
from specref.contracts.fixtures import CHAIN_FIXTURES
from specref.contracts.verify import Blocks

THRESHOLD = math.log(1e12)
Coin = Callable[[np.random.Generator, tuple[int, ...]], Any]


def groups_of(size: int, coin: Coin) -> Coin:
    """So many rows after each other have the same numbers."""
    return lambda rng, shape: np.repeat(coin(rng, shape), size, axis=0)[: shape[0]]


SHARING: dict[str, dict[str, Coin]] = {
    "uniforms of row 0": {"uniforms": first_row(uniform)},
    "noise of row 0": {"noise": first_row(exponential)},
    "rows three apart": {"uniforms": period(3, uniform)},
    "rows 16 apart": {"uniforms": period(16, uniform), "noise": period(16, exponential)},
    "64 rows after each other": {"uniforms": groups_of(64, uniform)},
    "512 rows after each other": {
        "uniforms": groups_of(512, uniform),
        "noise": groups_of(512, exponential),
    },
}


STAGES = ("joint/", "independence/rows-")


def judged(verify: Any, *stages: str) -> Report:
    only = [*stages, *(f"{stage}{name}" for stage in STAGES for name in ("wide", "eos"))]
    return check(verify, only=only, detect_tv=0.15)


def evidence(
    verify: Any, seed: int = 0, name: str = "wide", threshold: float = THRESHOLD
) -> float:
    fixture, rng = CHAIN_FIXTURES[name], np.random.default_rng([7, seed])
    sampler = Blocks(Verifier(verify, capabilities_of(verify)), fixture)
    return dependence(sampler, len(fixture.target.vocabulary), rng, threshold)


def test_the_mean_over_orders_is_that_over_all_orders() -> None:
    scores = np.random.default_rng(1).normal(size=(3, 4, 4))
    for found, one in zip(log_mean_of_orders(scores), scores, strict=True):
        orders = itertools.permutations(range(4))
        sums = [math.exp(sum(one[i, j] for i, j in enumerate(order))) for order in orders]
        assert math.exp(found) == pytest.approx(np.mean(sums))
    assert log_mean_of_orders(np.zeros((GROUP, GROUP))) == pytest.approx(0, abs=1e-9)
    assert np.isfinite(log_mean_of_orders(np.full((GROUP, GROUP), -1e4)))


def test_the_mean_of_a_bet_over_all_orders_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly, whatever the two parts are: that is all that the evidence takes for granted."""
    monkeypatch.setattr(module, "GROUP", 4)
    for seed in range(5):
        x, y = np.random.default_rng(seed).normal(size=(2, 4, 3))
        orders = itertools.permutations(range(4))
        bets = np.exp([wealth(x, y[list(order)]) for order in orders])
        assert bets.mean(axis=0) == pytest.approx(1)
        assert bets.max() > 1.5


@pytest.mark.deep
@pytest.mark.parametrize("law", ["clean", *list(WRONG_LAWS)[::6]])
def test_independent_rows_of_any_law_are_not_called_dependent(law: str) -> None:
    """Six runs each at alpha 1/20; more than 3 alarms have probability below 1e-4."""
    verify = verifying() if law == "clean" else WRONG_LAWS[law].verify()
    alarms = sum(
        evidence(verify, seed, threshold=math.log(20)) > math.log(20) for seed in range(6)
    )
    assert alarms <= 3


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize("name", SHARING)
def test_rows_that_share_numbers_are_called_dependent_and_not_a_wrong_law(name: str) -> None:
    report = judged(verifying(**SHARING[name], seeded=False))
    failures = {failure.id: failure.message for failure in report.failures}
    named = [id_ for id_ in failures if id_.startswith("independence")]
    assert named
    assert report.finding == Finding.DEPENDENCE
    assert report.verdict.startswith("LOSSY: blocks are not independent")
    for id_, message in failures.items():
        assert message.startswith("rows of a call resemble each other"), (id_, message)
        assert "the distribution is not the target's" not in message
    if any(id_.startswith("joint") for id_ in failures):
        assert str(report.diagnosis).startswith("Blocks depend on each other")
        assert report.diagnosis is not None
        assert not report.diagnosis.candidates
    results = {result.id: result.status for result in report.results}
    for id_ in named:
        # Nothing is said of the law of dependent blocks, neither good nor bad.
        assert results.get(id_.replace("independence/rows-", "joint/")) != Status.PASSED
    assert report.lossy
    assert report.worst is None


@pytest.mark.usefixtures("few_blocks")
@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize(
    ("name", "diagnosed"),
    [
        ("lenient", False),
        ("q of the row before", False),
        ("batch of one", False),
        ("residual is p", True),
    ],
)
def test_a_wrong_law_is_not_called_dependence(
    name: str, diagnosed: bool, request: pytest.FixtureRequest
) -> None:
    if not diagnosed:
        request.getfixturevalue("undiagnosed")
    report = judged(BUGS[name](), "joint/batch-of-one")
    assert (report.diagnosis is not None) == diagnosed
    shown = str(report)
    assert bool(report.summary.cause) >= diagnosed
    joint = [failure for failure in report.failures if failure.stage == "joint"]
    assert joint
    said = ("the distribution is not the target's", "impossible: ")
    assert all(failure.message.startswith(said) for failure in joint)
    assert not any(failure.stage == "independence" for failure in report.failures)
    assert "depend on each other" not in shown


@pytest.mark.deep
def test_a_wrong_law_that_wins_bets_on_dependence_leaves_those_open() -> None:
    """Tokens repeat more often than p says wherever a law is far too sharp."""

    def always_0(p: Any, q: Any, drafts: Ints, *, rng: Any) -> tuple[Ints, Ints]:
        tokens = np.full((len(p), drafts.shape[1] + 1), -1)
        tokens[:, 0] = np.where(rng.random(len(p)) < 0.97, p[:, 0].argmax(axis=1), 0)
        tokens[:, 0] = np.where(p[np.arange(len(p)), 0, tokens[:, 0]] > 0, tokens[:, 0],
                                p[:, 0].argmax(axis=1))  # fmt: skip
        return tokens, np.ones(len(p), dtype=np.int64)

    results = {r.id: r for r in judged(always_0).results}
    assert results["joint/wide"].status == Status.FAILED
    assert "the distribution is not the target's" in results["joint/wide"].message
    open_ = results["independence/rows-wide"]
    assert open_.status == Status.NOT_RUN
    assert "blocked by joint/wide" in open_.message


@pytest.mark.deep
def test_both_at_once_is_dependence_first() -> None:
    both = verifying(residual=lambda p, q, x: p, uniforms=first_row(uniform), seeded=False)
    report = judged(both)
    assert {f.id for f in report.failures} >= {"joint/wide", "independence/rows-wide"}
    assert "cannot be told from dependent ones" in report.results[0].message


def test_a_law_that_changes_with_the_call_cannot_be_told_from_dependence() -> None:
    """All rows of a call are sharper, or none: they depend on each other through that."""

    def moody(p: Any, q: Any, drafts: Ints, *, rng: Any) -> tuple[Ints, Ints]:
        sharp = p**4 / (p**4).sum(axis=2, keepdims=True)
        return verifying()(sharp if rng.random() < 0.5 else p, q, drafts, rng=rng)

    assert evidence(moody) > THRESHOLD


def test_evidence_is_asked_for_only_after_a_conviction() -> None:
    calls: list[int] = []

    def clean(p: Any, q: Any, drafts: Ints, *, rng: Any) -> tuple[Ints, Ints]:
        calls.append(len(p))
        return verifying()(p, q, drafts, rng=rng)

    report = check(clean, only=["joint/wide"], detect_tv=0.3)
    assert report.exit_code == 0
    assert not any(size in (121, 122) for size in calls)
