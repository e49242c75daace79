"""Programs as implementations: what is sent, what is read, each fault by name, nobody left behind.

Seeds are fixed, and no check here is statistical.
"""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from proofs_tests.programs import built, toy
from specref import check
from specref.conformance.batch import BrokenContractError
from specref.conformance.contract import Capabilities, accepted_keywords, capabilities_of
from specref.conformance.drawing import draw_batch_coins, sample_batch
from specref.conformance.fixtures import TEETH
from specref.conformance.parametrize import Subject
from specref.conformance.patience import HungError
from specref.conformance.probing import probe_verify
from specref.conformance.process import CannotStartError, EndedError, Process, SamplerError
from specref.conformance.process.messages import batch_fields, coin_fields, request
from specref.conformance.suite import Report

SHORT = 0.3
FLOATS = [0.1, 5e-324, 1 - 2**-53, 1e-37, 0.0, -0.0, 2**-1074, 1 / 3, float(np.float32(0.1))]


def ask(program: Process, seed: int = 1) -> object:
    batch = sample_batch(TEETH["wide"], 24, np.random.default_rng(seed))
    rng = np.random.default_rng(seed)
    return program(batch.target_probs, batch.draft_probs, batch.draft_tokens, rng=rng)


def judged(command: str, *only: str, patience: float = 60.0) -> Report:
    with Process(command, patience=patience) as program:
        return check(program, only=only, patience=None)


def test_a_request_is_one_ascii_line_of_exact_numbers() -> None:
    line = request(5, "verify", target_probs=FLOATS)
    assert line.isascii()
    assert b" " not in line
    assert line.index(b"\n") == len(line) - 1
    back = json.loads(line)["target_probs"]
    assert np.array(back).tobytes() == np.array(FLOATS).tobytes()


def test_what_is_no_number_is_not_sent() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        request(0, "verify", target_probs=[float("nan")])


@pytest.mark.parametrize("name", TEETH)
@pytest.mark.parametrize("one_hot", [False, True])
def test_rows_are_their_cases(name: str, one_hot: bool) -> None:
    batch = sample_batch(TEETH[name], 200, np.random.default_rng(1))
    q = None if one_hot else batch.draft_probs
    fields = batch_fields(batch.target_probs, q, batch.draft_tokens, batch.lens)
    k, v, case = fields["lookahead"], fields["vocabulary"], np.array(fields["case"])
    assert fields["cases"] == case.max() + 1 < fields["rows"] == 200
    assert case[0] == 0
    p = np.array(fields["target_probs"]).reshape(-1, k + 1, v)
    assert (p[case] == batch.target_probs).all()
    assert (np.array(fields["draft_tokens"]).reshape(-1, k)[case] == batch.draft_tokens).all()
    assert (np.array(fields["lens"])[case] == batch.lens).all()
    if one_hot:
        assert fields["draft_probs"] is None
    else:
        q = np.array(fields["draft_probs"]).reshape(-1, k, v)
        assert (q[case] == batch.draft_probs).all()


def test_laws_that_differ_in_one_bit_are_two_cases() -> None:
    p = np.array([[[0.25, 0.75]], [[0.25, np.nextafter(0.75, 1)]]])
    none = np.zeros((2, 0), dtype=np.int64)
    assert batch_fields(p, None, none, np.zeros(2, dtype=np.int64))["cases"] == 2


def test_coins_are_those_of_each_row() -> None:
    batch = sample_batch(TEETH["deep"], 8, np.random.default_rng(1))
    coins = draw_batch_coins(batch, np.random.default_rng(2))
    fields = json.loads(json.dumps(coin_fields(coins)))
    assert (np.array(fields["accept"]).reshape(8, -1) == coins.accept).all()
    assert (np.array(fields["race"]).reshape(8, -1) == coins.race).all()
    assert (np.array(fields["final"]) == coins.final).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_floats_arrive_as_they_are(tmp_path: Path, dtype: str) -> None:
    hexes = "said['error'] = ' '.join(map(float.hex, asked['target_probs']))"
    p, none = np.array([[FLOATS]], dtype=dtype), np.zeros((1, 0), dtype=np.int64)
    command = toy(tmp_path, at_verify=hexes)
    with Process(command) as program, pytest.raises(SamplerError) as caught:
        program(p, None, none, rng=np.random.default_rng(1))
    assert str(caught.value).split() == [float(value).hex() for value in p.ravel()]


