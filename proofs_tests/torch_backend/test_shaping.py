"""Shaping logits, and drawing from the result: laws by equality, draws by their break points.

Nothing here is random: logits have fixed seeds, and where a token begins in the uniform is
bisected on the grid of 2^-53.
"""

from collections.abc import Callable
from fractions import Fraction
from math import fsum
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

import torch
from torch import Tensor

from proofs_tests.helpers.bugs.planted import (
    top_k_with_ties_to_the_higher_id,
    top_p_without_the_crossing_token,
)
from proofs_tests.helpers.torch.laws import CELLS, LAST, cells
from specref.distributions import top_k, top_k_top_p, top_p, with_temperature
from specref.torch_backend.shaping import draw, shape_logits

Shape = Callable[..., Tensor]
LARGE = 152_000
NEVER = -torch.inf


def some_logits(size: int, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(size)
    logits = 3 * torch.randn(8, size, generator=generator, dtype=torch.float64)
    logits[1, ::2] = NEVER
    return logits.to(dtype)


def chained(p: Any, temperature: Any, k: int | None, mass: Any) -> Any:
    p = top_k(with_temperature(p, temperature), k or len(p))
    return p if mass is None else top_p(p, mass)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 1.7])
@pytest.mark.parametrize(
    ("k", "mass"), [(None, None), (3, None), (None, 0.8), (5, 0.7), (40, 0.01)]
)
def test_law_is_that_of_distributions(
    temperature: float, k: int | None, mass: float | None
) -> None:
    logits = some_logits(20)
    found = shape_logits(logits, temperature, k, mass).numpy()
    for row, law in zip(logits.softmax(dim=-1).numpy(), found, strict=True):
        expected = chained(row, temperature, k, mass)
        assert ((law > 0) == (expected > 0)).all()
        assert np.abs(law - expected).max() < 1e-14


TIES = [
    ["1/4", "1/8", "1/4", "1/8", "1/4"],
    ["1/8", "1/8", "1/2", "0", "1/4"],
    ["1/2", "0", "0", "1/4", "1/4"],
]


def differences(shape: Shape) -> list[tuple[Any, ...]]:
    """Rows of ties and dyadic masses, reached exactly, for which the law is another."""
    found = []
    for row in TIES:
        p = np.array([Fraction(x) for x in row])
        logits = torch.tensor([float(x) for x in p], dtype=torch.float64).log()
        for k in (1, 2, 3, 5):
            for mass in (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(1)):
                law = shape(logits, top_k=k, top_p=float(mass)).numpy()
                expected = top_k_top_p(p, k, mass, chained=True).astype(float)
                if np.abs(law - expected).max() > 1e-15:
                    found.append((row, k, mass))
    return found


def test_ties_and_exact_masses() -> None:
    assert differences(shape_logits) == []


def of_probabilities(rule: Callable[..., Any]) -> Shape:
    return lambda logits, top_k, top_p: torch.from_numpy(rule(logits.exp().numpy(), top_k, top_p))


@pytest.mark.parametrize(
    "rule",
    [
        lambda p, k, mass: top_p(top_k_with_ties_to_the_higher_id(p, k), mass),
        lambda p, k, mass: top_p_without_the_crossing_token(top_k(p, k), mass),
        lambda p, k, mass: top_k_top_p(p, k, mass, chained=False),
        lambda p, k, mass: top_p(p, mass),
        lambda p, k, mass: top_k(p, k),
    ],
    ids=["ties to the higher id", "crossing token dropped", "not chained", "no top-k", "no top-p"],
)
def test_other_rules_are_told_apart(rule: Callable[..., Any]) -> None:
    assert differences(of_probabilities(lambda p, k, mass: rule(p, k, mass).copy()))


@pytest.mark.parametrize("temperature", [0.3, 1.0, 1.7])
@pytest.mark.parametrize(
    ("k", "mass"), [(None, None), (50, None), (None, 0.9), (50, 0.5), (3, 0.01)]
)
def test_law_is_that_of_transformers(
    temperature: float, k: int | None, mass: float | None
) -> None:
    """Logits without ties; the warpers in the order of `generate`, and a softmax."""
    pytest.importorskip("transformers", reason="not_run (transformers is not installed)")
    from transformers.generation import logits_process as warpers

    logits = some_logits(1000, torch.float32)
    chain = [warpers.TemperatureLogitsWarper(temperature)]
    chain += [warpers.TopKLogitsWarper(k)] if k else []
    chain += [warpers.TopPLogitsWarper(mass)] if mass else []
    scores = logits
    for warper in chain:
        scores = warper(None, scores)
    found = shape_logits(logits, temperature, k, mass)
    assert torch.equal(found > 0, scores.softmax(dim=-1) > 0)
    assert torch.allclose(found, scores.softmax(dim=-1), rtol=1e-5, atol=0)


