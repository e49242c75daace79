"""Batches of chains and of trees, and how their answers are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from specref.arrays import NO_TOKEN, Floats, Ints
from specref.coins import Coins
from specref.contracts.errors import BrokenContractError, told_sizes

MOST_SHOWN = 16
LARGEST_ID = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Batch:
    """The arguments of one call; attributes are those of `Verify`, and the place of each row."""

    target_probs: Floats
    draft_probs: Floats | None
    draft_tokens: Ints
    lens: Ints
    place: Ints

    def __len__(self) -> int:
        return len(self.draft_tokens)

    def __getitem__(self, chosen: "slice | Ints") -> Self:
        arrays = (getattr(self, name) for name in self.__dataclass_fields__)
        rows: list[Any] = [array if array is None else array[chosen] for array in arrays]
        return type(self)(*rows)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments that are passed by position."""
        names = ("target_probs", "draft_probs", "draft_tokens")
        return {name: getattr(self, name) for name in names}

    def told_sizes(self) -> str:
        """How large it is, for messages."""
        return told_sizes(self.sizes) + ", without draft_probs" * (self.draft_probs is None)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Tokens of the vocabulary, drafts of a row, rows."""
        rows, drafts = self.draft_tokens.shape
        return self.target_probs.shape[-1], drafts, rows

    @property
    def most(self) -> Ints:
        """The most tokens each row may get."""
        return self.lens + 1

    @property
    def widths(self) -> range:
        """The numbers of columns that tokens may have."""
        return range(self.draft_tokens.shape[1] + 1, self.draft_tokens.shape[1] + 2)

    @property
    def origin(self) -> str:
        """What tokens before the last have to be, for messages."""
        return "its drafts"

    def drafted(self, tokens: Ints) -> NDArray[np.bool_]:
        """Whether the token in each column, but for the last one, is the draft."""
        return np.asarray(tokens[:, :-1] == self.draft_tokens)

    def without_q(self) -> Self:
        """The same drafts without `draft_probs`: declared as certain."""
        return replace(self, draft_probs=None)

    def facts(self, row: int) -> dict[str, Any]:
        """The data of a row, for reports; without laws of large vocabularies."""
        found: dict[str, Any] = {
            "draft_tokens": self.draft_tokens[row].tolist(),
            "lens": int(self.lens[row]),
        }
        if self.target_probs.shape[2] <= MOST_SHOWN:
            q = self.draft_probs
            found["target_probs"] = self.target_probs[row].tolist()
            found["draft_probs"] = None if q is None else q[row].tolist()
        return found


class Answer(NamedTuple):
    """Blocks padded with -1, shape (B, K + 1)."""

    tokens: Ints
    counts: Ints


def joined(answers: Sequence[Answer]) -> Answer:
    """The answers to the calls that a batch was cut into, as one."""
    if len(answers) == 1:
        return answers[0]
    return Answer(
        np.concatenate([answer.tokens for answer in answers]),
        np.concatenate([answer.counts for answer in answers]),
    )


def read_answer(raw: Any, batch: Batch, short_rows: str = "") -> Answer:
    """Check and convert what an implementation returned.

    * `short_rows`: What to do about too many tokens in a row with fewer drafts than others.
    * raises `BrokenContractError`: It is not a pair of integer arrays of the right shapes, an id
      is out of range, counts do not match tokens, or a token before the last is not a draft; with
      the first row for which that is so.
    """
    answer = usual(raw, batch) or _converted(raw, batch)
    if not valid(answer, batch):
        _check_counts(answer, batch, short_rows)
        size = batch.target_probs.shape[2]
        wrong = (answer.tokens >= size) | (answer.tokens < NO_TOKEN)
        _refuse("tokens", answer.tokens, wrong, f"expected 0 <= id < {size}, or -1")
        _check_drafts(answer, batch)
    return answer


def usual(raw: Any, batch: Batch) -> Answer | None:
    """A copy of a pair of int64 arrays of the right shapes, not yet checked; None for others."""
    if not isinstance(raw, tuple) or len(raw) != 2:
        return None
    tokens, counts = raw
    shape = len(batch), batch.widths[-1]
    if not type(tokens) is type(counts) is np.ndarray or tokens.shape != shape:
        return None
    if counts.shape != shape[:1] or not tokens.dtype == counts.dtype == np.int64:
        return None
    return Answer(tokens.copy(), counts.copy())


def valid(answer: Answer, batch: Batch) -> bool:
    """All that is checked of an answer, at once; what is wrong is found afterwards."""
    tokens, counts = answer.tokens, answer.counts
    inside = np.arange(tokens.shape[1]) < counts[:, None]
    wrong = (tokens >= 0) != inside
    wrong |= tokens >= batch.target_probs.shape[2]
    wrong |= tokens < NO_TOKEN
    wrong[:, :-1] |= inside[:, 1:] > batch.drafted(tokens)
    wrong[:, 0] |= (counts < 1) | (counts > batch.most)
    return not np.count_nonzero(wrong)


def _converted(raw: Any, batch: Batch) -> Answer:
    if not isinstance(raw, Sequence) or isinstance(raw, str) or len(raw) != 2:
        raise BrokenContractError(f"returned {_kind(raw)}: expected a pair (tokens, counts)")
    tokens = _integers("tokens", raw[0], len(batch), batch.widths)
    if missing := batch.widths[-1] - tokens.shape[1]:
        tokens = np.pad(tokens, ((0, 0), (0, missing)), constant_values=NO_TOKEN)
    return Answer(tokens, _integers("counts", raw[1], len(batch)))


def _integers(name: str, values: Any, rows: int, widths: range | None = None) -> Ints:
    try:
        array = as_numpy(values)
    except Exception as error:  # arrays of user code may raise anything
        raise BrokenContractError(
            f"{name} cannot be read as an array: expected rows of one length, padded with -1 "
            f"({error})"
        ) from None
    if array.dtype.kind == "f":
        _refuse(name, array, np.isnan(array), "expected integers")
    if array.dtype.kind not in "iu":
        raise BrokenContractError(f"{name} has dtype {array.dtype}: expected integers")
    shapes = [(rows,)] if widths is None else [(rows, width) for width in widths]
    if array.shape not in shapes:
        known = " to ".join(map(str, dict.fromkeys((shapes[0], shapes[-1]))))
        raise BrokenContractError(f"{name} has shape {array.shape}: expected {known}")
    if array.dtype.kind == "u":  # padding would silently become -1
        _refuse(name, array, array > LARGEST_ID, "out of range")
    return array.astype(np.int64)


def as_numpy(values: Any) -> NDArray[Any]:
    """An array of NumPy, from a tensor or anything that NumPy reads."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def _refuse(name: str, array: Any, wrong: Any, why: str) -> None:
    if wrong.any():
        where = np.argwhere(wrong)[0].tolist()
        index = ", ".join(map(str, where))
        row = where[0] if where else None
        raise BrokenContractError(f"{name}[{index}] = {array[tuple(where)]}: {why}", row)


