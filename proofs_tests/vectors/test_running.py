"""Implementations under the published vectors: right ones pass, wrong ones fail by name."""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from proofs_tests.helpers.vectors.files import FILES
from specref import zoo
from specref.adapters import torch_backend
from specref.adapters.reference import verify
from specref.batched import leading, ratios, verifier
from specref.contracts.capabilities import capable
from specref.vectors.by_law import question
from specref.vectors.reading import POLICIES
from specref.vectors.running import chunks, run

FORMATS = ["float16", "float32", "float64"]


def failing(implementation, rule_="standard", **options):
    done = run(implementation, FILES[rule_]["cases"], algorithm=rule_, **options)
    assert bool(done) == (done.exit_code == 0)
    return {one.id.split("/", 1)[1] for one in done.failures}


def by_cdf(weights, final, search="right"):
    ends = np.cumsum(weights)
    return np.searchsorted(ends, final * ends[-1], side=search)


def by_closed_cdf(weights, final, highest_first=False):
    """Cumulative >= u, and no token of weight 0."""
    (order,) = np.nonzero(weights)
    order = order[::-1] if highest_first else order
    return order[by_cdf(weights[order], final, "left")]


def inverse(accept=lambda u, p, q: u * q < p, residual=lambda p, q: p - q, last=by_cdf):
    """Standard verification of a batch of one, the last token by an inverse CDF."""

    @capable(rule="standard", recovery="inverse")
    def verify(target_probs, draft_probs, draft_tokens, *, coins):
        (p,), (drafts,) = target_probs, draft_tokens
        q = np.eye(p.shape[1])[drafts] if draft_probs is None else draft_probs[0]
        kept = 0
        while kept < len(drafts) and (x := drafts[kept]) >= 0:
            if not accept(coins.accept[0, kept], p[kept, x], q[kept, x]):
                break
            kept += 1
        rejected = kept < (drafts >= 0).sum()
        weights = np.maximum(residual(p[kept], q[kept]), 0) if rejected else p[kept]
        tokens = np.full((1, len(drafts) + 1), -1)
        tokens[0, : kept + 1] = [*drafts[:kept], last(weights, coins.final[0])]
        return tokens, np.array([kept + 1])

    return verify


def test_right_ones_pass():
    assert failing(verify) == set()
    assert failing(inverse()) == set()
    assert failing(zoo.ALL["product-instead-of-ratio"].make(), last="race") == set()


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("recovery", ["race", "inverse"])
def test_the_torch_backend_passes(recovery, dtype):
    """All cases that the format decides, and it is said of the others that they need a wider."""
    pytest.importorskip("torch", reason="not_run (no torch)")
    for name, load in (
        ("standard", torch_backend.load_verify),
        ("block", torch_backend.load_verify_block),
    ):
        cases = [case for case in FILES[name]["cases"] if case["level"] == "verify"]
        done = run(load(dtype=dtype, recovery=recovery), cases, algorithm=name)
        assert done.exit_code == 0, done.failures
        narrow = FORMATS[: FORMATS.index(dtype) + 1]
        decided = [case for case in cases if case["precision"] in narrow]
        assert done.counts["passed"] == len(decided) > 40
        assert sum(done.counts.values()) == len(cases)


def test_block_verification_is_not_token_verification():
    pytest.importorskip("torch", reason="not_run (no torch)")
    wrong = failing(torch_backend.load_verify_block(recovery="inverse"), "standard")
    assert "later-coins/001" in wrong


def test_rules_are_told_apart():
    wrong = failing(inverse(), "block")
    assert {"failures-overruled/001", "joint-ratio/001", "residual-of-prefix/001"} <= wrong


PLANTED = {
    "accepts at u = 0 where p = 0": (
        inverse(accept=lambda u, p, q: u * q <= p),
        "zero-target-mass/001",
    ),
    "coins of single precision": (
        inverse(accept=lambda u, p, q: np.float32(u) * q < p),
        "coin-at-ratio/002",
    ),
    "inverted ratio": (inverse(accept=lambda u, p, q: u * p < q), "ratio-above-one/001"),
    "always accepts": (inverse(accept=lambda u, p, q: True), "interior/004"),
    "tiny ratios are 0": (
        inverse(accept=lambda u, p, q: u < p / q * (p / q > 1e-30)),
        "subnormal-ratio/001",
    ),
    "residual is p": (inverse(residual=lambda p, q: p), "zero-draft-mass/003"),
    "residual is |p - q|": (inverse(residual=lambda p, q: abs(p - q)), "interior/004"),
    "impossible token at u = 0": (
        inverse(last=partial(by_cdf, search="left")),
        "zeros-at-the-ends/001",
    ),
    "rejects where p = q": (inverse(accept=lambda u, p, q: u * q < p - 1e-9), "tie-at-one/002"),
}


