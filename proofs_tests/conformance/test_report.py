"""The verdict and the exit code of reports, from results that are made by hand."""

from collections.abc import Iterable
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from specref.conformance.checks import CHECKS
from specref.conformance.diagnosis import Candidate, Diagnosis
from specref.conformance.options import CheckOptions
from specref.conformance.report import RUNNING, Report
from specref.conformance.status import LOSSY, CheckResult, Finding, Stage, Status
from specref.conformance.summary import HEADLINES, UNDRAFTED, WIDTH
from specref.contracts.capabilities import Capabilities
from specref.contracts.contract import Contract
from specref.contracts.table import CONTRACTS
from specref.report.kit import kit_report
from specref.report.kit_html import kit_html
from specref.zoo import MUTANTS


def result(status: Status, id_: str = "joint/wide", **fields: Any) -> CheckResult:
    numbers = {
        one: fields.pop(one) for one in ("detectable_tv", "detectable_shift") if one in fields
    }
    evidence, message = numbers | fields.pop("evidence", {}), fields.pop("message", "")
    stage, finding = Stage(id_.partition("/")[0]), fields.pop("finding", None)
    return CheckResult(id_, stage, status, message, evidence, 0.5, finding, **fields)


def lossy(id_: str = "joint/probed", **evidence: Any) -> CheckResult:
    return result(Status.FAILED, id_, finding=Finding.LAW, evidence=evidence)


def untried(id_: str) -> CheckResult:
    return result(Status.NOT_RUN, id_, evidence={"not_tried": [f"{id_} (no time left)"]})


def report(*results: CheckResult, greedy: bool = False, **fields: Any) -> Report:
    options = CheckOptions(name="mine", version="1", seed=3, detect_tv=0.05)
    return Report(options, Capabilities(greedy=greedy), results, **fields)


def limited(*results: CheckResult) -> Report:
    known = report(*results)
    return replace(known, options=replace(known.options, detect_tv=None, time_limit=9.0))


def one_line(lines: Iterable[str]) -> str:
    return " ".join(" ".join(lines).split())


def caused(*results: CheckResult, diagnosis: Diagnosis | None = None) -> str:
    return one_line(report(*results, diagnosis=diagnosis).summary.cause)


PASSED = result(Status.PASSED, detectable_tv=0.05)
CODES = [
    ([], 2),
    ([Status.NOT_APPLICABLE], 2),
    ([Status.PASSED], 0),
    ([Status.PASSED, Status.NOT_APPLICABLE], 0),
    ([Status.EXPECTED_FAILURE], 0),
    ([Status.PASSED, Status.NOT_RUN], 2),
    ([Status.PASSED, Status.INCONCLUSIVE], 2),
    ([Status.PASSED, Status.UNEXPECTED_PASS], 2),
    ([Status.PASSED, Status.FAILED], 1),
    ([Status.INCONCLUSIVE, Status.FAILED], 1),
]


@pytest.mark.parametrize(("statuses", "code"), CODES)
def test_the_exit_code_follows_from_the_statuses(statuses: list[Status], code: int) -> None:
    found = report(*map(result, statuses))
    assert found.exit_code == code
    assert bool(found) == found.passed == (code == 0)
    assert [one.status for one in found.failures] == [s for s in statuses if s == Status.FAILED]


STRATA = [
    result(Status.PASSED, "strata/one", detectable_shift=0.05),
    result(Status.PASSED, "strata/two", detectable_shift=0.1),
]
EDGE = result(Status.PASSED, "boundary/tiny", finding=Finding.EDGE)
VERDICTS = [
    ([PASSED], "no difference", ["TV ≥ 0.05", "1e-09"]),
    ([result(Status.PASSED)], "no difference", ["nothing was sampled"]),
    (
        [PASSED, result(Status.PASSED, "joint/deep", detectable_tv=0.2)],
        "no difference",
        ["TV ≥ 0.05", "only TV ≥ 0.2 by joint/deep"],
    ),
    (STRATA, "no difference", ["2 situations", "0.05 to 0.1"]),
    ([PASSED, STRATA[0]], "no difference", ["TV ≥ 0.05", "1 situations", "0.05"]),
    ([PASSED, EDGE], "no difference", ["boundary/tiny"]),
    (
        [PASSED, result(Status.EXPECTED_FAILURE, "joint/deep", finding=Finding.ACCEPTANCE)],
        "no difference",
        ["1 expected"],
    ),
    (
        [PASSED, result(Status.EXPECTED_FAILURE, "joint/deep", finding=Finding.LAW)],
        "LOSSY as expected",
        ["1 known"],
    ),
    ([PASSED, result(Status.UNEXPECTED_PASS, "joint/deep")], "expected failures", ["joint/deep"]),
    ([PASSED, result(Status.INCONCLUSIVE)], "INCONCLUSIVE", ["joint/wide"]),
    (
        [PASSED, *(result(Status.NOT_RUN, f"joint/{n}") for n in range(5))],
        "INCONCLUSIVE",
        ["joint/0", "joint/2", "2 more"],
    ),
    ([result(Status.NOT_APPLICABLE)], "INCONCLUSIVE", ["contract verify"]),
    (
        [PASSED, result(Status.NOT_APPLICABLE, "joint/one-hot")],
        "no difference",
        ["1 of the 2 checks"],
    ),
]


