"""A law that a small checkpoint can have: the next token depends on one token of the past.

Some pairs of a target and a drafter have names, and need no file. A law is known under sampler
settings, too: temperature, top-k, top-p and min-p.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from specref.distributions import Probabilities, Row, as_distribution
from specref.models import Model
from specref.vocabulary import Tokens, Vocabulary

START = "<s>"
KEYS = ("tokens", "eos", "back", "initial", "rows")
ROLES = ("target", "drafter")
MARGIN = 1e-6  # engines round probabilities by less
NO_SETTINGS: Mapping[str, float] = MappingProxyType({})
Shape: TypeAlias = Callable[[Probabilities, float], Probabilities]


@dataclass(frozen=True)
class Law:
    """The row of the token `back` places before the next one, or `initial` in shorter texts.

    Parameters
    ----------
    vocabulary : Vocabulary
        Tokens of str, without `normalise`.
    initial : Probabilities
        The distribution after the empty context, and after those shorter than `back`.
    rows : tuple of Probabilities
        One for each token. That of EOS is never asked for.
    back : int
        1: order 1. 3: the last two tokens do not matter, the one before them does.

    Examples
    --------
    >>> law = as_law({"tokens": ["a", "b"], "back": 2, "initial": ["1/2", "1/2"],
    ...               "rows": {"a": ["1/3", "2/3"], "b": [1, 0]}})
    >>> [str(p) for p in law.model.next_token((0, 1))]
    ['1/3', '2/3']
    """

    vocabulary: Vocabulary
    initial: Probabilities
    rows: tuple[Probabilities, ...]
    back: int = 1

    @property
    def size(self) -> int:
        """The tokens, and one more that starts every text and is never generated: its last id."""
        return len(self.vocabulary) + 1

    @property
    def start(self) -> int:
        """The id of the token that starts every text."""
        return len(self.vocabulary)

    @property
    def eos(self) -> int | None:
        """The id of EOS."""
        end = self.vocabulary.eos
        return None if end is None else self.vocabulary.ids[end]

    @property
    def model(self) -> Model:
        """The distribution as a specref `Model`; its contexts leave the start token out."""

        def next_token(context: Tokens) -> Row:
            return self.rows[context[-self.back]] if len(context) >= self.back else self.initial

        return Model(self.vocabulary, next_token)


def as_law(given: Any, name: str = "law") -> Law:
    """Read a distribution from what a JSON file holds.

    Parameters
    ----------
    given : mapping
        ``tokens``, ``initial``, and ``rows`` by token; optional ``eos``, and ``back`` (1).
        Probabilities are numbers, or strings such as ``"1/3"``.
    name : str
        What it is called in error messages.

    Raises
    ------
    TypeError
        It is no mapping, or a value has the wrong type.
    ValueError
        A key is unknown or missing, a row is no distribution, or a token has none.

    Examples
    --------
    >>> as_law({"tokens": ["a", "b"], "initial": [1, 0], "rows": {"a": [0.5, 0.6]}})
    Traceback (most recent call last):
    ValueError: law.rows['a'] sums to 1.1: expected 1 within 1e-09
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"{name} = {given!r}: expected an object with {', '.join(KEYS)}")
    _check_keys(given, name)
    if not isinstance(given["tokens"], Sequence) or isinstance(given["tokens"], str):
        raise TypeError(f"{name}.tokens = {given['tokens']!r}: expected a list of strings")
    for index, token in enumerate(given["tokens"]):
        if not isinstance(token, str) or token == START:
            raise ValueError(
                f"{name}.tokens[{index}] = {token!r}: expected a string other than {START!r}, "
                "which starts every text"
            )
    vocabulary = Vocabulary(given["tokens"], given.get("eos"))
    back = given.get("back", 1)
    if not isinstance(back, int) or isinstance(back, bool) or back < 1:
        raise ValueError(f"{name}.back = {back!r}: expected an integer >= 1")
    size = len(vocabulary)
    initial = _row(given["initial"], f"{name}.initial", size)
    return Law(vocabulary, initial, _rows(given["rows"], vocabulary, initial, name), back)


