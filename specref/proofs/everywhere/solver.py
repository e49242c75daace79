"""Rows at which conditions hold, or the proof that there are none: samples first, then z3."""

import importlib.util
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from specref.proofs.everywhere import signs
from specref.proofs.everywhere.polynomials import Polynomial
from specref.proofs.everywhere.rows import Chart, Clause, Row, Sample, random_row

Answer: TypeAlias = Sample | Literal["none", "open"]
EFFORT = 3_000_000
MILLISECONDS = 20_000
NEIGHBOURS = 12
DIGITS = (3, 9, 20, 60)


def is_installed() -> bool:
    """Whether z3 can be asked."""
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

    Parameters
    ----------
    counts : Counts
        Where it counts.
    effort : int
        Of z3 for one question, in its own unit, so that answers do not depend on the machine;
        but a question is open after 20 s in any case.
    """

    def __init__(self, counts: Counts, effort: int = EFFORT) -> None:
        self.counts = counts
        self.effort = effort
        self._bits: dict[Clause, int] = {}
        self._cores: dict[Polynomial, list[int]] = {}
        self._possible: set[int] = set()
        self._variables: dict[int, Any] = {}
        self._expressions: dict[Polynomial, Any] = {}

    def find(
        self, chart: Chart, clauses: Sequence[Clause], near: Sequence[Sample], key: str
    ) -> Answer:
        """Rows at which all clauses hold, ``none``, or ``open``.

        Parameters
        ----------
        chart : Chart
        clauses : sequence
            The last is the least likely to hold.
        near : sequence of Sample
            Samples to try, and to vary.
        key : str
            Of what is random.
        """
        self.counts.questions += 1
        system = joined(chart, clauses)
        if system is None or self._is_known(system):
            self.counts.implied += 1
            return "none"
        order = [(p, system[p]) for p, _ in reversed(clauses) if p in system]
        order += [clause for clause in system.items() if clause not in order]
        for sample in _candidates(chart, order, near, key):
            if _holds(sample, order):
                self.counts.samples += 1
                return sample
        return self._ask(chart, system, key)

    def excluded(self, chart: Chart, clauses: Sequence[Clause]) -> bool:
        """Whether clauses exclude each other; False also where that is open."""
        self.counts.questions += 1
        system = joined(chart, clauses)
        if system is None or self._is_known(system):
            self.counts.implied += 1
            return True
        mask = self._mask(system)
        if mask not in self._possible:
            if self._core(system) == "none":
                return True
            self._possible.add(mask)
        else:
            self.counts.samples += 1
        return False

    def _is_known(self, system: dict[Polynomial, int]) -> bool:
        mask = self._mask(system)
        return any(core & mask == core for p in system for core in self._cores.get(p, ()))

    def _core(self, system: dict[Polynomial, int]) -> str:
        """Ask z3 whether clauses exclude each other; remember which do."""
        import z3

        self.counts.calls += 1
        solver = z3.SolverFor("QF_NRA")
        solver.set("rlimit", self.effort)
        solver.set("timeout", MILLISECONDS)
        named = {}
        for number, (polynomial, allowed) in enumerate(system.items()):
            named[f"c{number}"] = (polynomial, allowed)
            solver.assert_and_track(self._constraint(polynomial, allowed), f"c{number}")
        answer = solver.check()
        if answer == z3.unsat:
            core = [named[str(name)] for name in solver.unsat_core()]
            self._cores.setdefault(core[0][0], []).append(sum(map(self._bit, core)))
            return "none"
        return "open" if answer == z3.unknown else "some"

    def _mask(self, system: dict[Polynomial, int]) -> int:
        return sum(map(self._bit, system.items()))

    def _bit(self, clause: Clause) -> int:
        return 1 << self._bits.setdefault(clause, len(self._bits))

    def _ask(self, chart: Chart, system: dict[Polynomial, int], key: str) -> Answer:
        """Rows by z3, without a tie if there are such."""
        model = self._model(_strict(system))
        if model is None:
            answer = self._core(system)
            if answer != "some":
                return "none" if answer == "none" else "open"
            model = self._model(system)
        free = {v for polynomial in system for v in polynomial.variables}
        free |= {w for v in free for w in chart.space.of_row(chart.space.variables[v][0])}
        free -= chart.solved.keys()
        if model is not None:
            variables = {v: self._variable(v) for v in free}
            return _rational(model, variables, chart, system, key) or "open"
        return "open"

    def _model(self, system: dict[Polynomial, int]) -> Any:
        import z3

        self.counts.calls += 1
        solver = z3.SolverFor("QF_NRA")
        solver.set("rlimit", self.effort)
        solver.set("timeout", MILLISECONDS)
        solver.add([self._constraint(*clause) for clause in system.items()])
        return solver.model() if solver.check() == z3.sat else None

    def _variable(self, v: int) -> Any:
        import z3

        if v not in self._variables:
            self._variables[v] = z3.Real(f"x{v}")
        return self._variables[v]

    def _expression(self, polynomial: Polynomial) -> Any:
        import z3

        if polynomial not in self._expressions:
            terms = []
            for monomial, coefficient in polynomial.terms:
                factors = [self._variable(v) for v in monomial]
                product = z3.Product(factors) if len(factors) > 1 else (factors or [1])[0]
                terms.append(coefficient * product)
            self._expressions[polynomial] = z3.Sum(terms) if len(terms) > 1 else terms[0]
        return self._expressions[polynomial]

    def _constraint(self, polynomial: Polynomial, allowed: int) -> Any:
        left = self._expression(polynomial)
        if allowed == signs.NEGATIVE:
            return left < 0
        if allowed == signs.AT_MOST_ZERO:
            return left <= 0
        if allowed == signs.POSITIVE:
            return left > 0
        if allowed == signs.AT_LEAST_ZERO:
            return left >= 0
        return left == 0 if allowed == signs.ZERO else left != 0


def joined(chart: Chart, clauses: Iterable[Clause]) -> dict[Polynomial, int] | None:
    """The clauses with the domain of their rows, one for each polynomial; None if they clash."""
    system: dict[Polynomial, int] = {}
    for polynomial, allowed in clauses:
        system[polynomial] = system.get(polynomial, signs.ANY) & allowed
    pending = {row for polynomial in system for row in chart.space.rows_of(polynomial)}
    pending |= {chart.space.variables[v][0] for v in chart.solved}
    seen: set[Row] = set()
    while pending:
        row = min(pending)
        seen.add(row)
        if any(not entry.powers and entry.coefficient < 0 for entry in chart.entries(row)):
            return None
        for polynomial, allowed in chart.domain(row):
            system[polynomial] = system.get(polynomial, signs.ANY) & allowed
            pending |= chart.space.rows_of(polynomial)
        pending -= seen
    for polynomial, allowed in list(system.items()):
        if not polynomial.variables:
            if not signs.of(1 if polynomial.terms[0][1] > 0 else -1) & allowed:
                return None
            del system[polynomial]
        elif not allowed:
            return None
        elif allowed == signs.ANY:
            del system[polynomial]
    return system


def _strict(system: dict[Polynomial, int]) -> dict[Polynomial, int]:
    """The same without ties, wherever they are allowed beside something else."""
    return {
        polynomial: allowed if allowed == signs.ZERO else allowed & signs.NONZERO
        for polynomial, allowed in system.items()
    }


def _holds(sample: Sample, system: Iterable[Clause]) -> bool:
    """Whether clauses hold without a tie."""
    for polynomial, allowed in system:
        try:
            sign = sample.sign(polynomial)
        except ZeroDivisionError:
            return False
        if not (sign or allowed == signs.ZERO) or not signs.of(sign) & allowed:
            return False
    return True


def _candidates(
    chart: Chart, order: Sequence[Clause], near: Sequence[Sample], key: str
) -> Iterable[Sample]:
    """Samples that were found before, then such with one or all rows drawn anew."""
    rows: list[Row] = []
    for polynomial, _ in order[:3]:
        rows += sorted(chart.space.rows_of(polynomial) - set(rows))
    free = {v for polynomial, _ in order for v in polynomial.variables} - chart.solved.keys()
    for index, sample in enumerate(reversed(near)):
        if sample.chart is chart:
            yield sample
        elif index < NEIGHBOURS:
            yield Sample(chart, {v: sample.value(v) for v in sorted(free)}, f"{key} near {index}")
    for number in range(NEIGHBOURS):
        start = near[-1 - number % 3 % len(near)] if near else None
        given = {v: start.value(v) for v in sorted(free)} if start and number % 4 else {}
        for row in rows[number % len(rows) :][: 1 + number % 2] if rows else []:
            drawn = random_row(f"{key} {number} {row}", len(chart.space.entries(row)))
            given |= dict(zip(chart.space.of_row(row), drawn, strict=False))
        given = {v: value for v, value in given.items() if v not in chart.solved}
        yield Sample(chart, given, f"{key} {number}")


def _rational(
    model: Any, variables: dict[int, Any], chart: Chart, system: dict[Polynomial, int], key: str
) -> Sample | None:
    """A rational point of a model of z3, whose numbers may be algebraic."""
    for digits in DIGITS:
        given = {}
        for v, variable in variables.items():
            value = model.eval(variable, model_completion=True)
            if hasattr(value, "approx") and not hasattr(value, "as_fraction"):
                value = value.approx(digits)
            given[v] = Fraction(value.numerator_as_long(), value.denominator_as_long())
        sample = Sample(chart, given, key)
        try:
            if all(signs.of(sample.sign(p)) & allowed for p, allowed in system.items()):
                return sample
        except ZeroDivisionError:
            pass
    return None
