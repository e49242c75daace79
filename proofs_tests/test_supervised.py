"""Nothing but a written verdict gives exit code 0, whatever judged code does to its process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from specref.cli import main
from specref.cli.group import leave
from specref.supervised import Notes

RULE = """
import os, sys, threading
from specref.algorithms import standard

def step(target, drafter, context, lookahead, chance):
    {ends}
    return standard.step(target, drafter, context, lookahead, chance)
"""
SAMPLER = """
import atexit, os, sys
{at_import}
from specref.examples.{which} import verify as known

def verify(target_probs, draft_probs, draft_tokens, *, rng):
    {ends}
    return known(target_probs, draft_probs, draft_tokens, rng=rng)
"""
PROVE = ("prove", "./judged.py:step", "--only", "EOS")
CHECK = ("check", "./judged.py:verify", "--only", "smoke/answers", "--only", "joint/probed")
VECTORS = ("vectors", "--run", "./judged.py:verify")


def specref(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "specref", *arguments], cwd=folder, capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip


def judged(folder: Path, ends: str, at_import: str = "", which: str = "correct") -> Path:
    """A folder with a module of a rule and a sampler that end the process in some way."""
    rule = RULE.format(ends=ends)
    sampler = SAMPLER.format(ends=ends, at_import=at_import, which=which)
    (folder / "judged.py").write_text(rule + sampler)
    return folder


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize(
    ("ends", "how"),
    [
        ("os._exit(0)", "with exit code 0"),
        ("os.kill(os.getpid(), 9)", "by SIGKILL"),
        ("os.execv('/bin/true', ['true'])", "with exit code 0"),
        ("t = threading.Thread(target=os._exit, args=(0,)); t.start(); t.join()", "code 0"),
    ],
)
def test_a_rule_that_ends_the_process_has_no_verdict(ends: str, how: str, tmp_path: Path) -> None:
    found = specref(judged(tmp_path, ends), *PROVE)
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.startswith("error: no verdict")
    assert how in found.stderr
    assert found.stderr.count("\n") == 1


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("command", [CHECK, VECTORS, (*PROVE, "--everywhere")])
def test_nor_has_one_in_other_commands(command: tuple[str, ...], tmp_path: Path) -> None:
    asked = [one for one in command if "--everywhere" not in command or one not in PROVE[2:]]
    found = specref(judged(tmp_path, "os._exit(0)"), *asked)
    assert found.returncode == 2
    assert "error: no verdict" in found.stderr


@pytest.mark.deep
def test_a_module_that_ends_the_process_when_it_is_imported(tmp_path: Path) -> None:
    found = specref(judged(tmp_path, "", at_import="os._exit(0)"), *CHECK)
    assert (found.returncode, found.stderr.count("no verdict")) == (2, 1)
    (tmp_path / "judged.py").write_text("import sys; sys.exit(0)")
    found = specref(tmp_path, *CHECK)
    assert (found.returncode, found.stdout) == (2, "")
    assert "SystemExit" in found.stderr


@pytest.mark.deep
def test_the_written_verdict_counts_and_not_how_the_process_ends_after_it(tmp_path: Path) -> None:
    late = "atexit.register(os._exit, 0)"
    lossy = judged(tmp_path, "", at_import=late, which="lossy")
    found = specref(lossy, *CHECK, "--claim", "one_hot=false")
    assert (found.returncode, "LOSSY" in found.stdout) == (1, True)
    right = judged(tmp_path, "", at_import="atexit.register(os._exit, 1)")
    assert specref(right, *CHECK).returncode == 0


@pytest.mark.deep
def test_a_copy_that_judged_code_forks_ends(tmp_path: Path) -> None:
    once = "os.path.exists('forked') or (open('forked', 'x').close(), os.fork())"
    folder = judged(tmp_path, once)
    found = specref(folder, *PROVE)
    assert (folder / "forked").exists()
    assert (found.returncode, found.stdout.count("LOSSLESS")) == (0, 1)
    (folder / "forked").unlink()
    found = specref(folder, *CHECK)
    assert (folder / "forked").exists()
    assert (found.returncode, found.stdout.count("2 passed")) == (0, 1)


def test_system_exit_is_an_error_of_the_rule_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(judged(tmp_path, "sys.exit(0)"))
    found = CliRunner().invoke(main, PROVE)
    assert found.exit_code == 2
    assert "raised SystemExit" in found.stderr
    assert "line 6 of judged.py" in found.stderr
    found = CliRunner().invoke(main, (*PROVE, "--workers", "2"))
    assert (found.exit_code, "line 6 of judged.py" in found.stderr) == (2, True)
    found = CliRunner().invoke(main, CHECK)
    assert found.exit_code == 1
    assert "SystemExit" in found.stdout


def test_system_exit_that_is_no_verdict_is_misuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it slips through: 0 is written by a command alone."""
    monkeypatch.setattr("specref.cli.proving.check_step", lambda step: sys.exit(0))
    found = CliRunner().invoke(main, ["prove", "specref.algorithms.standard:step"])
    assert found.exit_code == 2
    assert "SystemExit" in found.stderr
    monkeypatch.setattr("specref.cli.proving.check_step", lambda step: leave(0))
    assert CliRunner().invoke(main, ["prove", "specref.algorithms.standard:step"]).exit_code == 0


def test_the_child_ends_with_its_parent(tmp_path: Path) -> None:
    wait = "open('began', 'w').write(str(os.getpid())); __import__('time').sleep(600)"
    began = judged(tmp_path, wait) / "began"
    words = [sys.executable, "-m", "specref", *PROVE]
    running = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        while not (began.exists() and began.read_text()):
            assert running.poll() is None
            time.sleep(0.05)
    finally:
        running.kill()
        running.wait()
    child = int(began.read_text())
    assert child != running.pid
    for _ in range(200):
        if not Path(f"/proc/{child}").exists() or " Z " in stat_of(child):
            return
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    pytest.fail("the child goes on without its parent")


def stat_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return " Z "


def test_notes_hold_what_was_written() -> None:
    notes = Notes()
    assert (notes.verdict, notes.doing) == (None, "")
    notes.at("smoke/answers")
    notes.at("x" * 5000)
    notes.at("é")
    assert notes.doing == "é"
    notes.write(0)
    assert notes.verdict == 0