def _check_counts(answer: Answer, batch: Batch, short_rows: str) -> None:
    tokens, counts, most = answer.tokens, answer.counts, batch.most
    wrong = (counts < 1) | (counts > most)
    if wrong.any():
        row = int(wrong.argmax())
        drafts = int(most[row]) - 1
        short = counts[row] > most[row] and batch.lens[row] < batch.draft_tokens.shape[1]
        raise BrokenContractError(
            f"counts[{row}] = {counts[row]}: expected 1 to {most[row]} "
            f"({drafts} draft{'s' * (drafts != 1)} and one more); "
            f"tokens[{row}] = {tokens[row].tolist()[:8]}"
            + (f"; {short_rows}" if short and short_rows else ""),
            row,
        )
    padded = np.arange(tokens.shape[1]) >= counts[:, None]
    wrong = (tokens < 0) != padded
    if wrong.any():
        row = int(wrong.any(axis=1).argmax())
        count = int(counts[row])
        raise BrokenContractError(
            f"counts[{row}] = {count} but tokens[{row}] = {tokens[row].tolist()}: expected "
            f"{count} token{'s' * (count != 1)}, then -1 in the other columns",
            row,
        )


def _check_drafts(answer: Answer, batch: Batch) -> None:
    tokens, counts = answer.tokens, answer.counts
    kept = np.arange(tokens.shape[1] - 1) < counts[:, None] - 1
    wrong = kept & ~batch.drafted(tokens)
    if wrong.any():
        row = int(wrong.any(axis=1).argmax())
        error = BrokenContractError(
            f"tokens[{row}] = {tokens[row].tolist()}: expected {batch.origin} "
            f"{batch.draft_tokens[row].tolist()} up to the last token{_whose(answer, batch, row)}",
            row,
        )
        error.evidence["undrafted"] = True
        raise error


