"""Calls user functions of two models, and reads the tokens that they return."""

import itertools
import os
from collections.abc import Callable
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np

from specref.chance import Sampled
from specref.contracts.calling import global_randomness
from specref.contracts.errors import BrokenContractError
from specref.contracts.fixtures import Fixture, Place
from specref.contracts.keywords import accepted_keywords
from specref.models import as_float
from specref.supervised import end_a_copy_of
from specref.vocabulary import Tokens

Call: TypeAlias = Callable[[Place, np.random.Generator], Any]


AFTER_EOS = "tokens after EOS: does the adapter stop there?"
MOST_SHOWN = 16


def until_end(fixture: Fixture, tokens: Tokens) -> Tokens:
    """Tokens up to the first EOS."""
    return tokens[: tokens.index(fixture.eos) + 1] if fixture.eos in tokens else tokens


def check_end(fixture: Fixture, tokens: Tokens, place: str = "") -> None:
    """Raise if a block or text goes on after EOS.

    Raises
    ------
    BrokenContractError
        It does; `place` says where.
    """
    if until_end(fixture, tokens) != tokens:
        where = f" ({place})" if place else ""
        shown = f"{tokens[:MOST_SHOWN]}" + ", …" * (len(tokens) > MOST_SHOWN)
        end = tokens.index(fixture.eos)
        raise BrokenContractError(
            f"{AFTER_EOS} EOS, id {fixture.eos}, is token {end} of {len(tokens)}: {shown}{where}"
        )


def read_tokens(raw: Any, longest: int, fixture: Fixture) -> Tokens:
    """Check and convert a block or text.

    Raises
    ------
    BrokenContractError
        It is not a sequence of 1 to `longest` token ids.
    """
    try:
        values = raw.tolist() if hasattr(raw, "tolist") else raw
        # One more is enough to see that it is too long, even if it is infinite.
        tokens = tuple(itertools.islice(values, longest + 1))
    except TypeError:
        raise BrokenContractError(f"returned a {type(raw).__name__}: expected tokens") from None
    size = len(fixture.target.vocabulary)
    for index, token in enumerate(tokens):
        known = isinstance(token, Integral) and not isinstance(token, bool)
        if not known or not 0 <= int(token) < size:
            raise BrokenContractError(f"token {index} is {token!r}: expected 0 <= id < {size}")
    if not 1 <= len(tokens) <= longest:
        number = len(tokens) if len(tokens) <= longest else f"more than {longest}"
        why = f" ({AFTER_EOS})" if len(until_end(fixture, tokens)) < len(tokens) else ""
        raise BrokenContractError(f"returned {number} tokens: expected 1 to {longest}{why}")
    return tuple(int(token) for token in tokens)


def step_call(implementation: Callable[..., Any], fixture: Fixture) -> Call:
    """(place, rng) -> a block, for a function of the contract ``step``."""
    models, give = (as_float(fixture.target), as_float(fixture.drafter)), giver(implementation)
    return lambda place, rng: give((*models, place.context, place.lookahead), rng)


def generate_call(implementation: Callable[..., Any], fixture: Fixture, tokens: int) -> Call:
    """(place, rng) -> a text, for a function of the contract ``generate``."""
    models, give = (as_float(fixture.target), as_float(fixture.drafter)), giver(implementation)
    return lambda place, rng: give((*models, place.context, tokens), rng)


def giver(
    implementation: Callable[..., Any],
) -> Callable[[tuple[Any, ...], np.random.Generator], Any]:
    """(arguments, rng) -> result of the function, called with `chance` or `rng`.

    If it takes neither, the global generators are seeded.
    """
    given = drawn_from(implementation)

    def give(arguments: tuple[Any, ...], rng: np.random.Generator) -> Any:
        process = os.getpid()
        try:
            if keywords := given(rng):
                return implementation(*arguments, **keywords)
            with global_randomness(rng):
                return implementation(*arguments)
        finally:
            end_a_copy_of(process)

    return give


def drawn_from(
    implementation: Callable[..., Any],
) -> Callable[[np.random.Generator], dict[str, Any]]:
    """rng -> the keyword argument by which a function draws from it; none if it takes none."""
    keywords = accepted_keywords(implementation)
    if "chance" in keywords:
        return lambda rng: {"chance": Sampled(rng)}
    return lambda rng: {"rng": rng} if "rng" in keywords else {}
