"""The results of a run over the cases."""

from collections import Counter
from dataclasses import dataclass

from specref.conformance.status import Status
from specref.vocabulary import Tokens


@dataclass(frozen=True)
class Result:
    """The result of one case.

    Attributes
    ----------
    status : Status
        Passed, failed, not applicable, or not run.
    expected : tuple of int
        The block.
    got : tuple of int or None
        None if there was none.
    note : str
        Why, as far as that is known.
    """

    id: str
    flags: tuple[str, ...]
    status: Status
    expected: Tokens
    got: Tokens | None = None
    note: str = ""

    @property
    def ran(self) -> bool:
        """Whether the case was run."""
        return self.status in (Status.PASSED, Status.FAILED)


@dataclass(frozen=True)
class Run:
    """The results of all cases, and the conventions that were assumed.

    * `last` ({"inverse", "descending", "race"}, or None): How the last token is drawn from coins.
      None: it takes no coins, and laws were compared.
    * `policies`: Legitimate conventions that differ from those of the vectors.
    * `fits`: The conventions under which every answer is right, as options; empty if there are
      none.
    """

    algorithm: str
    last: str | None
    policies: tuple[str, ...]
    dtype: str
    results: tuple[Result, ...]
    fits: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """{status: how many cases}."""
        return dict(Counter(str(result.status) for result in self.results))

    @property
    def reasons(self) -> dict[str, int]:
        """{why cases were not judged: how many}, the most frequent first."""
        left = (one.note for one in self.results if not one.ran and one.note)
        return dict(Counter(left).most_common())

    @property
    def failures(self) -> list[Result]:
        return [result for result in self.results if result.status == Status.FAILED]

    @property
    def exit_code(self) -> int:
        """0 if every case that applies passed, 1 if one failed, 2 if none or not all were run."""
        if self.failures:
            return 1
        return 0 if self.counts.get("passed") and not self.counts.get("not_run") else 2

    def __bool__(self) -> bool:
        return self.exit_code == 0
