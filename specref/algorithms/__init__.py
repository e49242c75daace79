"""One file per algorithm, all with `step(target, drafter, context, lookahead, chance)`."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from specref.algorithms import (
    autoregressive,
    block,
    block_slrs,
    companion,
    companion_batch,
    companion_rejecting,
    greedy_block,
    greedy_block_target,
    lazy_slrs,
    multi_draft,
    multi_draft_rules,
    ngram_drafts,
    ngram_tables,
    ngrams,
    path_slrs,
    siblings,
    slem,
    slrs,
    standard,
    tli,
    traversal,
    trees,
    union,
)
from specref.chance import Chance
from specref.models import Model
from specref.vocabulary import Tokens

Step: TypeAlias = Callable[[Model, Model, Tokens, int, Chance], Tokens]

ALGORITHMS: Mapping[str, Step] = MappingProxyType(
    {
        "autoregressive": autoregressive.step,
        "standard": standard.step,
        "union": union.step,
        "tli": tli.step,
        "slem": slem.step,
        "slrs": slrs.step,
        "block": block.step,
    }
)

__all__ = [
    "ALGORITHMS",
    "Step",
    "autoregressive",
    "block",
    "block_slrs",
    "companion",
    "companion_batch",
    "companion_rejecting",
    "decode",
    "greedy_block",
    "greedy_block_target",
    "lazy_slrs",
    "multi_draft",
    "multi_draft_rules",
    "ngram_drafts",
    "ngram_tables",
    "ngrams",
    "path_slrs",
    "siblings",
    "slem",
    "slrs",
    "standard",
    "tli",
    "traversal",
    "trees",
    "union",
]


def decode(
    step: Step,
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    length: int,
    chance: Chance,
) -> Tokens:
    """The first `length` tokens of the decode loop: step after step, cut at `length` or EOS.

    Examples
    --------
    >>> from specref import Vocabulary
    >>> from specref.chance import Replayed
    >>> from specref.models import iid_model
    >>> target = iid_model(Vocabulary("ab"), ["1/3", "2/3"])
    >>> decode(autoregressive.step, target, target, (), 0, 3, Replayed([0, 1, 1]))
    (0, 1, 1)
    """
    tokens: Tokens = ()
    while len(tokens) < length and not target.vocabulary.ends(tokens):
        block = step(target, drafter, (*context, *tokens), lookahead, chance)
        if not block:
            raise ValueError(f"step returned an empty block in context {(*context, *tokens)}")
        tokens += block
    return tokens[:length]