@pytest.mark.parametrize(("results", "verdict", "parts"), VERDICTS)
def test_the_verdict_says_what_was_found(
    results: list[CheckResult], verdict: str, parts: list[str]
) -> None:
    said = report(*results).verdict
    assert said.startswith(verdict)
    assert all(part in said for part in parts), said


def test_a_run_that_was_interrupted_decides_nothing() -> None:
    left = result(Status.NOT_RUN, "joint/deep", message=RUNNING)
    said = report(PASSED, left, complete=False).verdict
    assert said.startswith("INCONCLUSIVE")
    assert "joint/deep" in said
    assert report(PASSED, complete=False).verdict.startswith("INCONCLUSIVE")


@pytest.mark.parametrize("finding", Finding)
def test_the_gravest_finding_is_the_verdict(finding: Finding) -> None:
    status = Status.INCONCLUSIVE if finding == Finding.UNANSWERED else Status.FAILED
    graver = [one for one in Finding if list(Finding).index(one) <= list(Finding).index(finding)]
    lesser = [one for one in Finding if one not in graver]
    found = report(
        *(result(Status.FAILED, "joint/deep", finding=one) for one in lesser),
        result(status, "joint/eos", finding=finding),
        result(Status.PASSED, "joint/wide", finding=Finding.DEPENDENCE),  # of a pass: no finding
    )
    assert found.finding == finding
    assert found.lossy == (finding in LOSSY)
    assert "joint/eos" in found.verdict
    assert "joint/deep" not in found.verdict


def test_a_report_is_printed() -> None:
    failed = replace(
        lossy("joint/wide", traceback=("File mine.py, line 3", "  boom")), message="TV 0.3"
    )
    again = replace(failed, id="joint/deep", message="TV 0.2")
    found = report(failed, PASSED, again, warnings=("few bonus tokens",))
    lines = str(found).splitlines()
    assert found.summary.headline in lines
    assert lines.count("    boom") == 1
    assert any("few bonus tokens" in line for line in lines)
    assert len(repr(found)) < 600
    assert found.counts == {str(s): {"failed": 2, "passed": 1}.get(str(s), 0) for s in Status}


def raised(id_: str, line: int, message: str) -> CheckResult:
    trace = ("Traceback:", f'  File "mine.py", line {line}, in verify', f"KeyError: {message}")
    return result(
        Status.FAILED, id_, finding=Finding.CONTRACT, message=f"raised: {message}",
        evidence={"traceback": trace},
    )  # fmt: skip


def test_an_error_is_told_once() -> None:
    same = [raised(id_, 3, "'a'") for id_ in ("smoke/answers", "smoke/one-hot")]
    number, elsewhere = raised("joint/wide", 3, "'b'"), raised("joint/deep", 4, "'a'")
    found = report(*same, number, elsewhere)
    assert found.tracebacks == {
        "smoke/answers, smoke/one-hot, joint/wide": same[0].traceback,
        "joint/deep": elsewhere.traceback,
    }
    a, b = ("broken contract: raised: 'a'", "broken contract: raised: 'b'")
    assert list(found.seen.values()) == [a, "as smoke/answers", b, "as smoke/answers"]
    text = str(found)
    assert (text.count("raised: 'a'"), text.count("raised: 'b'")) == (2, 1)  # in full, and beside
    assert kit_html([found]).count("as smoke/answers") == 2


def test_results_are_compared_and_printed_without_their_errors() -> None:
    one, other = (replace(PASSED, error=ValueError(text)) for text in "ab")
    assert one == other
    assert "ValueError" not in repr(one)


