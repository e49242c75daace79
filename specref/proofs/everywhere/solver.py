"""Rows at which conditions hold, or the proof that there are none: samples, sums, then z3."""

import importlib.util
import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias

from specref.proofs.everywhere import signs
from specref.proofs.everywhere.deadline import left, look
from specref.proofs.everywhere.polynomials import Polynomial, renamed
from specref.proofs.everywhere.rows import Chart, Clause, Row, Sample, random_row
from specref.proofs.everywhere.signs import contradiction

Answer: TypeAlias = Sample | Literal["none", "open"]
System: TypeAlias = dict[Polynomial, int]
"""Clauses, one for each polynomial."""
Shape: TypeAlias = frozenset[tuple[Polynomial, tuple[int, ...], int]]
Values: TypeAlias = tuple[Fraction, ...]
EFFORT = 3_000_000
MILLISECONDS = 20_000
NEIGHBOURS = 12
DIGITS = (3, 9, 20, 60)
COMPARISONS = {
    signs.NEGATIVE: operator.lt,
    signs.AT_MOST_ZERO: operator.le,
    signs.POSITIVE: operator.gt,
    signs.AT_LEAST_ZERO: operator.ge,
    signs.ZERO: operator.eq,
    signs.NONZERO: operator.ne,
}


def is_installed() -> bool:
    return importlib.util.find_spec("z3") is not None


@dataclass
class Counts:
    """How questions about conditions were answered: by samples, by what is known, by z3."""

    questions: int = 0
    samples: int = 0
    implied: int = 0
    calls: int = 0

    def __iadd__(self, other: "Counts") -> "Counts":
        self.questions += other.questions
        self.samples += other.samples
        self.implied += other.implied
        self.calls += other.calls
        return self


