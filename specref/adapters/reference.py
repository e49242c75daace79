"""The reference itself, under the contracts ``verify``, ``ragged``, ``tree`` and ``step``."""

import numpy as np

from specref.algorithms import standard, traversal
from specref.algorithms.trees import topdown
from specref.arrays import NO_TOKEN, Floats, Ints, one_hot_rows
from specref.chance import Chance
from specref.coins import Coins, draw_coins
from specref.contracts.capabilities import capable
from specref.contracts.tree import as_verifier
from specref.models import Model
from specref.statistics.floats.floats import verify_float64
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
    q = one_hot_rows(draft_tokens, size) if draft_probs is None else draft_probs
    tokens = verify_float64(target_probs, q, draft_tokens, coins)
    return tokens, (tokens >= 0).sum(axis=1)


@capable(rule="standard", recovery="race", row_seeds=True)
def verify_ragged(
    *,
    draft_token_ids: Ints,
    num_draft_tokens: Ints,
    target_probs: Floats,
    draft_probs: Floats | None,
    rng: np.random.Generator,
    coins: Coins | None = None,
) -> tuple[Ints, Ints]:
    """The same for drafts of all requests in one array, with a row of p more for each request.

    Examples
    --------
    >>> p = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> drafts, lengths, rng = np.array([1]), np.array([0, 1]), np.random.default_rng(1)
    >>> tokens, counts = verify_ragged(
    ...     draft_token_ids=drafts, num_draft_tokens=lengths, target_probs=p,
    ...     draft_probs=p[1:2], rng=rng,
    ... )
    >>> tokens.tolist(), counts.tolist()
    ([[0, -1], [1, 0]], [1, 2])
    """
    rows, size = len(num_draft_tokens), target_probs.shape[1]
    places = np.arange(num_draft_tokens.max(initial=0) + 1)
    known, drafted = (at < num_draft_tokens[:, None] + 1 for at in (places, places[1:]))
    drafts = np.full(drafted.shape, NO_TOKEN)
    drafts[drafted] = draft_token_ids
    p, q = np.zeros((*known.shape, size)), np.zeros((*drafted.shape, size))
    p[known] = target_probs
    if draft_probs is not None:
        q[drafted] = draft_probs
    if coins is None:
        coins = draw_coins(rows, len(places) - 1, size, rng)
    used = Coins(coins.accept[:, : len(places) - 1], coins.race)
    return verify(p, None if draft_probs is None else q, drafts, rng=rng, coins=used)


@capable(rule="standard")
def step(target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance) -> Tokens:
    """Standard speculative decoding, one iteration (Leviathan et al. 2023, Algorithm 1)."""
    return standard.step(target, drafter, context, lookahead, chance)


verify_tree = capable(rule="topdown")(as_verifier(topdown.verify))
verify_tree_traversal = capable(rule="traversal")(as_verifier(traversal.verify))
