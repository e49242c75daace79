"""Tests whether equal numbers give equal outcomes, i.e. all randomness is intercepted."""

from specref.probing.calls import CannotInterpretError
from specref.probing.points import Point
from specref.probing.program import Outcome, Program
from specref.probing.source import Given, Request, counted

TIMES, FEW = 16, 4
"""Points for code of which nothing is known, and for code that was right on other arguments."""


class UnequalRunsError(CannotInterpretError):
    """Two runs on equal numbers differ."""


def once(program: Program) -> set[Outcome]:
    """The outcomes of a program on a few of the points of `repeated`."""
    points = (Point({}, probe, probe) for probe in range(FEW))
    return {program(Given(point.answer)) for point in points}


def repeated(program: Program) -> set[Outcome]:
    """Run a program twice on each of some points, and return the outcomes.

    * raises `UnequalRunsError`: Two runs on equal numbers differ in their outcome, or in what they
      ask for.
    """
    seen: set[Outcome] = set()
    for probe in range(TIMES):
        point = Point({}, probe, probe)
        sources = Given(point.answer), Given(point.answer)
        first = program(sources[0])
        second = program(sources[1])
        asked, again = map(_without_seeds, sources)
        if counted(asked) != counted(again):
            raise UnequalRunsError(
                f"it keeps something between calls: {_named(asked)} in one call, "
                f"{_named(again)} in the next"
            )
        if first != second:
            raise UnequalRunsError(
                f"randomness that is not intercepted: equal numbers give {first}, then {second} "
                "(it keeps a random number between calls, or draws in another thread or library)"
            )
        seen |= {first}
    return seen


def _without_seeds(source: Given) -> list[Request]:
    """What a run asked for; code that keeps its own generator draws its seed once."""
    return [request for request in source.requests if request.kind != "seed"]


def _named(requests: list[Request]) -> str:
    return f"{len(requests)} drawn ({requests[0].call})" if requests else "none drawn"
