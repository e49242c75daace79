"""What is counted in the texts of pairs, as cells of tables and as single numbers.

Which cells a table has is chosen from both files together, so that it says nothing of which text
is whose: the test of `two_sample.bounds` stays exact.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from specref.arrays import Bools, Floats
from specref.contrib.compare.pairing import Pairs
from specref.contrib.compare.records import Texts, numbered

CELLS = 256
"""Of a table, the most frequent ones; all others are one more. A token that is not among them is
seen once in hundreds: too rarely to be compared by itself."""
PROMPT_CELLS, BOTH = 32, 512
"""In the tables of single prompts; and how many tokens are told apart in pairs of tokens."""
LEAST_PAIRS, MOST_PROMPTS = 16, 1_000
"""Prompts with fewer pairs, and prompts beyond so many, have no tables of their own."""
SINGLE_POSITIONS, POSITIONS = 8, 64
PART = 10
"""Bounds choose what they are about from every tenth pair, and are computed on the others."""
RARE = 0.1
"""Rare tokens are the least frequent ones that make up this share of all."""
ROWS = 1_024  # of a dense block of pairs by cells: one of a megabyte stays in a core's cache
Ints: TypeAlias = NDArray[np.integer[Any]]
"""Of 32 bits where there is one for each token of millions of texts."""


@dataclass(frozen=True, eq=False)
class Side:
    """The texts of one side that have a partner, flat: a row for each token.

    * `lengths` (shape (pairs,))
    """

    token: Ints
    pair: Ints
    position: Ints
    lengths: Ints
    endings: list[str | None]


def side_of(texts: Texts, chosen: Ints) -> Side:
    """The chosen texts of a file, in this order."""
    lengths = texts.lengths[chosen]
    pair = np.repeat(np.arange(len(chosen), dtype=np.int32), lengths)
    position = np.arange(len(pair)) - np.repeat(lengths.cumsum() - lengths, lengths)
    at = np.repeat(texts.starts[:-1][chosen], lengths) + position
    return Side(
        texts.tokens[at],
        pair,
        position.astype(np.int32),
        lengths,
        [texts.endings[i] for i in chosen.tolist()],
    )


@dataclass(frozen=True, eq=False)
class Table:
    """How often the cells of a table are in the texts of pairs.

    * `labels`: Of the cells; the last may be all others.
    * `pairs`: For each side, the pair of each visit, in ascending order.
    * `cells`: And its cell.
    * `once`: Whether a text is in one cell exactly: then the table has a total variation.
    """

    name: str
    labels: list[str]
    size: int
    pairs: tuple[Ints, Ints]
    cells: tuple[Ints, Ints]
    once: bool

    def counts(self) -> Ints:
        """Visits of each side, shape (2, cells)."""
        size = len(self.labels)
        return np.stack([np.bincount(cells, minlength=size) for cells in self.cells])

    def second(self) -> Floats:
        """The sum over pairs of d d', d being the difference of a pair's counts."""
        size = len(self.labels)
        if self.once:
            one, other = self.cells
            apart = one != other
            codes = one[apart].astype(np.int64) * size + other[apart]
            cross = np.bincount(codes, minlength=size * size).reshape(size, size)
            diagonal = sum(np.bincount(cells[apart], minlength=size) for cells in self.cells)
            return np.asarray(np.diag(diagonal) - cross - cross.T, dtype=np.float64)
        total = np.zeros((size, size))
        for rows in self._blocks():
            total += rows.T @ rows
        return total

    def _blocks(self) -> Iterator[NDArray[np.float32]]:
        """Differences of counts, some pairs by all cells at a time."""
        size = len(self.labels)
        bounds = np.arange(0, self.size + ROWS, ROWS)
        # Of the same type: searchsorted would convert all pairs.
        cuts = [np.searchsorted(pairs, bounds.astype(pairs.dtype)) for pairs in self.pairs]
        for block, start in enumerate(bounds[:-1].tolist()):
            rows = np.zeros(ROWS * size, dtype=np.float32)  # counts of a text are small integers
            for sign, pairs, cells, cut in zip((1, -1), self.pairs, self.cells, cuts, strict=True):
                part = slice(cut[block], cut[block + 1])
                codes = (pairs[part].astype(np.intp) - start) * size + cells[part]
                np.add.at(rows, codes, np.float32(sign))
            yield rows.reshape(ROWS, size)


@dataclass(frozen=True, eq=False)
class Numbers:
    """One number of each text, of both sides.

    * `bounded`: Whether all are in [0, 1], and what they count was not chosen from these texts.
    """

    name: str
    values: tuple[Floats, Floats]
    bounded: bool


Codes: TypeAlias = tuple[Ints, Ints]
"""What is in each place of both sides, as numbers from 0."""


def commonest(codes: Sequence[Ints], most: int) -> Ints:
    """The codes that are most frequent in all arrays together, in ascending order.

    >>> commonest([np.array([5, 5, 9]), np.array([9, 2])], 2)
    array([5, 9])
    """
    longest = max(int(one.max(initial=0)) for one in codes) + 1
    counts = np.zeros(longest, dtype=np.int64)
    for one in codes:
        counts += np.bincount(one, minlength=longest)
    order = np.argsort(-counts, kind="stable")[:most]
    return np.sort(order[counts[order] > 0])


def lumped(codes: Ints, kept: Ints) -> Ints:
    """The places of codes among those that are kept; len(kept) for all others."""
    longest = int(max(codes.max(initial=0), kept.max(initial=0))) + 1
    cell = np.full(longest, len(kept), dtype=np.int32)
    cell[kept] = np.arange(len(kept))
    return cell[codes]


@dataclass(frozen=True, eq=False)
class Counted:
    """What is counted, before the cells of its table are chosen.

    * `once`, `certified`: Whether a text has one code; and whether a bound is wanted.
    """

    name: str
    pairs: Codes
    codes: Codes
    label: Callable[[int], str]
    once: bool
    certified: bool = False

    def table(self, size: int, most: int = CELLS) -> Table:
        """The table of what is most frequent on both sides together, and of all others."""
        kept = commonest(self.codes, most)
        cells = lumped(self.codes[0], kept), lumped(self.codes[1], kept)
        labels = [self.label(int(code)) for code in kept]
        if max(int(one.max(initial=0)) for one in cells) == len(kept):
            labels.append("any other")
        return Table(self.name, labels, size, self.pairs, cells, self.once)


def counted(sides: tuple[Side, Side], number: int, called: Sequence[str]) -> Iterator[Counted]:
    """All that is counted, the simplest first; `called` are the tokens that the sides number."""

    def _token(code: int) -> str:
        return "the end" if code < 0 else called[code]

    one, other = sides
    every = np.arange(number)
    longest = max(int(one.lengths.max()), int(other.lengths.max()))
    for position in range(min(longest, SINGLE_POSITIONS)):
        yield Counted(
            f"position {position + 1}",
            (every, every),
            (_at(one, position, number), _at(other, position, number)),
            lambda code: _token(code - 1),
            once=True,
            certified=True,
        )
    flat = one.pair, other.pair
    tokens = one.token, other.token
    yield Counted("tokens anywhere", flat, tokens, _token, once=False, certified=True)
    # Of the part that bounds leave out: which pairs of tokens they are about is chosen before.
    chosen = [side.token[side.pair % PART == 0] for side in sides]
    frequent = commonest(chosen, BOTH)
    few = lumped(one.token, frequent), lumped(other.token, frequent)
    names = [*(_token(int(code)) for code in frequent), "a rare token"]
    span = len(names)
    yield Counted(
        "tokens by position",
        flat,
        (
            np.minimum(one.position, POSITIONS) * span + few[0],
            np.minimum(other.position, POSITIONS) * span + few[1],
        ),
        lambda code: f"{names[code % span]} at position {code // span + 1}",
        once=False,
    )
    yield Counted(
        "tokens given the one before",
        flat,
        (_after(one, few[0], span), _after(other, few[1], span)),
        lambda code: f"{names[code % span]} after {['nothing', *names][code // span]}",
        once=False,
        certified=True,
    )
    yield from _of_texts(sides, number)


def _of_texts(sides: tuple[Side, Side], number: int) -> Iterator[Counted]:
    """What each text has once."""
    one, other = sides
    every = np.arange(number)
    yield Counted(
        "lengths", (every, every), (one.lengths, other.lengths), "{} tokens".format, once=True
    )
    named = [{*side.endings} for side in sides]
    kinds = sorted(str(ending) for ending in named[0] | named[1])
    # Systems name endings in their own ways, or not at all.
    if None not in named[0] | named[1] and named[0] & named[1]:
        known = {kind: index for index, kind in enumerate(kinds)}
        endings = [np.array([known[str(ending)] for ending in side.endings]) for side in sides]
        yield Counted(
            "endings",
            (every, every),
            (endings[0], endings[1]),
            lambda code: kinds[code],
            once=True,
        )
    yield Counted(
        "whole texts",
        (every, every),
        _whole(sides),
        lambda code: f"the text of pair {code // 2 + 1}",
        once=True,
    )


def _after(side: Side, few: Ints, span: int) -> Ints:
    """A token and the one before it, as one number."""
    before = np.empty_like(few)
    before[1:] = few[:-1] + 1
    before[side.position == 0] = 0
    return np.asarray(before * span + few)


def _whole(sides: tuple[Side, Side]) -> Codes:
    """A number for each text, the same for equal ones, that does not tell whose it is.

    Of a pair the lesser text is numbered first, whichever side it is on.
    """
    kinds = _kinds(sides)
    in_turn = np.sort(kinds, axis=0).T.ravel()
    first = np.full(int(kinds.max()) + 1, len(in_turn), dtype=np.int32)
    np.minimum.at(first, in_turn, np.arange(len(in_turn), dtype=np.int32))
    return first[kinds[0]], first[kinds[1]]


def _kinds(sides: tuple[Side, Side]) -> Ints:
    """A number for each text of both sides, shape (2, pairs): the same for equal texts alone."""
    token = np.concatenate([side.token for side in sides])
    lengths = np.concatenate([side.lengths for side in sides])
    starts = lengths.cumsum() - lengths
    span = int(token.max()) + 2
    kind, used = np.zeros(len(lengths), dtype=np.int64), 1
    rows, position = np.arange(len(lengths)), 0
    while len(rows):  # only texts with a beginning in common are read on
        going = lengths[rows] > position
        codes = kind[rows] * span
        codes[going] += token[starts[rows[going]] + position] + 1
        _, which, counts = numbered(codes)
        kind[rows] = used + which
        used += len(counts)
        rows = rows[going & (counts[which] > 1)]
        position += 1
    return kind.reshape(2, -1)


def by_prompt(sides: tuple[Side, Side], pairs: Pairs, called: Sequence[str]) -> list[Table]:
    """The tokens of each prompt in a table of its own: shifts may differ from prompt to prompt."""
    starts = np.flatnonzero(np.diff(pairs.prompts, prepend=-1))
    ends = np.append(starts[1:], len(pairs))
    large = np.flatnonzero(ends - starts >= LEAST_PAIRS)
    chosen = np.sort(large[np.argsort(starts[large] - ends[large], kind="stable")[:MOST_PROMPTS]])
    places = [np.concatenate([[0], side.lengths.cumsum()]).tolist() for side in sides]
    found = []
    for start, end in zip(starts[chosen].tolist(), ends[chosen].tolist(), strict=True):
        cuts = [slice(offsets[start], offsets[end]) for offsets in places]
        visits = [side.pair[cut] - start for side, cut in zip(sides, cuts, strict=True)]
        tokens = [side.token[cut] for side, cut in zip(sides, cuts, strict=True)]
        name = pairs.ids[int(pairs.prompts[start])]
        visited, codes = (visits[0], visits[1]), (tokens[0], tokens[1])
        one = Counted(name, visited, codes, called.__getitem__, once=False)
        found.append(one.table(end - start, PROMPT_CELLS))
    return found if len(found) > 1 else []


def numbers(sides: tuple[Side, Side], pairs: Pairs) -> Iterator[Numbers]:
    """Single numbers of texts: shifts of one direction that no table of tokens would show."""
    tokens = sides[0].token, sides[1].token
    frequent = commonest(tokens, max(int(one.max()) for one in tokens) + 1)
    which = lumped(tokens[0], frequent), lumped(tokens[1], frequent)
    counts = np.bincount(which[0], minlength=len(frequent))
    counts += np.bincount(which[1], minlength=len(frequent))
    order = np.argsort(counts, kind="stable")
    rare = np.zeros(len(frequent), dtype=bool)
    rare[order[counts[order].cumsum() <= RARE * counts.sum()]] = True
    if rare.any():
        yield _shares("share of rare tokens", sides, (rare[which[0]], rare[which[1]]))
    span = len(frequent)
    repeats: list[Floats] = [
        np.asarray(1 - _distinct(side, one, span) / side.lengths, dtype=np.float64)
        for side, one in zip(sides, which, strict=True)
    ]
    yield Numbers("share of repeated tokens", (repeats[0], repeats[1]), True)
    yield _shares(
        f"share of their prompt's likeliest tokens, of the first {SINGLE_POSITIONS}",
        sides,
        _likeliest(sides, pairs, which, span),
    )


def _shares(name: str, sides: tuple[Side, Side], marked: tuple[Bools, Bools]) -> Numbers:
    found = [
        np.bincount(side.pair, weights=one, minlength=len(side.lengths)) / side.lengths
        for side, one in zip(sides, marked, strict=True)
    ]
    return Numbers(name, (found[0], found[1]), bounded=False)


def _distinct(side: Side, which: Ints, span: int) -> Ints:
    """How many different tokens each text has."""
    codes = np.sort(side.pair.astype(np.int64) * span + which)
    new = codes[np.diff(codes, prepend=-1) != 0]
    return np.bincount(new // span, minlength=len(side.lengths))


def _likeliest(
    sides: tuple[Side, Side], pairs: Pairs, which: Codes, span: int
) -> tuple[Bools, Bools]:
    """Whether a token is the most frequent one of its prompt at its position, on both sides."""
    here = [side.position < SINGLE_POSITIONS for side in sides]
    codes = [
        (pairs.prompts[side.pair[at]] * SINGLE_POSITIONS + side.position[at]) * span + one[at]
        for side, at, one in zip(sides, here, which, strict=True)
    ]
    kinds, _, counts = numbered(np.concatenate(codes))
    order = np.lexsort((-counts, kinds // span))
    best = kinds[order[np.diff(kinds[order] // span, prepend=-1) != 0]]
    found = [np.zeros(len(at), dtype=bool) for at in here]
    for marked, at, code in zip(found, here, codes, strict=True):
        place = np.searchsorted(best // span, code // span)
        marked[at] = best[place] == code
    return found[0], found[1]


def _at(side: Side, position: int, number: int) -> Ints:
    """One more than the token of each text at a position, 0 after its end."""
    found = np.zeros(number, dtype=np.int32)
    here = side.position == position
    found[side.pair[here]] = side.token[here] + 1
    return found
