"""`specref check engines` and the runner of the scoreboard: whatever an engine does is a row.

Verdicts of the planted engine are at alpha 1e-9, with the kit's seed 0.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from proofs_tests.benchmarks import engines as runner
from proofs_tests.pages.scoreboard import board_page
from specref.adapters import IMPLEMENTATIONS
from specref.adapters.implementation import Implementation
from specref.cli import main
from specref.conformance.suite import chosen
from specref.contracts.contract import Contract
from specref.contracts.table import CONTRACTS, ENGINE
from specref.contrib.engines import board, offline
from specref.contrib.engines.board_report import Row, read_board, write_board
from specref.contrib.engines.engines import ENGINES, Installable

# Each token is a draft, whatever the target says of it.
PLANTED = """
import os, random
from specref import Model, Vocabulary
from specref.contracts.text import Engine, Text

def decode(prompt, budget, seed):
    print("hello")
    rng = random.Random(seed)
    tokens = [rng.choices((0, 1), (0.1, 0.9))[0] for _ in range(budget)]
    return Text(tokens, budget, budget)

lossy = Engine(decode, prompts=[(0, 1)], law=Model(Vocabulary("ab"), lambda _: [0.9, 0.1]))

def __getattr__(name):
    if name == "dying":
        os.abort()
    raise AttributeError(name)
"""
FORMS = {"text": ("--detect-tv", "0.3")}


@dataclass(frozen=True)
class Planted(Installable):
    """An engine whose paths are in no registry."""

    objects: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[Implementation, ...]:
        return tuple(Implementation(one, ENGINE, one, make=lambda: print) for one in self.objects)


def wheel(folder: Path) -> str:
    """A package with the planted engines, as pip installs it; its path."""
    path, told = folder / "planted_engine-1.0-py3-none-any.whl", "planted_engine-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("planted_engine.py", PLANTED)
        file.writestr(
            f"{told}/METADATA", "Metadata-Version: 2.1\nName: planted-engine\nVersion: 1.0"
        )
        file.writestr(
            f"{told}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any"
        )
        file.writestr(f"{told}/RECORD", "")
    return str(path)


# Each answers as its law says, and does one thing more.
BAD = """
import os, random, socket, subprocess, sys, urllib.request
from specref import Model, Vocabulary
from specref.contracts.text import Engine, Text
from specref.contracts.capabilities import capable

kept = []
LAW = Model(Vocabulary("ab"), lambda _: [0.5, 0.5])

def asked(prompt, budget, seed):
    rng = random.Random(seed)
    return Text([rng.choices((0, 1), (0.5, 0.5))[0] for _ in range(budget)], budget, budget)

def engine(before):
    def ask(*given):
        before()
        return asked(*given)
    return Engine(ask, prompts=[(0, 1)], law=LAW)

def leak():
    kept.append(bytearray(b"x") * 2**26)

def download():
    urllib.request.urlopen("http://weights.example.org/model")

def telephone():
    try:
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    except OSError:
        pass

def local():
    with socket.socket() as server, socket.socket() as client:
        server.bind(("localhost", 0))
        server.listen()
        client.connect(server.getsockname())

def say():
    print("two drafts, one kept")

def flood():
    os.write(1, b"x" * 2**16)

leaking, downloading, telephoning, local, flooding, saying = map(
    engine, (leak, download, telephone, local, flood, say)
)

def sampler(target_probs, draft_probs, draft_tokens, *, rng):
    print('{"results": []}')
    os.system("echo from a shell")
    from specref.examples.correct import verify
    return verify(target_probs, draft_probs, draft_tokens, rng=rng)

def __getattr__(name):
    if name == "loading":
        telephone()
        raise ImportError("no weights")
    if name == "children":
        subprocess.run([sys.executable, "-c", "import time; x = b'x' * 2**30; time.sleep(60)"])
    raise AttributeError(name)
