"""Programs as implementations: what is sent, what is read, each fault by name.

Seeds are fixed, and no check here is statistical.
"""

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proofs_tests.helpers.programs import BY_COINS, ask, built, python, toy
from specref import check
from specref.conformance.checks import CHECKS
from specref.conformance.options import CheckOptions
from specref.conformance.report import Report
from specref.contracts.batch import draw_batch_coins
from specref.contracts.capabilities import Capabilities, capabilities_of
from specref.contracts.fixtures import CHAIN_FIXTURES
from specref.contracts.signature import accepted_keywords
from specref.contracts.verify import sample_batch
from specref.examples.harnesses import sampler
from specref.probing import probe_verify
from specref.process import CannotStartError, Process, SamplerError
from specref.process.messages import batch_fields, coin_fields, request
from specref.pytest_plugin.parametrize import Judged

pytestmark = pytest.mark.usefixtures("undiagnosed")

SHORT = 0.3
FLOATS = [0.1, 5e-324, 1 - 2**-53, 1e-37, 0.0, -0.0, 2**-1074, 1 / 3, float(np.float32(0.1))]


def judged(command: str, *only: str, timeout: float = 60.0) -> Report:
    with Process(command, timeout=timeout) as program:
        return check(program, only=only, timeout=None)


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


@pytest.mark.parametrize("name", CHAIN_FIXTURES)
@pytest.mark.parametrize("one_hot", [False, True])
def test_rows_are_their_cases(name: str, one_hot: bool) -> None:
    batch = sample_batch(CHAIN_FIXTURES[name], 200, np.random.default_rng(1))
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
    batch = sample_batch(CHAIN_FIXTURES["deep"], 8, np.random.default_rng(1))
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
        subject = Judged(program, (), CheckOptions(name=program.__name__))
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
    batch = sample_batch(CHAIN_FIXTURES["wide"], 2, np.random.default_rng(1))
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


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("name", ["target_probs", "draft_probs", "draft_tokens", "lens"])
@pytest.mark.parametrize("kind", ["list", "tensor"])
def test_arrays_are_those_of_numpy(tmp_path: Path, name: str, kind: str) -> None:
    batch = sample_batch(CHAIN_FIXTURES["wide"], 2, np.random.default_rng(1))
    given = {**batch.arguments, "lens": batch.lens}
    if kind == "list":
        given[name] = list(given[name])
    else:
        torch = pytest.importorskip("torch", reason="not_run (torch is not installed)")
        given[name] = torch.tensor(given[name])
    refused = pytest.raises(TypeError, match=f"{name} is a (list|Tensor): expected an array of Nu")
    with Process(toy(tmp_path)) as program, refused:
        program(**given, rng=np.random.default_rng(1))


def test_lens_are_those_that_are_given(tmp_path: Path) -> None:
    command = toy(tmp_path, at_verify="said['error'] = asked['lens']")
    p, drafts = np.ones((1, 3, 1)), np.zeros((1, 2), dtype=np.int64)
    for lens, sent in ((None, "[2]"), (np.array([1]), "[1]")):
        with Process(command) as program, pytest.raises(SamplerError) as caught:
            program(p, None, drafts, rng=np.random.default_rng(1), lens=lens)
        assert str(caught.value) == sent


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_timeout_is_a_time(tmp_path: Path, timeout: float) -> None:
    with pytest.raises(ValueError, match=f"timeout = {timeout}: expected a positive number"):
        Process(toy(tmp_path), timeout=timeout)


def test_timeout_may_have_no_end_and_an_error_of_null_is_none(tmp_path: Path) -> None:
    command = toy(tmp_path, before="ABOUT['error'] = None")
    with Process(command, timeout=float("inf")) as program:
        ask(program)


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
    "said['error'] = '\x1b[2Jno\\nGPU'": "answered with the error: \\x1b[2Jno\nGPU",
    "print('[' * 100_000)": "answered '[[[[[[",
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


GREEDY = """
def verify(p, q, drafts, rng):
    own = [row.index(max(row)) for row in p]
    same = (i for i, x in enumerate(drafts) if x != own[i])
    return own[: next(same, len(drafts)) + 1]


ABOUT = """


@pytest.mark.deep
def test_a_program_may_decode_greedily(tmp_path: Path) -> None:
    text = Path(sampler.__file__).read_text().replace('"rule": "standard"', '"greedy": True')
    file = tmp_path / "greedy.py"
    # Hundreds of shapes, which a program is asked one after the other.
    left_out = "boundary/greedy-situations", "strata"
    asked = [one.id for one in CHECKS if not one.id.startswith(left_out)]
    for code, exit_code in ((text.replace("ABOUT = ", GREEDY, 1), 0), (text, 1)):
        file.write_text(code)
        with Process(f"{python()} {shlex.quote(str(file))}") as program:
            report = check(program, only=asked, timeout=None, blocking=False)
        assert report.exit_code == exit_code, report
        assert "boundary/greedy-blocks" in {r.id for r in report.failures} or not exit_code


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("claim", [{"inputs": "logits"}, {"arrays": "torch"}, {"in_place": True}])
def test_claims_about_arrays_are_not_those_of_a_program(tmp_path: Path, claim: Any) -> None:
    with Process(toy(tmp_path)) as program:
        with pytest.raises(TypeError, match=f"claim '{next(iter(claim))}' is none of Process"):
            check(program, only=["smoke/answers"], timeout=None, **claim)
        # What a saved case repeats is no claim.
        check(program, only=["smoke/answers"], timeout=None, inputs="probs", in_place=False)


