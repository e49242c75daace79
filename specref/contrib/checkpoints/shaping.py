"""The law of the next token under sampler settings: temperature, top-k, top-p and min-p."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from specref.distributions import Probabilities, Row
from specref.models import Model
from specref.vocabulary import Tokens

MARGIN = 1e-6  # engines round probabilities by less
NO_SETTINGS: Mapping[str, float] = MappingProxyType({})
Shape: TypeAlias = Callable[[Probabilities, float], Probabilities]


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
