"""The kit judges block verification: by its joint law, its accepted lengths, and its coins.

What entries of the zoo accept is enumerated exactly; what the kit must then say of them is
sampled, at alpha 1e-9 for each call of `check` and with fixed seeds. Lengths that are off by
0.053 (token verification on "deep", the nearest of them) are found in 25,000 blocks at a place
with a probability above 1 - 1e-12: the test allows 0.023, and one standard deviation is 0.003.
"""

from typing import Any

import numpy as np
import pytest

from specref import exact_distribution
from specref.algorithms import block, standard
from specref.algorithms.decoding import decode
from specref.chance import Sampled
from specref.coins import Coins
from specref.conformance.checks import CHECKS, acceptance, replay
from specref.conformance.checks.replay import DECIDED
from specref.conformance.diagnosis.laws import compared_with
from specref.conformance.public import check
from specref.conformance.report import Report
from specref.conformance.status import Status
from specref.contracts.batch import Batch
from specref.contracts.capabilities import capabilities_of, capable
from specref.contracts.fixtures import CHAIN_FIXTURES
from specref.contracts.table import GENERATE
from specref.examples import correct
from specref.proofs.lazy import DrawnFromLaws
from specref.rules import RULES
from specref.zoo.parts.batched import as_verifier

OWN = {name: entry for name, entry in compared_with("block").items() if name.startswith("block-")}
LOSSLESS = {name: entry for name, entry in OWN.items() if entry.lossless}
OTHER_LENGTHS = {"block-by-tokens", "block-drafts-are-certain"}
WITHOUT_EOS = ("wide", "deep")
BLOCKS = [f"{stage}/{name}" for stage in ("joint", "acceptance") for name in WITHOUT_EOS]
LENGTHS = ["acceptance/wide", "acceptance/deep"]
Ask = Any


def judged_step(step: Ask, rule: str = "block", only: Any = BLOCKS, tv: float = 0.1) -> Report:
    return check(
        DrawnFromLaws(step), contract="step", algorithm=rule, only=only, detect_tv=tv,
        blocking=False,
    )  # fmt: skip


def with_coins(step: Ask, rule: str = "block") -> Ask:
    return capable(rule=rule, recovery="race")(as_verifier(step))


def failing(report: Report) -> set[str]:
    return {result.id for result in report.failures}


def message(report: Report, id_: str) -> str:
    return next(result.message for result in report.results if result.id == id_)


def lengths_of(step: Ask, name: str, index: int) -> tuple[float, ...]:
    fixture, place = CHAIN_FIXTURES[name], CHAIN_FIXTURES[name].places[index]
    case = (fixture.target, fixture.drafter, place.context, place.lookahead)
    law = exact_distribution(lambda chance: step(*case, chance))
    counted = [sum(w for tokens, w in law.items() if len(tokens) == k + 1) for k in range(4)]
    return tuple(counted[: max(k for k in range(4) if counted[k]) + 1])


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("entry", LOSSLESS.values(), ids=LOSSLESS)
def test_lossless_rules_have_the_lengths_of_block_verification_or_others(entry: Ask) -> None:
    same = []
    for name in WITHOUT_EOS:
        for index, place in enumerate(CHAIN_FIXTURES[name].places):
            models = CHAIN_FIXTURES[name].target, CHAIN_FIXTURES[name].drafter
            law = RULES["block"].accepted_lengths(*models, place.context, place.lookahead)
            same.append(lengths_of(entry.step, name, index) == law)
    assert all(same) == (entry.id not in OTHER_LENGTHS)


@pytest.mark.deep
def test_a_rule_without_a_closed_form_may_be_declared_and_its_lengths_are_not_judged() -> None:
    step = capable(rule="path-slrs")(RULES["path-slrs"].step)
    report = check(step, contract="step", only=["joint/deep", "acceptance/deep"], detect_tv=0.15)
    assert report.exit_code == 0, report
    assert message(report, "acceptance/deep") == (
        "no closed form of the number of accepted tokens of path-slrs is known"
    )


def test_the_clean_rule_passes_with_its_own_lengths() -> None:
    report = judged_step(block.step, only=["joint", "acceptance"], tv=0.2)
    assert report.exit_code == 0, report
    assert {r.id for r in report.results if r.status == Status.PASSED} >= {*BLOCKS, "joint/eos"}


