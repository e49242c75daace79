"""Calling and sampling: timeout, chunks, batches with traps, texts, and what they are worth."""

import threading
import time
from collections import Counter
from dataclasses import astuple
from functools import partial
from typing import Any

import numpy as np
import pytest

from proofs_tests.helpers.bugs.verifiers import clean, from_coins, watched
from specref.algorithms import standard
from specref.arrays import NO_TOKEN
from specref.conformance.public import check
from specref.conformance.status import Finding
from specref.contracts.batch import Batch, draw_batch_coins, joined
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import Capabilities
from specref.contracts.errors import BrokenContractError
from specref.contracts.fixtures import CHAIN_FIXTURES, Fixture, rows
from specref.contracts.sampling import Steps, batch_sizes, call_of_models, read_tokens
from specref.contracts.timeout import Deadline, HungError, user_code, within
from specref.contracts.verify import Alone, Blocks, IdlePairs, Iterations, draw_batch, sample_batch
from specref.models import as_float

# A clean sampler fails a law test of this file with this probability, each.
ALPHA = 1e-9


@pytest.mark.parametrize("error", [KeyError("x"), SystemExit(2), KeyboardInterrupt()])
def test_whatever_work_raises_is_named(error: BaseException) -> None:
    def work() -> None:
        raise error

    with pytest.raises(BrokenContractError, match=f"raised {type(error).__name__}"):
        within(5, work)


def test_a_broken_contract_stays_what_it_is() -> None:
    broken = BrokenContractError("tokens[3] is wrong", row=3)

    def work() -> None:
        raise broken

    with pytest.raises(BrokenContractError) as caught:
        within(5, work)
    assert caught.value is broken
    assert caught.value.evidence == {"row": 3}


def test_work_that_does_not_end_is_left_behind_and_ends_at_its_next_restart() -> None:
    deadline, release, ended = Deadline(), threading.Event(), threading.Event()

    def work() -> None:
        release.wait(30)
        try:
            deadline.restart()
        finally:
            ended.set()
        pytest.fail("went on")

    with pytest.raises(HungError, match=r"did not return within 0\.05 s"):
        within(0.05, work, deadline)
    release.set()
    assert ended.wait(30)
    assert deadline.abandoned


def test_nothing_is_held_any_more_once_work_is_abandoned() -> None:
    deadline, released = Deadline(), list[str]()
    with deadline.releasing(lambda: released.append("first")):
        deadline.abandon()
        assert released == ["first"]
        with pytest.raises(SystemExit), deadline.releasing(lambda: released.append("second")):
            pytest.fail("went on")
    assert released == ["first", "second", "first"]


def test_an_interrupt_of_user_code_is_no_broken_contract() -> None:
    with pytest.raises(KeyboardInterrupt), user_code(str):
        raise KeyboardInterrupt


def test_the_time_counts_from_the_last_restart() -> None:
    deadline = Deadline()

    def work() -> str:
        for _ in range(4):
            time.sleep(0.3)
            deadline.restart()
        return "done"

    assert within(1.0, work, deadline) == "done"


@pytest.mark.parametrize("most", [1, 7, 24, 100])
def test_chunks_are_put_together_in_order(most: int) -> None:
    # With coins, a row's block does not depend on its chunk.
    sizes: list[int] = []

    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, coins: Any) -> Any:
        sizes.append(len(draft_tokens))
        return clean(target_probs, draft_probs, draft_tokens, rng=from_coins(coins))

    batch = sample_batch(CHAIN_FIXTURES["wide"], 24, np.random.default_rng(1))
    coins, rng = draw_batch_coins(batch, np.random.default_rng(2)), np.random.default_rng(3)
    whole, parts = (
        Verifier(verify, Capabilities(batch=size))(batch, rng, coins) for size in (None, most)
    )
    assert (whole.tokens == parts.tokens).all()
    assert (whole.counts == parts.counts).all()
    assert max(sizes[1:]) == min(most, 24)