def test_a_failing_test_of_it_can_be_repeated(tmp_path: Path) -> None:
    with Process(toy(tmp_path)) as program:
        subject = Subject(program, "verify", program.__name__, (), {}, {})
        call = subject.call("smoke/answers", 0, "quick")
    assert f"print(specref.check({program.__name__}, contract='verify'" in call
    assert "from " not in call


@pytest.mark.parametrize(
    ("takes", "keywords"),
    [
        ([], {"lens"}),
        (["seed"], {"lens", "rng"}),
        (["coins"], {"lens", "coins"}),
        (["coins", "seed", "seed"], {"lens", "coins", "rng"}),
    ],
)
def test_it_has_the_parameters_of_what_it_takes(
    tmp_path: Path, takes: list[str], keywords: set[str]
) -> None:
    sent = "said['error'] = ' '.join(name for name in ('seed', 'accept', 'race') if name in asked)"
    command = toy(tmp_path, at_start=f"said['takes'] = {takes}", at_verify=sent)
    batch = sample_batch(TEETH["wide"], 2, np.random.default_rng(1))
    given = {
        "rng": np.random.default_rng(1),
        "coins": draw_batch_coins(batch, np.random.default_rng()),
    }
    with Process(command) as program:
        assert accepted_keywords(program) == keywords
        with pytest.raises(SamplerError) as caught:
            program(batch.target_probs, batch.draft_probs, batch.draft_tokens, **given)
    fields = {"rng": "seed", "coins": "accept race"}
    assert str(caught.value) == " ".join(
        fields[one] for one in ("rng", "coins") if one in keywords
    )


def test_seeds_follow_the_generator_and_are_integers_of_53_bits(tmp_path: Path) -> None:
    with Process(toy(tmp_path, at_verify="said['error'] = asked['seed']")) as program:
        seeds = []
        for seed in (1, 1, 2):
            with pytest.raises(SamplerError) as caught:
                ask(program, seed)
            seeds.append(int(str(caught.value)))
    assert seeds[0] == seeds[1] != seeds[2]
    assert all(2**32 < seed < 2**53 for seed in seeds)


def test_randomness_that_it_takes_must_be_given(tmp_path: Path) -> None:
    with Process(toy(tmp_path)) as program, pytest.raises(TypeError, match="rng is missing"):
        program(np.ones((1, 1, 1)), None, np.zeros((1, 0), dtype=np.int64))


def test_it_claims_what_it_declares(tmp_path: Path) -> None:
    claims = {"ragged": False, "rule": "block", "batch": 7, "dtype": "float32"}
    at_start = f"said.update(claims={claims}, version='0.2')"
    with Process(toy(tmp_path, at_start=at_start)) as program:
        assert capabilities_of(program) == Capabilities(**claims)
        assert str(program.declared) == "toy 0.2 (Python)"


WRONG_STARTS = {
    "sys.exit('no model')": "ended with exit code 1; stderr ends: no model",
    "sys.exit(0)": "ended with exit code 0: expected it to answer until `stop`",
    "print('loading')": "answered 'loading': expected a JSON object on one line",
    "print()": "answered '': expected a JSON object",
    "print([1])": "answered '[1]': expected a JSON object",
    "said['protocol'] = 2": "answered with protocol 2: expected 1",
    "del said['protocol']": "answered with protocol None: expected 1",
    "said['id'] = 7": "answered with id 7: expected 0",
    "said['id'] = False": "answered with id False: expected 0",
    "said['error'] = 'no GPU'": "answered with the error: no GPU",
    "del said['name']": "name is None: expected a string",
    "said['language'] = 3": "language is 3: expected a string",
    "said['contract'] = 'tree'": "contract is 'tree': expected 'verify'",
    "said['takes'] = ['dice']": "takes is ['dice']: expected a list of 'coins' and 'seed'",
    "said['takes'] = 'seed'": "takes is 'seed': expected a list",
    "said['claims'] = {'raged': True}": "claim 'raged' is unknown: expected one of rule",
    "said['claims'] = {'device': 'cuda'}": "claim 'device' is unknown",
    "said['claims'] = {'batch': 0}": "claims: batch = 0: expected an integer >= 1",
    "said['claims'] = {'ragged': 1}": "claims: ragged = 1: expected True or False",
    "said['claims'] = []": "claims is []: expected an object",
}


