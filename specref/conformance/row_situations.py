"""Situations of one row in a call, each with one thing or two that are otherwise than usual.

Usual is a row alone, with two drafts of a chain, their laws, and temperature 1. Nothing here is
drawn: a situation is a few calls, one for each chain of drafts, or tree, that may be drawn.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from specref.algorithms.trees.topdown import Branching
from specref.arrays import NO_TOKEN, Floats
from specref.conformance.diagnosis.laws import Observed
from specref.conformance.diagnosis.ranking import ExactBlocks
from specref.conformance.judge import Judge
from specref.conformance.wrong_decision import Verified, verified_chain, verified_tree
from specref.contracts.batch import NO_NODE, Batch, TreeBatch, as_tree
from specref.contracts.fixtures import TOP, tree_place
from specref.contracts.ragged import RaggedContract
from specref.models import Model
from specref.probing.blocks import drafted, rows_after, trees_of
from specref.probing.probe import Probed
from specref.vocabulary import Tokens, Vocabulary

FOUR = Vocabulary("abcd")
P = np.array([[0.4, 0.2, 0.25, 0.15], [0.35, 0.2, 0.15, 0.3], [0.15, 0.2, 0.25, 0.4]])
Q = np.array([[0.6, 0.4, 0.0, 0.0], [0.5, 0.0, 0.5, 0.0]])
"""By position: two tokens are drafted, the likeliest among them; either may be refused, and what
is left then is on the two others."""
FEW = np.array([P[0], [0.35, 0.0, 0.0, 0.65]])
"""For two rows at once: every way of one meets every way of the other."""
EVEN = np.array([[0.5, 0.25, 0.25, 0.0]])
PLAIN, HOT, COLD = 1.0, 2.0, 0.5
COOLER, HOTTER = "cold", "hot"


@dataclass(frozen=True)
class Situation:
    """Where the block of one row is asked for.

    * `features`: What is otherwise than for a row alone with two drafts. Of two situations that
      are wrong, the one with more of them says nothing more.
    * `before`, `after`: How many drafts another row has that comes before it, or after it.
    """

    name: str
    said: str
    features: frozenset[str]
    drafts: int = 2
    certain: bool = False
    before: int | None = None
    after: int | None = None
    heats: tuple[float, ...] = (PLAIN,)
    branching: Branching = ()


ALONE = Situation("alone", "", frozenset())
ONE_DRAFT = Situation("one-draft", "", frozenset(), drafts=1)
TOGETHER = Situation(
    "two-rows", "beside other rows, on which a row's block depends", frozenset(["both"]), drafts=1
)


def _with(name: str, said: str, features: str, **how: Any) -> Situation:
    return Situation(name, said, frozenset(features.split()), **how)


SITUATIONS = (
    _with("no-laws", "where draft_probs is None", "none", certain=True),
    _with("no-drafts", "where a row has no drafts", "empty", drafts=0),
    _with("second-row", "in rows after the first of a call", "second", before=2),
    _with("first-row", "in rows that others come after", "first", after=2),
    _with("short", "in rows with fewer drafts than others", "first short", after=3),
    _with("after-short", "in rows after one with fewer drafts", "second short", before=1),
    _with("after-long", "in rows after one with more drafts", "second long", before=3),
    _with(
        "no-drafts-second", "in rows without drafts after others", "empty second", drafts=0,
        before=2,
    ),
    _with(
        "no-laws-second", "where draft_probs is None, in rows after the first of a call",
        "none second", certain=True, before=2,
    ),
    _with(COOLER, "at temperatures below 1", "cold", heats=(COLD,)),
    _with(HOTTER, "at temperatures above 1", "hot", heats=(HOT,)),
    _with(
        "no-drafts-hot", "in rows without drafts, at a temperature other than 1", "empty hot",
        drafts=0, heats=(HOT,),
    ),
    _with(
        "other-heat", "after rows with another temperature", "second hot other", before=2,
        heats=(COLD, HOT),
    ),
    _with(
        "first-other-heat", "before rows with another temperature", "first hot other", after=2,
        heats=(HOT, COLD),
    ),
    _with(
        "after-short-other-heat", "after rows with fewer drafts and another temperature",
        "second short hot other", before=1, heats=(COLD, HOT),
    ),
    _with(
        "after-long-other-heat", "after rows with more drafts and another temperature",
        "second long hot other", before=3, heats=(COLD, HOT),
    ),
    _with(
        "no-laws-hot", "where draft_probs is None, at a temperature other than 1", "none hot",
        certain=True, heats=(HOT,),
    ),
    _with("siblings", "where a node has siblings", "siblings", branching=(2,)),
    _with("third", "of the third sibling", "siblings third", branching=(3,)),
    _with("nephews", "below siblings", "siblings below", branching=(2, 1)),
    _with(
        "siblings-no-laws", "where siblings come without draft_probs", "siblings none",
        certain=True, branching=(2, 1),
    ),
    _with(
        "other-tree", "in rows with another tree than the first", "siblings second other",
        branching=(2,), before=2,
    ),
)  # fmt: skip


BETWEEN = (
    _with("between", "in rows between two others", "between", before=2, after=2),
    _with(
        "between-long", "in rows between two with more drafts", "between long", before=3, after=3,
    ),
    _with(
        "between-uneven", "in rows after one with fewer drafts and before one with more",
        "between short long", before=1, after=3,
    ),
)  # fmt: skip
"""Of three rows: tried where two do not show what is wrong."""
BY_NAME = {one.name: one for one in SITUATIONS}
LAST_ROW, FIRST_ROW = "second-row", "first-row"
"""A row that is the last of its call, and one that is the first: alone, a row is both."""
LENGTHS = frozenset({"short", "long"})
"""Features of rows with another number of drafts than their neighbour."""
HEATED = frozenset(one.name for one in SITUATIONS if one.heats != (PLAIN,))
"""Situations at a temperature other than 1."""


def with_one_draft(one: Situation) -> Situation | None:
    """The same with one draft in each row instead of two, which takes a quarter of the runs.

    None where there are no two, or where their number is what is otherwise.
    """
    if one.drafts != 2 or one.branching or one.features & LENGTHS:
        return None
    return replace(one, drafts=1, before=one.before and 1, after=one.after and 1)


def possible(one: Situation, judge: Judge, of_one_row: bool = False) -> bool:
    """Whether a sampler has to be right in a situation, and whether it may say something."""
    claims, trees = judge.capabilities, judge.contract.trees
    rows = one.before is not None or one.after is not None
    uneven = bool(one.features & {"empty", *LENGTHS}) or one.name == "other-tree"
    heated = (
        isinstance(judge.contract, RaggedContract) and "temperature" in judge.verifier.keywords
    )
    if of_one_row and (rows or one.certain or not one.drafts):
        return False
    return (
        (claims.one_hot or not one.certain)
        and (claims.batch != 1 or not rows)
        and (claims.ragged or not uneven)
        and (heated or one.heats == (PLAIN,))
        and (trees or not one.branching)
        and (one.drafts > 0 or judge.contract.fewest_drafts(claims) == 0)
    )


@dataclass(frozen=True)
class Asked:
    """One row of a call, of whose block the law is asked for, and what is known of it.

    * `drafts`: Of a tree its tokens and parents.
    * `verified`: The law of the sampler's block -> beside that of the rule.
    """

    batch: Batch
    row: int
    drafts: Tokens
    weight: float
    verified: Callable[[Probed], Verified | None]


def asked_in(one: Situation, judge: Judge) -> Iterator[Asked]:
    """The calls of a situation: one for each chain of drafts, or each tree, that may be drawn."""
    target, drafter = models(one)
    rule = judge.rule
    if one.branching:
        way = TOP if one.certain else "without replacement"
        for tree, weight in trees_of(target, drafter, tree_place((), one.branching, way)):
            key = (*tree.draft_tokens[0].tolist(), *tree.parents[0].tolist())
            of_tree = partial(verified_tree, batch=tree, weight=weight, rule=rule)
            yield Asked(*beside(one, tree), key, weight, of_tree)
        return
    for drafts, weight in drafted(drafter, (), one.drafts):
        p, q = rows_after(target, (), drafts), rows_after(drafter, (), drafts)[:-1]
        row = chain(p, q, drafts)
        row = row.without_q() if one.certain else row
        of_row: Any
        if judge.contract.trees:
            row = as_tree(row)
            of_row = partial(verified_tree, batch=row)
        else:
            q_given = None if one.certain else q
            of_row = partial(verified_chain, p=p, q=q_given, drafts=drafts)
        yield Asked(*beside(one, row), drafts, weight, partial(of_row, weight=weight, rule=rule))


def models(one: Situation) -> tuple[Model, Model]:
    """The target and the drafter of a situation; a tree of one level has all tokens to draft."""
    p = FEW if one is TOGETHER else P
    q = EVEN if len(one.branching) == 1 else Q
    return (
        Model(FOUR, lambda context: p[len(context)]),
        Model(FOUR, lambda context: q[len(context) % len(q)]),
    )


def blocks_of(one: Situation, found: Sequence[tuple[Asked, Probed]]) -> list[ExactBlocks]:
    """The laws of the block of a chain at temperature 1, as known bugs have them.

    Of drafts that are certain, each has its own. None beside other rows: what is read of these,
    which are certain, may look like a bug that it is not.
    """
    beside_others = one.before is not None or one.after is not None
    if one.branching or not one.drafts or one.heats != (PLAIN,) or beside_others:
        return []
    target, drafter = models(one)
    if one.certain:
        return [
            _blocks(one, target, certain_of(asked.drafts), [(1.0, probed)])
            for asked, probed in found
        ]
    return [_blocks(one, target, drafter, [(asked.weight, probed) for asked, probed in found])]


def certain_of(drafts: Tokens) -> Model:
    """A drafter that gives these."""
    rows = np.eye(len(FOUR.tokens))[list(drafts)]
    return Model(FOUR, lambda context: rows[len(context) % len(rows)])


def _blocks(
    one: Situation, target: Model, drafter: Model, found: Sequence[tuple[float, Probed]]
) -> ExactBlocks:
    law: dict[Tokens, float] = {}
    for weight, probed in found:
        for block, share in probed.distribution.items():
            law[block] = law.get(block, 0.0) + weight * share
    case = Observed(one.name, target, drafter, (), one.drafts, {(0,): 1})
    return ExactBlocks(case, law, sum(weight * probed.error_bound for weight, probed in found))


def chain(p: Floats, q: Floats, drafts: Tokens) -> Batch:
    """Drafts as a batch of one row."""
    none = np.zeros(1, dtype=np.int64)
    tokens = np.array([drafts], dtype=np.int64).reshape(1, len(drafts))
    return Batch(p[None], q[None].reshape(1, *q.shape), tokens, none + len(drafts), none)


def beside(one: Situation, row: Batch) -> tuple[Batch, int]:
    """A row with those that come before and after it, and its index.

    Of these all laws are certain of the last token, so that they need no random number. A row
    without drafts is as wide as one with a draft.
    """
    rows, index = [row], 0
    for drafts, at in ((one.after, 1), (one.before, 0)):
        if drafts is not None:
            sure = np.tile(np.eye(len(FOUR.tokens))[-1], (drafts + 1, 1))
            other = chain(sure, sure[:-1], (len(FOUR.tokens) - 1,) * drafts)
            other = as_tree(other) if isinstance(row, TreeBatch) else other
            rows.insert(at, other.without_q() if row.draft_probs is None else other)
            index = 1 - at
    columns = max(1, *(len(each.draft_tokens[0]) for each in rows))
    return stacked([widened(each, columns) for each in rows]), index


def stacked(rows: Sequence[Batch]) -> Batch:
    """Batches of the same columns as one."""
    arrays = [vars(each) for each in rows]
    whole: dict[str, Any] = {
        name: None if value is None else np.concatenate([each[name] for each in arrays])
        for name, value in arrays[0].items()
    }
    return type(rows[0])(**whole)


def widened(row: Batch, columns: int) -> Batch:
    """A row with so many columns: what is missing is certain of the last token."""
    more = columns - row.draft_tokens.shape[1]
    last = np.tile(np.eye(row.target_probs.shape[2])[-1], (1, more, 1))
    ids: dict[str, Any] = {"draft_tokens": NO_TOKEN, "parents": NO_NODE}
    changed: dict[str, Any] = {
        name: np.pad(getattr(row, name), ((0, 0), (0, more)), constant_values=pad)
        for name, pad in ids.items()
        if hasattr(row, name)
    }
    for name in ("target_probs", "draft_probs"):
        if getattr(row, name) is not None:
            changed[name] = np.concatenate([getattr(row, name), last], axis=1)
    return replace(row, **changed)
