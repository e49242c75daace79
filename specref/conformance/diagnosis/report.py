"""The outcome of a diagnosis, and what it says in words."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from specref.conformance.diagnosis.table import Basis
from specref.zoo import Entry

SHOWN = 3
LARGEST = 100
AS_LIKELY = 0.5


@dataclass(frozen=True)
class Candidate:
    """One known bug, or several that cannot be told apart on what was seen.

    Attributes
    ----------
    entries : tuple of Entry
    strengths : tuple of float
        For each entry 1, or the fitted share of blocks that the bug touches.
    log10_ratio : float
        How much likelier it is than the next candidate; inf for the last one.
    log10_over_clean : float
        How much likelier it is than the clean rule.
    log10_against : float
        Evidence that what was seen has another law; see `fits`.
    fits : bool
        False if the evidence against reached 1/alpha, which happens to the true bug with
        probability at most alpha, at any strength from 0.01 to 1 and any number of blocks.
    distance : float
        The largest total variation between observed frequencies and law on a case (above 0 for
        the true bug as well). On the basis of next tokens the mean over prefixes.
    no_law_on : tuple of str
        Cases on which the bug fails, and says nothing.
    """

    entries: tuple[Entry, ...]
    strengths: tuple[float, ...]
    log10_ratio: float
    log10_over_clean: float
    log10_against: float
    fits: bool
    distance: float
    no_law_on: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The names of the entries."""
        return tuple(entry.id for entry in self.entries)

    @property
    def stage(self) -> str:
        """Where the departure happens."""
        return _joined(entry.stage for entry in self.entries)

    @property
    def cites(self) -> tuple[str, ...]:
        """Where the bug was seen in public."""
        return tuple(dict.fromkeys(cite for entry in self.entries for cite in entry.cites))

    @property
    def symptom(self) -> str:
        """How it shows."""
        return _joined(entry.symptom for entry in self.entries)

    @property
    def hint(self) -> str:
        """How to fix it."""
        return _joined(entry.hint for entry in self.entries)

    @property
    def lossless(self) -> bool:
        """Whether it is no bug, but a lossless rule that looks like one."""
        return all(entry.lossless for entry in self.entries)

    @property
    def title(self) -> str:
        """The names, with strengths below 1."""
        shares = ("" if s == 1 else f" in {s:.0%} of blocks" for s in self.strengths)
        return " or ".join(map("".join, zip(self.ids, shares, strict=True)))


@dataclass(frozen=True)
class Diagnosis:
    """Which known bugs explain what was seen.

    Attributes
    ----------
    candidates : tuple of Candidate
        The likeliest first.
    basis : {"blocks", "next tokens"}
        What was compared. Next tokens, if no known bug ends its blocks like this.
    clean_fits : bool
        Whether the clean rule explains the blocks.
    tokens_fit : bool
        Whether every next token has the target's law, as under any lossless rule.
    blind : tuple of str
        Bugs that are no different from the clean rule on what was seen.
    notes : tuple of str
        Cases and entries without a law.
    trials, cases : int
        How many blocks, on how many cases.
    alpha : float
        The chance that the true law is said not to fit.
    """

    candidates: tuple[Candidate, ...]
    basis: Basis
    clean_fits: bool
    tokens_fit: bool
    blind: tuple[str, ...]
    notes: tuple[str, ...]
    trials: int
    cases: int
    alpha: float

    @property
    def known(self) -> bool:
        """Whether any candidate fits. If none does: unlike anything known."""
        return any(candidate.fits for candidate in self.candidates)

    def __str__(self) -> str:
        return "\n".join((*self._summary(), *self._ranking()))

    def _summary(self) -> Iterator[str]:
        seen = f"{self.trials:,} blocks on {self.cases} case{'s' * (self.cases != 1)}"
        if not self.cases:
            yield "Nothing can be compared: the clean rule has no exact law on any case."
        elif self.clean_fits:
            yield f"Nothing to diagnose: {seen} fit the clean rule."
            yield "A check that failed saw something else than these blocks."
        else:
            yield f"{self._verdict()}, judging by {seen}."
            if self.tokens_fit:
                yield "Block lengths are not the clean rule's; the tokens may be the target's."

    def _verdict(self) -> str:
        if not self.candidates:
            return "No known bug differs from the clean rule"
        if not self.known:
            return "Unlike anything known"
        kind = "lossless rule" if self.candidates[0].lossless else "bug"
        return f"Looks like a known {kind}{' (lengths aside)' * (self.basis == 'next tokens')}"

    def _ranking(self) -> Iterator[str]:
        if self.clean_fits:
            return
        for rank, candidate in enumerate(self.candidates[:SHOWN], 1):
            fit = "fits" if candidate.fits else f"does not fit (off by {candidate.distance:.3f})"
            lossless = ", lossless" * candidate.lossless
            yield f"{rank}. {candidate.title} [{candidate.stage}{lossless}], {fit}"
            yield f"   {_compared(candidate)}"
            if rank == 1:
                yield from _details(candidate)


def _compared(candidate: Candidate) -> str:
    clean = f"{_times(candidate.log10_over_clean)} as likely as the clean rule"
    if candidate.log10_ratio == float("inf"):
        return clean
    return f"{clean}, {_times(candidate.log10_ratio)} as likely as the next"


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
    if candidate.cites:
        yield f"   seen in {', '.join(candidate.cites)}"
    if candidate.no_law_on:
        yield f"   says nothing about {', '.join(candidate.no_law_on)}"


def _joined(texts: Iterable[str]) -> str:
    return " / ".join(dict.fromkeys(texts))
