"""Four outcomes are told apart, whatever the report is read as; none is a silent pass."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from proofs_tests.helpers.bugs.verifiers import verifying
from specref import check
from specref.algorithms import autoregressive, standard
from specref.algorithms.decoding import decode
from specref.chance import Chance, Sampled
from specref.conformance.checks.check import RARE_EDGE
from specref.conformance.report import NotPassedError
from specref.conformance.status import Finding, Status
from specref.conformance.strata.calls import Calling
from specref.conformance.strata.shape import CallShape
from specref.conformance.strata.stratum import Stratum
from specref.conformance.strata.table import STEP_STRATA, TEXT_STRATA
from specref.conformance.summary import why_unnamed
from specref.contracts.capabilities import Capabilities
from specref.contracts.contract import Subject
from specref.contracts.errors import BrokenContractError
from specref.contracts.fixtures import CHAIN_FIXTURES
from specref.contracts.sampling import AFTER_EOS, read_tokens, until_end
from specref.examples.correct import verify as correct
from specref.examples.lossy import verify as lossy
from specref.models import Model
from specref.report.kit import kit_junit, kit_record
from specref.tracebacks import MOST_FRAMES, traceback_lines
from specref.vocabulary import Tokens, Vocabulary

pytestmark = pytest.mark.usefixtures("undiagnosed")

QUICK = ["smoke/answers", "boundary"]


def raising(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
    return helper(draft_tokens)


def helper(draft_tokens: Any) -> Any:
    return draft_tokens[:, 999]


def hanging(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
    threading.Event().wait(60)


def mutating(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
    answer = correct(target_probs, draft_probs, draft_tokens, rng=rng)
    draft_tokens[:] = 0
    return answer


def up_to(dtype: Any) -> Any:
    """Accepts a draft iff u q <= p, for uniforms of a format: at u = 0 also where p = 0."""
    return verifying(
        accept=lambda u, p, q: u * q <= p, uniforms=lambda rng, shape: rng.random(shape, dtype)
    )


CASES = {
    "lossy law": (lossy, ["joint/wide"], {"one_hot": False}, Finding.LAW, 1, "LOSSY"),
    "raises": (raising, QUICK, {}, Finding.CONTRACT, 1, "BROKEN CONTRACT"),
    "mutates": (mutating, ["smoke"], {}, Finding.CONTRACT, 1, "BROKEN CONTRACT"),
    "hangs": (hanging, QUICK, {"patience": 0.2}, Finding.UNANSWERED, 2, "NOT ANSWERED"),
    "right": (correct, QUICK, {}, None, 0, "no difference"),
}


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("name", CASES)
def test_each_outcome_has_its_verdict_and_exit_code(name: str) -> None:
    verify, only, options, finding, code, verdict = CASES[name]
    report = check(verify, only=only, **options)
    assert (report.finding, report.exit_code) == (finding, code)
    assert report.verdict.startswith(verdict)
    assert report.lossy == (finding == Finding.LAW)
    assert ("LOSSY" in report.verdict) == report.lossy
    record = kit_record(report)
    assert (record["finding"], record["exit_code"]) == (finding, code)
    assert bool(report) is report.passed is (code == 0)
    if code:
        with pytest.raises(NotPassedError, match=re.escape(report.summary.headline)) as caught:
            report.raise_for_status()
        assert caught.value.report is report
    else:
        report.raise_for_status()


def test_the_verdict_tells_a_rare_edge_before_what_was_not_tried() -> None:
    rare = up_to(np.float64)

    def needs_laws(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> Any:
        if draft_probs is None:
            raise TypeError("no laws")
        return rare(target_probs, draft_probs, draft_tokens, rng=rng)

    report = check(needs_laws, only=["smoke/one-hot", "boundary/zero-coin", "joint/probed"])
    assert (report.finding, report.exit_code) == (None, 0)
    edge, untried = (report.verdict.index(one) for one in ("boundary/zero-coin", "not tried:"))
    assert 0 < edge < untried


@pytest.mark.parametrize(("bits", "dtype"), [(53, np.float64), (24, np.float32)])
def test_an_edge_comes_with_its_rate(bits: int, dtype: Any) -> None:
    report = check(up_to(dtype), only=["boundary/zero-coin"])
    (result,) = report.results
    assert result.evidence["chance"] == 2.0**-bits
    assert result.evidence["per_million_tokens"] == 1e6 * 2.0**-bits
    assert (2.0**-bits >= RARE_EDGE) == (result.status == Status.FAILED) == (not report)
    assert "per million tokens" in result.message
    assert bool(report.warnings) == bool(report)
    assert all("per million tokens" in warning for warning in report.warnings)


def raced_by_coins(guarded: bool) -> Any:
    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, coins: Any) -> Any:
        p = target_probs[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            times = coins.race / p
        first = (np.where(p > 0, times, np.inf) if guarded else times).argmin(axis=1)
        rest = np.full((len(p), draft_tokens.shape[1]), -1)
        return np.column_stack([first, rest]), np.ones(len(p), int)

    return verify


@pytest.mark.parametrize("guarded", [False, True])
def test_noise_of_0_is_tried_one_number_at_a_time(guarded: bool) -> None:
    report = check(raced_by_coins(guarded), one_hot=False, only=["replay/edge-coins"])
    (result,) = report.results
    assert result.status == (Status.PASSED if guarded else Status.FAILED), result.message
    if not guarded:
        assert result.evidence["race"].count(0) == 1
        assert result.evidence["per_million_tokens"] == pytest.approx(1e6 * 2.0**-36)


def test_the_traceback_is_the_samplers_own() -> None:
    report = check(raising, only=["smoke/answers", "smoke/batch-of-one"])
    (lines,) = report.tracebacks.values()
    assert [line.strip() for line in lines if "File" in line] == [
        f'File "{__file__}", line {line}, in {name}'
        for name, line in (
            (one.__name__, one.__code__.co_firstlineno + 1) for one in (raising, helper)
        )
    ]
    assert lines[-1].startswith("IndexError: index 999 is out of bounds")
    assert str(report).count("in helper") == 1
    assert kit_record(report)["results"][0]["evidence"]["traceback"] == lines
    assert kit_junit([report]).count("in helper") == 1
    cases = [*ElementTree.fromstring(kit_junit([report])).iter("testcase")]
    assert [one.get("name") for one in cases] == ["smoke/answers", "smoke/batch-of-one"]
    said = [str(one[0].get("message")) for one in cases]
    assert said[0].startswith("broken contract: raised IndexError")
    assert said[1] == "broken contract: as smoke/answers"
    with pytest.raises(NotPassedError) as caught:
        report.raise_for_status()
    assert isinstance(caught.value.__cause__, IndexError)


def test_an_endless_recursion_has_a_short_traceback() -> None:
    def odd(number: int) -> Any:
        return even(number + 1)

    def even(number: int) -> Any:
        return odd(number + 1)

    try:
        odd(0)
    except RecursionError as error:
        lines = traceback_lines(error)
    assert len(lines) <= 4 * MOST_FRAMES + 1
    assert any("more lines" in line for line in lines)


def test_errors_of_the_kit_have_no_traceback_of_the_sampler() -> None:
    try:
        check(correct, only=["smoke/answers"], seed=-1)
    except ValueError as error:
        lines = traceback_lines(error)
    assert lines[1].strip().startswith(f'File "{__file__}"')  # this test called it
    report = check(lambda p, q, x, *, rng: None, only=["smoke/answers"])
    assert report.finding == Finding.CONTRACT
    assert report.tracebacks == {}


def test_a_broken_contract_is_not_sent_to_the_known_bugs() -> None:
    def accepted_alone(p: Any, q: Any, x: Any, *, rng: np.random.Generator) -> Any:
        tokens, counts = correct(p, q, x, rng=rng)
        return tokens, counts - 1

    report = check(accepted_alone, only=["smoke/answers", "joint/wide"])
    assert report.finding == Finding.CONTRACT
    assert any(one.message.startswith("blocked by") for one in report.results)
    assert why_unnamed(report) == ""


SLOW = """
import time
from specref.examples.correct import verify as correct
def verify(target_probs, draft_probs, draft_tokens, *, rng):
    if target_probs.shape[2] > 1_000:  # smoke/large-vocabulary
        open("asleep", "w").close()
        time.sleep(600)
    return correct(target_probs, draft_probs, draft_tokens, rng=rng)
