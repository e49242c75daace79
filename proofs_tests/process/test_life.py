"""Programs that crash, hang, talk out of turn, or are left: started once, ended for good.

Nothing here is random but seeds, which are fixed.
"""

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from proofs_tests.helpers.programs import ask, toy
from specref import check
from specref.contracts.errors import BrokenContractError
from specref.contracts.timeout import HungError
from specref.process import CannotStartError, EndedError, Process, SamplerError
from specref.process.messages import Tail

SHORT = 0.3
AT_MOST = 20
SAY = "said['error'] = {}"
WITH_ITS_NUMBER = "said['version'] = str(os.getpid())"


def said(program: Process) -> str:
    """The error that it answers."""
    with pytest.raises(SamplerError) as caught:
        ask(program)
    return str(caught.value)


def logged(file: Path) -> str:
    """A statement that leaves a line, by which starts are counted."""
    return f"os.write(os.open({str(file)!r}, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), b'x')"


def wait_for(file: Path) -> None:
    """Return when the file is there."""
    give_up = time.monotonic() + AT_MOST
    while not file.exists():
        assert time.monotonic() < give_up
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("'one\\n\\n two\\nthree\\nfour\\n'", "two / three / four"),
        ("'a' * 100 + 'b' * 150", "a" * 10 + "b" * 150),
        ("'one\\n' + ' ' * 2**22 + '\\ntwo'", "two"),
        ("'\\x1b]0;red\\x07'", r"\x1b]0;red\x07"),
    ],
)
def test_no_more_of_stderr_than_can_be_read(tmp_path: Path, written: str, shown: str) -> None:
    fault = f"sys.stderr.write({written}); sys.stderr.flush(); os._exit(1)"
    with Process(toy(tmp_path, at_verify=fault)) as program, pytest.raises(EndedError) as caught:
        ask(program)
    assert str(caught.value) == f"ended with exit code 1; stderr ends: {shown}"


def test_of_stderr_the_last_4_096_bytes_are_kept() -> None:
    """Lines of spaces are none, so that a line is shown if it is among those bytes."""
    for spaces, told in ((4_093, "; stderr ends: last"), (4_094, "; stderr ends: ast")):
        reader, writer = os.pipe()
        os.write(writer, b"last" + b" " * (spaces - 1))
        os.close(writer)
        tail = Tail(reader)
        for there in (True, False):
            tail.read()
            assert tail.open == there
        assert str(tail) == told
        os.close(reader)


def test_logs_do_not_stand_in_the_way(tmp_path: Path) -> None:
    endless = "subprocess.Popen(['yes'], stdout=2, stdin=subprocess.DEVNULL)"
    with Process(toy(tmp_path, before=endless)) as program:
        ask(program)
    silent = toy(tmp_path, before=endless, at_verify="time.sleep(600)")
    with Process(silent, timeout=SHORT) as program, pytest.raises(HungError):
        ask(program)
    with Process(toy(tmp_path, at_start="os.close(2)")) as program:
        ask(program)


def test_what_follows_an_answer_is_not_lost(tmp_path: Path) -> None:
    two = "os.write(1, (json.dumps(said) + '\\nmore\\n').encode()); continue"
    with Process(toy(tmp_path, at_verify=two)) as program:
        ask(program)
        with pytest.raises(BrokenContractError, match="wrote 'more' before it was asked"):
            ask(program)


def test_a_line_between_answers_is_noticed(tmp_path: Path) -> None:
    asked, file = tmp_path / "asked", tmp_path / "written"
    late = (
        f"while said['id'] and not os.path.exists({str(asked)!r}): time.sleep(0.001)\n    "
        f"if said['id']: print(json.dumps(said | dict(id=2)), flush=True); {logged(file)}"
    )
    with Process(toy(tmp_path, after=late)) as program:
        ask(program)
        asked.touch()  # until then the answer was read alone
        wait_for(file)
        with pytest.raises(BrokenContractError, match="before it was asked"):
            ask(program)


def test_a_line_without_end_is_given_up(tmp_path: Path) -> None:
    endless = "while True: os.write(1, b'x' * 2**20)"
    more = pytest.raises(BrokenContractError, match="more than 64 MiB for one answer")
    with Process(toy(tmp_path, at_verify=endless)) as program, more:
        ask(program)


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("time.sleep(600)", r"within 0\.3 s \(is stdout flushed after each line\?\)"),
        ("os.write(1, b'{}'); time.sleep(600)", r"it wrote '{}' without an end of line"),
        ("sys.stderr.write('busy'); sys.stderr.flush(); time.sleep(600)", "stderr ends: busy"),
    ],
)
def test_who_hangs_once_is_not_asked_again(tmp_path: Path, fault: str, message: str) -> None:
    file = tmp_path / "starts"
    with Process(toy(tmp_path, before=logged(file), at_verify=fault), timeout=SHORT) as program:
        for _ in range(2):
            with pytest.raises(HungError, match=message):
                ask(program)
    assert file.read_text() == "x"


