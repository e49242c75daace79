"""The published pairs; where `make models` has not run, these tests have not run either."""

import pytest

pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch

from specref.contrib.real_models.conversion import is_converted
from specref.contrib.real_models.loading import Loaded, check_tokenizer
from specref.contrib.real_models.pairs import (
    GEMMA,
    PAIRS,
    SMOLLM2,
    TWO_VOCABULARIES,
    Pair,
    Published,
    ids_of,
    paired,
    same_vocabulary,
    shared_tokens,
)
from specref.contrib.real_models.prompts import PROMPTS
from specref.contrib.real_models.running import prompts_of

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(
        not all(map(is_converted, (GEMMA, SMOLLM2))), reason="not_run (make models)"
    ),
]


@pytest.fixture(scope="module")
def published() -> Published:
    return Published()


@pytest.fixture(scope="module")
def both(published: Published) -> Pair:
    return published.pair("gemma<-smollm2")


def test_two_vocabularies(both: Pair) -> None:
    assert (ids_of(both.target), ids_of(both.drafter)) == (262_144, 49_152)
    assert not same_vocabulary(both.target, both.drafter)
    assert 0 < shared_tokens(both.target, both.drafter) < 49_152
    assert paired(both.target, both.drafter).methods == TWO_VOCABULARIES
    assert len(prompts_of(both)) == len(PROMPTS)


def test_the_other_model_s_tokenizer_is_refused(both: Pair) -> None:
    with pytest.raises(ValueError, match="expected the tokenizer that it was trained with"):
        check_tokenizer(both.drafter.tokenizer, both.target.model, "target")
    with pytest.raises(ValueError, match="they do not belong together"):
        check_tokenizer(both.target.tokenizer, both.drafter.model, "drafter")


@torch.inference_mode()
def law(loaded: Loaded, text: str) -> torch.Tensor:
    ids = torch.tensor([loaded.tokenizer.encode(text)])
    return loaded.model(input_ids=ids).logits[0].double().softmax(-1)


@pytest.mark.parametrize("name", [name for name in PAIRS if name.startswith(SMOLLM2[:7])][1:])
def test_drafters_of_own_weights_are_near_and_not_the_same(
    published: Published, name: str
) -> None:
    pair = published.pair(name)
    assert same_vocabulary(pair.target, pair.drafter)
    text = "The committee met on Tuesday to discuss the new budget for schools."
    overlap = torch.minimum(law(pair.target, text), law(pair.drafter, text)).sum(1).mean()
    assert 0.1 < overlap < 0.9
