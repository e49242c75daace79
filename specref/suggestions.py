"""A hint at what somebody may have meant."""

import difflib
from collections.abc import Iterable

NEAR = 0.6


def did_you_mean(word: str, known: Iterable[str], near: float = NEAR) -> str:
    """``; did you mean …?`` with the most similar of the known words; empty if none is near.

    Examples
    --------
    >>> did_you_mean("verfy", ["verify", "step"]), did_you_mean("noise", ["verify", "step"])
    ("; did you mean 'verify'?", '')
    """
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=near)
    return f"; did you mean {close[0]!r}?" if close else ""