def test_a_failure_that_blocks_joint_is_followed_by_the_command_that_names_the_bug() -> None:
    smoke = result(Status.FAILED, "smoke/rows", finding=Finding.LAW, message="p = 0")
    blocked = result(Status.NOT_RUN, "joint/wide", message="blocked by smoke/rows")
    for others, asked in (((blocked,), "joint"), ((PASSED,), "smoke/rows")):
        found = report(smoke, *others)
        named = replace(found, options=replace(found.options, name="mine.py:verify"))
        (line,) = [one for one in str(named).splitlines() if one.startswith("Next")]
        assert line.endswith(f"--only {asked}")
        assert "Docs: " in str(named)


@pytest.mark.parametrize(("late", "said"), [(1, "1 of 2 checks; one was"), (3, "1 of 4 checks")])
def test_a_pass_says_in_its_first_line_how_many_checks_were_not_tried(
    late: int, said: str
) -> None:
    found = report(PASSED, *[untried("joint/deep")] * late)
    assert found.exit_code == 0
    (line,) = [one for one in str(found).splitlines() if one.startswith("PASSED")]
    assert f"1 of {1 + late} checks; {late} not tried" in line


def test_what_has_no_time_left_is_one_line_and_no_verdict_on_its_own() -> None:
    late = [untried(f"strata/late-{number}") for number in range(60)]
    found = limited(PASSED, *late)
    assert found.exit_code == 0
    (line,) = [one for one in str(found).splitlines() if one.startswith("NOT TRIED")]
    assert "strata/late-0; strata/late-1; strata/late-2 and 57 more" in line
    assert "would be detected" in found.verdict
    nothing = limited(*late)
    assert (nothing.exit_code, nothing.law_not_reached) == (2, True)


@pytest.mark.parametrize("stage", ["acceptance", "independence"])
def test_what_a_limit_left_of_checks_that_compare_no_distribution_is_no_pass(stage: str) -> None:
    late, tried = untried(f"{stage}/rows-deep"), result(Status.PASSED, f"{stage}/rows-wide")
    for results, code in (((tried, late), 2), ((tried,), 0), ((PASSED, tried, late), 0)):
        assert limited(*results).exit_code == code


def test_samples_that_were_not_enough_do_not_lower_what_a_pass_says() -> None:
    """What would have been found is that of the checks that passed, and never all of it."""
    evidence = {"not_tried": ["it (x)"]}
    short = result(Status.NOT_RUN, "joint/deep", detectable_tv=0.9, evidence=evidence)
    found = report(PASSED, short, result(Status.PASSED, "joint/eos", detectable_tv=1.0))
    assert found.detected_tv == 0.05


@pytest.mark.parametrize("said", [*HEADLINES.values(), UNDRAFTED])
def test_the_first_line_of_a_report_is_one_line(said: str) -> None:
    assert len(f"FAILED · {said}") <= WIDTH


@pytest.mark.parametrize("contract", CONTRACTS.values(), ids=str)
@pytest.mark.parametrize(
    ("status", "most"), [(Status.PASSED, 25), (Status.FAILED, 60), (Status.INCONCLUSIVE, 60)]
)
def test_the_verdict_is_on_the_screen_whatever_there_is_to_say(
    contract: Contract, status: Status, most: int
) -> None:
    words = "what a check has seen of a sampler, in many words; " * 12
    evidence = {"not_tried": [f"{words} (more than 20 s)"], "traceback": (words,) * 9}
    own = [one.id for one in CHECKS if one.is_for(contract)]
    finding = Finding.CONTRACT if status == Status.FAILED else None
    results = [
        result(status, id_, message=f"{id_} {words}", evidence=evidence, finding=finding)
        for id_ in own
    ]
    parameters = tuple(f"parameter_{n} (float32 tensor [B, K + 1, V])" for n in range(9))
    options = CheckOptions(name="samplers/mine.py:verify", contract=contract)
    whole = Report(options, Capabilities(), tuple(results), (words,) * 6, passed_on=parameters)
    lines = str(whole).splitlines()
    # All of it is longer; what is undecided has little to say.
    assert len(whole.summary.lines(0.0)) > most - 40 * (status == Status.INCONCLUSIVE)
    assert len(lines) <= most
    assert whole.summary.headline.startswith(lines[len(whole.heading) + 1])
    assert whole.summary.counts in str(whole)
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"name": "mine.py:verify"}, "specref init mine.py:verify"),
        ({"name": "mine.py:verify", "profile": "thorough"}, "specref init mine.py:verify"),
        (
            {"name": "mine.py:verify", "profile": "smoke", "seed": 3, "algorithm": "block"},
            "specref check mine.py:verify --rule block --seed 3",
        ),
        (
            {"name": "mine.py:verify", "seed": 3, "algorithm": "block"},
            "specref init mine.py:verify --rule block",
        ),
        ({"name": "mine.py:verify", "only": ["smoke"]}, "specref check mine.py:verify"),
        ({"name": "mine.py:verify", "time_limit": 9.0}, "specref check mine.py:verify"),
        ({"name": "process:./mine"}, "specref check process:./mine --profile standard"),
        ({"name": "process:./mine", "profile": "thorough"}, "specref check process:./mine -v"),
        ({"name": "mine"}, ""),
    ],
)
def test_the_next_command_of_a_pass_is_not_the_one_that_was_typed(
    typed: dict[str, Any], words: str
) -> None:
    passed = Report(CheckOptions(**typed), Capabilities(rule="standard"), (PASSED,))
    assert passed.summary.next == ((f"Next: {words}",) if words else ())


