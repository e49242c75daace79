"""Programs on the command line, and the templates of `specref write`, judged by `specref check`.

Statistical checks: seed 0, alpha 1e-9 each for a clean program; a law at TV 0.2 is found 999 times
in 1,000, and the planted bug is one: TV 0.205 at one place of `wide`.
"""

import json
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from proofs_tests.helpers.command import assert_fits, run
from proofs_tests.helpers.programs import BUILDS, built, toy
from specref.cli.init import SUFFIXES, harness
from specref.process import messages
from specref.process.process import read_declaration

QUICK = ("--only", "smoke/answers", "--only", "smoke/deterministic", "--only", "joint/wide")
CONTRACT = Path(__file__).parents[2] / "docs" / "formats.md"
MOST_LINES = 84


RESIDUAL_IS_P = {
    "cpp": {"if (sum > 0) weights = residual;": ""},
    "rust": {"{ weights = residual; }": "{}"},
    "javascript": {"if (residual.some((w) => w > 0)) weights = residual;": ""},
    "python": {"residual if any(residual) else weights": "p[kept]"},
}
SEEDED_ANEW = {'Random(asked["seed"])': "Random(1)"}


@pytest.fixture(scope="module", params=BUILDS)
def template(request, tmp_path_factory):
    """The command of a template as it is, and the folder it was built in."""
    folder = tmp_path_factory.mktemp(request.param)
    return built(request.param, folder), folder


@pytest.mark.deep
def test_templates_are_lossless(template, monkeypatch):
    command, folder = template
    monkeypatch.chdir(folder)
    only = (*QUICK, "--only", "smoke/large", "--only", "boundary/ragged", "--detect-tv", "0.2")
    result = run("check", f"process:{command}", *only)
    assert result.exit_code == 0, result.output
    header = " ".join(result.output.split())
    assert f"process:{command} my-sampler" in header
    assert "rule standard" in header


@pytest.mark.usefixtures("few_blocks")
@pytest.mark.deep
@pytest.mark.parametrize("language", BUILDS)
def test_a_bug_in_a_template_is_named(tmp_path, monkeypatch, language):
    monkeypatch.chdir(tmp_path)
    command = built(language, tmp_path, RESIDUAL_IS_P[language])
    file = tmp_path / "report.json"
    options = (*QUICK, "--detect-tv", "0.2", "--json", str(file))
    result = run("check", f"process:{command}", *options)
    assert result.exit_code == 1
    record = json.loads(file.read_text())
    assert "residual-is-p" in record["diagnosis"]["candidates"][0]["ids"]
    assert record["implementation"] == f"process:{command}"
    assert record["version"].startswith("my-sampler (")
    assert_fits("check", file.read_text())


@pytest.mark.deep
def test_one_that_ignores_its_seed_is_noticed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = built("python", tmp_path, SEEDED_ANEW)
    file = tmp_path / "report.json"
    options = ("--only", "smoke/calls-vary", "--json", str(file))
    assert run("check", f"process:{command}", *options).exit_code == 1
    (result,) = json.loads(file.read_text())["results"]
    assert "its generator is seeded anew in every call" in result["message"]


@pytest.mark.deep
def test_a_saved_case_of_a_program_is_replayed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = built("python", tmp_path, RESIDUAL_IS_P["python"])
    save = ("--only", "joint/wide", "--detect-tv", "0.2", "--save", "failures")
    run("check", f"process:{command}", *save)
    (case,) = (tmp_path / "failures").glob("*.json")
    monkeypatch.chdir("/")
    result = run("replay", str(case))
    assert result.exit_code == 1
    saved = json.loads(case.read_text())["message"].split(" at ")[0]
    assert saved in " ".join(result.output.split())