def _row(given: Any, name: str, size: int) -> Probabilities:
    """A distribution; JSON writes a float that is whole as 0 or 1, too."""
    if isinstance(given, list) and any(isinstance(p, float) for p in given):
        given = [float(p) if type(p) is int else p for p in given]
    return as_distribution(given, name, size)


def _check_keys(given: Mapping[str, Any], name: str) -> None:
    unknown = [key for key in given if key not in KEYS]
    if unknown:
        raise ValueError(f"{name} has the unknown key {unknown[0]!r}: expected {', '.join(KEYS)}")
    for key in ("tokens", "initial", "rows"):
        if key not in given:
            raise ValueError(f"{name} has no {key!r}")


def _rows(
    given: Any, vocabulary: Vocabulary, initial: Probabilities, name: str
) -> tuple[Probabilities, ...]:
    if not isinstance(given, Mapping):
        raise TypeError(f"{name}.rows = {given!r}: expected an object with a row for each token")
    unknown = [token for token in given if token not in vocabulary.ids]
    if unknown:
        raise ValueError(f"{name}.rows[{unknown[0]!r}]: expected one of the tokens")
    rows = []
    for token in vocabulary.tokens:
        if token in given:
            rows.append(_row(given[token], f"{name}.rows[{token!r}]", len(vocabulary)))
        elif token == vocabulary.eos:
            rows.append(initial)
        else:
            raise ValueError(f"{name}.rows has no row for {token!r}")
    return tuple(rows)


def as_laws(given: Any, name: str = "law") -> dict[str, Law]:
    """One distribution or a pair of them: `{"": …}` or `{"target": …, "drafter": …}`.

    Raises
    ------
    TypeError, ValueError
        As for `as_law`; or only one of a pair is given.

    Examples
    --------
    >>> coin = {"tokens": ["a", "b"], "initial": [1, 0], "rows": {"a": [0, 1], "b": [1, 0]}}
    >>> sorted(as_laws({"target": coin, "drafter": coin}))
    ['drafter', 'target']
    """
    if isinstance(given, Mapping) and set(given) & set(ROLES):
        if set(given) != set(ROLES):
            raise ValueError(f"{name} has {', '.join(sorted(given))}: expected target and drafter")
        return {role: as_law(given[role], f"{name}.{role}") for role in ROLES}
    return {"": as_law(given, name)}


def load_laws(path: str) -> dict[str, Law]:
    """Read a distribution, or a pair, from a JSON file.

    Raises
    ------
    ValueError
        The file is not JSON; or as for `as_laws`.
    """
    try:
        given = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    return as_laws(given, Path(path).stem)


def plain(law: Law) -> dict[str, Any]:
    """What a JSON file holds of a law; `as_law` reads it."""
    return {
        "tokens": list(law.vocabulary.tokens),
        "eos": law.vocabulary.eos,
        "back": law.back,
        "initial": _numbers(law.initial),
        "rows": {
            str(token): _numbers(row)
            for token, row in zip(law.vocabulary.tokens, law.rows, strict=True)
        },
    }


def _numbers(row: Probabilities) -> list[str | float]:
    return [str(p) if row.dtype == object else float(p) for p in row]


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


