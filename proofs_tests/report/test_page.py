"""The HTML pages: well-formed, nothing loaded, figures of the report, widths in headless Chromium.

One seed; each campaign has a false alarm with probability 1e-9 at most, and finds TV 0.2 or more,
as of the lossy example and engine, with 0.999.
"""

import json
import math
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from click.testing import CliRunner
from rich.console import Console

from proofs_tests.helpers.engines import LOSSY, engine, sampling
from proofs_tests.helpers.pages import Page, contrast, measured
from specref import check
from specref.algorithms import standard
from specref.cli import main
from specref.conformance import suite
from specref.conformance.diagnosis import Diagnosis
from specref.conformance.diagnosis.ranking import Candidate
from specref.conformance.options import CheckOptions
from specref.conformance.report import Report
from specref.conformance.status import CheckResult, Finding, Stage, Status
from specref.conformance.strata.shape import Shape
from specref.contracts.capabilities import Capabilities
from specref.contracts.table import CONTRACTS
from specref.contrib.selftest.kill_matrix import kill_matrix
from specref.contrib.selftest.kills_report import kills_document
from specref.contrib.selftest.trigger_matrix import TriggerMatrix, TriggerRow, triggers_document
from specref.examples.correct import verify as correct
from specref.examples.lossy import verify as lossy
from specref.report.all_rules import verification_document
from specref.report.document import page_of
from specref.report.kit import kit_report
from specref.report.kit_html import kit_html, replay_line
from specref.report.page import STYLE, bars, curve, element, html_page, intervals, table
from specref.report.rules import rule_document
from specref.verification import AlgorithmReport, RuleReport, Verification, prove
from specref.zoo import MUTANTS
from specref.zoo.standard.printed import algorithm_5

WRONG = "<script>alert('x')</script>"
Pages: TypeAlias = Callable[[str], str]


def diagnosis() -> Diagnosis:
    """The bug of the lossy example, without the drawing that finds it."""
    entries = tuple(MUTANTS[id_] for id_ in ("best-of-two", "residual-is-p"))
    candidate = Candidate(entries, (1, 1), 120.0, 150.0, -3.0, True, False, 0.01)
    return Diagnosis((candidate,), "blocks", trials=20_000, cases=4, enough=20_000)


@pytest.fixture(scope="module")
def failing() -> Report:
    options: dict[str, Any] = {"one_hot": False, "only": ["smoke", "joint/wide", "joint/probed"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite, "diagnosed", lambda *given: diagnosis())
        return check(lossy, name="examples.lossy:verify", version=WRONG, **options)


@pytest.fixture(scope="module")
def passing() -> Report:
    only = ["joint/wide", "joint/probed", "acceptance/wide", "strata/one-draft", "strata/bare"]
    return check(correct, algorithm="standard", only=only, detect_tv=0.2)


ENTRIES = ("counts-bonus-as-accepted", "companion-judges-the-draft")


@pytest.fixture(scope="module")
def pages(failing: Report, passing: Report) -> Pages:
    """Each by its name; those of proofs and of the zoo are made when they are asked for."""
    rule = partial(page_of_rule, "my_rules:<step>")
    row = TriggerRow("one-draft", "residual-is-p", ("strata/one-draft",), "")
    reports = (AlgorithmReport("standard", 3, 7), AlgorithmReport("tli", failures=("<none>",)))
    reported = {"failing": [failing], "passing": [passing], "both": [failing, passing]}
    made = {name: kit_html(some) for name, some in reported.items()}
    others: dict[str, Callable[[], str]] = {
        "refuted": lambda: rule(prove(algorithm_5, only=("toy pairs",))),
        "proved": lambda: rule(prove(standard.step, only=("toy pairs",))),
        "raised": lambda: rule(prove(raising, only=("equal rows",))),
        "zoo": lambda: page_of(kills_document(kill_matrix(ENTRIES))),
        "triggers": lambda: page_of(triggers_document(TriggerMatrix((row,), 0))),
        "verify": lambda: page_of(verification_document(Verification("quick", 3, 5, reports))),
    }
    return cache(lambda name: made[name] if name in made else others[name]())


def page_of_rule(name: str, report: RuleReport) -> str:
    return page_of(rule_document(name, report))


def raising(target: Any, drafter: Any, context: Any, lookahead: int, chance: Any) -> Any:
    raise ValueError(WRONG)


NAMES = ["failing", "passing", "both", "refuted", "proved", "raised", "zoo", "triggers", "verify"]


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("name", NAMES)
def test_pages_are_well_formed_and_load_nothing(name: str, pages: Pages) -> None:
    page = Page(pages(name))
    assert page.problems == []
    assert page.loaded == []
    assert not re.search(r"url\(|@import|javascript:", pages(name))
    assert all(one["href"].startswith("https://") for one in page.all("a") if one["href"])
    for picture in page.all("svg"):
        assert picture["role"] == "img"
        assert len(str(picture["aria-label"])) > 20
    assert page.all("h1")
    assert {"lang": "en"} in page.all("html")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<p><b>x</p></b>", "</p> ends <b>"),
        ("<p>", "<p> is not closed"),
        ("</p>", "</p> ends <nothing>"),
    ],
)
def test_the_reader_of_pages_notices_unmatched_tags(text: str, problem: str) -> None:
    assert problem in Page(text).problems
    assert Page('<img src="x">').loaded == ["img", "src"]


