"""Every check fails some planted bug, and passes the clean sampler and its look-alikes.

A clean sampler fails a statistical check with probability at most 1e-9. The bugs are far enough
from lossless (total variation above 0.05, or 256 coins that agree) that a check misses one with
probability below 1e-3 at its own number of trials; seeds are fixed.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from proofs_tests.helpers.bugs import planted
from proofs_tests.helpers.bugs.everywhere.planted import PLANTED
from proofs_tests.helpers.bugs.verifiers import (
    BUGS,
    LOOK_ALIKES,
    clean,
    exponential,
    first_row,
    kept_for,
    uniform,
    verifying,
)
from specref.adapters import reference
from specref.algorithms import standard
from specref.chance import Sampled
from specref.coins import Coins
from specref.conformance.checks import (
    CHECKS,
    acceptance,
    boundary,
    drafting,
    independence,
    joint,
    replay,
    smoke,
)
from specref.conformance.public import check
from specref.conformance.status import CheckResult, Finding, Status
from specref.contracts.capabilities import capable
from specref.contracts.contract import Contract
from specref.contracts.table import DRAFTER, GENERATE, STEP, VERIFY
from specref.examples import lossy
from specref.examples.correct import verify as correct
from specref.models import Model
from specref.statistics.campaign.verdict import AcceptanceResult, Conformance
from specref.statistics.floats.floats import verify_float64
from specref.theory.metrics import METRICS
from specref.vocabulary import Tokens
from specref.zoo import ALL

pytestmark = pytest.mark.usefixtures("undiagnosed")

Ask = Callable[..., Any]
MINE = [
    one.id
    for module in (smoke, replay, boundary, joint, drafting, acceptance, independence)
    for one in module.CHECKS
] + [one.id for one in joint.EVERYWHERE]
MINE += [one.id for one in boundary.COSTLY]
MINE += [
    f"{stage}/{name}" for stage in ("iterations", "end-to-end") for name in joint.CHAIN_FIXTURES
]


def asked(id_: str, sampler: Ask, **options: Any) -> CheckResult:
    (result,) = (
        r for r in check(sampler, only=[id_], blocking=False, **options).results if r.id == id_
    )
    return result


# Coins as arguments: the reference, and ways to use them wrongly.


def with_coins(use: Callable[[Coins], Coins]) -> Ask:
    @capable(rule="standard", recovery="race")
    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, coins: Coins) -> Any:
        q = draft_probs
        if q is None:
            q = (draft_tokens[..., None] == np.arange(target_probs.shape[2])).astype(float)
        tokens = verify_float64(target_probs, q, draft_tokens, use(coins))
        return tokens, (tokens >= 0).sum(axis=1)

    return verify


# Other misbehaviour.


def needs_q(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
    tokens, counts = clean(target_probs, draft_probs, draft_tokens, rng=rng)
    return tokens, counts - (draft_probs is None)


def stepping_from(own: Callable[[], np.random.Generator]) -> Ask:
    """A right step with a generator of its own."""

    def step(target: Any, drafter: Any, context: Any, lookahead: int, rng: Any) -> Tokens:
        return standard.step(target, drafter, context, lookahead, Sampled(own()))

    return step


def seeded_anew() -> np.random.Generator:
    return np.random.default_rng(0)


def empty(*arguments: Any, **given: Any) -> Tokens:
    return ()


# Texts, and drafts with the laws that they are declared to come from.


def generate(
    target: Model,
    drafter: Model,
    context: Tokens,
    tokens: int,
    rng: np.random.Generator,
    step: Ask = standard.step,
) -> Tokens:
    text: Tokens = ()
    while len(text) < tokens and not target.vocabulary.ends(text):
        text += step(target, drafter, (*context, *text), 2, Sampled(rng))
    return text[:tokens]


def forgetful(
    target: Model, drafter: Model, context: Tokens, tokens: int, rng: np.random.Generator
) -> Tokens:
    """Each iteration forgets the first token of the text."""

    def step(target: Model, drafter: Model, context: Tokens, *rest: Any) -> Tokens:
        return standard.step(target, drafter, context[1:] or context, *rest)

    return generate(target, drafter, context, tokens, rng, step)


def draft(
    drafter: Model,
    context: Tokens,
    lookahead: int,
    rng: np.random.Generator,
    warp: Callable[[Any], Any] = lambda q: q,
) -> Any:
    drafts: list[int] = []
    laws = []
    for _ in range(lookahead):
        laws.append(drafter.next_token((*context, *drafts)))
        law = warp(laws[-1])
        drafts.append(int(rng.choice(len(law), p=law / law.sum())))
    return drafts, laws


def top_2_raw_q(drafter: Model, context: Tokens, lookahead: int, rng: Any) -> Any:
    return draft(drafter, context, lookahead, rng, lambda q: np.where(q >= np.sort(q)[-2], q, 0))


def fifth_row_again(drafter: Model, context: Tokens, lookahead: int, rng: Any) -> Any:
    """From the sixth draft on it declares the row of the fifth."""
    tokens, rows = draft(drafter, context, lookahead, rng, lambda q: q)
    return tokens, [rows[min(i, 4)] for i in range(len(tokens))]


V, S, G, D = VERIFY, STEP, GENERATE, DRAFTER
BAD_STEP = planted.residual_is_target
KILLERS: dict[str, tuple[Contract, Ask]] = {
    "smoke/answers": (V, ALL["returns-nothing"].make()),
    "smoke/calls": (S, empty),
    "smoke/batch-of-one": (V, ALL["squeezes-batch-of-one"].make()),
    "smoke/no-drafts": (V, BUGS["bonus of the longest row"]()),
    "smoke/one-hot": (V, needs_q),
    "smoke/inputs-unchanged": (V, ALL["writes-into-target-probs"].make()),
    "smoke/deterministic": (V, ALL["ignores-its-generator"].make()),
    "smoke/calls-deterministic": (S, stepping_from(np.random.default_rng)),
    "smoke/large-vocabulary": (V, ALL["ids-in-fifteen-bits"].make()),
    "smoke/calls-vary": (V, ALL["own-generator"].make()),
    "smoke/texts-vary": (S, stepping_from(seeded_anew)),
    "smoke/rows-vary": (V, BUGS["rows share noise"]()),
    "replay/coin-by-coin": (V, with_coins(lambda coins: Coins(1 - coins.accept, coins.race))),
    "replay/edge-coins": (V, ALL["le-at-zero"].make()),
    "replay/permuted": (V, with_coins(lambda c: Coins(c.accept, c.race[:1] + 0 * c.race))),
    "boundary/equal-rows": (V, verifying(accept=lambda u, p, q: u * q < 0.95 * p)),
    "boundary/disjoint": (V, BUGS["always accepts"]()),
    "boundary/certain": (V, BUGS["always accepts"]()),
    "boundary/forbidden": (V, BUGS["residual is |p - q|"]()),
    "boundary/tiny": (V, ALL["ratio-in-float16"].make()),
    "boundary/ragged": (V, BUGS["bonus of the longest row"]()),
    "boundary/rare-draft": (V, ALL["coarse-uniforms"].make()),
    "joint/exact": (S, BAD_STEP),
    "joint/everywhere": (S, PLANTED["two corners"].step),
    "joint/wide": (V, BUGS["lenient"]()),
    "joint/deep": (V, BUGS["positions share a uniform"]()),
    "joint/eos": (V, BUGS["residual is p"]()),
    "joint/batch-of-one": (V, BUGS["batch of one"]()),
    "joint/beside-idle": (V, ALL["dead-row-overwrites-q"].make()),
    "joint/one-hot": (V, BUGS["residual is p"]()),
    "joint/declared-q-wide": (D, top_2_raw_q),
    "joint/declared-q-deep": (D, top_2_raw_q),
    "joint/declared-q-eos": (D, top_2_raw_q),
    "joint/declared-q-long": (D, fifth_row_again),
    "acceptance/wide": (V, capable(rule="standard")(partial(LOOK_ALIKES["accepts half"]))),
    "acceptance/deep": (V, BUGS["lenient"]()),
    "acceptance/bound-wide": (V, BUGS["lenient"]()),
    "acceptance/bound-deep": (V, BUGS["lenient"]()),
    "acceptance/bound-eos": (V, BUGS["lenient"]()),
    "independence/rows-wide": (V, BUGS["pairs of rows share noise"]()),
    "independence/rows-deep": (V, BUGS["pairs of rows share noise"]()),
    "independence/rows-eos": (V, BUGS["pairs of rows share noise"]()),
    "iterations/wide": (V, BUGS["calls share numbers"]()),
    "iterations/deep": (V, BUGS["residual is p"]()),
    "iterations/eos": (V, BUGS["residual is p"]()),
    "end-to-end/wide": (G, forgetful),
    "end-to-end/deep": (G, forgetful),
    "end-to-end/eos": (G, forgetful),
}
NO_LENGTHS = {"acceptance/eos"}  # a block that ends with EOS does not tell its accepted length


def test_every_check_has_a_bug_that_it_fails() -> None:
    assert set(MINE) - NO_LENGTHS == set(KILLERS)
    assert {one.id for one in CHECKS} >= set(KILLERS)


@pytest.mark.deep(one_in=24)
@pytest.mark.parametrize("id_", KILLERS)
def test_a_check_fails_its_bug(id_: str) -> None:
    contract, bug = KILLERS[id_]
    result = asked(id_, bug, contract=contract)
    rare = id_ == "replay/edge-coins"  # in float64
    assert result.status == (Status.PASSED if rare else Status.FAILED), result.message
    assert result.message
    assert result.finding == FINDINGS.get(id_, Finding.LAW)


FINDINGS = {
    id_: finding
    for finding, ids in (
        (
            Finding.CONTRACT,
            "smoke/answers smoke/calls smoke/batch-of-one smoke/one-hot smoke/inputs-unchanged "
            "smoke/deterministic smoke/calls-deterministic smoke/large-vocabulary "
            "replay/coin-by-coin replay/permuted",
        ),
        (Finding.EDGE, "replay/edge-coins"),
        (
            Finding.DEPENDENCE,
            "smoke/calls-vary smoke/texts-vary smoke/rows-vary "
            "independence/rows-wide independence/rows-deep independence/rows-eos",
        ),
        (Finding.ACCEPTANCE, "boundary/equal-rows acceptance/wide acceptance/deep"),
    )
    for id_ in ids.split()
}
"""What a bug of `KILLERS` breaks, where that is not the law."""


CLEAN = {V: clean, S: reference.step, G: generate, D: draft}


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("contract", CLEAN)
def test_the_clean_sampler_of_each_contract_passes(contract: Contract) -> None:
    report = check(CLEAN[contract], contract=contract, only=MINE, detect_tv=0.3)
    assert report.failures == ()
    assert report.exit_code == 0


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_lossless_look_alikes_pass(name: str) -> None:
    report = check(LOOK_ALIKES[name], only=MINE, detect_tv=0.2)
    assert report.failures == ()
    assert report.exit_code == 0


def test_the_clean_sampler_passes_with_coins() -> None:
    report = check(with_coins(lambda coins: coins), only=["replay"])
    assert report.failures == ()
    assert {r.id for r in report.results if r.status == Status.PASSED} >= {
        "replay/coin-by-coin",
        "replay/edge-coins",
        "replay/permuted",
    }


# What a failure says.


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("coin", [uniform, exponential])
def test_rows_that_share_coins_are_named_before_their_law_looks_wrong(coin: Any) -> None:
    name = "uniforms" if coin is uniform else "noise"
    report = check(verifying(**{name: first_row(coin)}), only=MINE, detect_tv=0.3)
    (failure,) = report.failures
    assert failure.id == "smoke/rows-vary"
    said = "accepted equally many drafts" if coin is uniform else "had the same last one"
    assert said in failure.message
    assert report.counts["not_run"] > 10


@pytest.mark.deep
def test_numbers_kept_between_calls_are_dependence_not_a_wrong_law() -> None:
    bug = verifying(uniforms=kept_for(3, uniform), noise=kept_for(3, exponential))
    assert asked("joint/wide", bug).status == Status.PASSED
    assert asked("independence/rows-wide", bug).status == Status.PASSED
    assert asked("joint/beside-idle", bug).message.startswith("blocks depend on earlier ones")
    said = asked("smoke/calls-vary", bug).message
    assert said == "calls repeat the random numbers of 1 calls before"


SHARING = {
    "distant rows share noise": ("rows", "identical rows 1000 apart share"),
    "distant rows share uniforms": ("rows", "identical rows 777 apart share"),
    "calls take turns": ("calls", "calls repeat the random numbers of 60 calls before"),
}


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("name", SHARING)
def test_distant_rows_and_calls_that_share_numbers_are_named(name: str) -> None:
    kind, message = SHARING[name]
    assert asked(f"smoke/{kind}-vary", BUGS[name]()).message.startswith(message)
    # Nothing else finds what is so far apart.
    assert asked("joint/wide", BUGS[name](), detect_tv=0.2).status == Status.PASSED
    assert asked("independence/rows-wide", BUGS[name](), detect_tv=0.2).status == Status.PASSED


def test_independent_values_repeat_at_no_distance() -> None:
    # At most 1e-12 each, by Hoeffding's inequality.
    rng = np.random.default_rng(1)
    for _ in range(100):
        values = rng.choice(4, size=1000, p=[0.5, 1 / 6, 1 / 6, 1 / 6])
        values[rng.random(1000) < 0.3] = -1
        assert smoke.repeats(values) is None


def test_rules_without_randomness_of_their_own_are_not_accused() -> None:
    # Counts that never vary say nothing of shared uniforms.
    never = verifying(accept=lambda u, p, q: u < 0, residual=lambda p, q, x: p, rule=None)
    assert asked("smoke/rows-vary", never).status == Status.PASSED
    assert asked("smoke/calls-vary", never).status == Status.PASSED


@pytest.mark.deep
def test_the_place_that_fits_least_is_named() -> None:
    # Only rows beside idle ones are wrong, and only first ones: never the idle place itself.
    result = asked("joint/beside-idle", ALL["dead-row-overwrites-q"].make())
    assert "lookahead 0" not in result.message
    assert "at least" in result.message


def test_a_half_accepting_rule_is_lossless_and_deflated() -> None:
    rule = capable(rule="standard")(partial(LOOK_ALIKES["accepts half"]))
    report = check(rule, only=["joint/wide", "acceptance"], detect_tv=0.1)
    assert {failure.id for failure in report.failures} == {"acceptance/wide", "acceptance/deep"}
    assert all("deflated" in failure.message for failure in report.failures)
    assert not report.lossy
    assert report.exit_code == 1


def test_a_drafter_that_drafts_nothing_is_inconclusive() -> None:
    result = asked("joint/declared-q-wide", lambda drafter, context, lookahead, rng: ((), ()),
                   contract=D)  # fmt: skip
    assert result.status == Status.INCONCLUSIVE


DRAFTS: list[tuple[Any, str]] = [
    (None, "returned a NoneType: expected a pair"),
    (((1,), [[0.5, 0.5, 0, 0, 0], [1, 0, 0, 0, 0]]), r"q has shape \(2, 5\): expected \(1, 5\)"),
    (((1.0,), [[1, 0, 0, 0, 0]]), r"token 0 is 1\.0"),
    (((5,), [[1, 0, 0, 0, 0]]), "token 0 is 5: expected 0 <= id < 5"),
    (((1, 1, 1), [[0, 1, 0, 0, 0]] * 3), "3 drafts: expected at most 2"),
    (((1,), [[0.5, 0, 0, 0, 0]]), "sums to"),
    (((1,), [[float("nan"), 1, 0, 0, 0]]), "nan"),
    (((1,), [[-1, 2, 0, 0, 0]]), "-1"),
    (((1,), "q"), "could not convert"),
    (((0,), [[0, 1, 0, 0, 0]]), "a draft that its declared q excludes"),
]


@pytest.mark.parametrize(("raw", "message"), DRAFTS)
def test_wrong_drafts_are_named(raw: Any, message: str) -> None:
    result = asked("joint/declared-q-wide", lambda *arguments, rng: raw, contract=D)
    assert result.status == Status.FAILED
    assert re.search(message, result.message), result.message


def argmax_step(target: Any, drafter: Any, context: Any, lookahead: int, chance: Any) -> Any:
    return (int(np.argmax(target.next_token(context))),)


def own_bonus(rng: np.random.Generator) -> Ask:
    """Right, but its bonus token does not come from chance."""

    def step(target: Any, drafter: Any, context: Any, lookahead: int, chance: Any) -> Any:
        block = standard.step(target, drafter, context, lookahead, chance)
        if len(block) <= lookahead:
            return block
        p = target.next_token((*context, *block[:-1])).astype(float)
        return (*block[:-1], int(rng.choice(len(p), p=p)))

    return step


def endless(target: Any, drafter: Any, context: Any, lookahead: int, chance: Any) -> Any:
    while chance.accept(0.5, "again"):
        pass
    return (0,)


def broken(target: Any, drafter: Any, context: Any, lookahead: int, chance: Any) -> Any:
    raise OverflowError("too much")


@pytest.mark.parametrize(
    ("step", "status", "said"),
    [
        (endless, Status.NOT_APPLICABLE, "random decisions on one path"),
        (broken, Status.FAILED, "raised OverflowError: too much"),
        (argmax_step, Status.INCONCLUSIVE, "takes no decision from chance: it asked for nothing"),
        (
            own_bonus(np.random.default_rng(1)),
            Status.INCONCLUSIVE,
            "no function of chance: of two runs with the same choices",
        ),
    ],
)
def test_steps_that_cannot_be_enumerated_are_said_to_be(step: Ask, status: str, said: str) -> None:
    result = asked("joint/exact", step, contract=S)
    assert (result.status, said in result.message) == (status, True), result.message


def test_steps_that_are_no_function_of_chance_are_not_called_lossy_for_it() -> None:
    asked_for = ["joint/exact", "joint/everywhere", "joint/wide"]
    report = check(
        own_bonus(np.random.default_rng(1)), contract="step", only=asked_for, detect_tv=0.3
    )
    undecided = [one.id for one in report.results if one.status == Status.INCONCLUSIVE]
    assert undecided == ["joint/exact"]
    assert report.exit_code == 2


def by_rng(target: Any, drafter: Any, context: Any, lookahead: int, rng: Any) -> Any:
    return standard.step(target, drafter, context, lookahead, Sampled(rng))


def in_floats(target: Any, drafter: Any, context: Any, lookahead: int, chance: Any) -> Any:
    return (chance.draw(target.next_token(context).astype(float), "token"),)


def converting(target: Any, drafter: Any, context: Any, lookahead: int, chance: Any) -> Any:
    p = target.next_token(context)
    return (chance.draw(p, "token") if float(p[0]) < 2 else 0,)


LINE = converting.__code__.co_firstlineno + 2


def for_three_tokens(target: Any, drafter: Any, context: Any, lookahead: int, chance: Any) -> Any:
    assert len(target.vocabulary) == 3
    return (chance.draw(target.next_token(context), "token"),)


def raising(target: Any, drafter: Any, context: Any, lookahead: int, chance: Any) -> Any:
    """Raises where the drafter is sure of the first token."""
    if drafter.next_token(context)[0] == 1:
        raise OverflowError("too sure")
    return (chance.draw(target.next_token(context), "token"),)


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (by_rng, "takes no chance"),
        (in_floats, "a number is converted (float,"),
        (converting, f"Fractions have, too (line {LINE} of test_checks.py)"),
        (for_three_tokens, "raised AssertionError"),
        (raising, "raises OverflowError: too sure at q(·) = (1, 0)"),
        (own_bonus(np.random.default_rng(1)), "no function of chance"),
    ],
)
def test_steps_that_do_not_compute_with_all_rows_are_not_exercised(step: Ask, reason: str) -> None:
    result = asked("joint/everywhere", step, contract=S)
    assert result.status == Status.NOT_APPLICABLE
    assert "not exercised: " in result.message
    assert reason in result.message


@pytest.mark.deep
def test_a_bug_in_a_corner_is_refuted_with_rows_and_a_right_step_is_proved() -> None:
    step = PLANTED["two corners"].step
    assert asked("joint/exact", step, contract=S).status == Status.PASSED
    result = asked("joint/everywhere", step, contract=S)
    assert "lossy where p(a) > 97/100, q(b)^2 > 9/10: TV 1/2 at p(·) = (1, 0)" in result.message
    assert result.evidence["conditions"] == ["p(a) > 97/100", "q(b)^2 > 9/10"]
    proved = asked("joint/everywhere", standard.step, contract=S)
    assert proved.status == Status.PASSED
    assert "proved for every p and q over 2 tokens: 10 regions at lookahead 1" in proved.message
    assert "error of the identity tests <= 2^-125" in proved.message


def test_what_a_few_seconds_leave_open_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint, "BUDGET", 1e-9)
    result = asked("joint/everywhere", standard.step, contract=S)
    assert result.status == Status.NOT_APPLICABLE
    assert "not exercised to the end: 4 pieces are open" in result.message


def test_what_a_sampler_does_not_take_is_not_applicable() -> None:
    for id_, sampler, options, why in (
        ("joint/one-hot", correct, {"one_hot": False}, "does not take draft_probs=None"),
        (
            "smoke/calls-deterministic",
            stepping_from(np.random.default_rng),
            {"contract": "step", "seeded": False},
            "does not claim to be deterministic under a seed",
        ),
    ):
        result = asked(id_, sampler, **options)
        assert (result.status, result.message) == (Status.NOT_APPLICABLE, why)


def test_too_few_trials_say_what_was_seen_and_what_it_takes() -> None:
    """The lossy sampler has nearly decided evidence after 300 trials: that is not hidden."""
    result = asked("joint/wide", lossy.verify, trials=300, one_hot=False)
    assert result.status == Status.INCONCLUSIVE
    evidence = result.evidence
    assert 1 < evidence["log10_evidence"] < evidence["log10_threshold"]
    assert f"(TV 0.05 takes {evidence['needed']:,} trials)" in result.message
    found = f"only TV ≥ {evidence['detectable_tv']:.3f} would be detected ("
    assert f"300 trials are too few: {found}" in result.message
    assert f"evidence 10^{evidence['log10_evidence']:.1f}, where 10^10.9 decides" in result.message
    seen = (f"(seen {estimate:.4f}; " for estimate, _, _ in evidence["tv"].values())
    assert any(words in result.message for words in seen)


def test_too_few_drafts_and_tokens_say_so_too() -> None:
    def drafts(drafter: Any, context: Any, lookahead: int, rng: Any) -> Any:
        q = [drafter.next_token(context)] * lookahead
        return [int(rng.choice(len(row), p=row)) for row in q], np.array(q)

    words = r"\((\d+),000 usually do\); evidence 10\^.*, where 10\^\S+ decides"
    result = asked("joint/declared-q-wide", drafts, contract=D, trials=10, detect_tv=0.02)
    assert re.search(words, result.message), result.message

    def text(target: Any, drafter: Any, context: Any, tokens: int, rng: Any) -> Any:
        found: Tokens = ()
        while len(found) < tokens:
            p = target.next_token((*context, *found))
            found += (int(rng.choice(len(p), p=p)),)
        return found

    options = {"contract": GENERATE, "trials": 600, "detect_tv": 0.02}
    result = asked("end-to-end/markov", text, **options)
    assert re.search(words, result.message), result.message


def test_what_the_judge_itself_gets_wrong_is_inconclusive(monkeypatch: Any) -> None:
    def broken(*arguments: Any) -> Any:
        raise RuntimeError("a bug of the kit")

    monkeypatch.setattr(boundary, "_batch", broken)
    result = asked("boundary/tiny", clean)
    assert result.status == Status.INCONCLUSIVE
    assert result.message == "the check itself raised RuntimeError: a bug of the kit"


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize(
    ("claims", "idle_pairs"),
    [
        ({}, Status.PASSED),
        ({"ragged": False}, Status.NOT_APPLICABLE),
        ({"batch": 1}, Status.NOT_APPLICABLE),
        ({"batch": 2}, Status.PASSED),
    ],
)
def test_rows_alone_are_judged_whatever_batches_are_taken(
    claims: dict[str, Any], idle_pairs: Status
) -> None:
    ids = ["joint/batch-of-one", "joint/beside-idle"]
    report = check(clean, only=ids, blocking=False, detect_tv=0.3, **claims)
    found = {result.id: result.status for result in report.results}
    assert found == dict(zip(ids, (Status.PASSED, idle_pairs), strict=True))


def is_law(rows: Any) -> bool:
    """Up to the rounding of float32, which boundary/empty-residual takes from p."""
    missing = np.abs(np.asarray(rows).sum(axis=-1) - 1)
    return bool((rows >= 0).all() and (missing <= 1.5e-7).all())


@pytest.mark.deep
def test_every_row_that_a_sampler_is_given_is_a_law() -> None:
    """Padding and rows that are never read included: a sampler may check its arguments."""
    given = []

    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        given.append(is_law(target_probs) and (draft_probs is None or is_law(draft_probs)))
        return correct(target_probs, draft_probs, draft_tokens, rng=rng)

    check(verify, detect_tv=0.3)
    assert len(given) > 100
    assert all(given)
    assert not is_law(np.array([[0.5, 0.25], [1.0, 0.0]]))


def test_figures_are_compared_on_a_long_log_too() -> None:
    """Of the last 1,000 iterations alone, a figure is right on every short log."""

    def windowed(log: Any) -> Any:
        return METRICS["acceptance_rate"](log[-1_000:])

    def right(log: Any) -> float:
        return float(METRICS["acceptance_rate"](log))

    report = check(windowed, contract="metrics", metric="acceptance_rate")
    (failure,) = report.failures
    assert failure.message.startswith("a log of 3,000 iterations: acceptance_rate is ")
    assert len(failure.evidence["log"]) == 20
    assert check(right, contract="metrics", metric="acceptance_rate").exit_code == 0


@pytest.mark.parametrize("answer", [None, "0.5", (0.5,), [0.5, "x"], 2.0, float("nan")])
def test_a_figure_that_is_no_number_or_another_one_fails(answer: Any) -> None:
    for metric in ("acceptance_rate", "acceptance_at_positions"):
        report = check(lambda log: answer, contract="metrics", metric=metric)
        assert [one.id for one in report.failures] == ["acceptance/reported"]


def test_who_does_not_claim_how_coins_are_read_may_read_them_by_their_place() -> None:
    """A row that takes its coins from the other end of the batch is lossless, and moves."""

    def from_the_end(p: Any, q: Any, drafts: Any, *, coins: Any) -> Any:
        turned = Coins(coins.accept[::-1], coins.race[::-1])
        return reference.verify(p, q, drafts, coins=turned)

    result = asked("replay/permuted", from_the_end)
    assert result.status == Status.NOT_APPLICABLE
    assert result.message.startswith("claims neither row_seeds nor ")
    claimed = asked("replay/permuted", from_the_end, row_seeds=True)
    assert claimed.status == Status.FAILED


@pytest.mark.parametrize(
    ("gap", "allowance", "wrong"),
    [(0.31, 0.0, True), (-0.31, 0.0, True), (0.29, 0.0, False), (0.31, 0.02, False)],
)
def test_accepted_lengths_may_miss_by_the_tolerance_more(gap, allowance, wrong) -> None:
    """A difference that is surely there, and above what its sample allows for."""
    result = AcceptanceResult("place", Conformance.DEVIATES, 1.0, 1.0 - gap, gap, 0.3)
    assert acceptance.deviates(result, allowance) is wrong
    conforming = replace(result, conformance=Conformance.CONFORMS)
    assert not acceptance.deviates(conforming, 0.0)
