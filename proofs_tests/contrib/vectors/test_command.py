"""The command `specref vectors`: exit codes, what it names, what it leaves alone."""

import json
import shlex
import shutil
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from proofs_tests.helpers.command import assert_fits
from proofs_tests.helpers.vectors.files import FILES, FOLDER
from specref.cli import main
from specref.contrib.vectors import publishing
from specref.contrib.vectors.building import PUBLISHED

SAMPLERS = textwrap.dedent(
    """
    import time
    import numpy as np
    from specref.adapters.reference import verify as reference

    def verify(target_probs, draft_probs, draft_tokens, *, coins):
        print("hello from the sampler")
        return reference(target_probs, draft_probs, draft_tokens, rng=None, coins=coins)

    def from_p(target_probs, draft_probs, draft_tokens, *, coins):
        q = None if draft_probs is None else draft_probs * (draft_probs > 0) + 1e-12
        tokens, counts = verify(target_probs, q, draft_tokens, coins=coins)
        return tokens[:, ::-1].copy(), counts

    def hangs(target_probs, draft_probs, draft_tokens, *, coins):
        time.sleep(60)

    def with_rng(target_probs, draft_probs, draft_tokens, *, rng):
        return reference(target_probs, draft_probs, draft_tokens, rng=rng)

    def residual_is_p(target_probs, draft_probs, draft_tokens, *, rng):
        return drawn(target_probs, draft_probs, draft_tokens, rng.random, 0)

    def with_torch(target_probs, draft_probs, draft_tokens):
        import torch
        uniform = lambda: float(torch.rand((), dtype=torch.float64))
        return drawn(target_probs, draft_probs, draft_tokens, uniform, 1)

    def from_normal(target_probs, draft_probs, draft_tokens, *, rng):
        return drawn(target_probs, draft_probs, draft_tokens, lambda: rng.normal() % 1, 1)

    def from_seed(target_probs, draft_probs, draft_tokens, *, rng):
        state = [int(rng.integers(2**31))]

        def uniform():
            state[0] = (1103515245 * state[0] + 12345) % 2**31
            return state[0] / 2**31

        return drawn(target_probs, draft_probs, draft_tokens, uniform, 1)

    def drawn(target_probs, draft_probs, draft_tokens, uniform, less):
        (p,), (drafts,) = target_probs, draft_tokens
        q = np.eye(p.shape[1])[drafts] if draft_probs is None else draft_probs[0]
        kept, given = 0, int((drafts >= 0).sum())
        while kept < given and uniform() * q[kept, drafts[kept]] < p[kept, drafts[kept]]:
            kept += 1
        weights = p[kept] if kept == given else np.maximum(p[kept] - less * q[kept], 0)
        ends = np.cumsum(weights)
        last = int((ends <= uniform() * ends[-1]).sum())
        tokens = np.full((1, len(drafts) + 1), -1)
        tokens[0, : kept + 1] = [*drafts[:kept], last]
        return tokens, np.array([kept + 1])
    """
)


PROGRAM = textwrap.dedent(
    """
    import json, sys

    ABOUT = {"name": "bonus only", "language": "Python", "contract": "verify", "takes": ["coins"]}
    for line in sys.stdin:
        asked = json.loads(line)
        said = {"protocol": 1, "id": asked["id"]}
        if asked["request"] == "stop":
            break
        if asked["request"] == "start":
            said |= ABOUT
        else:
            size, reached, token = asked["vocabulary"], 0.0, -1
            while reached <= asked["final"][0]:
                token += 1
                reached += asked["target_probs"][token]
            said |= {"tokens": [token] + [-1] * asked["lookahead"], "counts": [1]}
        print(json.dumps(said), flush=True)
    """
)


@pytest.fixture
def samplers(tmp_path: Path) -> str:
    path = tmp_path / "given.py"
    path.write_text(SAMPLERS)
    return str(path)


@pytest.fixture
def prebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "build_file", FILES.__getitem__)


def vectors(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["vectors", *arguments])