def test_a_page_of_a_failure_has_its_figures(failing: Report, pages: Pages) -> None:
    text = Page(pages("failing")).text
    assert failing.summary.headline in text
    for result in failing.results:
        if result.status != Status.NOT_APPLICABLE:
            assert result.id in text
            assert " ".join(result.message.split()) in text
    wide = next(one for one in failing.results if one.id == "joint/wide").evidence
    estimate, lower, upper = max(wide["tv"].values())
    assert f"{estimate:.3f} in [{lower:.3f}, {upper:.3f}]" in text
    for length, count in wide["lengths"].items():
        assert f"{length} token{'s' * (length > 1)} {count / 1350:.1%}, {count:,} blocks" in text
    assert "Subtract q before drawing." in text
    hrefs = [one["href"] for one in Page(pages("failing")).all("a")]
    assert "https://github.com/ShopeeLLM/Spec-RL/issues/14" in hrefs


def test_the_law_is_drawn_to_scale(failing: Report, pages: Pages) -> None:
    """Two bars for each block, expected and observed, all with one unit."""
    drawn = Page(pages("failing")).all("rect")
    blocks = failing.worst.evidence
    shown = blocks["difference"]["blocks"]
    widths = [float(str(one["width"])) for one in drawn[: 2 * len(shown)]]
    lengths = [one[side] for one in shown for side in ("expected", "observed")]
    assert widths == pytest.approx([360 * x / max(lengths) for x in lengths], abs=0.06)
    classes = [one["class"] for one in drawn[:2]]
    assert classes == ["expected", "observed"]


@pytest.mark.strata
def test_a_page_of_a_pass_says_what_it_does_not_mean(passing: Report, pages: Pages) -> None:
    text = Page(pages("passing")).text
    assert passing.summary.headline in text
    assert "Not tested: shapes, distributions and call patterns that are not listed" in text
    assert "No difference was found there: these are the estimates" in text
    assert "V 5, 8, 37; lookahead 1; batch 1, 4, 32, 256" in text
    assert "neither coins nor lens is an optional parameter" in text
    shift = next(r for r in passing.results if r.id == "strata/one-draft")
    assert f"{shift.evidence['detectable_shift']:.2g}" in text


@pytest.mark.parametrize(
    ("result", "headline"),
    [
        (("smoke/answers", Status.FAILED, Finding.CONTRACT), "Broken contract"),
        (("smoke/answers", Status.INCONCLUSIVE, Finding.UNANSWERED), "Not answered in time"),
        (("joint/wide", Status.INCONCLUSIVE, None), "Nothing can be said yet"),
        (("joint/wide", Status.EXPECTED_FAILURE, Finding.LAW), "Lossy, as expected"),
        (("joint/wide", Status.EXPECTED_FAILURE, Finding.CONTRACT), "but for known failures"),
        (("joint/wide", Status.FAILED, Finding.DEPENDENCE), "blocks depend on each other"),
    ],
)
def test_the_headline_is_the_finding(result, headline):
    id_, status, finding = result
    stage = Stage(id_.split("/")[0])
    one = CheckResult(id_, stage, status, WRONG, {}, 0.5, finding)
    report = Report(CheckOptions(name="mine"), Capabilities(), (one,))
    page = Page(kit_html([report]))
    assert headline in page.text
    assert ("No difference" in page.text) == (report.exit_code == 0 and finding != Finding.LAW)
    assert ("does not have the joint distribution" in page.text) == (
        finding in (Finding.LAW, Finding.DEPENDENCE)
    )
    assert page.problems == page.loaded == []
    assert WRONG in page.text  # as text
    assert (f"only=['{id_}']" in replay_line(report)) == (status == Status.FAILED)


