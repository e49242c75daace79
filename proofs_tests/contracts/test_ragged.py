"""Samplers in the shapes of engines: right ones pass, and bugs of the flattened shape are found.

Monte Carlo by fixed seeds: alpha 1e-9 for all checks of a run together; 3,000 trials of joint/wide
find a distance of 0.1, 999 times in 1,000. Each planted bug is farther off, or certain to show.
"""

import inspect
import math
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import special

from proofs_tests.helpers.bugs.verifiers import clean
from specref.adapters import IMPLEMENTATIONS
from specref.arrays import NO_TOKEN
from specref.coins import race_winner
from specref.conformance.checks import greedy, independence
from specref.conformance.public import check
from specref.conformance.status import Status
from specref.conformance.strata.calling import called
from specref.contracts.capabilities import Capabilities, capable
from specref.contracts.contract import Contract, Subject
from specref.contracts.errors import BrokenContractError
from specref.contracts.ragged import TEMPERATURES, RaggedVerifier, likeliest, problem
from specref.contracts.table import RAGGED, VERIFY, contracts_of, signed
from specref.contracts.timeout import Deadline

pytestmark = pytest.mark.usefixtures("undiagnosed")

QUICK = (
    "smoke/answers", "smoke/batch-of-one", "smoke/no-drafts", "smoke/one-hot", "smoke/inputs",
    "smoke/deterministic", "boundary/disjoint", "boundary/certain", "boundary/forbidden",
    "boundary/ragged", "joint/wide",
)  # fmt: skip
LAW = ("smoke/answers", "boundary/ragged", "joint/wide")


softmax = partial(special.softmax, axis=-1)


def drawn(weights: Any, u: float) -> int:
    ends = np.cumsum(weights)
    return int((ends <= u * ends[-1]).sum())


def verified(p: Any, q: Any, drafts: Any, rng: Any) -> tuple[list[int], Any]:
    """Accepted drafts, and what is left to draw from: None if all were accepted."""
    block: list[int] = []
    for i, x in enumerate(drafts.tolist()):
        law = (np.arange(p.shape[1]) == x) * 1.0 if q is None else q[i]
        if rng.random() * law[x] >= p[i, x]:
            residual = np.maximum(p[i] - law, 0)
            return block, residual if residual.any() else p[i]
        block.append(x)
    return block, None


def spans(counts: Any, extra: int = 0) -> list[slice]:
    """Where the rows of each request are, if it has so many more than drafts."""
    ends = np.cumsum(counts + extra).tolist()
    return [slice(end - n - extra, end) for end, n in zip(ends, counts.tolist(), strict=True)]


def part(array: Any, where: slice) -> Any:
    return None if array is None else array[where]


def probabilities(bug: str = "") -> Callable[..., Any]:
    """Rows of p for drafts and bonus in one array; -1 behind the block."""

    @capable(rule="standard")
    def verify(*, draft_token_ids, num_draft_tokens, target_probs, draft_probs, rng):
        counts = num_draft_tokens
        drafts = spans(counts)
        of_target = spans(counts, 1)
        if bug == "offsets without the bonus rows":
            of_target = [slice(one.start, one.stop + 1) for one in drafts]
        if bug == "requests without drafts have no row" and not counts[-1]:
            of_target = [slice(max(0, o.start - 1), max(1, o.stop - 1)) for o in of_target]
        if bug == "q of the neighbour" and draft_probs is not None:
            draft_probs = np.roll(draft_probs, 1, axis=0)
        out = np.full((len(counts), counts.max(initial=0) + 1), -1)
        for row, (t, d) in enumerate(zip(of_target, drafts, strict=True)):
            q, p = part(draft_probs, d), target_probs[t]
            block, left = verified(p, q, draft_token_ids[d], rng)
            block.append(drawn(p[-1] if left is None else left, rng.random()))
            out[row, : len(block)] = block
        return out

    return verify


