"""Transformers' `generate` on checkpoints: seeds, counts of drafts, settings.

Deterministic: what is sampled goes by fixed seeds, and no law is judged here. The law of
texts is judged by `specref check transformers --contract text`, which takes minutes.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

from transformers import PreTrainedTokenizerFast

from proofs_tests.contrib.real_models.tiny import save
from specref.adapters import IMPLEMENTATIONS
from specref.contracts.asking import read_text
from specref.contracts.text import Engine, Text
from specref.contrib.engines.on_pairs import PROMPTS
from specref.contrib.engines.transformers_text import engine_of_folders, load_engine


def texts(engine: Engine, mode: str, seeds: Sequence[int] = range(8)) -> list[Text]:
    ask, prompt = engine.mode(mode), engine.prompts[-1]
    return [read_text(ask(prompt, 6, seed), engine, 6) for seed in seeds]


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize(("path", "law"), [
    ("sd", "lookback"), ("pld", "lookback"), ("tli", "two-vocabularies"),
])  # fmt: skip
def test_drafts_are_counted_and_seeds_obeyed(
    path: str, law: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = PreTrainedTokenizerFast.get_vocab  # in an order that is a hash map's

    def by_id(tokenizer: PreTrainedTokenizerFast) -> dict[str, int]:
        return dict(sorted(shipped(tokenizer).items(), key=lambda item: item[1]))

    monkeypatch.setattr(PreTrainedTokenizerFast, "get_vocab", by_id)
    engine = load_engine(path, law)
    found = texts(engine, "speculative")
    assert found == texts(engine, "speculative")
    assert len({one.tokens for one in found}) > 3
    assert sum(one.accepted or 0 for one in found) > 0
    assert sum(one.accepted or 0 for one in found) < sum(one.proposed or 0 for one in found)
    assert all(len(one.tokens) > (one.accepted or 0) for one in found), "a block has one more"
    assert {one.proposed for one in texts(engine, "plain")} == {0}
    assert set(engine.prompts) <= set(PROMPTS)


def test_they_are_registered() -> None:
    known = [name for name in IMPLEMENTATIONS if name.startswith("transformers-text-")]
    settings = "", "-top-p", "-top-k", "-penalty", "-greedy"
    paths = *(f"sd{one}" for one in settings), "pld", "pld-top-p", "pld-greedy", "tli"
    assert known == [f"transformers-text-{path}" for path in paths]
    assert [one.check for one in IMPLEMENTATIONS[known[-1]].known] == ["end-to-end/texts"]


def test_top_p_leaves_out_what_its_law_leaves_out() -> None:
    engine = load_engine(settings={"temperature": 0.8, "top_p": 0.75})
    assert engine.law is not None
    for seed in range(15):
        for mode in ("plain", "speculative"):
            text = read_text(engine.mode(mode)((0, 1), 6, seed), engine, 6).tokens
            for i, token in enumerate(text):
                before = (0, 1, *text[:i])
                assert engine.law.next_token(before)[token] > 0


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("size", [300, 280], ids=["one vocabulary", "two"])
def test_two_folders_are_an_engine(size: int, tmp_path: Path) -> None:
    target = save(tmp_path / "target", 300, 1)
    drafter = save(tmp_path / "drafter", size, 2)
    engine = engine_of_folders(target, drafter, ["He opened the", "In the spring"], tokens=4)
    found = texts(engine, "speculative")
    assert found == texts(engine, "speculative")
    assert len({one.tokens for one in found}) > 3
    assert all(one.proposed for one in found)
    assert {one.proposed for one in texts(engine, "plain")} == {0}


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    target = save(tmp_path / "target", 300, 1)
    with pytest.raises(ValueError, match="drafter = nowhere: there is no such folder"):
        engine_of_folders(target, "nowhere", ["He opened the"])


def test_two_folders_are_asked_under_the_settings_that_are_given(tmp_path: Path) -> None:
    target, drafter = save(tmp_path / "target", 300, 1), save(tmp_path / "drafter", 300, 2)
    engine = engine_of_folders(target, drafter, ["He opened the"], settings={"top_k": 1})
    for mode in ("speculative", "plain"):
        assert len({one.tokens for one in texts(engine, mode)}) == 1
