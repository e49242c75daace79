"""Laws that need no file: pairs of a target and a drafter."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from specref.contrib.checkpoints.law import Law, as_laws

END = "<end>"


def _law(tokens: str, initial: str, *rows: str, back: int = 1) -> dict[str, Any]:
    """Probabilities in percent; the last of the tokens is EOS, whose row is left out."""
    names = [*tokens.split(), END]
    percent = [[f"{int(p)}/100" for p in row.split()] for row in (initial, *rows)]
    return {
        "tokens": names,
        "eos": END,
        "back": back,
        "initial": percent[0],
        "rows": dict(zip(names, percent[1:], strict=False)),
    }


def _pair(target: dict[str, Any], drafter: dict[str, Any]) -> dict[str, Any]:
    return {"target": target, "drafter": drafter}


# The rows of the target differ from each other by a total variation of at least .3, end with
# probability .04 to .10, and there are impossible tokens on both sides.
TARGET = ("40 30 20 0 10", "60 0 20 10 10", "0 35 25 35 5", "25 25 0 46 4", "10 60 20 0 10")
DRAFTER = ("20 40 20 15 5", "30 30 10 20 10", "25 10 40 20 5", "45 0 20 25 10", "10 30 40 16 4")
# Argmaxes: a and b follow each other, c leads to d, and d to EOS; the drafter's b leads to c.
ENDING = ("40 30 20 0 10", "10 60 10 15 5", "60 10 20 5 5", "10 5 20 55 10", "10 5 15 10 60")
ENDING_DRAFTS = (
    "20 40 20 15 5",
    "15 50 10 20 5",
    "20 15 50 10 5",
    "10 15 20 45 10",
    "10 10 20 10 50",
)
PAIRS = {
    "order-1": (
        "4 tokens and EOS; zeros in target and draft model",
        _pair(_law("a b c d", *TARGET), _law("a b c d", *DRAFTER)),
    ),
    "lookback": (
        "the same rows, but of the token before the last one: by attention",
        _pair(_law("a b c d", *TARGET, back=2), _law("a b c d", *DRAFTER, back=2)),
    ),
    "lookback-3": (
        "the same rows, of the token 3 places back",
        _pair(_law("a b c d", *TARGET, back=3), _law("a b c d", *DRAFTER, back=3)),
    ),
    "ending": (
        "for greedy texts: some end early, others repeat themselves; as far back as lookback",
        _pair(_law("a b c d", *ENDING, back=2), _law("a b c d", *ENDING_DRAFTS, back=2)),
    ),
    "far": (
        "b: .10 in the target, .90 in the draft model, after every token",
        _pair(
            _law("a b", *["80 10 10"] * 3),
            _law("a b", *["5 90 5"] * 3),
        ),
    ),
    "two-vocabularies": (
        "a, b, c and longer tokens; the draft model has fewer, others, and other ids",
        _pair(
            _law(
                "a b ab ba c abc",
                "25 15 15 10 15 10 10",
                *("10 30 10 5 20 15 10", "40 5 10 5 20 10 10", "20 10 0 30 15 15 10"),
                *("5 35 20 10 10 10 10", "30 30 5 5 5 15 10", "10 10 30 20 10 10 10"),
            ),
            _law(
                "b a c bc ab",
                "20 35 15 10 15 5",
                *("10 40 20 10 15 5", "35 10 30 10 10 5", "30 30 15 10 10 5"),
                *("20 30 20 10 15 5", "10 25 40 10 10 5"),
            ),
        ),
    ),
}
NAMED: Mapping[str, str] = MappingProxyType({name: text for name, (text, _) in PAIRS.items()})


def named_pair(name: str) -> dict[str, Law]:
    """The pair of this name: `{"target": …, "drafter": …}`, of distributions.

    Raises
    ------
    ValueError
        There is none.

    Examples
    --------
    >>> [str(p) for p in named_pair("far")["drafter"].initial]
    ['1/20', '9/10', '1/20']
    """
    if name not in PAIRS:
        raise ValueError(f"law = {name!r}: expected one of {', '.join(PAIRS)}")
    return as_laws(PAIRS[name][1], name)
