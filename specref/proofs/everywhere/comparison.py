"""Which of two rules accepts more drafts, for every p and q over small vocabularies."""

import itertools
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias

from specref.algorithms.decoding import Step
from specref.distributions import Probability
from specref.proofs.everywhere.acceptance import (
    Comparing,
    Formula,
    Part,
    Side,
    Verified,
    repeated,
)
from specref.proofs.everywhere.number import ACCIDENT
from specref.proofs.everywhere.pristine import Pristine
from specref.proofs.everywhere.proof import (
    BUDGET,
    RANDOM_ROWS,
    Everywhere,
    all_rows,
    as_vocabularies,
    is_lossless_everywhere,
    models_of,
    random_rows,
    scouted,
    simplified,
    spoken,
)
from specref.proofs.everywhere.rows import Rows, Sample, Space
from specref.proofs.everywhere.slices import LongerBlockError
from specref.proofs.everywhere.solver import Counts, Solver, is_installed
from specref.proofs.everywhere.watch import Watch
from specref.proofs.exact import check_step
from specref.vocabulary import Tokens, Vocabulary

Relation: TypeAlias = Literal["more", "equal", "at least", "neither", "at most", "less", "open"]


@dataclass(frozen=True)
class Gap:
    """Rows at which two sides accept differently many drafts, enumerated with fractions.

    * `rows`: {Row: probabilities}: what differs from uniform rows.
    * `left`, `right`: The expected numbers of accepted drafts, of tokens for several iterations;
      where one side is a formula, the probabilities that the accepted drafts start with one of
      `texts`.
    """

    rows: Rows
    left: Probability
    right: Probability
    texts: tuple[Tokens, ...] = ()


@dataclass(frozen=True)
class AtLeast:
    """Whether one side accepts at least as many drafts as the other for every p and q.

    * `by_text`: Whether it was asked for each text that accepted drafts may start with. If not,
      for the expected number alone.
    * `premise`: The proof that the other side is lossless; None for a formula, and where there are
      rows that refute the claim.
    """

    proved: bool = False
    by_text: bool = True
    parts: tuple[Part, ...] = ()
    premise: Everywhere | None = None

    @property
    def regions(self) -> int:
        """Regions, over all texts."""
        return sum(one.regions for one in self.parts)

    @property
    def open(self) -> int:
        """Pieces of space of which nothing is known."""
        return sum(one.open for one in self.parts)


@dataclass(frozen=True)
class Comparison:
    """Which of two sides accepts more drafts in expectation, for every p and q.

    * `at_least`, `at_most`: Whether the left side accepts at least, at most as many as the right
      one.
    * `more`, `less`: Rows at which the left side accepts more, and less.
    * `counts`: How questions about conditions were answered.
    * `interrupted`: Whether Ctrl-C came; what was found by then is kept.
    * `iterations`: If more than 1, what was compared are the tokens that so many of them emit.
    """

    target: Vocabulary
    drafter: Vocabulary
    lookahead: int
    at_least: AtLeast
    at_most: AtLeast
    more: Gap | None
    less: Gap | None
    counts: Counts
    seconds: float
    interrupted: bool
    iterations: int = 1

    @property
    def relation(self) -> Relation:
        """How many drafts the left side accepts; ``more``: at least as many, somewhere more."""
        if self.at_least.proved and self.at_most.proved:
            return "equal"
        if self.at_least.proved:
            return "more" if self.more else "at least"
        if self.at_most.proved:
            return "less" if self.less else "at most"
        return "neither" if self.more and self.less else "open"

    @property
    def bits(self) -> int:
        """All numbers that were told apart were told apart rightly, but for 2^-bits at most."""
        mistakes = sum(p.mistakes for one in (self.at_least, self.at_most) for p in one.parts)
        found = ACCIDENT - mistakes.bit_length()
        both = self.at_least.premise, self.at_most.premise
        premises = [one.bits for one in both if one is not None]
        # One bit less, for the 2^-128 that the modulus is no prime, and one for each premise.
        return min(126, found - 1, *premises) - len(premises)

    def __repr__(self) -> str:
        regions = self.at_least.regions + self.at_most.regions
        return f"Comparison({self.relation!r}, regions={regions})"


