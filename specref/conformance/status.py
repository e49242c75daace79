"""Statuses, stages and findings of checks, what these mean, and the results of checks."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from types import MappingProxyType
from typing import Any, TypeVar

Key = TypeVar("Key")
Item = TypeVar("Item")


class Status(StrEnum):
    """The status of a check; a run passes if it has none but the first, third and fifth."""

    PASSED = "passed"
    FAILED = "failed"
    EXPECTED_FAILURE = "expected_failure"
    UNEXPECTED_PASS = "unexpected_pass"
    NOT_APPLICABLE = "not_applicable"
    NOT_RUN = "not_run"
    INCONCLUSIVE = "inconclusive"


class Stage(StrEnum):
    """Stages of checks, ordered so that causes come before their consequences."""

    SMOKE = "smoke"
    REPLAY = "replay"
    BOUNDARY = "boundary"
    JOINT = "joint"
    ACCEPTANCE = "acceptance"
    INDEPENDENCE = "independence"
    STRATA = "strata"
    ITERATIONS = "iterations"
    END_TO_END = "end-to-end"


BLOCKS: Mapping[Stage, tuple[Stage, ...]] = {
    Stage.SMOKE: (),
    Stage.REPLAY: (Stage.SMOKE,),
    Stage.BOUNDARY: (Stage.SMOKE,),
    Stage.JOINT: (Stage.SMOKE,),
    Stage.ACCEPTANCE: (Stage.SMOKE, Stage.JOINT),
    Stage.INDEPENDENCE: (Stage.SMOKE,),
    Stage.STRATA: (Stage.SMOKE, Stage.BOUNDARY, Stage.JOINT),
    Stage.ITERATIONS: (Stage.SMOKE, Stage.JOINT, Stage.INDEPENDENCE),
    Stage.END_TO_END: (Stage.SMOKE, Stage.JOINT),
}
"""The earlier stages whose failures leave nothing to judge in a stage."""
FIRST = ("joint/probed-1-draft", "joint/probed")
"""Exact laws that are worked out before anything is sampled: of one and of two drafts."""
OF_DRAFTS = re.compile(r"joint/probed(?:-(\d+)-drafts?)?")
"""The exact laws by the number of drafts; one that names none is of two."""
AFTER_EXACT = (Stage.SMOKE, Stage.REPLAY, Stage.BOUNDARY)
"""Stages that say more where an exact law has shown that the sampler is lossy."""


class Finding(StrEnum):
    """What is wrong, ordered by the precedence in verdicts."""

    DEPENDENCE = "dependent blocks"
    LAW = "lossy law"
    CONTRACT = "broken contract"
    EDGE = "edge"
    ACCEPTANCE = "accepted lengths"
    PLAIN = "plain mode off"
    UNANSWERED = "not answered"
    NOT_EXERCISED = "not_exercised"


LOSSY = frozenset({Finding.DEPENDENCE, Finding.LAW})


@dataclass(frozen=True)
class Outcome:
    """The outcome of a check.

    * `finding`: What is wrong, if anything. Failures have one. A check that was not answered, or
      saw no draft accepted, is inconclusive, and one that passed may have found an edge too rare
      to be a failure.
    """

    status: Status
    message: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    finding: Finding | None = None
    error: BaseException | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class CheckResult:
    """The result of one check of one implementation.

    * `id`: ``stage/name``; stable, usable with ``pytest -k`` and in lists of expected failures.
    * `finding`: As in `Outcome`, and so is `error`.
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
        """Whether it shows that the law of a block, or of several together, is wrong."""
        return self.finding in LOSSY

    @property
    def not_tried(self) -> tuple[str, ...]:
        """What the implementation could not be tried at, though no claim leaves it out."""
        return tuple(self.evidence.get("not_tried", ()))

    @property
    def exact(self) -> bool:
        """Whether it has a distance from the target that was computed, not sampled."""
        return "total_variation" in self.evidence and "error_bound" in self.evidence

    @property
    def traceback(self) -> tuple[str, ...]:
        """The traceback of the implementation's exception, limited to its own frames."""
        return tuple(self.evidence.get("traceback", ()))

    @property
    def growth(self) -> str:
        """How the evidence grew from look to look; empty if there was one at most.

        Examples
        --------
        >>> looks = {"looks": [(1800, 3.21), (5400, 12.0)], "log10_threshold": 10.9}
        >>> CheckResult("joint/deep", Stage.JOINT, Status.FAILED, "", looks, 0.0).growth
        'evidence 10^3.2 after 1,800, 10^12.0 after 5,400; 10^10.9 decides'
        """
        looks = self.evidence.get("looks", ())
        if len(looks) < 2:
            return ""
        grown = ", ".join(f"10^{evidence:z.1f} after {trials:,}" for trials, evidence in looks)
        return f"evidence {grown}; 10^{self.evidence['log10_threshold']:.1f} decides"