def without_power(case: str) -> Report:
    if case == "answers":
        return check(correct, only=["smoke/answers"])
    if case == "few trials":
        return check(correct, only=["joint/wide"], trials=500)
    found = CheckResult("joint/wide", Stage.JOINT, Status.PASSED, "as argmax does", {}, 0.5, None)
    claims, results = Capabilities(greedy=case == "greedy"), (found,) * (case == "greedy")
    return Report(CheckOptions(name="mine"), claims, results)


@pytest.mark.parametrize("case", ["answers", "few trials", "greedy", "empty"])
def test_no_power_is_claimed_that_a_run_did_not_have(case: str) -> None:
    report = without_power(case)
    assert report.detected_tv is None
    assert not report.has_power
    assert report.power_on_fixtures == ""
    page = Page(kit_html([report]))
    for claim in ("TV ≥ 0.05", "would be detected on", "999 times", "Dashed"):
        assert claim not in page.text.replace(report.verdict, "")
    assert not [one for one in page.all("line") if one["class"] == "mark"]
    if report.exit_code == 0:
        assert f"Power: {report.power}" in page.text


def test_shifts_are_not_claimed_of_a_run_that_failed_or_did_not_end(passing: Report) -> None:
    shift = CheckResult(
        "strata/one-draft", Stage.STRATA, Status.PASSED, "", {"detectable_shift": 0.1}, 0.5, None
    )
    failed = replace(shift, id="joint/wide", status=Status.FAILED)
    assert Report(CheckOptions(name="mine"), Capabilities(), (shift,)).has_power
    for claims, results, complete in (
        (Capabilities(), (shift, failed), True),
        (Capabilities(), (shift,), False),
        (Capabilities(greedy=True), (shift,), True),
    ):
        report = Report(CheckOptions(name="mine"), claims, results, complete=complete)
        assert not report.has_power
        assert "shift" not in report.power


def test_the_power_of_a_run_is_on_its_page(passing: Report, pages: Pages) -> None:
    assert passing.has_power
    assert passing.detected_tv == 0.2
    said = "TV ≥ 0.2 would be detected on the test cases"
    assert passing.power_on_fixtures == said
    text = Page(pages("passing")).text
    assert "TV ≥ 0.2 would be detected on the test cases" in text  # the card
    assert f"Dashed: 0.2; {said}." in text
    assert "Differences as large as the verdict says would be detected there" in text
    engine = replace(passing, options=replace(passing.options, contract=CONTRACTS["text"]))
    assert "on the test cases" not in Page(kit_html([engine])).text
    said = f"TV ≥ 0.2 would be detected {CONTRACTS['text'].tried_on}"
    assert f"Dashed: 0.2; {said}" in Page(kit_html([engine])).text


def test_the_power_names_the_checks_that_are_coarser(passing: Report) -> None:
    (wide,) = [one for one in passing.results if one.id == "joint/wide"]
    others = [one for one in passing.results if one is not wide]
    coarse = replace(wide, evidence={**wide.evidence, "detectable_tv": 0.4})
    mixed = replace(passing, results=(replace(coarse, id="joint/small"), wide, *others))
    assert mixed.detected_tv == 0.2
    assert mixed.power_on_fixtures.endswith("cases; only TV ≥ 0.4 by joint/small")
    assert replace(passing, results=(coarse,)).detected_tv == 0.4
    timed = replace(passing, options=replace(passing.options, seconds=10.0, detect_tv=None))
    fine = wide.evidence["detectable_tv"]
    assert replace(timed, results=(wide,)).detected_tv == fine


@pytest.mark.parametrize("name", ["failing", "raised", "refuted"])
def test_names_and_messages_are_escaped(name: str, pages: Pages) -> None:
    assert "<script" not in pages(name)
    assert WRONG in Page(pages(name)).text or "my_rules:<step>" in Page(pages(name)).text


