"""The reference itself, under the contracts ``verify``, ``tree`` and ``step``."""

import numpy as np

from specref.algorithms import standard, traversal
from specref.algorithms.trees import topdown
from specref.arrays import Floats, Ints
from specref.chance import Chance
from specref.contracts.capabilities import capable
from specref.contracts.tree.nodes import as_verifier
from specref.models import Model
from specref.statistics.floats.coins import Coins, draw_coins, verify_float64
from specref.vocabulary import Tokens


@capable(rule="standard", recovery="race", row_seeds=True)
def verify(
    target_probs: Floats,
    draft_probs: Floats | None,
    draft_tokens: Ints,
    *,
    rng: np.random.Generator,
    coins: Coins | None = None,
) -> tuple[Ints, Ints]:
    """Standard speculative decoding of a batch in float64 (Leviathan et al. 2023, Algorithm 1).

    Examples
    --------
    >>> p = np.array([[[0.5, 0.5], [0.0, 1.0]]])
    >>> verify(p, p[:, :1], np.array([[0]]), rng=np.random.default_rng(1))
    (array([[0, 1]]), array([2]))
    """
    size = target_probs.shape[2]
    trials, lookahead = draft_tokens.shape
    coins = coins or draw_coins(trials, lookahead, size, rng)
    q = np.eye(size)[draft_tokens] if draft_probs is None else draft_probs
    tokens = verify_float64(target_probs, q, draft_tokens, coins)
    return tokens, (tokens >= 0).sum(axis=1)


@capable(rule="standard")
def step(target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance) -> Tokens:
    """Standard speculative decoding, one iteration (Leviathan et al. 2023, Algorithm 1)."""
    return standard.step(target, drafter, context, lookahead, chance)


verify_tree = capable(rule="topdown")(as_verifier(topdown.verify))
verify_tree_traversal = capable(rule="traversal")(as_verifier(traversal.verify))