def test_after_a_hang_the_rest_is_blocked(tmp_path: Path) -> None:
    with Process(toy(tmp_path, at_verify="time.sleep(600)"), timeout=SHORT) as program:
        report = check(program, only=["smoke"], timeout=None)
    assert report.exit_code == 2
    assert {r.message for r in report.results if r.status == "not_run"} == {
        "blocked by smoke/answers"
    }


LARGE = np.full((8, 1, 8_192), 1 / 8_192) * np.arange(1, 9)[:, None, None]
"""A request of a megabyte, which no pipe holds."""
NO_DRAFTS = np.zeros((8, 0), dtype=np.int64)


@pytest.mark.parametrize(
    ("early", "message"),
    [
        ("", r"is stdout flushed"),
        ("os.write(1, b'{}\\n'); ", r"it wrote '{}', but has not read the request to its end"),
    ],
)
def test_a_program_that_does_not_read_is_not_waited_for(
    tmp_path: Path, early: str, message: str
) -> None:
    wait = f"sys.stdin.buffer.raw.read(1); {early}time.sleep(600)"
    late = pytest.raises(HungError, match=message)
    with Process(toy(tmp_path, after=wait), timeout=SHORT) as program, late:
        program(LARGE, None, NO_DRAFTS, rng=np.random.default_rng(1))


def test_a_program_that_closes_its_input_has_left(tmp_path: Path) -> None:
    left = pytest.raises(BrokenContractError, match="closed its stdin or stdout")
    with Process(toy(tmp_path, after="os.close(0); time.sleep(600)")) as program, left:
        program(LARGE, None, NO_DRAFTS, rng=np.random.default_rng(1))


def test_after_a_crash_it_is_started_anew(tmp_path: Path) -> None:
    crash = "if 0 in asked['lens']: os.abort()"
    with Process(toy(tmp_path, at_verify=crash)) as program:
        for _ in range(2):
            with pytest.raises(EndedError):
                ask(program)
            p = np.ones((1, 2, 1))
            rng = np.random.default_rng(1)
            assert program(p, p[:, :1], np.array([[0]]), rng=rng)[1] == [1]


def test_after_an_error_it_goes_on(tmp_path: Path) -> None:
    with Process(toy(tmp_path, at_verify=SAY.format("os.getpid()"))) as program:
        assert said(program) == said(program)


def test_a_row_is_blamed_if_it_crashes_again_alone(tmp_path: Path) -> None:
    second = "if said['id'] == 2: os.abort()"
    with Process(toy(tmp_path, at_verify=second)) as program:
        (result,) = check(program, only=["smoke/answers"], timeout=None).results
    assert "raised EndedError in a batch of 24: ended by SIGABRT" in result.message