"""


@pytest.fixture
def bad(tmp_path: Path) -> Callable[..., Row]:
    """The row of one of the bad engines."""
    (tmp_path / "bad_engines.py").write_text(BAD)

    def row(
        name: str,
        contract: str = "text",
        *options: str,
        memory: float = board.MOST_MEMORY,
    ) -> Row:
        given = options or ("--detect-tv", "0.5")
        return board.judged_apart(
            "bad", f"bad_engines:{name}", contract, given, folder=tmp_path, memory=memory,
            environment={**os.environ, "PYTHONPATH": str(runner.ROOT)},
        )  # fmt: skip

    return row


@pytest.mark.deep(one_in=2)
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="not_run (there is no /proc)")
@pytest.mark.parametrize("name", ["leaking", "children"])
def test_what_takes_too_much_memory_is_a_row(name: str, bad: Any) -> None:
    row = bad(name, memory=0.75 * board.GIB)
    assert (row.verdict, row.violated, row.judged) == ("memory limit", False, False)
    assert row.evidence.startswith("used more than 0.75 GiB; ")


def test_what_prints_without_end_is_a_row(bad: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "MOST_OUTPUT", 2.0**20)
    row = bad("flooding")
    assert (row.verdict, row.judged) == ("output limit", False)
    assert row.evidence.startswith("printed more than 0.000977 GiB; ")
    assert len(row.evidence) < 2 * board.LONGEST


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "host"), [("downloading", "weights.example.org"), ("loading", "192.0.2.1")]
)
def test_what_needs_a_download_is_a_row(name: str, host: str, bad: Any) -> None:
    """What it raises then is no finding."""
    row = bad(name)
    assert (row.verdict, row.violated, row.judged) == ("asked for a network", False, False)
    assert row.evidence.startswith(f"asked for {host}, and there is no network; ")


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize(
    ("name", "told"), [("telephoning", "; was refused a network (192.0.2.1)"), ("local", "")]
)
def test_what_goes_on_without_a_network_is_judged(name: str, told: str, bad: Any) -> None:
    row = bad(name)
    assert (row.verdict, row.judged) == ("passed", True)
    assert "drafts accepted" in row.evidence
    assert row.evidence.endswith(told)
    assert ("network" in row.evidence) == bool(told)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("asked", "power", "told"),
    [
        (
            ("sampler", "verify", "--only", "joint/wide", "--detect-tv", "0.4"),
            *("TV ≥ 0.4", '{"results": []}'),
        ),
        (("saying",), "TV ≥ 0.5", "two drafts, one kept"),
    ],
)
def test_what_is_printed_is_told_and_changes_nothing(
    asked: tuple[str, ...], power: str, told: str, bad: Any
) -> None:
    row = bad(*asked)
    assert (row.verdict, row.power) == ("passed", power)
    assert row.evidence.endswith(f"; prints to standard output: {told}")


@pytest.mark.deep
def test_what_a_sampler_prints_does_not_get_into_json(tmp_path: Path) -> None:
    (tmp_path / "bad_engines.py").write_text(BAD)
    asked = ["check", "bad_engines:sampler", "--only", "smoke/answers", "--json", "-"]
    done = subprocess.run(
        [sys.executable, "-m", "specref", *asked], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(runner.ROOT)},
    )  # fmt: skip
    assert [one["id"] for one in json.loads(done.stdout)["results"]] == ["smoke/answers"]
    assert "from a shell" in done.stderr


@pytest.mark.deep
def test_a_process_has_no_network(tmp_path: Path) -> None:
    """Its workers neither."""
    (tmp_path / "asks.py").write_text(ASKS)
    hosts = tmp_path / "hosts"
    given = {**os.environ, "PYTHONPATH": str(runner.ROOT), offline.REFUSED: str(hosts)}
    asked = ["check", "asks:engine", "--contract", "text", "--only", "smoke/texts", "--isolate"]
    done = subprocess.run(
        [sys.executable, "-m", "specref.contrib.engines.offline", *asked], env=given, cwd=tmp_path,
        capture_output=True, text=True,
    )  # fmt: skip
    assert "no network while this is judged" in done.stdout + done.stderr
    assert {*hosts.read_text().split()} == {"a.example.org", "b.example.org", "192.0.2.7"}


ASKS = """
import socket
from specref.contracts.text import Engine