@pytest.mark.deep
@pytest.mark.parametrize("entry", LOSSLESS.values(), ids=LOSSLESS)
def test_lossless_rules_fail_iff_they_accept_otherwise(entry: Ask) -> None:
    report = judged_step(entry.step, only=LENGTHS, tv=0.05)
    assert bool(report.failures) == (entry.id in OTHER_LENGTHS), report
    if report.failures:
        assert "acceptance/deep" in failing(report)
        assert "deflated" in message(report, "acceptance/deep")
        assert report.verdict.startswith("acceptance does not follow the declared rule")


MUTANTS = sorted(set(OWN) - set(LOSSLESS) - {"block-product-of-uniforms"})
NEAR = "block-tokenwise-residual"


@pytest.mark.usefixtures("few_blocks")
@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.deep] * (one == NEAR)) for one in MUTANTS]
)
def test_every_mutant_is_lossy_by_enumeration_and_by_samples(name: str) -> None:
    """The token-wise residual is 0.009 from the target here: it takes profile standard."""
    step = OWN[name].step
    exact = check(step, contract="step", algorithm="block", only=["joint/exact"])
    assert failing(exact) == {"joint/exact"}
    report = judged_step(step, only=["joint/wide"], tv=0.02 if name == NEAR else 0.05)
    assert failing(report) == {"joint/wide"}
    assert report.diagnosis is not None
    assert name in report.diagnosis.candidates[0].ids


@pytest.mark.deep
def test_the_product_of_uniforms_is_lossy() -> None:
    """It has no closed form for three drafts, nor where float A_i are not monotone."""
    fixture = CHAIN_FIXTURES["wide"]
    place = fixture.places[0]
    bug = OWN["block-product-of-uniforms"].step

    def elsewhere_clean(
        target: Any, drafter: Any, context: Any, lookahead: int, chance: Any
    ) -> Any:
        step = bug if (context, lookahead) == (place.context, 2) else block.step
        return step(target, drafter, context, lookahead, chance)

    report = judged_step(elsewhere_clean, only=["joint/wide", "acceptance/wide"], tv=0.05)
    assert failing(report) == {"joint/wide", "acceptance/wide"}
    assert "inflated" in message(report, "acceptance/wide")


@pytest.mark.deep
def test_block_verification_that_claims_to_be_standard_is_named() -> None:
    report = judged_step(block.step, "standard", only=["joint/deep", "acceptance/deep"], tv=0.05)
    assert failing(report) == {"acceptance/deep"}
    assert not report.lossy
    said = message(report, "acceptance/deep")
    assert "inflated" in said
    assert said.endswith("; they are those of 'block'")


@pytest.mark.deep
@pytest.mark.usefixtures("few_blocks")
def test_token_verification_that_claims_to_be_block_is_diagnosed() -> None:
    report = check(correct.verify, algorithm="block", only=["joint/eos", "acceptance/deep"])
    assert failing(report) == {"acceptance/deep"}
    assert not report.lossy
    assert message(report, "acceptance/deep").endswith("; they are those of 'standard'")
    assert report.diagnosis is not None
    assert report.diagnosis.candidates[0].ids == ("block-by-tokens",)
    assert "token verification" in str(report)


@pytest.mark.deep
@pytest.mark.usefixtures("undiagnosed")
def test_more_than_block_verification_keeps_is_lossy_whatever_is_declared() -> None:
    """The first drafts are kept as often as may be: only the later ones tell."""
    bug = OWN["block-uncapped-at-the-end"].step
    place = CHAIN_FIXTURES["wide"].places[1]
    first, most = acceptance._most_kept(CHAIN_FIXTURES["wide"], place)
    law = lengths_of(bug, "wide", 1)
    assert float(1 - law[0]) == pytest.approx(first, abs=1e-12)
    assert float(law[2]) > most + 0.07
    verify = as_verifier(bug)
    report = check(verify, only=["acceptance/bound-wide"], detect_tv=0.15)
    assert failing(report) == {"acceptance/bound-wide"}
    assert report.lossy
    assert "of blocks kept 2 drafts" in message(report, "acceptance/bound-wide")


def test_block_verification_keeps_no_more_than_that() -> None:
    report = check(with_coins(block.step), only=["acceptance/bound-wide"], detect_tv=0.3)
    assert report.failures == ()


