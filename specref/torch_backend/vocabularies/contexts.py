"""A target context in the drafter's tokens. Any reading is lossless; a good one is accepted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary


def read(
    context: Sequence[int], target: TokenVocabulary, drafter: TokenVocabulary
) -> tuple[list[int], bytes]:
    """A context's text, encoded by the drafter's tokeniser.

    And the unfinished character at the end that it cannot spell. EOS stays EOS; other special
    tokens are left out, and `drafter.start` comes first.
    """
    ids, rest = list(drafter.start), b""
    for run, ended in _runs(context, target):
        encoded, rest = drafter.encode(target.text(run))
        ids += encoded
        if ended and drafter.eos is not None:
            ids.append(drafter.eos)
    return ids, rest


def _runs(context: Sequence[int], target: TokenVocabulary) -> Iterator[tuple[list[int], bool]]:
    """The stretches without special tokens, and whether EOS ends them."""
    run: list[int] = []
    for token in context:
        if target.spelled[token] is not None:
            run.append(token)
        elif run or token == target.eos:
            yield run, token == target.eos
            run = []
    if run:
        yield run, False


def last_run(context: Sequence[int], target: TokenVocabulary) -> list[int]:
    """The tokens after the last special one."""
    run = list(takewhile(lambda token: target.spelled[token] is not None, reversed(context)))
    return run[::-1]


@dataclass
class _Row:
    """The read part of one row: target tokens, drafter tokens, bytes still to be spelled."""

    seen: list[int]
    ids: list[int]
    rest: bytes


@dataclass
class Reader:
    """Contexts in the drafter's tokens: the first as text, what follows token by token.

    A row that goes on from what was read before is translated by `ids` (the inverse of an id
    map), and a token that the drafter lacks is spelled from its bytes. Where these end within
    a character that the drafter cannot spell, they wait for the rest of it. A row that does
    not go on from there is read anew.
    """

    target: TokenVocabulary
    drafter: TokenVocabulary
    ids: dict[int, int]
    rows: list[_Row] = field(default_factory=list)

    def __call__(self, contexts: Sequence[Sequence[int]]) -> list[list[int]]:
        """Each row's drafter tokens, at least one."""
        if len(self.rows) != len(contexts):
            self.rows = [_Row([], [], b"") for _ in contexts]
        self.rows = [
            self._read(row, list(context))
            for row, context in zip(self.rows, contexts, strict=True)
        ]
        return [row.ids or [opening(self.drafter)] for row in self.rows]

    def select(self, rows: Sequence[int]) -> None:
        """Forget all rows but these, which are numbered anew."""
        self.rows = [self.rows[row] for row in rows]

    def _read(self, row: _Row, context: list[int]) -> _Row:
        if not row.seen or context[: len(row.seen)] != row.seen:
            return _Row(context, *read(context, self.target, self.drafter))
        ids, rest = row.ids, row.rest
        for token in context[len(row.seen) :]:
            more, rest = self.continued(rest, token)
            ids += more
        return _Row(context, ids, rest)

    def continued(self, rest: bytes, token: int) -> tuple[list[int], bytes]:
        """The drafter tokens of a target token after unspelled bytes; the bytes unspelled then."""
        piece = self.target.spelled[token]
        if token == self.target.eos:
            return ([] if self.drafter.eos is None else [self.drafter.eos]), b""
        if not rest and token in self.ids:
            return [self.ids[token]], b""
        return ([], rest) if piece is None else self.drafter.spell(rest + piece)


def opening(drafter: TokenVocabulary) -> int:
    """The token for an empty context: BOS, else EOS, else token 0."""
    return drafter.roles.get("bos", drafter.roles.get("eos", 0))


def windowed(ids: Sequence[int], most: int) -> list[int]:
    """The last of `ids`, at most `most`, cut at multiples of `most` // 2 to keep caches valid.

    * raises `ValueError`: `most` < 1: the model's positions do not suffice to draft.

    >>> windowed(range(9), 4), windowed(range(10), 4)
    ([6, 7, 8], [6, 7, 8, 9])
    """
    if most < 1:
        raise ValueError(f"most = {most}: expected at least one position for the context")
    stride = max(1, most // 2)
    excess = max(0, len(ids) - most)
    return list(ids[-(-excess // stride) * stride :])
