"""What an implementation is given: logits, arrays of its own, trees with nodes, generators."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

from proofs_tests.helpers.bugs.verifiers import BUGS, clean
from specref.adapters import reference
from specref.arrays import Floats
from specref.conformance.checks import independence
from specref.conformance.public import check
from specref.conformance.report import Report
from specref.conformance.status import Status
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import Capabilities, capable
from specref.contracts.fixtures import CHAIN_FIXTURES
from specref.contracts.verify import sample_batch
from specref.probing import probe_verify

pytestmark = pytest.mark.usefixtures("undiagnosed")

QUICK = ["smoke", "boundary", "replay", "joint/wide", "joint/eos", "joint/probed"]


def softmax(logits: Any) -> Any:
    return None if logits is None else special.softmax(logits, axis=2)


def reading(verify: Any, target: Any = softmax, drafter: Any = softmax) -> Any:
    """A verifier of probabilities, given what these functions make of its arguments."""

    def of_logits(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        with np.errstate(all="ignore"):
            return verify(target(target_probs), drafter(draft_probs), draft_tokens, rng=rng)

    return of_logits


def judged(verify: Any, **options: Any) -> Report:
    return check(verify, **{"only": QUICK, "detect_tv": 0.1, "inputs": "logits", **options})


def exponential(logits: Any) -> Any:
    return None if logits is None else np.exp(logits)


def same(laws: Any) -> Any:
    return laws


# Logits.


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_sampler_that_takes_the_softmax_passes(dtype: str) -> None:
    report = judged(reading(clean), rule="standard", dtype=dtype)
    assert report.exit_code == 0, report
    found = {r.id: r for r in report.results}
    assert "without sampling" in found["joint/probed"].message
    assert found["boundary/zero-coin"].status == Status.PASSED
    assert "logits" in found["boundary/equal-rows"].message


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize(
    ("target", "drafter"),
    [(same, same), (softmax, same), (same, softmax), (exponential, exponential),
     (softmax, exponential), (exponential, softmax)],
)  # fmt: skip
def test_a_sampler_that_forgets_it_fails(target: Any, drafter: Any) -> None:
    assert judged(reading(clean, target, drafter), blocking=False).exit_code == 1


@pytest.mark.deep
@pytest.mark.parametrize("bug", ["residual is p", "bonus of the longest row", "lenient"])
def test_bugs_are_found_beneath_logits(bug: str) -> None:
    assert judged(reading(BUGS[bug]())).exit_code == 1


@pytest.mark.deep
def test_probabilities_are_given_unless_it_is_claimed() -> None:
    assert judged(clean, inputs="probs").exit_code == 0
    assert judged(reading(clean), inputs="probs", blocking=False).exit_code == 1


def test_logits_are_logarithms_and_a_number_for_each_position() -> None:
    batch = sample_batch(CHAIN_FIXTURES["deep"], 24, np.random.default_rng(1))
    verifier = Verifier(clean, Capabilities(inputs="logits"))
    (p, q, drafts), _ = verifier.arguments(batch, np.random.default_rng(1))
    assert (drafts == batch.draft_tokens).all()
    assert np.allclose(softmax(p), batch.target_probs, rtol=1e-14, atol=0)
    assert np.allclose(softmax(q), batch.draft_probs, rtol=1e-14, atol=0)
    assert (np.isneginf(p) == (batch.target_probs == 0)).all()
    shifts = [np.exp(logits).sum(axis=2).mean(axis=0) for logits in (p, q)]
    assert len({round(float(shift), 9) for row in shifts for shift in row}) == 6
    for shift in shifts[1]:
        assert (abs(shifts[0] / shift - 1) > 0.3).all()
    with pytest.raises(ValueError, match="inputs = 'odds'"):
        Capabilities(inputs="odds")  # type: ignore[arg-type]


@capable(rule="standard", recovery="race", inputs="logits")
def by_coins(
    target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any, coins: Any
) -> Any:
    p, q = softmax(target_probs), softmax(draft_probs)
    return reference.verify(p, q, draft_tokens, rng=rng, coins=coins)


@pytest.mark.deep
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_coins_are_not_replayed_one_by_one(dtype: str) -> None:
    report = check(by_coins, only=QUICK, detect_tv=0.1, dtype=dtype)
    assert report.exit_code == 0, report
    found = {r.id: r for r in report.results}
    assert found["replay/coin-by-coin"].status == Status.NOT_APPLICABLE
    assert found["replay/permuted"].status == found["replay/edge-coins"].status == Status.PASSED


def test_logits_are_probed() -> None:
    p, q = np.array([[0.25, 0.75, 0.0], [0.5, 0.5, 0.0]]), np.array([[0.5, 0.25, 0.25]])
    law = probe_verify(by_coins, p, q, (0,)).distribution
    assert {block: round(weight, 9) for block, weight in law.items()} == {
        (0, 0): 0.25, (0, 1): 0.25, (1,): 0.5,
    }  # fmt: skip


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore:invalid value")
def test_trees_get_logits_too() -> None:
    def tree(p: Any, q: Any, drafts: Any, parents: Any, *, rng: Any) -> Any:
        return reference.verify_tree(softmax(p), softmax(q), drafts, parents, rng=rng)

    only = ["smoke", "joint/siblings"]
    claims = {"contract": "tree", "detect_tv": 0.3, "inputs": "logits", "only": only}
    assert check(tree, **claims).exit_code == 0
    assert check(reference.verify_tree, blocking=False, **claims).exit_code == 1


# Changes in place.


def scribbling(p: Floats, q: Any, drafts: Any, *, rng: Any) -> Any:
    answer = clean(p, q, drafts.copy(), rng=rng)
    p[:] = 0.25
    drafts[:] = 0
    if q is not None:
        q[:] = np.nan
    return answer


def test_a_sampler_may_use_its_arguments_as_scratch() -> None:
    report = check(scribbling, only=["smoke/answers", "smoke/inputs-unchanged"])
    (result,) = report.failures
    assert result.id == "smoke/inputs-unchanged"
    assert "in_place=true" in result.message
    only = ["smoke", "boundary", "joint/probed"]
    report = check(scribbling, only=only, detect_tv=0.3, in_place=True, rule="standard")
    assert report.exit_code == 0, report
    assert report.counts["passed"] > 15

    def wrong(p: Floats, q: Any, drafts: Any, *, rng: Any) -> Any:
        answer = BUGS["residual is p"]()(p, q, drafts, rng=rng)
        p[:] = 0
        return answer

    assert check(wrong, only=["joint/wide"], in_place=True).exit_code == 1


@pytest.mark.deep
def test_coins_may_be_changed_in_place() -> None:
    def verify(p: Any, q: Any, drafts: Any, *, rng: Any, coins: Any) -> Any:
        answer = reference.verify(p, q, drafts, rng=rng, coins=coins)
        coins.accept[:] = 0
        coins.race[:] = 1
        return answer

    claims = {"rule": "standard", "recovery": "race", "in_place": True}
    report = check(verify, only=QUICK, detect_tv=0.1, **claims)
    assert report.exit_code == 0, report


# Trees.


def never_empty(p: Any, q: Any, drafts: Any, parents: Any, *, rng: Any) -> Any:
    if (drafts < 0).all(axis=1).any():
        raise IndexError("no nodes")
    return reference.verify_tree(p, q, drafts, parents, rng=rng)


@pytest.mark.deep
def test_who_never_gets_empty_trees_is_judged_without_them() -> None:
    claims = {"contract": "tree", "algorithm": "topdown", "detect_tv": 0.3}
    by_itself = check(never_empty, **claims)
    assert by_itself.exit_code == 0, by_itself
    assert list(by_itself.not_tried) == ["with trees without nodes (raises IndexError)"]
    assert "empty_trees=false" in str([one.message for one in by_itself.results])
    report = check(never_empty, empty_trees=False, **claims)
    assert report.exit_code == 0, report
    by_status = {r.id: r.status for r in report.results}
    assert by_status["smoke/no-drafts"] == Status.NOT_APPLICABLE
    assert by_status["joint/siblings"] == by_status["boundary/ragged"] == Status.PASSED


def test_the_rest_of_its_mistakes_is_still_found() -> None:
    def lossy(p: Any, q: Any, drafts: Any, parents: Any, *, rng: Any) -> Any:
        return never_empty(np.roll(p, 1, axis=2), q, drafts, parents, rng=rng)

    only = ["joint/siblings", "boundary/ragged"]
    claims = {"contract": "tree", "detect_tv": 0.3, "empty_trees": False, "only": only}
    report = check(lossy, blocking=False, **claims)
    assert {"joint/siblings", "boundary/ragged"} <= {r.id for r in report.failures}


# Generators of some rows alone: `generators` is a dict, and the others draw from the global ones.


IDENTICAL = "independence/identical-rows"
LAW = ("smoke/answers", "smoke/deterministic", "joint/probed", IDENTICAL)


def of_some(bug: str = "") -> Callable[..., Any]:
    """The standard rule, by the noise of a batch; rows with a generator have their own."""
    torch = pytest.importorskip("torch", reason="not_run (torch is not installed)")

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


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(independence, "SIZES", [(64, 100, independence.SIZE)])


@pytest.mark.deep
@pytest.mark.usefixtures("few_rows")
def test_a_sampler_that_draws_globally_for_the_others_passes() -> None:
    report = check(of_some(), contract="verify", only=LAW)
    assert report.counts["passed"] == len(LAW), report


@pytest.mark.deep(one_in=3)
@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize(
    ("bug", "found"),
    [
        ("noise of row 0", IDENTICAL),
        ("a generator of the default seed", IDENTICAL),
        ("every row has one", "smoke/answers"),
    ],
)
def test_what_is_done_wrong_without_a_generator_is_found(bug: str, found: str) -> None:
    report = check(of_some(bug), contract="verify", only=[found])
    assert found in [one.id for one in report.failures], report


def test_a_list_is_of_all_rows() -> None:
    given: list[Any] = []

    def verify(target_probs, draft_probs, draft_tokens, *, generators):
        given.append((len(draft_tokens), generators))
        return of_some()(
            target_probs, draft_probs, draft_tokens, generators=dict(enumerate(generators))
        )

    assert not check(verify, contract="verify", only=["smoke/answers"]).failures
    assert all(len(generators) == rows for rows, generators in given)