def logits(bug: str = "") -> Callable[..., Any]:
    """As vLLM holds them: logits of drafts alone, tokens for the bonus, a temperature each."""

    @capable(rule="standard")
    def verify(
        *, draft_token_ids, cu_num_draft_tokens, target_logits, draft_probs, bonus_token_ids,
        temperature, max_spec_len, rng,
    ):  # fmt: skip
        counts = np.diff(cu_num_draft_tokens, prepend=0)
        if bug == "temperature of request 0":
            temperature = np.full_like(temperature, temperature[0])
        if bug == "no temperature if all have the same" and len(set(temperature.tolist())) == 1:
            temperature = np.ones_like(temperature)
        if bug == "temperatures in eighths":
            temperature = np.maximum(np.rint(temperature * 8), 1) / 8
        if bug == "argmax up to 0.1":
            cold = np.repeat(temperature <= 0.1, counts)[:, None]
            largest = target_logits == target_logits.max(axis=1, keepdims=True)
            target_logits = np.where(cold & ~largest, -np.inf, target_logits)
        if bug == "bonus of the neighbour":
            bonus_token_ids = np.roll(bonus_token_ids, 1)
        out = np.full((len(counts), max_spec_len + 1), -1)
        for row, at in enumerate(spans(counts)):
            p = softmax(target_logits[at] / temperature[row]) if counts[row] else np.ones((0, 1))
            drafts = draft_token_ids[at]
            block, left = verified(p, part(draft_probs, at), drafts, rng)
            block.append(int(bonus_token_ids[row]) if left is None else drawn(left, rng.random()))
            out[row, : len(block)] = block
        return out

    return verify


def greedy_at_zero(bug: str = "") -> Callable[..., Any]:
    """Requests at temperature 0 are decoded by argmax; others as `logits` does."""

    @capable(rule="standard", greedy_at_zero=True)
    def verify(
        *, draft_token_ids, num_draft_tokens, target_logits, draft_probs, bonus_token_ids,
        temperature, rng,
    ):  # fmt: skip
        blocks = []
        for row, at in enumerate(spans(num_draft_tokens)):
            t = temperature[0 if bug == "temperature of request 0" else row]
            p = softmax(target_logits[at] / (t or 1)) if num_draft_tokens[row] else np.ones((0, 1))
            if not t:
                likely = p
                p = (p == p.max(axis=1, keepdims=True)) * 1.0
            block, left = verified(p, part(draft_probs, at), draft_token_ids[at], rng)
            if not t and left is not None and bug == "drawn after a rejection":
                left = likely[len(block)]
            block.append(int(bonus_token_ids[row]) if left is None else drawn(left, rng.random()))
            blocks.append(block)
        return blocks

    return verify


def padded(bug: str = "") -> Callable[..., Any]:
    """Drafts unpacked into rows padded with -1; answers whose tails nobody has written."""

    @capable(rule="standard")
    def verify(
        *, draft_token_ids, num_draft_tokens, target_logits, draft_logits, bonus_logits, seeds
    ):
        counts, most = num_draft_tokens, num_draft_tokens.max(initial=0)
        if bug == "logits of at most 80":
            target_logits = np.minimum(target_logits, 80)
        if bug == "the last bit of seeds is lost":
            seeds = seeds & ~1
        out = np.full((len(counts), most + 1), 1_000_000)
        lengths = np.zeros(len(counts), dtype=int)
        for row, at in enumerate(spans(counts)):
            rng = np.random.default_rng(seeds[0 if bug == "seed of request 0" else row])
            drafts = draft_token_ids[at]
            p, q = softmax(target_logits[at]), part(draft_logits, at)
            q = None if q is None else softmax(q)
            block, left = verified(p, q, drafts, rng)
            bonus = softmax(bonus_logits[row])
            if bug == "-1 is a token" and left is None and len(block) < most:
                block.append(-1 % len(bonus))
            block.append(drawn(bonus if left is None else left, rng.random()))
            lengths[row] = min(len(block), most + 1)
            out[row, : lengths[row]] = block[: lengths[row]]
        return out, lengths

    return verify


