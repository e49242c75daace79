"""Names of commands and options: former ones still work, and misuse says what was meant."""

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete

from proofs_tests.helpers.command import run
from specref.__main__ import COMPLETING
from specref.cli import FORMER, main, proving
from specref.cli import judging as judging_module
from specref.cli.completion import WholeWords
from specref.cli.judging import Wanted, read_shape
from specref.conformance.strata.shape import Shape
from specref.contracts.table import STEP, VERIFY

SAMPLER = "def verify(p, q, drafts, *, rng): ...\n\ndef _hidden(): ...\n"
EXAMPLE = "examples.correct:verify"


def completed(*words: str) -> list[str]:
    """What a shell offers for the last word."""
    shell = ShellComplete(main, {}, "specref", "_SPECREF_COMPLETE")
    return [one.value for one in shell.get_completions(list(words[:-1]), words[-1])]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What is asked of the suite, which is not run."""
    found: list[tuple[Any, ...]] = []

    def stop(function: Any, options: Any, *others: Any) -> None:
        found.append(options)
        raise ValueError("not run")

    monkeypatch.setattr(judging_module, "run_checks", stop)
    return found


def test_former_commands_are_hidden_and_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proving, "cases_of", lambda profile: [])
    monkeypatch.setattr(proving, "verify", lambda *given: 1 / 0)
    told = run("--help").output
    for former, (command, *options) in FORMER.items():
        assert f"\n  {former} " not in told
        assert run(former, "--help").output == run(command, *options, "--help").output
    for words in (("verify",), ("prove", "--all")):
        assert isinstance(run(*words).exception, ZeroDivisionError)


@pytest.mark.parametrize(
    ("former", "now"),
    [
        (("--algorithm", "standard"), ("--rule", "standard")),
        (("--claim", "ragged=false"), ("--declare", "ragged=false")),
        (("--seconds", "7"), ("--time-limit", "7")),
        (("--patience", "7"), ("--timeout", "7")),
        (("--vocabulary", "9", "--lookahead", "2"), ("--shape", "V=9,K=2")),
        (
            ("--vocabulary", "9", "--batch", "2", "--dtype", "float32"),
            ("--shape", "V=9,B=2,dtype=float32"),
        ),
    ],
)
def test_former_options_mean_the_same(former, now, asked):
    for words in (former, now):
        assert run("check", EXAMPLE, *words).stderr.endswith("error: not run\n")
    assert asked[0] == asked[1] != asked[0].__class__(name=EXAMPLE)
    told = run("check", "--help").output
    assert f"{former[0]} " not in told
    assert f"{now[0]} " in told


def test_shapes_are_read_and_filled_up() -> None:
    both = Wanted((read_shape("V=9,K=2"), read_shape("B=7,dtype=float32")), batch=(3,))
    assert both.shapes(VERIFY) == (Shape(9, 2, 4), Shape(32_000, 3, 7), Shape(32_000, 3, 3))
    assert both.dtypes == ("float32",)
    assert Wanted((read_shape("V=9"),)).shapes(STEP) == (Shape(9, 3, 1),)
    for text, message in (("W=3", "expected V=…, K=…"), ("V=many", "expected an integer")):
        with pytest.raises(ValueError, match=message):
            read_shape(text)


STANDARD, SAMPLING = (f"specref.algorithms.{name}:step" for name in ("standard", "autoregressive"))
AGAINST = f"prove {STANDARD} --everywhere --tokens 2 --against {SAMPLING}"
OF_TARGET = "are for the test of a TARGET"
MISUSES = {
    "chekc": "no such command 'chekc': did you mean 'check'? (see specref --help)",
    "check x --contrat verify": "did you mean '--contract'?",
    "check x --profle smoke": "no such option '--profle'; did you mean '--profile'?",
    "check x --contract verfy": "did you mean 'verify'?",
    "check x --rule blok": "--rule = 'blok': expected one of autoregressive",
    "check x --trials a": "--trials: 'a' is not a valid integer",
    "check x --workers 0": "workers = '0': expected an integer >= 1, or auto",
    "check x --installed": "target = 'x': expected none with --installed",
    "check engines": "expected --installed, for every engine",
    "check no-such-name": "expected MODULE:FUNCTION",
    "check Makefile": "expected process:./Makefile, for a program in any language",
    "check ./conftest.py": "expected ./conftest.py:FUNCTION",
    "check specref.zoo:nothing": "has no function 'nothing'",
    "check specref.conformance.judge:TEXT": "judge:TEXT is not callable (int)",
    "check examples.lossy": "did you mean 'examples.lossy:verify'?",
    "check examples.lossy:verfy": "did you mean 'verify'?",
    f"check {EXAMPLE} --declare onehot=true": "did you mean 'one_hot'?",
    f"check {EXAMPLE} --claim inputs=odds": "inputs = 'odds'",
    f"check {EXAMPLE} --claim in_place=yes": "in_place = 'yes'",
    f"check {EXAMPLE} --claim tolerance=lots": "tolerance = 'lots': expected a number in [0, 1)",
    f"check {EXAMPLE} --claim tolerance=nan": "tolerance = nan: exp",
    f"check {EXAMPLE} --claim ragged": "expected NAME=VALUE",
    f"check {EXAMPLE} --only joint/wid3": "did you mean 'joint/wide'",
    f"check {EXAMPLE} --alpha 2": "alpha = 2.0",
    f"check {EXAMPLE} --detect-tv 0": "detect_tv = 0.0",
    "check process:./no-such-program": "cannot be started: No such file",
    "check process:": "expected a program",
    "check process:./x --contract step": "expected verify",
    "check process:./x --timeout 0": "timeout = 0.0: expected a positive",
    "check process:./x --timeout nan": "timeout = nan: expected a positive",
    "replay no.json": "error: CASE.json: ",
    "zoo no-such-bug": "not in the zoo",
    "zoo residual-is-r": "did you mean 'residual-is-q'?",
    "list chek": "SECTIONS = 'chek': expected one of claims, checks",
    "list --contract trees": "did you mean 'tree'?",
    "plan samples --mutant residual-is": "mutant = 'residual-is': expected a known bug (specref "
    "list bugs); did you mean",
    "plan samples": "expected exactly one of --tv",
    "plan --tv 0.1 samples --n 9": "--tv before samples",
    "write": "expected TARGET or --language",
    "write ./file.py:verify": "cannot import",
    f"write {EXAMPLE} --claim raged=false": "unknown",
    f"write specref.{EXAMPLE} --claim raged=false": "unknown",
    "write samplers:verify --language go": "and not both",
    "write --language cobol": "expected one of cpp",
    "write --language rust --algorithm block": OF_TARGET,
    "write --language rust --contract verify": OF_TARGET,
    "write --language rust --claim batch=1": OF_TARGET,
    "prove": "expected MODULE:FUNCTION or --all",
    "prove --all x:y": "expected MODULE:FUNCTION or --all",
    "prove --all --tokens 3": "tokens: expected without --all",
    "prove --all --known-bugs": "known-bugs: expected with --everywhere",
    "prove x:y --compare": "compare: expected with --all",
    "prove no_such_module:step": "no_such_module",
    "prove ./no_such_file.py:step": "no_such_file.py",
    "prove specref.algorithms.standard:nothing": "no function 'nothing'",
    "prove specref.algorithms.standard": "MODULE:FUNCTION",
    f"prove {STANDARD} --only 'two vocabularies'": "nothing was proved, --only leaves no cases",
    f"prove {STANDARD} --everywhere --tokens 1": "tokens = 1: expected 2 to 10",
    f"prove {STANDARD} --everywhere --lookahead -1": "lookahead = -1: expected an integer >= 0",
    f"prove {STANDARD} --everywhere --budget 0": "budget = 0.0: expected seconds > 0",
    f"prove {STANDARD} --everywhere --profile quick": "profile: expected without --everywhere",
    f"prove {STANDARD} --everywhere --iterations 2": "expected 1 without --against",
    f"prove {STANDARD} --tokens 2": "tokens: expected with --everywhere",
    f"prove {STANDARD} --iterations 2": "iterations: expected with --everywhere",
    f"prove {STANDARD} --save x.json": "save: expected with --everywhere",
    f"prove {STANDARD} --against {SAMPLING}": "against: expected with --everywhere",
    f"prove {STANDARD} --pairs two": "pairs = 'two': expected same or all without --everywhere",
    f"{AGAINST} --save x.json": "save: expected without --against",
    f"{AGAINST} --workers 2": "workers = 2: expected 1 with --against",
    f"{AGAINST} --cluster tcp://h:1": "cluster = tcp://h:1: expected without --against",
    f"{AGAINST} --pairs all": "drafter has another vocabulary than target",
    f"{AGAINST} --pairs two": "drafter has another vocabulary than target",
}


@pytest.mark.parametrize("words", MISUSES)
def test_misuse_has_one_form(words: str) -> None:
    result = run(*shlex.split(words))
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert MISUSES[words] in line


def test_defaults_come_from_pyproject(tmp_path, monkeypatch, asked):
    """Of a folder above, too; the command line comes first."""
    (tmp_path / "pyproject.toml").write_text(
        f'[tool.specref]\ntarget = "{EXAMPLE}"\nrule = "standard"\nonly = "smoke"\n'
        'time-limit = 9\nalgorithm = "block"\n[tool.specref.declare]\nragged = false\n'
    )
    deeper = tmp_path / "deeper"
    deeper.mkdir()
    monkeypatch.chdir(deeper)
    assert run("check", "--seed", "3").exit_code == 2
    (found,) = asked
    assert (found.name, found.algorithm, found.only) == (EXAMPLE, "block", ["smoke"])
    assert (found.time_limit, found.claims, found.seed) == (9, {"ragged": False}, 3)
    run("check", "--rule", "standard", "--only", "joint/wide")
    assert (asked[1].algorithm, asked[1].only) == ("standard", ["joint/wide"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.specref]\nrul = 1\n", "[tool.specref]: unknown key 'rul'; did you mean 'rule'?"),
        ("[tool.specref]\nzzz = 1\n", "unknown key 'zzz'; expected a long option"),
        ("[tool]\nspecref = 1\n", "[tool.specref]: expected a table"),
        ("[tool.specref\n", "pyproject.toml: "),
        ('[tool.specref]\nprofile = "quik"\n', "did you mean 'quick'?"),
    ],
)
def test_a_wrong_key_is_misuse(text, message, tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    result = run("check", EXAMPLE)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert message in line
    assert run("list", "contracts").exit_code == 0


def test_a_shell_completes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(SAMPLER)
    (tmp_path / "broken.py").write_text("def (\n")
    monkeypatch.chdir(tmp_path)
    assert completed("check", "mine") == ["mine.py:"]
    assert completed("check", "mine.py:") == completed("check", "mine.py:v") == ["mine.py:verify"]
    assert completed("check", "mine:v") == ["mine:verify"]
    assert completed("check", "broken.py:") == []
    assert completed("check", "examples.l") == ["examples.lossy:verify"]
    assert "torch-backend" in completed("check", "torch")
    assert completed("check", "x", "--only", "joint/wid") == ["joint/wide"]
    assert completed("check", "x", "--skip", "accept")[0] == "acceptance"
    assert completed("check", "x", "--declare", "in_place=") == ["in_place=true", "in_place=false"]
    assert completed("check", "x", "--rule", "greedy") == ["greedy-block"]
    assert completed("prove", "x:y", "--against", "tl") == ["tli"]
    assert "init" in completed("in")


@pytest.mark.parametrize(
    ("typed", "inserted"),
    [
        ("check mine.py:", ["verify"]),
        ("check mine.py:ver", ["verify"]),
        ("check x --rule=greedy", ["greedy-block"]),
        ("check x --declare in_place=", ["true", "false"]),
        ("check x --declare in_place=t", ["true"]),
        ("check x --only joint/wid", ["joint/wide"]),
        ("check x --only ", ["smoke"]),
        ("ini", ["init"]),
    ],
)
def test_bash_completes_words_that_it_cuts_at_colons(typed, inserted, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(SAMPLER)
    monkeypatch.chdir(tmp_path)
    line = f"specref {typed}"
    monkeypatch.setenv("COMP_LINE", f"{line} and more")
    monkeypatch.setenv("COMP_POINT", str(len(line)))
    asked = WholeWords(main, {}, "specref", COMPLETING)
    found = asked.complete().splitlines()
    assert found[: len(inserted)] == [f"plain,{one}" for one in inserted]
    script = asked.source_template % asked.source_vars()
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_colours_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    words = "check", EXAMPLE, "--only", "smoke/answers"
    coloured, plain = run(*words), run(*words, "--no-color")
    assert "\x1b[1;32m" in coloured.output
    assert "32m" not in plain.output
    monkeypatch.setenv("NO_COLOR", "1")
    assert "32m" not in run(*words).output
    for command in ("list", "prove", "psi"):
        assert "--no-color" in run(command, "--help").output


def test_a_quiet_answer_is_one_line_whatever_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    answer = run("check", "examples.lossy:verify", "--only", "joint/probed", "-q")
    (line,) = answer.stdout.splitlines()
    assert len(line) > 100
    assert answer.exit_code == 1