def bonus_of_the_row_before(batch, count):
    p = batch.p[batch.rows, np.maximum(count - 1, 0)]
    full = (count == batch.lens)[:, None]
    q = batch.q[batch.rows, np.minimum(count, batch.q.shape[1] - 1)]
    return np.where(full, p, np.maximum(batch.p[batch.rows, count] - q, 0))


RACING = {
    "counting acceptances": (
        verifier(accepted=lambda batch: (batch.accept < ratios(batch)).sum(axis=1)),
        "later-coins/001",
    ),
    "one coin for all": (
        verifier(accepted=lambda batch: leading(batch.accept[:, :1] < ratios(batch))),
        "coins-in-order/001",
    ),
    "bonus of the row before": (
        verifier(weights=bonus_of_the_row_before),
        "bonus-of-last-row/003",
    ),
    **{
        name: (zoo.ALL[name].make(), case)
        for name, case in (
            ("padding-is-last-token", "truncated-draft/001"),
            ("bonus-of-longest-row", "truncated-draft/001"),
            ("missing-q-recovers-from-p", "one-hot-drafts/002"),
            ("le-at-zero", "zero-target-mass/001"),
            ("zero-noise-wins", "noise-zero/001"),
            ("ratio-in-float16", "subnormal-ratio/001"),
            ("counts-without-last", "interior/001"),
        )
    },
}


@pytest.mark.parametrize("name", [*PLANTED, *RACING])
def test_planted_bugs_fail_by_name(name):
    implementation, case = {**PLANTED, **RACING}[name]
    assert case in failing(implementation, last="race" if name in RACING else "inverse")


UP_TO = {"accept": lambda u, p, q: u * q <= p and p > 0}


def test_legitimate_conventions_are_declared_not_forgiven():
    up_to = inverse(**UP_TO)
    assert failing(up_to) != set()
    assert failing(up_to, policies=["accept-up-to"]) == set()
    assert run(up_to, FILES["standard"]["cases"]).fits == "--last inverse --policy accept-up-to"
    impossible = inverse(accept=lambda u, p, q: u * q <= p)
    assert "zero-target-mass/001" in failing(impossible, policies=["accept-up-to"])
    assert run(impossible, FILES["standard"]["cases"]).fits == ""


def test_closed_cdf_is_a_policy():
    closed = inverse(last=by_closed_cdf)
    assert failing(closed) == {
        case["id"].split("/", 1)[1]
        for case in FILES["standard"]["cases"]
        for one in case.get("either", [])
        if one["policies"] == ["closed-cdf"]
        if one["tokens"]["inverse"] != case["expected"]["tokens"]["inverse"]
    }
    assert failing(closed, policies=["closed-cdf"]) == set()


def lenient(highest_first):
    """Both policies at once."""
    return inverse(**UP_TO, last=partial(by_closed_cdf, highest_first=highest_first))


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("last", ["inverse", "descending"])
def test_two_policies_may_be_declared_together(last):
    both = {"policies": ["accept-up-to", "closed-cdf"]}
    sampler = lenient(highest_first=last == "descending")
    assert failing(sampler, last=last, **both) == set()
    backwards = {"policies": both["policies"][::-1]}
    assert failing(sampler, last=last, **backwards) == set()
    assert run(sampler, FILES["standard"]["cases"]).fits == (
        f"--last {last} --policy accept-up-to --policy closed-cdf"
    )


@pytest.mark.deep
def test_one_policy_is_not_enough_for_those_who_follow_two():
    sampler = lenient(highest_first=True)
    needed = {"coin-at-ratio/003", "certain-draft/002", "one-hot-draft/003"}
    for policy in POLICIES:
        assert needed <= failing(sampler, last="descending", policies=[policy])