def sparse(bug: str = "") -> Callable[..., Any]:
    """q as its likeliest tokens; a list of tokens for each request."""

    @capable(rule="standard")
    def verify(
        *, draft_token_ids, num_draft_tokens, target_probs, draft_top_ids, draft_top_probs,
        bonus_probs, rng,
    ):  # fmt: skip
        q, blocks = None, []
        if draft_top_ids is not None:
            q = np.zeros_like(target_probs)
            kept = slice(0, 1) if bug == "the first token alone" else slice(None)
            np.put_along_axis(q, draft_top_ids[:, kept], draft_top_probs[:, kept], axis=1)
        for row, at in enumerate(spans(num_draft_tokens)):
            block, left = verified(target_probs[at], part(q, at), draft_token_ids[at], rng)
            weights = bonus_probs[row] if left is None else left
            blocks.append([*block, drawn(weights, rng.random())])
        return blocks

    return verify


def without_q(bug: str = "") -> Callable[..., Any]:
    """Of n-gram drafters: nothing says how likely drafts were."""

    def verify(*, draft_token_ids, num_draft_tokens, target_probs, rng):
        blocks = []
        for d, t in zip(spans(num_draft_tokens), spans(num_draft_tokens, 1), strict=True):
            p = target_probs[t]
            block, left = verified(p, None, draft_token_ids[d], rng)
            weights = p[len(block)] if left is None or bug == "residual is p" else left
            blocks.append([*block, drawn(weights, rng.random())])
        return blocks

    return verify


def of_generators(bug: str = "") -> Callable[..., Any]:
    """Each request draws from its own `torch.Generator`."""
    last = {}

    @capable(rule="standard")
    def verify(*, draft_token_ids, num_draft_tokens, target_probs, draft_probs, generators):
        import torch

        blocks = []
        for row, (d, t) in enumerate(
            zip(spans(num_draft_tokens), spans(num_draft_tokens, 1), strict=True)
        ):
            given, p = generators[row], target_probs[t]
            if bug == "rewound":
                given.manual_seed(given.initial_seed())
            coins = torch.rand(len(p) + 1, generator=given, dtype=torch.float64).tolist()
            if bug == "the last coin again":
                coins[0], last[given] = last.get(given, coins[0]), coins[-1]
            fake = SimpleNamespace(random=iter(coins).__next__)
            block, left = verified(p, part(draft_probs, d), draft_token_ids[d], fake)
            blocks.append([*block, drawn(p[len(block)] if left is None else left, coins[-1])])
        return blocks

    return verify


MAKERS = (probabilities, logits, padded, sparse, without_q)
BUGS = (
    (probabilities, "offsets without the bonus rows"),
    (probabilities, "requests without drafts have no row"),
    (probabilities, "q of the neighbour"),
    (logits, "temperature of request 0"),
    (logits, "bonus of the neighbour"),
    (padded, "-1 is a token"),
    (padded, "seed of request 0"),
    (sparse, "the first token alone"),
    (without_q, "residual is p"),
)


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize("make", MAKERS)
def test_right_samplers_pass(make: Callable[..., Any]) -> None:
    report = check(make(), contract="ragged", only=QUICK, detect_tv=0.2)
    assert not report.failures, report
    assert report.counts["passed"] == len(QUICK), report


@pytest.mark.deep(one_in=12)
@pytest.mark.parametrize(("make", "bug"), BUGS, ids=lambda one: getattr(one, "__name__", one))
def test_bugs_of_the_shape_are_found(make: Callable[..., Any], bug: str) -> None:
    only = ("smoke/rows-vary",) if bug.startswith("seed") else LAW
    report = check(make(bug), contract="ragged", only=only, detect_tv=0.2)
    assert report.exit_code == 1, report


