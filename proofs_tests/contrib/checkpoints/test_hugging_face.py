"""The tokenizers of checkpoints read and write text as their vocabularies do."""

import itertools
from pathlib import Path

import pytest

from specref.contrib.checkpoints.building import build
from specref.contrib.checkpoints.law import NAMED, named_pair

transformers = pytest.importorskip("transformers", reason="not_run (no transformers)")


@pytest.mark.parametrize("name", NAMED)
def test_tokenizers(name: str, tmp_path: Path) -> None:
    pair = named_pair(name)
    for role, folder in build(pair, tmp_path / "pair").items():
        law, found = pair[role], transformers.AutoTokenizer.from_pretrained(folder)
        vocabulary = law.vocabulary
        ordinary = [str(token) for token in vocabulary.tokens if token != vocabulary.eos]
        for words in itertools.product(ordinary, repeat=3):
            text = "".join(words)
            ids = vocabulary.encode(text)
            assert found(text)["input_ids"] == [law.start, *ids]
            assert found.decode(ids) == text
        assert (found.bos_token_id, found.eos_token_id) == (law.start, law.eos)
        assert found(f"a{vocabulary.eos}")["input_ids"] == [
            law.start,
            vocabulary.ids["a"],
            law.eos,
        ]
        assert found("?", add_special_tokens=False)["input_ids"] == [law.start]


def test_plain_generate_samples_from_the_law_by_default(tmp_path: Path) -> None:
    """No sampler setting of `generation_config.json` changes the law."""
    folder = build({"": named_pair("order-1")["target"]}, tmp_path / "one")[""]
    config = transformers.GenerationConfig.from_pretrained(folder)
    assert (config.do_sample, config.temperature, config.top_k, config.top_p) == (True, 1, 0, 1)
    assert config.eos_token_id == 4
