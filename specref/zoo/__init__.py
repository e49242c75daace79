"""Planted bugs of speculative decoding, and lossless rules that look like bugs.

Every mutant departs from a clean rule in one place and is lossy; every control departs from it
and is lossless. `ALL` has all of them. `MUTANTS` and `CONTROLS` are those that patch
`standard.step`, and `OPERATORS` the mutants that misread the rows of its verifier; `fixtures_for`
has the exact pairs on which the others are distinguished. What a step or a loop emits is known
exactly: `total_variation_on` enumerates every random path.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from specref.zoo import (
    batch_loops,
    batched,
    block,
    by_token,
    companion,
    contract,
    figures,
    greedy_block,
    loops,
    ngrams,
    sampling_parameters,
    siblings,
    slem,
    slrs,
    trees,
    verifier_operators,
)
from specref.zoo.entry import Entry, law_on, total_variation_on
from specref.zoo.fixtures import (
    BLOCK_PAIRS,
    FIXTURES,
    TEXT_FIXTURES,
    TOKEN_FIXTURES,
    ExactFixture,
)
from specref.zoo.loops import TEXTS
from specref.zoo.parts import siblings as sibling_parts
from specref.zoo.parts.standard import speculative
from specref.zoo.sampling_parameters import WARPED_FIXTURES
from specref.zoo.standard import (
    accept,
    context,
    controls,
    draft,
    randomness,
    residual,
)

__all__ = [
    "ALL",
    "CONTROLS",
    "FIXTURES",
    "FIXTURES_OF",
    "MUTANTS",
    "OPERATORS",
    "TEXTS",
    "Entry",
    "ExactFixture",
    "fixtures_for",
    "law_on",
    "speculative",
    "total_variation_on",
]


def _by_id(*groups: Iterable[Entry]) -> Mapping[str, Entry]:
    entries = [entry for group in groups for entry in group]
    table = {entry.id: entry for entry in entries}
    assert len(table) == len(entries), "two entries of one id"
    return MappingProxyType(table)


_STANDARD = (draft, accept, residual, randomness, context)
MUTANTS: Mapping[str, Entry] = _by_id(*(file.ENTRIES for file in _STANDARD))
CONTROLS: Mapping[str, Entry] = _by_id(controls.ENTRIES)
OPERATORS: Mapping[str, Entry] = _by_id(verifier_operators.ENTRIES)
ALL: Mapping[str, Entry] = _by_id(
    MUTANTS.values(),
    CONTROLS.values(),
    by_token.ENTRIES,
    slem.ENTRIES,
    slrs.ENTRIES,
    sampling_parameters.ENTRIES,
    OPERATORS.values(),
    by_token.CONTROLS,
    slem.CONTROLS,
    slrs.CONTROLS,
    sampling_parameters.CONTROLS,
    loops.ENTRIES,
    loops.CONTROLS,
    batch_loops.ENTRIES,
    batch_loops.CONTROLS,
    batched.ENTRIES,
    contract.RAGGED,
    batched.OF_COINS,
    contract.ENTRIES,
    batched.CONTROLS,
    figures.ENTRIES,
    block.ENTRIES,
    block.CONTROLS,
    greedy_block.ENTRIES,
    greedy_block.CONTROLS,
    siblings.ENTRIES,
    trees.ENTRIES,
    siblings.CONTROLS,
    trees.CONTROLS,
    ngrams.ENTRIES,
    companion.ENTRIES,
)
FIXTURES_OF: Mapping[str, Mapping[str, ExactFixture]] = {
    "standard": FIXTURES,
    "warped": WARPED_FIXTURES,
    **dict.fromkeys(("union", "tli"), TOKEN_FIXTURES),
    **dict.fromkeys(("slem", "slrs"), TEXT_FIXTURES),
    **dict.fromkeys(("block", "block-slrs"), BLOCK_PAIRS),
    "greedy-block": greedy_block.PAIRS,
    **dict.fromkeys(
        ("recursive-rejection", "matching", "k-seq", "top-drafts", "topdown", "traversal"),
        sibling_parts.PAIRS,
    ),
}


def fixtures_for(rule: str) -> Mapping[str, ExactFixture]:
    """The exact pairs on which the entries of a rule are distinguished.

    Raises
    ------
    ValueError
        There are none for that rule.

    Examples
    --------
    >>> list(fixtures_for("slem"))
    ['pieces', 'letters', 'unread', 'text end']
    """
    if rule not in FIXTURES_OF:
        raise ValueError(f"rule = {rule!r}: expected one of {', '.join(FIXTURES_OF)}")
    return FIXTURES_OF[rule]
