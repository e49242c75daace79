"""What is generated: a method, on a pair, with laws of a setting."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch

from specref.contrib.real_models.record import PLAIN
from specref.contrib.real_models.settings import Setting

LOOKAHEAD = 4


@dataclass(frozen=True)
class Case:
    """A method on a pair, and how laws are shaped; float64 where a cut must not move.

    A variant is given fewer texts. Drafts are verified one by one, or by block.
    """

    method: str
    pair: str
    setting: Setting = PLAIN
    dtype: torch.dtype = torch.float32
    variant: bool = False
    verification: str = "token"


CASES: Mapping[str, Case] = MappingProxyType(
    {
        "autoregressive": Case("autoregressive", "homogeneous"),
        "standard": Case("standard", "homogeneous"),
        "union": Case("union", "small intersection"),
        "tli": Case("tli", "large intersection"),
        "slem": Case("slem", "non-injective"),
        "slrs": Case("slrs", "large intersection", variant=True),
        "slrs, bytes": Case("slrs", "byte-level", variant=True),
        "standard, T 0.7, top-p 0.9": Case(
            "standard", "homogeneous", Setting(0.7, top_p=0.9), torch.float64, variant=True
        ),
        "standard, gpt2": Case(
            "standard", "homogeneous, target_gpt2 + drafter_unigram", variant=True
        ),
        "standard, block": Case("standard", "homogeneous", variant=True, verification="block"),
        "tli, block": Case("tli", "large intersection", variant=True, verification="block"),
        "slem, large intersection": Case("slem", "large intersection", variant=True),
    }
)
