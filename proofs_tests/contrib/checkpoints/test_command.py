"""`specref build-model`: what it writes, prints and refuses."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from proofs_tests.helpers.command import assert_fits
from specref.adapters.needs import NotInstalledError
from specref.arrays import Floats
from specref.cli import main
from specref.contrib.checkpoints.law import load_laws
from specref.contrib.engines.checkpoints import READERS
from specref.vocabulary import Tokens

pytest.importorskip("safetensors", reason="not_run (safetensors is not installed)")


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["build-model", *map(str, words)])


def read_by(monkeypatch: pytest.MonkeyPatch, off: float) -> None:
    """Let one engine compute the law of the folder, but for one probability; others are absent."""

    def load(folder: Path):
        (law,) = load_laws(str(folder / "law.json")).values()

        def probabilities(ids: Tokens) -> Floats:
            rows = [law.model.next_token(ids[1:known]) for known in range(1, len(ids) + 1)]
            table = np.array([[*row, 0] for row in rows], dtype=np.float64)
            table[3, :2] += off, -off
            return table

        return probabilities

    def absent(folder: Path):
        raise NotInstalledError("it is not installed: pip install it")

    readers = {
        name: reader._replace(load=load if name == "transformers" else absent)
        for name, reader in READERS.items()
    }
    monkeypatch.setattr("specref.contrib.checkpoints.command.READERS", readers)


def test_a_pair_is_written_and_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_by(monkeypatch, 0)
    done = run("--law", "lookback", "--out", tmp_path / "pair", "--verify", "--json", "-")
    assert done.exit_code == 0, done.output
    assert_fits("build-model", done.stdout)
    record = json.loads(done.stdout)
    assert record["folders"] == {x: str(tmp_path / "pair" / x) for x in ("target", "drafter")}
    statuses = {
        (row["checkpoint"], row["engine"].split()[0]): row["status"] for row in record["verified"]
    }
    assert statuses == {
        (role, engine): status
        for role in ("target", "drafter")
        for engine, status in (("transformers", "passed"), ("mlx-lm", "not_run"))
    }
    assert record["verified"][0]["fidelity"]["rows"] == 5


def test_a_law_that_is_missed_is_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_by(monkeypatch, 2e-6)
    done = run("--law", "far", "--out", tmp_path / "pair", "--verify")
    assert done.exit_code == 1
    assert "is off by 2e-06 at token" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_nothing_verified_is_exit_code_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(folder: Path):
        raise RuntimeError("no such layer")

    readers = {"transformers": READERS["transformers"]._replace(load=broken)}
    monkeypatch.setattr("specref.contrib.checkpoints.command.READERS", readers)
    done = run("--law", "far", "--out", tmp_path / "pair", "--verify")
    assert done.exit_code == 2
    assert "transformers: raised RuntimeError: no such layer" in done.stdout
    assert "passed" not in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--law", "none"], "error: law = 'none': expected one of order-1"),
        (["--law", "far", "--format", "h5"], "error: formats[0] = 'h5': expected one of hf"),
        (["--law", "far", "--architecture", "rwkv"], "error: architecture = 'rwkv'"),
        (["--law", "far", "--out", "."], "error: . exists: expected a folder that does not"),
    ],
)
def test_misuse_is_one_line_and_exit_code_2(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("--out", "pair", *words)
    assert done.exit_code == 2
    assert done.stderr.startswith(message)
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_bad_law_names_its_row(tmp_path: Path) -> None:
    law = tmp_path / "law.json"
    law.write_text('{"tokens": ["a"], "initial": [1], "rows": {"a": [0.9]}}')
    done = run("--law", law, "--out", tmp_path / "one")
    assert (done.exit_code, done.stderr) == (
        2,
        "error: law.rows['a'] sums to 0.9: expected 1 within 1e-09\n",
    )
