"""Blocks of token ids as one array, padded with -1."""

from collections.abc import Sequence

import numpy as np

from specref.arrays import NO_TOKEN, Ints
from specref.vocabulary import Tokens


def as_blocks(blocks: Sequence[Tokens] | Ints, name: str = "blocks") -> Ints:
    """Blocks as one array, padded with -1.

    * raises `TypeError`: Tokens are not integers.
    * raises `ValueError`: The array is not two-dimensional, an entry is below -1, or a token
      follows a -1.
    """
    if isinstance(blocks, np.ndarray):
        if not np.issubdtype(blocks.dtype, np.integer):
            raise TypeError(f"{name} has dtype {blocks.dtype}: expected integers")
        array = blocks.astype(np.int64)
    else:
        flat = [token for block in blocks for token in block]
        kind = np.array(flat).dtype
        if flat and (bool in set(map(type, flat)) or not np.issubdtype(kind, np.integer)):
            raise TypeError(f"{name} has tokens of dtype {kind}, or bool: expected integers")
        array = np.full((len(blocks), max(map(len, blocks), default=0)), NO_TOKEN)
        for row, block in zip(array, blocks, strict=True):
            row[: len(block)] = block
    if array.ndim != 2:
        raise ValueError(f"{name} has shape {array.shape}: expected two dimensions")
    wrong = np.argwhere(array < NO_TOKEN)
    if len(wrong):
        row, column = wrong[0]
        value = array[row, column]
        raise ValueError(f"{name}[{row}, {column}] = {value}: expected a token id, or -1 for none")
    gaps = np.flatnonzero(((array[:, 1:] >= 0) & (array[:, :-1] < 0)).any(axis=1))
    if len(gaps):
        raise ValueError(f"{name}[{gaps[0]}] = {array[gaps[0]]}: a token follows padding")
    return array


def fitted(blocks: Ints, length: int) -> Ints:
    """The same blocks in `length` columns.

    * raises `ValueError`: A block is longer.
    """
    longer = np.argwhere(blocks[:, length:] >= 0)
    if len(longer):
        raise ValueError(f"blocks[{longer[0, 0]}] has more than {length} tokens")
    missing = length - blocks.shape[1]
    if missing <= 0:
        return blocks[:, :length]
    return np.pad(blocks, ((0, 0), (0, missing)), constant_values=NO_TOKEN)


def check_ids(tokens: Ints, size: int, name: str) -> None:
    """Raise `ValueError` unless every token is an id, or -1 for none."""
    wrong = np.argwhere((tokens >= size) | (tokens < NO_TOKEN))
    if len(wrong):
        row, column = wrong[0]
        value = tokens[row, column]
        raise ValueError(f"{name}[{row}, {column}] = {value}: expected a token id < {size}, or -1")
