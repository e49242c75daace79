"""Compares exact laws with those of known bugs: a bug has the same law, or it has not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specref.conformance.diagnosis.laws import Law, Laws
from specref.conformance.diagnosis.observed import Observed
from specref.conformance.diagnosis.ranking import ALPHA
from specref.conformance.diagnosis.report import Candidate, Diagnosis
from specref.distributions import total_variation

SAME = 1e-6
"""A distance that rounding explains: samplers may count in float32."""
NEAREST = 2
"""So many bugs that do not fit are named."""
INFINITE = float("inf")


@dataclass(frozen=True)
class ExactBlocks:
    """The law of the blocks of a sampler on a case.

    Attributes
    ----------
    case : Observed
        Its counts do not matter.
    law : mapping
        {block: probability}, as emitted.
    error_bound : float
    """

    case: Observed
    law: Mapping[tuple[int, ...], float]
    error_bound: float = 0.0


def diagnose_exactly(cases: Sequence[ExactBlocks], laws: Laws) -> Diagnosis:
    """The known bugs that have the same law on all cases, and those that are nearest to it.

    Parameters
    ----------
    cases : sequence of ExactBlocks
    laws : Laws
        Of the known bugs.

    Examples
    --------
    >>> from specref.conformance.diagnosis.laws import law_of
    >>> from specref.zoo import FIXTURES, MUTANTS
    >>> c = FIXTURES["c"]
    >>> case = Observed("c", c.target, c.drafter, (), c.lookahead, {(0,): 1})
    >>> bug = law_of(MUTANTS["residual-is-q"].step, case)
    >>> found = diagnose_exactly([ExactBlocks(case, bug)], Laws())
    >>> found.known, found.candidates[0].ids
    (True, ('residual-is-q',))
    """
    apart: dict[str, float] = {}
    clean = 0.0
    for one in cases:
        known = laws.of(one.case)
        clean = max(clean, _beyond(one, known.clean))
        for name, law in known.entries.items():
            apart[name] = max(apart.get(name, 0.0), _beyond(one, law))
    everywhere = [
        name for name in apart if all(name in laws.of(one.case).entries for one in cases)
    ]
    ranked = sorted(everywhere, key=apart.__getitem__)
    fitting = [name for name in ranked if apart[name] <= SAME]
    groups = [fitting] * bool(fitting) + [[name] for name in ranked if apart[name] > SAME]
    return Diagnosis(
        tuple(_candidate(group, apart, laws) for group in groups[: NEAREST + 1]),
        "blocks",
        clean_fits=clean <= SAME,
        cases=len(cases),
        alpha=ALPHA,
        enough=0,
    )


def _beyond(one: ExactBlocks, law: Law) -> float:
    """The distance of a law, beyond what is not known of it."""
    return max(0.0, float(total_variation(dict(one.law), dict(law))) - one.error_bound)


def _candidate(names: Sequence[str], apart: Mapping[str, float], laws: Laws) -> Candidate:
    fits = apart[names[0]] <= SAME
    return Candidate(
        entries=tuple(laws.entries[name] for name in names),
        strengths=(1.0,) * len(names),
        log10_ratio=INFINITE,
        log10_over_clean=INFINITE if fits else 0.0,
        log10_against=0.0 if fits else INFINITE,
        fits=fits,
        resembles=False,
        distance=apart[names[0]],
    )
