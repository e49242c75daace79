"""Exact laws after many drafts and in a large vocabulary; each refuses a planted bug."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

from specref.adapters import reference
from specref.conformance.checks import probed as checks
from specref.conformance.checks.probed_rows import VOCABULARIES
from specref.conformance.public import check
from specref.conformance.status import Finding, Status
from specref.contracts.capabilities import capable
from specref.examples.correct import verify

pytestmark = pytest.mark.usefixtures("undiagnosed")

MANY = tuple(checks.UNSURE)
EXACT = (
    *(f"joint/probed-{n}-draft{'s' * (n > 1)}" for n in MANY),
    *(f"joint/probed-{name}" for name in VOCABULARIES),
)


def halved(where: Callable[[Any], Any]) -> Callable[..., Any]:
    """The correct example with half of some entries of q."""

    def lossy(target_probs, draft_probs, draft_tokens, *, rng):
        if draft_probs is not None:
            draft_probs = np.where(where(draft_probs), draft_probs / 2, draft_probs)
        return verify(target_probs, draft_probs, draft_tokens, rng=rng)

    return lossy


def above_1023(q: Any, size: int) -> Any:
    return (np.arange(q.shape[2]) >= 1_024) & (q.shape[2] == size)


def of_three(drafts: int, q: Any) -> Any:
    """The last of so many drafts where three tokens are possible."""
    last = np.arange(q.shape[1])[:, None] == drafts - 1
    return last & (q.shape[1:] == (drafts, 3))


BUGS = {
    **{name: halved(partial(of_three, n)) for n, name in zip(MANY, EXACT, strict=False)},
    **{
        f"joint/probed-{name}": halved(partial(above_1023, size=1 + max(given.ids)))
        for name, given in VOCABULARIES.items()
    },
}


@pytest.mark.parametrize(("share", "status"), [(1e-5, Status.FAILED), (1e-6, Status.PASSED)])
def test_what_is_more_than_rounding_is_found(share: float, status: Status) -> None:
    """q is read too small by this share, for a total variation of a third of it."""

    def inexact(target_probs, draft_probs, draft_tokens, *, rng):
        return verify(target_probs, draft_probs * (1 - share), draft_tokens, rng=rng)

    (result,) = check(inexact, only=["joint/probed"], one_hot=False).results
    assert result.status == status
    assert result.evidence["total_variation"] == pytest.approx(share / 3, rel=1e-4)


@pytest.mark.deep
@pytest.mark.parametrize("id_", EXACT)
def test_a_bug_that_acts_there_alone_is_found_there_alone(id_: str) -> None:
    found = outcomes(BUGS[id_], "verify")
    assert [one for one, result in found.items() if result.status == Status.FAILED] == [id_]
    assert "from the target, exactly" in found[id_].message


def sharing(first: int, second: int) -> Callable[..., Any]:
    """The correct example, but that two drafts of a row share a uniform."""

    class Shared:
        def __init__(self, rng: np.random.Generator) -> None:
            self.rng = rng

        def random(self, shape: Any) -> Any:
            coins = self.rng.random(shape)
            if len(shape) == 2 and shape[1] > second:
                coins[:, second] = coins[:, first]
            return coins

    def lossy(target_probs, draft_probs, draft_tokens, *, rng):
        return verify(target_probs, draft_probs, draft_tokens, rng=Shared(rng))

    return lossy


def met() -> set[tuple[int, int]]:
    """Pairs of drafts that may both be rejected in one of the blocks."""
    blocks = [{0, n - 1, *unsure} for n, unsure in checks.UNSURE.items()]
    return {pair for block in blocks for pair in combinations(sorted(block), 2)}


def test_of_the_first_eight_drafts_all_pairs_meet() -> None:
    assert {*combinations(range(8), 2)} <= met()


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize("pair", [(0, 1), (4, 5), (2, 6), (5, 7), (0, 7), (3, 7)])
def test_coins_that_two_drafts_share_are_found_where_they_meet(pair: tuple[int, int]) -> None:
    assert check(sharing(*pair), only=EXACT[: len(MANY)], exitfirst=True).failures


@pytest.mark.deep
def test_a_token_that_is_no_other_way_possible_counts_as_lost() -> None:
    def astray(target_probs, draft_probs, draft_tokens, *, rng):
        tokens, counts = verify(target_probs, draft_probs, draft_tokens, rng=rng)
        if target_probs.shape[2] == 1_027:
            last = tokens[np.arange(len(tokens)), counts - 1]
            tokens[np.arange(len(tokens)), counts - 1] = np.where(last == 255, 256, last)
        return tokens, counts

    result = outcomes(astray, "verify")["joint/probed-vocabulary"]
    assert result.status == Status.FAILED
    # The bonus is token 255 half the time, and a draft is kept three times in four at least.
    assert result.evidence["total_variation"] > 0.3


def test_what_takes_too_many_runs_after_one_draft_is_tried_nowhere_else() -> None:
    found = check(reference.verify, only=EXACT[:4]).results
    assert {result.status for result in found} == {Status.NOT_APPLICABLE}
    for result in found:
        assert result.message.endswith("more than max_runs = 500 runs")


def residual_by_rejection(target_probs, draft_probs, draft_tokens, *, rng):
    """Draws from p until a number below (p - q)+ / p comes: up to 200 tries a row."""
    tokens = np.full((len(draft_tokens), draft_tokens.shape[1] + 1), -1)
    counts = np.zeros(len(draft_tokens), dtype=int)
    for row, drafts in enumerate(draft_tokens):
        p = target_probs[row]
        q = np.zeros_like(p)
        kept = 0
        while kept < len(drafts) and drafts[kept] >= 0:
            one_hot = np.arange(p.shape[1]) == drafts[kept]
            q[kept] = one_hot if draft_probs is None else draft_probs[row, kept]
            if rng.random() * q[kept, drafts[kept]] >= p[kept, drafts[kept]]:
                break
            kept += 1
        weights = np.maximum(p[kept] - q[kept], 0)
        for _ in range(200):
            last = int(np.searchsorted(np.cumsum(p[kept]), rng.random(), side="right"))
            if rng.random() * p[kept, last] < weights[last]:
                break
        tokens[row, : kept + 1] = [*drafts[:kept], last]
        counts[row] = kept + 1
    return tokens, counts


def test_a_search_that_does_not_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Residuals drawn by rejection: up to 200 tries, each with a threshold of its own."""
    assert checks.MOST_RUNS == 10_000
    monkeypatch.setattr(checks, "MOST_RUNS", 1_000)
    report = check(residual_by_rejection, only=["joint/probed"])
    probed = report.results[-1]
    assert (probed.id, probed.status) == ("joint/probed", Status.NOT_APPLICABLE)
    assert "more than 2,666 calls for numbers in 40 runs" in probed.message