def test_sentences_of_a_section_flow_and_figures_stay_aligned(pages: Pages) -> None:
    """On a phone a line that is wrapped for 80 columns would be wrapped twice."""
    page = pages("failing")
    cause = page[page.index("<h2>Likely cause") : page.index("<h2>Run it again")]
    assert re.search(r'<p class="said more">Fix: [^<]*after each rejection\.</p>', cause)
    where = page[page.index("<h2>Where") : page.index("<h2>Likely cause")]
    figures = re.findall(r"<pre>(.*?)</pre>", where, re.DOTALL)
    assert any("first token 1 " in one and "position 0 " in one for one in figures)
    assert not any("was rejected" in one for one in figures)


def test_the_replay_line_runs_the_same_again(failing, monkeypatch):
    monkeypatch.setattr(suite, "diagnosed", lambda *given: None)
    line = replay_line(failing)
    assert line.endswith(f"--declare one_hot=false --only {failing.failures[0].id}")
    command, *words = shlex.split(line)
    assert command == "specref"
    ran = CliRunner().invoke(main, [*words, "--json", "-"])
    assert ran.exit_code == 1
    (again,) = json.loads(ran.stdout)["results"]
    assert again["message"] == failing.failures[0].message


def test_without_a_name_on_the_command_line_it_is_python(passing: Report) -> None:
    line = replay_line(passing)
    assert line.startswith("specref.check(verify, contract='verify', algorithm='standard', seed=0")
    compile(line, "replay", "eval")
    shaped = replace(passing.options, shapes=(Shape(9, 2, 1),))
    assert "shapes=[(9, 2, 1)]" in replay_line(replace(passing, options=shaped))


def test_contrast_is_enough_in_light_and_dark() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    light, dark = (
        dict(re.findall(r"--([\w-]+): (#\w{6})", part)) for part in STYLE.split("@media")[:2]
    )
    assert light.keys() == dark.keys() > {"text", "soft", "link", "page", "panel"}
    for shade in (light, dark):
        for text in ("text", "soft", "link"):
            for ground in ("page", "panel"):
                assert contrast(shade[text], shade[ground]) >= 4.5
        for mark in ("expected", "observed", "good", "bad", "open", "none"):
            assert contrast(shade[mark], shade["page"]) >= 2.5
        assert contrast(shade["expected"], shade["observed"]) >= 1.3


WIDE = html_page("wide", element("pre", "x" * 300, style="white-space: pre"))


PHONES = [("failing", False), ("failing", True), ("zoo", False), ("passing", True)]
MORE_PHONES = [one for one in product(NAMES, (False, True)) if one not in PHONES]


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize(
    ("name", "dark"),
    [*PHONES, *(pytest.param(*one, marks=pytest.mark.deep) for one in MORE_PHONES)],
)
def test_pages_fit_a_phone(name: str, dark: bool, pages: Pages, tmp_path: Path) -> None:
    found = measured(pages(name), tmp_path, 390, dark=dark)
    assert found["window"] == 390
    assert found["width"] <= 390
    assert found["right"] <= 390.5
    assert found["svg"] <= 361
    assert found["left"] >= -1.5
    assert found["overlaps"] == 0
    assert found["background"] == ("rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)")


def test_the_browser_notices_what_does_not_fit(tmp_path: Path) -> None:
    picture = bars([("a" * 30, "b" * 30, [])], "a picture of nothing", "")
    clash = picture.replace('y="28"', 'y="12"')
    found = measured(WIDE.replace("</main>", f"{clash}</main>"), tmp_path, 390, dark=True)
    assert found["width"] > 390
    assert found["overlaps"] == 1
    assert found["background"] == "rgb(13, 17, 23)"


def test_a_table_and_intervals() -> None:
    page = Page(table(["a", "b"], [["1 < 2", element("b", "x")]], ["number"]))
    assert page.text == "a b 1 < 2 x"
    assert [one.get("class") for one in page.all("td")] == ["number", None]
    drawn = Page(intervals([("x", 0.1, 0.05, 0.15)], 0.05, "an interval of x in words", "c"))
    (circle,) = drawn.all("circle")
    # From 6 to 354 are 0 to 0.2.
    assert float(str(circle["cx"])) == pytest.approx(6 + 348 / 2)
    (line,) = [one for one in drawn.all("line") if one["class"] == "observed"]
    assert (line["x1"], line["x2"]) == ("93.0", "267.0")
    (mark,) = [one for one in drawn.all("line") if one["class"] == "mark"]
    assert mark["x1"] == "93.0"


LOOKS = ((1800, -0.4), (5400, 3.25), (12600, 12.5))


