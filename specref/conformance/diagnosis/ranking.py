"""Ranks the known bugs: by the likelihood of observed blocks, or by the distance of exact laws."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

import numpy as np

from specref.conformance.diagnosis.laws import CaseLaws, Law, Laws, Observed
from specref.conformance.diagnosis.likelihood import Basis, groups, tabulate, weigh
from specref.conformance.diagnosis.report import Candidate, Diagnosis
from specref.distributions import total_variation
from specref.zoo import Entry

ALPHA = 1e-6
"""The chance that the true bug is said not to fit, at any number of blocks."""
ENOUGH = 20_000
"""So many blocks are needed to say that a bug fits."""
LN10 = math.log(10)


def diagnose(
    observed: Sequence[Observed],
    laws: Laws,
) -> Diagnosis:
    """Rank the known bugs by likelihood, and decide whether they explain the data.

    Blocks are compared whole: their lengths tell much. If no bug, nor the clean rule, fits
    them, and the tokens are not the target's either, each token is compared given those before
    it; a bug that agrees then resembles what was seen, lengths aside.

    A bug fits if there is no evidence against it on any case, nor on all together, at strength
    1: in every block. One that agrees with the data only if it touches a smaller share of blocks
    resembles the data, and so does any other if there are fewer than `ENOUGH` blocks: with
    few of them, a bug that is not in `laws` is easily mistaken for one that is.

    Every law is mixed with a leak of one block (or token) in a million, so that a stray block
    is evidence against a bug without excluding it.
    """
    cases: list[Observed] = []
    known: list[CaseLaws] = []
    for case in observed:
        with suppress(ValueError):  # the clean rule has no law there
            known.append(laws.of(case))
            cases.append(case)
    if not cases:
        return Diagnosis((), "blocks", enough=ENOUGH)
    blocks, tokens = (_Weighed(cases, known, laws.entries, basis) for basis in get_args(Basis))
    chosen = blocks
    if not (blocks.clean_fits or tokens.clean_fits or blocks.similar) and tokens.similar:
        chosen = tokens
    return Diagnosis(
        candidates=chosen.candidates,
        basis=chosen.basis,
        clean_fits=blocks.clean_fits,
        tokens_fit=tokens.clean_fits,
        trials=sum(case.trials for case in cases),
        cases=len(cases),
        enough=ENOUGH,
    )


def unnamed(dependent: tuple[str, ...]) -> Diagnosis:
    """A diagnosis without comparison, because blocks depend on each other in some campaigns."""
    return Diagnosis((), "blocks", enough=ENOUGH, dependent=dependent)


class _Weighed:
    """All hypotheses on one basis; 0 is the clean rule, the others are entries with a law."""

    def __init__(
        self,
        cases: Sequence[Observed],
        laws: Sequence[CaseLaws],
        entries: Mapping[str, Entry],
        basis: Basis,
    ) -> None:
        names = [name for name in entries if any(name in case.entries for case in laws)]
        table = tabulate(cases, laws, names, basis)
        self.entries = [entries[name] for name in names]
        self.cases, self.basis, self.predicted = cases, basis, table.predicted
        self.found = weigh(table, sum(case.trials for case in cases))
        self.first = groups(table, self.found.strength)
        self.whole = (self.found.whole < -math.log(ALPHA)) & (self.found.strength == 1)
        self.alike = self.whole | (self.found.against < -math.log(ALPHA))
        sure = sum(case.trials for case in cases) >= ENOUGH
        self.fits = self.whole & sure & (basis == "blocks")

    @property
    def clean_fits(self) -> bool:
        return bool(self.whole[0])

    @property
    def similar(self) -> bool:
        return any(candidate.fits or candidate.resembles for candidate in self.candidates)

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        found, score = self.found, self.found.score
        likeliest = np.argsort(-score, kind="stable").tolist()
        order = [row for row in likeliest if self.first[row] == row > 0]
        order.sort(key=lambda row: (not self.fits[row], not self.alike[row]))
        return tuple(
            Candidate(
                entries=self._members(row),
                strengths=tuple(found.strength[self.first == row].tolist()),
                log10_ratio=float(score[row] - following) / LN10,
                log10_over_clean=float(score[row] - score[0]) / LN10,
                log10_against=float(found.against[row]) / LN10,
                fits=bool(self.fits[row]),
                resembles=bool(self.alike[row] and not self.fits[row]),
                distance=float(found.distance[row]),
                no_law_on=tuple(
                    case.name
                    for case, known in zip(self.cases, self.predicted[row], strict=True)
                    if not known
                ),
            )
            for row, following in zip(order, [*score[order[1:]], -math.inf], strict=True)
        )

    def _members(self, row: int) -> tuple[Entry, ...]:
        rows = np.flatnonzero(self.first == row).tolist()
        return tuple(self.entries[i - 1] for i in rows if i)


SAME = 1e-6
"""A distance that rounding explains: samplers may count in float32."""
NEAREST = 2
"""So many bugs that do not fit are named."""
INFINITE = float("inf")


@dataclass(frozen=True)
class ExactBlocks:
    """The law of the blocks of a sampler on a case.

    * `case`: Its counts do not matter.
    * `law`: {block: probability}, as emitted.
    """

    case: Observed
    law: Mapping[tuple[int, ...], float]
    error_bound: float = 0.0


def diagnose_exactly(cases: Sequence[ExactBlocks], laws: Laws) -> Diagnosis:
    """The known bugs that have the same law on all cases, and those that are nearest to it."""
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
        enough=0,
    )


def same_laws(cases: Sequence[ExactBlocks], laws: Laws) -> tuple[str, ...]:
    """The known bugs that have the same law on all cases."""
    with suppress(ValueError):  # the clean rule has no law there
        found = diagnose_exactly(cases, laws)
        return tuple(id_ for one in found.candidates if one.fits for id_ in one.ids)
    return ()


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
