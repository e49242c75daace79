"""Whom a sampler of a rule is compared with: bugs of the zoo, and other lossless rules."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType

from specref.contracts.tree.rules import TreeStep
from specref.rules import RULES
from specref.zoo import ALL, MUTANTS, OPERATORS, Entry
from specref.zoo.verifier_operators import variants

# What the zoo does with trees that it drafts, done with those that are given.
TREES: Mapping[str, Entry] = MappingProxyType(
    {
        entry.id: replace(entry, step=TreeStep(entry.verify_tree))
        for entry in ALL.values()
        if entry.verify_tree is not None
    }
)
BLOCK: Mapping[str, Entry] = MappingProxyType(
    {entry.id: entry for entry in ALL.values() if entry.rule == "block"}
)


def bugs_of(rule: str) -> Mapping[str, Entry]:
    """The lossy ones that a campaign bets on.

    Examples
    --------
    >>> bugs_of("standard") == MUTANTS, len(bugs_of("block")) - len(MUTANTS)
    (True, 8)
    """
    entries = _other_trees(rule) if RULES[rule].tree else {**MUTANTS, **_own(rule)}
    return {name: bug for name, bug in entries.items() if not bug.lossless}


@cache
def compared_with(rule: str) -> Mapping[str, Entry]:
    """Those a failure may look like; for blocks and trees, other lossless rules among them.

    Besides those that are bet on: sampling parameters in the verifier, at several values.

    Examples
    --------
    >>> compared_with("block")["block-by-tokens"].hint
    'Exact: token verification, from the last draft back.'
    >>> "verifier-top-p at 0.9" in compared_with("standard")
    True
    """
    if RULES[rule].tree:
        return _other_trees(rule)
    if RULES[rule].coins == "jointly":  # operators are put into the other verifier
        return MappingProxyType({**MUTANTS, **_own(rule)})
    operators = {**OPERATORS, **{entry.id: entry for entry in variants()}}
    return MappingProxyType({**MUTANTS, **operators})


def _own(rule: str) -> Mapping[str, Entry]:
    return BLOCK if RULES[rule].coins == "jointly" else {}


def _other_trees(rule: str) -> Mapping[str, Entry]:
    return {id_: entry for id_, entry in TREES.items() if id_ != f"tree-{rule}"}
