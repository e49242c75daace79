"""The outcomes at the ends of random numbers, which samples practically never hit.

Where an end gives something impossible, numbers beside it often do, too: a uniform of 53 bits is
rounded to 1 by float32 from 1 - 2^-25 on. The chance of an edge is that of all of them.
"""

import math
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

from specref.arrays import Floats
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import Capabilities
from specref.probing.probe import Probed, probe_program, verification_program
from specref.probing.program import Failure, Outcome, Program
from specref.probing.source import Call, CannotInterpretError, Given, Request
from specref.probing.tracing import Cell, first_other
from specref.vocabulary import Tokens

Key: TypeAlias = tuple[Call, float, str]
FINE = 2.0**-60
"""Less noise than any generator gives but 0, or what some add to it."""
MIDDLE = Cell((), 1.0, {}, ())
"""All random numbers in the middle of their range."""
ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "torch.Tensor.exponential_": "0 once in 2^24 by torch on MPS (-log(1 - u) of float32), "
        "once in 2^53 on CPUs without MKL",
        "coins.race": "0 once in 2^24 if it is -log(1 - u) of a uniform in float32",
    }
)
"""{call: its other generators that give 0}."""


@dataclass(frozen=True)
class EdgeEvent:
    """An impossible token or an exception, caused by one number at an end of its range.

    Attributes
    ----------
    call : Call
        The call that drew the number.
    value : float
        The number: a uniform of 0, or the last one below 1; noise of 0, or infinite noise.
    chance : float
        The probability of the numbers from there on that cause something impossible; 0 if the
        generator of the call is not known to give any.
    drafts : tuple of int
    outcome : tuple of int or Failure
    consequence : str
    each : bool
        Whether the call draws such a number for each token of the vocabulary.
    last : float or None
        The number that is furthest from the end, if not only the end itself causes it.

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
    each: bool = False
    last: float | None = None

    @property
    def elsewhere(self) -> str:
        """Other generators of the same call that give noise of 0; empty if none is known."""
        return ELSEWHERE.get(self.call.name, "") if self.value == 0 else ""

    def per_token(self, vocabulary: int) -> float:
        """The probability that a token of so large a vocabulary is drawn with such a number."""
        return -math.expm1(vocabulary * math.log1p(-self.chance)) if self.each else self.chance

    def __str__(self) -> str:
        until = "" if self.last is None else f", and from there to {self.last!r}"
        return f"{self.call} = {self.value!r}{until}: {self.consequence}"


def edge_events(
    verify: Callable[..., Any],
    p_rows: Floats,
    q_rows: Floats | None,
    drafts: Tokens,
    *,
    capabilities: Capabilities | None = None,
    kind: type[Verifier] = Verifier,
) -> tuple[EdgeEvent, ...]:
    """What goes wrong in an implementation of ``verify`` if a number is at an end of its range.

    In each cell, each uniform is set to 0 and to the last below 1, and each exponential to 0 and
    to infinity, while the other numbers stay inside the cell.

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
    program: Program, p_rows: Floats, drafts: Tokens, *, known: bool = False
) -> tuple[Probed, tuple[EdgeEvent, ...]]:
    """As `edge_events`, for a program, with the probe that found its uniforms.

    * `known`: As for `probe_program`.
    """
    probed = probe_program(program, known=known)
    found: dict[Key, EdgeEvent] = {}
    try:
        for cell in probed.cells:
            for event in _events(program, cell, p_rows, drafts, found):
                found[event.call, event.value, event.consequence] = event
    except CannotInterpretError as error:
        if not found:
            return replace(probed, uninterpreted=str(error)), ()
    return probed, tuple(found.values())


def middle_edges(program: Program, p_rows: Floats, drafts: Tokens) -> tuple[EdgeEvent, ...]:
    """What goes wrong at the ends of the numbers of one run, while others are in the middle.

    For laws over so many tokens that paths cannot be followed: sums over many tokens are rounded
    more, so that more numbers misbehave. Nothing is found where a run draws more numbers than can
    be given, as noise for each token.

    >>> import numpy as np
    >>> def verify(target_probs, draft_probs, draft_tokens, *, rng):
    ...     ends = np.cumsum(target_probs[0, 0], dtype=np.float32)
    ...     return np.array([[(ends <= rng.random()).sum(), -1]]), np.array([1])
    >>> p = np.append(np.arange(1.0, 9000) ** -2, 0) * np.ones((2, 1))
    >>> p /= p.sum(axis=1, keepdims=True)
    >>> program = verification_program(verify, p, p[:1], (0,))
    >>> [f"{event.chance:.0e}" for event in middle_edges(program, p, (0,))]
    ['5e-05']
    """
    try:
        return tuple(_events(program, MIDDLE, p_rows, drafts, ()))
    except CannotInterpretError:
        return ()