def ask(prompt, budget, seed):
    for asked in (
        lambda: socket.gethostbyname("a.example.org"),
        lambda: socket.getaddrinfo(b"b.example.org", 80),
        lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.7", 80)),
    ):
        try:
            asked()
        except OSError as error:
            last = error
    raise last

engine = Engine(ask, prompts=[(0, 1)], eos=None, plain=ask)
"""


def program(folder: Path, script: str) -> str:
    """An interpreter that does something else."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.deep
def test_engines_are_installed_judged_and_deleted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    objects = ("planted_engine:lossy", "planted_engine:dying")
    engine = Planted("planted", "planted-engine", (wheel(tmp_path),), 1, objects=objects)
    absent = Planted("absent", "absent", (str(tmp_path / "absent.whl"),), 1, objects=("absent:x",))
    record, how = tmp_path / "board.json", runner.Judgement(FORMS, share=True)
    lossy, dying, missing = runner.run([engine, absent], record, how)
    assert (lossy.verdict, lossy.violated, lossy.package) == ("LOSSY", True, "planted-engine 1.0")
    assert "evidence 10^" in lossy.evidence
    assert lossy.command.endswith("text --detect-tv 0.3")
    assert (dying.verdict, dying.violated) == ("crashed", False)
    assert dying.evidence.startswith("ended by SIGABRT")
    assert missing.verdict == "not_run"
    assert "absent.whl" in missing.evidence
    assert read_board(record) == (lossy, dying, missing)
    assert "installed in 0." in capsys.readouterr().out
    assert not [*scratch.iterdir()]


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize(
    ("script", "verdict", "evidence"),
    [
        ("exec sleep 60", "time limit", "not done after 1 s; nothing was printed"),
        ("sleep 60 & wait", "time limit", "not done after 1 s; nothing was printed"),
        ("echo 'it broke'; exit 0", "crashed", "ended with exit code 0; it broke"),
        ("kill -SEGV $$", "crashed", "ended by SIGSEGV; nothing was printed"),
    ],
)
def test_what_ends_otherwise_is_a_row(
    script: str, verdict: str, evidence: str, tmp_path: Path
) -> None:
    python = program(tmp_path, script)
    row = board.judged_apart("x", "x", "text", python=python, limit=1)
    assert (row.verdict, row.evidence, row.judged) == (verdict, evidence, False)
    assert row.seconds < board.GRACE


FALLING = """
import os, random
from specref import Model, Vocabulary
from specref.contracts.text import Engine, Text

LAW = Model(Vocabulary("ab"), lambda _: [0.5, 0.5])

def asked(prompt, budget, seed):
    with open("calls", "a") as calls:
        calls.write(".")
    if os.path.getsize("calls") == 400:
        os.abort()
    rng = random.Random(seed)
    return Text([rng.choices((0, 1), (0.5, 0.5))[0] for _ in range(budget)], budget, budget)

falling = Engine(asked, prompts=[(0, 1)], law=LAW)
"""


@pytest.mark.deep
def test_texts_of_a_process_that_was_ended_are_taken_by_the_next(tmp_path: Path) -> None:
    """The second process asks for the others; together they ask as one that is left alone."""
    (tmp_path / "fallible.py").write_text(FALLING)
    texts = runner.texts_of(tmp_path / "board.json", "fallible 1.0", "fallible:falling")
    assert texts == tmp_path / ".board" / "fallible-falling-fallible-1.0.jsonl"

    def row() -> Row:
        return board.judged_apart(
            "fallible", "fallible:falling", "text", ("--detect-tv", "0.3"), texts=texts,
            folder=tmp_path, environment={**os.environ, "PYTHONPATH": str(runner.ROOT)},
        )  # fmt: skip

    def calls() -> int:
        return (tmp_path / "calls").stat().st_size

    assert row().verdict == "crashed"
    assert (calls(), texts.exists()) == (400, True)
    second, asked = row(), calls()
    assert (second.verdict, "--texts" in second.command) == ("passed", False)
    assert not texts.exists()
    third, alone = row(), calls() - asked
    assert second.evidence == f"{third.evidence}; 360 texts of an earlier run"
    assert asked - alone == 40  # what the first check asks is not kept


