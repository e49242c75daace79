"""The comparison with a law notices what is off, and asks for every row."""

from collections.abc import Callable

import numpy as np
import pytest

from specref.arrays import Floats
from specref.contrib.checkpoints.fidelity import TOLERANCE, compare
from specref.contrib.checkpoints.law import NAMED, Law, as_law, named_pair, plain
from specref.vocabulary import Tokens

LAW = named_pair("lookback-3")["target"]


def computed(law: Law) -> Callable[[Tokens], Floats]:
    """The law itself, as an engine would give it: one column more, for the start token."""

    def probabilities(ids: Tokens) -> Floats:
        rows = [law.model.next_token(ids[1:known]) for known in range(1, len(ids) + 1)]
        return np.array([[*row, 0] for row in rows], dtype=np.float64)

    return probabilities


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


@pytest.mark.parametrize("name", NAMED)
def test_the_law_itself_passes_and_every_row_is_asked_for(name: str) -> None:
    for law in named_pair(name).values():
        found = compare(law, computed(law), rng())
        assert found.faithful
        assert found.largest == found.impossible == 0
        assert found.contexts > 200
        assert found.rows == len(law.vocabulary), "a row for each token but EOS, and the initial"


@pytest.mark.parametrize("back", [1, 2, 4])
def test_a_law_of_another_token_is_noticed(back: int) -> None:
    found = compare(LAW, computed(as_law({**plain(LAW), "back": back})), rng())
    assert not found.faithful
    assert found.largest > 0.1
    assert found.impossible > 0.1


@pytest.mark.parametrize("size", [2 * TOLERANCE, 0.9 * TOLERANCE])
def test_one_probability_that_is_off_is_noticed(size: float) -> None:
    def probabilities(ids: Tokens) -> Floats:
        rows = computed(LAW)(ids)
        rows[7, [1, 3]] += size, -size
        return rows

    found = compare(LAW, probabilities, rng())
    assert found.faithful == (size < TOLERANCE)
    assert len(found.context) == 7
    assert found.token in (1, 3)


def test_more_columns_are_impossible_tokens_and_fewer_an_error() -> None:
    wide = compare(LAW, lambda ids: np.pad(computed(LAW)(ids), ((0, 0), (0, 26))), rng())
    assert wide.faithful
    with pytest.raises(ValueError, match=r"shape \(\d+, 5\): expected \(\d+, 6\)"):
        compare(LAW, lambda ids: computed(LAW)(ids)[:, :-1], rng())
    with pytest.raises(ValueError, match="not finite"):
        compare(LAW, lambda ids: computed(LAW)(ids) * np.nan, rng())
