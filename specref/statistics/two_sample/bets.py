"""Bets on whole texts of two samplers, learned from earlier texts of both.

Text i of one sampler is paired with text i of the other. A bet is a function h of texts, into
[-1, 1], fixed before the pair is seen; at stake s < 1 it pays 1 + s h(X) on the speculative text
and 1 - s h(Y) on the plain one. Given all earlier pairs, let X and Y be independent with one
law. Then h is fixed, the two factors are independent, and their mean is (1 + s m)(1 - s m) =
1 - s^2 m^2 <= 1, where m is the mean of h. So the product over pairs is a supermartingale, so is
the average of such products, and by Ville's inequality it ever reaches 1/alpha with probability
at most alpha. Nothing else is assumed: the law need not be known, and may change from pair to
pair, even with what came before, as long as both samplers share it.

The bet is h = (P - Q) / (P + Q) for estimated laws P and Q (with the true ones the best bet, and
the product a likelihood ratio against the mixture: Turner, Ly and Grünwald, arXiv:2106.02693).
P / Q is estimated by the product of (more + 10) / (fewer + 10) over the tokens of a text, where
more and fewer count the same token at the same place in earlier texts; four notions of place
give four bets. Tokens paired at equal prefixes could be bet on as well, but only if texts are
independent, and tokens at rare prefixes would be left without a partner.

First come checked input, and the prefixes that were seen.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from specref.arrays import NO_TOKEN, Ints
from specref.statistics.campaign.bets import log_mean
from specref.statistics.campaign.least import Cells
from specref.statistics.campaign.verdict import Suspect
from specref.vocabulary import Tokens

Texts: TypeAlias = Sequence[Tokens] | Ints
END = NO_TOKEN
LARGEST = int(np.iinfo(np.int64).max)


def as_texts(texts: Texts, name: str) -> Ints:
    """Texts as one array, padded with -1."""
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


VIEWS = ("prefix", "position", "previous", "anywhere")
DISJOINT = ("prefix", "position")
"""Views whose cells at one place, or after as many tokens, a text visits once at most."""
STAKES = np.array([0.9, 0.5, 0.25, 0.1])
SUSPECT_STAKE = 0.9
SHRINKAGE = 10.0
SUSPECTS = 5
DIGITS = 9
Cell: TypeAlias = tuple[str, int, int]  # view, place, token


class Visits(NamedTuple):
    """The cells that each row visits, and how often; each pair of row and cell once."""

    row: Ints
    cell: Ints
    times: Ints


class Places:
    """Numbers the events that are counted: a token, or the end of a text, at a place of a view."""

    def __init__(self) -> None:
        self.prefixes = Prefixes()
        self.names: dict[Cell, int] = {}
        self.texts: list[int] = []
        self._of: list[tuple[int, ...]] = [(0,) * len(VIEWS)]

    def visits(self, texts: Ints) -> list[Visits]:
        """The cells that each text visits, one item for each view."""
        numbers = self.prefixes.walk(texts)
        for number in range(len(self._of), len(self.prefixes)):
            self._number(number)
        row, column = np.nonzero(numbers > 0)
        seen, which = np.unique(numbers[row, column], return_inverse=True)
        cells = np.array([self._of[number] for number in seen.tolist()])[which]
        return [_distinct(row, cell) for cell in cells.T]

    def describe(self, cell: Cell) -> str:
        """Name a cell for the report."""
        view, place, token = cell
        what = "the end" if token == END else f"token {token}"
        if view == "prefix":
            return f"{view}: {what} after {self.prefixes.text(place)}"
        where = {
            "position": f"at position {place}",
            "previous": "at the start" if place == END else f"after a token {place}",
            "anywhere": "anywhere",
        }
        return f"{view}: {what} {where[view]}"

    def _number(self, number: int) -> None:
        tree = self.prefixes
        parent, token = tree.parent[number], tree.token[number]
        places = (parent, tree.depth[parent], tree.token[parent], 0)
        cells = [(view, place, token) for view, place in zip(VIEWS, places, strict=True)]
        self._of.append(tuple(self.names.setdefault(cell, len(self.names)) for cell in cells))
        if token == END:
            self.texts.append(self._of[-1][0])


def _distinct(row: Ints, cell: Ints) -> Visits:
    size = int(cell.max()) + 1
    codes, times = np.unique(row * size + cell, return_counts=True)
    return Visits(codes // size, codes % size, times)


class Bets:
    """The wealth of every bet, and what it was learned from.

    * `wealth` (ndarray, shape (views, stakes)): Logarithms.
    * `peak`: The logarithm of the average wealth, its highest so far.
    * `hits`: How many more speculative than plain texts fell into the event h > 0, for the bet
      that was richest before.
    * `counts` (ndarray of int, shape (2, cells)): Visits by speculative and by plain texts.
    """

    def __init__(self) -> None:
        self.cells = Places()
        self.wealth = np.zeros((len(VIEWS), len(STAKES)))
        self.peak = 0.0
        self.hits = 0
        self.counts = np.zeros((2, 0), dtype=np.int64)
        self._won = np.zeros(0)

    def bet(self, speculative: Ints, plain: Ints) -> None:
        """Bet on equally many texts of both, then learn from them."""
        sides = [self.cells.visits(texts) for texts in (speculative, plain)]
        missing = len(self.cells.names) - len(self._won)
        self.counts = np.pad(self.counts, ((0, 0), (0, missing)))
        self._won = np.pad(self._won, (0, missing))
        self._settle(sides)
        self._learn(sides)
        self.peak = max(self.peak, self.evidence)

    @property
    def evidence(self) -> float:
        """The logarithm of the average wealth."""
        return float(log_mean(self.wealth.ravel()))

    def text_counts(self) -> Ints:
        """How often each text was seen; shape (2, different texts)."""
        return self.counts[:, self.cells.texts]

    def views(self) -> list[Cells]:
        """The cells of each position, and those after prefixes of one length."""
        groups: dict[tuple[str, int], list[int]] = {}
        for (view, place, _), number in self.cells.names.items():
            if view in DISJOINT:
                at = self.cells.prefixes.depth[place] if view == "prefix" else place
                groups.setdefault((view, at), []).append(number)
        found = []
        for numbers in groups.values():
            seen = self.counts[:, numbers].astype(np.float64)
            found.append(Cells(seen[0], seen.sum(axis=0), np.full(len(numbers), 0.5)))
        return found

    def suspects(self) -> tuple[Suspect, ...]:
        """The cells that would have won most, each with a bet on itself alone."""
        won = np.round(self._won, DIGITS)
        names = list(self.cells.names)
        found: dict[float, Suspect] = {}
        for cell in np.argsort(-won, kind="stable").tolist():
            gain = float(won[cell])
            if gain <= 0 or len(found) == SUSPECTS:
                break
            # Different names of one event win the same; the first is the most specific.
            speculative, plain = self.counts[:, cell]
            direction = "more often" if speculative > plain else "less often"
            label = f"{self.cells.describe(names[cell])}, {direction}"
            found.setdefault(gain, Suspect(label, gain / math.log(10)))
        return tuple(found.values())

    def _settle(self, sides: list[list[Visits]]) -> None:
        richest = int(self.wealth.max(axis=1).argmax())
        for sign, visits in zip((1, -1), sides, strict=True):
            for view, found in enumerate(visits):
                more, fewer = self.counts[:, found.cell] + SHRINKAGE
                part = found.times * np.log(more / fewer) / 2
                score = np.bincount(found.row, weights=part)
                won = np.log1p(sign * STAKES[:, None] * np.tanh(score))
                self.wealth[view] += won.sum(axis=1)
                np.add.at(self._won, found.cell, np.log1p(sign * SUSPECT_STAKE * np.tanh(part)))
                if view == richest:
                    self.hits += sign * int((score > 0).sum())

    def _learn(self, sides: list[list[Visits]]) -> None:
        for count, visits in zip(self.counts, sides, strict=True):
            for found in visits:
                np.add.at(count, found.cell, found.times)