def compare_everywhere(
    left: Step | Formula,
    right: Step | Formula,
    target: Vocabulary | Iterable[str],
    drafter: Vocabulary | Iterable[str] | None = None,
    lookahead: int = 1,
    *,
    seed: int = 0,
    budget: float = BUDGET,
    iterations: int = 1,
    known: Mapping[Step, Everywhere] = {},
    advance: Callable[[Part], None] = lambda found: None,
) -> Comparison:
    """Compare how many drafts two rules accept in expectation, whatever the rows of p and q are.

    * `left`, `right`: (target, drafter, context, lookahead, chance) -> block of target token ids,
      as for `is_lossless`; run as they are, in the empty context. All tokens of a block but the
      last count as accepted drafts, save those drawn at sites called ``modified``. A formula is
      compared for each text that the accepted drafts may start with.
    * `target`, `drafter`: Without EOS. The drafter's is the target's by default.
    * `seed`: Of the samples, the prime and the residues.
    * `budget`: Seconds of the processor, for each claim and for each rule that is to be lossless;
      what is not done by then is open.
    * `iterations`: If more than 1, the tokens that so many iterations emit are compared, each in
      the context that those before it leave.
    * `known`: {rule: what `is_lossless_everywhere` found for it, for the same rows}: is not proved
      again.
    * `advance`: Called with each `Part`.
    * returns: `at_least.proved`: the left side accepts at least as many.
    * raises `NotForAllError`, `ModuleNotFoundError`, `TypeError`, `ValueError`: As
      `is_lossless_everywhere`.
    * raises `Exception`: What a rule raises at rows that are met: it is not compared.
    """
    if not is_installed():
        raise ModuleNotFoundError("z3 is not installed: pip install z3-solver")
    target, drafter = as_vocabularies(target, drafter)
    for name, vocabulary in (("target", target), ("drafter", drafter)):
        if vocabulary.eos is not None:
            raise ValueError(
                f"{name} has the EOS {vocabulary.eos!r}: expected a vocabulary without"
            )
    if not budget > 0:
        raise ValueError(f"budget = {budget}: expected seconds > 0")
    if iterations < 1:
        raise ValueError(f"iterations = {iterations}: expected an integer >= 1")
    if iterations > 1 and (isinstance(left, Formula) or isinstance(right, Formula)):
        raise TypeError("left or right is a formula: expected rules for several iterations")
    if isinstance(left, Formula) and isinstance(right, Formula):
        raise TypeError("left, right are formulas: expected at least one rule")
    started = time.monotonic()
    size = target, drafter, lookahead, iterations
    with ExitStack() as stack:
        one, other = ((side, _pristine(side, iterations, stack)) for side in (left, right))
        claims = _Claims(one, other, *size, seed, budget, known, advance)
        try:
            claims.watch.run(claims.look)
        except KeyboardInterrupt:
            claims.interrupted = True
        return claims.watch.run(partial(claims.result, time.monotonic() - started))