def test_replay_waits_as_long_as_the_check_did(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    target = f"process:{toy(tmp_path, at_verify='time.sleep(600)')}"
    only = ("--only", "smoke/answers", "--patience", "0.3")  # the former name of --timeout
    assert run("check", target, *only, "--save", "failures").exit_code == 2
    result = run("replay", "failures/smoke-answers-seed-0.json")
    assert result.exit_code == 2
    assert "did not answer within 0.3 s" in " ".join(result.output.split())


UPSIDE_DOWN = {
    "rng.random() < p[kept][drafts[kept]] / q": "rng.random() * p[kept][drafts[kept]] < q"
}
NAMING = "To identify a known bug, run again with --only joint"


@pytest.mark.deep
def test_who_is_stopped_before_the_laws_is_told_how_to_get_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    target = f"process:{built('python', tmp_path, UPSIDE_DOWN)}"
    joint = ("--only", "joint/wide", "--detect-tv", "0.2")
    stopped = run("check", target, "--only", "smoke/large", *joint)
    assert "blocked by smoke/large-vocabulary" in stopped.output
    assert NAMING in stopped.output
    named = run("check", target, *joint)
    assert "1. inverted-ratio" in named.output
    assert NAMING not in named.output


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize(
    ("holes", "code", "message"),
    [
        ({"at_start": "sys.exit('no model')"}, 2, "ended with exit code 1; stderr ends: no model"),
        ({"at_start": "said['protocol'] = 2"}, 2, "answered with protocol 2: expected 1"),
        ({"at_start": "time.sleep(600)"}, 2, "did not answer within 0.3 s"),
        ({"at_verify": "os.abort()"}, 1, "ended by SIGABRT"),
        ({"at_verify": "print('tick')"}, 1, "answered 'tick': expected a JSON object"),
    ],
)
def test_before_the_start_is_misuse_and_after_it_a_broken_contract(tmp_path, holes, code, message):
    target = f"process:{toy(tmp_path, **holes)}"
    timeout = ("--timeout", "0.3") if "0.3" in message else ()
    result = run("check", target, "--only", "smoke/answers", *timeout)
    assert result.exit_code == code
    seen = re.sub(r" \d+\.\d$", "", result.output, flags=re.MULTILINE)  # but for the times
    assert message in " ".join(seen.split())
    if code == 2:
        assert result.stderr.startswith("error: ")
        assert len(result.stderr.splitlines()) == 1


def test_a_program_that_does_not_answer_is_not_called_lossy(tmp_path: Path) -> None:
    target = f"process:{toy(tmp_path, at_verify='time.sleep(600)')}"
    result = run("check", target, "--only", "smoke/answers", "--timeout", "0.3")
    assert result.exit_code == 2
    text = " ".join(result.output.split())
    assert "UNDECIDED · NOT ANSWERED" in text
    assert "did not answer within 0.3 s" in text


def test_signals_are_handled_no_longer_than_a_program_runs(tmp_path: Path) -> None:
    handled = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)]
    run("check", f"process:{toy(tmp_path)}", "--only", "smoke/answers")
    assert [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)] == handled


@pytest.mark.parametrize("language", SUFFIXES)
def test_write_prints_a_template_or_writes_it(tmp_path: Path, language: str) -> None:
    printed = run("write", "--language", language)
    assert printed.output == harness(language)
    assert len(printed.output.splitlines()) <= MOST_LINES
    assert max(map(len, printed.output.splitlines())) <= 105
    assert ("specref's own tests" in printed.output.replace("\n// ", " ")) == (
        language not in BUILDS
    )
    file = tmp_path / "sampler"
    assert run("write", "--language", language, "--output", str(file)).exit_code == 0
    assert file.read_text() == harness(language)
    again = run("write", "--language", language, "--output", str(file))
    assert again.exit_code == 2
    assert "--force" in again.stderr


@pytest.mark.parametrize("language", SUFFIXES)
def test_templates_speak_the_whole_protocol(language: str) -> None:
    fields = ("protocol", "id", "request", "start", "stop", "lookahead", "vocabulary", "case")
    arrays = ("lens", "draft_tokens", "target_probs", "draft_probs", "seed", "tokens", "counts")
    about = ("name", "language", "contract", "verify", "takes", "claims", "rule", "one_hot")
    for word in (*fields, *arrays, *about):
        assert re.search(rf"\b{word}\b", harness(language), flags=re.IGNORECASE), word


def transcript() -> list[tuple[str, str]]:
    (block,) = re.findall(r"```transcript\n(.*?)```", CONTRACT.read_text(), flags=re.DOTALL)
    lines = block.splitlines()
    assert {line[:2] for line in lines[::2]} == {"> "}
    assert {line[:2] for line in lines[1:-1:2]} == {"< "}
    return [(line[2:], answer[2:]) for line, answer in zip(lines[::2], lines[1::2], strict=False)]


def test_the_transcript_of_the_docs_is_what_templates_answer(template: tuple[str, Path]) -> None:
    command, folder = template
    stop = messages.request(len(transcript()), "stop").decode()
    assert f"> {stop}" in CONTRACT.read_text()
    asked = "".join(f"{line}\n" for line, _ in transcript()) + stop
    words = shlex.split(command)
    found = subprocess.run(words, cwd=folder, input=asked, capture_output=True, text=True)
    answers = [json.loads(line) for line in found.stdout.splitlines()]
    assert found.returncode == 0
    start, *blocks = (json.loads(answer) for _, answer in transcript())
    assert answers == [{**start, "language": answers[0]["language"]}, *blocks]


def test_the_transcript_of_the_docs_is_what_specref_writes() -> None:
    for line, answer in transcript():
        message = json.loads(line)
        name, id_ = message.pop("request"), message.pop("id")
        assert message.pop("protocol") == messages.PROTOCOL
        assert messages.request(id_, name, **message).decode() == f"{line}\n"
        read = messages.read_message(answer.encode(), id_)
        if name == "start":
            assert str(read_declaration(read)) == "my-sampler (Python)"
        else:
            messages.read_blocks(read, message["rows"], message["lookahead"] + 1)