class Solver:
    """Finds samples; remembers which conditions exclude each other.

    A system of conditions falls into parts that share no variable, each of which is answered by
    itself. What z3 said of a part holds of every part that differs by the names of variables.

    * `effort`: Of z3 for one question, in its own unit, so that answers do not depend on the
      machine; but a question is open after 20 s in any case.
    """

    def __init__(self, counts: Counts, effort: int = EFFORT) -> None:
        self.counts = counts
        self.effort = effort
        self._bits: dict[Clause, int] = {}
        self._cores: dict[Polynomial, list[int]] = {}
        self._answers: dict[Shape, Values | Literal["none", "open"]] = {}
        self._shapes: dict[Polynomial, tuple[Polynomial, tuple[int, ...]]] = {}
        self._variables: dict[int, Any] = {}
        self._expressions: dict[Polynomial, Any] = {}

    @cached_property
    def _context(self) -> Any:
        """z3's own: for one thread at a time; answers depend on what it holds."""
        import z3

        return z3.Context()

    def find(
        self, chart: Chart, clauses: Sequence[Clause], near: Sequence[Sample], key: str
    ) -> Answer:
        """Rows at which all clauses hold, ``none``, or ``open``.

        * `clauses`: The last is the least likely to hold.
        * `near`: Samples to try, and to vary, the last first.
        """
        self.counts.questions += 1
        system = joined(chart, clauses)
        if system is None:
            self.counts.implied += 1
            return "none"
        order = [p for p, _ in reversed(clauses) if p in system]
        parts = parts_of(system, order)
        if any(self._is_known(part) for part in parts):
            self.counts.implied += 1
            return "none"
        calls = self.counts.calls
        given: dict[int, Fraction] = {}
        found: Literal["none", "open"] | None = None
        for part in parts:
            values = self._values(chart, part, near, key)
            if values == "none":
                self.counts.implied += calls == self.counts.calls
                return "none"
            if values == "open":
                found = "open"
            else:
                given |= values
        self.counts.samples += calls == self.counts.calls and not found
        return found or Sample(chart, given, key)

    def excluded(self, chart: Chart, clauses: Sequence[Clause]) -> bool:
        """Whether clauses exclude each other; False also where that is open."""
        self.counts.questions += 1
        system = joined(chart, clauses)
        calls = self.counts.calls
        excluded = system is None or any(
            self._is_known(part) or self._answer(part) == "none"
            for part in parts_of(system, [p for p, _ in clauses if p in system])
        )
        self.counts.implied += calls == self.counts.calls
        return excluded

    def _values(
        self, chart: Chart, part: System, near: Sequence[Sample], key: str
    ) -> dict[int, Fraction] | Literal["none", "open"]:
        """Values of the variables of a part: of samples nearby, drawn, or from z3."""
        variables = sorted({v for polynomial in part for v in polynomial.variables})
        shape = self._shape(part)
        if self._answers.get(shape) == "none":
            return "none"
        for sample in itertools.chain(
            itertools.islice(reversed(near), NEIGHBOURS), _drawn(chart, part, near, key)
        ):
            if _holds(sample, part):
                return {v: sample.value(v) for v in variables}
        values = self._answer(part)
        if isinstance(values, str):
            return values
        point = dict(zip(variables, values, strict=True))
        for sample in _around(chart, point, key):
            if _holds(sample, part):
                return {v: sample.value(v) for v in variables}
        if not _holds(Sample(chart, point, key), part):
            inside = self._answer(_strict(part))
            if not isinstance(inside, str):
                return dict(zip(variables, inside, strict=True))
        return point

    def _is_known(self, part: System) -> bool:
        mask = self._mask(part)
        return any(core & mask == core for p in part for core in self._cores.get(p, ()))

    def _answer(self, part: System) -> "Values | Literal['none', 'open']":
        """What z3 says of a part, or said of one that differs by the names of variables."""
        shape = self._shape(part)
        if shape not in self._answers:
            self._answers[shape] = self._model(part)
        return self._answers[shape]

    def _model(self, part: System) -> "Values | Literal['none', 'open']":
        """Ask z3 for a point; remember which clauses exclude each other."""
        clauses = list(part.items())
        excluding = contradiction(clauses)
        if excluding is not None:
            self._remember([clauses[number] for number in sorted(excluding)])
            return "none"
        import z3

        look()
        self.counts.calls += 1
        solver = z3.SolverFor("QF_NRA", self._context)
        solver.set("rlimit", self.effort)
        solver.set("timeout", int(min(MILLISECONDS, 1 + 1000 * min(left(), MILLISECONDS))))
        solver.set("ctrl_c", False)  # else z3 takes Ctrl-C for itself, and answers "unknown"
        named = {}
        for number, (polynomial, allowed) in enumerate(clauses):
            named[f"c{number}"] = (polynomial, allowed)
            compared = COMPARISONS[allowed](self._expression(polynomial), 0)
            solver.assert_and_track(compared, f"c{number}")
        answer = solver.check()
        if answer == z3.unsat:
            self._remember([named[str(name)] for name in solver.unsat_core()])
            return "none"
        if answer == z3.unknown:
            look()
            return "open"
        variables = sorted({v for polynomial in part for v in polynomial.variables})
        return _rational(solver.model(), [self._variable(v) for v in variables], variables, part)

    def _remember(self, core: Sequence[Clause]) -> None:
        self._cores.setdefault(core[0][0], []).append(sum(map(self._bit, core)))

    def _mask(self, system: System) -> int:
        return sum(map(self._bit, system.items()))

    def _bit(self, clause: Clause) -> int:
        return 1 << self._bits.setdefault(clause, len(self._bits))

    def _shape(self, part: System) -> Shape:
        """The part with its variables numbered from 0, in the same order."""
        variables = sorted({v for polynomial in part for v in polynomial.variables})
        rank = {v: number for number, v in enumerate(variables)}
        shape = []
        for polynomial, allowed in part.items():
            if polynomial not in self._shapes:
                own = sorted(polynomial.variables)
                self._shapes[polynomial] = (renamed(polynomial, own), tuple(own))
            form, own_variables = self._shapes[polynomial]
            shape.append((form, tuple(rank[v] for v in own_variables), allowed))
        return frozenset(shape)

    def _variable(self, v: int) -> Any:
        import z3

        if v not in self._variables:
            self._variables[v] = z3.Real(f"x{v}", self._context)
        return self._variables[v]

    def _expression(self, polynomial: Polynomial) -> Any:
        import z3

        if polynomial not in self._expressions:
            terms = []
            for monomial, coefficient in polynomial.terms:
                factors = [self._variable(v) for v in monomial]
                terms.append(coefficient * (z3.Product(factors) if factors else 1))
            self._expressions[polynomial] = z3.Sum(terms) if len(terms) > 1 else terms[0]
        return self._expressions[polynomial]


