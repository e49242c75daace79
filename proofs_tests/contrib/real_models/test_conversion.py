"""Conversion of published models: a tiny model in two parts stands for them."""

import hashlib
import shutil

import pytest

pytest.importorskip("transformers", reason="not_run (transformers is not installed)")
pytest.importorskip("gguf", reason="not_run (gguf is not installed)")
pytest.importorskip("accelerate", reason="not_run (accelerate is not installed: make models)")

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
    out = tmp_path_factory.mktemp("tiny") / "built"
    return build({"": named_pair("order-1")["target"]}, out, ["gguf"])[""] / "model.gguf"


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
    for module in (conversion, __main__):
        monkeypatch.setattr(module, "MODELS", {"tiny": model})
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
