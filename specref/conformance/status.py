"""What a check can say, and what is kept of it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """Only `PASSED` and `EXPECTED_FAILURE` do not stand in the way of a pass."""

    PASSED = "passed"
    FAILED = "failed"
    EXPECTED_FAILURE = "expected_failure"
    UNEXPECTED_PASS = "unexpected_pass"
    NOT_APPLICABLE = "not_applicable"
    NOT_RUN = "not_run"
    INCONCLUSIVE = "inconclusive"


class Stage(StrEnum):
    """In the order in which a cause comes before what it causes."""

    SMOKE = "smoke"
    REPLAY = "replay"
    BOUNDARY = "boundary"
    JOINT = "joint"
    ACCEPTANCE = "acceptance"
    INDEPENDENCE = "independence"
    ITERATIONS = "iterations"
    END_TO_END = "end-to-end"


@dataclass(frozen=True)
class Outcome:
    """What a check found.

    Attributes
    ----------
    message : str
        One sentence, with the offending row where there is one.
    evidence : mapping
        Numbers and verdicts, for machines.
    """

    status: Status
    message: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckResult:
    """One check of one implementation.

    Attributes
    ----------
    id : str
        ``stage/name``; stable, usable with ``pytest -k`` and in lists of expected failures.
    lossy : bool
        Whether a failure speaks of losslessness (or a broken contract), not of acceptance.
    """

    id: str
    stage: Stage
    status: Status
    message: str
    evidence: Mapping[str, Any]
    seconds: float
    lossy: bool = True


def counted(results: Iterable[CheckResult]) -> dict[str, int]:
    """How often each status occurs, all seven of them.

    Examples
    --------
    >>> counted([])["inconclusive"]
    0
    """
    counts = Counter(str(result.status) for result in results)
    return {str(status): counts[str(status)] for status in Status}