def _whose(answer: Answer, batch: Batch, row: int) -> str:
    """The first other request whose drafts a block has; empty for trees, or if there is none."""
    if type(batch) is not Batch:
        return ""
    most = batch.draft_tokens.shape[1]
    kept = np.arange(most) < answer.counts[row] - 1
    same = ((batch.draft_tokens == answer.tokens[row, :most]) | ~kept).all(axis=1)
    others = np.flatnonzero(same & (batch.lens >= answer.counts[row] - 1))
    if not others.size:
        return ""
    return f"; those of row {others[0]} fit: do requests get each other's blocks?"


def _kind(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    return "None" if value is None else f"a {type(value).__name__}"


def draw_batch_coins(batch: Batch, rng: np.random.Generator) -> Coins:
    """Draw coins for a batch."""
    size = batch.target_probs.shape[2]
    race = rng.standard_exponential((len(batch), size))
    return Coins(rng.random(batch.draft_tokens.shape), race)


ROOT, NO_NODE = -1, -2


@dataclass(frozen=True, eq=False)
class TreeBatch(Batch):
    """The arguments of one call of `VerifyTree`; `lens` is the number of nodes of each row."""

    parents: Ints

    @property
    def arguments(self) -> Mapping[str, Any]:
        return {**super().arguments, "parents": self.parents}

    @property
    def depths(self) -> Ints:
        """The number of drafts on the path to each node; 0 where there is no node."""
        found = np.zeros_like(self.parents)
        rows = np.arange(len(found))
        for i, parent in enumerate(self.parents.T):
            above = np.where(parent >= 0, found[rows, np.maximum(parent, 0)], 0)
            found[:, i] = np.where(parent == NO_NODE, 0, above + 1)
        return found

    @property
    def most(self) -> Ints:
        """The most tokens each row may get: a path to the deepest node, and one more."""
        return np.asarray(self.depths.max(axis=1, initial=0) + 1)

    @property
    def widths(self) -> range:
        """The numbers of columns that tokens may have; with too few, counts do not match."""
        return range(1, self.draft_tokens.shape[1] + 2)

    @property
    def origin(self) -> str:
        """What tokens before the last have to be, for messages."""
        return "a path among its nodes"

    def drafted(self, tokens: Ints) -> NDArray[np.bool_]:
        """Whether the tokens up to each column, but for the last one, are a path of the tree."""
        here = self.parents == ROOT
        found = []
        for column in tokens[:, :-1].T:
            reached = here & (self.draft_tokens == column[:, None])
            found.append(reached.any(axis=1))
            above = np.take_along_axis(reached, np.maximum(self.parents, 0), axis=1)
            here = above & (self.parents >= 0)
        return np.stack(found, axis=1) if found else np.ones((len(tokens), 0), dtype=bool)

    def facts(self, row: int) -> dict[str, Any]:
        return {**super().facts(row), "parents": self.parents[row].tolist()}


def as_tree(batch: Batch) -> TreeBatch:
    """The same drafts, each the only child of the one before it; trees are returned unchanged.

    Examples
    --------
    >>> as_tree(batch_of_one([2, 0], [ROOT, 0], np.eye(3))).parents
    array([[-1,  0]])
    """
    if isinstance(batch, TreeBatch):
        return batch
    places = np.arange(batch.draft_tokens.shape[1])
    parents = np.where(places < batch.lens[:, None], places - 1, NO_NODE)
    return TreeBatch(
        batch.target_probs, batch.draft_probs, batch.draft_tokens, batch.lens, batch.place, parents
    )


def batch_of_one(
    tokens: list[int], parents: list[int], p: Floats, q: Floats | None = None
) -> TreeBatch:
    """A batch with a single tree."""
    nodes, one = np.array([tokens], dtype=np.int64), np.zeros(1, dtype=np.int64)
    above = np.array([parents], dtype=np.int64)
    laws = None if q is None else q[None]
    return TreeBatch(p[None], laws, nodes, one + len(tokens), one, above)
