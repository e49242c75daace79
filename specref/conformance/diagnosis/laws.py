"""The exact laws of the clean rule and of every entry of the zoo, computed once for each case."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import partial

from specref.algorithms.decoding import Step
from specref.conformance.diagnosis.observed import Observed
from specref.contracts.tree_rules import tree_step
from specref.proofs.lazy import Enumerator, ReadableModel, or_reason
from specref.rules import DEFAULT, rule_of
from specref.vocabulary import Tokens
from specref.zoo import MUTANTS, Entry

Law = dict[Tokens, float]
MAX_PATHS = 12_000
ROUNDING = 1e-12


@dataclass(frozen=True)
class CaseLaws:
    """The laws of one case.

    Attributes
    ----------
    clean : dict
        {block: probability} of the clean rule.
    entries : mapping
        {id: law}, for entries that have one.
    missing : mapping
        {id: why it has none}.
    """

    clean: Law
    entries: Mapping[str, Law]
    missing: Mapping[str, str]


class Laws:
    """The laws of a clean rule and of entries of the zoo; cached for each case.

    Parameters
    ----------
    entries : mapping
        {id: Entry}.
    algorithm : str
        The name of the clean rule.
    max_paths : int
        The most random paths of one rule on one case.

    Raises
    ------
    ValueError
        An unknown algorithm.

    Examples
    --------
    >>> from specref.zoo import FIXTURES
    >>> m = FIXTURES["m"]
    >>> observed = Observed("m", m.target, m.drafter, (), m.lookahead, {(0, 0): 10})
    >>> round(Laws().of(observed).entries["always-accept-u0"][0, 0], 6)  # 1/12 * 5/12
    0.034722
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
        """The laws of a case; its counts do not matter.

        Raises
        ------
        ValueError
            The clean rule has no law: it fails there, or has too many random paths.
        """
        case = observed.target, observed.drafter, observed.context, observed.lookahead
        key = *case, observed.length, observed.options
        if key in self._remembered:
            return self._remembered[key]
        clean = self._tried(self.clean, observed)
        if isinstance(clean, str):
            raise ValueError(f"case {observed.name!r}: the clean rule has no law ({clean})")
        found = {name: self._tried(entry.step, observed) for name, entry in self.entries.items()}
        laws = {name: law for name, law in found.items() if not isinstance(law, str)}
        missing = {name: why for name, why in found.items() if isinstance(why, str)}
        self._remembered[key] = CaseLaws(clean, laws, missing)
        return self._remembered[key]

    def _tried(self, step: Step, observed: Observed) -> Law | str:
        return or_reason(partial(law_of, step, observed, self.max_paths))


def law_of(step: Step, observed: Observed, max_paths: int = MAX_PATHS) -> Law:
    """The law of the blocks of a rule on a case, in floats; masses below 1e-12 are dropped.

    Raises
    ------
    TooManyPathsError
        More than `max_paths` random paths.
    ValueError
        An empty block in a text; or as `step`, or as `exact_distribution`.
    """
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
