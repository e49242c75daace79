"""The adapter of onnxruntime-genai: what it asks and reads; the engine itself where it is.

Fixed seeds; a campaign has alpha 1e-9, and finds its distance 999 times in 1,000.
"""

from dataclasses import replace

import pytest

from specref import check
from specref.adapters import IMPLEMENTATIONS
from specref.conformance.status import Finding
from specref.contracts.asking import read_text
from specref.contrib.checkpoints import named_pair
from specref.contrib.engines.onnxruntime_genai import load_engine

LAW = named_pair("lookback")["target"]
SETTINGS = {"temperature": 0.8, "top_p": 0.75}


@pytest.fixture
def _installed() -> None:
    for package in ("onnx", "onnxruntime_genai"):
        pytest.importorskip(package, reason=f"not_run ({package} is not installed)")


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize("own", [{}, {"ngram_size": 2}, {"settings": SETTINGS}])
def test_texts_end_at_eos_and_drafts_are_counted(own: dict) -> None:
    engine = load_engine(**own)
    asked = [engine.mode(mode) for mode in ("speculative", "plain")]
    for prompt in engine.prompts[1:]:
        texts, plain = ([read_text(f(prompt, 6, s), engine, 6) for s in range(60)] for f in asked)
        assert texts == [read_text(engine(prompt, 6, s), engine, 6) for s in range(60)]
        assert any(text.tokens[-1] == LAW.eos for text in texts) == (own.get("settings") is None)
        assert 0 < sum(x.accepted or 0 for x in texts) < sum(x.proposed or 0 for x in texts)
        assert {(text.proposed, text.accepted) for text in plain} == {(0, 0)}


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize("name", [name for name in IMPLEMENTATIONS if "onnxruntime" in name])
def test_nothing_is_found_in_a_few_texts(name: str) -> None:
    report = check(IMPLEMENTATIONS[name].load(), contract="text", detect_tv=0.3)
    assert report.exit_code == 0, str(report)


@pytest.mark.usefixtures("_installed")
def test_settings_reach_the_engine() -> None:
    """The law without them is found not to be that of plain mode."""
    for settings in (SETTINGS, {"repetition_penalty": 3.0}):
        engine = replace(load_engine(settings=settings), law=LAW.model, eos=None)
        report = check(engine, contract="text", detect_tv=0.3, only=["smoke"])
        assert report.finding == Finding.PLAIN


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize("wrong", ["drafter", "order-1", "settings"])
def test_planted_bugs_are_found(wrong: str) -> None:
    """The texts of another model, or of speculation to which no settings are passed on."""
    engine = load_engine()
    other = {
        "drafter": replace(engine, law=engine.drafter, plain=None),
        "order-1": replace(engine, speculative=load_engine("order-1").speculative),
        "settings": replace(load_engine(settings=SETTINGS), speculative=engine.speculative),
    }[wrong]
    report = check(other, contract="text", detect_tv=0.3)
    assert report.lossy
    assert report.exit_code == 1
