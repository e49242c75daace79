"""The command line as a user meets it: exit codes, one-line errors, JSON."""

import json
import math
import multiprocessing
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from click.testing import Result

from proofs_tests.helpers.command import assert_fits, run
from specref.algorithms import standard
from specref.cli import COMMANDS, group, main
from specref.cli import proving as prove_module
from specref.cli.cluster import ctrl_c_later, worker_processes
from specref.cli.group import progress
from specref.pairs import Case
from specref.rule import Rule
from specref.rules import RULES
from specref.verification import AlgorithmReport, cases_of, main_job
from specref.verification.rules import RuleReport
from specref.verification.situations import TOY_PAIRS

RIGHT = "from specref.algorithms.standard import step\n"
WRONG = """
from specref.algorithms.standard import draft, verify

def step(target, drafter, context, lookahead, chance):
    drafts = draft(drafter, context, lookahead, chance)
    return verify(target, context, drafts[:-1], chance)[: 1 + bool(drafts[-1].token)]
"""
ALL_ZERO = """
import numpy as np

def step(target, drafter, context, lookahead, chance):
    return (chance.draw(np.zeros(3), "residual"),)
"""
EXITS = """
def step(target, drafter, context, lookahead, chance):
    raise SystemExit(0)
"""
NEIGHBOURLY = """
from __future__ import annotations
from dataclasses import dataclass
import neighbour_of_rule

@dataclass
class Draft:
    token: int

step = neighbour_of_rule.step
"""
FROM_NUMPY = """
import numpy as np
from specref.algorithms import standard
rng = np.random.default_rng(1)

def step(target, drafter, context, lookahead, chance):
    block = standard.step(target, drafter, context, lookahead, chance)
    return (*block[:-1], int(rng.integers(len(target.vocabulary))))
"""
ARGMAX = """
import numpy as np

def step(target, drafter, context, lookahead, chance):
    return (int(np.argmax(target.next_token(context))),)
"""
TAKES_RNG = """
def step(target, drafter, context, lookahead, rng):
    return (int(rng.integers(len(target.vocabulary))),)
"""
VERIFIES = """
def step(target_probs, draft_probs, draft_tokens, *, rng):
    return draft_tokens, draft_tokens[:, 0]
"""

FEW = ("--only", TOY_PAIRS)
"""Of `prove`, which takes seconds for all situations."""


def written(folder: Path, code: str) -> str:
    """The name of the step of a file with this code."""
    (folder / "rule.py").write_text(code)
    return f"{folder}/rule.py:step"


def assert_one_line_error(result: Result, *parts: str) -> None:
    assert result.exit_code == 2
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    for part in parts:
        assert part in lines[0]


@pytest.fixture
def few_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(main_job.TRIALS, "quick", 2_000)
    monkeypatch.setitem(main_job.EPS, "quick", 0.25)


@pytest.fixture
def small_job(few_trials: None, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: RULES[name] for name in ("autoregressive", "standard")}
    monkeypatch.setattr(main_job, "TRIED", few)


@pytest.fixture
def few_cases(small_job: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main_job, "cases_of", lambda profile: cases_of(profile)[::8])


def test_help_has_examples() -> None:
    for command in main.commands:
        assert "Examples:" in run(command, "--help").output


def test_help_fits_80_columns_and_cuts_no_word() -> None:
    for arguments in (
        [],
        *([command] for command in main.commands),
        ["plan", "speed"],
        ["plan", "samples"],
    ):
        text = run(*arguments, "--help").output
        assert max(map(len, text.splitlines())) <= 80, arguments
        _, after_usage = text.split("\n\n", 1)
        assert "..." not in after_usage, arguments


def test_help_of_all_commands_is_the_first_line_of_each() -> None:
    text = " ".join(run("--help").output.split())
    for name, told in COMMANDS.items():
        whole = run(name, "--help").output.split("\n\n")[1]
        assert " ".join(whole.split()) == told
        assert f"{name} {told}" in text


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize(
    ("command", "unused"),
    [
        ((), {"conformance", "statistics", "zoo", "verification", "probing"}),
        (
            ("check",),
            {"adapters", "conformance.checks", "conformance.suite", "probing", "process"},
        ),
        (("prove",), {"conformance", "statistics", "zoo"}),
        (("vectors",), {"conformance", "statistics", "zoo"}),
        (("zoo",), {"conformance", "statistics", "zoo", "verification"}),
        (("verify",), {"adapters", "conformance", "probing"}),
    ],
)
def test_help_imports_no_more_than_it_needs(command: tuple[str, ...], unused: set[str]) -> None:
    """SciPy and the checks take most of a second to import; times are not asserted."""
    loaded = imported_by(*command, "--help")
    assert "specref.cli.group" in loaded
    assert not {f"specref.{name}" for name in unused} & loaded
    assert not {"scipy.stats", "scipy.special", "torch", "distributed"} & loaded
    assert "scipy" not in loaded or command in (("check",), ("verify",))