def test_what_was_found_before_a_crash_counts(tmp_path: Path) -> None:
    failed = {"id": "smoke/texts", "status": "failed", "finding": "broken contract"}
    found = {**failed, "message": "no text", "evidence": {}}
    record = {
        "results": [found], "lossy": False, "exit_code": 1, "verdict": "BROKEN", "version": "x 1",
        "finding": "broken contract", "complete": False,
    }  # fmt: skip
    (tmp_path / "record").write_text(json.dumps(record))
    # The last argument is the file of the report.
    script = f"for file; do :; done; cp {tmp_path}/record $file; kill -9 $$"
    row = board.judged_apart("x", "x", "text", python=program(tmp_path, script))
    assert (row.verdict, row.violated, row.version) == ("broken contract", True, "x 1")
    assert row.evidence == "ended by SIGKILL; smoke/texts: no text"


class Judging:
    """In place of a process: a row, or an interruption."""

    def __init__(self, *rows: tuple[str, bool] | type[BaseException]) -> None:
        self.rows = list(rows)
        self.asked: list[str] = []

    def __call__(self, engine: str, path: str, contract: str, *args: object, **_: object) -> Row:
        self.asked.append(path)
        match self.rows.pop(0):
            case (str() as verdict, bool() as violated):
                return Row(engine, path, contract, verdict, str(args), violated=violated)
            case error:
                raise error


class Nowhere(runner.Environment):
    """No environment."""

    number = "1.0"

    def __init__(self, folder: Path, share: bool) -> None:
        self.python, self.variables = "", {}


@pytest.fixture
def installed_nowhere(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Planted]:
    """An engine with two paths, judged by a function of one's own and installed nowhere."""

    def put(judging: Any) -> Planted:
        monkeypatch.setattr(runner, "judged_apart", judging)
        monkeypatch.setattr(runner, "Environment", Nowhere)
        monkeypatch.setattr(runner, "offered", lambda engine, there: Nowhere.number)
        monkeypatch.setattr(runner, "install", lambda engine, there, share: 3)
        return Planted("e", "e", ("e",), 1, objects=("e:a", "e:b"))

    return put