@pytest.mark.deep
def test_a_failure_says_which_convention_it_follows():
    sampler = lenient(highest_first=True)
    done = run(sampler, FILES["standard"]["cases"], last="inverse")
    notes = {one.id.split("/", 1)[1]: one.note for one in done.failures}
    both = "--policy accept-up-to --policy closed-cdf"
    assert notes["coin-at-ratio/003"] == f"what {both} --last descending expects"
    assert notes["zeros-at-the-ends/001"] == "what --last descending expects"
    usual = run(inverse(), FILES["standard"]["cases"], policies=["accept-up-to"])
    assert "what --last inverse or race without --policy expects" in {
        one.note for one in usual.failures
    }
    wrong = run(inverse(residual=lambda p, q: p), FILES["standard"]["cases"])
    assert any(not one.note for one in wrong.failures)


def test_without_ragged_rows_every_place_has_a_draft():
    seen = []

    def full(target_probs, draft_probs, draft_tokens, *, coins):
        seen.append(draft_tokens.copy())
        return inverse()(target_probs, draft_probs, draft_tokens, coins=coins)

    for name in ("standard", "block"):
        run(full, FILES[name]["cases"], ragged=False)
    assert len(seen) > 100
    assert all(np.all(tokens >= 0) for tokens in seen)


def test_what_is_not_claimed_is_not_applicable():
    done = run(verify, FILES["standard"]["cases"], dtype="float32", ragged=False, one_hot=False)
    notes = {one.note for one in done.results if one.status == "not_applicable"}
    assert done.exit_code == 0
    assert notes == {
        "needs float64",
        "it is never called without draft_probs",
        "it never gets rows with fewer drafts",
    }


def test_errors_are_failures_with_their_message():
    def raising(p, q, drafts, *, coins):
        raise RuntimeError("no kernel")

    done = run(raising, FILES["standard"]["cases"][:2])
    assert [one.note for one in done.failures] == ["raised RuntimeError: no kernel"] * 2


def test_errors_are_failures_of_those_without_coins():
    def at_times(p, q, drafts, *, rng):
        if rng.random() < 0.25:
            raise RuntimeError("no kernel")
        return verify(p, q, drafts, rng=rng)

    def shapeless(p, q, drafts, *, rng):
        return rng.random() < 0.25

    (one,), (other,) = (
        run(code, FILES["standard"]["cases"][:1]).failures for code in (at_times, shapeless)
    )
    assert one.note.startswith("raises RuntimeError: no kernel")
    assert one.note.endswith(" with probability 0.25")
    assert "returned a bool: expected a pair (tokens, counts)" in other.note


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"last": "argmax"}, "expected one of inverse, descending, race"),
        ({"policies": ["acceptable"]}, "expected one of accept-up-to, closed-cdf"),
        ({"dtype": "bfloat16", "arrays": "torch"}, "expected one of float16"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        run(verify, [], **options)


def stuck_in_two_places(target_probs, draft_probs, draft_tokens, *, coins):
    if target_probs.shape[2] == 4 or draft_tokens.shape[1] == 3:
        time.sleep(0.6)
    return verify(target_probs, draft_probs, draft_tokens, rng=None, coins=coins)


def bonus_alone(target_probs, draft_probs, draft_tokens, *, rng):
    ends = np.cumsum(target_probs[0, 0, ::-1])
    tokens = np.full((1, draft_tokens.shape[1] + 1), -1)
    tokens[0, 0] = np.searchsorted(ends, rng.random() * ends[-1], side="right")
    return tokens, np.array([1])


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize(
    ("implementation", "options"),
    [(verify, {}), (bonus_alone, {}), (stuck_in_two_places, {"timeout": 0.3})],
)
def test_results_do_not_depend_on_the_executor(implementation, options):
    """Those after the first call that does not return are not run, whoever made them."""
    cases = [case for case in FILES["standard"]["cases"] if case["level"] == "verify"]
    with ThreadPoolExecutor(2) as threads:
        many = run(implementation, cases, executor=threads, **options)
    assert many == run(implementation, cases, **options)
    assert len(chunks(cases)) > 2


def test_cases_that_differ_in_coins_alone_go_to_one_worker():
    cases = [case for case in FILES["standard"]["cases"] if case["level"] == "verify"]
    parts = [{question(case) for case in part} for part in chunks(cases)]
    assert sum(map(len, parts)) == len(set().union(*parts)) < len(cases)
    assert sorted(case["id"] for part in chunks(cases) for case in part) == sorted(
        case["id"] for case in cases
    )
