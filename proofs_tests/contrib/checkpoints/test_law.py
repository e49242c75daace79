"""Laws that checkpoints can have: read, written, refused; under settings, worked out by hand."""

import itertools
import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specref.contrib.checkpoints import shaped
from specref.contrib.checkpoints.law import NAMED, as_law, as_laws, load_laws, named_pair, plain
from specref.models import Model, iid_model
from specref.vocabulary import Vocabulary

LAW: dict[str, Any] = {
    "tokens": ["a", "b", "!"],
    "eos": "!",
    "back": 2,
    "initial": ["1/2", "1/2", 0],
    "rows": {"a": ["1/4", "1/4", "1/2"], "b": [1, 0, 0]},
}


def test_the_model_reads_the_token_so_many_places_back() -> None:
    law = as_law(LAW)
    assert law.start == 3
    assert law.size == 4
    assert law.eos == 2
    for context in itertools.chain.from_iterable(
        itertools.product(range(2), repeat=n) for n in range(4)
    ):
        wanted = LAW["rows"]["ab"[context[-2]]] if len(context) >= 2 else LAW["initial"]
        assert list(law.model.next_token(context)) == [Fraction(p) for p in wanted]


@pytest.mark.parametrize("name", NAMED)
def test_laws_are_read_as_they_are_written(name: str, tmp_path: Path) -> None:
    for law in named_pair(name).values():
        assert plain(as_law(json.loads(json.dumps(plain(law))))) == plain(law)
    path = tmp_path / "pair.json"
    path.write_text(json.dumps({role: plain(law) for role, law in named_pair(name).items()}))
    assert list(map(plain, load_laws(str(path)).values())) == list(
        map(plain, named_pair(name).values())
    )


@pytest.mark.parametrize("name", NAMED)
def test_built_in_laws_can_end_and_have_rows_that_differ(name: str) -> None:
    for role, law in named_pair(name).items():
        assert all(row[law.eos] >= Fraction(4, 100) for row in (law.initial, *law.rows))
        rows = [row for token, row in enumerate(law.rows) if token != law.eos]
        distances = [abs(p - q).sum() / 2 for p, q in itertools.combinations(rows, 2)]
        if role == "target" and name != "far":
            assert min(distances) >= Fraction(2, 10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": {"a": ["1/4", "1/4", "1/4"], "b": [1, 0, 0]}}, r"law.rows\['a'\] sums to 3/4"),
        ({"rows": {"a": [1, 0], "b": [1, 0, 0]}}, r"law.rows\['a'\] has length 2: expected 3"),
        ({"rows": {"a": [1, 0, 0]}}, "law.rows has no row for 'b'"),
        ({"rows": {**LAW["rows"], "c": [1, 0, 0]}}, r"law.rows\['c'\]: expected one of the tok"),
        ({"rows": [[1, 0, 0]]}, "law.rows = .*: expected an object"),
        ({"initial": [0.5, 0.4, 0.0]}, r"law.initial sums to 0.9"),
        ({"tokens": ["a", "<s>", "!"]}, r"law.tokens\[1\] = '<s>': expected a string other"),
        ({"tokens": ["a", 1, "!"]}, r"law.tokens\[1\] = 1"),
        ({"tokens": "ab!"}, "law.tokens = 'ab!': expected a list"),
        ({"eos": "?"}, "eos = '\\?': expected one of the tokens"),
        ({"back": 0}, "law.back = 0: expected an integer >= 1"),
        ({"back": True}, "law.back = True"),
        ({"order": 1}, "law has the unknown key 'order'"),
    ],
)
def test_a_bad_law_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        as_law({**LAW, **change})


def test_zeros_and_ones_go_with_floats() -> None:
    law = as_law({**LAW, "initial": [0.5, 0.5, 0], "rows": {"a": [0, 1, 0], "b": [0.25, 0.75, 0]}})
    assert law.initial.tolist() == [0.5, 0.5, 0.0]
    assert law.rows[0].tolist() == [Fraction(0), Fraction(1), Fraction(0)]
    with pytest.raises(
        TypeError, match=r"law.initial\[1\] = .*: expected all exact numbers or all"
    ):
        as_law({**LAW, "initial": ["1/2", 0.5, 0]})


def test_other_input_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="law has no 'initial'"):
        as_law({"tokens": ["a"]})
    with pytest.raises(TypeError, match="law = 3: expected an object"):
        as_law(3)
    with pytest.raises(ValueError, match="law has drafter: expected target and drafter"):
        as_laws({"drafter": LAW})
    with pytest.raises(ValueError, match=r"law.target.back = 0"):
        as_laws({"target": {**LAW, "back": 0}, "drafter": LAW})
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(ValueError, match=r"broken\.json is not JSON"):
        load_laws(str(broken))
    with pytest.raises(ValueError, match="law = 'none': expected one of order-1, lookback"):
        named_pair("none")


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
