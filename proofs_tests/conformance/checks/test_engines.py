"""The contract ``text``: planted bugs are found, lossless engines pass, and nothing else is said.

Monte Carlo with fixed seeds. alpha is 1e-9 for a run; a law at total variation 0.1 or more is
found with probability 0.999 (`detect_tv=0.1`), and of two modes without a law, too.
"""

import os
import signal
import time
from _thread import interrupt_main
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from proofs_tests.helpers.engines import (
    ABC,
    ENDING,
    GUESS,
    LAW,
    LOSSY,
    PROMPT,
    Speculating,
    engine,
    matching,
    sampling,
)
from specref.cli import main
from specref.conformance.checks import engines
from specref.conformance.checks.engines import estimated_seconds
from specref.conformance.greedy import greedy_text
from specref.conformance.options import CheckOptions
from specref.conformance.public import check
from specref.conformance.report import Interrupted, Report
from specref.conformance.status import Finding, Status
from specref.conformance.suite import prepare
from specref.contracts.table import ENGINE
from specref.contracts.text import Engine, Text
from specref.models import Model, hashed_model, iid_model, markov_model
from specref.report.kit import kit_record
from specref.report.kit_html import kit_html
from specref.vocabulary import Tokens, Vocabulary

pytestmark = pytest.mark.usefixtures("undiagnosed")

LAW_CHECK, SAME, PLAINLY = "end-to-end/texts", "end-to-end/texts-same", "smoke/texts-plain"
SHORT, LONG = "end-to-end/texts-of-one-token", "end-to-end/texts-long"
WITHOUT: dict[str, Any] = {"law": None, "drafter": None, "plain": sampling()}


def judged(one: Engine, **options: Any) -> Report:
    return check(one, contract="text", **{"detect_tv": 0.1, **options})


def result(report: Report, id_: str) -> Any:
    return next(one for one in report.results if one.id == id_)


PROMPTS = [PROMPT, (2,), (1, 1)]


@pytest.mark.deep(one_in=10)
@pytest.mark.parametrize("known", [{}, WITHOUT], ids=["law", "no law"])
@pytest.mark.parametrize("name", LOSSY)
def test_a_planted_bug_is_found(name: str, known: dict[str, Any]) -> None:
    """A gross one at 10 ms a text within 30 s: at most 3,000 texts of both modes."""
    calls = {"all": 0, "of whole texts": 0}

    def counting(ask: Any) -> Any:
        def asked(prompt: Tokens, budget: int, seed: int) -> Any:
            calls["all"] += 1
            calls["of whole texts"] = calls["all"] if budget > 1 else calls["of whole texts"]
            return ask(prompt, budget, seed)

        return asked

    options = {"law": LAW, "drafter": GUESS, **known, "plain": counting(sampling())}
    one = Engine(counting(LOSSY[name]), PROMPTS, **options)
    report = judged(one, detect_tv=0.05, only=["smoke", LAW_CHECK, SHORT])
    assert (report.exit_code, report.finding) == (1, Finding.LAW)
    assert report.verdict.startswith("LOSSY")
    found = result(report, LAW_CHECK)
    assert found.status == Status.FAILED
    compared = "differ from those of non-speculative decoding" in found.message
    assert compared == (known is WITHOUT)
    if "temperature" not in name:
        assert calls["of whole texts"] < 3_000
        assert calls["all"] < 6_000


LOSSLESS: dict[str, Engine] = {
    "standard": engine(Speculating()),
    "standard, drafter not given": engine(Speculating(), drafter=None),
    "standard, lookahead 1": engine(Speculating(lookahead=1), plain=sampling()),
    "standard, ending": engine(
        Speculating(law=ENDING, guess=ENDING), law=ENDING, drafter=None, plain=sampling(ENDING)
    ),
    "standard, two prompts": Engine(Speculating(), [(0, 1), (2,)], law=LAW, tokens=3),
    "exact matching": engine(matching, plain=sampling(), same_text=True),
    "standard, no law": engine(Speculating(), **WITHOUT),
    "exact matching, no law": engine(matching, **WITHOUT, same_text=True),
}


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("name", LOSSLESS)
def test_a_lossless_engine_passes_with_the_distance_that_would_have_been_found(name: str) -> None:
    report = judged(LOSSLESS[name], detect_tv=0.2)
    assert report.exit_code == 0, report
    start = "no difference from lossless (TV ≥ 0.2 would be detected on its prompts"
    assert report.verdict.startswith(start)
    # Without a law, long texts are compared only where the same ones are promised.
    untold = name == "standard, no law"
    assert result(report, LONG).status == (Status.NOT_APPLICABLE if untold else Status.PASSED)
    ends = [one for one in report.results if one.stage == "end-to-end" and one.evidence]
    passes = [one for one in ends if one.id != LONG]  # it bets on tokens, in shifts
    assert passes
    for one in passes:
        assert 0 < one.evidence["detectable_tv"] <= (0.25 if one.id == SHORT else 0.2)
        assert one.id == SHORT or one.evidence["accepted"] > 0


