"""The adapter of mlx-lm: its parameters are checked by name; the engine itself where it is."""

import importlib
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from specref import check
from specref.adapters.needs import NotInstalledError
from specref.contracts.asking import read_text
from specref.contrib.checkpoints import build, named_pair
from specref.contrib.engines.mlx_lm import DEFAULTS, PASSED, load_engine
from specref.contrib.engines.on_pairs import up_to


def test_parameters_go_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """An mlx-lm whose function takes something else is not run."""
    names = (*PASSED, *DEFAULTS, "temperature")
    function = eval(f"lambda {', '.join(names)}: None")
    modules = {
        "mlx": SimpleNamespace(__path__=[]),
        "mlx.core": SimpleNamespace(),
        "mlx_lm": SimpleNamespace(__path__=[]),
        "mlx_lm.generate": SimpleNamespace(generate_step=None, speculative_generate_step=function),
        "mlx_lm.sample_utils": SimpleNamespace(make_sampler=None, make_logits_processors=None),
        "mlx_lm.utils": SimpleNamespace(load_model=None),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(modules["mlx"], "core", modules["mlx.core"], raising=False)
    with pytest.raises(NotInstalledError, match="has unknown parameters, temperature"):
        load_engine()


def test_texts_end_at_eos_without_asking_for_more() -> None:
    steps = iter([(3,), (4,), (1,)])
    assert up_to(4, steps) == [(3,), (4,)]
    assert list(steps) == [(1,)]
    assert up_to(None, [(3,), (1,)]) == [(3,), (1,)]


@pytest.fixture
def _installed() -> None:
    for package in ("mlx.core", "mlx_lm"):
        pytest.importorskip(package, reason=f"not_run ({package} is not installed)")


@pytest.mark.usefixtures("_installed")
def test_drafts_are_counted_and_seeds_obeyed() -> None:
    engine = load_engine()
    texts = [read_text(engine((0, 1), 6, seed), engine, 6) for seed in range(20)]
    again = [read_text(engine((0, 1), 6, seed), engine, 6) for seed in range(20)]
    assert texts == again
    assert len({text.tokens for text in texts}) > 5
    proposed = [text.proposed or 0 for text in texts]
    accepted = [text.accepted or 0 for text in texts]
    assert all(map(int.__le__, accepted, proposed))
    assert 0 < sum(accepted) < sum(proposed)
    assert read_text(engine.mode("plain")((0, 1), 6, 1), engine, 6).proposed is None


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize("settings", [{}, {"repetition_penalty": 3.0}])
def test_proposed_drafts_are_the_calls_of_the_drafter(
    settings: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With penalties the sampler sees one row at a time."""
    model = importlib.import_module("mlx_lm.models.llama").Model
    right, calls = model.__call__, list[int]()

    def noted(self: Any, *args: Any, **options: Any) -> Any:
        calls.append(id(self))
        return right(self, *args, **options)

    monkeypatch.setattr(model, "__call__", noted)
    engine = load_engine(settings=settings)
    for seed in range(10):
        calls.clear()
        text = read_text(engine((0, 1), 6, seed), engine, 6)
        assert text.proposed == calls.count(calls[0]) - 1, "the drafter reads the prompt first"


@pytest.mark.usefixtures("_installed")
def test_processors_see_the_prompt_in_plain_mode_alone(tmp_path: Path) -> None:
    from mlx.core import array
    from mlx_lm.generate import generate_step, speculative_generate_step
    from mlx_lm.utils import load_model

    pair = build(named_pair("lookback"), tmp_path / "pair").values()
    target, drafter = (load_model(path)[0] for path in pair)
    shown: list[list[int]] = []

    def processor(tokens: Any, logits: Any) -> Any:
        shown.append(tokens.tolist())
        return logits

    own: Any = {"max_tokens": 1, "logits_processors": [processor]}
    list(generate_step(array([5, 0, 1, 2]), target, **own))
    assert shown[0] == [5, 0, 1, 2]
    shown.clear()
    list(
        speculative_generate_step(array([5, 0, 1, 2]), target, drafter, num_draft_tokens=1, **own)
    )
    assert shown[:2] == [[2], [2]], "drafter, target"


@pytest.mark.usefixtures("_installed")
def test_min_p_leaves_out_what_its_law_leaves_out() -> None:
    engine = load_engine(settings={"min_p": 0.3})
    assert engine.law is not None
    for seed in range(20):
        for mode in ("plain", "speculative"):
            text = read_text(engine.mode(mode)((0, 1), 6, seed), engine, 6).tokens
            assert all(engine.law.next_token((0, 1, *text[:i]))[x] > 0 for i, x in enumerate(text))


@pytest.mark.deep
@pytest.mark.usefixtures("_installed")
def test_nothing_is_found_in_a_few_texts() -> None:
    """Alpha is 1e-9; a difference of that size is found 999 times in 1,000."""
    engine = load_engine()
    few = replace(engine, prompts=engine.prompts[1:2])
    report = check(few, contract="text", detect_tv=0.5)
    assert report.exit_code == 0, str(report)
    (texts,) = [one for one in report.results if one.id == "end-to-end/texts"]
    assert texts.evidence["accepted"] > 50


@pytest.mark.deep
@pytest.mark.usefixtures("_installed")
def test_a_cache_that_keeps_a_rejected_draft_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    own = importlib.import_module("mlx_lm.generate")
    right = own.trim_prompt_cache
    monkeypatch.setattr(own, "trim_prompt_cache", lambda cache, n: right(cache, max(n - 1, 0)))
    report = check(load_engine(), contract="text", detect_tv=0.5, only=["end-to-end/texts"])
    assert report.exit_code == 1
    assert report.lossy
