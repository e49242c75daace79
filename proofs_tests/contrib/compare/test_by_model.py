"""One file of texts against the model itself, with tiny random weights.

alpha is 1e-9. Power: 400 tokens at temperature 0.7 of a model whose tokens have about 3 nats.
"""

import json

import numpy as np
import pytest

pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from click.testing import CliRunner

from proofs_tests.contrib.real_models.conftest import folders  # noqa: F401
from specref.cli import main
from specref.contrib.checkpoints import build, named_pair
from specref.contrib.compare import by_model
from specref.contrib.compare.by_model import judge_by_model
from specref.contrib.compare.records import read_texts
from specref.contrib.real_models.loading import load
from specref.contrib.real_models.settings import Setting

PROMPT = [5, 6, 7]


@pytest.fixture(scope="module")
def loaded(folders):  # noqa: F811
    return load(folders["target"], "model")


@torch.inference_mode()
def sampled(loaded, path, setting, texts=16, length=24, reported=None):
    """Texts by plain sampling at a setting; log-probabilities at another one."""
    rng = np.random.default_rng(1)
    with path.open("w") as file:
        for _ in range(texts):
            ids, logs = list(PROMPT), []
            for _ in range(length):
                row = loaded.model(torch.tensor([ids])).logits[0, -1].double().numpy()
                ids.append(int(rng.choice(len(row), p=setting.law(row))))
                if reported is not None:
                    logs.append(float(np.log(reported.law(row)[ids[-1]])))
            record = {"prompt_token_ids": PROMPT, "token_ids": ids[3:]}
            file.write(json.dumps(record | ({"logprobs": logs} if logs else {})) + "\n")
    return str(path)


def judged(loaded, path, setting):
    return judge_by_model(read_texts(path), loaded, setting, 1e-9, 0.01, lambda _: None)


def test_texts_of_the_model_pass_and_those_of_another_temperature_do_not(loaded, tmp_path):
    warm = Setting(0.7)
    path = sampled(loaded, tmp_path / "t.jsonl", warm, reported=Setting())
    found = judged(loaded, path, warm)
    assert not found.report.lossy
    assert abs(found.report.z) < 4
    assert found.stages == {"raw": found.reported, "processed": pytest.approx(0, abs=20)}
    assert found.finds[0] is not None
    other = judged(loaded, path, Setting())
    assert other.report.lossy
    assert other.report.temperature < 1


def test_texts_read_one_by_one_or_together_are_judged_alike(loaded, tmp_path, monkeypatch):
    path = sampled(loaded, tmp_path / "t.jsonl", Setting(), texts=5)
    lines = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    for number, one in enumerate(lines):  # of several lengths, after several prompts
        one |= {"prompt_id": number, "prompt_token_ids": PROMPT[: 1 + number % 3]}
        one["token_ids"] = one["token_ids"][: 5 + number]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)))
    together = judged(loaded, path, Setting())
    monkeypatch.setattr(by_model, "LOGITS", 1)
    alone = judged(loaded, path, Setting())
    assert (alone.texts, alone.report.tokens) == (5, 35)
    assert together.report.surprise == pytest.approx(alone.report.surprise, abs=1e-5)
    assert together.report.log10_evidence == pytest.approx(alone.report.log10_evidence, abs=1e-4)


def test_the_time_ends_it(loaded, tmp_path):
    path = sampled(loaded, tmp_path / "t.jsonl", Setting(), texts=3)
    found = judge_by_model(
        read_texts(path), loaded, Setting(), 1e-9, 0.01, lambda _: None, seconds=0
    )
    assert (found.texts, found.given, found.stopped) == (1, 3, by_model.TIME)


def test_ctrl_c_ends_it_with_a_verdict(folders, loaded, tmp_path, monkeypatch):  # noqa: F811
    path = sampled(loaded, tmp_path / "t.jsonl", Setting(), texts=3)
    observe = by_model.EntropyMartingale.observe

    def observed(bets, law, token):
        if bets.tokens == 30:
            raise KeyboardInterrupt
        observe(bets, law, token)

    monkeypatch.setattr(by_model.EntropyMartingale, "observe", observed)
    result = CliRunner().invoke(main, ["compare", path, "--model", str(folders["target"])])
    assert result.exit_code == 130
    assert result.stdout.startswith("INCONCLUSIVE by the model")
    assert "STOPPED  after 1 of 3 texts: interrupted" in result.stdout


def test_a_token_that_the_declared_filter_excludes_is_impossible(loaded, tmp_path):
    path = sampled(loaded, tmp_path / "t.jsonl", Setting(), texts=2)
    found = judged(loaded, path, Setting(top_k=2))
    assert found.report.impossible is not None
    assert found.report.lossy


def test_the_command_needs_one_file_and_the_prompts(folders, loaded, tmp_path):  # noqa: F811
    path = sampled(loaded, tmp_path / "t.jsonl", Setting(0.5), texts=8)
    model = ["--model", str(folders["target"])]
    result = CliRunner().invoke(main, ["compare", path, *model])
    assert result.exit_code == 1
    assert result.output.startswith("LOSSY")
    result = CliRunner().invoke(main, ["compare", path, *model, "--temperature", "0.5"])
    assert result.exit_code in (0, 2)
    assert "WOULD HAVE FOUND" in result.output
    bare = tmp_path / "bare.jsonl"
    bare.write_text('{"token_ids": [1]}\n')
    result = CliRunner().invoke(main, ["compare", str(bare), *model])
    assert result.exit_code == 2
    assert CliRunner().invoke(main, ["compare", path]).exit_code == 2


def test_a_checkpoint_that_reads_no_english_judges_ids(tmp_path):
    """Its tokens are five letters; with ids alone no tokenizer is used."""
    build(named_pair("lookback"), tmp_path / "pair", ["hf"])
    file = tmp_path / "t.jsonl"
    record = {"prompt_token_ids": [5, 0, 1], "token_ids": [1, 1, 1]}
    file.write_text(json.dumps(record))
    model = ["--model", str(tmp_path / "pair" / "target")]
    result = CliRunner().invoke(main, ["compare", str(file), *model])
    assert result.exit_code == 1
    assert result.stdout.startswith("LOSSY by the model"), "after a, b the law has no b"
    file.write_text(json.dumps({"prompt": "ab", "token_ids": [1]}))
    result = CliRunner().invoke(main, ["compare", str(file), *model])
    assert result.exit_code == 2
    assert "plain English surprises the model" in result.stderr
