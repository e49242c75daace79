"""What can be judged by name: a sampler, how to load it, and the failures that are expected."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from specref.adapters.needs import NotInstalledError, require, there, title
from specref.contracts.contract import Contract


@dataclass(frozen=True)
class Deviation:
    """One expected failure, and its reason.

    * `check`: The id of the check that fails.
    * `reason`: The cause, in one sentence.
    * `lossy`: Whether it changes the distribution of the output.
    * `cites`: Issues and pull requests (``owner/repo#number``).
    * `evidence`: The test that demonstrates it.
    """

    check: str
    reason: str
    lossy: bool
    cites: tuple[str, ...] = ()
    evidence: str = ""


@dataclass(frozen=True)
class Implementation:
    """A registered sampler, and how to load it.

    * `text`: A description, without versions.
    * `make`: Returns the function of the contract; it may import `packages`.
    * `remedy`: How to install them.
    * `greedy`: Whether it decodes by argmax, to be judged by equality (`judge_greedy`), not by a
      distribution.
    * `rule`: The algorithm that it declares, if the function itself does not.
    * `known`: The failures that are expected.
    * `apart`: Packages that `make` does not import as a whole, and clones ``OWNER/NAME``.
    """

    name: str
    contract: Contract
    text: str
    make: Callable[[], Callable[..., Any]]
    packages: tuple[str, ...] = ()
    remedy: str = ""
    greedy: bool = False
    rule: str | None = None
    known: tuple[Deviation, ...] = ()
    apart: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The description, with the installed versions."""
        return title(self.text, (*self.packages, *(one for one in self.apart if "/" not in one)))

    @property
    def missing(self) -> tuple[str, ...]:
        """The packages that are not installed, and clones; does not import any."""
        return tuple(one for one in (*self.packages, *self.apart) if not there(one))

    @property
    def not_run(self) -> str | None:
        """Why it cannot be judged here, as ``not_run (…)``; None if it can be."""
        try:
            self.load()
        except NotInstalledError as error:
            return f"not_run ({str(error).split(':')[0]})"
        return None

    def load(self) -> Callable[..., Any]:
        """Load the function of the contract.

        * raises `NotInstalledError`: A package is missing; the message says how to install it.
        """
        require(self.packages, self.remedy)
        return self.make()