@pytest.mark.parametrize("fault", WRONG_STARTS)
def test_a_program_that_does_not_start_cannot_be_judged(tmp_path: Path, fault: str) -> None:
    with pytest.raises(CannotStartError) as caught:
        Process(toy(tmp_path, at_start=fault))
    assert "asked to start" in str(caught.value)
    assert WRONG_STARTS[fault] in str(caught.value)


def test_a_start_that_is_not_answered_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(
        CannotStartError, match=r"did not answer within 0\.3 s \(is stdout flushed"
    ):
        Process(toy(tmp_path, at_start="time.sleep(600)"), patience=SHORT)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("./no-such-program", "'./no-such-program' cannot be started: No such file"),
        ("no-such-program --flag", "'no-such-program' cannot be started: No such file"),
        ("./text", "'./text' cannot be started: Permission denied"),
        ("./empty", "'./empty' cannot be started: Exec format error"),
        ("", "expected a program"),
        ("'open", "No closing quotation"),
    ],
)
def test_what_is_no_program_is_named(tmp_path: Path, command: str, message: str) -> None:
    (tmp_path / "text").write_text("hello")
    (tmp_path / "empty").write_text("hello")
    (tmp_path / "empty").chmod(0o755)
    with pytest.raises((CannotStartError, ValueError), match=message):
        Process(command, tmp_path)


WRONG_ANSWERS = {
    "said = {'protocol': 1, 'id': asked['id'], 'error': 'out of memory'}": (
        "raised SamplerError at row 0: out of memory"
    ),
    "if 0 in asked['lens']: said['error'] = 'no drafts'": (
        "raised SamplerError at row 3: no drafts"
    ),
    "os.kill(os.getpid(), signal.SIGSEGV)": "raised EndedError at row 0: ended by SIGSEGV",
    "if 0 in asked['lens']: os.abort()": "raised EndedError at row 3: ended by SIGABRT",
    "raise RuntimeError('boom')": "ended with exit code 1; stderr ends: ",
    "sys.exit(0)": "ended with exit code 0: expected it to answer until",
    "os.close(1); time.sleep(600)": "closed its stdin or stdout",
    "said = 'done'": "answered '\"done\"': expected a JSON object on one line",
    "print('row 1 done')": "answered 'row 1 done': expected a JSON object",
    "said['protocol'] = '1'": "answered with protocol '1': expected 1",
    "said['id'] -= 1": "answered with id 0: expected 1",
    "del said['tokens']": "answered with tokens None: expected a flat array of 72 integers",
    "said['tokens'].pop()": "tokens has 71 values: expected a flat array of 72 integers (24 rows",
    "said['tokens'] = [[0, -1, -1]] * 24": "tokens has 24 values: expected a flat array of 72",
    "said['tokens'][3] = [0]": "tokens[3] is [0]: expected a flat array of 72 integers",
    "said['tokens'][4] = 0.0": "tokens[4] is 0.0: expected",
    "said['tokens'][5] = float('nan')": "tokens[5] is nan: expected",
    "said['tokens'][6] = True": "tokens[6] is True: expected",
    "said['tokens'][7] = 2**70": f"tokens[7] is {2**70}: expected",
    "said['counts'] = [1]": "counts has 1 values: expected a flat array of 24 integers (one for",
    "said['counts'][2] = 2": "counts[2] = 2 but tokens[2] = [0, -1, -1]",
    "said['tokens'][0] = 99": "tokens[0, 0] = 99: expected 0 <= id < 5, or -1",
}


