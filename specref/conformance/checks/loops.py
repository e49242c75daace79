"""Stage acceptance for whole loops that report their blocks as `implementation.blocks`.

Each block has `drafted` and `accepted`: how many tokens were drafted, and how many kept.
"""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from specref.conformance.checks.check import Check, failed, not_applicable, passed
from specref.conformance.judge import Judge
from specref.conformance.status import Finding, Outcome
from specref.conformance.texts.chains import FLAT, PAIRS, PEAKED
from specref.contracts.functions import GenerateContract
from specref.contracts.sampling import giver
from specref.contracts.timeout import within
from specref.distributions import overlap
from specref.models import Model, as_float
from specref.statistics.campaign.acceptance import lower_rate
from specref.vocabulary import Tokens, Vocabulary

TEXTS, TOKENS = 10, 200
SUM_MIN = float(overlap(FLAT.next_token(()), PEAKED.next_token(())))
DRAFTER_ONLY = "xy"
ROUNDING = 1e-9
UNTOLD = "does not tell its blocks"


def first_drafts(judge: Judge) -> Outcome:
    """No lossless rule keeps a first draft more often than sum min(p, q)."""
    if not hasattr(judge.implementation, "blocks"):
        return not_applicable(UNTOLD)
    if judge.declared and not judge.declared.draws_from_q:
        return not_applicable("declares a rule whose drafts are not drawn from q, one a position")
    kept, drafted = _first_drafts(judge)
    if not drafted:
        return not_applicable("nothing was drafted")
    least, _ = _share(judge, kept, drafted)
    if least > SUM_MIN:
        return failed(
            f"{kept} of {drafted} first drafts kept, surely more than sum min(p, q) = "
            f"{SUM_MIN:.3f}: drafts are verified with another q, or the rule is lossy",
            **_facts(kept, drafted),
        )
    return passed(_seen(kept, drafted), **_facts(kept, drafted))


def lost_drafts(judge: Judge) -> Outcome:
    """The declared rule keeps first drafts no less often than sum min(p, q)."""
    rule = judge.declared
    if rule and rule.accepted_lengths is None:
        return not_applicable(f"no closed form of the accepted lengths of {rule.name} is known")
    if rule is None or rule.acceptance_rate(FLAT, PEAKED) < SUM_MIN - ROUNDING:
        return not_applicable("declares no rule that keeps sum min(p, q) of first drafts")
    if not hasattr(judge.implementation, "blocks"):
        return not_applicable(UNTOLD)
    kept, drafted = _first_drafts(judge)
    if not drafted:
        return not_applicable("nothing was drafted")
    _, most = _share(judge, kept, drafted)
    if most < SUM_MIN:
        return failed(
            f"{kept} of {drafted} first drafts kept, surely fewer than sum min(p, q) = "
            f"{SUM_MIN:.3f}: the drafter does not draft by the q it was given",
            **_facts(kept, drafted),
        )
    return passed(_seen(kept, drafted), **_facts(kept, drafted))


def _first_drafts(judge: Judge) -> tuple[int, int]:
    """How many first drafts were kept, and how many there were; counted once."""
    if judge.first_drafts is not None:
        return judge.first_drafts
    first: list[bool] = []
    started = time.perf_counter()
    for number in range(TEXTS):
        if judge.seconds is not None and time.perf_counter() - started > judge.seconds:
            break  # whatever was seen until now
        blocks = _blocks(judge, FLAT, PEAKED, number)
        # The number of blocks is fixed beforehand: every text has at least so many.
        longest = max((block.drafted for block in blocks), default=0) + 1
        first += [b.accepted > 0 for b in blocks[: TOKENS // longest - 1] if b.drafted]
    judge.first_drafts = sum(first), len(first)
    return judge.first_drafts


def _share(judge: Judge, kept: int, drafted: int) -> tuple[float, float]:
    """Lower and upper bound on the share of drafts kept, each at the alpha of this check."""
    alpha = judge.level
    return lower_rate(kept, drafted, alpha), 1 - lower_rate(drafted - kept, drafted, alpha)


def _facts(kept: int, drafted: int) -> dict[str, float]:
    return {"kept": kept, "drafted": drafted, "bound": SUM_MIN}


def _seen(kept: int, drafted: int) -> str:
    return f"{kept} of {drafted} first drafts kept, sum min(p, q) = {SUM_MIN:.3f}"


def self_draft(judge: Judge) -> Outcome:
    """A drafter that is the target, under other ids where the rule reads those, is always kept.

    The model has order 2, so that a wrong token in the drafter's context is noticed. If the rule
    skips tokens that the target does not know, the drafter has some of them.
    """
    if not hasattr(judge.implementation, "blocks"):
        return not_applicable(UNTOLD)
    rule = judge.declared
    if rule is None or not (rule.accepts_equals and rule.draws_from_q):
        return not_applicable("declares no rule that keeps every draft where p = q")
    drafter = PAIRS if rule.same_vocabulary else relabelled(PAIRS, DRAFTER_ONLY * rule.restricts)
    blocks = _blocks(judge, PAIRS, drafter)
    drafted, kept = (sum(getattr(b, name) for b in blocks) for name in ("drafted", "accepted"))
    if not drafted:
        return not_applicable("nothing was drafted")
    if kept < drafted:
        return failed(
            f"{kept} of {drafted} drafts of a drafter that is the target were kept: q, or the "
            "drafter's context, is not what it should be",
            kept=kept,
            drafted=drafted,
        )
    return passed(f"all {drafted} drafts of a drafter that is the target were kept")


def relabelled(model: Model, drafter_only: Sequence[str] = ()) -> Model:
    """The same model with its tokens in another order, after additional tokens of mass 1/2.

    Examples
    --------
    >>> other = relabelled(PAIRS)
    >>> other.vocabulary.tokens, other.next_token((2,))[2] == PAIRS.next_token((1,))[1]
    (('c', 'e', 'b', 'd', 'a'), True)
    >>> relabelled(PAIRS, "xy").vocabulary.tokens
    ('x', 'y', 'c', 'e', 'b', 'd', 'a')
    """
    size, more = len(model.vocabulary), len(drafter_only)
    order = [(2 * i + 2) % size for i in range(size)] if size % 2 else list(range(size))[::-1]
    words: Sequence[Any] = [*drafter_only, *(model.vocabulary.tokens[i] for i in order)]

    def next_token(context: Tokens) -> Any:
        known = tuple(order[token - more] for token in context if token >= more)
        row = model.next_token(known)[order]
        return np.concatenate([[row.sum() / (2 * more)] * more, row / 2]) if more else row

    return Model(Vocabulary(words), next_token)


def _blocks(judge: Judge, target: Model, drafter: Model, number: int = 0) -> Sequence[Any]:
    rng = judge.rng(f"blocks {number}")
    implementation: Any = judge.implementation
    arguments = as_float(target), as_float(drafter), (0,), TOKENS
    within(judge.timeout, lambda: giver(implementation)(arguments, rng))
    return tuple(implementation.blocks)


CHECKS = (
    Check("acceptance/first-drafts", GenerateContract, first_drafts, statistical=True, law=True),
    Check(
        "acceptance/lost-drafts",
        GenerateContract,
        lost_drafts,
        statistical=True,
        finding=Finding.ACCEPTANCE,
        law=True,
    ),
    Check("acceptance/self-draft", GenerateContract, self_draft, finding=Finding.ACCEPTANCE),
)
