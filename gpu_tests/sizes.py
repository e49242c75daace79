"""How much each device is given to do."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

# Tokens per iteration, at most, on the pairs that are generated with.
RATES: Mapping[str, float] = MappingProxyType(
    {
        "autoregressive": 1,
        "standard": 3.2,
        "union": 2,
        "tli": 2.2,
        "slem": 1.4,
        "slrs": 2.2,
    }
)


@dataclass(frozen=True)
class Sizes:
    """Numbers of prompts, of texts for each, and of tokens in a text.

    * `prompts`, `tokens`: Of a generation that is judged, with as many texts of each prompt as it
      takes.
    * `iterations`: What it has at least, all rows together; a variant a quarter.
    * `planted`: Of the seeds, how many a planted bug is given.
    * `few`: Prompts and tokens where texts are compared token by token.
    * `blocks`: Blocks that are verified twice with the same coins.
    * `laws`: Held-out documents, of some 100 tokens, whose laws are computed in every dtype.
    * `texts`: Prompts and tokens for Transformers, which takes one text at a time.
    """

    prompts: int
    tokens: int
    iterations: int
    planted: int
    few: tuple[int, int]
    blocks: int
    laws: int
    texts: tuple[int, int]

    def seeds(self, method: str, iterations: int) -> int:
        """How many texts of each prompt have so many iterations."""
        return math.ceil(iterations * RATES[method] / (self.prompts * self.tokens))


PRETENDED = "cuda:0"
"""The device of `gpu_tests.pretended`: sizes are for what runs there, not for what is found."""
SIZES: Mapping[str, Sizes] = MappingProxyType(
    {
        "cpu": Sizes(40, 24, 300, 1, (4, 16), 200, 2, (12, 32)),
        PRETENDED: Sizes(10, 8, 20, 1, (3, 8), 100, 1, (2, 8)),
        "cuda": Sizes(40, 64, 100_000, 16, (40, 128), 4_096, 20, (40, 64)),
    }
)
