"""Drafter forwards that bounds of psi save, over toy pairs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from proofs_tests.benchmarks.lazy_slrs import STEPS, both, sampled, toys
from specref.theory import fixed, until_determined

Row: TypeAlias = dict[str, Any]
RULES = fixed, until_determined


@dataclass(frozen=True)
class Sizes:
    """The longest lookahead, the longest words of sampled targets, and how many of them."""

    lookahead: int = 3
    words: int = 8
    runs: int = 300
    seed: int = 0


def rows(sizes: Sizes) -> Iterator[Row]:
    """Expected forwards of the drafter, summed over toy pairs; and means of sampled ones."""
    for rule in RULES:
        for verified, steps in STEPS.items():
            for lookahead in range(1, sizes.lookahead + 1):
                lazy, full = both(toys(), steps, lookahead, rule)
                named = {"rule": rule.__name__, "verified": verified, "lookahead": lookahead}
                yield {"pairs": "toys", **named, "lazy": float(lazy), "full": float(full)}
    rng = np.random.default_rng(sizes.seed)
    for longest in range(2, sizes.words + 1):
        counts = np.array(sampled(longest, sizes.runs, rng))
        (lazy, full), error = counts.mean(axis=0), counts[:, 0].std(ddof=1) / len(counts) ** 0.5
        named = {"rule": until_determined.__name__, "verified": "one token", "lookahead": longest}
        found = {"lazy": float(lazy), "full": float(full), "error": float(error)}
        yield {"pairs": "words", **named, **found}
