"""The commands of the kit: check, replay, write, zoo. Statistical checks at alpha 1e-9.

Campaigns over trees have detect_tv = 0.3; the planted bug is at 0.26.
"""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from proofs_tests.helpers.command import assert_fits, run, without_seconds
from proofs_tests.helpers.published import TREE_VERIFIER
from specref.adapters import IMPLEMENTATIONS
from specref.cli import judging
from specref.cli.targets import LoadTarget, find_targets
from specref.conformance.checks import CHECKS, Check
from specref.conformance.public import check
from specref.conformance.status import Stage
from specref.contracts.table import VERIFY

QUICK = ("--only", "joint/wide", "--detect-tv", "0.2")
LOSSY = ("examples.lossy:verify", "--claim", "one_hot=false", *QUICK)


def test_the_correct_example_passes() -> None:
    result = run("check", "examples.correct:verify", "--algorithm", "standard", *QUICK)
    assert result.exit_code == 0
    text = " ".join(result.output.split())
    assert "PASSED · " in text
    assert "TV ≥ 0.2 would be detected on the test cases" in text
    assert "seed 0" in result.output
    assert "1e-09" in result.output


def test_too_few_trials_are_inconclusive() -> None:
    options = ("--trials", "100", "--only", "joint/wide")
    result = run("check", "examples.correct:verify", *options)
    assert result.exit_code == 2
    assert "UNDECIDED" in result.output


@pytest.mark.usefixtures("few_blocks")
def test_the_lossy_example_fails_with_the_name_of_its_bug_and_is_replayed(tmp_path: Path) -> None:
    files = {name: str(tmp_path / name) for name in ("json", "junit", "html", "save")}
    options = [word for name, file in files.items() for word in (f"--{name}", file)]
    result = run("check", *LOSSY, "--seed", "7", *options)
    assert result.exit_code == 1
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "residual-is-p" in result.output
    assert "LOSSY" in result.output
    record = json.loads(Path(files["json"]).read_text())
    assert record["lossy"] is True
    assert record["exit_code"] == 1
    assert record["diagnosis"]["candidates"][0]["ids"] == ["best-of-two", "residual-is-p"]
    (suite,) = ElementTree.parse(files["junit"]).getroot()
    assert suite.get("failures") == "1"
    assert suite.find("testcase/failure") is not None
    own = {one.id for one in CHECKS if one.is_for(VERIFY)}
    assert {one.get("name") for one in suite.iter("testcase")} <= own
    assert "joint/wide" in Path(files["html"]).read_text()
    (case,) = Path(files["save"]).glob("*.json")
    assert case.name == "joint-wide-seed-7.json"
    result = run("replay", str(case))
    assert result.exit_code == 1
    saved = json.loads(case.read_text())["message"].split(" at ")[0]
    assert saved in " ".join(result.output.split())


@pytest.mark.deep
def test_cases_of_two_samplers_in_one_folder_do_not_replace_each_other(tmp_path: Path) -> None:
    foreign = tmp_path / "joint-wide-seed-0.json"
    foreign.write_text("not ours")
    (tmp_path / "other.py").write_text("from specref.examples.lossy import verify\n")
    other = (f"{tmp_path / 'other.py'}:verify", *LOSSY[1:])
    for sampler in (LOSSY, other, LOSSY):
        run("check", *sampler, "--save", str(tmp_path))
    assert foreign.read_text() == "not ours"
    foreign.unlink()
    cases = {one.name: json.loads(one.read_text())["target"] for one in tmp_path.glob("*.json")}
    assert cases == {"joint-wide-seed-0-2.json": LOSSY[0], "joint-wide-seed-0-3.json": other[0]}
    run("check", *LOSSY, "--claim", "ragged=false", "--save", str(tmp_path))
    (tmp_path / "joint-wide-seed-0-4.json").mkdir()
    run("check", *LOSSY, "--claim", "batch=64", "--save", str(tmp_path))
    claims = [
        json.loads((tmp_path / f"joint-wide-seed-0{n}.json").read_text())["claims"]
        for n in ("", "-2", "-3", "-5")
    ]
    assert [(one["ragged"], one["batch"]) for one in claims] == [
        (False, None),
        (True, None),
        (True, None),
        (True, 64),
    ]