@pytest.mark.deep
def test_the_reference_is_what_its_coins_decide() -> None:
    # Rows are verified one by one here, and a rare draft takes thousands.
    asked = [one.id for one in CHECKS if one.id.startswith(("replay", "boundary"))]
    asked.remove("boundary/rare-draft")
    report = check(with_coins(block.step), only=asked)
    assert report.exit_code == 0, report
    replayed = {r.id: r.status for r in report.results if r.id.startswith("replay/")}
    assert replayed.pop("replay/batch-order") is Status.NOT_APPLICABLE  # other contracts'
    assert set(replayed.values()) == {Status.PASSED}


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize(
    ("step", "declared"),
    [
        (standard.step, "block"),
        (block.step, "standard"),
        *(
            (OWN[f"block-{name}"].step, "block")
            for name in (
                "tokenwise-residual",
                "stops-at-first",
                "uncapped-at-the-end",
                "survival-of-tokens",
                "total-alone",
            )
        ),
    ],
)
def test_another_rule_is_not_what_the_coins_decide(step: Ask, declared: str) -> None:
    report = check(with_coins(step, declared), only=["replay/coin-by-coin"])
    assert failing(report) == {"replay/coin-by-coin"}


def test_both_rules_decide_alike_about_one_draft() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        p, q = rng.dirichlet(np.ones(4), 2), rng.dirichlet(np.ones(4), 1)
        tokens, coins = rng.integers(4, size=1), rng.random(1)
        (one, law), (other, same) = (decide(p, q, tokens, coins) for decide in DECIDED.values())
        assert one == other
        assert (law == same).all()


def test_an_expected_block_is_that_of_the_listing() -> None:
    """P_1 = 1/2 and h_1 = 1/4 / (1/4 + 1/2) = 1/3, P_2 = 1: the second coin always succeeds."""
    p = np.array([[[1, 2], [1, 2], [1, 0]]]) / np.array([[[3], [3], [1]]])
    q = np.array([[[2, 1], [2, 1]]]) / 3
    one = np.zeros(1, dtype=np.int64)
    for drafts, coin, expected in (
        ([0, 1], 0.99, [0, 1, 0]),
        ([0, 0], 0.24, [0, 0, 0]),
        ([0, 0], 0.26, [1, -1, -1]),
    ):
        batch = Batch(p, q, np.array([drafts]), one + 2, one)
        coins = Coins(np.array([[0.99, coin]]), np.array([[1.0, 1.0]]))
        assert replay.expected_tokens(batch, coins, "race", "jointly").tolist() == [expected]


def test_a_loop_of_block_verification_keeps_first_drafts() -> None:
    class Loop:
        """Texts, and how many drafts of each block were kept; nothing ends a text."""

        blocks: Any = ()

        def __call__(self, target: Any, drafter: Any, context: Any, tokens: int, rng: Any) -> Any:
            self.blocks = []
            return decode(self._told, target, drafter, context, 2, tokens, Sampled(rng))

        def _told(self, *arguments: Any) -> Any:
            emitted = block.step(*arguments)
            self.blocks.append(Told(2, len(emitted) - 1))
            return emitted

    only = ["acceptance/first-drafts", "acceptance/lost-drafts", "acceptance/self-draft"]
    report = check(Loop(), contract=GENERATE, algorithm="block", only=only)
    assert {result.status for result in report.results} == {Status.PASSED}, report


class Told:
    """How many tokens were drafted, and how many kept."""

    def __init__(self, drafted: int, accepted: int) -> None:
        self.drafted, self.accepted = drafted, accepted


@pytest.mark.deep
@pytest.mark.parametrize(("dtype", "recovery"), [("float64", "inverse"), ("bfloat16", "race")])
def test_the_torch_backend_is_block_verification(dtype: Any, recovery: Any) -> None:
    pytest.importorskip("torch", reason="not_run (torch is not installed)")
    from specref.adapters.torch_backend import load_verify_block

    verify = load_verify_block(dtype=dtype, recovery=recovery)
    assert (capabilities_of(verify).rule, capabilities_of(verify).recovery) == ("block", recovery)
    report = check(verify, only=["smoke", "replay", "boundary", *BLOCKS], detect_tv=0.1)
    assert report.exit_code == 0, report
    applied = {r.id for r in report.results if r.status == Status.PASSED}
    assert applied >= {"replay/coin-by-coin", *BLOCKS}
