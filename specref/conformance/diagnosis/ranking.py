"""Ranks the known bugs, by likelihoods of blocks or distances of exact laws, and tells of them."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import get_args

import numpy as np

from specref.conformance.diagnosis.laws import CaseLaws, Law, Laws, Observed
from specref.conformance.diagnosis.likelihood import Basis, groups, tabulate, weigh
from specref.distributions import total_variation
from specref.statistics.floats.floats import EQUIVALENCE_MARGIN
from specref.zoo import Entry

ALPHA = 1e-6
"""The chance that the true bug is said not to fit, at any number of blocks."""
ENOUGH = 20_000
"""So many blocks are needed to say that a bug fits."""
LN10 = math.log(10)
SHOWN = 3
LARGEST = 100
AS_LIKELY = 0.5


@dataclass(frozen=True)
class Candidate:
    """One known bug, or several that cannot be distinguished on the data.

    * `strengths`: For each entry 1, or the fitted share of blocks that the bug touches.
    * `log10_ratio`: log10 of the likelihood ratio to the next candidate; inf for the last one.
    * `log10_against`: Evidence that the data have another law; see `fits`.
    * `fits`: Whether it explains the data, in every block of every case, and there are enough
      blocks to say so. False if the evidence against reached 1/alpha, which happens to the true
      bug with probability at most alpha at any number of blocks.
    * `resembles`: It does not fit, but agrees with the data if it touches a share of blocks below
      1, or if lengths are ignored; or it would fit if there were more blocks.
    * `distance`: The largest total variation between observed frequencies and law on a case, less
      what noise makes of it on average. On the basis of next tokens the mean over prefixes.
    """

    entries: tuple[Entry, ...]
    strengths: tuple[float, ...]
    log10_ratio: float
    log10_over_clean: float
    log10_against: float
    fits: bool
    resembles: bool
    distance: float
    no_law_on: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(entry.id for entry in self.entries)

    @property
    def stage(self) -> str:
        """The stage of verification at which the bug departs from the rule."""
        return _joined(entry.stage for entry in self.entries)

    @property
    def cites(self) -> tuple[str, ...]:
        """Where the bug was seen in public."""
        return tuple(dict.fromkeys(cite for entry in self.entries for cite in entry.cites))

    @property
    def symptom(self) -> str:
        return _joined(entry.symptom for entry in self.entries)

    @property
    def hint(self) -> str:
        return _joined(entry.hint for entry in self.entries)

    @property
    def lossless(self) -> bool:
        """Whether it is not a bug, but a lossless rule that looks like one."""
        return all(entry.lossless for entry in self.entries)

    @property
    def title(self) -> str:
        """The names, with strengths below 1."""
        shares = ("" if s == 1 else f" in {s:.0%} of blocks" for s in self.strengths)
        return " or ".join(map("".join, zip(self.ids, shares, strict=True)))

    @property
    def match(self) -> str:
        """How well it fits, in words."""
        if self.fits or self.resembles:
            return "fits" if self.fits else "resembles it"
        return f"does not fit (off by {self.distance:.3f})"


@dataclass(frozen=True)
class Diagnosis:
    """The known bugs that explain the data.

    * `candidates`: Those that fit, those that resemble the data, and the others; within each group
      the likeliest come first.
    * `basis`: What was compared. Next tokens if no known bug has such block lengths.
    * `tokens_fit`: Whether every next token has the target's law, as under any lossless rule.
    * `dependent`: Campaigns in which the rows of a batch depend on each other; then no law is
      compared.
    * `elsewhere`: The checks that show that a law is wrong. If the tokens that were compared are
      right, these failed in situations that the comparison does not have.
    * `largest`: The largest distance from the target that was computed without sampling, and its
      check.
    """

    candidates: tuple[Candidate, ...]
    basis: Basis
    clean_fits: bool = False
    tokens_fit: bool = False
    trials: int = 0
    cases: int = 0
    enough: int = ENOUGH
    dependent: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    largest: tuple[float, str] | None = None

    def with_first(self, candidate: Candidate) -> "Diagnosis":
        """The same with one more candidate, which explains the data where the others do not."""
        return replace(self, candidates=(candidate, *self.candidates))

    @property
    def unseen(self) -> bool:
        """Whether what failed does not show in the blocks that were compared."""
        return self.clean_fits or (self.tokens_fit and bool(self.elsewhere) and not self.known)

    @property
    def known(self) -> bool:
        """Whether a candidate fits."""
        return any(candidate.fits for candidate in self.candidates)

    @property
    def resembling(self) -> bool:
        """Whether no candidate fits, but one resembles the data."""
        return not self.known and any(candidate.resembles for candidate in self.candidates)

    def __str__(self) -> str:
        return "\n".join((*self._summary(), *self._ranking()))

    def _summary(self) -> Iterator[str]:
        cases = f"{self.cases} case{'s' * (self.cases != 1)}"
        seen = (
            f"{self.trials:,} blocks on {cases}"
            if self.trials
            else f"exact distributions on {cases}"
        )
        if self.dependent:
            where = ", ".join(self.dependent)
            yield f"Blocks depend on each other ({where})."
            yield "Look for shared random numbers, and for decisions made for the whole batch."
            yield "No known bug is named: distributions are distinguished by independent blocks."
        elif not self.cases:
            yield "Nothing can be compared: the clean rule has no exact distribution on any case."
        elif self.unseen:
            fit = "the clean rule" if self.clean_fits else "the target's distribution of tokens"
            yield f"No known bug is named: {seen} fit {fit}."
            where = f" ({', '.join(self.elsewhere[:SHOWN])})" if self.elsewhere else ""
            yield f"These blocks do not show the failure{where}."
            yield from self._rounding()
        else:
            yield f"{self._verdict()}, judging by {seen}."
            if self.resembling and self.basis == "next tokens":
                yield "Lengths aside: the tokens could be its, the block lengths are not."
            if self.resembling and min(self.candidates[0].strengths) < 1:
                yield "It would have to touch a share of the blocks, not all of them."
            if self.resembling and self.trials < self.enough:
                yield f"Fewer than {self.enough:,} blocks are too few to say that it fits."
            if self.tokens_fit and not self.elsewhere:
                yield "Block lengths are not the clean rule's; the tokens show no difference here."

    def _rounding(self) -> Iterator[str]:
        """What a small exact distance looks like."""
        if self.largest is not None and self.largest[0] <= EQUIVALENCE_MARGIN["bfloat16"]:
            distance, where = self.largest
            yield f"The largest distance that was computed is TV {distance:.2g} ({where})."
            yield "Rounding does that: look for p or q in bfloat16, float16 or integers, and read"
            yield "docs/low-precision.md."

    def _verdict(self) -> str:
        if not self.candidates:
            return "No known bug differs from the clean rule"
        kind = f"known {'lossless rule' if self.candidates[0].lossless else 'bug'}"
        if self.known:
            return f"Looks like a {kind}"
        return f"Resembles a {kind}" if self.resembling else "Unlike anything known"

    def _ranking(self) -> Iterator[str]:
        if self.unseen or self.dependent:
            return
        for rank, candidate in enumerate(self.candidates[:SHOWN], 1):
            lossless = ", lossless" * candidate.lossless
            yield f"{rank}. {candidate.title} [{candidate.stage}{lossless}], {candidate.match}"
            if rank == 1 and (candidate.fits or candidate.resembles):
                yield from _details(candidate)


def _times(log10_ratio: float) -> str:
    if abs(log10_ratio) < AS_LIKELY:
        return "about"
    if abs(log10_ratio) > LARGEST:
        return f"more than 10^{LARGEST} times" if log10_ratio > 0 else f"under 10^-{LARGEST} times"
    return f"10^{log10_ratio:.1f} times"


def _details(candidate: Candidate) -> Iterator[str]:
    yield f"   symptom: {candidate.symptom}"
    fix = "exact because" if candidate.lossless else "fix"
    yield f"   {fix if candidate.fits else f'{fix}, if it were that'}: {candidate.hint}"
    likelihood = f"{_times(candidate.log10_over_clean)} as likely as the clean rule"
    if candidate.log10_over_clean == math.inf:
        likelihood = "the distributions are equal"
    elif candidate.log10_ratio != math.inf:
        likelihood += f", {_times(candidate.log10_ratio)} as likely as the next"
    yield f"   likelihood: {likelihood}"
    if candidate.cites:
        yield f"   seen in {', '.join(candidate.cites)}"
    if candidate.no_law_on:
        yield f"   says nothing about {', '.join(candidate.no_law_on)}"


def _joined(texts: Iterable[str]) -> str:
    return " / ".join(dict.fromkeys(texts))


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
        return Diagnosis((), "blocks")
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
    )


def unnamed(dependent: tuple[str, ...]) -> Diagnosis:
    """A diagnosis without comparison, because blocks depend on each other in some campaigns."""
    return Diagnosis((), "blocks", dependent=dependent)


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
        log10_ratio=math.inf,
        log10_over_clean=math.inf if fits else 0.0,
        log10_against=0.0 if fits else math.inf,
        fits=fits,
        resembles=False,
        distance=apart[names[0]],
    )
