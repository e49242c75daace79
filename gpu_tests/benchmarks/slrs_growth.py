"""How many ways there are to spell a token, by its length, over real vocabularies.

Counted by the graph of spellings (`specref.theory.spellings`), exactly and for every token.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from specref.real_vocabularies import load
from specref.theory import spellings
from specref.vocabulary import Vocabulary

Row: TypeAlias = dict[str, Any]
BYTES = "bytes"
QUANTILES = {
    "q25": Fraction(1, 4),
    "median": Fraction(1, 2),
    "q75": Fraction(3, 4),
    "max": Fraction(1),
}


@dataclass(frozen=True)
class Sizes:
    """The vocabularies, each taken as target and as drafter; every `every`-th token is counted."""

    names: tuple[str, ...] = ("qwen2", "llama-3.1", "gpt2")
    every: int = 1
    downloads: tuple[str | Path, ...] = ()


def rows(sizes: Sizes) -> Iterator[Row]:
    """For each target, drafter and length in bytes, order statistics over the target's tokens.

    Raises
    ------
    VocabularyNotInstalledError
        No package that carries one of them is there.
    """
    known = {name: load(name, sizes.downloads).by_bytes(merge=True) for name in sizes.names}
    drafters = known | {BYTES: Vocabulary([bytes([byte]) for byte in range(256)])}
    for target, drafter in product(known, drafters):
        tokens = known[target].tokens[:: sizes.every]
        for row in by_length(tokens, drafters[drafter]):
            yield {"target": target, "drafter": drafter} | row


def by_length(tokens: Sequence[Any], drafter: Vocabulary) -> Iterator[Row]:
    """Order statistics of decompositions, median forwards and the greatest n_max, by length.

    Examples
    --------
    >>> letters = Vocabulary([b"a", b"b", b"ab"])
    >>> for row in by_length([b"a", b"ab", b"ba"], letters):
    ...     print(row["length"], row["tokens"], row["decompositions"]["max"], row["n_max"])
    1 1 1 1
    2 2 2 2
    """
    found = defaultdict(list)
    for token in tokens:
        spelled = spellings(token, drafter)
        found[len(token)].append((spelled.count, spelled.forwards, spelled.n_max))
    for length, figures in sorted(found.items()):
        counts, forwards, most = zip(*figures, strict=True)
        yield {
            "length": length,
            "tokens": len(figures),
            "unspelled": sum(count == 0 for count in counts),
            "decompositions": quantiles(counts),
            "forwards": quantiles(forwards)["median"],
            "n_max": max(most),
        }


def quantiles(values: Sequence[int]) -> dict[str, int]:
    """Quantiles that occur: of n values in order, number floor(share x (n - 1)) from 0.

    Examples
    --------
    >>> quantiles([8, 1, 4, 2])
    {'q25': 1, 'median': 2, 'q75': 4, 'max': 8}
    """
    ordered, last = sorted(values), len(values) - 1
    return {name: ordered[int(share * last)] for name, share in QUANTILES.items()}
