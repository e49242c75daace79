"""The implementations to judge: a registered name, MODULE:FUNCTION, or process:COMMAND."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from specref.adapters import IMPLEMENTATIONS
from specref.cli.completion import EXAMPLES as EXAMPLES_OF_PACKAGE
from specref.cli.loading import load_function
from specref.conformance.checks import CHECKS
from specref.contracts.contract import Contract
from specref.contracts.table import CONTRACTS, VERIFY
from specref.contracts.timeout import TIMEOUT
from specref.process import Process
from specref.suggestions import did_you_mean

EXAMPLES, PROCESS = "examples.", "process:"


@dataclass(frozen=True)
class Target:
    """An implementation to judge.

    * `contract`: What it is made for; None if its name does not say.
    * `expected`: {id of a check: reason} of known deviations.
    * `claims`: What it claims besides what it carries.
    * `detect_tv`: For slow ones, what is detected unless something else is asked for.
    """

    name: str
    function: Callable[..., Any]
    contract: Contract | None = None
    version: str = ""
    expected: Mapping[str, str] = field(default_factory=dict)
    claims: Mapping[str, Any] = field(default_factory=dict)
    detect_tv: float | None = None
    timeout: float | None = TIMEOUT
    close: Callable[[], None] = lambda: None


def find_targets(
    name: str, contract: str | None = None, timeout: float = TIMEOUT
) -> tuple[Target, ...]:
    """The implementations that a name on the command line stands for.

    ``examples.correct:verify`` and ``examples.lossy:verify`` come with the package. A
    registered name with a contract, such as transformers with generate, is all that are
    registered for it. ``process:COMMAND`` is a program, which is started.
    """
    if name.startswith(PROCESS):
        return (_program(name, contract, timeout),)
    if ":" in name:
        return (Target(name, load_function(full_name(name), "target"), timeout=timeout),)
    of_contract = [key for key, one in IMPLEMENTATIONS.items() if one.contract.name == contract]
    group = [key for key in of_contract if key.startswith(f"{name}-{contract}")]
    wanted = group or [key for key in IMPLEMENTATIONS if key == name]
    if not wanted:
        raise ValueError(f"target = {name!r}: expected {_expected(name)}")
    return tuple(replace(registered(key), timeout=timeout) for key in wanted)


@dataclass(frozen=True)
class LoadTarget:
    """Loads the implementation of a target, by its name, in whichever process calls it."""

    name: str
    timeout: float

    def __call__(self) -> Callable[..., Any]:
        (target,) = find_targets(self.name, timeout=self.timeout)
        return target.function


def full_name(name: str) -> str:
    """MODULE:FUNCTION as Python imports it: ``examples.`` is a part of this package."""
    return f"specref.{name}" if name.startswith(EXAMPLES) else name


def closed_at_the_end(targets: tuple[Target, ...]) -> tuple[Target, ...]:
    """The same targets, closed when the running command ends."""
    for target in targets:
        click.get_current_context().call_on_close(target.close)
    return targets


def _expected(name: str) -> str:
    """What a target is, where this is none; with what may have been meant."""
    if name == "engines":
        return "--installed, for every engine that is installed (minutes), or engines.py:FUNCTION"
    if not Path(name).is_file():
        known = [*IMPLEMENTATIONS, *EXAMPLES_OF_PACKAGE]
        return (
            "MODULE:FUNCTION, FILE.py:FUNCTION, process:COMMAND or a name of `specref list names`"
            f"{did_you_mean(name, known)}"
        )
    if name.endswith(".py"):
        return f"{name}:FUNCTION"
    command = name if "/" in name else f"./{name}"
    return f"process:{command}, for a program in any language"


def _program(name: str, contract: str | None, timeout: float) -> Target:
    if contract and not CONTRACTS[contract].programs:
        known = " or ".join(one.name for one in CONTRACTS.values() if one.programs)
        raise ValueError(f"contract = {contract!r}: expected {known}, the only one of programs")
    program = Process(name.removeprefix(PROCESS), timeout=timeout)
    version = str(program.declared)
    return Target(name, program, VERIFY, version, timeout=None, close=program.close)


def registered(name: str) -> Target:
    one = IMPLEMENTATIONS[name]
    ids = {check.id for check in CHECKS}
    return Target(
        name,
        one.load(),
        one.contract,
        one.title,
        {known.check: known.reason for known in one.known if known.check in ids},
        {"greedy": one.greedy} | ({"rule": one.rule} if one.rule else {}),
        one.contract.coarse_tv if one.packages else None,
    )