def test_an_interrupted_board_goes_on(
    tmp_path: Path, installed_nowhere: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    judging = Judging(("passed", False), KeyboardInterrupt, ("passed", False))
    engine = installed_nowhere(judging)
    record, how = tmp_path / "board.json", runner.Judgement({})
    with pytest.raises(KeyboardInterrupt):
        runner.run([engine], record, how)
    assert [row.path for row in read_board(record)] == ["e:a"]
    assert [row.path for row in runner.run([engine], record, how)] == ["e:a", "e:b"]
    assert judging.asked == ["e:a", "e:b", "e:b"]
    runner.run([engine], record, how)
    assert len(judging.asked) == 3
    judging.rows = [("passed", False)] * 4
    monkeypatch.setattr(Nowhere, "number", "1.1")
    assert {row.package for row in runner.run([engine], record, how)} == {"e 1.1"}
    runner.run([engine], record, how, again=True)
    assert len(judging.asked) == 7
    judging.rows = [("passed", False)]
    runner.run([engine], record, runner.Judgement({}, paths=["e:b"]), again=True)
    assert judging.asked[7:] == ["e:b"]


def test_a_run_that_judges_all_again_goes_on(
    tmp_path: Path, installed_nowhere: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    judging = Judging(*[("passed", False)] * 3, KeyboardInterrupt, *[("passed", False)] * 3)
    engine = installed_nowhere(judging)
    record = tmp_path / "board.json"

    def again(*options: str) -> str:
        run = runner.label(record, options)
        runner.run([engine], record, runner.Judgement({}, run=run), again=True)
        return run

    first = again("seconds=5")
    assert {row.run for row in read_board(record)} == {first}
    monkeypatch.setattr(runner, "datetime", At)
    with pytest.raises(KeyboardInterrupt):
        again("seconds=5")
    assert runner.label(record, ["seconds=6"]).startswith("2000-01-01 00:00 UTC, ")
    monkeypatch.setattr(At, "year", 2001)
    assert again("seconds=5") == "2000-01-01 00:00 UTC, `seconds=5`"
    assert judging.asked == ["e:a", "e:b", "e:a", "e:b", "e:b"]
    assert again("seconds=5").startswith("2001")


def test_paths_of_another_engine_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--only", "flashspec", "--path", "mlx-lm-text", "--record", str(tmp_path / "b.json")]
    monkeypatch.setattr("sys.argv", ["engines", *asked])
    with pytest.raises(SystemExit) as stop:
        runner.main()
    assert stop.value.code == 2
    assert "--path: expected paths of the engines of --only" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


def test_a_run_is_named_as_its_command() -> None:
    options = {"only": ["vllm", "sglang"], "again": False, "share": True, "seconds": 30.0}
    told = ["--only", "vllm", "--only", "sglang", "--share", "--seconds", "30"]
    assert runner.words(options) == told
    assert runner.words({"only": None, "join": None}) == []


def test_the_time_of_a_run_goes_by_the_record() -> None:
    engine = Planted("e", "e", ("e",), 1, objects=("e:a", "e:b"))
    row = Row("e", "e:a", "text", "passed", "", seconds=90.0)
    assert runner.minutes(engine.paths, [row], 20.0) == (90 + 20 + board.LOADING) / 60


class At:
    """A clock."""

    year = 2000

    @classmethod
    def now(cls, zone: tzinfo) -> datetime:
        return datetime(cls.year, 1, 1, tzinfo=zone)


def test_what_was_judged_with_more_power_is_kept_beside(
    tmp_path: Path, installed_nowhere: Any
) -> None:
    row = Row("e", "e:a", "text", "passed", "", "TV ≥ 0.05", package="e 1.0")
    other = replace(row, path="e:b", package="e 0.9")
    write_board(str(tmp_path / "board.json"), [row, other])
    powers = ["TV ≥ 0.3", "TV ≥ 0.3", "TV ≥ 0.2", "TV ≥ 0.2"]

    def judged(*given: object, **_: object) -> Row:
        return replace(row, path=str(given[1]), power=powers.pop(0), evidence="now")

    engine = installed_nowhere(judged)
    for _ in range(2):
        runner.run([engine], tmp_path / "board.json", runner.Judgement({}), again=True)
    assert read_board(tmp_path / "board.json", "stronger") == (row,)
    assert [one.power for one in read_board(tmp_path / "board.json")] == ["TV ≥ 0.2"] * 2
    runner.write_page(tmp_path / "board.json")
    assert "| e 1.0 | `e:a` | passed | TV ≥ 0.05 |" in (tmp_path / "board.md").read_text()


def test_rows_of_another_record_are_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One without a verdict does not replace a verdict on the same version, and is shown."""
    row = Row("e", "e:a", "text", "passed", "", package="e 1.0", run="one", seconds=9.0)
    late = replace(row, verdict="time limit", evidence="not done", run="two")
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    write_board(
        str(here), [row, replace(row, path="e:b", package="e 0.9"), replace(row, path="e:c")]
    )
    write_board(
        str(there),
        [
            late,
            replace(late, path="e:b"),
            replace(row, path="e:c", verdict="LOSSY", violated=True),
        ],
    )
    monkeypatch.setattr("sys.argv", ["engines", "--join", str(there), "--record", str(here)])
    runner.main()
    assert [(one.verdict, one.run) for one in read_board(here)] == [
        ("passed", "one"), ("time limit", "two"), ("LOSSY", "one"),
    ]  # fmt: skip
    assert read_board(here, "undecided") == (late,)
    assert "| `e:a` | time limit | not done | 0.1 | two |" in here.with_suffix(".md").read_text()
    board = runner.Board(here, "two")
    assert [board.has(path) for path in ("e:a", "e:b", "e:c", "e:d")] == [True, True, False, False]


def test_what_cannot_be_installed_now_keeps_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Planted("e", "e", ("e",), 1, needs_cuda=True, objects=("e:a", "e:b"))
    there = Row("e", "e:a", "text", "passed", "long ago", package="e 1.0")
    write_board(str(tmp_path / "board.json"), [there])
    monkeypatch.setattr(shutil, "which", lambda program: None)
    kept, new = runner.run([engine], tmp_path / "board.json", runner.Judgement({}))
    assert kept == there
    assert (new.path, new.verdict, new.evidence) == ("e:b", "not_run", "needs CUDA")


def test_what_no_adapter_calls_says_why(tmp_path: Path) -> None:
    engine = replace(ENGINES["tensorrt-llm"], requirements=(), needs_cuda=False)
    (row,) = runner.run([engine], tmp_path / "e.json", runner.Judgement({}))
    assert (row.verdict, row.evidence) == ("not_run", IMPLEMENTATIONS[row.path].remedy)
    assert row.evidence.startswith("its wheel needs CUDA")


def test_a_version_is_the_commit_of_a_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECREF_GITHUB", str(tmp_path))
    engine = Installable("e", "", ("torch",), 0, clone="owner/name@0c1d")
    there = runner.Environment.__new__(runner.Environment)
    with pytest.raises(runner.NotInstallableError, match=r"name@0c1d checkout 0c1d$"):
        runner.version_of(engine, there)
    (tmp_path / "owner" / "name@0c1d").mkdir(parents=True)
    assert runner.version_of(engine, there).startswith("owner/name ")


def asked(monkeypatch: pytest.MonkeyPatch, judging: Judging, *arguments: str) -> Result:
    monkeypatch.setattr(board, "judged_apart", judging)
    chosen = {name: ENGINES[name] for name in ("transformers", "vllm")}
    monkeypatch.setattr(board, "ENGINES", chosen)
    for path in ENGINES["transformers"].paths:
        monkeypatch.setattr(path.__class__, "missing", property(absent))
    return CliRunner().invoke(main, ["check", "--installed", "--contract", "text", *arguments])


def absent(path: Implementation) -> tuple[str, ...]:
    return () if path.name.endswith(("sd", "pld", "tli")) else ("it",)


PASSED, KNOWN, LATE = ("passed", False), ("LOSSY, known", False), ("time limit", False)


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ((PASSED, KNOWN, PASSED), 0),
        ((PASSED, ("LOSSY", True), LATE), 1),
        ((PASSED, LATE, PASSED), 2),
        ((PASSED, ("inconclusive", False), PASSED), 2),
        ((PASSED, KeyboardInterrupt), 130),
    ],
)
def test_the_board(
    rows: tuple[tuple[str, bool], ...], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "board.json"
    result = asked(monkeypatch, Judging(*rows), "--json", str(file))
    assert result.exit_code == code
    names = [n for n in IMPLEMENTATIONS if n.startswith("transformers-text-")]
    assert f"3 of {len(names)} paths are installed, about 2 minutes" in result.stderr
    assert "transformers-text-sd" in result.stdout
    found = read_board(file)
    verdicts = [row[0] for row in rows if isinstance(row, tuple)]
    assert [row.path for row in found] == names[: len(found)]
    assert [row.verdict for row in found if not absent(IMPLEMENTATIONS[row.path])] == verdicts
    assert {row.verdict for row in found if absent(IMPLEMENTATIONS[row.path])} == {"not_run"}
    assert len(found) == len(names) or code == 130
    assert "--time-limit" in found[0].evidence
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Implementation, "missing", property(lambda path: path.packages))
    monkeypatch.setattr(board, "judged_apart", Judging())
    result = CliRunner().invoke(main, ["check", "--installed", "--json", "-"])
    assert result.exit_code == 2
    rows = json.loads(result.stdout)["rows"]
    assert {row["verdict"] for row in rows} == {"not_run"}
    assert "pip install" in rows[0]["evidence"]


def test_options_are_passed_on_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = asked(monkeypatch, Judging(), "--save", "folder")
    assert (result.exit_code, result.stderr) == (
        2,
        "error: --save: expected one engine, not all of them\n",
    )
    file = tmp_path / "board.json"
    given = ("--seconds", "5", "--seed", "3", "--json", str(file))
    assert asked(monkeypatch, Judging(*[PASSED] * 3), *given).exit_code == 0
    assert read_board(file)[0].evidence == "(['--time-limit', '5.0', '--seed', '3'],)"


def test_every_implementation_of_others_is_of_one_engine() -> None:
    paths = [path.name for engine in ENGINES.values() for path in engine.paths]
    others = [n for n in IMPLEMENTATIONS if not n.startswith(("reference", "torch-backend"))]
    assert sorted(paths) == sorted(others)


@pytest.mark.parametrize("contract", CONTRACTS.values(), ids=str)
def test_every_contract_has_a_quick_form_of_its_own_checks(contract: Contract) -> None:
    options = board.quick(contract, 30)
    power = ("--time-limit", "40") if contract.timed else ("--detect-tv", "0.05")
    assert options[-2:] == power
    for only in options[1:-2:2]:
        assert any(one.is_for(contract) for one in chosen([only]))


def test_slow_engines_have_few_checks_and_more_time() -> None:
    """Their kernels run in Triton's interpreter; rows say so."""
    vllm, mlx = ENGINES["vllm"], ENGINES["mlx-lm"]
    options = board.quick(CONTRACTS["ragged"], 30, slow=True)
    assert options[-4:] == ("--detect-tv", "0.2", "--timeout", "900")
    assert runner.Judgement({}, 600).form("ragged", slow=True)[-4:-2] == ("--detect-tv", "0.1")
    assert "joint/probed" in options
    assert [board.limit_for(one, 30) for one in (vllm, mlx)] == [1200, 600]
    assert [board.limit_for(one, 600) for one in (vllm, mlx)] == [3600, 1800]
    assert bool(board.ran_in(vllm)) == bool(board.INTERPRETED)
    assert board.ran_in(mlx) == ""


def test_the_quick_form_of_a_contract_that_says_nothing_of_it_is_all_checks() -> None:
    class Own(Contract):
        """A contract."""

    assert board.quick(Own("own", Sequence, ()), 30) == ("--detect-tv", "0.05")


def test_a_row_of_a_lossy_path_links_to_what_was_found() -> None:
    row = Row("e", "mine", "text", "LOSSY", "joint/wide", violated=True)
    page = board_page([row], sections={"mine": "mine-is-lossy"})
    assert "(trophies.md#mine-is-lossy)" in page


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    rows = Row("e", "one", "text", "LOSSY", "joint/wide"), Row("e", "two", "text", "passed", "all")
    file = tmp_path / "board.json"
    write_board(str(file), rows, rows[:1], (), "a run")
    assert read_board(file) == rows
    assert [read_board(file, part) for part in ("stronger", "undecided")] == [rows[:1], ()]
    runner.write_page(file)
    assert "| two |" in file.with_suffix(".md").read_text().replace("`", "")


def test_a_file_that_is_no_board(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"rows": [1]}')
    with pytest.raises(ValueError, match=r"x.json: expected the JSON of a scoreboard"):
        read_board(tmp_path / "x.json")
