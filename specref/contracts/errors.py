"""What goes wrong in a call of user code: a broken contract, or something optional of a call.

A claim may leave each of these situations out. So an implementation that raises there, and not in
the same call without it, is not tried there, and judged in everything else.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from specref.arrays import one_hot_rows


class BrokenContractError(Exception):
    """An implementation raised, did not return, or returned an invalid answer.

    * `row`: The first offending row of its batch.
    * `evidence`: Machine-readable facts; with the data of the row if it is known.
    """

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row
        self.evidence: dict[str, Any] = {} if row is None else {"row": row}


class UntriedError(BrokenContractError):
    """An implementation cannot be tried in a situation that no contract makes it take.

    * `situation`, `why`: In a few words: "without draft_probs", "raises TypeError".
    * `claim`: The claim that leaves the situation out; None if there is none.
    * `by_size`: Whether it is the size of the call, or of the work, that stands in the way.
    """

    def __init__(
        self,
        message: str,
        situation: str,
        why: str,
        *,
        claim: str | None = None,
        by_size: bool = False,
        row: int | None = None,
    ) -> None:
        super().__init__(message, row)
        self.situation, self.why, self.claim, self.by_size = situation, why, claim, by_size

    @property
    def said(self) -> str:
        """The situation and why, for lists."""
        return f"{self.situation} ({self.why})"


if TYPE_CHECKING:
    from specref.contracts.batch import Batch

Usual: TypeAlias = "Callable[[Batch], Batch | None]"
LARGE = 100_000
"""Numbers in the target's rows of a call, above all fixtures and calls of stage smoke but one."""
TRIES = 3
MEMORY = ("out of memory", "can't allocate memory", "unable to allocate")


class Situation(NamedTuple):
    """Something optional of a call.

    * `claim`: The claim that leaves it out, where it is False.
    * `refused`: What checks say that an implementation does not take, where it is left out.
    * `usual`: A call -> the same without it; None if the call has nothing of it.
    """

    claim: str
    said: str
    hint: str
    refused: str
    usual: Usual


def with_laws(batch: "Batch") -> "Batch | None":
    """The same with `draft_probs`: drafts are certain."""
    if batch.draft_probs is not None:
        return None
    laws = one_hot_rows(np.maximum(batch.draft_tokens, 0), batch.target_probs.shape[2])
    return replace(batch, draft_probs=laws)


def without_empty(batch: "Batch") -> "Batch | None":
    """The trees that have nodes."""
    some = np.flatnonzero(batch.lens > 0)
    return batch[some] if hasattr(batch, "parents") and 0 < len(some) < len(batch) else None


def without_repeats(batch: "Batch") -> "Batch | None":
    """The trees whose siblings differ."""
    if not hasattr(batch, "parents"):
        return None
    nodes = zip(batch.parents.tolist(), batch.draft_tokens.tolist(), strict=True)
    pairs = [[pair for pair in zip(*row, strict=True) if pair[1] >= 0] for row in nodes]
    once = np.array([len(set(row)) == len(row) for row in pairs], dtype=bool)
    return batch[np.flatnonzero(once)] if 0 < once.sum() < len(batch) else None


def even(batch: "Batch") -> "Batch | None":
    """The rows with the most drafts, or, of chains, all rows with drafts instead of gaps."""
    full = np.flatnonzero(batch.lens == batch.draft_tokens.shape[1])
    if len(full) == len(batch):
        return None
    if len(full) or hasattr(batch, "parents"):
        return batch[full] if len(full) else None
    drafts = batch.draft_tokens.copy()
    drafts[drafts < 0] = batch.target_probs.shape[2] - 1  # certain where a row has no draft
    return replace(batch, draft_tokens=drafts, lens=np.full_like(batch.lens, drafts.shape[1]))


SITUATIONS = (
    Situation(
        "one_hot",
        "without draft_probs",
        "one_hot=false if it is never called without draft_probs",
        "draft_probs=None",
        with_laws,
    ),
    Situation(
        "empty_trees",
        "with trees without nodes",
        "empty_trees=false if it never gets trees without nodes",
        "trees without nodes",
        without_empty,
    ),
    Situation(
        "repeats",
        "with siblings that repeat",
        "repeats=false if siblings never repeat",
        "siblings that repeat",
        without_repeats,
    ),
    Situation(
        "ragged",
        "with rows of fewer drafts",
        "ragged=false if it never gets rows with fewer drafts",
        "ragged batches",
        even,
    ),
)


def stumbled(batch: "Batch", raises: "Callable[[Batch], bool]") -> Situation | None:
    """Which optional situation makes a call raise; None if the rest of it does."""
    for one in SITUATIONS:
        usual = one.usual(batch)
        if usual is None:
            continue
        if to_blame(partial(raises, batch), partial(raises, usual)):
            return one
        batch = usual
    return None


def to_blame(raises: Callable[[], bool], raises_without: Callable[[], bool]) -> bool:
    """Whether a call raises whenever it is made, and never without something."""
    return not any(raises_without() for _ in range(TRIES)) and all(raises() for _ in range(TRIES))


def is_memory(error: BaseException) -> bool:
    """Whether user code ran out of memory."""
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(one in str(error).lower() for one in MEMORY)


def told_sizes(sizes: Sequence[int]) -> str:
    """Tokens of the vocabulary, drafts of a row and rows, in words.

    Examples
    --------
    >>> told_sizes((32_000, 1, 4))
    '4 rows, 1 draft, 32,000 tokens'
    """
    size, drafts, rows = sizes
    return ", ".join(
        f"{number:,} {one}{'s' * (number != 1)}"
        for number, one in ((rows, "row"), (drafts, "draft"), (size, "token"))
    )


@dataclass
class Limits:
    """The sizes at which an implementation took too long, or too much memory.

    * `most`: Seconds for all large calls of one size in a check; None for as many as it takes.
    * `spent`: {sizes: seconds of such calls so far}.
    """

    reached: list[tuple[tuple[int, ...], UntriedError]] = field(default_factory=list)
    most: float | None = None
    spent: dict[tuple[int, ...], float] = field(default_factory=dict)

    def spend(self, sizes: Sequence[int], seconds: float) -> None:
        """Note how long a call of a size took."""
        self.spent[tuple(sizes)] = self.spent.get(tuple(sizes), 0.0) + seconds

    def spent_up(self, sizes: Sequence[int]) -> str:
        """Why there are no more calls of a size in this check; empty if there may be.

        Examples
        --------
        >>> limits = Limits(most=30)
        >>> limits.spend((8, 2, 100), 31)
        >>> limits.spent_up((8, 2, 100)), limits.spent_up((8, 2, 4))
        ('more than 30 s in all', '')
        """
        spent = self.spent.get(tuple(sizes), 0.0)
        over = self.most is not None and spent > self.most
        return f"more than {self.most:g} s in all" if over else ""

    def note(self, sizes: Sequence[int], error: UntriedError) -> None:
        """Note that an implementation could not be tried at a size."""
        self.reached.append((tuple(sizes), error))

    def why_not(self, sizes: Sequence[int]) -> UntriedError | None:
        """The error at a size that is no larger in any way, if there is one.

        Examples
        --------
        >>> limits = Limits()
        >>> limits.note((8, 2, 100), UntriedError("", "of 100 tokens", "more than 10 s"))
        >>> limits.why_not((8, 1, 200)), limits.why_not((9, 2, 100)).situation
        (None, 'of 100 tokens')
        """
        for known, error in self.reached:
            if all(one <= other for one, other in zip(known, sizes, strict=True)):
                return error
        return None
