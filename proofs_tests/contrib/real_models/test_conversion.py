"""Conversion of published models: a tiny model in two parts stands for them.

Converted models are cut into parts, and put together again elsewhere.
"""

import hashlib
import json
import shutil

import pytest

pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from specref.contrib.checkpoints import build
from specref.contrib.checkpoints.law import named_pair
from specref.contrib.real_models import __main__, conversion
from specref.contrib.real_models.published import MODELS, Published


class Tiny(Published):
    """A published model whose parts lie in a folder."""

    def files(self):
        return [folder_and_name[1] for folder_and_name in self.parts]


@pytest.fixture(scope="module")
def gguf_file(tmp_path_factory):
    for package in ("gguf", "accelerate"):
        pytest.importorskip(package, reason=f"not_run ({package} is not installed: make models)")
    out = tmp_path_factory.mktemp("tiny") / "built"
    return build({"": named_pair("order-1")["target"]}, out, ["gguf"])[""] / "model.gguf"


def stands_for_all(model, monkeypatch):
    for module in (conversion, __main__):
        monkeypatch.setattr(module, "MODELS", {"tiny": model})


@pytest.fixture
def tiny(gguf_file, tmp_path, monkeypatch):
    """{name: model} with one model, in two parts that may be spoiled."""
    data = gguf_file.read_bytes()
    parts = tmp_path / "part0", tmp_path / "part1"
    for path, half in zip(parts, (data[:1000], data[1000:]), strict=True):
        path.write_bytes(half)
    model = Tiny(
        ("tiny==1",), tuple(("tiny", p) for p in parts), hashlib.sha256(data).hexdigest(), "MIT"
    )
    stands_for_all(model, monkeypatch)
    monkeypatch.setenv(conversion.VARIABLE, str(tmp_path / "models"))
    return model


def written(root):
    return {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}


def test_both_folders_load_and_nothing_is_done_twice(tiny, tmp_path, capsys):
    assert __main__.main([]) == 0
    assert "licence of tiny: MIT" in capsys.readouterr().out
    root = tmp_path / "models"
    for dtype in conversion.DTYPES:
        folder = conversion.folder_of("tiny", dtype)
        model = AutoModelForCausalLM.from_pretrained(folder)
        assert model.dtype == getattr(torch, dtype)
        assert AutoTokenizer.from_pretrained(folder).encode("ab")
    before = written(root)
    assert __main__.main([]) == 0
    assert written(root) == before
    assert sorted(path.name for path in root.iterdir()) == ["tiny"]


def test_it_goes_on_where_it_was(tiny, tmp_path):
    assert __main__.main([]) == 0
    first = written(conversion.folder_of("tiny", "float32"))
    other = conversion.folder_of("tiny", "bfloat16")
    other.rename(other.with_name("bfloat16.partial"))
    assert __main__.main([]) == 0
    assert written(conversion.folder_of("tiny", "float32")) == first
    assert conversion.is_converted("tiny", "bfloat16")


def test_a_file_cut_short_is_written_anew(tiny):
    assert __main__.main([]) == 0
    weights = conversion.folder_of("tiny") / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1])
    assert not conversion.is_converted("tiny")
    assert __main__.main([]) == 0
    assert weights.read_bytes() == whole


def test_another_hash_is_refused(tiny, tmp_path, capsys):
    (tmp_path / "part1").write_bytes(b"other")
    assert __main__.main([]) == 2
    assert f"expected {tiny.sha256}" in capsys.readouterr().err
    assert list((tmp_path / "models").iterdir()) == []


def test_a_full_disk_is_said_first(tiny, monkeypatch, capsys):
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(conversion.shutil, "disk_usage", lambda _: usage._replace(free=10**9))
    assert __main__.main([]) == 2
    assert "1.0 GB free, expected 4" in capsys.readouterr().err


def test_what_loads_otherwise_is_not_kept(tiny, monkeypatch, capsys):
    load = AutoModelForCausalLM.from_pretrained

    def spoiled(folder, **options):
        model = load(folder, **options)
        if "partial" in str(folder):
            model.lm_head.weight.data += 1
        return model

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", spoiled)
    assert __main__.main([]) == 2
    assert "other tokens or logits" in capsys.readouterr().err
    assert not conversion.is_converted("tiny")


def test_a_missing_package_is_named(monkeypatch):
    model = Published(("none==1",), (("no-such-package", "x"),), "", "")
    with pytest.raises(ImportError, match="no-such-package is not installed: make models"):
        model.files()


def test_packages_to_install_are_listed(capsys):
    assert __main__.main(["--packages"]) == 0
    assert capsys.readouterr().out.split() == [
        one for model in MODELS.values() for one in model.requirements
    ]
    with pytest.raises(SystemExit, match="2"):
        __main__.main(["--other"])


CONTENT = {"config.json": b"{}", "model.safetensors": bytes(range(256)) * 5}


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A folder with a converted model of 1,280 bytes."""
    model = Published(("tiny==1",), (), "0" * 64, "MIT")
    stands_for_all(model, monkeypatch)
    folder = conversion.folder_of("tiny", "bfloat16", tmp_path / "there")
    folder.mkdir(parents=True)
    for name, data in CONTENT.items():
        (folder / name).write_bytes(data)
    lengths = {name: len(data) for name, data in CONTENT.items()}
    source = {"files": lengths, "sha256": model.sha256}
    (folder / conversion.SOURCE).write_text(json.dumps(source))
    return tmp_path / "there"


def test_what_is_joined_is_what_was_cut(root, tmp_path, monkeypatch, capsys):
    cut = conversion.split(root, tmp_path / "cut", size=500)
    assert max(part.stat().st_size for part in cut if part.name != conversion.LIST) == 500
    monkeypatch.setenv(conversion.VARIABLE, str(tmp_path / "here"))
    assert __main__.main(["--join", str(tmp_path / "cut")]) == 0
    assert "tiny bfloat16" in capsys.readouterr().out
    assert conversion.join(tmp_path / "cut", tmp_path / "here") == [
        folder := tmp_path / "here" / "tiny" / "bfloat16"
    ]
    assert {name: (folder / name).read_bytes() for name in CONTENT} == CONTENT


def test_a_part_that_is_missing_or_other_is_named(root, tmp_path):
    conversion.split(root, tmp_path / "cut", size=500)
    last = tmp_path / "cut" / "tiny" / "bfloat16" / "model.safetensors.002"
    data = last.read_bytes()
    last.write_bytes(data[:-1])
    with pytest.raises(ValueError, match=r"model\.safetensors: SHA-256 .*: bring its parts again"):
        conversion.join(tmp_path / "cut", tmp_path / "here")
    last.unlink()
    with pytest.raises(FileNotFoundError, match=r"model\.safetensors\.002 is missing"):
        conversion.join(tmp_path / "cut", tmp_path / "here")
    assert not conversion.is_converted("tiny", "bfloat16", tmp_path / "here")
    last.write_bytes(data)
    assert conversion.join(tmp_path / "cut", tmp_path / "here")
    assert conversion.is_converted("tiny", "bfloat16", tmp_path / "here")


def test_without_a_model_or_a_list_nothing_is_made(root, tmp_path):
    with pytest.raises(FileNotFoundError, match="is not there: make models"):
        conversion.split(tmp_path / "empty", tmp_path / "cut")
    with pytest.raises(FileNotFoundError, match=r"it has no MODEL/DTYPE/parts\.json"):
        conversion.join(tmp_path / "empty", tmp_path / "here")