@pytest.mark.parametrize("fault", WRONG_ANSWERS)
def test_a_wrong_answer_is_a_broken_contract_with_a_name(tmp_path: Path, fault: str) -> None:
    (result,) = judged(toy(tmp_path, at_verify=fault), "smoke/answers").results
    assert result.status == "failed"
    assert WRONG_ANSWERS[fault] in result.message
    assert "\n" not in result.message


def test_the_last_lines_of_stderr_come_with_a_crash(tmp_path: Path) -> None:
    command = toy(tmp_path, at_verify="raise RuntimeError('boom')")
    with Process(command) as program, pytest.raises(EndedError, match=r"RuntimeError: boom$"):
        ask(program)


def test_an_answer_too_many_is_noticed(tmp_path: Path) -> None:
    too_many = "os.write(1, (json.dumps(said) + '\\n').encode() * (asked['id'] > 0))"
    with Process(toy(tmp_path, after=too_many)) as program:
        ask(program)
        with pytest.raises(
            BrokenContractError, match=r"before it was asked|with id 1: expected 2"
        ):
            ask(program)


def test_a_line_without_end_is_given_up(tmp_path: Path) -> None:
    endless = "while True: os.write(1, b'x' * 2**20)"
    more = pytest.raises(BrokenContractError, match="more than 64 MiB for one answer")
    with Process(toy(tmp_path, at_verify=endless)) as program, more:
        ask(program)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("time.sleep(600)", r"within 0\.3 s \(is stdout flushed after each line\?\)"),
        ("os.write(1, b'{}'); time.sleep(600)", r"it wrote '{}' without an end of line"),
        ("sys.stderr.write('busy'); sys.stderr.flush(); time.sleep(600)", "stderr ends: busy"),
    ],
)
def test_who_hangs_once_is_not_asked_again(tmp_path: Path, fault: str, message: str) -> None:
    with Process(toy(tmp_path, at_verify=fault), patience=SHORT) as program:
        for _ in range(2):
            with pytest.raises(HungError, match=message):
                ask(program)


def test_after_a_hang_the_rest_is_blocked(tmp_path: Path) -> None:
    report = judged(toy(tmp_path, at_verify="time.sleep(600)"), "smoke", patience=SHORT)
    assert report.exit_code == 1
    assert {r.message for r in report.results if r.status == "not_run"} == {
        "blocked by smoke/answers"
    }


def test_a_program_that_does_not_read_is_not_waited_for(tmp_path: Path) -> None:
    laws = np.full((64, 1, 8_192), 1 / 8_192) * np.arange(1, 65)[:, None, None]
    command = toy(tmp_path, after="time.sleep(600)")
    with Process(command, patience=SHORT) as program, pytest.raises(HungError):
        program(laws, None, np.zeros((64, 0), dtype=np.int64), rng=np.random.default_rng(1))


def test_after_a_crash_it_is_started_anew(tmp_path: Path) -> None:
    crash = "if 0 in asked['lens']: os.abort()"
    with Process(toy(tmp_path, at_verify=crash)) as program:
        for _ in range(2):
            with pytest.raises(EndedError):
                ask(program)
            p = np.ones((1, 2, 1))
            rng = np.random.default_rng(1)
            assert program(p, p[:, :1], np.array([[0]]), rng=rng)[1] == [1]


LIVING = """
reach = os.open({fifo!r}, os.O_WRONLY)
subprocess.Popen(["sleep", "600"], pass_fds=[reach])
"""


def left_behind(fifo: int) -> bool:
    """Whether the program, or its child, still holds the other end."""
    ready, _, _ = select.select([fifo], [], [], 20)
    return not ready or os.read(fifo, 1) != b""


@pytest.fixture
def living(tmp_path: Path) -> tuple[str, int]:
    """A program with a child, and a pipe that ends with the last of them."""
    name = str(tmp_path / "reach")
    os.mkfifo(name)
    reader = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
    return toy(tmp_path, before=LIVING.format(fifo=name)), reader


def test_close_ends_it_and_its_children(living: tuple[str, int]) -> None:
    with Process(living[0]) as program:
        ask(program)
    assert not left_behind(living[1])
    program.close()


