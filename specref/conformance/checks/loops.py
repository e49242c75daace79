"""Stage acceptance for whole loops that tell their blocks: `implementation.blocks` after a call.

Each block has `drafted` and `accepted`: how many tokens were drafted, and how many kept.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from specref.conformance.chains import CHAIN, FLAT, PEAKED
from specref.conformance.checks.check import Check, failed, not_applicable, passed
from specref.conformance.contract import Contract
from specref.conformance.judge import Judge
from specref.conformance.patience import within
from specref.conformance.status import Outcome
from specref.models import Model
from specref.vocabulary import Tokens, Vocabulary

GENERATE = frozenset({Contract.GENERATE})
TEXTS, TOKENS = 10, 200
KEEPS_ALL = ("standard", "union", "tli", "slrs")
BY_TEXT = ("union", "tli", "slem", "slrs")


def first_drafts(judge: Judge) -> Outcome:
    """No lossless rule keeps a first draft more often than sum min(p, q)."""
    if not hasattr(judge.implementation, "blocks"):
        return not_applicable("does not tell its blocks")
    if judge.capabilities.greedy:
        return not_applicable("decodes greedily: what it keeps has no law")
    first: list[bool] = []
    for number in range(TEXTS):
        blocks = _blocks(judge, FLAT, PEAKED, number)
        # A number of blocks fixed beforehand: a text is sure to hold so many.
        longest = max((block.drafted for block in blocks), default=0) + 1
        first += [b.accepted > 0 for b in blocks[: TOKENS // longest - 1] if b.drafted]
    if not first:
        return not_applicable("nothing was drafted")
    most = float(np.minimum(FLAT.next_token(()), PEAKED.next_token(())).sum())
    kept = sum(first)
    alpha = judge.alpha / judge.checks
    least = float(stats.beta.ppf(alpha, kept, len(first) - kept + 1)) if kept else 0.0
    facts = {"kept": kept, "drafted": len(first), "bound": most}
    if least > most:
        return failed(
            f"{kept} of {len(first)} first drafts kept, surely more than sum min(p, q) = "
            f"{most:.3f}: drafts are verified with another q, or the rule is lossy",
            **facts,
        )
    return passed(f"{kept} of {len(first)} first drafts kept, sum min(p, q) = {most:.3f}", **facts)


def self_draft(judge: Judge) -> Outcome:
    """A drafter that is the target, under other ids where the rule reads those, is always kept."""
    if not hasattr(judge.implementation, "blocks"):
        return not_applicable("does not tell its blocks")
    rule = judge.capabilities.rule
    if rule not in KEEPS_ALL:
        return not_applicable("declares no rule that keeps every draft where p = q")
    drafter = relabelled(CHAIN) if rule in BY_TEXT else CHAIN
    blocks = _blocks(judge, CHAIN, drafter)
    drafted, kept = (sum(getattr(b, name) for b in blocks) for name in ("drafted", "accepted"))
    if kept < drafted:
        return failed(
            f"{kept} of {drafted} drafts of a drafter that is the target were kept: q, or the "
            "drafter's context, is not what it should be",
            kept=kept,
            drafted=drafted,
        )
    return passed(f"all {drafted} drafts of a drafter that is the target were kept")


def relabelled(model: Model) -> Model:
    """The same model with its tokens in another order.

    Examples
    --------
    >>> other = relabelled(CHAIN)
    >>> other.vocabulary.tokens, str(other.next_token((2,))[2]) == str(CHAIN.next_token((1,))[1])
    (('c', 'e', 'b', 'd', 'a'), True)
    """
    size = len(model.vocabulary)
    order = [(2 * i + 2) % size for i in range(size)] if size % 2 else list(range(size))[::-1]
    words: Sequence[Any] = [model.vocabulary.tokens[i] for i in order]

    def next_token(context: Tokens) -> Any:
        return model.next_token(tuple(order[token] for token in context))[order]

    return Model(Vocabulary(words), next_token)


def _blocks(judge: Judge, target: Model, drafter: Model, number: int = 0) -> Sequence[Any]:
    rng = judge.rng(f"blocks {number}")
    implementation: Any = judge.implementation
    within(judge.patience, lambda: implementation(target, drafter, (0,), TOKENS, rng))
    return tuple(implementation.blocks)


CHECKS = (
    Check("acceptance/first-drafts", GENERATE, first_drafts, statistical=True),
    Check("acceptance/self-draft", GENERATE, self_draft, lossy=False),
)
