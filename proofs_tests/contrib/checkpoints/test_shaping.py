"""Laws under sampler settings, by numbers worked out by hand."""

from collections.abc import Mapping

import numpy as np
import pytest

from specref.contrib.checkpoints import shaped
from specref.models import Model, iid_model
from specref.vocabulary import Vocabulary

TENTHS = iid_model(Vocabulary("abcd"), ["4/10", "3/10", "2/10", "1/10"])


def row(model: Model, settings: Mapping[str, float]) -> list[str]:
    found = shaped(model, settings)
    assert found is not None
    return [str(p) for p in found.next_token(())]


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, "2/5 3/10 1/5 1/10"),
        ({"temperature": 0.5}, "8/15 3/10 2/15 1/30"),  # 16 + 9 + 4 + 1 = 30
        ({"top_k": 2}, "4/7 3/7 0 0"),
        ({"top_k": 1}, "1 0 0 0"),
        ({"top_k": 9}, "2/5 3/10 1/5 1/10"),
        ({"top_k": 3, "top_p": 0.71}, "4/7 3/7 0 0"),  # 7 of 9
        ({"top_p": 0.69}, "4/7 3/7 0 0"),
        ({"top_p": 0.71}, "4/9 1/3 2/9 0"),  # 4 + 3 are not enough
        ({"top_p": 0.39}, "1 0 0 0"),
        ({"top_p": 1.0}, "2/5 3/10 1/5 1/10"),
        ({"min_p": 0.51}, "4/7 3/7 0 0"),  # 2/10 is half of the largest
        ({"min_p": 0.49}, "4/9 1/3 2/9 0"),
        ({"min_p": 0.49, "temperature": 0.5}, "16/29 9/29 4/29 0"),
        ({"temperature": 0.5, "min_p": 0.49}, "16/25 9/25 0 0"),  # of 16, 9, 4 and 1
        ({"temperature": 0.5, "top_p": 0.82}, "16/25 9/25 0 0"),  # 25 of 30
        ({"top_p": 0.82, "temperature": 0.5}, "16/29 9/29 4/29 0"),
    ],
)
def test_rows(settings: dict[str, float], wanted: str) -> None:
    assert row(TENTHS, settings) == wanted.split()


def test_floats_and_temperatures_that_are_no_unit_fraction() -> None:
    model = iid_model(Vocabulary("ab"), [0.2, 0.8])
    warm = shaped(model, {"temperature": 2.0})
    assert warm is not None
    np.testing.assert_allclose(warm.next_token(()), [1 / 3, 2 / 3], rtol=1e-12)


def test_equal_tokens_are_cut_together_or_not_at_all() -> None:
    model = iid_model(Vocabulary("abcd"), ["4/10", "2/10", "2/10", "2/10"])
    assert row(model, {"min_p": 0.51}) == ["1", "0", "0", "0"]
    found = shaped(model, {"top_p": 0.7})
    assert found is not None
    with pytest.raises(ValueError, match=r"top_p = 0\.7: rounding or order decides"):
        found.next_token(())
    found = shaped(model, {"top_k": 2})
    assert found is not None
    with pytest.raises(ValueError, match="top_k = 2: rounding or order decides"):
        found.next_token(())
    assert row(model, {"top_k": 4}) == ["2/5", "1/5", "1/5", "1/5"]


@pytest.mark.parametrize("settings", [{"top_p": 0.7}, {"top_p": 0.4}, {"min_p": 0.5}])
def test_a_cut_that_rounding_decides_is_refused(settings: dict[str, float]) -> None:
    found = shaped(TENTHS, settings)
    assert found is not None
    with pytest.raises(ValueError, match="rounding"):
        found.next_token(())


def test_a_penalty_depends_on_the_text() -> None:
    assert shaped(TENTHS, {"temperature": 0.5, "repetition_penalty": 3.0}) is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"top_q": 0.5},
            "settings has 'top_q': expected temperature, top_k, top_p, min_p or a penalty",
        ),
        ({"temperature": 0.0}, r"settings\['temperature'\] = 0.0: expected a number above 0$"),
        ({"top_p": 1.5}, r"settings\['top_p'\] = 1.5: expected a number above 0 and at most 1"),
        ({"top_k": 1.5}, r"settings\['top_k'\] = 1.5: expected a whole number"),
        ({"top_k": float("inf")}, r"settings\['top_k'\] = inf: expected a whole number"),
        ({"top_k": 0}, r"settings\['top_k'\] = 0: expected a number above 0$"),
        ({"min_p": float("nan")}, r"settings\['min_p'\] = nan: expected a number above 0 and"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shaped(TENTHS, settings)