def never(prompt: Tokens, budget: int, seed: int) -> Text:
    return Text(sampling()(prompt, budget, seed).tokens, 3 * budget, 0)


UNEXERCISED = {
    "no draft was proposed": Speculating(lookahead=0),
    "proposed drafts was accepted": never,
    "texts came without counts": Speculating(counting=False),
}


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("known", [{}, WITHOUT], ids=["law", "no law"])
@pytest.mark.parametrize("said", UNEXERCISED)
def test_without_accepted_drafts_nothing_passes(said: str, known: dict[str, Any]) -> None:
    report = judged(engine(UNEXERCISED[said], **known), detect_tv=0.3)
    assert report.exit_code == 2
    assert (result(report, LAW_CHECK).status, report.finding) == (
        Status.INCONCLUSIVE,
        Finding.NOT_EXERCISED,
    )
    assert said in result(report, LAW_CHECK).message
    assert report.verdict.startswith("NOT_EXERCISED")
    assert kit_record(report)["finding"] == "not_exercised"
    assert not report.passed


def test_promised_texts_without_drafts_are_not_exercised_either() -> None:
    report = judged(engine(sampling(), **WITHOUT, same_text=True))
    assert (result(report, SAME).finding, report.exit_code) == (Finding.NOT_EXERCISED, 2)


def test_a_plain_mode_that_is_off_is_named_and_nothing_else_is_judged() -> None:
    report = judged(engine(Speculating(), plain=sampling(temperature=3.0)))
    assert [one.id for one in report.failures] == [PLAINLY]
    assert result(report, LAW_CHECK).message == f"blocked by {PLAINLY}"
    assert report.verdict.startswith("THE BASELINE IS WRONG")
    assert (report.finding, report.lossy, report.exit_code) == (Finding.PLAIN, False, 1)


def test_a_law_that_both_modes_miss_by_little_is_no_failure_of_speculation() -> None:
    given = hashed_model(ABC, "p")
    warm = engine(
        sampling(temperature=1.25), law=given, drafter=None, plain=sampling(temperature=1.25)
    )
    report = judged(warm, only=[LAW_CHECK])  # plain mode is not tried first
    assert report.finding == Finding.PLAIN
    assert result(report, LAW_CHECK).message.startswith(
        "non-speculative decoding: the distribution is not the target's"
    )
    place = result(report, LAW_CHECK).evidence["difference"]["place"]
    assert place.startswith("non-speculative decoding, prompt (")
    assert place in str(report)


@pytest.mark.parametrize("drafter", [None, GUESS])
def test_of_a_drafter_that_is_not_given_no_row_is_shown(drafter: Model | None) -> None:
    report = judged(engine(LOSSY["residual is p"], drafter=drafter), only=[LAW_CHECK])
    assert report.worst is not None
    rows = report.worst.evidence["difference"]["rows"]
    assert [one["q"] is None for one in rows] == [drafter is None] * len(rows)
    assert ("  q " in str(report)) == (drafter is not None)
    page = kit_html([report])
    assert ("<td>not known</td>" in page) == (drafter is None)
    assert "no draft" not in page
    if drafter is not None:
        assert rows[0]["q"] == pytest.approx(GUESS.next_token(PROMPT).tolist())


def by_argmax_alone(respond: Any) -> Any:
    """Answers a budget of one token by argmax, without its loop and its counters."""

    def text(prompt: Tokens, budget: int, seed: int) -> Any:
        if budget > 1:
            return respond(prompt, budget, seed)
        return Text([int(LAW.next_token(prompt).argmax())])

    return text


@pytest.mark.deep
def test_a_budget_of_one_token_is_judged_with_a_law_and_without() -> None:
    wrong = by_argmax_alone(Speculating())
    for options in ({"plain": sampling()}, WITHOUT):
        report = judged(engine(wrong, **options))
        assert [one.id for one in report.failures] == [SHORT]
        assert report.finding == Finding.LAW
    same = engine(by_argmax_alone(matching), plain=sampling(), same_text=True)
    assert [one.id for one in judged(same).failures] == [SAME, SHORT]
    assert "budget 1, under seed" in result(judged(same), SAME).message


