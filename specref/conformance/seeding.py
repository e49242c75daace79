"""Where a call makes or seeds a generator: what repeats random numbers in every call."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import numpy as np

from specref.conformance.judge import Judge
from specref.conformance.wrong_decision import WrongDecision, short
from specref.contracts.errors import BrokenContractError
from specref.contracts.timeout import within

SEEDING = frozenset({"manual_seed", "manual_seed_all", "set_state", "set_rng_state", "seed"})
"""What torch, NumPy and Python call it."""
NUMPY = ("default_rng", "RandomState", "Generator")
"""Of `numpy.random`, which are compiled so that a profile does not have them."""
OURS = __name__.partition(".")[0] + "."
LIBRARIES = (OURS, "torch.", "numpy.", "random.")


def seeded_in(judge: Judge) -> WrongDecision | None:
    """The first line of the code itself where a generator is made or seeded in a call.

    None if there is none. Alone it proves nothing: it is asked for if calls share random numbers.
    """
    found: list[tuple[str, str]] = []

    def call() -> None:
        batch = judge.sample(judge.fixtures[0], 2, "seeding")
        arguments, keywords = judge.verifier.arguments(batch, judge.rng("seeding"))
        with noting(found):
            judge.implementation(*arguments, **keywords)

    with suppress(BrokenContractError):
        within(judge.timeout, call)
    if not found:
        return None
    name, where = found[0]
    return WrongDecision("generator", (), f"is seeded in the call ({name})", "", short(where))


@contextmanager
def noting(found: list[tuple[str, str]]) -> Iterator[None]:
    """Note what seeds a generator in this thread, and the line that asks for it."""
    kept = {name: getattr(np.random, name) for name in NUMPY}

    def told(name: str, frame: FrameType | None) -> None:
        place = of_user(frame)
        if place is not None:
            found.append((name, place))

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_call" and argument.__name__ in SEEDING:
            told(argument.__name__, frame)
        elif event == "call" and frame.f_code.co_name in SEEDING:
            told(frame.f_code.co_name, frame.f_back)

    def noted(name: str) -> Any:
        def made(*arguments: Any, **keywords: Any) -> Any:
            if arguments or keywords:  # a generator with a seed of its own
                told(name, sys._getframe(1))
            return kept[name](*arguments, **keywords)

        return made

    before = sys.getprofile()
    try:
        for name in NUMPY:
            setattr(np.random, name, noted(name))
        sys.setprofile(profile)
        yield
    finally:
        sys.setprofile(before)
        for name, original in kept.items():
            setattr(np.random, name, original)


def of_user(frame: FrameType | None) -> str | None:
    """File and line, if code of the user is what calls."""
    if frame is None or f"{frame.f_globals.get('__name__')}.".startswith(LIBRARIES):
        return None
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
