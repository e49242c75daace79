"""The parameters that an implementation takes by name."""

import inspect
from collections.abc import Callable
from typing import Any

NAMED = ("rng", "coins", "lens", "chance", "generator", "generators")
GENERATORS = frozenset({"rng", "generator", "generators", "seeds"})
"""Parameters that leave nothing to the global generators."""


def accepted_keywords(implementation: Callable[..., Any]) -> frozenset[str]:
    """Which of the named parameters a function declares.

    Raises
    ------
    TypeError
        The implementation is not callable.

    Examples
    --------
    >>> sorted(accepted_keywords(lambda p, q, drafts, *, rng, lens, verbose=0: None))
    ['lens', 'rng']
    """
    if not callable(implementation):
        raise TypeError(f"implementation = {implementation!r}: expected a function")
    try:
        parameters = inspect.signature(implementation).parameters
    except (TypeError, ValueError):  # a compiled function that does not tell
        return frozenset()
    return frozenset(name for name in NAMED if name in parameters)
