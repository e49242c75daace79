"""The error that is raised when an implementation breaks its contract."""

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
