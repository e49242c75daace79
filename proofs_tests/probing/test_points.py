"""Samplers that declare coins and draw elsewhere are told so, and judged by what they use."""

import random
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from specref.adapters import reference
from specref.conformance.public import check
from specref.conformance.status import Status
from specref.contracts.batch import draw_batch_coins
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import Capabilities, capable
from specref.contracts.fixtures import CHAIN_FIXTURES
from specref.contracts.verify import sample_batch
from specref.examples.correct import verify

pytestmark = pytest.mark.usefixtures("undiagnosed")

REPLAY = ["replay/coin-by-coin", "replay/edge-coins", "replay/permuted"]
ASKED = ["smoke/deterministic", *REPLAY, "joint/probed", "joint/wide"]
CLAIMS: dict[str, Any] = {"rule": "standard", "recovery": "inverse"}


def legacy(shape: Any) -> Any:
    return np.random.random_sample(shape)  # noqa: NPY002


def python(shape: Any) -> Any:
    return np.array([random.random() for _ in range(int(np.prod(shape)))]).reshape(shape)


def drawing(*draws: Callable[[Any], Any]) -> Any:
    """What a sampler draws with: coins for some of its calls, others for the rest."""
    left = iter(draws)
    return SimpleNamespace(random=lambda shape: next(left)(shape))


@capable(**CLAIMS)
def from_globals(p: Any, q: Any, x: Any, *, coins: Any) -> Any:
    return verify(p, q, x, rng=drawing(legacy, python))


@capable(**CLAIMS)
def from_rng(p: Any, q: Any, x: Any, *, coins: Any, rng: Any) -> Any:
    return verify(p, q, x, rng=rng)


@capable(**CLAIMS)
def partly(p: Any, q: Any, x: Any, *, coins: Any, rng: Any) -> Any:
    return verify(p, q, x, rng=drawing(lambda shape: coins.accept, rng.random))


@capable(**CLAIMS)
def lossy(p: Any, q: Any, x: Any, *, coins: Any, rng: Any) -> Any:
    return (
        verify(p, None, x, rng=rng) if q is None else verify(p, p[:, 1:] / 2 + q / 2, x, rng=rng)
    )


@capable(**CLAIMS)
def without_reading(p: Any, q: Any, x: Any, *, coins: Any, rng: Any) -> Any:
    def flipped(shape: Any) -> Any:
        number = rng.random(shape)
        return number if rng.normal() > 0 else 1 - number

    return verify(p, q, x, rng=drawing(lambda shape: coins.accept, flipped))


@capable(**CLAIMS)
def by_coins(p: Any, q: Any, x: Any, *, coins: Any, rng: Any) -> Any:
    rng.random(3)  # drawn, and of no use
    return verify(
        p, q, x, rng=drawing(lambda shape: coins.accept, lambda shape: coins.final[:, None])
    )


def asked(
    sampler: Callable[..., Any], only: Sequence[str] = ASKED
) -> tuple[dict[str, Status], dict[str, str]]:
    results = check(sampler, only=only).results
    return {r.id: r.status for r in results}, {r.id: r.message for r in results}


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize(
    ("sampler", "sentence"),
    [
        (from_globals, "but 48 changes of them left its block alone: it draws by"),
        (from_rng, "but 48 changes of them left its block alone: it draws by"),
        (partly, "but its block depends on what it draws by Generator.random"),
        (without_reading, "they do not decide its block alone: equal random numbers give"),
    ],
)
def test_who_draws_elsewhere_is_told_where_and_judged_by_that(
    sampler: Callable[..., Any], sentence: str
) -> None:
    status, message = asked(sampler)
    assert [status[id_] for id_ in REPLAY] == ["not_applicable", "not_applicable", "failed"]
    assert all("declares random numbers, " in message[id_] for id_ in REPLAY)
    assert all(sentence in message[id_] for id_ in REPLAY)
    if sampler is not without_reading:
        assert all(".py:" in message[id_] for id_ in REPLAY)
    assert status["smoke/deterministic"] == status["joint/wide"] == Status.PASSED
    if sampler is not without_reading:
        assert status["joint/probed"] == Status.PASSED


def test_who_draws_elsewhere_and_is_lossy_is_found_to_be() -> None:
    status, message = asked(lossy, ["joint/probed", "joint/wide"])
    assert status["joint/probed"] == status["joint/wide"] == Status.FAILED
    assert "exactly" in message["joint/probed"]


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("sampler", [by_coins, reference.verify])
def test_who_draws_what_is_of_no_use_is_told_nothing(sampler: Callable[..., Any]) -> None:
    status, _ = asked(sampler)
    assert set(status.values()) == {Status.PASSED}


def test_global_generators_are_seeded_beside_coins_without_moving_them() -> None:
    given = []

    def sampler(p: Any, q: Any, x: Any, *, coins: Any) -> Any:
        given.append(coins.accept[0, 0])
        given.append(random.random())
        return reference.verify(p, q, x, rng=np.random.default_rng(1), coins=coins)

    batch = sample_batch(CHAIN_FIXTURES["wide"], 4, np.random.default_rng(1))
    for verifier in (Verifier(sampler, Capabilities()),) * 2:
        rng = np.random.default_rng(2)
        for _ in range(2):
            verifier(batch, rng)
    assert given[:4] == given[4:]
    assert given[1] != given[3]
    rng = np.random.default_rng(2)
    expected = [draw_batch_coins(batch, rng).accept[0, 0] for _ in range(2)]
    assert given[0:4:2] == expected