"""


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_was_found_is_in_the_file_however_it_ends(tmp_path: Path, number: int) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    file = tmp_path / "report.json"
    words = ["check", "slow.py:verify", "--json", str(file), "--patience", "600"]
    log = tmp_path / "log"
    with log.open("w") as said:
        running = subprocess.Popen(
            [sys.executable, "-m", "specref", *words], cwd=tmp_path, stdout=said, stderr=said
        )
    started = time.monotonic()
    asleep = tmp_path / "asleep"
    while not asleep.exists() or json.loads(file.read_text())["counts"]["passed"] < 5:
        assert running.poll() is None, log.read_text()
        assert time.monotonic() - started < 60, log.read_text()
        time.sleep(0.05)
    time.sleep(0.2)  # until it sleeps
    running.send_signal(number)
    code = running.wait(timeout=60)
    record = json.loads(file.read_text())
    assert code == (130 if number == signal.SIGTERM else -signal.SIGKILL)
    assert record["complete"] is False
    assert record["exit_code"] == 2
    if number == signal.SIGTERM:
        assert record["verdict"] == "INCONCLUSIVE: interrupted in smoke/large-vocabulary"
        running = {result["id"]: result for result in record["results"]}["smoke/large-vocabulary"]
        assert any("time.sleep(600)" in line for line in running["evidence"]["traceback"])
    statuses = {result["id"]: result["status"] for result in record["results"]}
    assert statuses["smoke/answers"] == "passed"
    assert statuses["joint/wide"] == "not_run"
    assert [path.name for path in tmp_path.glob(".report*")] == []


def test_a_rare_edge_hides_no_graver_failure() -> None:
    """Accepts at u <= p / q, and rejects where p = q."""

    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, coins: Any) -> Any:
        p, q, x = target_probs[0, 0], draft_probs[0, 0], draft_tokens[0, 0]
        if coins.accept[0, 0] <= p[x] / q[x] and not np.array_equal(p, q):
            return np.array([[x, int(target_probs[0, 1].argmax())]]), np.array([2])
        rest = np.maximum(p - q, 0)
        return np.array([[int((rest if rest.any() else p).argmax()), -1]]), np.array([1])

    report = check(verify, only=["replay/edge-coins"], batch=1, rule="standard")
    assert report.results[0].status == Status.FAILED, report
    assert "p = q" in report.results[0].message


def test_a_draw_that_cannot_be_read_excuses_no_wrong_coin() -> None:
    from specref.adapters.reference import verify as reference

    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, coins: Any) -> Any:
        np.random.permutation(3)  # noqa: NPY002 (it decides nothing)
        coins.accept[:] = 1 - 2**-53 - coins.accept
        return reference(target_probs, draft_probs, draft_tokens, coins=coins)

    report = check(verify, only=["replay/coin-by-coin"], rule="standard", recovery="race")
    assert report.results[0].status == Status.FAILED, report.results[0]


def test_a_special_file_gets_one_report(tmp_path: Path) -> None:
    words = ["check", "examples.correct:verify", "--only", "smoke/answers"]
    run = subprocess.run(
        [sys.executable, "-m", "specref", *words, "--json", "/dev/stderr"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.stderr.count('"exit_code"') == 1
    assert json.loads(run.stderr)["complete"] is True


def test_a_generator_that_others_use_is_no_broken_contract() -> None:
    """Some calls under one seed agree, and some do not: neither a pass nor a failure."""
    calls = iter(range(10**9))

    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any) -> Any:
        if next(calls) in (1, 3):  # as if another thread drew a number
            np.random.random()  # noqa: NPY002
        rng = np.random.default_rng(np.random.randint(2**31))  # noqa: NPY002
        return correct(target_probs, draft_probs, draft_tokens, rng=rng)

    (result,) = check(verify, only=["smoke/deterministic"]).results
    assert result.status == Status.INCONCLUSIVE
    assert "does another thread draw" in result.message


# Steps and texts that go on after EOS: they fail, and are asked whether the adapter stops.

IDS = ["joint/eos", "joint/exact", "iterations/eos", "end-to-end/eos"]


def endless(model: Model) -> Model:
    """The same laws, but nobody knows which token is EOS."""
    return Model(Vocabulary(model.vocabulary.tokens), model.next_token)


def step(target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance) -> Tokens:
    return standard.step(endless(target), endless(drafter), context, lookahead, chance)


def drawn(target: Model, drafter: Model, context: Tokens, lookahead: int, rng: Any) -> Tokens:
    return step(target, drafter, context, lookahead, Sampled(rng))


def generate(target: Model, drafter: Model, context: Tokens, tokens: int, rng: Any) -> Tokens:
    models = endless(target), endless(drafter)
    return decode(standard.step, *models, context, 2, tokens, Sampled(rng))


def messages(implementation: Any, contract: str) -> dict[str, str]:
    report = check(implementation, contract=contract, only=IDS, trials=1_000, blocking=False)
    return {result.id: result.message for result in report.failures}


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize(
    ("implementation", "contract", "ids"),
    [
        (step, "step", {"joint/exact", "joint/eos", "iterations/eos"}),
        (drawn, "step", {"joint/eos", "iterations/eos"}),
        (generate, "generate", {"end-to-end/eos"}),
    ],
)
def test_tokens_after_eos_are_asked_about(
    implementation: Any, contract: str, ids: set[str]
) -> None:
    found = messages(implementation, contract)
    assert found.keys() == ids
    assert all(message.endswith(AFTER_EOS) for message in found.values())


@pytest.mark.deep
def test_other_failures_are_not_put_down_to_it() -> None:
    """The last token is impossible before EOS, too, or the law is wrong without it."""

    def impossible(target: Any, drafter: Any, context: Any, lookahead: int, chance: Chance) -> Any:
        block = step(target, drafter, context, lookahead, chance)
        law = target.next_token(context)
        return (next(x for x in range(len(law)) if not law[x]), *block[1:]) if 0 in law else block

    def from_q(target: Any, drafter: Any, context: Any, lookahead: int, chance: Chance) -> Any:
        return autoregressive.step(endless(drafter), drafter, context, lookahead, chance)

    for implementation in (impossible, from_q):
        found = messages(implementation, "step")
        assert "joint/exact" in found
        assert not any(AFTER_EOS in message for message in found.values())


def test_a_block_that_is_too_long_is_asked_only_if_it_has_an_eos() -> None:
    eos = CHAIN_FIXTURES["eos"].eos
    with pytest.raises(BrokenContractError, match="does the adapter stop there"):
        read_tokens((0, eos, 1, 1), 3, CHAIN_FIXTURES["eos"])
    for raw, fixture in (
        ((0, 1, 1, eos), CHAIN_FIXTURES["eos"]),
        ((0, eos, 1, 1), CHAIN_FIXTURES["wide"]),
    ):
        with pytest.raises(BrokenContractError, match=r"expected 1 to 3$"):
            read_tokens(raw, 3, fixture)


def test_tokens_up_to_eos() -> None:
    eos = CHAIN_FIXTURES["eos"].eos
    assert eos is not None
    assert until_end(CHAIN_FIXTURES["eos"], (0, eos, eos)) == (0, eos)
    assert until_end(CHAIN_FIXTURES["eos"], (0, 1)) == (0, 1)
    assert until_end(CHAIN_FIXTURES["wide"], (0, eos, 1)) == (0, eos, 1)


def plain(target: Model, drafter: Any, context: Tokens, tokens: int, rng: Any) -> list[int]:
    """Draws tokens from the target alone, and does not look for EOS."""
    model = endless(target)
    return [*decode(autoregressive.step, model, model, context, 0, tokens, Sampled(rng))]


def late_end(target: Any, block: list[int]) -> list[int]:
    """Stops at an EOS among the first two tokens, or at the last, only."""
    eos = target.vocabulary.ids[target.vocabulary.eos] if target.vocabulary.eos else None
    ends = [i for i, token in enumerate(block[:2]) if token == eos]
    return block[: ends[0] + 1] if ends else block


def late_text(target: Any, drafter: Any, context: Any, tokens: int, rng: Any) -> list[int]:
    return late_end(target, plain(target, drafter, context, tokens, rng))


def late_step(target: Any, drafter: Any, context: Any, lookahead: int, rng: Any) -> list[int]:
    return late_end(target, plain(target, drafter, context, lookahead + 1, rng))


ENDING = [one for one in (*STEP_STRATA, *TEXT_STRATA) if one.ends]


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("stratum", ENDING, ids=lambda one: str(one.name))
def test_tokens_after_eos_break_the_contract(stratum: Stratum[CallShape]) -> None:
    shape = stratum.shapes[-1]
    function = late_text if shape.text else late_step
    calling = Calling(stratum, Subject(function, Capabilities()), np.random.default_rng(5))
    with pytest.raises(BrokenContractError, match=re.escape(AFTER_EOS)):
        calling.texts(shape, 400)


def test_an_exact_law_has_no_tokens_after_eos() -> None:
    report = check(plain, contract="generate", only=["end-to-end/probed-ending"])
    assert report.finding == Finding.CONTRACT
    assert AFTER_EOS in report.results[0].message
