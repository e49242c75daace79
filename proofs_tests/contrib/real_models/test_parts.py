"""Converted models cut into parts and put together again elsewhere."""

import json

import pytest

from specref.contrib.real_models import __main__, conversion, parts
from specref.contrib.real_models.published import Published

CONTENT = {"config.json": b"{}", "model.safetensors": bytes(range(256)) * 5}


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A folder with a converted model of 1,280 bytes."""
    model = Published(("tiny==1",), (), "0" * 64, "MIT")
    for module in (conversion, parts, __main__):
        monkeypatch.setattr(module, "MODELS", {"tiny": model})
    folder = conversion.folder_of("tiny", "bfloat16", tmp_path / "there")
    folder.mkdir(parents=True)
    for name, data in CONTENT.items():
        (folder / name).write_bytes(data)
    lengths = {name: len(data) for name, data in CONTENT.items()}
    source = {"files": lengths, "sha256": model.sha256}
    (folder / conversion.SOURCE).write_text(json.dumps(source))
    return tmp_path / "there"


def test_what_is_joined_is_what_was_cut(root, tmp_path, monkeypatch, capsys):
    cut = parts.split(root, tmp_path / "cut", size=500)
    assert max(part.stat().st_size for part in cut if part.name != parts.LIST) == 500
    monkeypatch.setenv(conversion.VARIABLE, str(tmp_path / "here"))
    assert __main__.main(["--join", str(tmp_path / "cut")]) == 0
    assert "tiny bfloat16" in capsys.readouterr().out
    assert parts.join(tmp_path / "cut", tmp_path / "here") == [
        folder := tmp_path / "here" / "tiny" / "bfloat16"
    ]
    assert {name: (folder / name).read_bytes() for name in CONTENT} == CONTENT


def test_a_part_that_is_missing_or_other_is_named(root, tmp_path):
    parts.split(root, tmp_path / "cut", size=500)
    last = tmp_path / "cut" / "tiny" / "bfloat16" / "model.safetensors.002"
    data = last.read_bytes()
    last.write_bytes(data[:-1])
    with pytest.raises(ValueError, match=r"model\.safetensors: SHA-256 .*: bring its parts again"):
        parts.join(tmp_path / "cut", tmp_path / "here")
    last.unlink()
    with pytest.raises(FileNotFoundError, match=r"model\.safetensors\.002 is missing"):
        parts.join(tmp_path / "cut", tmp_path / "here")
    assert not conversion.is_converted("tiny", "bfloat16", tmp_path / "here")
    last.write_bytes(data)
    assert parts.join(tmp_path / "cut", tmp_path / "here")
    assert conversion.is_converted("tiny", "bfloat16", tmp_path / "here")


def test_without_a_model_or_a_list_nothing_is_made(root, tmp_path):
    with pytest.raises(FileNotFoundError, match="is not there: make models"):
        parts.split(tmp_path / "empty", tmp_path / "cut")
    with pytest.raises(FileNotFoundError, match=r"it has no MODEL/DTYPE/parts\.json"):
        parts.join(tmp_path / "empty", tmp_path / "here")