@pytest.mark.deep
def test_a_check_that_samples_does_without_scipy_stats() -> None:
    """Which is slow to import; `scipy.special` has what is needed."""
    asked = ("--only", "joint/wide", "--detect-tv", "0.3")
    loaded = imported_by("check", "specref.examples.correct:verify", *asked)
    assert {"scipy.special", "specref.statistics.campaign.levels"} <= loaded
    assert "scipy.stats" not in loaded


def imported_by(*command: str) -> set[str]:
    """The modules that a command imports, in a process of its own."""
    code = f"""import sys
from specref.cli import main
try:
    main({command}, standalone_mode=False)
finally:
    print(*sys.modules)"""
    words = [sys.executable, "-c", code]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return set(shown.splitlines()[-1].split())


@pytest.mark.usefixtures("few_trials")
def test_verify_holds_and_writes_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One rule of each kind, one case in 32; the next test has the others, without proofs."""
    kinds = ("standard", "slem", "greedy-block", "top-drafts", "topdown", "companion-published")
    monkeypatch.setattr(main_job, "TRIED", {name: RULES[name] for name in kinds})
    monkeypatch.setattr(main_job, "cases_of", lambda profile: cases_of(profile)[::32])
    monkeypatch.setattr(group, "EVERY", math.inf)
    file = tmp_path / "report.json"
    result = run("verify", "--json", str(file), "--seed", "3")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    record = json.loads(file.read_text())
    assert record["ok"] is True
    assert record["seed"] == 3
    assert [report["algorithm"] for report in record["reports"]] == list(kinds)
    assert all(report["paths"] > 0 for report in record["reports"])
    assert list(tmp_path.iterdir()) == [file]
    assert_fits("verify", file.read_text())


def test_verify_tries_every_rule_on_every_case(tmp_path, monkeypatch):
    """Nothing is proved or sampled: that is counted, and what is asked for is reported."""
    proved, drawn = Counter(), Counter()

    def check_case(rule: Rule, case: Case) -> AlgorithmReport:
        proved[rule.name, str(case)] += 1
        return AlgorithmReport(rule.name, cases=1, refuted=int(not rule.lossless))

    def sample(name: str, *options: object) -> tuple[None, tuple[()]]:
        drawn[name] += 1
        return None, ()

    monkeypatch.setattr(main_job, "check_case", check_case)
    monkeypatch.setattr(main_job, "sample", sample)
    file = tmp_path / "report.json"
    result = run("verify", "--json", str(file))
    every = [*RULES, "algorithm-5-printed"]
    reports = json.loads(file.read_text())["reports"]
    assert [report["algorithm"] for report in reports] == every
    assert [line.split()[0] for line in result.stdout.splitlines()[2 : 2 + len(every)]] == every
    assert proved == dict.fromkeys(product(every, map(str, cases_of("quick"))), 1)
    assert drawn == {name: 1 for name in every if name in RULES and RULES[name].sampled}


@pytest.mark.usefixtures("few_cases")
def test_verify_fails_on_a_planted_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    def first_draft_unverified(target, drafter, context, lookahead, chance):
        drafts = standard.draft(drafter, context, lookahead, chance)
        seen = (*context, drafts[0].token)
        return (drafts[0].token, *standard.verify(target, seen, drafts[1:], chance))

    wrong = replace(RULES["standard"], step=first_draft_unverified)
    monkeypatch.setattr(main_job, "TRIED", {"standard": wrong})
    result = run("verify")
    assert result.exit_code == 1
    assert "lossy" in result.output


@pytest.mark.usefixtures("few_cases")
def test_verify_fails_on_a_planted_bug_of_the_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    """The samples are of the wrong algorithm; every exact check still holds."""
    right = main_job.tabulate

    def lossless_but_other(algorithm, *arguments):
        return right("slem" if algorithm == "standard" else algorithm, *arguments)

    monkeypatch.setattr(main_job, "tabulate", lossless_but_other)
    result = run("verify")
    assert result.exit_code == 1
    assert "standard: Monte Carlo" in result.output
    assert "first draft accepted" in " ".join(result.output.split())
    assert "1 checks failed" in result.output


@pytest.fixture
def ctrl_c_interrupts() -> Iterator[None]:
    """In the background of a shell without job control, Ctrl-C is ignored from the start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c_interrupts")
def test_ctrl_c_while_a_worker_starts_is_put_off_not_lost() -> None:
    started: list[str] = []

    def start() -> None:
        with ctrl_c_later():
            signal.raise_signal(signal.SIGINT)
            started.append("worker")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert started