def test_a_curve_has_a_point_for_each_look() -> None:
    drawn = Page(curve(LOOKS, 11.0, "evidence of x, look by look", "c"))
    circles = [(float(str(x["cx"])), float(str(x["cy"]))) for x in drawn.all("circle")]
    (line,) = drawn.all("polyline")
    joined_up = [tuple(map(float, x.split(","))) for x in str(line["points"]).split()]
    assert circles == joined_up
    xs, ys = zip(*circles, strict=True)
    left, right, top, bottom = xs[0], xs[-1], ys[-1], ys[1]
    assert [(x - left) / (right - left) for x in xs] == pytest.approx(
        [trials / 12600 for trials in (0, 1800, 5400, 12600)], abs=1e-3
    )
    assert [(bottom - y) / (bottom - top) for y in ys] == pytest.approx(
        [(exponent + 0.4) / 12.9 for exponent in (0, -0.4, 3.25, 12.5)], abs=1e-3
    )
    (mark,) = [one for one in drawn.all("line") if one["class"] == "decides"]
    height = (bottom - float(str(mark["y1"]))) / (bottom - top)
    assert height == pytest.approx(11.4 / 12.9, abs=1e-3)
    assert drawn.text.endswith(
        "c evidence of x, look by look 10^11.0 10^0 10^12.5 0 12,600 trials"
    )


def with_looks(looks: tuple[tuple[int, float], ...], status: Status = Status.FAILED) -> Report:
    highest = max(x for _, x in looks)
    evidence = {"looks": looks, "log10_evidence": highest, "log10_threshold": 11.0}
    finding = Finding.LAW if status == Status.FAILED else None
    one = CheckResult("joint/deep", Stage.JOINT, status, "off", evidence, 0.5, finding)
    two = replace(one, id="joint/eos", status=Status.PASSED, finding=None)
    return Report(CheckOptions(name="mine"), Capabilities(), (one, two))


def test_evidence_is_shown_look_by_look() -> None:
    report = with_looks(LOOKS)
    page = Page(kit_html([report]))
    assert page.problems == []
    text = page.text
    assert "Evidence over trials" in text
    assert "As a table trials log10 of the evidence 1,800 -0.40 5,400 3.25 12,600 12.50" in text
    assert "1 more campaign joint/eos" in text
    labels = [str(one["aria-label"]) for one in page.all("svg")]
    said = "evidence 10^-0.4 after 1,800; 10^3.2 after 5,400; 10^12.5 after 12,600"
    assert labels[0] == f"joint/deep: {said}; 10^11.0 decides"
    grown = "evidence 10^-0.4 after 1,800, 10^3.2 after 5,400, 10^12.5 after 12,600"
    assert f"{grown}; 10^11.0 decides" in " ".join(str(report).split())
    assert f"{grown}; 10^11.0 decides" in " ".join(printed(report).split())
    assert "after 1,800" not in str(with_looks(LOOKS[:1])).partition("joint/deep: off")[2]
    assert "Evidence over trials" not in Page(kit_html([replace(report, results=())])).text


def printed(report: Report) -> str:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(kit_report(report))
    return capture.get()


def test_evidence_that_is_not_finite_is_in_the_table_alone() -> None:
    page = Page(kit_html([with_looks(((500, math.inf),))]))
    assert page.all("polyline") == []
    assert "500 inf" in page.text


@pytest.mark.parametrize(
    "words",
    [
        ["check", "examples.correct:verify", "--only", "smoke/answers"],
        ["prove", "specref.algorithms.standard:step", "--only", "equal rows"],
        ["zoo", "counts-bonus-as-accepted"],
        ["verify"],
    ],
)
def test_no_page_goes_where_the_table_goes(words: list[str]) -> None:
    result = CliRunner().invoke(main, [*words, "--html", "-"])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert "html = '-': expected a file" in result.stderr


def test_a_page_of_two_modes_shows_how_the_evidence_grew() -> None:
    wrong = LOSSY["residual is p"]
    report = check(engine(wrong, law=None, drafter=None, plain=sampling()), contract="text")
    found = next(one for one in report.results if one.id == "end-to-end/texts").evidence
    text = Page(kit_html([report])).text
    assert report.exit_code == 1
    assert f"10^{found['log10_evidence']:.0f} evidence; 10^10 decides" in text
    assert "Total variation of texts from those of non-speculative decoding" in text
    trials, evidence = found["looks"][-1]
    assert (trials, evidence) == (found["trials"], found["log10_evidence"])
    assert report.growth[0].partition(": ")[2] in " ".join(str(report).split())
