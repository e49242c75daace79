"""What is counted does not tell whose a text is: the premise of the test of signs.

If the texts of some pairs are exchanged, every table keeps its cells, and the sum of d d' over
pairs stays as it is; of single numbers the differences change their signs alone.
"""

import numpy as np
import pytest

from specref.contrib.compare import features
from specref.contrib.compare.features import by_prompt, counted, numbers, side_of
from specref.contrib.compare.pairing import Pairs
from specref.contrib.compare.records import Texts

PAIRS, LENGTH, TOKENS = 600, 3, 9
CALLED = [f"token {one}" for one in range(TOKENS)]


def texts(rows, endings):
    starts = np.arange(0, rows.size + 1, LENGTH)
    return Texts("t", rows.ravel(), starts, PROMPTS, ["a", "b"], list(endings), None, 0)


PROMPTS = np.arange(PAIRS) // (PAIRS // 2)
EVERY = np.arange(PAIRS)


def all_counted(rows, endings):
    """{name: (labels, second moments)} of all tables, and the numbers' distances."""
    sides = tuple(side_of(texts(*one), EVERY) for one in zip(rows, endings, strict=True))
    pairs = Pairs(EVERY, EVERY, PROMPTS, ["a", "b"], (0, 0), [])
    tables = [one.table(PAIRS) for one in counted(sides, PAIRS, CALLED)]
    tables += by_prompt(sides, pairs, CALLED)
    found = {one.name: (one.labels, one.second().tolist()) for one in tables}
    singles = {one.name: np.abs(one.values[0] - one.values[1]) for one in numbers(sides, pairs)}
    return found, {name: values.round(12).tolist() for name, values in singles.items()}


def exchanged():
    """Two files, and the same with the texts of half of the pairs exchanged."""
    rng = np.random.default_rng(1)
    rows = rng.integers(0, TOKENS, (2, PAIRS, LENGTH))
    endings = rng.choice(["stop", "length"], (2, PAIRS))
    swap = rng.random(PAIRS) < 0.5
    other = [np.where(swap[:, None], rows[1 - side], rows[side]) for side in (0, 1)]
    names = [np.where(swap, endings[1 - side], endings[side]) for side in (0, 1)]
    return (rows, endings), (other, names)


def test_exchanged_texts_change_no_table_and_no_distance():
    one, other = exchanged()
    found, distances = all_counted(*one)
    assert {"whole texts", "endings", "tokens given the one before", "a", "b"} <= set(found)
    assert len(found["whole texts"][0]) == features.CELLS + 1, "some are left out"
    assert (found, distances) == all_counted(*other)


def test_whole_texts_have_one_number_exactly_if_they_are_equal():
    """Of a pair the first number tells nothing of sides; beginnings are texts of their own."""
    rng = np.random.default_rng(2)
    rows = [[rng.integers(0, 2, rng.integers(1, 5)).tolist() for _ in EVERY] for _ in (0, 1)]
    sides = []
    for one in rows:
        starts = np.concatenate([[0], np.cumsum([*map(len, one)])])
        tokens = np.concatenate(one)
        ended = [None] * PAIRS
        sides.append(side_of(Texts("t", tokens, starts, PROMPTS, [], ended, None, 0), EVERY))
    found = np.stack(features._whole(tuple(sides)))
    first = {}
    for pair, both in enumerate(zip(*rows, strict=True)):
        for text, number in zip(both, found[:, pair].tolist(), strict=True):
            assert first.setdefault(tuple(text), number) == number
            assert number // 2 <= pair
    assert len({*first.values()}) == len(first) == 2 + 4 + 8 + 16


def numbered_by_side(sides):
    """All texts of one side first."""
    number = len(sides[0].lengths)
    known, found = {}, np.empty((2, number), dtype=np.int64)
    for index, side in enumerate(sides):
        ends = side.lengths.cumsum()
        for pair in range(number):
            key = side.token[ends[pair] - LENGTH : ends[pair]].tobytes()
            found[index, pair] = known.setdefault(key, 2 * pair + index)
    return found[0], found[1]


def test_a_table_that_tells_sides_apart_would_be_seen(monkeypatch: pytest.MonkeyPatch):
    one, other = exchanged()
    monkeypatch.setattr(features, "_whole", numbered_by_side)
    assert all_counted(*one) != all_counted(*other)
