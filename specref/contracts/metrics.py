"""The contract ``metrics``: a log of iterations in, the figure that it is said to be out."""

from collections.abc import Sequence
from typing import Protocol

from specref.contracts.contract import Contract
from specref.rules import Rule
from specref.theory.metrics import Iteration


class Reported(Protocol):
    """Contract ``metrics``: a log of iterations in, the figure that it is said to be out."""

    def __call__(self, log: Sequence[Iteration]) -> object:
        """The figure that `Capabilities.metric` names."""
        ...


class MetricsContract(Contract):
    """The contract ``metrics``; nothing is verified."""

    def takes_rule(self, rule: Rule) -> bool:
        return False


METRICS = MetricsContract("metrics", Reported, ("log",))