@pytest.mark.deep(one_in=4)
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
        Process(toy(tmp_path, at_start="time.sleep(600)"), timeout=SHORT)


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
    "said['tokens'][6] = True": "tokens[6] is True: expected",
    "said['tokens'][7] = -2**53 - 1": f"tokens[7] is {-(2**53) - 1}: expected",
    "said['tokens'][7] = 2**70": f"tokens[7] is {2**70}: expected",
    "said['tokens'][7] = -2**53": f"tokens[2, 1] = {-(2**53)}: expected 0 <= id < 5, or -1",
    "said['counts'] = [1]": "counts has 1 values: expected a flat array of 24 integers (one for",
    "said['counts'][2] = 2": "counts[2] = 2 but tokens[2] = [0, -1, -1]",
    "said['tokens'][0] = 99": "tokens[0, 0] = 99: expected 0 <= id < 5, or -1",
}


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize("fault", WRONG_ANSWERS)
def test_a_wrong_answer_is_a_broken_contract_with_a_name(tmp_path: Path, fault: str) -> None:
    (result,) = judged(toy(tmp_path, at_verify=fault), "smoke/answers").results
    optional = "0 in asked['lens']" in fault  # then it is judged without such rows
    assert result.status == ("passed" if optional else "failed")
    assert bool(result.not_tried) == optional
    assert WRONG_ANSWERS[fault] in result.message
    assert "\n" not in result.message


BUG = {"if (sum > 0) weights": 'if (sum > 0 && !std::getenv("BUG")) weights'}


@pytest.fixture(scope="module")
def by_coins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The template in C++, taking coins; with BUG in its environment the residual is p."""
    folder = tmp_path_factory.mktemp("coins")
    assert built("cpp", folder, BY_COINS | BUG) == "./sampler"
    return folder / "sampler"


P, Q = np.array([[0.25, 0.75], [0.5, 0.5]]), np.array([[0.5, 0.5]])


@pytest.mark.parametrize(
    ("bug", "status", "residual"),
    [("", "passed", {(1,): 0.5}), ("env BUG=1 ", "failed", {(0,): 0.125, (1,): 0.375})],
)
def test_a_program_that_takes_coins_is_replayed_and_probed(
    by_coins: Path, bug: str, status: str, residual: dict[tuple[int, ...], float]
) -> None:
    with Process(f"{bug}{by_coins}") as program:
        report = check(program, only=["replay"], timeout=None, blocking=False)
        law = probe_verify(program, P, Q, (0,)).distribution
    found = {result.id: result.status for result in report.results}
    assert found["replay/coin-by-coin"] == found["replay/edge-coins"] == status
    assert law == pytest.approx({(0, 0): 0.25, (0, 1): 0.25, **residual}, abs=1e-9)


UP_TO = "said['tokens'] = [int(asked['final'][0] {} 0.25)]"
ONE = np.array([[0.75, 0.25]])


def test_a_program_that_takes_a_seed_besides_coins_is_probed(tmp_path: Path) -> None:
    both = "said['takes'] = ['seed', 'coins']"
    with Process(toy(tmp_path, at_start=both, at_verify=UP_TO.format("<"))) as program:
        law = probe_verify(program, ONE, None, ()).distribution
    assert law == pytest.approx({(0,): 0.75, (1,): 0.25}, abs=1e-9)


EDGES = ("boundary/zero-coin", "boundary/empty-residual")


@pytest.mark.parametrize(
    ("takes", "why"),
    [
        (["seed"], "draws its own numbers, from a seed"),
        ([], "nothing that it draws is intercepted"),
    ],
)
def test_a_program_that_draws_its_own_numbers_cannot_be_probed(
    tmp_path: Path, takes: list[str], why: str
) -> None:
    report = judged(toy(tmp_path, at_start=f"said['takes'] = {takes}"), *EDGES)
    assert {result.status for result in report.results} == {"not_applicable"}
    for result in report.results:
        assert "cannot be given a random number of 0: " in result.message
        assert why in result.message


LETS_P_0_PASS = "tokens = [0, 1] if asked['accept'][0] <= 0 else [1, -1]"


def test_a_coin_of_0_that_passes_is_seen_under_the_name_of_the_command(tmp_path: Path) -> None:
    at_verify = f"{LETS_P_0_PASS}; said.update(tokens=tokens, counts=[2 - tokens.count(-1)])"
    command = toy(tmp_path, at_start="said['takes'] = ['coins']", at_verify=at_verify)
    (result,) = judged(command, "boundary/zero-coin").results
    assert (result.status, result.finding) == ("passed", "edge")  # a chance of 2^-53
    assert f"at Process({command!r}) = 0.0" in result.message
    assert "token 0 at position 0 has target probability 0" in result.message


def test_the_faults_of_this_file_are_faults(tmp_path: Path) -> None:
    (result,) = judged(toy(tmp_path), "smoke/answers").results
    assert result.status == "passed"
