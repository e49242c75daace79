"""The data of a diagnosis, the entries of the zoo compared with it, and their exact laws."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from types import MappingProxyType
from typing import Any

from specref.algorithms.decoding import Step
from specref.contracts.tree import TreeStep, tree_step
from specref.models import Model
from specref.proofs.lazy import Enumerator, ReadableModel, or_reason
from specref.rules import DEFAULT, RULES, rule_of
from specref.vocabulary import Tokens
from specref.zoo import ALL, MUTANTS, OPERATORS, Entry
from specref.zoo.verifier_operators import variants


@dataclass(frozen=True, eq=False)
class Observed:
    """The blocks that a sampler emitted on one case.

    * `blocks`: {block: count}, as they were emitted, not completed.
    * `options`: Further arguments of a rule: the shape of its tree.
    """

    name: str
    target: Model
    drafter: Model
    context: Tokens
    lookahead: int
    blocks: Mapping[Tokens, int]
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def trials(self) -> int:
        """The number of blocks."""
        return sum(self.blocks.values())


Law = dict[Tokens, float]
MAX_PATHS = 12_000
"""The most random paths of one rule on one case."""
ROUNDING = 1e-12


@dataclass(frozen=True)
class CaseLaws:
    """The laws of one case, of the clean rule and of the entries that have one."""

    clean: Law
    entries: Mapping[str, Law]


class Laws:
    """The laws of a clean rule and of entries of the zoo; cached for each case."""

    def __init__(
        self,
        entries: Mapping[str, Entry] = MUTANTS,
        *,
        algorithm: str = DEFAULT,
    ) -> None:
        rule = rule_of(algorithm)
        self.clean: Step = tree_step(algorithm) if rule.tree else rule.step
        self.entries, self.algorithm = entries, algorithm
        self._remembered: dict[Hashable, CaseLaws] = {}

    def of(self, observed: Observed) -> CaseLaws:
        """The laws of a case; its counts do not matter."""
        case = observed.target, observed.drafter, observed.context, observed.lookahead
        key = *case, observed.options
        if key in self._remembered:
            return self._remembered[key]
        clean = self._tried(self.clean, observed)
        if isinstance(clean, str):
            raise ValueError(
                f"case {observed.name!r}: the clean rule has no distribution ({clean})"
            )
        found = {name: self._tried(entry.step, observed) for name, entry in self.entries.items()}
        laws = {name: law for name, law in found.items() if not isinstance(law, str)}
        self._remembered[key] = CaseLaws(clean, laws)
        return self._remembered[key]

    def _tried(self, step: Step, observed: Observed) -> Law | str:
        return or_reason(partial(law_of, step, observed))


def law_of(step: Step, observed: Observed) -> Law:
    """The law of the blocks of a rule on a case, in floats; masses below 1e-12 are dropped."""
    law = Enumerator(MAX_PATHS).first_tokens(
        partial(step, **dict(observed.options)),
        ReadableModel(observed.target),
        ReadableModel(observed.drafter),
        observed.context,
        observed.lookahead,
        tokens=None,
        least=ROUNDING,
    )
    return {text: float(mass) for text, mass in law.items()}


# Entries that draft trees themselves, as steps on trees that are given.
TREES: Mapping[str, Entry] = MappingProxyType(
    {
        entry.id: replace(entry, step=TreeStep(entry.verify_tree))
        for entry in ALL.values()
        if entry.verify_tree is not None
    }
)


def bugs_of(rule: str) -> Mapping[str, Entry]:
    """The bugs that a campaign bets on."""
    entries = _other_trees(rule) if RULES[rule].tree else {**MUTANTS, **_own(rule)}
    return {name: bug for name, bug in entries.items() if not bug.lossless}


@cache
def compared_with(rule: str) -> Mapping[str, Entry]:
    """Candidate explanations for a failure; for blocks and trees also other lossless rules.

    They include bugs that are not bet on: sampling parameters in the verifier at some values.
    """
    if RULES[rule].tree:
        return _other_trees(rule)
    if RULES[rule].coins == "jointly":  # operators are put into the other verifier
        return MappingProxyType({**MUTANTS, **_own(rule)})
    operators = {**OPERATORS, **{entry.id: entry for entry in variants()}}
    return MappingProxyType({**MUTANTS, **operators})


@cache
def laws_compared(rule: str) -> Laws:
    """The laws that failures of a rule are compared with; cached."""
    return Laws(compared_with(rule), algorithm=rule)


def _own(rule: str) -> Mapping[str, Entry]:
    if RULES[rule].coins != "jointly":
        return {}
    return {entry.id: entry for entry in ALL.values() if entry.rule == rule}


def _other_trees(rule: str) -> Mapping[str, Entry]:
    return {id_: entry for id_, entry in TREES.items() if id_ != f"tree-{rule}"}