def test_a_plain_mode_that_is_off_for_one_token_is_named() -> None:
    both = engine(by_argmax_alone(Speculating()), plain=by_argmax_alone(sampling()))
    report = judged(both, only=["smoke", LAW_CHECK, SHORT])
    assert [one.id for one in report.failures] == [SHORT]
    assert (report.finding, report.lossy) == (Finding.PLAIN, False)


def test_whether_a_text_of_one_token_has_drafts_does_not_matter() -> None:
    def uncounted(prompt: Tokens, budget: int, seed: int) -> Any:
        text = matching(prompt, budget, seed)
        return Text(text.tokens) if budget == 1 else text

    one = engine(uncounted, plain=sampling(), same_text=True)
    assert judged(one).exit_code == 0, judged(one)


def test_the_promise_of_the_same_text_is_held_to() -> None:
    report = judged(engine(Speculating(), plain=sampling(), same_text=True))
    assert [one.id for one in report.failures] == [SAME, LONG]
    assert (report.finding, report.lossy) == (Finding.CONTRACT, False)
    assert (
        "is not that of non-speculative decoding under the same seed: ("
        in result(report, SAME).message
    )


def test_seeds_that_reach_neither_mode_are_no_pass() -> None:
    def constant(prompt: Tokens, budget: int, seed: int) -> Text:
        return Text(tuple(i % 2 for i in range(budget)), 2, 1)

    for promised in (False, True):
        both = engine(constant, law=None, drafter=None, plain=constant, same_text=promised)
        report = judged(both, trials=500)
        assert report.exit_code == 2
        id_ = SAME if promised else LAW_CHECK
        assert "do seeds reach the engine?" in result(report, id_).message


def greedily(model: Any) -> Any:
    def text(prompt: Tokens, budget: int, seed: int) -> Text:
        found: Tokens = ()
        while len(found) < budget:
            p = model.next_token((*prompt, *found)).tolist()
            found += (p.index(max(p)),)
        return Text(found, budget, 1)

    return text


def test_greedy_engines_are_compared_text_by_text() -> None:
    prompts = [(a, b) for a in range(3) for b in range(3)]
    modes: dict[str, Any] = {"prompts": prompts, "tokens": 6}
    right = Engine(greedily(LAW), law=LAW, **modes)
    report = judged(right, greedy=True)
    assert report.exit_code == 0
    assert result(report, SAME).message.startswith(
        "18 texts are those of greedy decoding of the distribution; none ends before its "
        "budget, so stopping at EOS was not tried; "
    )
    assert result(report, LAW_CHECK).status == Status.NOT_APPLICABLE
    wrong = Engine(greedily(GUESS), plain=greedily(LAW), **modes)
    report = judged(wrong, greedy=True)
    assert (report.exit_code, report.finding) == (1, Finding.CONTRACT)
    other = Engine(greedily(GUESS), law=LAW, plain=greedily(GUESS), **modes)
    assert judged(other, greedy=True).finding == Finding.PLAIN


def test_any_of_tied_tokens_will_do_for_a_greedy_engine_with_a_law() -> None:
    tied = iid_model(Vocabulary("abc"), [0.4, 0.2, 0.4])

    def last(prompt: Tokens, budget: int, seed: int) -> Text:
        return Text((2,) * budget, budget, 1)

    modes: dict[str, Any] = {"prompts": [(0,), (1,)], "law": tied, "tokens": 6}
    assert judged(Engine(last, plain=greedily(tied), **modes), greedy=True).exit_code == 0

    def another_once(prompt: Tokens, budget: int, seed: int) -> Text:
        return Text((*(0, 2, 1)[:budget], *(0,) * (budget - 3)), budget, 1)

    report = judged(Engine(another_once, **modes), greedy=True)
    assert "token 1 at position 2, an argmax of the target is 0" in result(report, SAME).message
    only_one = Engine(
        lambda prompt, budget, seed: Text((1 + (budget > 1),) * budget, budget, 1), **modes
    )
    assert "token 1 at position 0" in result(judged(only_one, greedy=True), SAME).message


AFTER = [[0.25, 0.5, 0.25], [0.25, 0.25, 0.5], [1, 0, 0]]
STOPS = markov_model(Vocabulary("ab$", eos="$"), [0.5, 0.25, 0.25], AFTER)


