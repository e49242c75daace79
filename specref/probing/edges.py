"""The outcomes at the ends of the unit interval, which samples practically never hit."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from specref.arrays import Floats
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import Capabilities
from specref.probing.calls import Call, CannotInterpretError
from specref.probing.probe import Probed, probe_program
from specref.probing.program import Failure, Outcome, Program
from specref.probing.source import Given, Request
from specref.probing.tracing import Cell
from specref.probing.verification import verification_program
from specref.vocabulary import Tokens


@dataclass(frozen=True)
class EdgeEvent:
    """An impossible token or an exception, caused by the least or greatest value of one number.

    Attributes
    ----------
    call : Call
        The call that drew the number.
    value : float
        The number: 0, or the last uniform below 1.
    chance : float
        The probability of the number.
    drafts : tuple of int
    outcome : tuple of int or Failure
    consequence : str

    Examples
    --------
    >>> call = Call("torch.rand_like", (1,), "utils.py:12")
    >>> print(EdgeEvent(call, 0.0, 2.0**-24, (1,), (1, 0), "token 1 has target probability 0"))
    torch.rand_like, shape (1,), at utils.py:12 = 0.0: token 1 has target probability 0
    """

    call: Call
    value: float
    chance: float
    drafts: Tokens
    outcome: Outcome
    consequence: str

    def __str__(self) -> str:
        return f"{self.call} = {self.value!r}: {self.consequence}"


def edge_events(
    verify: Callable[..., Any],
    p_rows: Floats,
    q_rows: Floats | None,
    drafts: Tokens,
    *,
    capabilities: Capabilities | None = None,
    kind: type[Verifier] = Verifier,
) -> tuple[EdgeEvent, ...]:
    """What goes wrong in an implementation of ``verify`` if a uniform is 0 or the last below 1.

    In each cell, each uniform is set to both ends while the other numbers stay inside the cell.

    Parameters and errors as `verification_program`; an implementation that cannot be interpreted
    has no events.

    Examples
    --------
    >>> import numpy as np
    >>> def verify(target_probs, draft_probs, draft_tokens, *, rng):
    ...     x, p, q = draft_tokens[0, 0], target_probs[0], draft_probs[0]
    ...     kept = rng.random() <= p[0, x] / q[0, x]
    ...     return np.array([[x, 1] if kept else [1, -1]]), np.array([2 if kept else 1])
    >>> p, q = np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([[0.5, 0.5]])
    >>> [event.consequence for event in edge_events(verify, p, q, (0,))]
    ['token 0 at position 0 has target probability 0']
    """
    program = verification_program(verify, p_rows, q_rows, drafts, capabilities, kind=kind)
    return probed_edges(program, p_rows, drafts)[1]


def probed_edges(
    program: Program, p_rows: Floats, drafts: Tokens
) -> tuple[Probed, tuple[EdgeEvent, ...]]:
    """As `edge_events`, for a program, with the probe that found its uniforms."""
    probed = probe_program(program)
    found: dict[tuple[Call, float, str], EdgeEvent] = {}
    try:
        for event in _events(program, probed, p_rows, drafts):
            found.setdefault((event.call, event.value, event.consequence), event)
    except CannotInterpretError as error:
        if not found:
            return replace(probed, uninterpreted=str(error)), ()
    return probed, tuple(found.values())


def _events(
    program: Program, probed: Probed, p_rows: Floats, drafts: Tokens
) -> Iterator[EdgeEvent]:
    for cell in probed.cells:
        if _consequence(cell.outcome, p_rows):
            continue
        for index, request in enumerate(cell.requests):
            ends = (0.0, 1 - 2.0**-request.bits) if request.kind == "uniform" else ()
            for value in ends:
                outcome = _rerun(program, cell, {index: value})
                consequence = _consequence(outcome, p_rows)
                if consequence:
                    chance = 2.0**-request.bits
                    yield EdgeEvent(request.call, value, chance, drafts, outcome, consequence)


def _rerun(program: Program, cell: Cell, changed: dict[int, float]) -> Outcome:
    numbers = {**cell.numbers, **changed}
    kinds = {index: request.kind for index, request in enumerate(cell.requests)}

    def answer(index: int, request: Request) -> float:
        if request.kind == "categorical":
            branch, weights = int(numbers.get(index, 0)), request.weights
            if branch < len(weights) and weights[branch] > 0:
                return branch
            return next(other for other, weight in enumerate(weights) if weight > 0)
        if kinds.get(index) == request.kind:
            return numbers[index]
        return 1.0 if request.kind == "exponential" else 0.5

    return program(Given(answer))


def _consequence(outcome: Outcome, p_rows: Floats) -> str | None:
    if isinstance(outcome, Failure):
        return str(outcome)
    for position, token in enumerate(outcome):
        if not p_rows[position, token] > 0:
            return f"token {token} at position {position} has target probability 0"
    return None
