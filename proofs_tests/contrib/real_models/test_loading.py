"""Folders that are no models, or not of one model, are refused before anything runs."""

import shutil

import pytest

pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

from safetensors.torch import load_file, save_file

from proofs_tests.contrib.real_models import tiny
from proofs_tests.pages.words import ROOT
from specref.contrib.real_models import loading, pairs
from specref.contrib.real_models.loading import check_tokenizer, digest, load


@pytest.fixture
def copied(folders, tmp_path):
    return shutil.copytree(folders["target"], tmp_path / "copy")


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("config.json", "it has no config.json"),
        ("model.safetensors", "it has no weights"),
        ("tokenizer*", "it has no tokenizer"),
    ],
)
def test_a_missing_part_is_named(copied, file, message):
    assert load(copied, "target").name == "copy"
    for path in copied.glob(file):
        path.unlink()
    with pytest.raises(ValueError, match=f"target = .*{message}"):
        load(copied, "target")


def test_no_folder():
    with pytest.raises(ValueError, match="drafter = nowhere: there is no such folder"):
        load("nowhere", "drafter")


def test_a_tokenizer_with_more_ids_than_the_model():
    with pytest.raises(ValueError, match="the id 299 and its model 280 ids"):
        check_tokenizer(tiny.tokenizer(300), tiny.model(280, 1), "target")


def test_a_token_that_was_added_beyond_the_model_is_no_matter():
    made = tiny.tokenizer(300)
    size = len(made)
    made.add_tokens(["<image>"], special_tokens=True)
    assert max(made.get_vocab().values()) == size
    check_tokenizer(made, tiny.model(size, 1), "target")


def test_a_tokenizer_that_surprises_the_model():
    """Random weights do not mind; a model that is sure of one token minds all texts."""
    model = tiny.model(300, 1)
    check_tokenizer(tiny.tokenizer(280), model, "target")
    model.model.norm.weight.data *= 100
    with pytest.raises(ValueError, match="expected the tokenizer that it was trained with"):
        check_tokenizer(tiny.tokenizer(280), model, "target")


class Unreading:
    """A tokenizer that makes so many tokens of a text, or raises."""

    def __init__(self, tokens):
        self.tokens = tokens

    def get_vocab(self):
        return {str(number): number for number in range(10)}

    def encode(self, text):
        if self.tokens is None:
            raise RuntimeError("no token for unknown words")
        return list(range(self.tokens))


@pytest.mark.parametrize(
    ("tokens", "message"),
    [(None, "cannot encode plain English .no token"), (0, "in 0 tokens"), (1, "in 1 tokens")],
)
def test_a_tokenizer_that_does_not_read_english(monkeypatch, tokens, message):
    monkeypatch.setattr(loading, "needed_ids", lambda tokenizer: 10)
    with pytest.raises(ValueError, match=f"target: its tokenizer .*{message}"):
        check_tokenizer(Unreading(tokens), tiny.model(300, 1), "target")


def test_a_doubtful_tokenizer_is_told_of():
    """Another vocabulary of a small model that was trained: it fits, and reads no English."""
    models = ROOT / "fixtures" / "models"
    target, drafter = (load(models / name, name) for name in ("target", "drafter_bpe1k"))
    assert (target.doubt, drafter.doubt) == ("", "")
    doubt = check_tokenizer(drafter.tokenizer, target.model, "target = mine")
    assert "expected the tokenizer that it was trained with" in doubt


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_digest_is_of_every_file_that_makes_the_model(copied, folders, name):
    (copied / "real_models.json").write_text("a record")
    assert digest(copied) == digest(folders["target"])
    path = copied / name
    path.write_bytes(path.read_bytes() + b"\n")
    assert digest(copied) != digest(folders["target"])


def test_files_that_are_cut(copied):
    weights = copied / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5_000])
    with pytest.raises(ValueError, match=r"target = .*copy: it cannot be read"):
        load(copied, "target")


def test_weights_that_files_lack_are_not_made_up(copied):
    path = copied / "model.safetensors"
    kept = {name: weight for name, weight in load_file(path).items() if ".1." not in name}
    save_file(kept, path, metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"lack \d+ weights, first model\.layers\.1\."):
        load(copied, "target")


def test_weights_that_are_nan(copied):
    path = copied / "model.safetensors"
    weights = load_file(path)
    weights["model.embed_tokens.weight"][5] = float("nan")
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"model\.embed_tokens\.weight is not finite"):
        load(copied, "target")


def test_both_folders_are_looked_at_before_one_is_loaded(copied, monkeypatch):
    monkeypatch.setattr(pairs, "load", lambda *_: pytest.fail("a model was loaded"))
    with pytest.raises(ValueError, match="drafter = nowhere: there is no such folder"):
        pairs.folders_pair(copied, "nowhere", "cpu", "float32")