def joined(chart: Chart, clauses: Iterable[Clause]) -> System | None:
    """The clauses with the domain of their rows, one for each polynomial; None if they clash."""
    system: System = {}
    for polynomial, allowed in clauses:
        system[polynomial] = system.get(polynomial, signs.ANY) & allowed
    for polynomial, allowed in list(system.items()):
        possible = chart.space.signs(polynomial)
        if not possible & allowed:
            return None
        if not possible & ~allowed:
            del system[polynomial]
    pending = {row for polynomial in system for row in chart.space.rows_of(polynomial)}
    pending |= {chart.space.variables[v][0] for v in chart.solved}
    seen: set[Row] = set()
    while pending:
        row = min(pending)
        seen.add(row)
        domain = chart.domain(row)
        if domain is None:
            return None
        for polynomial, allowed in domain:
            system[polynomial] = system.get(polynomial, signs.ANY) & allowed
            pending |= chart.space.rows_of(polynomial)
        pending -= seen
    for polynomial, allowed in list(system.items()):
        if not allowed:
            return None
        elif allowed == signs.ANY:
            del system[polynomial]
    return system


def parts_of(system: System, order: Iterable[Polynomial]) -> list[System]:
    """The clauses in parts that share no variable, those with the first of `order` first.

    >>> from specref.proofs.everywhere.polynomials import plus, variable
    >>> sums = [next(iter(plus(variable(v), variable(v + 1)).powers)) for v in (0, 2, 1, 6)]
    >>> parts_of({one: signs.POSITIVE for one in sums}, sums[3:])
    [{x6 + x7: 4}, {x0 + x1: 4, x2 + x3: 4, x1 + x2: 4}]
    """
    part: dict[int, int] = {}

    def first(v: int) -> int:
        while part.setdefault(v, v) != v:
            v = part[v]
        return v

    for polynomial in system:
        one, *others = map(first, polynomial.variables)
        for other in others:
            part[first(other)] = first(one)
    parts: dict[int, System] = {}
    for polynomial in (*order, *system):
        found = parts.setdefault(first(next(iter(polynomial.variables))), {})
        found[polynomial] = system[polynomial]
    return list(parts.values())


def _strict(system: System) -> System:
    """The same without ties, wherever they are allowed beside something else."""
    return {
        polynomial: allowed if allowed == signs.ZERO else allowed & signs.NONZERO
        for polynomial, allowed in system.items()
    }


def _holds(sample: Sample, system: System) -> bool:
    """Whether clauses hold without a tie."""
    for polynomial, allowed in system.items():
        try:
            sign = sample.sign(polynomial)
        except ZeroDivisionError:
            return False
        if not (sign or allowed == signs.ZERO) or not signs.of(sign) & allowed:
            return False
    return True


def _drawn(chart: Chart, part: System, near: Sequence[Sample], key: str) -> Iterator[Sample]:
    """Samples with one or two rows drawn anew, or all of them."""
    variables = sorted({v for polynomial in part for v in polynomial.variables})
    rows = list(dict.fromkeys(row for p in part for row in sorted(chart.space.rows_of(p))))
    for number in range(NEIGHBOURS):
        look()
        start = near[-1 - number % 3 % len(near)] if near else None
        given = {v: start.value(v) for v in variables} if start and number % 4 else {}
        for row in rows[number % len(rows) :][: 1 + number % 2]:
            drawn = random_row(f"{key} {number} {row}", len(chart.space.entries(row)))
            given |= dict(zip(chart.space.of_row(row), drawn, strict=False))
        given = {v: value for v, value in given.items() if v not in chart.solved}
        yield Sample(chart, given, f"{key} {number}")


def _around(chart: Chart, point: Mapping[int, Fraction], key: str) -> Iterator[Sample]:
    """Samples between a point and others, nearer and nearer."""
    for number in range(NEIGHBOURS):
        look()
        far = Sample(chart, {}, f"{key} around {number}")
        step = Fraction(1, 2 ** (1 + number // 2))
        mixed = {v: value + step * (far.value(v) - value) for v, value in point.items()}
        yield Sample(chart, mixed, f"{key} around {number}")


def _rational(
    model: Any, unknowns: Sequence[Any], variables: Sequence[int], part: System
) -> "Values | Literal['open']":
    """A rational point of a model of z3, whose numbers may be algebraic."""
    for digits in DIGITS:
        look()
        point = []
        for unknown in unknowns:
            value = model.eval(unknown, model_completion=True)
            if hasattr(value, "approx") and not hasattr(value, "as_fraction"):
                value = value.approx(digits)
            point.append(Fraction(value.numerator_as_long(), value.denominator_as_long()))
        at = dict(zip(variables, point, strict=True)).__getitem__
        values = {polynomial: polynomial.at(at) for polynomial in part}
        if all(signs.of((x > 0) - (x < 0)) & part[polynomial] for polynomial, x in values.items()):
            return tuple(point)
    return "open"