def _pair(
    target: Sequence[str], drafter: Sequence[str], tokens: str = "a b c d", back: int = 1
) -> dict[str, Any]:
    rows = zip(ROLES, (target, drafter), strict=True)
    return {role: _law(tokens, *given, back=back) for role, given in rows}


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
        _pair(TARGET, DRAFTER),
    ),
    "lookback": (
        "the same rows, but of the token before the last one: by attention",
        _pair(TARGET, DRAFTER, back=2),
    ),
    "lookback-3": (
        "the same rows, of the token 3 places back",
        _pair(TARGET, DRAFTER, back=3),
    ),
    "ending": (
        "for greedy texts: some end early, others repeat themselves; as far back as lookback",
        _pair(ENDING, ENDING_DRAFTS, back=2),
    ),
    "far": (
        "b: .10 in the target, .90 in the draft model, after every token",
        _pair(["80 10 10"] * 3, ["5 90 5"] * 3, "a b"),
    ),
    "two-vocabularies": (
        "a, b, c and longer tokens; the draft model has fewer, others, and other ids",
        {
            "target": _law(
                "a b ab ba c abc",
                "25 15 15 10 15 10 10",
                *("10 30 10 5 20 15 10", "40 5 10 5 20 10 10", "20 10 0 30 15 15 10"),
                *("5 35 20 10 10 10 10", "30 30 5 5 5 15 10", "10 10 30 20 10 10 10"),
            ),
            "drafter": _law(
                "b a c bc ab",
                "20 35 15 10 15 5",
                *("10 40 20 10 15 5", "35 10 30 10 10 5", "30 30 15 10 10 5"),
                *("20 30 20 10 15 5", "10 25 40 10 10 5"),
            ),
        },
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


def shaped(model: Model, settings: Mapping[str, float]) -> Model | None:
    """The distribution after settings, in their order, each on what the one before it left.

    Parameters
    ----------
    model : Model
    settings : mapping
        `temperature`; `top_k`: so many of the likeliest tokens; `top_p`: the fewest of the
        likeliest with so much mass together; `min_p`: tokens with so much of the largest
        probability. A name that ends with ``penalty`` depends on the text.

    Returns
    -------
    Model or None
        None if there is a penalty. A row raises ValueError if rounding, or the order of equal
        tokens, decides which tokens are left.

    Raises
    ------
    ValueError
        A setting is unknown, or not above 0; `top_p` or `min_p` is above 1; `top_k` is not whole.

    Examples
    --------
    >>> from specref.contrib.checkpoints.law import named_pair
    >>> law = named_pair("order-1")["target"].model
    >>> [str(p) for p in shaped(law, {"min_p": 0.3, "temperature": 0.5}).next_token(())]
    ['16/29', '9/29', '4/29', '0', '0']
    >>> [str(p) for p in shaped(law, {"top_p": 0.75}).next_token((0,))]
    ['3/4', '0', '1/4', '0', '0']
    """
    for name, value in settings.items():
        if name not in SHAPES and not name.endswith("penalty"):
            raise ValueError(f"settings has {name!r}: expected {', '.join(SHAPES)} or a penalty")
        if not (0 < value <= 1 or (value > 1 and name not in ("top_p", "min_p"))):
            most = " and at most 1" if name in ("top_p", "min_p") else ""
            raise ValueError(f"settings[{name!r}] = {value!r}: expected a number above 0{most}")
        if name == "top_k" and value % 1:
            raise ValueError(f"settings['top_k'] = {value!r}: expected a whole number")
    if not set(settings) <= set(SHAPES):
        return None

    def next_token(context: Tokens) -> Row:
        row = np.asarray(model.next_token(context))
        for name, value in settings.items():
            row = SHAPES[name](row, value)
            row = row / row.sum()
        return row

    return Model(model.vocabulary, next_token)


def _at_temperature(row: Probabilities, temperature: float) -> Probabilities:
    power = 1 / temperature
    return row ** int(power) if power.is_integer() else row.astype(np.float64) ** power


def _of_top_k(row: Probabilities, count: float) -> Probabilities:
    ranked = -np.sort(-row[row > 0])
    if count >= len(ranked):
        return row
    last, next_one = ranked[int(count) - 1], ranked[int(count)]
    if last - next_one < MARGIN:
        raise ValueError(f"top_k = {count!r}: rounding or order decides which are left of {row}")
    return np.where(row >= last, row, 0 * row)


def _of_top_p(row: Probabilities, mass: float) -> Probabilities:
    ranked = -np.sort(-row[row > 0])
    before = np.cumsum(ranked) - ranked
    last = ranked[before < mass][-1]
    tied = (row == last).sum() > (ranked[before < mass] == last).sum()
    if tied or (abs(before[1:] - mass) < MARGIN).any():
        raise ValueError(f"top_p = {mass!r}: rounding or order decides which are left of {row}")
    return np.where(row >= last, row, 0 * row)


def _of_min_p(row: Probabilities, share: float) -> Probabilities:
    least = row.max() * share
    if (abs(row - least) < MARGIN).any():
        raise ValueError(f"min_p = {share!r}: rounding decides which tokens are left of {row}")
    return np.where(row >= least, row, 0 * row)


SHAPES: Mapping[str, Shape] = MappingProxyType(
    {"temperature": _at_temperature, "top_k": _of_top_k, "top_p": _of_top_p, "min_p": _of_min_p}
)
