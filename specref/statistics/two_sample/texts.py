"""Texts of two samplers: checked input, and the prefixes that were seen."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from specref.arrays import NO_TOKEN, Ints
from specref.vocabulary import Tokens

Texts: TypeAlias = Sequence[Tokens] | Ints
END = NO_TOKEN
LARGEST = int(np.iinfo(np.int64).max)


def as_texts(texts: Texts, name: str) -> Ints:
    """Texts as one array, padded with -1.

    * raises `TypeError`: A text is not a sequence, or a token is not an integer.
    * raises `ValueError`: A text is empty, a token follows padding, or an id is out of range.
    """
    if isinstance(texts, np.ndarray):
        array = _checked_array(texts, name)
    else:
        rows = _checked_rows(texts, name)
        array = np.full((len(rows), max(map(len, rows), default=0)), END, dtype=np.int64)
        for line, row in zip(array, rows, strict=True):
            line[: len(row)] = row
    _check_padding(array, name)
    return array


def _checked_array(texts: NDArray[Any], name: str) -> Ints:
    if texts.ndim != 2:
        raise ValueError(f"{name} has shape {texts.shape}: expected two dimensions")
    if not np.issubdtype(texts.dtype, np.integer):
        at = f"{name}[0, 0] = {texts[0, 0]!r}" if texts.size else name
        raise TypeError(f"{at} has dtype {texts.dtype}: expected integers")
    wrong = np.argwhere((texts < END) | (texts > LARGEST))
    if len(wrong):
        row, column = wrong[0].tolist()
        _check_token(int(texts[row, column]), name, row, column)
    return texts.astype(np.int64)


def _checked_rows(texts: Iterable[Any], name: str) -> list[list[int]]:
    rows = []
    for row, text in enumerate(_listed(texts, name)):
        rows.append(_listed(text, f"{name}[{row}]"))
        for column, token in enumerate(rows[-1]):
            _check_token(token, name, row, column)
    return rows


def _listed(values: Any, label: str) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise TypeError(f"{label} = {values!r}: expected a sequence") from None


def _check_token(token: Any, name: str, row: int, column: int) -> None:
    at = f"{name}[{row}, {column}] = {token!r}"
    if isinstance(token, bool) or not isinstance(token, (int, np.integer)):
        raise TypeError(f"{at}: expected a token id, an integer")
    if not END <= token <= LARGEST:
        raise ValueError(f"{at}: expected a token id >= 0, or -1 for padding")


def _check_padding(array: Ints, name: str) -> None:
    empty = np.flatnonzero((array < 0).all(axis=1))
    if len(empty):
        raise ValueError(f"{name}[{empty[0]}] is empty: expected at least one token")
    gaps = np.argwhere((array[:, 1:] >= 0) & (array[:, :-1] < 0))
    if len(gaps):
        row, column = gaps[0] + (0, 1)
        value = array[row, column]
        raise ValueError(f"{name}[{row}, {column}] = {value}: a token follows padding")


class Prefixes:
    """Numbers every prefix that was seen, from 1; the empty one is 0.

    Each text also ends with the token END (-1), so whole texts have numbers of their own.
    """

    def __init__(self) -> None:
        self.parent, self.token, self.depth = [-1], [END], [0]
        self._child: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self.parent)

    def walk(self, texts: Ints) -> Ints:
        """The number of each prefix of each text, END last, then -1."""
        tokens = np.hstack([texts, np.full((len(texts), 1), END)])
        numbers = np.full(tokens.shape, -1)
        here = np.zeros(len(texts), dtype=np.int64)
        for j, token in enumerate(tokens.T):
            going = here >= 0
            here[going] = self._follow(here[going], token[going])
            numbers[:, j] = here
            here[token == END] = -1
        return numbers

    def text(self, number: int) -> Tokens:
        """The prefix with a number."""
        tokens = []
        while number > 0:
            tokens.append(self.token[number])
            number = self.parent[number]
        return tuple(reversed(tokens))

    def _follow(self, numbers: Ints, tokens: Ints) -> Ints:
        kinds, kind = np.unique(tokens, return_inverse=True)
        codes, inverse = np.unique(numbers * len(kinds) + kind, return_inverse=True)
        parents, tokens = codes // max(1, len(kinds)), kinds[codes % max(1, len(kinds))]
        found = [self._add(*pair) for pair in zip(parents.tolist(), tokens.tolist(), strict=True)]
        return np.array(found, dtype=np.int64)[inverse]

    def _add(self, parent: int, token: int) -> int:
        number = self._child.setdefault((parent, token), len(self.parent))
        if number == len(self.parent):
            self.parent.append(parent)
            self.token.append(token)
            self.depth.append(self.depth[parent] + 1)
        return number