def test_greedy_engines_are_to_stop_at_eos() -> None:
    def stopping(prompt: Tokens, budget: int, seed: int) -> Text:
        return Text(greedy_text(STOPS, prompt, budget), budget, 1)

    modes: dict[str, Any] = {"prompts": [(0,), (1,)], "tokens": 6, "law": STOPS}
    report = judged(Engine(stopping, **modes), greedy=True)
    assert report.exit_code == 0
    said = "4 texts are those of greedy decoding of the distribution; "
    assert result(report, SAME).message.startswith(said)
    assert "EOS was not tried" not in str(report)

    def beyond(prompt: Tokens, budget: int, seed: int) -> Text:
        text = greedy_text(STOPS, prompt, budget)
        return Text((*text, *(0,) * (budget - len(text))), budget, 1)

    assert judged(Engine(beyond, **modes), greedy=True).exit_code == 1


def prints(prompt: Tokens, budget: int, seed: int) -> Text:
    print("loading the model")
    os.write(1, b"from below\n")
    return Speculating()(prompt, budget, seed)


def test_an_engine_that_prints_is_named_and_standard_output_stays_clean(
    capfd: pytest.CaptureFixture,
) -> None:
    report = judged(engine(prints), detect_tv=0.3)
    said = "smoke/texts: prints to standard output, 'loading the model' first; that is sent to "
    assert report.warnings == (f"{said}standard error",)
    assert report.exit_code == 0
    assert capfd.readouterr().out == ""


def crashing(prompt: Tokens, budget: int, seed: int) -> Text:
    if seed % 64 == 63:
        raise MemoryError("no more")
    return Speculating()(prompt, budget, seed)


