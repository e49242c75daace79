"""How much each device is given to do."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Sizes:
    """Numbers of prompts, of texts for each, and of tokens in a text.

    Attributes
    ----------
    prompts, seeds, tokens : int
        Of a generation that is judged: prompts x seeds texts; a quarter of the seeds for a
        variant of a case.
    iterations : int
        What it has at least, all rows together; a variant an eighth.
    planted : int
        Of the seeds, how many a planted bug is given.
    slrs : tuple of int
        Prompts, seeds, tokens and lookahead for SLRS, whose drafts cost a forward of a prefix
        tree for each context: texts of one prompt share that of their first draft.
    slrs_iterations : int
    few : tuple of int
        Prompts and tokens where texts are compared token by token.
    blocks : int
        Blocks that are verified twice with the same coins.
    laws : int
        Held-out documents, of some 100 tokens, whose laws are computed in every dtype.
    texts : tuple of int
        Prompts and tokens for Transformers, which takes one text at a time.
    """

    prompts: int
    seeds: int
    tokens: int
    iterations: int
    planted: int
    slrs: tuple[int, int, int, int]
    slrs_iterations: int
    few: tuple[int, int]
    blocks: int
    laws: int
    texts: tuple[int, int]


SIZES: Mapping[str, Sizes] = MappingProxyType(
    {
        "cpu": Sizes(40, 1, 24, 300, 1, (4, 64, 2, 1), 256, (8, 24), 200, 2, (12, 32)),
        "cuda": Sizes(
            40, 140, 64, 100_000, 16, (40, 250, 2, 1), 10_000, (40, 128), 4_096, 20, (40, 64)
        ),
    }
)