def test_a_function_of_tensors_that_got_arrays_is_run_next_with_tensors() -> None:
    message = (
        "raised AttributeError at row 0: 'numpy.ndarray' … (--declare arrays=torch for tensors)"
    )
    failed = result(Status.FAILED, "smoke/answers", finding=Finding.CONTRACT, message=message)
    found = Report(CheckOptions(name="mine.py:verify"), Capabilities(), (failed,))
    assert found.summary.next[0] == "Next: specref check mine.py:verify --declare arrays=torch"


def test_the_next_command_of_a_failure_is_not_the_one_that_was_typed() -> None:
    options = CheckOptions(name="mine.py:verify")
    again = "Next: specref check mine.py:verify --only joint/probed"
    for only, command in ((None, again), (("joint/probed",), f"{again} -v")):
        found = Report(replace(options, only=only), Capabilities(), (lossy(),))
        assert found.summary.next[0] == command


HINTS = ("index of bonus_token_ids", "dimension of the batch", "seeded anew")


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        ({"between": "rows", "decision": {"text": "", "number": "bonus_token_ids"}}, HINTS[:1]),
        ({"between": "rows", "decision": {"text": "", "number": "a.py:3"}}, HINTS[1:2]),
        ({"between": "rows"}, HINTS[1:2]),
        ({"between": "calls"}, HINTS[2:]),
        ({}, ()),
    ],
)
def test_those_that_share_numbers_are_told_what_to_look_for(
    evidence: dict[str, Any], said: tuple[str, ...]
) -> None:
    """A token that two requests get is told from a random number of theirs."""
    for id_ in ("smoke/rows-vary", "independence/identical-rows-generators-kept"):
        shared = result(Status.FAILED, id_, finding=Finding.DEPENDENCE, evidence=evidence)
        cause = caused(shared, lossy("strata/generators-kept"))
        assert tuple(one for one in HINTS if one in cause) == said


def diagnosis_of(*, clean: bool) -> Diagnosis:
    """One that a bug in few blocks resembles, as it does whatever is right."""
    bug = MUTANTS["match-or-ratio"]
    weak = Candidate((bug,), (0.01,), 1.0, 0.0, 0.0, fits=False, resembles=True, distance=0.0)
    return Diagnosis((weak,), "blocks", clean_fits=clean, trials=9_000, cases=12, enough=1)


UNLIKE = replace(diagnosis_of(clean=False), candidates=())
"""No known bug explains it."""


def test_a_bug_is_no_cause_if_the_blocks_are_right() -> None:
    right, wrong = (
        caused(lossy("joint/probed-7-drafts"), diagnosis=diagnosis_of(clean=x))
        for x in (True, False)
    )
    assert "match-or-ratio" in wrong
    assert "match-or-ratio" not in right
    assert "fit the clean" in right


def test_a_bug_of_one_situation_is_named_with_it() -> None:
    split = {"text": "only where …", "wrong": ["no-laws"], "right": ["alone"]}
    failed = lossy("joint/one-hot", split={**split, "known": ["residual-is-p"]})
    for clean in (True, False):
        cause = caused(failed, diagnosis=diagnosis_of(clean=clean))
        assert cause.startswith(
            "Where draft_probs is None, the output has exactly the distribution of residual"
        )
        assert "Fix: Subtract q" in cause
        assert "match-or-ratio" not in cause