@pytest.mark.parametrize("text", ["{", "[]", '{"format": "another"}'])
def test_a_file_that_is_no_case_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "case.json"
    file.write_text(text)
    result = run("replay", str(file))
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1


def test_write_makes_a_test_that_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "written_sampler.py").write_text("def verify(p, q, drafts, *, rng): ...\n")
    monkeypatch.chdir(tmp_path)
    result = run("write", "written_sampler:verify", "--algorithm", "standard")
    assert result.exit_code == 0
    text = (tmp_path / "test_verify_specref.py").read_text()
    assert '@specref.parametrize(verify, contract="verify", algorithm="standard")' in text
    compile(text, "written", "exec")
    again = run("write", "written_sampler:verify")
    assert again.exit_code == 2
    assert "--force" in again.stderr
    refused = run("write", "written_sampler:verify", "--algorithm", "topdown", "--force")
    assert refused.exit_code == 2
    assert "rule = 'topdown': the contract verify has one of" in refused.stderr


TWO = "def verify(p, q): raise SystemExit('called')\n"
STEP = "def verify(target, drafter, context, lookahead, rng): raise SystemExit('called')\n"


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (TWO, "verify takes (p, q): contract verify gives (target_probs, draft_probs, draft_tok"),
        (STEP, "--contract step fits"),
    ],
)
@pytest.mark.parametrize("command", ["check", "write", "vectors", "replay"])
def test_a_function_of_another_contract_is_misuse(command, code, words, tmp_path):
    """Exit code 2 and one line, from every command that takes a sampler; no failed check."""
    file, case = tmp_path / "sampler.py", tmp_path / "joint-wide-seed-0.json"
    name = f"{file}:verify"
    if command == "replay":
        lossy = ["--claim", "one_hot=false", *QUICK]
        file.write_text("from specref.examples.lossy import verify\n")
        run("check", name, *lossy, "--save", str(tmp_path))
    file.write_text(code)
    arguments = {"vectors": ["--run", name], "replay": [str(case)]}
    result = run(command, *arguments.get(command, [name]))
    assert result.exit_code == 2
    (line,) = result.stderr.strip().splitlines()[-1:]
    assert words in line
    assert "failed" not in result.output


def test_write_takes_a_file_and_claims(tmp_path: Path) -> None:
    (tmp_path / "sampler.py").write_text("def verify(p, q, drafts, *, rng): ...\n")
    claims = ("--claim", "ragged=false", "--claim", "dtype=float32")
    result = run("write", f"{tmp_path}/sampler.py:verify", *claims)
    assert result.exit_code == 0, result.stderr
    text = (tmp_path / "test_verify_specref.py").read_text()
    assert "from sampler import verify" in text
    assert 'contract="verify", ragged=False, dtype="float32")' in text


def test_ctrl_c_leaves_a_report_of_what_was_found(tmp_path, monkeypatch):
    usual = Check.run

    def interrupted_at_the_boundary(one, judge):
        if one.stage == Stage.BOUNDARY:
            raise KeyboardInterrupt
        return usual(one, judge)

    monkeypatch.setattr(Check, "run", interrupted_at_the_boundary)
    file = tmp_path / "report.json"
    only = ("--only", "smoke", "--only", "boundary")
    result = run("check", "examples.correct:verify", "--json", str(file), *only)
    assert result.exit_code == 130
    found = json.loads(file.read_text())["results"]
    assert "passed" in {one["status"] for one in found if one["id"].startswith("smoke")}
    left = {one["status"] for one in found if one["id"].startswith("boundary")}
    assert "not_run" in left
    assert "passed" not in left
    assert "interrupted" in result.stdout


def test_a_file_in_the_place_of_the_folder_to_save_in_is_refused_first(tmp_path: Path) -> None:
    """Before the target is looked for, let alone judged."""
    file = tmp_path / "failures"
    file.write_text("mine")
    for place in (file, file / "deeper"):
        result = run("check", "no.such:target", "--save", str(place))
        assert result.exit_code == 2
        assert f"expected a folder, and {file} is a file" in result.stderr
    assert file.read_text() == "mine"