def test_threads_take_turns(tmp_path: Path) -> None:
    slow = "time.sleep(0.05); said['error'] = asked['seed']"
    found: list[tuple[str, str]] = []

    def go(seed: int) -> None:
        drawn = int(np.random.default_rng(seed).integers(2**53))
        try:
            ask(program, seed)
        except SamplerError as error:
            found.append((str(error), str(drawn)))

    with Process(toy(tmp_path, at_verify=slow)) as program:
        threads = [threading.Thread(target=go, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 4
    assert all(answer == drawn for answer, drawn in found)


def test_it_is_told_to_stop_and_given_a_moment(tmp_path: Path) -> None:
    file = tmp_path / "last"
    slow = f"time.sleep(0.1); open({str(file)!r}, 'w').write(line)"
    with Process(toy(tmp_path, at_stop=slow)) as program:
        ask(program)
    assert file.read_text() == '{"protocol":1,"id":2,"request":"stop"}\n'


def test_one_that_has_ended_can_be_closed(tmp_path: Path) -> None:
    gone = "if said['id']: os._exit(0)"
    with Process(toy(tmp_path, at_start=WITH_ITS_NUMBER, after=gone)) as one:
        ask(one)
        pid = int(one.declared.version)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # its parent may still ask how
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def test_nothing_is_left_to_be_waited_for_after_a_hang(tmp_path: Path) -> None:
    hangs = toy(tmp_path, at_start=WITH_ITS_NUMBER, at_verify="time.sleep(600)")
    with Process(hangs, timeout=SHORT) as program:
        with pytest.raises(HungError) as caught:
            ask(program)
        with pytest.raises(ChildProcessError):
            os.waitpid(int(program.declared.version), os.WNOHANG)
    assert caught.traceback  # which holds on to what was started


def test_what_is_closed_stays_closed(tmp_path: Path) -> None:
    file = tmp_path / "starts"
    with Process(toy(tmp_path, before=logged(file))) as program:
        ask(program)
    with pytest.raises(ValueError, match="is closed"):
        ask(program)
    assert file.read_text() == "x"


def test_what_is_closed_while_it_is_asked_is_not_started_again(tmp_path: Path) -> None:
    starts, asked = tmp_path / "starts", tmp_path / "asked"
    hang = f"{logged(asked)}; time.sleep(600)"
    program = Process(toy(tmp_path, before=logged(starts), at_verify=hang))
    worker = threading.Thread(target=lambda: check(program, only=["smoke"], timeout=None))
    worker.start()
    wait_for(asked)
    program.close()
    worker.join(AT_MOST)
    assert not worker.is_alive()
    assert starts.read_text() == "x"


LIVING = """
reach = os.open({fifo!r}, os.O_WRONLY)
subprocess.Popen(["sleep", "600"], pass_fds=[reach])
"""


@pytest.fixture
def living(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """Statements that start a child, and a pipe that ends with the last who holds it."""
    name = str(tmp_path / "reach")
    os.mkfifo(name)
    reader = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
    yield LIVING.format(fifo=name), reader
    os.close(reader)


def left_behind(fifo: int) -> bool:
    """Whether the program, or its child, still holds the other end."""
    ready, _, _ = select.select([fifo], [], [], AT_MOST)
    return not ready or os.read(fifo, 1) != b""


def test_close_ends_it_and_its_children(tmp_path: Path, living: tuple[str, int]) -> None:
    with Process(toy(tmp_path, before=living[0])) as program:
        ask(program)
    assert not left_behind(living[1])
    program.close()


@pytest.mark.parametrize("how", ["os.abort()", "time.sleep(600)"])
def test_its_children_end_with_a_crash_or_a_hang(
    tmp_path: Path, living: tuple[str, int], how: str
) -> None:
    command = toy(tmp_path, before=living[0], at_verify=how)
    with Process(command, timeout=SHORT) as program:
        with pytest.raises((EndedError, HungError)):
            ask(program)
        assert not left_behind(living[1])


def test_a_failed_start_leaves_nobody(tmp_path: Path, living: tuple[str, int]) -> None:
    command = toy(tmp_path, before=living[0], at_start="del said['name']")
    with pytest.raises(CannotStartError) as caught:
        Process(command)
    assert not left_behind(living[1])
    assert caught.traceback  # which holds on to what was started


def test_collection_ends_it(tmp_path: Path, living: tuple[str, int]) -> None:
    program = Process(toy(tmp_path, before=living[0]))
    ask(program)
    del program
    assert not left_behind(living[1])


def test_so_does_the_end_of_the_interpreter(tmp_path: Path, living: tuple[str, int]) -> None:
    command = toy(tmp_path, before=living[0])
    start = "from specref.process import Process"
    code = f"{start}\nprogram = Process({command!r})\nraise SystemExit(3)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 3
    assert not left_behind(living[1])


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_ends_it_and_leaves_a_report(
    tmp_path: Path, living: tuple[str, int], number: int
) -> None:
    starts, asked = tmp_path / "starts", tmp_path / "asked"
    hang = f"{logged(asked)}; time.sleep(600)"
    command = toy(tmp_path, before=living[0], at_verify=hang)
    at_once = tmp_path / "at_once.sh"  # a second start would be written down before it is killed
    at_once.write_text(f"printf x >> {starts}; exec {command}")
    target = f"process:sh {at_once}"
    words = [sys.executable, "-m", "specref", "check", target, "--json", "-", "--only", "smoke"]
    heard = partial(signal.signal, number, signal.SIG_DFL)  # by whomever tests are run
    specref = subprocess.Popen(words, stdout=subprocess.PIPE, preexec_fn=heard)
    wait_for(asked)
    specref.send_signal(number)
    record, _ = specref.communicate(timeout=60)
    assert specref.returncode == 130
    assert json.loads(record)["counts"]["not_run"] > 0
    assert not left_behind(living[1])
    assert starts.read_text() == "x"
