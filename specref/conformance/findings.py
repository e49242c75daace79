"""What each finding means, and where it and each planted bug are described: a stable address."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from types import MappingProxyType

from specref.conformance.status import Finding

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
    """Where a finding is described.

    Examples
    --------
    >>> address_of_finding(Finding.LAW).rpartition("/")[2]
    'findings.html#lossy-law'
    """
    return f"{site()}/generated/findings.html#{finding.replace(' ', '-').replace('_', '-')}"


def address_of_bug(id_: str) -> str:
    """Where a planted bug, or a control, is described.

    Examples
    --------
    >>> address_of_bug("residual-is-p").rpartition("/")[2]
    'bugs.html#residual-is-p'
    """
    return f"{site()}/generated/bugs.html#{id_}"


@cache
def site() -> str:
    """The address of the documentation: the one of ``[project.urls]``, if there is one."""
    try:
        urls = metadata(PROJECT).get_all("Project-URL") or []
    except PackageNotFoundError:  # a checkout that is not installed
        urls = []
    known = dict(one.split(", ", 1) for one in urls)
    return str(known.get(LABEL, BUILT)).rstrip("/")
