"""Planted bugs of speculative decoding, and lossless rules that look like bugs.

Every mutant departs from a clean rule in one place and is lossy; every control departs from it
and is lossless. `MUTANTS` and `CONTROLS` patch `standard.step`, for one vocabulary, `OPERATORS`
the rows that its verifier reads; `entries_for` gives those of the other algorithms,
`fixtures_for` the exact pairs on which they are told apart, `ALL` everybody: steps, decode loops,
batched verifiers, and figures. What a step or a loop emits is known exactly:
`total_variation_on` and `text_variation_on` enumerate every random path.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

from specref.algorithms import Step, slem, slrs, standard, tli, union
from specref.zoo import (
    accept,
    batched,
    bonus,
    broken,
    coins,
    context,
    controls,
    draft,
    length,
    lenient,
    mapped_controls,
    matching,
    operators,
    parameters,
    pushforward,
    randomness,
    reporting,
    residual,
    text_controls,
    texts,
    truthful_drafts,
    verifier_operators,
    vocabularies,
)
from specref.zoo.clean import speculative
from specref.zoo.entry import Described, Entry, MetricEntry, TextEntry
from specref.zoo.fixtures import FIXTURES, Fixture, total_variation_on
from specref.zoo.loops import TEXTS, text_law, text_variation_on
from specref.zoo.parameters import WARPED_FIXTURES
from specref.zoo.verifying import VerifyEntry
from specref.zoo.vocabulary_fixtures import TEXT_FIXTURES, TOKEN_FIXTURES

__all__ = [
    "ALL",
    "CLEAN",
    "CONTROLS",
    "FIGURES",
    "FIXTURES",
    "LOOPS",
    "MUTANTS",
    "OPERATORS",
    "STEPS",
    "TEXTS",
    "VERIFIERS",
    "Described",
    "Entry",
    "Fixture",
    "MetricEntry",
    "TextEntry",
    "VerifyEntry",
    "entries_for",
    "fixtures_for",
    "speculative",
    "text_law",
    "text_variation_on",
    "total_variation_on",
]


D = TypeVar("D", bound=Described)


def _by_id(*groups: Iterable[D]) -> Mapping[str, D]:
    return MappingProxyType({entry.id: entry for group in groups for entry in group})


_SAME_VOCABULARY = (draft, accept, lenient, residual, bonus, randomness, context, length)
_OTHERS = (vocabularies, matching, pushforward, operators, verifier_operators)

MUTANTS: Mapping[str, Entry] = _by_id(*(file.ENTRIES for file in _SAME_VOCABULARY))
CONTROLS: Mapping[str, Entry] = _by_id(truthful_drafts.ENTRIES, controls.ENTRIES)
OPERATORS: Mapping[str, Entry] = _by_id(verifier_operators.ENTRIES)
STEPS: Mapping[str, Entry] = _by_id(
    MUTANTS.values(),
    CONTROLS.values(),
    *(file.ENTRIES for file in _OTHERS),
    mapped_controls.ENTRIES,
    text_controls.ENTRIES,
    operators.CONTROLS,
)
LOOPS: Mapping[str, TextEntry] = _by_id(texts.ENTRIES, texts.CONTROLS)
VERIFIERS: Mapping[str, VerifyEntry] = _by_id(
    batched.ENTRIES, coins.ENTRIES, broken.ENTRIES, coins.CONTROLS
)
FIGURES: Mapping[str, MetricEntry] = _by_id(reporting.ENTRIES)
ALL: Mapping[str, Described] = _by_id(
    STEPS.values(), LOOPS.values(), VERIFIERS.values(), FIGURES.values()
)
CLEAN: Mapping[str, Step] = MappingProxyType(
    {
        "standard": standard.step,
        "union": union.step,
        "tli": tli.step,
        "slem": slem.step,
        "slrs": slrs.step,
        "warped": parameters.step,
    }
)
_FIXTURES: Mapping[str, Mapping[str, Fixture]] = {
    "standard": FIXTURES,
    "union": TOKEN_FIXTURES,
    "tli": TOKEN_FIXTURES,
    "slem": TEXT_FIXTURES,
    "slrs": TEXT_FIXTURES,
    "warped": WARPED_FIXTURES,
}


def entries_for(algorithm: str) -> Mapping[str, Entry]:
    """The mutants and controls that patch the clean rule `CLEAN[algorithm]`.

    Parameters
    ----------
    algorithm : {"standard", "union", "tli", "slem", "slrs", "warped"}

    Raises
    ------
    ValueError
        No entry patches that rule.

    Examples
    --------
    >>> sorted(name for name, entry in entries_for("union").items() if entry.lossless)[:2]
    ['drafter-context-truncated', 'ids-taken-for-target-ids']
    """
    _check(algorithm)
    return _by_id(entry for entry in STEPS.values() if entry.algorithm == algorithm)


def fixtures_for(algorithm: str) -> Mapping[str, Fixture]:
    """The exact pairs on which the entries of an algorithm are told apart.

    Raises
    ------
    ValueError
        No entry patches that rule.

    Examples
    --------
    >>> list(fixtures_for("slem"))
    ['pieces', 'letters', 'unread', 'text end']
    """
    _check(algorithm)
    return _FIXTURES[algorithm]


def _check(algorithm: str) -> None:
    if algorithm not in CLEAN:
        raise ValueError(f"algorithm = {algorithm!r}: expected one of {', '.join(CLEAN)}")
