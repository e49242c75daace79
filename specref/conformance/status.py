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


class Finding(StrEnum):
    """What is wrong, in the order in which a verdict names it."""

    DEPENDENCE = "dependent blocks"
    LAW = "lossy law"
    CONTRACT = "broken contract"
    EDGE = "edge"
    ACCEPTANCE = "accepted lengths"
    UNANSWERED = "not answered"


LOSSY = frozenset({Finding.DEPENDENCE, Finding.LAW})


@dataclass(frozen=True)
class Outcome:
    """What a check found.

    Attributes
    ----------
    message : str
        One sentence, with the offending row where there is one.
    evidence : mapping
        Numbers and verdicts, for machines.
    finding : Finding or None
        What is wrong, if anything: a failure has one; a check that was not answered is
        inconclusive, and one that passed may have found an edge too rare to fail for.
    error : BaseException or None
        What the implementation raised.
    """

    status: Status
    message: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    finding: Finding | None = None
    error: BaseException | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class CheckResult:
    """One check of one implementation.

    Attributes
    ----------
    id : str
        ``stage/name``; stable, usable with ``pytest -k`` and in lists of expected failures.
    finding : Finding or None
        As in `Outcome`, and `error`.
    """

    id: str
    stage: Stage
    status: Status
    message: str
    evidence: Mapping[str, Any]
    seconds: float
    finding: Finding | None = None
    error: BaseException | None = field(default=None, compare=False, repr=False)

    @property
    def lossy(self) -> bool:
        """Whether it says that the law of a block is off, or that of several together."""
        return self.finding in LOSSY

    @property
    def traceback(self) -> tuple[str, ...]:
        """The traceback of what the implementation raised, in its own frames."""
        return tuple(self.evidence.get("traceback", ()))


def counted(results: Iterable[CheckResult]) -> dict[str, int]:
    """How often each status occurs, all seven of them.

    Examples
    --------
    >>> counted([])["inconclusive"]
    0
    """
    counts = Counter(str(result.status) for result in results)
    return {str(status): counts[str(status)] for status in Status}
