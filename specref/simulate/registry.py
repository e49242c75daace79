"""The machine of each algorithm, by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from specref.models import Model
from specref.simulate import machines
from specref.simulate.block import BlockVerification
from specref.vocabulary import Tokens

Build: TypeAlias = Callable[[Model, Model, Tokens, int], machines.Machine]

MACHINES: Mapping[str, Build] = MappingProxyType(
    {
        "autoregressive": machines.Autoregressive,
        "standard": machines.Standard,
        "union": machines.Union,
        "tli": machines.TokenLevelIntersection,
        "slem": machines.StringLevelExactMatch,
        "slrs": machines.StringLevelRejectionSampling,
        "block": BlockVerification,
    }
)