def test_a_cause_is_not_denied_below_it() -> None:
    split = {"text": "only at T ≠ 1", "wrong": ["cold", "hot"], "right": ["alone"]}
    near = diagnosis_of(clean=False)
    found, plain = (report(one, diagnosis=UNLIKE) for one in (lossy(split=split), lossy()))
    assert "temperature" in one_line(found.summary.cause)
    for text in (kit_html([found]), *kit_report_lines(found)):
        assert "No known bug differs" not in text
    assert "No known bug differs" in kit_html([plain])
    closer = report(lossy(split=split), diagnosis=near)
    page, screen = kit_html([closer]), " ".join(kit_report_lines(closer))
    assert "Likely cause: The temperature" in page
    assert "match-or-ratio" not in page + screen
    assert "match-or-ratio" in kit_html([report(lossy(), diagnosis=near)])


def kit_report_lines(found: Report) -> list[str]:
    """What -v prints, line by line."""
    console = Console(width=WIDTH, record=True, file=StringIO())
    console.print(kit_report(found, verbose=True))
    return console.export_text().splitlines()


def test_a_known_bug_of_the_last_row_alone_is_told_as_an_index() -> None:
    place = "only in the last row of a call"
    split = {"text": place, "wrong": ["alone"], "right": ["first-row"], "place": place}
    said = caused(lossy(split=split), diagnosis=diagnosis_of(clean=False))
    assert said.startswith("An index that is cut off")
    assert f"it is wrong {place}. Resembles what was seen on 12 cases" in said
    assert "index" not in caused(lossy(split={**split, "place": ""}), diagnosis=UNLIKE)


def test_an_edge_is_told_by_its_line() -> None:
    edge = replace(
        EDGE,
        message="torch.rand, shape (1,), at /home/mine.py:4 = 0.0: token 0 (chance 1e-16 a draw)",
        evidence={
            "at": "mine.py:4",
            "number": "rand = 0.0",
            "consequence": "token 0 at position 0 has target probability 0",
            "chance": 2.0**-53,
            "elsewhere": "",
        },
    )
    found = report(PASSED, edge, warnings=(f"boundary/tiny: {edge.message}", "few bonus tokens"))
    assert one_line(found.summary.warnings) == (
        "few bonus tokens mine.py:4: rand = 0.0: token 0 at position 0 has target probability 0 "
        "(probability 1e-16 a draw)"
    )


@pytest.mark.parametrize("race", [True, False])
def test_noise_that_cannot_be_read_is_told_with_its_line(race: bool) -> None:
    why = "its cells are neither boxes nor a race" if race else "more than max_runs = 500 runs"
    call = "torch.rand_like, shape (2, 3), at /home/mine.py:38: " * race
    unread = result(
        Status.NOT_APPLICABLE, "joint/probed", message=f"cannot be probed: {call}{why}"
    )
    said = " ".join(report(unread, lossy("joint/wide")).summary.where)
    assert ("mine.py:38: torch.rand_like" in said) == race
    decided = lossy("joint/wide", decision={"text": "mine.py:2: accept[0] keeps"})
    assert "mine.py:38" not in " ".join(report(unread, decided).summary.where)


def test_a_block_with_drafts_of_others_has_a_cause() -> None:
    failed = result(Status.FAILED, "smoke/answers", finding=Finding.CONTRACT)
    other = replace(failed, evidence={"undrafted": True})
    assert "index of a row's first draft" in caused(other)
    assert caused(failed) == ""


def test_a_list_is_cut_between_its_parts() -> None:
    parts = ", ".join(f"the part of number {n}" for n in range(40))
    evidence = {"not_tried": [f"{parts} (more than 20 s)"]}
    failed = result(Status.FAILED, message=parts, evidence=evidence)
    fitted = report(failed).summary.fitted(1)
    assert len(fitted.untried) < len(report(failed).summary.untried)
    assert fitted.untried[-2][-1].isdigit()


def test_a_limit_and_a_row_that_is_read_instead_are_causes() -> None:
    decision = {"name": "accept[6]", "text": "mine.py:4: accept[6] keeps draft 0 with 0.0000; min"}
    split = {"text": "only with 7 drafts", "wrong": [], "right": [], "lookaheads": [7]}
    limit = lossy("joint/probed-7-drafts", decision=decision, split=split)
    assert "limit on how many" in caused(limit, diagnosis=UNLIKE)
    longer = lossy(decision=decision, split={**split, "lookaheads": [8]})
    assert "limit on how many" not in caused(longer, diagnosis=UNLIKE)
    read = {"name": "residual[1]", "text": "residual[1] gives", "made": "(p - q)+ of position 0"}
    instead = caused(lossy(decision=read), diagnosis=UNLIKE)
    assert instead.startswith("residual[1] is drawn from (p - q)+ of position 0.")
