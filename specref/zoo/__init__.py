"""Planted bugs of speculative decoding, and lossless rules that look like bugs.

Every mutant departs from `standard.step` in one place and is lossy; every control departs from
it and is lossless. Both are known exactly: `total_variation_on` enumerates every random path.
"""

from collections.abc import Mapping
from types import MappingProxyType

from specref.zoo import (
    accept,
    bonus,
    context,
    controls,
    draft,
    length,
    lenient,
    randomness,
    residual,
    truthful_drafts,
)
from specref.zoo.clean import speculative
from specref.zoo.entry import Entry
from specref.zoo.fixtures import FIXTURES, Fixture, total_variation_on

__all__ = [
    "CONTROLS",
    "FIXTURES",
    "MUTANTS",
    "Entry",
    "Fixture",
    "speculative",
    "total_variation_on",
]

_STAGES = (draft, accept, lenient, residual, bonus, randomness, context, length)
_ENTRIES = [entry for stage in _STAGES for entry in stage.ENTRIES]

MUTANTS: Mapping[str, Entry] = MappingProxyType({entry.id: entry for entry in _ENTRIES})
CONTROLS: Mapping[str, Entry] = MappingProxyType(
    {entry.id: entry for entry in (*truthful_drafts.ENTRIES, *controls.ENTRIES)}
)
