"""The data of a diagnosis, the entries of the zoo compared with it, and their exact laws."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from numbers import Integral
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from specref.algorithms.decoding import Step
from specref.contracts.tree_rules import TreeStep, tree_step
from specref.models import Model
from specref.proofs.lazy import Enumerator, ReadableModel, or_reason
from specref.rules import DEFAULT, RULES, rule_of
from specref.vocabulary import Tokens
from specref.zoo import ALL, MUTANTS, OPERATORS, Entry
from specref.zoo.verifier_operators import variants

View: TypeAlias = Literal["boundary", "stream"]


@dataclass(frozen=True, eq=False)
class Observed:
    """The blocks or texts that a sampler emitted on one case.

    * `name`: Name of the case.
    * `context`: Target token ids.
    * `blocks`: {block: count}, as they were emitted, not completed.
    * `view`: Whether `blocks` holds the blocks of single iterations, or texts of many.
    * `tokens`: In view "stream": the length of each text, unless it ends with EOS. By default the
      length of the longest.
    * `options`: Further arguments of a rule: the shape of its tree.
    """

    name: str
    target: Model
    drafter: Model
    context: Tokens
    lookahead: int
    blocks: Mapping[Tokens, int]
    view: View = "boundary"
    tokens: int | None = None
    options: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if self.view not in get_args(View):
            raise ValueError(f"view = {self.view!r}: expected one of {get_args(View)}")
        if self.view == "boundary" and self.tokens is not None:
            raise ValueError(f"tokens = {self.tokens}: expected None, unless view is 'stream'")
        size = len(self.target.vocabulary)
        for block, count in self.blocks.items():
            if not isinstance(count, Integral) or not all(isinstance(x, Integral) for x in block):
                raise TypeError(f"blocks[{block!r}] = {count!r}: expected integers")
            if count < 0:
                raise ValueError(f"blocks[{block}] = {count}: expected a count >= 0")
            if not block or not all(0 <= x < size for x in block):
                raise ValueError(
                    f"blocks has {block}: expected at least one token id, each < {size}"
                )
        if not self.trials:
            raise ValueError(f"blocks of case {self.name!r} is empty: expected at least one")
        for text in self.blocks if self.view == "stream" else ():
            whole = len(text) == self.length or self.target.vocabulary.ends(text)
            if not whole or len(text) > (self.length or 0):
                raise ValueError(
                    f"blocks has the text {text}: expected {self.length} tokens, or EOS"
                )

    @property
    def trials(self) -> int:
        """The number of blocks or texts."""
        return sum(self.blocks.values())

    @property
    def length(self) -> int | None:
        """The number of tokens of a text; None for blocks."""
        if self.view == "boundary":
            return None
        return max(map(len, self.blocks)) if self.tokens is None else self.tokens


Law = dict[Tokens, float]
MAX_PATHS = 12_000
ROUNDING = 1e-12


@dataclass(frozen=True)
class CaseLaws:
    """The laws of one case.

    * `clean`: {block: probability} of the clean rule.
    * `missing`: {id: why it has none}.
    """

    clean: Law
    entries: Mapping[str, Law]
    missing: Mapping[str, str]


class Laws:
    """The laws of a clean rule and of entries of the zoo; cached for each case.

    * `max_paths`: The most random paths of one rule on one case.
    """

    def __init__(
        self,
        entries: Mapping[str, Entry] = MUTANTS,
        *,
        algorithm: str = DEFAULT,
        max_paths: int = MAX_PATHS,
    ) -> None:
        rule = rule_of(algorithm)
        self.clean: Step = tree_step(algorithm) if rule.tree else rule.step
        self.entries, self.algorithm, self.max_paths = entries, algorithm, max_paths
        self._remembered: dict[Hashable, CaseLaws] = {}

    def of(self, observed: Observed) -> CaseLaws:
        """The laws of a case; its counts do not matter."""
        case = observed.target, observed.drafter, observed.context, observed.lookahead
        key = *case, observed.length, observed.options
        if key in self._remembered:
            return self._remembered[key]
        clean = self._tried(self.clean, observed)
        if isinstance(clean, str):
            raise ValueError(
                f"case {observed.name!r}: the clean rule has no distribution ({clean})"
            )
        found = {name: self._tried(entry.step, observed) for name, entry in self.entries.items()}
        laws = {name: law for name, law in found.items() if not isinstance(law, str)}
        missing = {name: why for name, why in found.items() if isinstance(why, str)}
        self._remembered[key] = CaseLaws(clean, laws, missing)
        return self._remembered[key]

    def _tried(self, step: Step, observed: Observed) -> Law | str:
        return or_reason(partial(law_of, step, observed, self.max_paths))


def law_of(step: Step, observed: Observed, max_paths: int = MAX_PATHS) -> Law:
    """The law of the blocks of a rule on a case, in floats; masses below 1e-12 are dropped."""
    law = Enumerator(max_paths).first_tokens(
        partial(step, **dict(observed.options)),
        ReadableModel(observed.target),
        ReadableModel(observed.drafter),
        observed.context,
        observed.lookahead,
        tokens=observed.length,
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