# Of steps and loops.

Share = Callable[[Any, int, int], float]


def blocks(
    target: Any, drafter: Any, context: Any, lookahead: int, draw: Any, coin: Any, share: Any
) -> Any:
    """Standard speculative decoding, with q read too small by a share."""
    block: tuple[int, ...] = ()
    for i in range(lookahead):
        p, q = (model.next_token((*context, *block)) for model in (target, drafter))
        x = draw(q)
        if coin(len(context) + i) * q[x] * share(i) >= p[x]:
            left = np.maximum(p - q, 0)
            return (*block, draw(left / left.sum()))
        block = (*block, x)
        if target.vocabulary.ends(block):
            return block
    return (*block, draw(target.next_token((*context, *block))))


def picked(rng: Any) -> Callable[[Any], int]:
    return lambda law: int(rng.choice(len(law), p=law))


def stepping(share: Share) -> Callable[..., Any]:
    def step(target: Any, drafter: Any, context: Any, lookahead: int, rng: Any) -> Any:
        here = partial(share, target.vocabulary, lookahead)
        return blocks(
            target, drafter, context, lookahead, picked(rng), lambda _: rng.random(), here
        )

    return step


def looping(share: Share, period: int = 1_000) -> Callable[..., Any]:
    """Two drafts a block; coins that are so many positions apart are the same."""

    def generate(target: Any, drafter: Any, context: Any, tokens: int, rng: Any) -> Any:
        text: tuple[int, ...] = ()
        coins: dict[int, float] = {}
        here = partial(share, target.vocabulary, tokens)

        def coin(position: int) -> float:
            found = coins.get(position % period) if position >= period else None
            coins[position % period] = rng.random() if found is None else found
            return coins[position % period]

        while len(text) < tokens and not target.vocabulary.ends(text):
            seen = (*context, *text)
            text += blocks(target, drafter, seen, 2, picked(rng), coin, here)
        return text[:tokens]

    return generate


SHORT = {n: id_ for n, id_ in zip(MANY, EXACT, strict=False) if n <= checks.LONGEST_OF_STEPS}
OF_STEPS = ("joint/probed", "joint/probed-ending", *SHORT.values())
OF_TEXTS = tuple(f"end-to-end/{name}" for name in checks.TEXTS)


