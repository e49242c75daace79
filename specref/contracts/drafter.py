"""The contract ``drafter``: drafts, and the laws that they are declared to come from."""

from typing import Protocol

import numpy as np

from specref.arrays import Floats
from specref.contracts.contract import RANDOMNESS, Contract
from specref.models import Model
from specref.rules import Rule
from specref.vocabulary import Tokens


class Drafter(Protocol):
    """Contract ``drafter``: drafts, and the laws that they are declared to come from."""

    def __call__(
        self, drafter: Model, context: Tokens, lookahead: int, rng: np.random.Generator
    ) -> tuple[Tokens, Floats]:
        """Draft up to `lookahead` tokens; q has a row for each."""
        ...


class DrafterContract(Contract):
    """The contract ``drafter``; nothing is verified."""

    def takes_rule(self, rule: Rule) -> bool:
        return False


DRAFTER = DrafterContract("drafter", Drafter, ("drafter", "context", "lookahead"), RANDOMNESS)
