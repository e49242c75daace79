"""Ragged batches of random token trees."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from proofs_tests.helpers.torch.tree_laws import (
    Batch,
    Row,
    pruned,
)
from proofs_tests.helpers.tree_cases import top_tree
from specref import Vocabulary
from specref.algorithms import traversal
from specref.algorithms.trees import topdown
from specref.chance import Sampled
from specref.models import as_float, hashed_model
from specref.torch_backend.randomness import Coins

RULES = {"topdown": topdown, "traversal": traversal}


EACH_RULE = pytest.mark.parametrize("rule", RULES)


TARGET, DRAFTER = (hashed_model(Vocabulary("abcdef"), key) for key in ("target", "drafter"))


def random_tree(rng: np.random.Generator) -> Any:
    """A tree of up to three depths, with or without replacement or the likeliest, pruned."""
    branching = tuple(int(width) for width in rng.integers(1, 4, size=rng.integers(4)))
    drafter, kind = as_float(DRAFTER), rng.integers(3)
    if kind == 2:
        return pruned(top_tree(drafter, (), branching), rng)
    return pruned(topdown.draft(drafter, (), branching, Sampled(rng), replacement=bool(kind)), rng)


@cache
def batch(rows: int = 150) -> Batch:
    """Ragged, in an order of nodes that is mixed."""
    rng = np.random.default_rng(7)
    target = as_float(TARGET)
    return Batch(
        [Row(target, (), random_tree(rng)) for _ in range(rows)],
        lambda families: int(rng.integers(families)),
    )


def rows_of(given: Any, chosen: Any) -> Any:
    if isinstance(given, Coins):
        return Coins(*(None if one is None else one[chosen] for one in given))
    return None if given is None else given[chosen]