def test_temperature_0_is_the_first_largest() -> None:
    logits = torch.tensor([[0.0, 2.0, 2.0, 1.0], [NEVER, -5.0, NEVER, -5.0]])
    expected = torch.tensor([[0.0, 1, 0, 0], [0, 1, 0, 0]])
    assert torch.equal(shape_logits(logits, temperature=0), expected)
    assert torch.equal(shape_logits(logits, temperature=0, top_k=2, top_p=0.5), expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("temperature", [2.0**-126, 1e-6, 1e6, 2.0**126])
def test_extreme_temperatures(dtype: torch.dtype, temperature: float) -> None:
    logits = torch.tensor([1000.0, 900.0, NEVER, 1000.0]).to(dtype)
    expected = [0.5, 0, 0, 0.5] if temperature < 1 else [1 / 3, 1 / 3, 0, 1 / 3]
    found = shape_logits(logits, temperature)
    assert found.tolist() == pytest.approx(expected, abs=1e-4)
    assert found[2] == 0


@pytest.mark.parametrize(
    ("dtype", "result"),
    [
        (torch.float64, torch.float64),
        (torch.float32, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float16, torch.float32),
    ],
)
def test_dtype_and_shape_of_the_law(dtype: torch.dtype, result: torch.dtype) -> None:
    logits = some_logits(12, dtype).view(2, 4, 12)
    before = logits.clone()
    for arguments in ({}, {"temperature": 0}, {"top_k": 3}, {"top_p": 0.5}):
        found = shape_logits(logits, **arguments)
        assert (found.dtype, found.shape) == (result, logits.shape)
        assert torch.equal(found, shape_logits(logits.to(result), **arguments))
        assert torch.equal(found[1, 2], shape_logits(logits[1, 2], **arguments))
    assert torch.equal(logits, before)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"logits": torch.tensor([1, 2])},
            "logits is of torch.int64: expected a tensor of floats",
        ),
        ({"logits": [0.5]}, "logits is of list"),
        ({"logits": torch.tensor(0.5)}, r"logits has shape \(\): expected"),
        ({"logits": torch.empty(2, 0)}, r"logits has shape \(2, 0\)"),
        ({"temperature": -1}, "temperature = -1: expected 0, or"),
        ({"temperature": float("nan")}, "temperature = nan"),
        ({"temperature": float("inf")}, "temperature = inf"),
        ({"temperature": 1e-40}, "temperature = 1e-40"),
        ({"top_k": 0}, "top_k = 0: expected an integer >= 1, or None"),
        ({"top_k": 2.0}, "top_k = 2.0"),
        ({"top_p": 0.0}, r"top_p = 0.0: expected a number in \(0, 1\], or None"),
        ({"top_p": 1.5}, "top_p = 1.5"),
    ],
)
def test_bad_arguments(changed: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        shape_logits(**({"logits": torch.tensor([0.5])} | changed))


# Drawing.


def shares(law: Tensor) -> Tensor:
    """The share of the uniforms that draws each token: the law that is sampled."""
    size = len(law)
    rows = law.expand(size, size)
    ends = cells(lambda u: draw(rows, u) <= torch.arange(size), size).double() / CELLS
    return torch.diff(ends, prepend=torch.zeros(1, dtype=torch.float64))


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_declared_law_is_the_sampled_law(dtype: torch.dtype) -> None:
    for row in some_logits(20, dtype):
        for arguments in ({}, {"top_k": 4}, {"top_p": 0.7}, {"temperature": 0}):
            law = shape_logits(row, **arguments)
            sampled, declared = shares(law), law.double() / law.double().sum()
            assert torch.equal(sampled > 0, law > 0)
            assert (sampled - declared).abs().max() < 1e-15


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("scale", [1.0, 2.0**-14])
def test_ends_of_the_uniform(dtype: torch.dtype, scale: float) -> None:
    """At 0 the first token with weight, at the last number below 1 the last one."""
    law = torch.tensor([[0.0, 0.25, 0.0, 0.75, 0.0], [0, 1, 0, 0, 0]], dtype=dtype) * scale
    for u, tokens in ((0.0, [1, 1]), (2.0**-53, [1, 1]), (LAST, [3, 1]), (1 - 2.0**-24, [3, 1])):
        assert draw(law, torch.tensor([u, u], dtype=torch.float64)).tolist() == tokens
    assert draw(law, torch.tensor([1 - 2.0**-24] * 2)).tolist() == [3, 1]


def large_law() -> Tensor:
    """152,000 tokens in float32, some of 1e-30, with runs of zeros at both ends and inside."""
    law = torch.rand(LARGE, generator=torch.Generator().manual_seed(4)) ** 8
    law[::5] = 1e-30
    law[:40] = law[70_000:90_000] = law[-40:] = 0
    return law / law.sum()


@pytest.mark.parametrize(
    ("dtype", "bound"), [(torch.float64, 1e-12), (torch.float32, 10 * 2**-24)]
)
def test_large_vocabularies_are_drawn_exactly(dtype: torch.dtype, bound: float) -> None:
    """Break points among 152,000 tokens are those of the exactly rounded sum.

    Float32 weights are summed in float32 over 1,024 neighbours: in pairs, ten additions deep.
    """
    law = large_law().to(dtype)
    tokens = torch.tensor([40, 1000, 69_999, 90_000, 120_001, LARGE - 42])
    rows = law.expand(len(tokens), LARGE)
    found = cells(lambda u: draw(rows, u) <= tokens, len(tokens)).double() / CELLS
    exact = law.double().tolist()
    expected = [fsum(exact[: token + 1]) / fsum(exact) for token in tokens.tolist()]
    assert found.tolist() == pytest.approx(expected, abs=bound)
    ends = torch.tensor([0.0, LAST], dtype=torch.float64)
    assert draw(law.expand(2, LARGE), ends).tolist() == [40, LARGE - 41]


def by_search(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    """What is commonly written."""
    ends = probabilities.cumsum(dim=-1, dtype=torch.float64)
    return torch.searchsorted(ends, uniforms[:, None] * ends[:, -1:], right=True)[:, 0]


def impossible(draws: Callable[[Tensor, Tensor], Tensor], law: Tensor, ends: Tensor) -> int:
    """How many of the uniforms next to a break point draw a token of weight 0, or none."""
    points = torch.cat([ends, ends.nextafter(torch.zeros(())), torch.tensor([0.0, LAST])])
    points = points[(points >= 0) & (points < 1)]
    tokens = draws(law.expand(len(points), len(law)), points)
    return int(((tokens >= len(law)) | (law[tokens.clamp(max=len(law) - 1)] <= 0)).sum())


def test_sums_that_are_not_monotone_draw_nothing_impossible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A parallel cumulative sum is wrong by its rounding, up and down: as on a GPU."""
    law = torch.tensor([0.0, 0.1, 0.0, 0.0, 0.2, 0.0, 0.3, 0.4, 0.0, 0.0], dtype=torch.float64)
    noise = torch.tensor([1, 0, 2, -1, 0, 3, 0, -2, 1, 0]) * 2.0**-50
    clean = Tensor.cumsum

    def parallel(self: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
        return clean(self, dim, dtype=dtype) + noise

    monkeypatch.setattr(Tensor, "cumsum", parallel)
    ends = law.cumsum(0)
    assert impossible(draw, law, ends) == 0
    assert impossible(by_search, law, ends) > 0


@pytest.mark.parametrize(
    ("law", "uniforms"), [((2, 3), (3,)), ((2, 3), (2, 1)), ((3,), (1,)), ((2, 0), (2,))]
)
def test_shapes_of_a_draw(law: tuple[int, ...], uniforms: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="uniforms has shape"):
        draw(torch.ones(law), torch.zeros(uniforms))
    assert draw(torch.ones(4, 2, 3), torch.full((4, 2), 0.5)).tolist() == [[1, 1]] * 4
    assert draw(torch.ones(0, 3), torch.zeros(0)).shape == (0,)