def test_zoo_prints_the_matrix_and_writes_it(tmp_path: Path) -> None:
    file, record = tmp_path / "zoo.md", tmp_path / "zoo.json"
    ids = ("counts-bonus-as-accepted", "companion-judges-the-draft")
    result = run("zoo", *ids, "--markdown", str(file), "--json", str(record))
    assert result.exit_code == 0
    assert "2 of 2 mutants killed" in result.output
    assert "| `counts-bonus-as-accepted` | mean_accepted_length | reporting |" in file.read_text()
    assert "| `companion-judges-the-draft` | companion | length |" in file.read_text()
    rows = {row["id"]: row for row in json.loads(record.read_text())["rows"]}
    assert tuple(rows) == ids
    assert rows["companion-judges-the-draft"]["killers"] == ["joint/exact"]
    assert rows["companion-judges-the-draft"]["total_variation"] == 0.25


@pytest.mark.deep
def test_a_page_says_how_to_run_it_again(tmp_path: Path) -> None:
    file = tmp_path / "zoo.html"
    given = ("counts-bonus-as-accepted", "companion-judges-the-draft", "--seed", "3")
    assert run("zoo", *given, "--html", str(file)).exit_code == 0
    page = re.sub("</?span>", "", file.read_text())
    assert '<pre class="command">specref zoo counts-bonus-as-accepted companion' in page
    assert "--seed 3</pre><dl><dt>seed</dt><dd>3</dd><dt>specref</dt>" in page


def test_a_registered_name_with_a_contract_is_all_that_are_registered_for_it() -> None:
    if IMPLEMENTATIONS["transformers-generate-sd"].not_run:
        pytest.skip("not_run (transformers is not installed)")
    names = [target.name for target in find_targets("transformers", "generate")]
    assert "transformers-generate-tli" in names
    assert "transformers-generate-slem" in names


@pytest.mark.parametrize(
    ("asked", "detected"),
    [((), 0.1), (("--profile", "thorough"), 0.01), (("--detect-tv", "0.3"), 0.3)],
)
def test_a_slow_sampler_is_judged_coarsely_unless_more_is_asked_for(asked, detected):
    if IMPLEMENTATIONS["torch-backend"].not_run:
        pytest.skip("not_run (torch is not installed)")
    result = run("check", "torch-backend", "-v", "--only", "smoke/answers", *asked)
    assert f"set to detect TV ≥ {detected:g} " in " ".join(result.output.split())


def test_what_is_not_installed_is_not_run(tmp_path: Path) -> None:
    if IMPLEMENTATIONS["vllm"].not_run is None:
        pytest.skip("vllm is installed")
    file = tmp_path / "report.json"
    result = run("check", "vllm", "--json", str(file))
    assert result.exit_code == 2
    assert result.stderr.startswith("not_run (")
    assert json.loads(file.read_text())["status"] == "not_run"


@pytest.mark.usefixtures("undiagnosed")
def test_the_first_failure_is_said_at_once() -> None:
    """On standard error, before checks that would take longer; not where JSON is the output."""
    only = ("--only", "joint/wide", "--only", "joint/deep")
    result = run("check", *LOSSY[:3], *QUICK[2:], *only)
    (line,) = result.stderr.splitlines()
    assert line.startswith("joint/wide failed: lossy law: the distribution is not the target's")
    assert line not in result.stdout
    assert run("check", *LOSSY, "--json", "-").stderr == ""


def test_what_is_cheap_comes_first() -> None:
    ids = [one.id for one in CHECKS]
    assert ids.index("boundary/rare-draft") > ids.index("joint/wide")


