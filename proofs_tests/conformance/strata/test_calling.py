"""Each way of calling passes the same numbers, in the way that it says."""

import math
from typing import Any

import numpy as np
import pytest

from specref.conformance.strata.calling import WAYS, Called
from specref.contracts.batch import Batch
from specref.contracts.capabilities import Capabilities
from specref.contracts.errors import BrokenContractError

P = np.tile([[0.25, 0.25, 0.5], [0.5, 0.25, 0.25]], (2, 1, 1))
Q = np.tile([[0.5, 0.25, 0.25]], (2, 1, 1))
BATCH = Batch(P, Q, np.array([[0], [1]]), np.array([1, 1]), np.zeros(2, dtype=int))
OTHER = Batch(
    P[:, :, ::-1], Q.copy(), np.array([[1], [0]]), np.array([1, 1]), np.zeros(2, dtype=int)
)


SAME = [way for way in WAYS if way != "beside-greedy"]  # it asks for more rows
TENSORS = [way for way in SAME if way != "read-only"]


class Recorder:
    """A sampler that keeps what it is given, and accepts every draft."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.tokens = np.zeros((2, 2), dtype=np.int64)

    def __call__(self, p: Any, q: Any, drafts: Any, *, rng: Any, lens: Any = None) -> Any:
        self.calls.append((p, q, drafts, lens))
        self.tokens = np.stack([np.asarray(drafts)[:, 0], np.array([2, 2])], axis=1)
        return self.tokens, np.array([2, 2])


def torch_for(arrays: str) -> None:
    if arrays == "torch":
        pytest.importorskip("torch", reason="not_run (torch is not installed)")


def called(way: str, sampler: Any, **claims: Any) -> Called:
    return WAYS[way](sampler, Capabilities(**claims))


@pytest.mark.parametrize(
    ("way", "arrays"), [*((way, "numpy") for way in SAME), *((way, "torch") for way in TENSORS)]
)
def test_numbers_are_those_of_the_batch(way: str, arrays: str) -> None:
    torch_for(arrays)
    sampler = Recorder()
    verifier = called(way, sampler, arrays=arrays)
    for batch in (BATCH, OTHER, BATCH):
        answer = verifier(batch, np.random.default_rng(1))
        assert answer.tokens.tolist() == [[row[0], 2] for row in batch.draft_tokens.tolist()]
        p, q, drafts, lens = sampler.calls[-1]
        assert np.array_equal(np.asarray(p), batch.target_probs)
        assert np.array_equal(np.asarray(q), batch.draft_probs)
        assert np.array_equal(np.asarray(drafts), batch.draft_tokens)
        assert (lens is None) == (way == "bare")
        assert lens is None or np.asarray(lens).tolist() == [1, 1]
    verifier(BATCH.without_q(), np.random.default_rng(1))
    assert sampler.calls[-1][1] is None


def given(way: str, **claims: Any) -> tuple[Any, ...]:
    torch_for(claims.get("arrays", "numpy"))
    sampler = Recorder()
    called(way, sampler, **claims)(BATCH, np.random.default_rng(1))
    return sampler.calls[0]


def test_ids_have_32_bits_and_laws_keep_their_type() -> None:
    for arrays in ("numpy", "torch"):
        types = [
            str(array.dtype).removeprefix("torch.") for array in given("int32", arrays=arrays)
        ]
        assert types == ["float64", "float64", "int32", "int32"]
        plain = [
            str(array.dtype).removeprefix("torch.") for array in given("plain", arrays=arrays)
        ]
        assert plain == ["float64", "float64", "int64", "int64"]


def test_strided_arrays_are_not_contiguous() -> None:
    assert not any(array.flags.c_contiguous for array in given("strided"))
    assert not any(array.is_contiguous() for array in given("strided", arrays="torch"))
    assert all(array.flags.c_contiguous for array in given("plain"))


def test_read_only_arrays_cannot_be_written() -> None:
    assert not any(array.flags.writeable for array in given("read-only"))
    assert all(array.flags.writeable for array in given("plain"))


def test_arrays_are_filled_anew_and_answers_overwritten() -> None:
    sampler = Recorder()
    verifier = called("refilled", sampler)
    for batch in (BATCH, OTHER):
        verifier(batch, np.random.default_rng(1))
        assert sampler.tokens.tolist() == [[0, 0]] * 2
    first, second = sampler.calls
    assert all(one is other for one, other in zip(first, second, strict=True))
    assert len({id(array) for array in first}) == 4
    plain = Recorder()
    for batch in (BATCH, OTHER):
        called("plain", plain)(batch, np.random.default_rng(1))
    assert not any(one is other for one, other in zip(*plain.calls, strict=True))


def test_lists_and_read_only_answers_are_left_alone() -> None:
    kept = np.array([2, 2])
    kept.setflags(write=False)

    def listed(p: Any, q: Any, drafts: Any, *, rng: Any) -> Any:
        return [[int(draft), 2] for draft in drafts[:, 0]], kept

    assert called("refilled", listed)(BATCH, np.random.default_rng(1)).counts.tolist() == [2, 2]
    assert kept.tolist() == [2, 2]


@pytest.mark.parametrize(("later", "noticed"), [(1, True), (4, True), (5, False)])
def test_a_later_call_that_changes_an_earlier_answer_is_noticed(later: int, noticed: bool) -> None:
    """Of the last four calls: more are not kept."""
    answers: list[np.ndarray] = []

    def changing(p: Any, q: Any, drafts: Any, *, rng: Any) -> Any:
        answers.append(np.stack([np.asarray(drafts)[:, 0], np.array([2, 2])], axis=1))
        if len(answers) == later + 1:
            answers[0][:] = 1
        return answers[-1], np.array([2, 2])

    verifier = called("kept", changing)
    for _ in range(later):
        verifier(BATCH, np.random.default_rng(1))
    if noticed:
        with pytest.raises(BrokenContractError, match="a later call changed the answer of an ear"):
            verifier(BATCH, np.random.default_rng(1))
    else:
        verifier(BATCH, np.random.default_rng(1))


def no_options(p: Any, q: Any, drafts: Any, lens: Any, *, rng: Any) -> Any:
    """Without parameters that may be left out."""


def only_coins(p: Any, q: Any, drafts: Any, *, coins: Any = None) -> Any:
    """Without coins it draws from global generators."""


def test_a_way_is_refused_with_the_reason() -> None:
    assert {way: called(way, Recorder()).refusal() for way in WAYS} == dict.fromkeys(WAYS, "") | {
        "large-logits": "takes no logits",
        "one-temperature": "takes no temperature",
        "beside-greedy": "takes no temperature",
        "odd-temperatures": "takes no temperature",
        "kept-generators": "takes no torch.Generator",
        "seeds-in-a-row": "takes no seeds",
    }
    for dtype, why in (("float32", ""), ("bfloat16", "bfloat16 has no digits left for such log")):
        far = called("large-logits", Recorder(), inputs="logits", dtype=dtype, arrays="torch")
        assert far.refusal().startswith(why)
        assert bool(far.refusal()) == bool(why)
    assert called("bare", no_options).refusal() == (
        "neither coins nor lens is an optional parameter"
    )
    assert called("read-only", Recorder(), in_place=True).refusal() == (
        "may change what it is given"
    )
    assert called("read-only", Recorder(), arrays="torch").refusal() == (
        "tensors cannot be read-only"
    )


def test_a_sampler_without_its_coins_has_randomness_of_its_own() -> None:
    assert not called("plain", only_coins).own_randomness
    assert called("bare", only_coins).own_randomness
    assert not called("bare", Recorder()).own_randomness


def test_large_logits_are_of_the_same_laws() -> None:
    far = given("large-logits", inputs="logits")
    near = given("plain", inputs="logits")
    assert far[0].max() > math.log(float(np.finfo(np.float32).max))
    for one, other in zip(far[:2], near[:2], strict=True):
        assert np.abs(one).min() > 48 > 6 > np.abs(other).max()
        laws = [np.exp(x - x.max(axis=-1, keepdims=True)) for x in (one, other)]
        assert np.allclose(*(law / law.sum(axis=-1, keepdims=True) for law in laws), atol=1e-13)


def test_the_same_generator_comes_in_each_call_and_goes_on() -> None:
    torch = pytest.importorskip("torch", reason="not_run (torch is not installed)")
    seen = list[Any]()

    def sampler(p: Any, q: Any, drafts: Any, *, generator: Any) -> Any:
        seen.append((generator, float(torch.rand((), generator=generator))))
        return np.stack([drafts[:, 0], np.array([2, 2])], axis=1), np.array([2, 2])

    for way, same in (("kept-generators", True), ("plain", False)):
        verifier, rng = called(way, sampler), np.random.default_rng(1)
        for _ in range(2):
            verifier(BATCH, rng)
        (one, first), (other, second) = seen[-2:]
        assert (one is other) == same
        assert first != second
