"""A sampler of an attack: what it is, and the options that it is judged with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Listed = Callable[[Any], Any]


@dataclass(frozen=True)
class Entry:
    """A sampler of one contract.

    Attributes
    ----------
    name, contract : str
    expected : {"lossy", "lossless"}
        Of a drafter, "lossy": its drafts do not have the law that it declares. Of a figure: it
        is not what its name says.
    what : str
        What is wrong, or why it is right.
    make : callable
        A new one, without what an earlier one kept.
    options : mapping
        Claims and the rule, as keywords of `specref.check`.
    """

    name: str
    contract: str
    expected: str
    what: str
    make: Callable[[], Any]
    options: Mapping[str, Any]


class Samplers(dict[str, Entry]):
    """The samplers of one contract, by name; its decorators add one.

    With `state=True` the decorated function makes the sampler.
    """

    def __init__(self, contract: str) -> None:
        super().__init__()
        self.contract = contract

    def lossy(self, *, state: bool = False, **options: Any) -> Listed:
        return self.listed("lossy", state, options)

    def lossless(self, *, state: bool = False, **options: Any) -> Listed:
        return self.listed("lossless", state, options)

    def listed(self, expected: str, state: bool, options: Mapping[str, Any]) -> Listed:
        def add(function: Any) -> Any:
            name, what = function.__name__, " ".join(function.__doc__.split())
            make = function if state else lambda: function
            self[name] = Entry(name, self.contract, expected, what, make, options)
            return function

        return add
