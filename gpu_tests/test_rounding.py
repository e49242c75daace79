"""What rounding does to the law of a token, on real logits, against the equivalence margins.

Exactly, for p and q given in a dtype and verified by the backend; compared with the float64
softmax of the same logits. That `verify` has this law is probed coin by coin for a few places.
"""

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from torch import Tensor

from gpu_tests.lab import Figure, Lab
from gpu_tests.pairs import held_out
from gpu_tests.rounding import laws_in, misplaced, total_variation
from specref.contrib.real_models.judging import forced_logits
from specref.statistics.floats.floats import EQUIVALENCE_MARGIN, Dtype, rounding_bound

Laws = tuple[Tensor, Tensor]


@pytest.fixture(scope="module")
def laws(lab: Lab) -> Laws:
    """p and q at places of held-out texts, in float64 from float32 logits."""
    pair = lab.pair("homogeneous")
    texts = held_out(pair)[: lab.sizes.laws]
    prompts, rest = [text[:1] for text in texts], [text[1:] for text in texts]
    found = (forced_logits(one.model, prompts, rest) for one in (pair.target, pair.drafter))
    p, q = (logits.double().softmax(-1) for logits in found)
    return p, q


@pytest.mark.parametrize("name", EQUIVALENCE_MARGIN)
def test_rounding_stays_within_the_margin(
    lab: Lab, laws: Laws, name: Dtype, figure: Figure
) -> None:
    moved = total_variation(laws_in(getattr(torch, name), *laws), laws[0])
    margin = EQUIVALENCE_MARGIN[name]
    figure(
        f"{name}, {len(moved)} places: total variation {moved.median():.1e} in "
        f"the median, {moved.max():.1e} at most (margin {margin:.1e})",
    )
    assert moved.max() <= min(margin, rounding_bound(name, laws[0].shape[1]))
    assert moved.max() > margin / 1000


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("name", ["float64", *EQUIVALENCE_MARGIN])
def test_verification_has_this_law(laws: Laws, name: str) -> None:
    for place in (0, 7, 31):
        assert not len(misplaced(getattr(torch, name), laws[0][place], laws[1][place]))


def test_float64_moves_nothing(laws: Laws) -> None:
    assert total_variation(laws_in(torch.float64, *laws), laws[0]).max() < 1e-14


@pytest.mark.parametrize("name", EQUIVALENCE_MARGIN)
def test_leniency_is_beyond_the_margin(laws: Laws, name: str) -> None:
    """p / q taken times 1.25."""
    moved = total_variation(laws_in(getattr(torch, name), *laws, lenience=1.25), laws[0])
    assert moved.median() > EQUIVALENCE_MARGIN[name]


def test_half_precision_is_beyond_the_margin_of_float32(laws: Laws) -> None:
    for dtype in (torch.float16, torch.bfloat16):
        moved = total_variation(laws_in(dtype, *laws), laws[0])
        assert moved.median() > EQUIVALENCE_MARGIN["float32"]


def test_other_thresholds_are_noticed(laws: Laws, monkeypatch: pytest.MonkeyPatch) -> None:
    """Acceptance decided in float32 instead of float64, or the residual taken in bfloat16."""
    from specref.torch_backend.verification import chains

    def in_float32(p: Tensor, q: Tensor, drafts: Tensor, uniforms: Tensor) -> Tensor:
        tokens = drafts[:, :-1, None]
        chances = (law.gather(2, tokens).float() for law in (p[:, :-1], q))
        ratio = next(chances) / next(chances)
        return uniforms < ratio[..., 0].double()

    with monkeypatch.context() as planted:
        planted.setattr(chains, "_accepted", in_float32)
        assert len(misplaced(torch.float64, laws[0][0], laws[1][0]))
    weights = chains._last_weights
    monkeypatch.setattr(chains, "_last_weights", lambda *a: weights(*a).bfloat16())
    assert len(misplaced(torch.float32, laws[0][0], laws[1][0]))
