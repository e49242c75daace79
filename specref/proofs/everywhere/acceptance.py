"""What one of two rules accepts more of, shown region by region for every p and q.

Let W(x) be the probability that the accepted drafts of an iteration start with x. The expected
number of accepted drafts is the sum of W(x) over all texts x but the empty one. So one side is at
least the other if its W(x) is, for each x; and if not, the sums may still be.

From below. W(x) is at least the sum of the weights of some paths on which the accepted drafts
start with x: the argument of `region`, without what completes a block.

From above. A lossless rule emits texts that start with x with probability p(x). So W(x) is p(x)
less the probability of the other paths to x: those that emit x, or a beginning of x that the
target completes to it, while the accepted drafts do not start with x. It is at most p(x) less the
sum of the weights of some of these. That the rule is lossless for all rows is taken for granted
here; `comparison` proves it beforehand.

By what follows. Let y be as long as drafts get, and start with x. It is enough to show for each
such y that the left side accepts x, and emits y, with at least the probability W(x) p(y | x) of
the right side; the sum over y is W(x) on both. For one y fewer rows matter than for all of them.

So in each region there is one rational function that the difference of two sides is not below.
Where it is negative at the sample, all paths being followed there, the difference is. Otherwise
that it is not negative is one more condition of the region.

Of a block the last token is no accepted draft, and nor are those that a rule draws at sites that
are called ``modified`` (`algorithms.greedy_block`).

Of several iterations in a row, W(x) is the probability that the text that they emit starts with x,
without the tokens drawn at these sites; the argument is the same.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TypeAlias

from specref.algorithms import greedy_block
from specref.algorithms.decoding import Step
from specref.chance import MAX_PATHS, Chance, TooManyPathsError, Traced, enumerate_paths
from specref.distributions import Probability
from specref.models import Model
from specref.proofs.everywhere import polynomials, signs
from specref.proofs.everywhere.covering import At, Cover, Covering, Piece
from specref.proofs.everywhere.number import Number, Reading, TieError
from specref.proofs.everywhere.polynomials import Product
from specref.proofs.everywhere.pristine import Pristine
from specref.proofs.everywhere.region import Region
from specref.proofs.everywhere.rows import Models, Sample, Space, clause
from specref.proofs.everywhere.slices import LongerBlockError
from specref.proofs.everywhere.solver import Solver
from specref.proofs.everywhere.walk import OWED, Choices, Path, paths, prefixes
from specref.proofs.everywhere.watch import Watch
from specref.vocabulary import Tokens

Value: TypeAlias = Callable[[Model, Model, Tokens, int], Probability]


@dataclass(frozen=True)
class Look:
    """A rule or a formula is looked at, at a sample.

    * `texts`: The x whose W(x) are added.
    * `end`: y, if there is one x that is its beginning; else ().
    * `lookahead`, `length`: The length of the longest text that may be accepted.
    * `check`: Called between two paths; may raise.
    * `every`: Whether all paths are to be followed, or those which mattered at other samples.
    """

    models: Models
    region: Region
    texts: Sequence[Tokens]
    end: Tokens
    lookahead: int
    length: int
    found: Cover
    check: Callable[[], None]
    every: bool


class Side(ABC):
    """What accepts drafts: a rule, or a formula of how many are accepted."""

    @abstractmethod
    def at_least(self, look: Look) -> Number:
        """What the sum of W(x) is not below, in the region."""

    @abstractmethod
    def at_most(self, look: Look) -> Number:
        """What it is not above."""

    @abstractmethod
    def sums(
        self, target: Model, drafter: Model, lookahead: int, groups: Sequence[Sequence[Tokens]]
    ) -> list[Probability]:
        """The sum of W(x) over each group of x, at given rows."""


class Verified(Side):
    """A rule of verification, by its paths.

    * `iterations`: If more than 1, so many in a row: all tokens that they emit are counted. A step
      that owes tokens, other than `greedy_block.step`, raises a TypeError when it is run.
    * `pristine`: Where the step was never called; paths are run there, too.
    """

    def __init__(
        self,
        step: Step,
        iterations: int = 1,
        watch: Watch | None = None,
        pristine: Pristine | None = None,
    ) -> None:
        self.step = step if iterations == 1 else repeated(step, iterations)
        self.pristine = pristine
        self.watched = watch.of(self.step) if watch else self.step
        self.uncounted = 1 if iterations == 1 else 0
        self._may_owe = iterations == 1 or step is greedy_block.step
        self._kept: Tokens = ()
        self._hopeful: dict[tuple[bool, Sequence[Tokens], Tokens], set[Choices]] = {}

    def at_least(self, look: Look) -> Number:
        def share(path: Path) -> Iterable[Number | int]:
            kept, block, end = self._kept, path.block, look.end
            if agree(block, end):
                rest = look.models.said(block, end[len(block) :])
                yield from (rest for text in look.texts if kept[: len(text)] == text)

        return self._gathered(look, share, least=True)

    def at_most(self, look: Look) -> Number:
        def share(path: Path) -> Iterable[Number | int]:
            kept, block = self._kept, path.block
            for text in look.texts:
                if kept[: len(text)] != text and agree(block, text):
                    rest = look.models.said(block, text[len(block) :])
                    yield rest * look.models.said(text, look.end[len(text) :])

        said = sum(look.models.said((), look.end or text) for text in look.texts)
        return said - self._gathered(look, share, least=False)

    def sums(
        self, target: Model, drafter: Model, lookahead: int, groups: Sequence[Sequence[Tokens]]
    ) -> list[Probability]:
        found: list[Probability] = [Fraction(0) for _ in groups]

        def program(chance: Chance) -> Tokens:
            self._run(target, drafter, (), lookahead, chance)
            return self._kept

        for path in enumerate_paths(program):
            kept = {path.outcome[:size] for size in range(1, len(path.outcome) + 1)}
            for number, texts in enumerate(groups):
                found[number] += path.weight * sum(text in kept for text in texts)
        return found

    def _run(
        self, target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> Tokens:
        """Run the step; keep the accepted drafts of this path."""
        traced = Traced(chance)
        block = tuple(self.watched(target, drafter, context, lookahead, traced))
        owed = sum(step.site == OWED for step in traced.steps)
        if owed and not self._may_owe:
            raise TypeError(
                f"step draws at sites called {OWED}: expected none in several iterations, where "
                "only greedy_block.step itself is known to carry what it owes"
            )
        self._kept = block[: max(len(block) - self.uncounted - owed, 0)]
        return block

    def _gathered(
        self, look: Look, share: Callable[[Path], Iterable[Number | int]], *, least: bool
    ) -> Number:
        """The weights of the paths, each as often as it counts; their conditions are recorded."""
        reading, chart = look.models.reading, look.region.chart
        hopeful = self._hopeful.setdefault((least, look.texts, look.end), set())
        followed = paths(
            self._run, look.models, look.lookahead, hopeful, look.check, every=look.every
        )
        total = reading.constant(0)
        counted: list[Path] = []
        for number, path in enumerate(followed):
            look.found.paths += 1
            if number == MAX_PATHS:
                raise TooManyPathsError(f"more than {MAX_PATHS:,} paths at one sample")
            if len(self._kept) > look.length:
                raise LongerBlockError(len(self._kept))
            weight = reading.constant(0)
            for one in share(path):
                weight = weight + one
            if weight.residue:
                weight = prod(path.weights, start=weight)
                look.region.add_path(path.events, chart.form(weight))
                hopeful.update(prefixes(path.choices))
                total = total + weight
                counted.append(path)
        if self.pristine:
            self.pristine.confirm(counted, look.models, look.lookahead, look.length)
        return total


class Formula(Side):
    """What is accepted, in closed form.

    * `value`: (target, drafter, x, lookahead) -> W(x).
    * `longest`: Of the x that it is for.
    * `total`: Whether `value` is the sum of W(x) over all x of one token, and is called with () as
      x.
    """

    def __init__(self, value: Value, longest: int = 1, *, total: bool = False) -> None:
        self.value, self.longest, self.total = value, longest, total

    def at_least(self, look: Look) -> Number:
        reading = look.models.reading
        reading.events = []
        rows = look.models.model("p"), look.models.model("q")
        found = reading.constant(0)
        for text in [()] if self.total else look.texts:
            rest = look.models.said(text, look.end[len(text) :])
            found = found + self.value(*rows, text, look.lookahead) * rest
        look.region.add_path(reading.events, polynomials.ONE)
        return found

    def at_most(self, look: Look) -> Number:
        return self.at_least(look)

    def sums(
        self, target: Model, drafter: Model, lookahead: int, groups: Sequence[Sequence[Tokens]]
    ) -> list[Probability]:
        asked = [[()] for _ in groups] if self.total else groups
        return [
            sum(self.value(target, drafter, text, lookahead) for text in texts) for texts in asked
        ]


@dataclass
class Part(Cover):
    """What was found for some texts: whether a sum of W(x) is at least another one.

    * `below`: Rows at which it is not.
    * `above`: Rows at which it is more.
    """

    texts: Sequence[Tokens] = ()
    below: Sample | None = None
    above: Sample | None = None


class _BelowError(Exception):
    """A sample is found at which a sum is below the other."""


class Comparing(Covering):
    """Covers the rows with regions in which one side accepts at least as much as the other.

    * `lookahead`, `length`: The length of the longest text that may be accepted.
    * `budget`: Seconds of the processor, from now on; what is not done by then is open.
    """

    def __init__(
        self,
        left: Side,
        right: Side,
        space: Space,
        lookahead: int,
        length: int,
        solver: Solver,
        budget: float,
    ) -> None:
        super().__init__(space, solver)
        self.deadline = time.process_time() + budget
        self.left, self.right, self.lookahead, self.length = left, right, lookahead, length
        self._texts: Sequence[Tokens] = ()
        self._end: Tokens = ()

    def cover(self, texts: Sequence[Tokens], end: Tokens = ()) -> Part:
        """Show that the sum of W(x) over some x is at least that of the other side.

        Stops at rows where it is not.

        * `texts`: The x. If there is one, where the target never says it there is nothing to show
          of two rules; a formula may be wrong there.
        * `end`: y: show it, for one x, of W(x) p(y | x); of the left side's W(x), take that part
          at which the text is y.
        """
        self._texts, self._end = texts, end
        said = end or (texts[0] if len(texts) == 1 else ())
        found = Part(said, self.space, texts=texts)
        rules = isinstance(self.left, Verified) and isinstance(self.right, Verified)
        with suppress(_BelowError):
            given = [clause(form, signs.POSITIVE) for form in self.said(said)] if rules else []
            samples: list[Sample] = []

            def look(at: At) -> list[Piece]:
                clauses = self._region_of(at, found).clauses
                samples.append(at.sample)
                return self.without(at, clauses, found)

            self.cover_pieces([self.start(given)], found, look, samples, "")
        return found

    def _region_of(self, at: At, found: Part) -> Region:
        """The region of a sample, as far as the difference is not negative in it."""
        for every in (False, True):
            region, form, value = self._difference(at, found, every)
            if value >= 0:
                break
        found.regions += 1
        if value < 0:
            found.below = at.sample
            raise _BelowError
        if value > 0 and found.above is None:
            found.above = at.sample
        self._keep_positive(region, form)
        return region

    def _difference(self, at: At, found: Part, every: bool) -> tuple[Region, Product, Fraction]:
        """What the difference is not below in the region of a sample, and its value there."""
        reading = Reading(self.space.prime, at.sample.value, found)
        models = Models(at.chart, reading)
        region = self.region(at)
        size = self.lookahead, self.length
        look = Look(models, region, self._texts, self._end, *size, found, self.check, every)
        difference = self.left.at_least(look) - self.right.at_most(look)
        form = at.chart.form(difference)
        if not all(at.sample.sign(factor) for factor in form.powers):
            raise TieError(difference)
        for factor, power in form.powers.items():
            if power < 0 and region.known(factor) & signs.ZERO:
                zero = (*at.clauses, *region.clauses, (factor, signs.ZERO))
                if not self.solver.excluded(at.chart, zero):
                    region.require(factor, signs.of(at.sample.sign(factor)))
        return region, form, form.at(at.sample.value)

    def _keep_positive(self, region: Region, form: Product) -> None:
        """Add the condition under which a function that is positive at the sample is >= 0."""
        loose = {
            factor: 1
            for factor, exponent in form.powers.items()
            if exponent % 2 and region.known(factor) & signs.NONZERO == signs.NONZERO
        }
        if loose:
            polynomial, _ = polynomials.sign_polynomial(Product(Fraction(1), loose))
            here = signs.of(region.sample.sign(polynomial))
            region.require(polynomial, here | signs.ZERO)


def agree(block: Tokens, text: Tokens) -> bool:
    """Whether one is a beginning of the other."""
    size = min(len(block), len(text))
    return block[:size] == text[:size]


def repeated(step: Step, iterations: int) -> Step:
    """Several iterations in a row; those of greedy block verification carry what they owe."""

    def run(
        target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> Tokens:
        if step is greedy_block.step:
            return greedy_block.iterations(target, drafter, context, lookahead, iterations, chance)
        block: Tokens = ()
        for _ in range(iterations):
            more = step(target, drafter, (*context, *block), lookahead, chance)
            block = (*block, *more)
        return block

    return run
