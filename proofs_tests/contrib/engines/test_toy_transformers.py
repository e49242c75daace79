"""The model that Transformers' `generate` is given: its law, and what it was fed."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from transformers import DynamicCache

from specref.contrib.engines.forwards import CACHE_NAMES, Forward
from specref.contrib.engines.toy_transformers import ToyModel
from specref.models import markov_model
from specref.vocabulary import Vocabulary

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