def right(vocabulary: Any, asked: int, i: int) -> float:
    return 1.0


def halved_at(lookahead: int, draft: int, *, eos: bool = False) -> Share:
    """Half of q for one draft of blocks of so many, or of texts of so many tokens."""

    def share(vocabulary: Any, asked: int, i: int) -> float:
        at = (asked, i, vocabulary.eos is not None) == (lookahead, draft, eos)
        return 0.5 if at else 1.0

    return share


STEP_BUGS = {
    "joint/probed": stepping(halved_at(2, 1)),
    "joint/probed-ending": stepping(halved_at(2, 1, eos=True)),
    **{id_: stepping(halved_at(n, n - 1)) for n, id_ in SHORT.items()},
}
TEXT_BUGS = {
    "end-to-end/probed": looping(halved_at(3, 1)),
    "end-to-end/probed-ending": looping(halved_at(3, 1, eos=True)),
    "end-to-end/probed-12-tokens": looping(right, period=11),
}


ASKED = {"verify": EXACT, "step": OF_STEPS, "generate": OF_TEXTS}


def outcomes(
    sampler: Callable[..., Any], contract: str, only: Sequence[str] | None = None
) -> dict[str, Any]:
    found = check(sampler, contract=contract, only=only or ASKED[contract]).results
    return {one.id: one for one in found}


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize(
    ("contract", "lossless"),
    [("step", stepping(right)), ("generate", looping(right)), ("verify", verify)],
)
def test_the_law_of_a_lossless_sampler_is_exact(contract: str, lossless: Any) -> None:
    found = outcomes(lossless, contract)
    assert set(found) == {*ASKED[contract]}
    for result in found.values():
        assert result.status == Status.PASSED
        assert result.evidence["total_variation"] < 1e-9


@pytest.mark.deep(one_in=16)
@pytest.mark.parametrize(
    ("contract", "id_"),
    [*(("step", id_) for id_ in OF_STEPS), *(("generate", id_) for id_ in OF_TEXTS)],
)
def test_a_bug_of_one_shape_is_found_there_alone(contract: str, id_: str) -> None:
    found = outcomes((STEP_BUGS | TEXT_BUGS)[id_], contract)
    assert [one for one, result in found.items() if result.status == Status.FAILED] == [id_]
    assert "from the target, exactly" in found[id_].message


Seen = Callable[[tuple[int, ...]], tuple[int, ...]]


def plain(seen: Seen) -> Callable[..., Any]:
    """A loop without drafts, whose target is shown something else than the context."""

    def generate(target: Any, drafter: Any, context: Any, tokens: int, rng: Any) -> Any:
        text: tuple[int, ...] = ()
        while len(text) < tokens and not target.vocabulary.ends(text):
            text += (picked(rng)(target.next_token(seen((*context, *text)))),)
        return text

    return generate


CHANGES: dict[str, Seen] = {
    "sorted": lambda context: tuple(sorted(context)),
    "the last two exchanged": lambda context: (*context[:-2], *context[:-3:-1]),
    "without the first": lambda context: context[1:],
    "the first is 0": lambda context: (0, *context[1:]),
    "the third is 0": lambda context: (*context[:2], *(0,) * (len(context) > 2), *context[3:]),
    "without a last 2": lambda context: context[:-1] if context[-1] == 2 else context,
}


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize("change", CHANGES)
def test_a_loop_that_reads_another_context_is_found(change: str) -> None:
    found = outcomes(plain(CHANGES[change]), "generate", ["end-to-end/probed"])
    assert found["end-to-end/probed"].status == Status.FAILED


class Greedy:
    """A generator that draws the likeliest token where a residual is drawn from."""

    def __init__(self, rng: Any) -> None:
        self.random, self.rng = rng.random, rng

    def choice(self, size: int, p: Any) -> int:
        left = abs(max(p) - 2 / 3) < 1e-9
        return int(np.argmax(p)) if left else int(self.rng.choice(size, p=p))


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize(("contract", "lossless"), [("step", stepping), ("generate", looping)])
def test_a_residual_has_more_than_one_token(contract: str, lossless: Any) -> None:
    """(p - q)+ is (0, 1/8, 1/4) at one place: 1/3 and 2/3."""

    def wrong(target: Any, drafter: Any, context: Any, asked: int, rng: Any) -> Any:
        return lossless(right)(target, drafter, context, asked, Greedy(rng))

    found = outcomes(wrong, contract, ["joint/probed-ending"] * (contract == "step"))
    assert {result.status for result in found.values()} == {Status.FAILED}


