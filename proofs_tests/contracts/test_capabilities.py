"""What an implementation may claim, one by one."""

from typing import Any, get_type_hints

import numpy as np
import pytest

from specref.contracts.capabilities import (
    FLAGS,
    WORDS,
    Capabilities,
    Claims,
    capabilities_of,
    capable,
)


@pytest.mark.parametrize("name", FLAGS)
def test_flags_are_true_or_false(name: str) -> None:
    for value in (True, False):
        assert getattr(Capabilities(**{name: value}), name) is value
    for value in (1, 0, None, "true"):
        with pytest.raises(TypeError) as raised:
            Capabilities(**{name: value})
        assert str(raised.value) == f"{name} = {value!r}: expected True or False"


@pytest.mark.parametrize("name", WORDS)
def test_words_are_those_that_are_known(name: str) -> None:
    needs = {"arrays": "torch"} if name == "dtype" else {}
    for value in WORDS[name]:
        assert getattr(Capabilities(**{name: value, **needs}), name) == value
    with pytest.raises(ValueError, match=f"^{name} = 'x': expected one of"):
        Capabilities(**{name: "x"})


@pytest.mark.parametrize(
    ("name", "taken", "refused", "expected"),
    [
        ("batch", [None, 1, 8_192, np.int64(3)], [0, -1, 2.5, True], "an integer >= 1, or None"),
        ("tolerance", [0, 0.0, 0.999, np.float64(0.1)], [-1e-9, 1, "0"], "a number in [0, 1)"),
    ],
)
def test_numbers_have_their_range(name: str, taken: list, refused: list, expected: str) -> None:
    for value in taken:
        assert getattr(Capabilities(**{name: value}), name) == value
    for value in refused:
        with pytest.raises(ValueError) as raised:  # noqa: PT011
            Capabilities(**{name: value})
        assert str(raised.value) == f"{name} = {value!r}: expected {expected}"


@pytest.mark.parametrize(("dtype", "device"), [("bfloat16", "cpu"), ("float32", "cuda")])
def test_numpy_has_no_bfloat16_and_no_device(dtype: Any, device: str) -> None:
    assert Capabilities(dtype=dtype, device=device, arrays="torch").device == device
    message = f"arrays = 'numpy': expected 'torch' for {dtype} on {device}"
    with pytest.raises(ValueError, match=f"^{message}$"):
        Capabilities(dtype=dtype, device=device)


def sampler(target_probs: Any, draft_probs: Any, draft_tokens: Any, *, rng: Any) -> None:
    """A sampler without claims."""


def test_claims_override_those_of_the_function() -> None:
    assert capabilities_of(sampler) == Capabilities()
    claimed = capable(rule="block", batch=4)(lambda *given: None)
    assert capabilities_of(claimed, batch=None) == Capabilities(rule="block")
    assert capabilities_of(claimed, ragged=False) == Capabilities("block", batch=4, ragged=False)
    with pytest.raises(
        TypeError, match=r"^claim 'speed' is unknown: expected one of arrays, batch"
    ):
        capabilities_of(sampler, speed=9)
    claimed.specref_capabilities = {"rule": "block"}  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="expected Capabilities"):
        capabilities_of(claimed)


def test_a_kind_of_sampler_may_be_unable_to_claim() -> None:
    def limited() -> None: ...

    limited.specref_claimable = ("rule", "batch")  # type: ignore[attr-defined]
    assert capabilities_of(limited, rule="block", ragged=True).rule == "block"  # as it is
    with pytest.raises(
        TypeError, match=r"^claim 'ragged' is none of .*: expected one of batch, r"
    ):
        capabilities_of(limited, ragged=False)


def test_the_claims_of_type_checkers_are_the_fields_of_the_record() -> None:
    assert get_type_hints(Claims) == get_type_hints(Capabilities)
    assert not Claims.__required_keys__