@pytest.mark.parametrize("name", CHAIN_FIXTURES)
def test_batches_hold_the_rows_of_their_models(name: str) -> None:
    fixture = CHAIN_FIXTURES[name]
    batch = sample_batch(fixture, 400, np.random.default_rng(1))
    target, drafter = as_float(fixture.target), as_float(fixture.drafter)
    trap = np.eye(len(fixture.target.vocabulary))[-1]
    for row in range(len(batch)):
        place, drafts = fixture.places[batch.place[row]], batch.draft_tokens[row]
        number = batch.lens[row]
        assert (drafts[number:] == NO_TOKEN).all()
        for i in range(fixture.lookahead + 1):
            seen = (*place.context, *drafts[:i].tolist())
            p = target.next_token(seen) if i <= number else trap
            assert (batch.target_probs[row, i] == p).all()
            if i < fixture.lookahead:
                q = drafter.next_token(seen) if i < number else trap
                assert (batch.draft_probs[row, i] == q).all()


def test_drafting_ends_with_eos_in_ragged_batches_alone() -> None:
    fixture = CHAIN_FIXTURES["eos"]
    ragged, even = (
        sample_batch(each, 2_000, np.random.default_rng(1)) for each in (fixture, fixture.even())
    )
    ended = ragged.draft_tokens[:, 0] == fixture.eos
    assert ended.any()
    assert (ragged.lens[ended] == 1).all()
    assert (ragged.lens == 0).any()
    assert (even.lens == fixture.lookahead).all()
    assert (even.draft_tokens[:, 0] == fixture.eos).any()


def test_a_row_alone_in_its_batch_is_ragged_all_the_same() -> None:
    fixture = CHAIN_FIXTURES["eos"]
    tables, rng = rows(fixture, 0), np.random.default_rng(1)
    for _ in range(200):
        batch = draw_batch(fixture, tables, tables.root[:1], np.zeros(1, dtype=int), rng)
        if batch.draft_tokens[0, 0] == fixture.eos:
            assert batch.lens[0] == 1
            return
    pytest.fail("EOS was never drafted")


def test_tables_know_every_prefix_and_cannot_be_changed() -> None:
    fixture = CHAIN_FIXTURES["eos"]
    tables = rows(fixture, 1)
    target, drafter = as_float(fixture.target), as_float(fixture.drafter)
    for index, (context, lookahead) in enumerate(map(astuple, fixture.places)):
        node = tables.root[index]
        for token in range(1 + lookahead):
            assert (tables.p[node] == target.next_token(context)).all()
            assert (tables.q[node] == drafter.next_token(context)).all()
            node, context = tables.child[node, token], (*context, token)
        assert (tables.p[node] == target.next_token(context)).all()
        assert np.isnan(tables.q[node]).all()
        assert (tables.child[node] == -1).all()
    with pytest.raises(ValueError, match="read-only"):
        tables.p[node] = 0


@pytest.mark.parametrize("tokens", [1, 3])
@pytest.mark.parametrize("fixture", CHAIN_FIXTURES.values(), ids=CHAIN_FIXTURES)
def test_texts_of_all_places_are_drafted_from_laws_that_are_known(
    fixture: Fixture, tokens: int
) -> None:
    def known(target_probs: Any, draft_probs: Any, draft_tokens: Any) -> None:
        assert np.isfinite(draft_probs).all()
        assert np.isfinite(target_probs).all()

    sampler = Iterations(Verifier(watched(known), Capabilities()), fixture, tokens)
    place = sampler(2_000, np.random.default_rng(1))[0]
    assert set(place.tolist()) == set(range(len(fixture.places)))


@pytest.mark.parametrize("largest", [None, 1, 10, 5_000])
@pytest.mark.parametrize("trials", [1, 31, 32, 1_000, 20_000])
def test_batch_sizes_add_up_and_respect_the_largest(trials: int, largest: int | None) -> None:
    sizes = batch_sizes(trials, largest)
    assert sum(sizes) == trials
    assert min(sizes) >= 1
    assert largest is None or max(sizes) <= max(largest, 13)
    assert trials < 1_000 or set(sizes) >= {1, 2, 3, 5}


@pytest.mark.parametrize("kind", [Blocks, Alone, IdlePairs])
def test_places_get_their_shares(kind: type[Blocks]) -> None:
    fixture = CHAIN_FIXTURES["wide"]
    place, blocks, first = kind(Verifier(clean, Capabilities()), fixture)(
        240, np.random.default_rng(1)
    )
    shares = Counter(fixture.places[index].lookahead > 0 for index in place.tolist())
    each = Counter(place.tolist())
    expected = {Blocks: (180, 60), Alone: (180, 60), IdlePairs: (120, 120)}[kind]
    assert (shares[True], shares[False]) == expected
    assert each[0] == each[1] == each[2]
    assert kind.cost * each[0] == 60
    assert len(blocks) == len(first) == 240