def counted(results: Iterable[CheckResult]) -> dict[str, int]:
    """The number of results with each of the seven statuses."""
    counts = Counter(str(result.status) for result in results)
    return {str(status): counts[str(status)] for status in Status}


def grouped(pairs: Iterable[tuple[Key, Item]]) -> dict[Key, tuple[Item, ...]]:
    """{first: all that come second with it}."""
    found: dict[Key, list[Item]] = {}
    for first, second in pairs:
        found.setdefault(first, []).append(second)
    return {first: tuple(several) for first, several in found.items()}


def drafts_of(id_: str) -> int:
    """The drafts of an exact law; 0 if it is of something else.

    Examples
    --------
    >>> drafts_of("joint/probed-7-drafts"), drafts_of("joint/probed"), drafts_of("joint/wide")
    (7, 2, 0)
    """
    found = OF_DRAFTS.fullmatch(id_)
    return int(found[1] or 2) if found else 0


def settled_by(id_: str, before: Iterable[CheckResult]) -> str | None:
    """The id of the exact check that leaves nothing to do for another, if there is one.

    After a wrong law of one draft or two no other is worked out; after any, nothing is sampled.
    """
    if id_ in FIRST or Stage(id_.split("/")[0]) in AFTER_EXACT:
        return None
    failed = (one for one in before if one.status == Status.FAILED and one.exact and one.lossy)
    laws = (one.id for one in failed if drafts_of(one.id))
    return next((law for law in laws if law in FIRST or not drafts_of(id_)), None)


def blocker(stage: Stage, before: Iterable[CheckResult]) -> str | None:
    """The id of the check because of which checks of a stage are not run, if there is one."""
    # After a timeout, later calls would time out too.
    hung = [result.id for result in before if result.finding == Finding.UNANSWERED]
    failed = [r.id for r in before if r.status == Status.FAILED and r.stage in BLOCKS[stage]]
    return next(iter([*hung, *failed]), None)


PROJECT, LABEL = "specref", "Documentation"
BUILT = "build/site"
"""Where `make docs` puts the site: the address as long as the project declares none."""
MEANINGS: Mapping[Finding, str] = MappingProxyType(
    {
        Finding.DEPENDENCE: "Outputs that should be independent depend on each other: rows, calls "
        "or iterations share random numbers, or a decision is made for a whole batch. Look for "
        "one draw that serves several rows, seeds that come again, and reductions over the batch.",
        Finding.LAW: "The output does not have the target's distribution. The report shows where "
        "it differs, and the first random decision with another probability than the rule's.",
        Finding.CONTRACT: "An answer is not one that the contract allows: its shape, its counts, "
        "an exception, an id outside of the vocabulary, an argument that was changed. The "
        "distribution is judged once this is fixed.",
        Finding.EDGE: "A random number at its end, such as u = 0, gives a token of probability 0, "
        "at a rate that matters. Compare with < instead of <=, and draw from [0, 1) in the dtype "
        "that is compared.",
        Finding.ACCEPTANCE: "The numbers of accepted tokens are not those of the declared rule, "
        "though nothing shows that the output is lossy. Declare another rule, or look for drafts "
        "that are rejected too often.",
        Finding.PLAIN: "The engine has another distribution than the given one without "
        "speculation, too: compare sampling parameters and models before speculation is blamed.",
        Finding.UNANSWERED: "A call did not return in time, so that the distribution is not "
        "judged. Raise --timeout, or look for a loop that does not end.",
        Finding.NOT_EXERCISED: "No draft token is known to have been accepted, so that nothing "
        "was learned of speculation. Check that drafts are proposed, and by a draft model that is "
        "like the target.",
    }
)


def address_of_finding(finding: Finding) -> str:
    """Where a finding is described."""
    return f"{site()}/generated/findings.html#{finding.replace(' ', '-').replace('_', '-')}"


def address_of_bug(id_: str) -> str:
    """Where a planted bug, or a control, is described: whatever number it has."""
    return f"{site()}/generated/bugs.html#{id_.partition(' at ')[0]}"


def published() -> bool:
    """Whether addresses can be opened elsewhere than in a checkout in which the site was built."""
    return site() != BUILT


@cache
def site() -> str:
    """The address of the documentation: the one of ``[project.urls]``, if there is one."""
    try:
        urls = metadata(PROJECT).get_all("Project-URL") or []
    except PackageNotFoundError:  # a checkout that is not installed
        urls = []
    known = dict(one.split(", ", 1) for one in urls)
    return str(known.get(LABEL, BUILT)).rstrip("/")