def test_ctrl_c_ends_the_workers() -> None:
    """Without that this test would take an hour."""

    def work() -> None:
        with worker_processes(2) as pool:
            pool.submit(time.sleep, 3600)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("command", ["verify", "prove"])
def test_ctrl_c_is_one_line(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(main_job, "check_case", interrupted)
    monkeypatch.setattr(prove_module, "prove", interrupted)
    result = run(command, *(["specref.algorithms.tli:step"] if command == "prove" else []))
    assert result.exit_code == 130
    assert result.stderr == "interrupted\n"


def test_piped_progress_is_a_line_a_minute(monkeypatch, capsys):
    now = 0.0
    monkeypatch.setattr(group.time, "monotonic", lambda: now)
    with progress(40, "mutants") as advance:
        for _ in range(20):
            now += 15.0
            advance(1, "shared-u")
        now += 61.0
        advance(20)
    first, *_, last = lines = capsys.readouterr().err.splitlines()
    assert first == "4 of 40 mutants after 1 min, about 9 min left (shared-u)"
    assert last == "40 of 40 mutants after 6 min"
    assert len(lines) == 6


def test_json_is_readable_by_others(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    assert run("plan", "--n", "1000", "--json", str(file)).exit_code == 0
    assert file.stat().st_mode & 0o444 == 0o444
    assert list(tmp_path.iterdir()) == [file]
    assert_fits("plan", file.read_text())
    assert_fits("plan", run("plan", "--mutant", "residual-is-p", "--json", "-").stdout)


def test_samples_are_planned_with_the_name_of_the_command_and_without() -> None:
    named, bare = run("plan", "samples", "--tv", "0.1"), run("plan", "--tv", "0.1")
    assert (named.exit_code, named.stdout) == (0, bare.stdout)
    for options in (["--tv", "0.1"], ["--n", "1000"]):
        for command in (["plan"], ["plan", "samples"]):
            assert "blocks" in run(*command, *options).stdout


@pytest.mark.deep
def test_prove_a_file_with_neighbours_and_dataclasses(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_rule.py").write_text(RIGHT)
    rule = tmp_path / "json.py"  # there is a module of that name already
    rule.write_text(NEIGHBOURLY)
    result = run("prove", f"{rule}:step")
    assert result.exit_code == 0, result.output


@pytest.mark.deep
def test_prove_counts_unreadable_vocabularies_as_not_applicable(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    rule = "specref.algorithms.text.slem:step"
    result = run("prove", rule, "--pairs", "all", "--json", str(file))
    assert result.exit_code == 0, result.output
    assert "16 n/a" in result.output
    assert "LOSSLESS on every case that it is defined for" in result.output
    assert json.loads(file.read_text())["not_applicable"] == 16
    assert_fits("prove", file.read_text())


def test_prove_nothing_is_not_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = RuleReport(0, (), (), 0, 0, 16)
    monkeypatch.setattr(prove_module, "prove", lambda *arguments, **options: nothing)
    result = run("prove", "specref.algorithms.text.slem:step")
    assert_one_line_error(result, "nothing was proved")


def test_prove_shows_a_trace_and_writes_json(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    result = run("prove", written(tmp_path, WRONG), *FEW, "--json", str(file))
    assert result.exit_code == 1
    assert "draft[0]" in result.output
    refuted = json.loads(file.read_text())["refuted"]
    assert refuted
    assert refuted[0]["trace"]
    assert_fits("prove", file.read_text())


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise SystemExit(0)", "SystemExit"),
        (EXITS, "SystemExit"),
        ("1 / 0", "ZeroDivisionError"),
        (ALL_ZERO, "draw at residual: probabilities are all zero"),
        (FROM_NUMPY, "no function of chance: of two runs with the same choices"),
        (ARGMAX, "takes no decision from chance"),
        (EXITS.replace("SystemExit(0)", "BaseException('base')"), "raised BaseException on"),
        (TAKES_RNG, ":step --contract step"),
        (VERIFIES, "expected (target, drafter, context, lookahead, chance); by samples: specref"),
        (VERIFIES, ":step --contract verify"),
        ("def step(p, q): return (0,)", "step takes (p, q): expected"),
    ],
)
def test_prove_does_not_judge_what_it_cannot(tmp_path: Path, code: str, words: str) -> None:
    """Exit code 2 with one sentence; never LOSSY, never a traceback."""
    result = run("prove", written(tmp_path, code), *FEW)
    assert_one_line_error(result, words)
    assert "LOSSY" not in result.output


@pytest.mark.deep
def test_prove_records_what_is_outside_of_chance(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    assert run("prove", written(tmp_path, FROM_NUMPY), "--json", str(file)).exit_code == 2
    record = json.loads(file.read_text())
    assert (record["proved"], record["refuted"]) == (0, [])
    assert "two runs with the same choices" in record["outside_chance"]
    assert run("prove", written(tmp_path, RIGHT), "--json", str(file)).exit_code == 0
    assert json.loads(file.read_text())["outside_chance"] is None


@pytest.mark.parametrize("command", [("verify",), ("prove", "x:y"), ("plan", "--n", "9")])
@pytest.mark.parametrize("place", ["", "no/f", "file/f"])
def test_unwritable_json_is_refused_before_any_work(tmp_path, monkeypatch, command, place):
    (tmp_path / "file").touch()
    monkeypatch.delattr(prove_module, "load_function")
    monkeypatch.delattr(main_job, "check_case")
    assert_one_line_error(run(*command, "--json", str(tmp_path / place)), "cannot write")


def test_json_does_not_replace_a_device_or_a_link(tmp_path: Path) -> None:
    file, link = tmp_path / "plan.json", tmp_path / "link.json"
    link.symlink_to(file)
    assert run("plan", "--n", "1000", "--json", str(link)).exit_code == 0
    assert link.is_symlink()
    assert json.loads(file.read_text())["alpha"] == 1e-9
    assert run("plan", "--n", "1000", "--json", "/dev/null").exit_code == 0
    assert not Path("/dev/null").is_file()


@pytest.mark.deep
def test_a_rule_for_one_vocabulary_is_told_so() -> None:
    rule = "specref.algorithms.block:step"
    result = run("prove", rule, "--pairs", "all")
    assert result.exit_code == 2
    assert "use block_slrs (for one vocabulary: --pairs same)" in result.stderr
    assert run("prove", rule).exit_code == 0


BLIND_TO_LONG_PROMPTS = """
from specref.algorithms import standard

class OwnError(Exception):
    def __init__(self, length, why):
        super().__init__(f"{length}: {why}")

def step(target, drafter, context, lookahead, chance):
    if len(context) == 50:
        raise OwnError(50, "tokens")
    return standard.step(target, drafter, context[-100:], lookahead, chance)
"""


def test_prove_says_what_it_enumerated(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    rule = "specref.algorithms.standard:step"
    asked = ["--only", "toy pairs", "--only", "lookaheads", "--json", str(file)]
    result = run("prove", rule, *asked)
    assert result.exit_code == 0, result.output
    assert max(map(len, result.output.splitlines())) <= 80
    assert "LOSSLESS on every case" in result.output
    for limit in ("V above 5,", "contexts of more than 2 tokens", "0 or above 16", "below 1/12"):
        assert limit in " ".join(result.output.split())
    toy, long = json.loads(file.read_text())["enumerated"]
    assert toy["situation"] == TOY_PAIRS
    assert 0 < toy["cases"] == toy["proved"] < toy["paths"]
    assert long["lookaheads"] == [*range(3, 17)]
    assert (toy["vocabularies"], toy["contexts"], toy["smallest"]) == (
        [2, 3, 4, 5],
        [0, 2],
        "1/12",
    )


@pytest.mark.deep
def test_prove_does_not_depend_on_the_workers(tmp_path: Path) -> None:
    """A file that is no module, with an error type of its own: workers load it by its name."""
    files = [tmp_path / "1.json", tmp_path / "2.json"]
    asked = [written(tmp_path, BLIND_TO_LONG_PROMPTS), "--only", "initial contexts"]
    results = [
        run("prove", *asked, "--workers", str(workers), "--json", str(files[workers - 1]))
        for workers in (1, 2)
    ]
    assert [result.exit_code for result in results] == [1, 1]
    assert results[0].output == results[1].output
    assert "first error: OwnError on contexts of a, b, context" in results[0].output
    record, other = (json.loads(file.read_text()) for file in files)
    assert record == other
    assert len(record["refuted"]) > 30
    assert [one["error"] for one in record["raised"]] == ["50: tokens"]


def test_an_interrupted_proof_is_reported_and_no_pass(tmp_path, monkeypatch):
    real, file = prove_module.prove, tmp_path / "report.json"

    def interrupted(*arguments, **options):
        def stop(case: str) -> None:
            if len(told) == 70:
                raise KeyboardInterrupt
            told.append(case)

        told: list[str] = []
        return real(*arguments, **{**options, "advance": stop})

    monkeypatch.setattr(prove_module, "prove", interrupted)
    result = run("prove", "specref.algorithms.standard:step", "--json", str(file))
    assert result.exit_code == 130
    assert result.stderr == "interrupted\n"
    assert "no difference yet" in result.output
    assert "LOSSLESS" not in result.output
    record = json.loads(file.read_text())
    assert (record["proved"], record["cut_off"]) == (71, 771)
