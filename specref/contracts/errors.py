"""What is raised where an implementation does not keep its contract."""

from typing import Any


class BrokenContractError(Exception):
    """An implementation raised, hung, or answered with something that is not an answer.

    Attributes
    ----------
    row : int or None
        The first offending row of the batch that it was given.
    evidence : dict
        For machines; once it is known, what the row was given.
    """

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row
        self.evidence: dict[str, Any] = {} if row is None else {"row": row}
