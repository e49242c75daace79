"""Toy models have the law of what they were fed; right loops on them pass, wrong caches fail."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from transformers import DynamicCache

from proofs_tests.helpers.torch.slot_bugs import (
    as_the_fullest,
    first_rows,
    from_the_first,
    without_holes,
)
from specref.adapters import IMPLEMENTATIONS
from specref.conformance.public import check
from specref.conformance.report import Report
from specref.conformance.summary import summarize
from specref.contrib.engines.calling_generate import CACHE_NAMES, Forward
from specref.contrib.engines.toys import ToyModel, load_torch_backend, load_transformers
from specref.models import markov_model
from specref.torch_backend.models.slotted import Slots
from specref.vocabulary import Vocabulary

pytestmark = [pytest.mark.strata, pytest.mark.usefixtures("undiagnosed")]

RIGHT: dict[str, Any] = {"torch_backend": load_torch_backend, "Transformers": load_transformers}


def judged(function: Any, *only: str) -> Report:
    return check(function, contract="generate-batch", only=only, trials=700)


@pytest.mark.deep
@pytest.mark.parametrize("name", RIGHT)
def test_right_loops_pass(name: str) -> None:
    report = judged(RIGHT[name](), "smoke", "replay", "strata/batch-all")
    assert report.exit_code == 0, report


GREEDY: dict[str, Any] = {
    "torch_backend": lambda: load_torch_backend(temperature=0.0),
    "Transformers": lambda: load_transformers(greedy=True),
}


def judged_greedily(function: Any) -> Report:
    only = "boundary/greedy-batches"
    return check(function, contract="generate-batch", greedy=True, only=[only])


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("name", GREEDY)
def test_greedy_batches_are_the_targets_own_texts(name: str) -> None:
    report = judged_greedily(GREEDY[name]())
    assert report.exit_code == 0, report
    assert report.results[0].message.endswith("texts are the target's own")


@pytest.mark.parametrize(
    ("name", "bug", "where"),
    [
        ("crop", as_the_fullest, "batch-acceptance, row 1"),
        pytest.param("append", from_the_first, "batch-prompts, row 1", marks=pytest.mark.deep),
        pytest.param("append", without_holes, "batch-prompts, row 1", marks=pytest.mark.deep),
        pytest.param("select", first_rows, "batch-acceptance, row 1", marks=pytest.mark.deep),
    ],
)
def test_a_planted_bug_of_the_cache_changes_a_greedy_text(
    name: str, bug: Any, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Slots, name, bug)
    report = judged_greedily(GREEDY["torch_backend"]())
    assert report.exit_code == 1
    assert report.results[0].message.startswith(where)


@pytest.mark.deep
def test_a_loop_that_samples_is_not_greedy() -> None:
    report = judged_greedily(load_torch_backend(temperature=0.1))
    assert report.exit_code == 1
    assert "an argmax of the target is" in report.results[0].message


def test_assisted_generation_is_said_to_take_one_prompt() -> None:
    said = str(IMPLEMENTATIONS["transformers-generate-batch-sd"].not_run)
    assert said.startswith("not_run (assisted generation takes one prompt at a time")


UNEQUAL, PROMPTS = "rows accept different numbers of drafts", "prompts differ in length"
EVERY = f"{PROMPTS} and {UNEQUAL} and a row ends before another"


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "bug", "stratum", "when"),
    [
        ("crop", as_the_fullest, "acceptance", f"when {UNEQUAL}"),
        ("append", without_holes, "prompts", f"when {PROMPTS}"),
        ("append", from_the_first, "prompts", f"in rows after the first, when {PROMPTS}"),
        ("select", first_rows, "all", f"in rows after the first, when {EVERY}"),
    ],
)
def test_a_planted_bug_of_the_cache_says_when(
    name: str, bug: Any, stratum: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Slots, name, bug)
    report = judged(load_torch_backend(), "strata/batch-in-step", f"strata/batch-{stratum}")
    assert report.lossy
    assert summarize(report).headline.split(":")[0] == f"FAILED · LOSSY, only {when}"


pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")


FIRST, AFTER_A, AFTER_B = [0.25, 0.75], [0.5, 0.5], [0.125, 0.875]
MODEL = markov_model(Vocabulary("ab"), FIRST, [AFTER_A, AFTER_B])
START = 2  # an id that means no token


def laws(found) -> np.ndarray:
    return found.logits[0].softmax(-1).detach().numpy()[:, :2]


def test_without_a_cache_the_whole_text_is_fed() -> None:
    model = ToyModel(MODEL, 3)
    assert laws(model(input_ids=torch.tensor([[START, 0, 1]]))) == pytest.approx(
        np.array([FIRST, AFTER_A, AFTER_B])
    )
    assert model.forwards == [Forward(0, 3)]
    kept = model(input_ids=torch.tensor([[START, 0, 1]]), logits_to_keep=2)
    assert laws(kept) == pytest.approx(np.array([AFTER_A, AFTER_B]))


def test_with_a_cache_what_is_fed_follows_what_it_holds() -> None:
    model, cache = ToyModel(MODEL, 3), DynamicCache()
    for name in CACHE_NAMES:
        model(input_ids=torch.tensor([[START, 1]]), **{name: cache})
        found = model(input_ids=torch.tensor([[0]]), **{name: cache})
        assert laws(found) == pytest.approx(np.array([AFTER_A]))
    assert model.forwards == [Forward(0, 2), Forward(2, 1), Forward(3, 2), Forward(5, 1)]


def test_ids_beyond_the_vocabulary_are_needed() -> None:
    with pytest.raises(ValueError, match="size = 2: expected more than the vocabulary's 2"):
        ToyModel(MODEL, 2)