@pytest.mark.usefixtures("prebuilt")
def test_a_changed_file_is_named(tmp_path: Path) -> None:
    unchanged = vectors("--check")
    assert unchanged.exit_code == 0
    assert "every file is what --write would put there" in unchanged.output
    copy = shutil.copytree(FOLDER, tmp_path / "v1")
    path = copy / "standard.json"
    path.write_text(path.read_text().replace('"accepted": 1', '"accepted": 0', 1))
    result = vectors("--check", str(copy))
    assert result.exit_code == 1
    assert result.output == "standard.json differs, first at standard/interior/001\n"
    refused = vectors("--run", "reference-verify", str(copy))
    assert refused.exit_code == 2
    assert "standard/interior/001 is not the case that was published" in refused.stderr


def test_written_files_check(tmp_path: Path) -> None:
    result = vectors("--write", str(tmp_path / "new" / "v1"))
    assert result.exit_code == 0
    assert "wrote 8 files" in result.output
    written = {path.name: path.read_bytes() for path in (tmp_path / "new" / "v1").iterdir()}
    assert written == {path.name: path.read_bytes() for path in FOLDER.iterdir()}


@pytest.mark.usefixtures("prebuilt")
def test_a_refused_write_changes_nothing(tmp_path: Path) -> None:
    copy = shutil.copytree(FOLDER, tmp_path / "v1")
    (copy / "union.json").write_text("mine")
    with (copy / "published.txt").open("a") as published:
        published.write("union/gone/001 0123456789abcdef\n")
    result = vectors("--write", str(copy))
    assert result.exit_code == 2
    assert "union/gone/001 was published, and must not go" in result.stderr
    assert (copy / "union.json").read_text() == "mine"


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("target", ["torch-backend", "torch-backend-block", "reference-verify"])
def test_our_own_pass(target: str) -> None:
    if target != "reference-verify":
        pytest.importorskip("torch", reason="not_run (no torch)")
    result = vectors("--run", target)
    assert result.exit_code == 0, result.output
    assert "passed" in result.output
    assert "failed" not in result.output


def test_a_sampler_that_is_wrong_fails_by_name(samplers: str) -> None:
    result = vectors(
        "--run", f"{samplers}:from_p", "--last", "race", "--only", "standard/interior"
    )
    assert result.exit_code == 1
    assert "standard/interior/001" in result.output
    assert "BonusToken" in result.output


