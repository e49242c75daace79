"""At temperature 0 every method gives the target's greedy text, token by token.

Batches of other shapes round otherwise, so where the two largest logits are within 1e-3 of each
other texts may part. That is looked up in the logits and counted; any other difference fails.
"""

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

from collections.abc import Sequence

from gpu_tests.greedy import Texts, compared, greedy, greedy_by_transformers
from gpu_tests.lab import Figure, Lab
from gpu_tests.pairs import CASES, prompts_of
from specref.contrib.real_models import planted

PAIRS = {case.method: case.pair for case in reversed(CASES.values())}
NEAR_TIES = 0.05


@pytest.fixture(scope="module")
def given(lab: Lab) -> tuple[Sequence[Sequence[int]], int]:
    prompts, tokens = lab.sizes.few
    return prompts_of(lab.pair("homogeneous"), prompts), tokens


@pytest.fixture(scope="module")
def plain(lab: Lab, given: tuple[Texts, int]) -> Texts:
    return greedy(lab.pair("homogeneous"), "autoregressive", *given)


@pytest.mark.parametrize(
    "method",
    [one if one == "standard" else pytest.param(one, marks=pytest.mark.deep) for one in PAIRS],
)
def test_greedy_texts_are_the_target_s(
    lab: Lab, given: tuple[Texts, int], plain: Texts, method: str, figure: Figure
) -> None:
    pair, (prompts, tokens) = lab.pair(PAIRS[method]), given
    found = compared(pair, prompts, greedy(pair, method, prompts, tokens), plain)
    figure(f"{method}, greedy: {found}")
    assert found.different == 0
    assert found.near_ties <= NEAR_TIES * len(plain)


def test_transformers_has_the_same_texts(
    lab: Lab, given: tuple[Texts, int], plain: Texts, figure: Figure
) -> None:
    pair = lab.pair("homogeneous")
    found = compared(pair, given[0], greedy_by_transformers(pair, *given), plain)
    figure(f"transformers, greedy: {found}")
    assert found.different == 0
    assert found.near_ties <= NEAR_TIES * len(plain)


def test_the_row_before_is_noticed(lab: Lab, given: tuple[Texts, int], plain: Texts) -> None:
    pair = lab.pair("homogeneous")
    texts = greedy(pair, "standard", *given, planted.row_before())
    assert compared(pair, given[0], texts, plain).different > len(plain) // 2
