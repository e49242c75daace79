"""Whether the numbers that a run is given decide its outcome: all of them, or its coins alone."""

from collections.abc import Callable

from specref.probing.calls import Call, CannotInterpretError
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


CHANGES = 48
COINS = ("coins.accept", "coins.race")


def drawn_elsewhere(program: Program) -> str | None:
    """What else than its coins decides the block of a sampler that declares coins.

    Its coins are kept while its other random numbers are changed, then the reverse.

    * `program`: A verification that takes coins.
    * returns: A sentence; empty if nothing else decides a block; None if it draws in a way that
      cannot be interpreted, so that this is unknown.
    """
    try:
        repeated(program)
        by_coins, other = _compared(program)
    except UnequalRunsError as error:
        return f"declares random numbers, but they do not decide its block alone: {error}"
    except CannotInterpretError:
        return None
    if other is None:
        return ""
    if by_coins:
        return f"declares random numbers, but its block depends on what it draws by {other}, too"
    return (
        f"declares random numbers, but {CHANGES} changes of them left its block alone: it "
        f"draws by {other}"
    )


def _compared(program: Program) -> tuple[bool, Call | None]:
    """Whether coins change the outcome, and the first other call that does."""
    by_coins, other = False, None
    for probe in range(CHANGES):
        points = Point({}, probe, probe), Point({}, probe + CHANGES, probe + CHANGES)
        base, requests = _run(program, *points, lambda call: False)
        by_coins |= _run(program, *points, _is_coin)[0] != base
        calls = dict.fromkeys(one.call for one in requests if not _is_coin(one.call))
        for call in calls if other is None else ():
            if _run(program, *points, call.__eq__)[0] != base:
                other = call
    return by_coins, other


def _is_coin(call: Call) -> bool:
    return call.name in COINS


def _run(
    program: Program, kept: Point, changed: Point, is_changed: Callable[[Call], bool]
) -> tuple[Outcome, list[Request]]:
    """The outcome and requests of a run in which some calls are answered by another point."""

    def answer(index: int, request: Request) -> float:
        return (changed if is_changed(request.call) else kept).answer(index, request)

    source = Given(answer)
    return program(source), source.requests
