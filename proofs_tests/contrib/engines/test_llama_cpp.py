"""The adapter of llama.cpp: what it asks, how it reads answers; the engine itself where it is."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from specref import check
from specref.adapters import IMPLEMENTATIONS
from specref.adapters.needs import NotInstalledError
from specref.conformance.greedy import greedy_text
from specref.conformance.status import Finding
from specref.contracts.asking import read_text
from specref.contracts.text import Engine, Text
from specref.contrib.checkpoints import named_pair
from specref.contrib.engines.llama_cpp import load_engine, responding, speculate

KINDS = (
    "draft-simple",
    "ngram-simple",
    "ngram-cache",
    "ngram-mod",
    "ngram-map-k",
    "ngram-map-k4v",
)
LAW = named_pair("lookback")["target"]


class Server:
    """Answers with one completion, and keeps what it was asked."""

    def __init__(self, text: str, reason: str, **timings: int) -> None:
        self.answer = {"choices": [{"text": text, "finish_reason": reason}], "timings": timings}

    def handle_completions(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.asked = asked
        return self.answer


def test_what_is_asked_and_how_answers_are_read() -> None:
    server = Server("ad", "stop", draft_n=6, draft_n_accepted=2)
    assert responding(server, LAW)((1, 0), 5, 7) == Text([0, 3, 4], 6, 2)
    assert server.asked["prompt"] == [5, 1, 0]
    assert (server.asked["n_predict"], server.asked["seed"]) == (5, 7)
    assert server.asked["samplers"] == ["temperature"]
    assert server.asked["temperature"] == 1
    assert responding(Server("ab", "length"), LAW)((), 2, 0) == Text([0, 1], 0, 0)


def test_settings_are_asked_for_in_their_order() -> None:
    server = Server("a", "length")
    responding(server, LAW, {"repeat_penalty": 3.0, "min_p": 0.3})((), 1, 0)
    assert server.asked["samplers"] == ["penalties", "min_p", "temperature"]
    assert [server.asked[x] for x in ("repeat_penalty", "min_p", "temperature")] == [3, 0.3, 1]
    responding(server, LAW, {"temperature": 0.8, "top_p": 0.75})((), 1, 0)
    assert server.asked["samplers"] == ["temperature", "top_p"]
    assert server.asked["temperature"] == 0.8


def fake(**names: int) -> SimpleNamespace:
    return SimpleNamespace(common_speculative_type=SimpleNamespace(**names))


def test_settings_by_name_and_unknown_ones_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {f"COMMON_SPECULATIVE_TYPE_{x.replace('-', '_').upper()}": x for x in KINDS}
    monkeypatch.setitem(__import__("sys").modules, "xllamacpp", fake(**known))
    draft = SimpleNamespace(mparams=SimpleNamespace(path=""), n_max=16, p_min=0.75)
    speculative = SimpleNamespace(
        draft=draft, types=[], ngram_simple=SimpleNamespace(size_n=12, size_m=48)
    )
    params = SimpleNamespace(speculative=speculative)
    with pytest.raises(NotInstalledError, match="has no setting probabilistic"):
        speculate(params, "draft-simple", Path("d"), True)
    draft.probabilistic = False
    speculate(params, "draft-simple", Path("d"), True)
    assert speculative.types == ["draft-simple"]
    assert (draft.n_max, draft.p_min, draft.probabilistic) == (3, 0, True)
    assert draft.mparams.path == str(Path("d") / "model.gguf")
    speculate(params, "ngram-simple", Path("d"), False)
    assert speculative.types == ["ngram-simple"]
    assert (speculative.ngram_simple.size_n, speculative.ngram_simple.size_m) == (1, 2)
    speculative.ngram_map_k4v = SimpleNamespace(size_n=12, size_m=48)
    speculate(params, "ngram-map-k4v", Path("d"), False)
    assert vars(speculative.ngram_map_k4v) == {"size_n": 1, "size_m": 2}
    speculative.ngram_mod = SimpleNamespace(n_match=24, n_max=64, n_min=48)
    speculate(params, "ngram-mod", Path("d"), False)
    assert vars(speculative.ngram_mod) == {"n_match": 1, "n_max": 3, "n_min": 1}
    with pytest.raises(NotInstalledError, match="NoneType has no setting size_n"):
        speculate(params, "ngram-map-k", Path("d"), False)
    with pytest.raises(NotInstalledError, match="EAGLE9"):
        speculate(params, "eagle9", Path("d"), False)


@pytest.fixture
def _installed() -> None:
    for package in ("xllamacpp", "gguf"):
        pytest.importorskip(package, reason=f"not_run ({package} is not installed)")


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize("kind", KINDS[:4])
def test_texts_are_those_of_plain_mode_and_drafts_are_counted(kind: str) -> None:
    engine = load_engine(kind)
    texts = [both(engine, seed) for seed in range(50)]
    assert [one.tokens for one, _ in texts] == [other.tokens for _, other in texts]
    assert 0 < sum(one.accepted or 0 for one, _ in texts) < sum(x.proposed or 0 for x, _ in texts)
    assert {other.proposed for _, other in texts} == {0}


def both(engine: Engine, seed: int) -> tuple[Text, Text]:
    prompt = engine.prompts[1]
    one, other = (read_text(ask(prompt, 6, seed), engine, 6) for ask in
                  (engine.speculative, engine.mode("plain")))  # fmt: skip
    return one, other


@pytest.mark.deep
@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize("kind", ["draft-simple", "ngram-simple"])
def test_nothing_is_found_in_a_few_texts(kind: str) -> None:
    """Alpha is 1e-9; a difference of that size is found 999 times in 1,000."""
    report = check(load_engine(kind), contract="text", detect_tv=0.3)
    assert report.exit_code == 0, str(report)
    (texts,) = [one for one in report.results if one.id == "end-to-end/texts"]
    assert texts.evidence["accepted"] > 50


@pytest.mark.deep
@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize("kind", KINDS)
def test_greedy_texts_are_those_of_the_law_and_of_plain_mode(kind: str) -> None:
    engine = IMPLEMENTATIONS[f"llama-cpp-text-greedy-{kind}"].load()
    assert isinstance(engine, Engine)
    law, plain = named_pair("ending")["target"], engine.mode("plain")
    for prompt in engine.prompts[::9]:
        wanted = greedy_text(law.model, prompt, 24)
        assert read_text(plain(prompt, 24, 7), engine, 24).tokens == wanted
    few, end = replace(engine, prompts=engine.prompts[:9]), law.eos
    report = check(few, contract="text", greedy=True, detect_tv=0.3)
    assert report.exit_code == 0, str(report)
    wrong = replace(
        few, speculative=lambda *asked: Text([*few.plain(*asked).tokens[:-1], end], 9, 9)
    )
    assert check(wrong, contract="text", greedy=True, detect_tv=0.3).exit_code == 1


@pytest.mark.usefixtures("_installed")
def test_settings_reach_the_server() -> None:
    """The law without them is found not to be that of plain mode."""
    for settings in ({"min_p": 0.3}, {"repeat_penalty": 3.0}):
        engine = load_engine(probabilistic=True, settings=settings)
        assert (engine.law is None) == ("min_p" not in settings)
        other = replace(engine, law=LAW.model, eos=None)
        report = check(other, contract="text", detect_tv=0.3, only=["smoke"])
        assert report.finding == Finding.PLAIN, settings


@pytest.mark.usefixtures("_installed")
def test_texts_of_the_drafter_are_found() -> None:
    engine = load_engine("draft-simple")
    other = replace(engine, law=engine.drafter, plain=None, same_text=False)
    report = check(other, contract="text", detect_tv=0.3)
    assert report.exit_code == 1
    assert report.lossy