def _events(
    program: Program, cell: Cell, p_rows: Floats, drafts: Tokens, known: Container[Key]
) -> Iterator[EdgeEvent]:
    """What goes wrong at the ends of the numbers of a cell, but for what is known."""
    outcome, requests = _rerun(program, cell, {})
    if _consequence(outcome, p_rows):
        return
    drawn = Counter(request.call.site for request in requests)

    def at(index: int, number: float) -> tuple[Outcome, str | None]:
        outcome = _rerun(program, cell, {index: number})[0]
        return outcome, _consequence(outcome, p_rows)

    def is_bad(index: int, number: float) -> bool:
        return at(index, number)[1] is not None

    for index, request in enumerate(requests):
        for value in ends(request):
            outcome, consequence = at(index, value)
            if consequence and (request.call, value, consequence) not in known:
                chance, last = misbehaving(request, value, partial(is_bad, index))
                each = drawn[request.call.site] >= p_rows.shape[-1]
                what = drafts, outcome, consequence, each
                yield EdgeEvent(request.call, value, chance, *what, last)


def ends(request: Request) -> tuple[float, ...]:
    """The least and the greatest number that may answer a request."""
    if request.kind == "exponential":
        return 0.0, math.inf
    return (0.0, 1 - 2.0**-request.bits) if request.kind == "uniform" else ()


def misbehaving(
    request: Request, end: float, is_bad: Callable[[float], bool]
) -> tuple[float, float | None]:
    """The probability of the numbers that misbehave from an end on, and the last of these.

    They are taken to reach from the end, which misbehaves, to the first that does not; that is
    looked for at distances that double, then between two of them. None if the end is alone.

    * `end`: One of its `ends`.
    """
    if request.kind == "uniform":
        cell = 2.0**-request.bits if end == 0 else -(2.0**-request.bits)
        steps = _reach(lambda step: is_bad(end + step * cell), 1 << (request.bits - 1))
        return (steps + 1) * abs(cell), end + steps * cell if steps else None
    if end == 0:
        steps = _reach(lambda step: is_bad(step * FINE), 1 << 63)
        chance = max(-math.expm1(-steps * FINE), 2.0**-request.bits) if steps else request.zero
        return chance, steps * FINE or None
    largest = request.bits * math.log(2)  # about the largest that is made of so many bits
    if not is_bad(largest):
        return 0.0, None
    steps = _reach(lambda step: is_bad(largest - step / 64), int(64 * largest))
    return math.exp(steps / 64 - largest), largest - steps / 64


def _reach(is_bad: Callable[[int], bool], most: int) -> int:
    """The last of the steps 0, which is bad, 1, 2, ... before one that is not."""
    low, high = 0, 1
    while high < most and is_bad(high):
        low, high = high, 2 * high
    return first_other(is_bad, low, high) - 1


def _rerun(
    program: Program, cell: Cell, changed: dict[int, float]
) -> tuple[Outcome, list[Request]]:
    numbers = {**cell.numbers, **changed}
    kinds = {index: request.kind for index, request in enumerate(cell.requests)}

    def answer(index: int, request: Request) -> float:
        if request.kind == "categorical":
            branch, weights = int(numbers.get(index, 0)), request.weights
            if branch < len(weights) and weights[branch] > 0:
                return branch
            return next(other for other, weight in enumerate(weights) if weight > 0)
        # A search reads some uniforms as noise, and the reverse.
        if index in changed or kinds.get(index) == request.kind:
            return numbers[index]
        return 1.0 if request.kind == "exponential" else 0.5

    source = Given(answer)
    return program(source), source.requests


def _consequence(outcome: Outcome, p_rows: Floats) -> str | None:
    """What is impossible about an outcome; None if nothing is."""
    if isinstance(outcome, Failure):
        return str(outcome)
    for position, token in enumerate(outcome):
        if not p_rows[position, token] > 0:
            return f"token {token} at position {position} has target probability 0"
    return None