BROKEN: dict[str, tuple[Any, str, str]] = {
    "crashes": (crashing, LAW_CHECK, "speculative mode raised MemoryError: no more (prompt"),
    "too many": (
        lambda prompt, budget, seed: (0,) * (budget + 1),
        "smoke/texts",
        "answered more than 1 tokens, its budget",
    ),
    "other texts": (
        lambda prompt, budget, seed: Speculating()(prompt, budget, time.perf_counter_ns()),
        "smoke/texts-deterministic",
        "; say seeded=False if so (--declare seeded=false)",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_contract_is_named_and_not_called_lossy(name: str) -> None:
    function, id_, said = BROKEN[name]
    report = judged(engine(function))
    assert (report.exit_code, report.finding) == (1, Finding.CONTRACT)
    assert report.failures[0].id == id_
    assert {one.stage for one in report.failures} == {report.failures[0].stage}
    assert said in result(report, id_).message


@pytest.mark.deep
def test_texts_of_one_token_show_something_where_there_are_many() -> None:
    many = Vocabulary([f"t{i}" for i in range(48)])
    flat = Model(many, lambda context: [1 / 48] * 48)
    prompts = [(i,) for i in range(24)]
    one = Engine(sampling(flat), prompts, law=flat, plain=sampling(flat), tokens=2)
    report = judged(one, only=[SHORT])
    assert 0.25 < result(report, SHORT).evidence["detectable_tv"] <= 0.5


def test_a_greedy_engine_of_one_prompt_is_asked_more_than_twice() -> None:
    calls = [0]

    def changing(prompt: Tokens, budget: int, seed: int) -> Text:
        calls[0] += 1
        return Text((0,) * (budget - 1) + (int(calls[0] == 9),), budget, 1)

    report = judged(engine(changing), greedy=True, only=["smoke/texts-deterministic"])
    assert report.failures


def test_the_evidence_of_prompts_multiplies() -> None:
    """The same bug needs fewer texts of each of three prompts than of one."""
    one, all_ = (
        judged(
            Engine(LOSSY["residual is p"], prompts, **WITHOUT), detect_tv=0.05, only=[LAW_CHECK]
        )
        for prompts in (PROMPTS[:1], PROMPTS)
    )
    few, many = (result(report, LAW_CHECK) for report in (all_, one))
    assert few.status == many.status == Status.FAILED
    assert few.evidence["trials"] / len(PROMPTS) < many.evidence["trials"]
    assert f"after each of {len(PROMPTS)} prompts" in few.message
    assert few.evidence["log10_evidence"] >= few.evidence["log10_threshold"]


def test_a_second_run_goes_on_where_the_first_was_stopped(tmp_path: Path) -> None:
    file, calls = str(tmp_path / "texts"), [0]

    def counted(prompt: Tokens, budget: int, seed: int) -> Text:
        calls[0] += 1
        if calls[0] == 700:
            interrupt_main()
        return Speculating()(prompt, budget, seed)

    asked_for = {"detect_tv": 0.2, "only": ["smoke", LAW_CHECK, SHORT, SAME]}
    one, options = engine(counted), {"name": "toy", "texts": file, **asked_for}
    # Where the tests run in the background, the signal is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(Interrupted):
            judged(one, **options)
    finally:
        signal.signal(signal.SIGINT, before)
    kept = len(Path(file).read_text().splitlines()) - 1
    assert kept > 600
    asked, smoke = calls[0], 26
    resumed = judged(one, **options)
    whole = judged(engine(Speculating()), **asked_for)
    first, second = (result(report, LAW_CHECK) for report in (resumed, whole))
    numbers = "trials", "log10_evidence", "tv", "proposed", "accepted"
    assert {n: first.evidence[n] for n in numbers} == {n: second.evidence[n] for n in numbers}
    short = result(whole, SHORT).evidence["trials"]
    assert first.evidence["taken"] == kept
    assert f"{kept:,} texts of an earlier run" in first.message
    assert calls[0] - asked == second.evidence["trials"] - kept + short + smoke
    after = calls[0]
    judged(one, **options)
    assert calls[0] - after == smoke


def test_texts_of_another_engine_are_not_taken(tmp_path: Path) -> None:
    file = str(tmp_path / "texts")
    judged(engine(Speculating()), name="toy", texts=file, detect_tv=0.5)
    with pytest.raises(ValueError, match="expected texts of this engine"):
        judged(engine(Speculating()), name="other", texts=file)


def test_a_run_says_beforehand_how_long_it_will_take(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(prompt: Tokens, budget: int, seed: int) -> Text:
        time.sleep(0.002)
        return Speculating()(prompt, budget, seed)

    # Without a law, it is known only afterwards how many different texts there are.
    options = CheckOptions(contract=ENGINE, detect_tv=0.1)
    for known, texts in ({}, 5_600), (WITHOUT, 2_000):
        judge, asked = prepare(engine(slow, **known), options)
        assert texts * 0.002 < estimated_seconds(judge, asked) < 1_000
    judge, _ = prepare(engine(slow), options)
    assert estimated_seconds(judge, ()) == 0
    # A text takes two seconds by speculation and three without: each mode that is asked counts.
    seconds = {"speculative": 2.0, "plain": 3.0}
    monkeypatch.setattr(engines, "seconds_of_a_text", lambda judge, mode: (seconds[mode], {(0,)}))
    plain = {"plain": sampling()}
    for known, only, expected in (
        ({}, None, 200),
        (plain, None, 500),
        (plain, [LAW_CHECK], 200),
        (plain, [PLAINLY], 0),
        (WITHOUT, None, 500),
    ):
        given = CheckOptions(contract=ENGINE, trials=100, only=only)
        assert estimated_seconds(*prepare(engine(slow, **known), given)) == expected


@pytest.mark.deep
def test_seconds_are_kept_to_and_what_they_bought_is_said() -> None:
    for known in ({}, WITHOUT):
        short = engine(Speculating(lookahead=1), tokens=2, **known)  # few texts show much
        judged(short, trials=10)  # imports
        started = time.process_time()
        # On a busy machine half a second of work.
        report = judged(short, detect_tv=None, seconds=2)
        assert time.process_time() - started < 5
        assert report.exit_code == 0
        assert "would be detected on its prompts" in report.verdict


ENGINES = """
import time
from proofs_tests.helpers.engines import Speculating, engine
def slow(prompt, budget, seed):
    print("noise")
    time.sleep(0.002)
    return Speculating()(prompt, budget, seed)
mine = engine(slow)
"""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("examples.correct:verify --isolate", "--isolate: expected an Engine"),
        ("examples.correct:verify --texts texts", "texts = 'texts': expected None under the con"),
        ("examples.correct:verify --contract text", "--contract verify fits"),
        (
            "engines.py:slow --contract text",
            "expected an Engine, which has a distribution or a non-speculative decoding",
        ),
        ("engines.py:mine", "--contract text fits"),
        (
            "engines.py:mine --contract text --texts texts --workers 2 --seconds 9",
            "expected None with workers",
        ),
        ("engines.py:mine --contract text --texts no/texts", "cannot write no/texts"),
        (
            "engines.py:mine --contract text --vocabulary 9",
            "expected none under the contract text",
        ),
        ("engines.py:mine --contract text --algorithm block", "the contract text has no rule"),
    ],
)
def test_misuse_is_one_line(
    arguments: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "engines.py").write_text(ENGINES)
    result = CliRunner().invoke(main, ["check", *arguments.split()])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert said in result.stderr
