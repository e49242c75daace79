"""The entries of the zoo that a sampler is compared with: bugs, and other lossless rules."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType

from specref.contracts.tree_rules import TreeStep
from specref.rules import RULES
from specref.zoo import ALL, MUTANTS, OPERATORS, Entry
from specref.zoo.verifier_operators import variants

# Entries that draft trees themselves, as steps on trees that are given.
TREES: Mapping[str, Entry] = MappingProxyType(
    {
        entry.id: replace(entry, step=TreeStep(entry.verify_tree))
        for entry in ALL.values()
        if entry.verify_tree is not None
    }
)


def bugs_of(rule: str) -> Mapping[str, Entry]:
    """The bugs that a campaign bets on.

    Examples
    --------
    >>> bugs_of("standard") == MUTANTS, "block-tokenwise-residual" in bugs_of("block")
    (True, True)
    """
    entries = _other_trees(rule) if RULES[rule].tree else {**MUTANTS, **_own(rule)}
    return {name: bug for name, bug in entries.items() if not bug.lossless}


@cache
def compared_with(rule: str) -> Mapping[str, Entry]:
    """Candidate explanations for a failure; for blocks and trees also other lossless rules.

    They include bugs that are not bet on: sampling parameters in the verifier at some values.

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
    if RULES[rule].coins != "jointly":
        return {}
    return {entry.id: entry for entry in ALL.values() if entry.rule == rule}


def _other_trees(rule: str) -> Mapping[str, Entry]:
    return {id_: entry for id_, entry in TREES.items() if id_ != f"tree-{rule}"}