def test_a_program_in_any_language_is_run(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    target = shlex.join([sys.executable, "-S", "-E", str(path)])
    only = vectors("--run", f"process:{target}", "--only", "standard/no-")
    assert only.exit_code == 0, only.output
    assert "5 passed" in only.output
    assert vectors("--run", f"process:{target}", "--only", "standard/interior").exit_code == 1


def test_another_convention_is_named(samplers: str) -> None:
    result = vectors("--run", f"{samplers}:verify", "--only", "standard/interior")
    assert result.exit_code == 1
    assert "all would pass with --last race" in result.output
    again = vectors("--run", f"{samplers}:verify", "--last", "race")
    assert again.exit_code == 0


def test_json_is_nothing_but_json(samplers: str) -> None:
    options = ("--run", f"{samplers}:verify", "--last", "race", "--policy", "closed-cdf")
    result = vectors(*options, "--json", "-")
    assert_fits("vectors", result.stdout)
    record = json.loads(result.stdout)
    assert record["counts"] == {"passed": len(record["results"])}
    assert (record["algorithm"], record["last"]) == ("standard", "race")
    assert record["policies"] == ["closed-cdf"]
    first = record["results"][0]
    assert first["id"] == "standard/interior/001"
    assert first["expected"] == first["got"]


def test_a_call_that_does_not_return_ends_the_run(samplers: str) -> None:
    only = ("--timeout", "0.2", "--only", "standard/interior")
    result = vectors("--run", f"{samplers}:hangs", *only)
    assert result.exit_code == 1
    assert "1 failed, 4 not_run" in result.output
    assert "did not return within 0.2 s" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "expected one of --write, --check and --run"),
        (("--check", "--run", "reference-verify"), "expected one of --write, --check and --run"),
        (("--check", "nowhere"), "no vectors at nowhere"),
        (("--run", "reference-verify", "nowhere"), "no vectors at nowhere/standard.json"),
        (("--run", "reference-verify", "--claim", "rule=slem"), "vectors of verification are"),
        (("--check", "--only", "standard"), "--only goes with --run only"),
        (("--check", "--algorithm", "block"), "--rule goes with --run only"),
        (("--write", "here", "--timeout", "60"), "--timeout goes with --run only"),
        (("--check", "--policy", "closed-cdf"), "--policy goes with --run only"),
        (("--run", "reference-verify", "--timeout", "0"), "--timeout 0: expected a number"),
        (("--run", "reference-verify", "--timeout", "nan"), "--timeout nan: expected a number"),
        (("--write", "here", "there"), "--write names the folder itself"),
    ],
)
def test_misuse_is_one_line(arguments: tuple[str, ...], message: str) -> None:
    result = vectors(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_nothing_that_applies_is_no_pass() -> None:
    result = vectors("--run", "reference-verify", "--only", "standard/step")
    assert result.exit_code == 2
    assert "no case was run" in result.output


@pytest.mark.deep
@pytest.mark.parametrize("target", ["with_rng", "with_torch"])
def test_without_coins_laws_are_compared(samplers: str, target: str) -> None:
    """Every different question is asked, and cases that differ in coins alone are counted."""
    only = ""
    if target == "with_torch":
        pytest.importorskip("torch", reason="not_run (no torch)")
        only = "standard/interior"
    result = vectors("--run", f"{samplers}:{target}", "--only", only, "--json", "-")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    every = json.loads((FOLDER / "standard.json").read_text())["cases"]
    asked = [
        (str(case["p"]), str(case["q"]), str(case["draft_tokens"]))
        for case in every
        if case["level"] == "verify" and case["id"].startswith(only)
    ]
    different = len(set(asked))
    assert record["last"] is None
    assert record["counts"] == {"passed": different, "not_applicable": len(asked) - different}
    assert different > (0 if only else 20)


def test_a_wrong_law_fails_by_name(samplers: str) -> None:
    result = vectors("--run", f"{samplers}:residual_is_p", "--only", "standard/interior")
    assert result.exit_code == 1
    assert "standard/interior/001" in result.output
    assert "from the distribution of the rule" in " ".join(result.output.split())
    options = ("--algorithm", "block", "--only", "block/joint-ratio")
    block = vectors("--run", f"{samplers}:with_rng", *options)
    assert block.exit_code == 1


def test_a_law_that_cannot_be_probed_is_no_pass(samplers: str) -> None:
    for target, only, why in (
        ("from_normal", "interior/001", "Generator.normal"),
        ("from_seed", "interior/001", "cannot be probed"),
        ("from_seed", "certain-target/001", "what it draws from its seed is not intercepted"),
    ):
        result = vectors("--run", f"{samplers}:{target}", "--only", f"standard/{only}")
        assert result.exit_code == 2
        assert "passed" not in result.output
        assert why in " ".join(result.output.split())


@pytest.mark.parametrize("options", [("--last", "race"), ("--policy", "closed-cdf")])
def test_conventions_of_coins_are_refused_without_coins(
    samplers: str, options: tuple[str, ...]
) -> None:
    result = vectors("--run", f"{samplers}:with_rng", *options)
    assert result.exit_code == 2
    assert "--last and --policy are for samplers that take random numbers" in result.stderr


@pytest.mark.deep
def test_workers_give_the_same_record(samplers: str, tmp_path: Path) -> None:
    """Processes that load a sampler by its name, which prints; and files that are built."""
    files = [tmp_path / f"{workers}.json" for workers in "12"]
    options = ("--run", f"{samplers}:from_p", "--last", "race")
    for workers, file in zip("12", files, strict=True):
        assert vectors(*options, "--workers", workers, "--json", str(file)).exit_code == 1
    assert files[0].read_bytes() == files[1].read_bytes()


def test_files_are_built_by_an_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    monkeypatch.setattr(publishing, "build_file", lambda name: {"cases": built.append(name)})
    with ThreadPoolExecutor(1) as threads:
        assert publishing.build_files(threads) == publishing.build_files()
    assert built == [*PUBLISHED, *PUBLISHED]
