"""Whether a block depends on the coins that its sampler declares, and on nothing else."""

from collections.abc import Callable

from specref.probing.calls import Call, CannotInterpretError
from specref.probing.points import Point
from specref.probing.program import Outcome, Program
from specref.probing.repeating import UnequalRunsError, repeated
from specref.probing.source import Given, Request

TIMES = 48
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
        f"declares random numbers, but {TIMES} changes of them left its block alone: it "
        f"draws by {other}"
    )


def _compared(program: Program) -> tuple[bool, Call | None]:
    """Whether coins change the outcome, and the first other call that does."""
    by_coins, other = False, None
    for probe in range(TIMES):
        points = Point({}, probe, probe), Point({}, probe + TIMES, probe + TIMES)
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