def test_rows_in_pairs_with_idle_ones_come_first_and_last() -> None:
    seen: list[list[int]] = []
    verify = watched(lambda p, q, drafts: seen.append((drafts[:, 0] >= 0).tolist()))
    IdlePairs(Verifier(verify, Capabilities()), CHAIN_FIXTURES["wide"])(
        48, np.random.default_rng(1)
    )
    assert seen == [[True, False], [False, True]] * 12


def test_tokens_are_read_from_any_sequence() -> None:
    torch = pytest.importorskip("torch")
    fixture = CHAIN_FIXTURES["wide"]
    for raw in ([1, 4], (1, 4), np.array([1, 4]), torch.tensor([1, 4]), (np.int8(1), 4)):
        assert read_tokens(raw, 3, fixture) == (1, 4)


BLOCKS: list[tuple[Any, str]] = [
    (None, "returned a NoneType: expected tokens"),
    (7, "returned a int: expected tokens"),
    (np.int64(7), "returned a int64: expected tokens"),
    ((), "returned 0 tokens: expected 1 to 3"),
    ((1, 1, 1, 1), "returned more than 3 tokens: expected 1 to 3"),
    (iter(int, 1), "returned more than 3 tokens"),
    ((1, 5), "token 1 is 5: expected 0 <= id < 5"),
    ((-1,), "token 0 is -1"),
    ((1, 2.0), r"token 1 is 2\.0"),
    ((True,), "token 0 is True"),
    ("ab", "token 0 is 'a'"),
    (np.array([[1, 2]]), r"token 0 is \[1, 2\]"),
]


@pytest.mark.parametrize(("raw", "message"), BLOCKS)
def test_other_blocks_are_named(raw: Any, message: str) -> None:
    with pytest.raises(BrokenContractError, match=message):
        read_tokens(raw, 3, CHAIN_FIXTURES["wide"])
    steps = Steps(lambda place, rng: raw, CHAIN_FIXTURES["wide"].only(0), 3, 5)
    with pytest.raises(BrokenContractError, match=rf"{message}.* \(at context \(\)"):
        steps(1, np.random.default_rng(1))


