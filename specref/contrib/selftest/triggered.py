"""Bugs that act in one situation, for every contract that has strata."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from specref.arrays import Floats, Ints, one_hot_rows
from specref.chance import Sampled
from specref.contracts.capabilities import capable
from specref.contracts.contract import Contract
from specref.contracts.table import GENERATE, STEP, TREE, VERIFY
from specref.contracts.tree_rules import read
from specref.contrib.selftest import situations, triggers
from specref.contrib.selftest.situations import Decision, Departure, Situation

BEFORE = ("smoke", "boundary", "joint")


@dataclass(frozen=True)
class Bugs:
    """The bugs and the triggers of a contract.

    Attributes
    ----------
    contract : Contract
    triggers, bugs : sequence
        Each has an `id`, triggers a `kind`.
    made : callable
        (bug, trigger) -> an implementation of the contract.
    elsewhere : tuple of str
        The stages that are asked what strata do not find.
    """

    contract: Contract
    triggers: Sequence[Any]
    bugs: Sequence[Any]
    made: Callable[[Any, Any], Callable[..., Any]]
    elsewhere: tuple[str, ...]


def bugs_at(known: Bugs, trigger: Any) -> Sequence[Any]:
    """The bugs that act where a trigger holds: its own, or those of all."""
    return getattr(trigger, "bugs", ()) or known.bugs


def verifier(bug: triggers.BaseBug, when: triggers.Trigger) -> Callable[..., Any]:
    """A verifier of batches that has a bug in a situation, and is right elsewhere."""
    return capable(rule="standard", recovery="race")(triggers.triggered(bug, when))


def tree_verifier(bug: Departure, when: Situation) -> Callable[..., tuple[Ints, Ints]]:
    """A verifier of trees, row by row; each counts its own calls.

    Examples
    --------
    >>> accepts = tree_verifier(situations.TREE_BUGS[0], situations.TREES[0])
    >>> p, rng = np.eye(3), np.random.default_rng(1)
    >>> accepts(p[None], None, np.array([[1, 0]]), np.array([[-1, 0]]), rng=rng)
    (array([[1, 0, 2]]), array([3]))
    """
    calls = itertools.count()

    def verify(
        target_probs: Floats,
        draft_probs: Floats | None,
        draft_tokens: Ints,
        parents: Ints,
        *,
        rng: np.random.Generator,
    ) -> tuple[Ints, Ints]:
        call, (rows, most, size) = next(calls), target_probs.shape
        q = one_hot_rows(draft_tokens, size) if draft_probs is None else draft_probs
        tokens = np.full((rows, most), -1)
        nodes = (draft_tokens >= 0).sum(axis=1).tolist()
        for row, above in enumerate(parents.tolist()):
            target, tree = read(target_probs[row], q[row], draft_tokens[row].tolist(), above)
            laws = draft_probs is not None
            at = Decision(call, nodes[row], size, row=row, rows=rows, laws=laws)
            block = situations.verified(bug, when, at, target, (), tree, Sampled(rng))
            tokens[row, : len(block)] = block
        return tokens, (tokens >= 0).sum(axis=1)

    return verify


ALL: Mapping[str, Bugs] = MappingProxyType(
    {
        one.contract.name: one
        for one in (
            Bugs(
                VERIFY, triggers.TRIGGERS, triggers.BASE_BUGS, verifier,
                (*BEFORE, "independence", "iterations"),
            ),
            Bugs(
                STEP, situations.STEPS, situations.CALL_BUGS, situations.triggered_step,
                BEFORE,
            ),
            Bugs(
                GENERATE, situations.TEXTS, situations.CALL_BUGS, situations.triggered_text,
                ("smoke", "end-to-end"),
            ),
            Bugs(
                TREE, situations.TREES, situations.TREE_BUGS, tree_verifier,
                BEFORE,
            ),
        )
    }
)  # fmt: skip