# A right sampler, what one may do wrong in a way that requests come, and the checks that see it.
WAYS = {
    "strata/large-logits": (padded, "logits of at most 80"),
    "strata/one-temperature": (logits, "no temperature if all have the same"),
    "strata/odd-temperatures": (logits, "argmax up to 0.1"),
    "joint/probed-temperatures": (logits, "temperatures in eighths"),
    "strata/generators-kept": (of_generators, "rewound"),
    "iterations/generators-kept": (of_generators, "the last coin again"),
    "independence/identical-rows-generators-kept": (of_generators, "rewound"),
    "independence/identical-rows-seeds-in-a-row": (padded, "the last bit of seeds is lost"),
}


@pytest.mark.deep(one_in=8)
@pytest.mark.strata
@pytest.mark.parametrize("id_", WAYS)
def test_each_way_in_which_requests_come_finds_a_bug(
    id_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, bug = WAYS[id_]
    monkeypatch.setattr(independence, "SIZES", [(64, 100, independence.SIZE)])
    if make is of_generators:
        pytest.importorskip("torch", reason="not_run (torch is not installed)")
    few = {"detect_tv": 0.2} if id_.startswith("iterations") else {"trials": 2_000}
    right = check(make(), contract="ragged", only=[id_], **few)
    assert right.counts["passed"] == 1, right
    assert [one.id for one in check(make(bug), contract="ragged", only=[id_]).failures] == [id_]


# What one may do wrong with requests at temperature 0 beside others.
BESIDE = ("temperature of request 0", "drawn after a rejection")


@pytest.mark.deep
@pytest.mark.strata
def test_greedy_requests_beside_sampled_ones() -> None:
    only = ["strata/beside-greedy"]
    right = check(greedy_at_zero(), contract="ragged", only=only)
    assert right.counts["passed"] == 1, right
    for bug in BESIDE:
        (wrong,) = check(greedy_at_zero(bug), contract="ragged", only=only).results
        assert wrong.status == Status.FAILED, bug
    (other,) = check(greedy_at_zero(), contract="ragged", only=only, greedy_at_zero=False).results
    assert (other.status, other.message) == (
        Status.NOT_APPLICABLE, "does not claim greedy_at_zero=true",
    )  # fmt: skip
    (few,) = check(greedy_at_zero(), contract="ragged", only=only, batch=31).results
    assert (few.status, few.message) == (
        Status.NOT_APPLICABLE, "takes 31 requests a call: too few",
    )  # fmt: skip


def test_what_temperature_0_means_is_not_claimed_without_one() -> None:
    with pytest.raises(ValueError, match="greedy_at_zero = True: expected a parameter temperatu"):
        check(probabilities(), contract="ragged", greedy_at_zero=True)


@pytest.mark.strata
@pytest.mark.parametrize("id_", WAYS)
def test_a_sampler_that_has_nothing_of_a_way_is_not_judged_in_it(id_: str) -> None:
    (result,) = check(probabilities(), contract="ragged", only=[id_]).results
    assert result.status == Status.NOT_APPLICABLE
    assert result.message.startswith("takes no ")
    (other,) = check(clean, only=[id_]).results
    assert other.status == Status.NOT_APPLICABLE


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("recovery", ["race", "inverse"])
def test_bonus_tokens_that_are_passed_in_are_those_of_the_coins(recovery: Any) -> None:
    @capable(rule="standard", recovery=recovery)
    def verify(
        *, draft_token_ids, num_draft_tokens, target_probs, draft_probs, bonus_token_ids, coins
    ):
        blocks = []
        for row, at in enumerate(spans(num_draft_tokens)):
            given = iter(coins.accept[row])
            fake = SimpleNamespace(random=lambda given=given: next(given))
            block, left = verified(
                target_probs[at], part(draft_probs, at), draft_token_ids[at], fake
            )
            if left is None:
                block.append(int(bonus_token_ids[row]))
            elif recovery == "race":
                block.append(int(race_winner(left, coins.race[row])))
            else:
                block.append(drawn(left, coins[row : row + 1].final[0]))
            blocks.append(block)
        return blocks

    only = ["replay/coin-by-coin", "replay/permuted"]
    report = check(verify, contract="ragged", only=only)
    assert report.counts["passed"] == 2, report


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("named", ["generators", "generator", "seeds"])
def test_each_kind_of_randomness_is_probed_exactly(named: str) -> None:
    torch = pytest.importorskip("torch", reason="not_run (torch is not installed)")

    def sampled(num_draft_tokens, draft_token_ids, target_probs, of_row):
        blocks = []
        for row, (at, rows) in enumerate(
            zip(spans(num_draft_tokens), spans(num_draft_tokens, 1), strict=True)
        ):
            kept, p = 0, torch.as_tensor(target_probs[rows])
            for x in draft_token_ids[at].tolist():
                if torch.rand((), generator=of_row(row)) >= p[kept, x]:
                    p[kept, x] = 0
                    break
                kept += 1
            last = torch.multinomial(p[kept], 1, generator=of_row(row))
            blocks.append([*draft_token_ids[at][:kept].tolist(), int(last)])
        return blocks

    def by_generators(*, num_draft_tokens, draft_token_ids, target_probs, generators):
        assert len(set(map(id, generators))) == len(num_draft_tokens)
        return sampled(num_draft_tokens, draft_token_ids, target_probs, generators.__getitem__)

    def by_generator(*, num_draft_tokens, draft_token_ids, target_probs, generator):
        return sampled(num_draft_tokens, draft_token_ids, target_probs, lambda row: generator)

    def by_seeds(*, num_draft_tokens, draft_token_ids, target_probs, seeds):
        drawn_from = [torch.Generator().manual_seed(int(seed)) for seed in seeds]
        return sampled(num_draft_tokens, draft_token_ids, target_probs, drawn_from.__getitem__)

    one = {"generators": by_generators, "generator": by_generator, "seeds": by_seeds}[named]
    report = check(one, contract=RAGGED, only=["smoke/batch-of-one", "joint/probed"])
    assert report.counts["passed"] == 2, report


@pytest.mark.deep(one_in=2)
@pytest.mark.strata
@pytest.mark.parametrize("name", ["reference-ragged", "torch-backend-ragged"])
def test_registered_references_pass(name: str) -> None:
    one = IMPLEMENTATIONS[name]
    if one.not_run:
        pytest.skip(one.not_run)
    only = (*QUICK, "replay", "strata/int32-ids", "strata/strided", "strata/arrays-filled-anew")
    report = check(one.load(), contract="ragged", only=only, detect_tv=0.2)
    assert not report.failures, report
    assert report.counts["passed"] >= len(QUICK)


def test_a_sampler_of_argmax_is_compared_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Temperatures are 0, and the bonus token is an argmax, for samplers that claim it."""
    few = [one for one in greedy.STRATA if one.name in ("one-draft", "no-laws", "int32-ids")]
    monkeypatch.setattr(greedy, "STRATA", few)
    monkeypatch.setattr(greedy, "drawn_pairs", lambda rng, count: [])

    @capable(greedy=True)
    def argmax(*, draft_token_ids, num_draft_tokens, target_logits, bonus_token_ids, temperature):
        assert not temperature.any()
        blocks = []
        for row, at in enumerate(spans(num_draft_tokens)):
            best = target_logits[at].argmax(axis=1) if num_draft_tokens[row] else np.zeros(0, int)
            wrong = np.flatnonzero(best != draft_token_ids[at])
            kept = wrong[0] + 1 if len(wrong) else len(best)
            blocks.append(best[:kept].tolist() + [int(bonus_token_ids[row])] * (not len(wrong)))
        return blocks

    only = ["smoke/answers", "boundary/greedy", "boundary/ragged"]
    report = check(argmax, contract="ragged", only=only)
    assert report.exit_code == 0, report
    assert report.counts["passed"] == 8


def layout(function: Callable[..., Any], **claims: Any) -> tuple[Any, dict[str, Any]]:
    """A batch of 4 rows with 2, 2, 1 and 0 drafts, and the arguments of its call."""
    capabilities = RAGGED.claimed(function, Capabilities(**claims))
    batch = RAGGED.sample(RAGGED.fixtures["wide"], 4, np.random.default_rng(3))
    assert batch.lens.tolist() == [2, 2, 1, 0]
    verifier = RaggedVerifier(function, capabilities)
    positional, given = verifier.arguments(batch, np.random.default_rng(4))
    assert positional == ()
    return batch, given


def test_rows_are_those_of_the_requests_in_turn() -> None:
    batch, given = layout(IMPLEMENTATIONS["reference-ragged"].load())
    rows = [batch.target_probs[row, : n + 1] for row, n in enumerate(batch.lens)]
    assert np.array_equal(given["target_probs"], np.concatenate(rows))
    assert np.array_equal(given["draft_token_ids"], batch.draft_tokens[batch.draft_tokens >= 0])
    of_q = [batch.draft_probs[row, :n] for row, n in enumerate(batch.lens)]
    assert np.array_equal(given["draft_probs"], np.concatenate(of_q))


def test_logits_are_those_of_the_temperature_of_each_request() -> None:
    batch, given = layout(logits())
    assert given["cu_num_draft_tokens"].tolist() == [2, 4, 5, 5]
    assert given["temperature"].tolist() == list(TEMPERATURES[:4])
    assert given["max_spec_len"] == 2
    hot = np.repeat(given["temperature"], batch.lens)[:, None]
    p = np.concatenate([batch.target_probs[row, :n] for row, n in enumerate(batch.lens)])
    assert np.abs(softmax(given["target_logits"] / hot) - p).max() < 1e-15
    assert np.abs(np.exp(given["target_logits"] / hot) - p).max() > 0.1  # not normalised
    drawn_from = batch.target_probs[np.arange(4), batch.lens, given["bonus_token_ids"]]
    assert (drawn_from > 0).all()


def test_ways_of_calling_change_the_flattened_arrays() -> None:
    function, claims = padded(), RAGGED.claimed(padded(), Capabilities())
    batch = RAGGED.sample(RAGGED.fixtures["wide"], 4, np.random.default_rng(3))

    def given(way: str) -> dict[str, Any]:
        verifier = called(way, RaggedVerifier)(function, claims)
        return verifier.arguments(batch, np.random.default_rng(4))[1]

    plain, short = given("plain"), given("int32")
    assert {plain[name].dtype for name in ("draft_token_ids", "num_draft_tokens")} == {
        np.dtype(np.int64)
    }
    assert {short[name].dtype for name in ("draft_token_ids", "num_draft_tokens")} == {
        np.dtype(np.int32)
    }
    assert short["seeds"].dtype == np.int64
    assert not given("strided")["target_logits"].flags.c_contiguous
    assert not given("transposed")["bonus_logits"].flags.c_contiguous
    assert not given("read-only")["draft_logits"].flags.writeable
    refilled = called("refilled", RaggedVerifier)(function, claims)
    one, other = (refilled.arguments(batch, np.random.default_rng(4))[1] for _ in range(2))
    assert one["target_logits"] is other["target_logits"]


def test_a_sampler_that_writes_into_its_arguments_is_found() -> None:
    @capable(rule="standard")
    def verify(*, draft_token_ids, num_draft_tokens, target_probs, draft_probs, rng):
        out = probabilities()(
            draft_token_ids=draft_token_ids,
            num_draft_tokens=num_draft_tokens,
            target_probs=target_probs,
            draft_probs=draft_probs,
            rng=rng,
        )
        target_probs[:] = 0
        return out

    report = check(verify, contract=RAGGED, only=["smoke/inputs-unchanged"])
    assert "target_probs[0, " in report.failures[0].message


def test_sparse_rows_are_whole() -> None:
    laws = np.random.default_rng(1).dirichlet(np.ones(3), size=4) @ np.eye(3, 9, 4)
    ids, values = likeliest(laws)
    assert ids.shape == (4, 3)
    whole = np.zeros_like(laws)
    np.put_along_axis(whole, ids, values, axis=1)
    assert np.array_equal(whole, laws)


ARGUMENTS = "draft_token_ids, num_draft_tokens, target_logits"
REFUSED = {
    "num_draft_tokens, target_probs": "expected one of draft_token_ids",
    "draft_token_ids, target_probs": "one or both of num_draft_tokens, cu_num_draft_tokens",
    f"{ARGUMENTS}, target_probs": "expected one of target_probs, target_logits",
    f"{ARGUMENTS}, draft_probs, draft_logits": "at most one of draft_probs, draft_logits",
    f"{ARGUMENTS}, draft_top_ids": "draft_top_ids and draft_top_probs",
    f"{ARGUMENTS}, bonus_probs, bonus_token_ids": "at most one of bonus_token_ids, bonus_probs",
    f"{ARGUMENTS}, sampling_metadata": "it does not give sampling_metadata: expected a default",
    "draft_token_ids, num_draft_tokens, target_probs, temperature": "target_logits with",
    f"{ARGUMENTS}, /": "missing a required argument",
}


@pytest.mark.parametrize("parameters", REFUSED)
def test_other_signatures_are_refused(parameters: str) -> None:
    function = eval(f"lambda {parameters}: None")
    assert REFUSED[parameters] in problem(inspect.signature(function))
    with pytest.raises(TypeError, match="contract ragged gives"):
        signed(function, RAGGED)


@pytest.mark.parametrize("contract", [VERIFY, RAGGED], ids=str)
def test_the_parameter_of_an_engine_is_named_with_its_page(contract: Contract) -> None:
    function = eval(f"lambda {ARGUMENTS}, bonus_token_ids, sampling_metadata: None")
    told = (
        "contract ragged: it does not give sampling_metadata: expected a default, or an adapter "
        "as in docs/check-an-engine-sampler.md#vllm"
    )
    with pytest.raises(TypeError, match=f"; {told}$"):
        check(function, contract=contract)


def test_names_decide_and_not_the_position() -> None:
    function = eval("lambda target_probs, num_draft_tokens, draft_token_ids: None")
    assert contracts_of(function) == (RAGGED,)
    with pytest.raises(TypeError, match="--contract ragged fits"):
        signed(function, VERIFY)
    signed(eval(f"lambda {ARGUMENTS}, scale=1, **others: None"), RAGGED)


def test_claims_that_the_names_contradict_are_refused() -> None:
    with pytest.raises(ValueError, match=r"inputs = 'logits': expected a parameter target_logits"):
        check(probabilities(), contract="ragged", inputs="logits")
    with pytest.raises(ValueError, match=r"rule = 'standard': expected none of a function"):
        check(without_q(), contract="ragged", algorithm="standard")
    claimed = RAGGED.claimed(logits(), Capabilities())
    assert claimed.inputs == "logits"
    with pytest.raises(TypeError, match="expected a function whose parameters can be read"):
        check(max, contract="ragged")


class Unreadable:
    def __array__(self, *arguments: Any, **options: Any) -> Any:
        raise RuntimeError("on another device")


ANSWERS = {
    "no array": (lambda n: None, "tokens has dtype object"),
    "flat": (lambda n: np.zeros(len(n), int), "tokens has shape"),
    "floats": (lambda n: np.full((len(n), 3), 0.5), "tokens has dtype float64: expected integers"),
    "nothing in a row": (lambda n: [[]] * len(n), r"counts\[0\] = 0"),
    "a gap": (lambda n: [[0, -1, 0]] * len(n), "expected 1 token, then -1"),
    "too wide": (lambda n: (np.zeros((len(n), 9), int), n + 9), "tokens has shape"),
    "more than counts may be": (lambda n: (np.zeros((len(n), 3), int), n + 2), "expected 1 to"),
    "counts in floats": (
        lambda n: (np.zeros((len(n), 3), int), n / 1),
        "counts has dtype float64",
    ),
    "counts of no row": (lambda n: (np.zeros((len(n), 3), int), [1]), "counts has shape"),
    "no array that can be read": (lambda n: (Unreadable(), n), "tokens"),
    "no id": (lambda n: (np.full((len(n), 3), 99), n * 0 + 1), "= 99: expected 0 <= id < 5"),
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_broken_answers_are_named(kind: str) -> None:
    answer, message = ANSWERS[kind]

    def verify(*, draft_token_ids, num_draft_tokens, target_probs):
        return answer(num_draft_tokens)

    batch = RAGGED.sample(RAGGED.fixtures["wide"], 4, np.random.default_rng(3))
    verifier = RAGGED.verifier(Subject(verify, Capabilities()))
    with pytest.raises(BrokenContractError, match=message):
        verifier(batch, np.random.default_rng(1))


def test_a_crash_on_unequal_lengths_names_the_claim_that_would_spare_it() -> None:
    def equal_only(*, draft_token_ids, num_draft_tokens, target_probs, draft_probs, rng):
        rows, size = len(num_draft_tokens), target_probs.shape[1]
        p, drafts = target_probs.reshape(rows, -1, size), draft_token_ids.reshape(rows, -1)
        q = None if draft_probs is None else draft_probs.reshape(rows, -1, size)
        return clean(p, q, drafts, rng=rng)

    def never(*, draft_token_ids, num_draft_tokens, target_probs, draft_probs, rng):
        if len(num_draft_tokens) > 1:
            raise ValueError("one request")

    found = [
        check(one, contract=RAGGED, only=["smoke/answers"]).results[0]
        for one in (equal_only, never)
    ]
    assert [one.status for one in found] == [Status.FAILED, Status.FAILED]
    assert ["ragged=false" in one.message for one in found] == [True, False]
    assert not check(equal_only, contract=RAGGED, only=["smoke"], ragged=False).failures


def test_calls_that_leave_tokens_behind_the_count_unset_are_read_together_too() -> None:
    def unset(
        draft_token_ids: Any,
        num_draft_tokens: Any,
        target_probs: Any,
        draft_probs: Any,
        *,
        rng: Any,
    ) -> Any:
        requests, most = len(num_draft_tokens), int(num_draft_tokens.max(initial=0)) + 1
        tokens, counts = np.full((requests, 3), 7), np.ones(requests, dtype=np.int64)
        tokens[:, 0] = rng.integers(5, size=requests)
        return tokens[:, : max(most, 3)], counts

    verifier = RaggedVerifier(unset, Capabilities())
    batch = RAGGED.sample(RAGGED.fixtures["wide"], 12, np.random.default_rng(1))
    answer = verifier.answers(batch, 5, np.random.default_rng(2), Deadline())
    assert (answer.tokens[:, 1:] == NO_TOKEN).all()
    assert answer.counts.tolist() == [1] * 12


@pytest.mark.parametrize(("dtype", "count"), [("float64", 5), ("float32", 3)])
def test_temperatures_that_round_logits_are_for_double_precision(dtype: Any, count: int) -> None:
    verifier = RaggedVerifier(logits(), Capabilities(dtype=dtype))
    found = verifier.temperatures(7).tolist()
    assert found == list(np.resize(TEMPERATURES[:count], 7))
    assert all(math.frexp(one)[0] == 0.5 for one in TEMPERATURES[:3])