WAYS = {
    "rng": lambda p, q, context, number, *, rng: (p.vocabulary, rng.random(), context, number),
    "chance": lambda p, q, context, number, chance: (
        p.vocabulary, chance.accept(0.5, "coin"), context, number
    ),
    "globals": lambda p, q, context, number: (
        p.vocabulary, np.random.random(), context, number  # noqa: NPY002
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_functions_of_models_get_what_they_take(way: Any) -> None:
    fixture = CHAIN_FIXTURES["wide"]
    step, generate = call_of_models(way, fixture), call_of_models(way, fixture, 9)
    for call, number in ((step, 2), (generate, 9)):
        first, second = (call(fixture.places[1], np.random.default_rng(1)) for _ in range(2))
        assert first == second
        assert first[2:] == ((1,), number)
        assert first[0] is fixture.target.vocabulary


def greedy_for_drafts(target, drafter, context, lookahead, *, chance):
    return standard.step(target, drafter, context, max(lookahead, 2), chance)


@pytest.mark.parametrize("asked", ["joint/wide", "joint/exact"])
def test_a_block_of_more_tokens_than_its_own_place_has_drafts_breaks_the_contract(
    asked: str,
) -> None:
    report = check(greedy_for_drafts, contract="step", only=[asked])
    assert report.finding == Finding.CONTRACT
    assert "expected 1 to 2" in report.failures[0].message


@pytest.mark.usefixtures("undiagnosed")
def test_a_crash_on_a_shorter_row_names_the_claim_that_would_spare_it() -> None:
    def full_rows_only(p, q, drafts, *, rng):
        if q is not None and (drafts < 0).any():
            raise IndexError("token -1")
        return clean(p, q, drafts, rng=rng)

    results = check(full_rows_only, only=["smoke"]).results
    assert any("ragged=false" in one.message for one in results)
    assert not check(full_rows_only, only=["smoke"], ragged=False, one_hot=False).failures


@pytest.mark.parametrize(("arrays", "named"), [("numpy", True), ("torch", False)])
def test_a_crash_on_arrays_names_the_claim_that_asks_for_tensors(arrays: Any, named: bool) -> None:
    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        raise TypeError("log_softmax(): expected Tensor as input, but got numpy.ndarray")

    if arrays == "torch":
        pytest.importorskip("torch", reason="not_run (torch is not installed)")
    rng = np.random.default_rng(1)
    batch = sample_batch(CHAIN_FIXTURES["wide"], 4, rng)
    with pytest.raises(BrokenContractError) as caught:
        Verifier(verify, Capabilities(arrays=arrays))(batch, rng)
    assert str(caught.value).endswith(" (--declare arrays=torch for tensors)") == named


def cut_batch(rows: int = 12) -> Batch:
    return sample_batch(CHAIN_FIXTURES["wide"], rows, np.random.default_rng(1))


def asked(verify: Any, *, together: bool, rows: int = 3) -> Any:
    """The answers to a batch that is cut, each read as it comes or all of them together."""
    batch, rng, deadline = cut_batch(), np.random.default_rng(2), Deadline()
    verifier = Verifier(verify, Capabilities())
    if together:
        return verifier.answers(batch, rows, rng, deadline)
    parts = (batch[first : first + rows] for first in range(0, len(batch), rows))
    return joined([verifier.answer(part, rng, deadline=deadline) for part in parts])


def reusing(kept: dict[Any, Any], *given: Any, rng: Any) -> Any:
    """Answers in arrays that the next call fills anew."""
    answer = clean(*given, rng=rng)
    known = kept.setdefault(answer[0].shape, answer)
    for old, new in zip(known, answer, strict=True):
        old[...] = new
    return known


@pytest.mark.parametrize("rows", [1, 3, 5, 12, 20])
def test_answers_that_are_read_together_are_those_of_the_calls(rows: int) -> None:
    for verify in (
        clean,
        partial(reusing, {}),
        lambda p, q, x, *, rng: list(map(np.ndarray.tolist, clean(p, q, x, rng=rng))),
    ):
        both = [asked(verify, together=together, rows=rows) for together in (True, False)]
        for one, other in zip(*both, strict=True):
            assert (one == other).all()


def wrong_at(calls: list[int], *given: Any, rng: Any, at: int, then: int = 99) -> Any:
    """The answer of call `at` has a token that there is not; call `then` raises."""
    calls.append(len(given[2]))
    tokens, counts = clean(*given, rng=rng)
    if len(calls) == at:
        tokens[1, 0] = 77
    if len(calls) == then:
        raise KeyError("gone")
    return tokens, counts


@pytest.mark.parametrize("given", [{"at": 2}, {"at": 2, "then": 4}, {"at": 9, "then": 3}])
def test_what_is_wrong_is_told_as_if_each_answer_were_read_by_itself(given: Any) -> None:
    errors = []
    for together in (True, False):
        with pytest.raises(BrokenContractError) as caught:
            asked(partial(wrong_at, [], **given), together=together)
        errors.append(caught.value)
    assert str(errors[0]) == str(errors[1])
    assert errors[0].row == errors[1].row
    assert errors[0].evidence == errors[1].evidence
    assert (errors[0].row == 1) == ("tokens[1" in str(errors[0])) == (given["at"] == 2)


def test_small_calls_are_told_their_sizes_while_they_run() -> None:
    deadline, told = Deadline(), []
    verify = watched(lambda *given: told.append(deadline.asked()))
    Verifier(verify, Capabilities()).answers(cut_batch(), 5, np.random.default_rng(2), deadline)
    assert [said.split(",")[0] for said in told] == ["5 rows", "5 rows", "2 rows"]
    assert deadline.asked is None


def test_no_call_has_more_rows_than_are_taken() -> None:
    seen: list[int] = []
    verify = watched(lambda p, q, drafts: seen.append(len(drafts)))
    verifier = Verifier(verify, Capabilities(batch=2))
    answer = verifier.answers(cut_batch(), 3, np.random.default_rng(2), Deadline())
    assert seen == [2] * 6
    assert len(answer.tokens) == 12