def test_so_does_collection(living: tuple[str, int]) -> None:
    program = Process(living[0])
    ask(program)
    del program
    assert not left_behind(living[1])


def test_so_does_the_end_of_the_interpreter(living: tuple[str, int]) -> None:
    start = "from specref.conformance.process import Process"
    code = f"{start}\nprogram = Process({living[0]!r})\nraise SystemExit(3)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 3
    assert not left_behind(living[1])


def test_ctrl_c_ends_it_and_leaves_a_report(tmp_path: Path) -> None:
    name = str(tmp_path / "reach")
    os.mkfifo(name)
    reader = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
    waits = f"os.write(os.open({name!r}, os.O_WRONLY), b'x'); time.sleep(600)"
    target = f"process:{toy(tmp_path, at_verify=waits)}"
    words = [sys.executable, "-m", "specref", "check", target, "--json", "-", "--only", "smoke"]
    specref = subprocess.Popen(words, stdout=subprocess.PIPE)
    select.select([reader], [], [], 60)
    assert os.read(reader, 1) == b"x"
    specref.send_signal(signal.SIGINT)
    record, _ = specref.communicate(timeout=60)
    assert specref.returncode == 130
    assert json.loads(record)["counts"]["not_run"] > 0
    assert not left_behind(reader)


BY_COINS = {
    "std::mt19937_64& random": "const double* accept, double final",
    "  auto uniform = [&] { return (random() >> 11) * 0x1p-53; };\n": "",
    "uniform() < p[": "accept[kept] < p[",
    "uniform() * std": "final * std",
    'std::mt19937_64 random(one("seed"));': (
        'const auto accept = numbers(line, "accept"), final = numbers(line, "final");'
        "size_t row = 0;"
    ),
    ", V, random);": ", V, &accept[row * K], final[row]);\n        ++row;",
    '"takes":["seed"]': '"takes":["coins"]',
    '"rule":"standard"': '"rule":"standard","recovery":"inverse"',
}
BUG = {"if (sum > 0) weights": 'if (sum > 0 && !std::getenv("BUG")) weights'}


@pytest.fixture(scope="module")
def by_coins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The template in C++, taking coins; with BUG in its environment the residual is p."""
    folder = tmp_path_factory.mktemp("coins")
    assert built("cpp", folder, BY_COINS | BUG) == "./sampler"
    return folder / "sampler"


P, Q = np.array([[0.25, 0.75], [0.5, 0.5]]), np.array([[0.5, 0.5]])


def test_a_program_that_takes_coins_is_replayed_and_probed(by_coins: Path) -> None:
    with Process(str(by_coins)) as program:
        report = check(program, only=["smoke/answers", "replay"], patience=None)
        law = probe_verify(program, P, Q, (0,)).distribution
    assert report.exit_code == 0, report
    status = {result.id: result.status for result in report.results}
    assert status["replay/coin-by-coin"] == status["replay/edge-coins"] == "passed"
    assert law == pytest.approx({(0, 0): 0.25, (0, 1): 0.25, (1,): 0.5}, abs=1e-9)


def test_a_bug_in_it_is_seen_by_both(by_coins: Path) -> None:
    with Process(f"env BUG=1 {by_coins}") as program:
        (result,) = check(program, only=["replay/coin-by-coin"], patience=None).results
        law = probe_verify(program, P, Q, (0,)).distribution
    assert result.status == "failed"
    residual = {(0,): 0.5 * 0.25, (1,): 0.5 * 0.75}
    assert law == pytest.approx({(0, 0): 0.25, (0, 1): 0.25, **residual}, abs=1e-9)


def test_a_program_that_takes_a_seed_cannot_be_probed(tmp_path: Path) -> None:
    report = judged(toy(tmp_path), "joint/probed")
    assert "draws its own numbers, from a seed" in report.results[0].message


def test_the_faults_of_this_file_are_faults(tmp_path: Path) -> None:
    (result,) = judged(toy(tmp_path), "smoke/answers").results
    assert result.status == "passed"
