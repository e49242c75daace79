"""What a command judges: a registered name, or MODULE:FUNCTION."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from specref.cli.loading import load_function
from specref.conformance.checks import CHECKS
from specref.conformance.contract import Contract
from specref.conformance.implementations import IMPLEMENTATIONS

EXAMPLES = "examples."
COARSE = {Contract.VERIFY: 0.1, Contract.GENERATE: 0.15}


@dataclass(frozen=True)
class Target:
    """An implementation that was found.

    Attributes
    ----------
    contract : Contract or None
        What it is made for; None if its name does not say.
    expected : mapping
        {id of a check: reason} of known deviations.
    claims : mapping
        What it claims besides what it carries.
    detect_tv : float or None
        For slow ones, what is detected unless something else is asked for.
    """

    name: str
    function: Callable[..., Any]
    contract: Contract | None = None
    version: str = ""
    expected: Mapping[str, str] = field(default_factory=dict)
    claims: Mapping[str, Any] = field(default_factory=dict)
    detect_tv: float | None = None


def find_targets(name: str, contract: str | None = None) -> tuple[Target, ...]:
    """The implementations that a name on the command line stands for.

    ``examples.correct:verify`` and ``examples.lossy:verify`` come with the package. A
    registered name with a contract, such as transformers with generate, is all that are
    registered for it.

    Raises
    ------
    ImportError
        The module, or the package of a registered implementation, cannot be imported.
    ValueError
        No such name or function.

    Examples
    --------
    >>> find_targets("examples.correct:verify")[0].name
    'examples.correct:verify'
    >>> [target.name for target in find_targets("reference")]
    ['reference']
    """
    if ":" in name:
        path = f"specref.{name}" if name.startswith(EXAMPLES) else name
        return (Target(name, load_function(path, "target")),)
    group = [key for key in IMPLEMENTATIONS if contract and key.startswith(f"{name}-{contract}")]
    wanted = group or [key for key in IMPLEMENTATIONS if key == name]
    if not wanted:
        known = ", ".join(IMPLEMENTATIONS)
        raise ValueError(
            f"target = {name!r}: expected MODULE:FUNCTION, FILE.py:FUNCTION or {known}"
        )
    return tuple(registered(key) for key in wanted)


def registered(name: str) -> Target:
    """A registered implementation, loaded.

    Raises
    ------
    NotInstalledError
        Its package is missing.
    """
    one = IMPLEMENTATIONS[name]
    ids = {check.id for check in CHECKS}
    return Target(
        name,
        one.load(),
        one.contract,
        one.title,
        {known.check: known.reason for known in one.known if known.check in ids},
        {"greedy": one.greedy} | ({"rule": one.rule} if one.rule else {}),
        COARSE.get(one.contract) if one.packages else None,
    )