def test_a_text_that_is_too_short_is_no_text() -> None:
    def generate(target: Any, drafter: Any, context: Any, tokens: int, rng: Any) -> Any:
        return looping(right)(target, drafter, context, tokens, rng)[:2]

    (found,) = outcomes(generate, "generate", ["end-to-end/probed-12-tokens"]).values()
    assert found.status == Status.FAILED
    assert "returned 2 tokens: a text needs 12, or EOS at its end" in found.message


def test_a_law_that_is_another_each_time_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    laws = iter(
        [
            checks.ProbedBlock({(0,): 1 - off, (1,): off}, {(0,): 1.0}, off, 0.0, {}, None, {})
            for off in (0.25, 0.25, 0.125)
        ]
    )
    monkeypatch.setattr(checks, "probe_tokens", lambda *given, **options: next(laws))
    (result,) = check(stepping(right), contract="step", only=["joint/probed"]).results
    assert result.status == Status.NOT_APPLICABLE
    assert "its distribution differs when it is computed again" in result.message


def test_a_slow_step_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "LONGEST", 0.0)
    (result,) = check(stepping(right), contract="step", only=["joint/probed"]).results
    assert result.message == "cannot be probed: it takes more than 0 s"


def test_drawing_leaves_seconds_for_laws() -> None:
    laws = {"joint/probed", "joint/probed-ending", "joint/probed-8-drafts"}
    asked = ["joint/wide", "joint/deep", *laws]
    report = check(stepping(right), contract="step", only=asked, seconds=0.5)
    assert laws <= {one.id for one in report.results if one.status == Status.PASSED}


def test_a_step_that_hangs_in_its_first_call_is_not_waited_for() -> None:
    def step(target: Any, drafter: Any, context: Any, lookahead: int, rng: Any) -> Any:
        time.sleep(5)

    asked = check(step, contract="step", only=["joint/probed"], timeout=0.5, blocking=False)
    assert [one.finding for one in asked.results] == [Finding.UNANSWERED]


def test_a_step_that_ends_the_program_is_broken() -> None:
    def step(target: Any, drafter: Any, context: Any, lookahead: int, rng: Any) -> Any:
        raise SystemExit(0)

    (result,) = check(step, contract="step", only=["joint/probed"], blocking=False).results
    assert (result.status, result.finding) == (Status.FAILED, Finding.CONTRACT)


def test_steps_and_loops_in_low_precision_are_not_tried() -> None:
    for contract, sampler in (("step", stepping(right)), ("generate", looping(right))):
        for result in outcomes(
            capable(arrays="torch", dtype="float16")(sampler), contract
        ).values():
            assert result.message == "low precision: the distribution is not exact"


def unguarded(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
    """One draft; where nothing is left of (p - q)+, an id outside the vocabulary."""
    x, p, q = draft_tokens[0, 0], target_probs[0], draft_probs[0, 0]
    if rng.random() * q[x] < p[0, x]:
        last = np.searchsorted(np.cumsum(p[1]), rng.random(), side="right")
        return np.array([[x, last]]), np.array([2])
    left = np.cumsum(np.maximum(p[0] - q, 0))
    return np.array([[np.searchsorted(left, rng.random() * left[-1], side="right"), -1]]), [1]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_an_empty_residual_of_float32_is_a_failure_of_samplers_of_float32(dtype: Any) -> None:
    report = check(unguarded, only=["boundary/empty-residual"], dtype=dtype, batch=1)
    assert report.exit_code == (dtype == "float32")
    assert report.results[0].finding == Finding.EDGE
    assert bool(report.warnings) == (dtype == "float64")


def too_large(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
    """As an identity matrix of a large vocabulary: more memory than any machine has."""
    if target_probs.shape[2] > 10_000:
        np.empty(1 << 56, dtype=np.uint8)
    return verify(target_probs, draft_probs, draft_tokens, rng=rng)


def test_an_exact_law_that_takes_too_much_memory_is_not_tried() -> None:
    report = check(too_large, only=["joint/probed-vocabulary", "joint/probed-vocabulary-128k"])
    assert [one.status for one in report.results] == [Status.PASSED, Status.NOT_RUN]
    assert list(report.not_tried) == ["1 row, 1 draft, 131,080 tokens (not enough memory)"]
    assert report.exit_code == 0