class _Claims:
    """Left >= right and left <= right: what is known of them so far."""

    def __init__(
        self,
        left: tuple[Step | Formula, Pristine | None],
        right: tuple[Step | Formula, Pristine | None],
        target: Vocabulary,
        drafter: Vocabulary,
        lookahead: int,
        iterations: int,
        seed: int,
        budget: float,
        known: Mapping[Step, Everywhere],
        advance: Callable[[Part], None],
    ) -> None:
        self.target, self.drafter, self.lookahead = target, drafter, lookahead
        self.seed, self.budget, self.known, self.advance = seed, budget, known, advance
        self.space = Space(target, drafter, seed)
        self.counts = Counts()
        self.iterations = iterations
        self.watch = Watch(budget)
        self.left, self.right = (_side(*one, iterations, self.watch) for one in (left, right))
        self.formulas = [one for one in (self.left, self.right) if isinstance(one, Formula)]
        self.more: Gap | None = None
        self.less: Gap | None = None
        self.at_least = self.at_most = AtLeast()
        self.interrupted = False

    def look(self) -> None:
        """Try random rows; prove what these do not refute."""
        size = self.target, self.drafter, self.lookahead, self.seed
        self.length = max(
            len(block) - side.uncounted
            for side in (self.left, self.right)
            if isinstance(side, Verified)
            for block in scouted(side.watched, *size).values()
        )
        most = self.iterations * (self.lookahead + 1)
        if self.length > most:
            raise TypeError(
                f"a block has {self.length} tokens: expected at most {most}, those of "
                f"{self.iterations} iteration{'s' * (self.iterations > 1)} with lookahead "
                f"{self.lookahead} (a step of several iterations is not compared)"
            )
        for number in range(RANDOM_ROWS):
            if not (self.more and self.less):
                self._try(random_rows(self.space, self._longest, f"{self.seed} compare {number}"))
        if not self.less:
            self.at_least = self._proved(self.left, self.right)
        if not self.more:
            self.at_most = self._proved(self.right, self.left)

    def result(self, seconds: float) -> Comparison:
        return Comparison(
            self.target,
            self.drafter,
            self.lookahead,
            self.at_least,
            self.at_most,
            self.more and self._simple(self.more, 1),
            self.less and self._simple(self.less, -1),
            self.counts,
            seconds,
            self.interrupted,
            self.iterations,
        )

    def _proved(self, great: Side, small: Side) -> AtLeast:
        """Whether one side accepts at least as much as the other; notes rows where it does not."""
        premise = self._premise(small)
        while True:
            try:
                if isinstance(small, Verified) and premise is not None and premise.slices:
                    longest = max(len(one.outcome) for one in premise.slices)
                    self.length = max(self.length, longest - small.uncounted)
                found = self._covered(great, small)
                return replace(
                    found,
                    proved=found.proved and (premise is None or bool(premise)),
                    premise=premise,
                )
            except LongerBlockError as longer:
                self.length = longer.length

    def _premise(self, side: Side) -> Everywhere | None:
        if not isinstance(side, Verified):
            return None
        found = self.known.get(side.step)
        if found is None:
            rows = self.target, self.drafter, self.lookahead
            found = is_lossless_everywhere(
                side.step, *rows, seed=self.seed, budget=self.budget, pristine=side.pristine
            )
        if found.interrupted:
            raise KeyboardInterrupt
        return found

    def _covered(self, great: Side, small: Side) -> AtLeast:
        self.watch.restart(self.budget)
        solver = Solver(self.counts)
        comparing = Comparing(
            great, small, self.space, self.lookahead, self.length, solver, self.budget
        )
        parts: list[Part] = []
        for texts in self._groups():
            parts += self._shown(comparing, texts)
            if parts[-1].below:
                break
        else:
            return AtLeast(not any(one.open for one in parts), True, tuple(parts))
        if self._refuted(great) or self.formulas:
            return AtLeast(False, True, tuple(parts))
        every = tuple(text for (text,) in self._groups())
        (whole,) = self._shown(comparing, every)
        return AtLeast(not (whole.open or whole.below), False, (whole,))

    def _shown(self, comparing: Comparing, texts: tuple[Tokens, ...]) -> list[Part]:
        """What is found for some texts; for one x by all y that it begins, if that is enough."""

        def shown(end: Tokens) -> Part:
            found = comparing.cover(texts, end)
            self.advance(found)
            for sample in (found.above, found.below, *found.points):
                if sample:
                    self._try(self._rows_at(sample))
            return found

        if len(texts) == 1 and isinstance(comparing.left, Verified):
            (text,) = texts
            parts: list[Part] = []
            for rest in itertools.product(range(len(self.target)), repeat=self.length - len(text)):
                parts.append(shown((*text, *rest)))
                if parts[-1].below:
                    break
            else:
                return parts
        return [shown(())]

    def _refuted(self, great: Side) -> bool:
        return bool(self.less if great is self.left else self.more)

    def _groups(self) -> list[tuple[Tokens, ...]]:
        """The x whose W(x) are compared together: one by one, unless a formula is for the sum."""
        tokens = range(len(self.target))
        longest = min([self.length, *(one.longest for one in self.formulas)])
        by_length = [
            tuple(itertools.product(tokens, repeat=size)) for size in range(1, longest + 1)
        ]
        if any(one.total for one in self.formulas):
            return by_length[:1]
        return [(text,) for texts in by_length for text in texts]

    def _gaps(self, rows: Rows) -> list[Gap]:
        """How much each side accepts at given rows: in all, or of each group for a formula."""
        models = models_of(self.space, rows)
        groups = self._groups()
        left, right = (
            side.sums(*models, self.lookahead, groups) for side in (self.left, self.right)
        )
        if not self.formulas:
            return [Gap(rows, sum(left), sum(right))]
        return [Gap(rows, *both) for both in zip(left, right, groups, strict=True)]

    def _gap(self, rows: Rows, sign: int) -> Gap | None:
        """Where the left side accepts more (1) or less (-1) at given rows."""
        return next((gap for gap in self._gaps(rows) if sign * (gap.left - gap.right) > 0), None)

    def _try(self, rows: Rows) -> None:
        self.more = self.more or self._gap(rows, 1)
        self.less = self.less or self._gap(rows, -1)

    def _simple(self, gap: Gap, sign: int) -> Gap:
        rows = simplified(gap.rows, lambda rows: self._gap(rows, sign) is not None)
        found = self._gap(rows, sign)
        assert found is not None
        return replace(found, rows=spoken(rows))

    @property
    def _longest(self) -> int:
        return max(self.length, self.lookahead, 1)

    def _rows_at(self, sample: Sample) -> Rows:
        # The space has rows of longer contexts, too: free estimates of a companion.
        rows = dict.fromkeys((*all_rows(self.space, self._longest), *self.space.rows))
        return {row: sample.row(row) for row in rows}


def _pristine(given: Step | Formula, iterations: int, stack: ExitStack) -> Pristine | None:
    if isinstance(given, Formula):
        return None
    check_step(given)
    step = given if iterations == 1 else repeated(given, iterations)
    return stack.enter_context(Pristine(lambda length: step))


def _side(given: Step | Formula, pristine: Pristine | None, iterations: int, watch: Watch) -> Side:
    if isinstance(given, Formula):
        return given
    return Verified(given, iterations, watch, pristine)
