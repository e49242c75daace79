"""Whom a sampler of a rule is compared with: the bugs of the zoo, and of rules beside it."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from specref.conformance.trees.bugs import beside
from specref.conformance.trees.rules import RULES
from specref.zoo import MUTANTS, OPERATORS, Entry
from specref.zoo.block import BLOCK
from specref.zoo.block_pairs import BlockEntry
from specref.zoo.block_parts import drafted_tokens
from specref.zoo.verifier_operators import variants


def bugs_of(rule: str) -> Mapping[str, Entry]:
    """The lossy ones that a campaign bets on.

    Examples
    --------
    >>> bugs_of("standard") == MUTANTS, len(bugs_of("block")) - len(MUTANTS)
    (True, 8)
    """
    entries = beside(rule) if rule in RULES else {**MUTANTS, **_own(rule)}
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
    if rule in RULES:
        return beside(rule)
    if rule == "block":  # whose verifier is another than the one that operators are put into
        return MappingProxyType({**MUTANTS, **_own(rule)})
    operators = {**OPERATORS, **{entry.id: entry for entry in variants()}}
    return MappingProxyType({**MUTANTS, **operators})


def _own(rule: str) -> Mapping[str, Entry]:
    if rule != "block":
        return {}
    return {name: _entry(one) for name, one in BLOCK.items() if one.stage != "vocabulary"}


def _entry(one: BlockEntry) -> Entry:
    """A rule of block verification, over the target's own vocabulary."""
    return Entry(
        one.id,
        one.stage,
        step=one.rule(drafted_tokens),
        formula=one.formula,
        symptom=one.symptom,
        hint=one.hint,
        cites=one.cites,
        lossless=one.lossless,
        note=one.note,
    )
