"""Blocks as one array: of any form, padded; what is no block is named by its place."""

import re
from typing import Any

import numpy as np
import pytest

from specref.statistics.campaign.blocks import as_blocks, check_ids, fitted

PADDED = [[2, -1, -1], [0, 1, 0], [-1, -1, -1]]


@pytest.mark.parametrize(
    "blocks",
    [
        [(2,), (0, 1, 0), ()],
        ([2, -1], [0, 1, 0], [-1]),
        [np.array([2]), (np.int32(0), np.int8(1), 0), ()],
        np.array(PADDED, dtype=np.int8),
        np.array(PADDED),
    ],
)
def test_blocks_are_one_array(blocks: Any) -> None:
    array = as_blocks(blocks)
    assert array.tolist() == PADDED
    assert array.dtype == np.int64
    assert array is not blocks


def test_no_blocks_are_an_array_without_rows() -> None:
    assert as_blocks([]).shape == (0, 0)
    assert as_blocks([(), ()]).shape == (2, 0)
    assert as_blocks(np.zeros((0, 4), dtype=int)).shape == (0, 4)


@pytest.mark.parametrize(
    ("blocks", "error", "message"),
    [
        (np.zeros((1, 2)), TypeError, "drafts has dtype float64: expected integers"),
        (np.ones((1, 2), dtype=bool), TypeError, "drafts has dtype bool: expected integers"),
        (
            [(0,), (1, 0.5)],
            TypeError,
            "drafts has tokens of dtype float64, or bool: expected integers",
        ),
        (
            [(0,), (1, True)],
            TypeError,
            "drafts has tokens of dtype int64, or bool: expected integers",
        ),
        (np.zeros(3, dtype=int), ValueError, "drafts has shape (3,): expected two dimensions"),
        (
            np.zeros((1, 2, 3), dtype=int),
            ValueError,
            "drafts has shape (1, 2, 3): expected two dimensions",
        ),
        (
            [(0, 1), (0, -2), (-3,)],
            ValueError,
            "drafts[1, 1] = -2: expected a token id, or -1 for none",
        ),
        (
            [(0, 1, 1), (0, -1, 1), (-1, 0)],
            ValueError,
            "drafts[1] = [ 0 -1  1]: a token follows padding",
        ),
        (
            np.array([[0, -1, -1], [-1, 0, -1], [-1, 2, -1]]),
            ValueError,
            "drafts[1] = [-1  0 -1]: a token follows padding",
        ),
    ],
)
def test_what_is_no_block_is_named(blocks: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        as_blocks(blocks, "drafts")


def test_blocks_are_fitted_to_a_length() -> None:
    blocks = np.array([[2, -1, -1], [0, 1, -1]])
    for length in (2, 3, 5):
        padding = [-1] * (length - 2)
        assert fitted(blocks, length).tolist() == [[2, -1, *padding], [0, 1, *padding]]
    with pytest.raises(ValueError, match=r"^blocks\[1\] has more than 1 tokens$"):
        fitted(np.vstack([blocks, blocks]), 1)
    with pytest.raises(ValueError, match=r"^blocks\[0\] has more than 0 tokens$"):
        fitted(blocks, 0)


def test_ids_are_below_the_size() -> None:
    check_ids(np.array([[0, 2, -1]]), 3, "drafts")
    for tokens, place in (([[0, 3], [3, 3]], "[0, 1] = 3"), ([[0, 2], [-2, 4]], "[1, 0] = -2")):
        message = f"drafts{place}: expected a token id < 3, or -1"
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            check_ids(np.array(tokens), 3, "drafts")
