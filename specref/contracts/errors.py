"""The errors of implementations: a broken contract, and a situation that cannot be tried."""

from typing import Any


class BrokenContractError(Exception):
    """An implementation raised, did not return, or returned an invalid answer.

    Attributes
    ----------
    row : int or None
        The first offending row of its batch.
    evidence : dict
        Machine-readable facts; with the data of the row if it is known.
    """

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row
        self.evidence: dict[str, Any] = {} if row is None else {"row": row}


class UntriedError(BrokenContractError):
    """An implementation cannot be tried in a situation that no contract makes it take.

    Attributes
    ----------
    situation, why : str
        In a few words: "without draft_probs", "raises TypeError".
    claim : str or None
        The claim that leaves the situation out; None if there is none.
    by_size : bool
        Whether it is the size of the call, or of the work, that stands in the way.
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
        """The situation and why, for lists.

        Examples
        --------
        >>> UntriedError("", "without draft_probs", "raises TypeError").said
        'without draft_probs (raises TypeError)'
        """
        return f"{self.situation} ({self.why})"