@pytest.mark.parametrize(("seconds", "written"), [(0.5, 3), (30.0, 1)])
def test_only_writing_that_takes_seconds_is_put_off(monkeypatch, seconds, written):
    """Three checks end one right after another: the file has the last, unless the disk is slow."""
    clock, times = SimpleNamespace(now=0.0), []

    def write(*_: object) -> None:
        clock.now += seconds
        times.append(clock.now)

    monkeypatch.setattr(judging, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(judging, "write_json", write)
    files = judging.Files(None, None, None, "report.json")
    for _ in range(3):
        files.so_far([])
    assert len(times) == written


PRINTING = """
from specref.examples.correct import verify as correct

def verify(p, q, drafts, *, rng):
    print("hello from the sampler")
    return correct(p, q, drafts, rng=rng)
"""
DIES = """
import multiprocessing, os
from specref.examples.correct import verify as correct

def verify(p, q, drafts, *, rng):
    if multiprocessing.parent_process():
        os._exit(1)
    return correct(p, q, drafts, rng=rng)
"""
GENERATES = """
import numpy as np

def generate(target, drafter, context, tokens, rng):
    text = ()
    while len(text) < tokens and not target.vocabulary.ends(text):
        p = np.asarray(target.next_token((*context, *text)), dtype=float)
        text += (int(rng.choice(len(p), p=p / p.sum())),)
    return text
"""


@pytest.fixture
def generates(tmp_path: Path) -> str:
    file = tmp_path / "generates.py"
    file.write_text(GENERATES)
    return f"{file}:generate"


def test_workers_give_the_same_record_and_print_nothing_into_it(tmp_path: Path) -> None:
    sampler = tmp_path / "printing.py"
    sampler.write_text(PRINTING)
    only = ("--only", "smoke/answers", "--only", "joint/deep", "--detect-tv", "0.2")
    options = ("check", f"{sampler}:verify", *only, "--json", "-")
    alone, together = (run(*options, "--workers", count) for count in "12")
    assert alone.exit_code == together.exit_code == 0
    records = [without_seconds(json.loads(one.stdout)) for one in (alone, together)]
    assert records[0] == records[1]
    assert "hello from the sampler" in alone.stderr


def test_a_worker_that_dies_is_an_error_in_one_line(tmp_path: Path) -> None:
    sampler = tmp_path / "dies.py"
    sampler.write_text(DIES)
    options = ("--only", "smoke/answers", "--workers", "2")
    result = run("check", f"{sampler}:verify", *options)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: a worker process died")


def test_a_file_has_the_same_name_in_every_process(generates: str) -> None:
    """Exceptions and objects of the module travel between processes by this name."""
    first, again = LoadTarget(generates, 1.0)(), LoadTarget(generates, 1.0)()
    assert first.__module__ == again.__module__
    assert re.fullmatch(r"specref_loaded_generates_[0-9a-f]+", first.__module__)


def test_every_text_is_counted(generates: str) -> None:
    drawn: list[int] = []
    options = {"contract": "generate", "only": ["end-to-end/deep"], "trials": 60}
    check(LoadTarget(generates, 1.0)(), **options, advance=drawn.append)
    assert drawn == [1] * 60


NEVER_UPDATED = TREE_VERIFIER.replace(
    "rest[lost] / rest[lost].sum(axis=1, keepdims=True)", "p[lost]"
)
COARSELY = ["--detect-tv", "0.3"]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: Any) -> Path:
    monkeypatch.chdir(tmp_path)
    assert NEVER_UPDATED != TREE_VERIFIER
    Path("right.py").write_text(TREE_VERIFIER)
    Path("wrong.py").write_text(NEVER_UPDATED)
    return tmp_path


@pytest.mark.deep
def test_a_lossless_sampler_passes(files: Path) -> None:
    declared = ("--contract", "tree", "--algorithm", "topdown")
    result = run("check", "right.py:verify_tree", *declared, *COARSELY, "--json", "report.json")
    assert result.exit_code == 0, result.output
    assert "rule topdown" in " ".join(result.output.split())
    assert json.loads(Path("report.json").read_text())["contract"] == "tree"
    assert_fits("check", Path("report.json").read_text())


@pytest.mark.deep
def test_a_lossy_one_fails_and_is_not_taken_for_a_bug_near_it(files: Path) -> None:
    """It never updates p, where `siblings-last-from-p` forgets that it did."""
    arguments = ("--contract", "tree", *COARSELY, "--only", "joint/siblings", "--save", "failures")
    result = run("check", "wrong.py:verify_tree", *arguments)
    assert result.exit_code == 1, result.output
    output = " ".join(result.output.split())
    assert "Unlike anything known" in output
    assert "siblings-last-from-p (off by 0." in output
    again = run("replay", "failures/joint-siblings-seed-0.json")
    assert again.exit_code == 1, again.output


def test_a_registered_name_brings_its_contract_and_rule() -> None:
    result = run("check", "reference-verify-tree-traversal", "--only", "boundary/certain")
    assert result.exit_code == 0, result.output
    assert "rule traversal" in " ".join(result.output.split())


def test_a_rule_without_trees_is_misuse(files: Path) -> None:
    result = run("check", "right.py:verify_tree", "--contract", "tree", "--algorithm", "block")
    assert result.exit_code == 2
    assert "rule = 'block': the contract tree has one of ('topdown', 'traversal')" in " ".join(
        result.output.split()
    )
