"""Mutants whose verifier applies sampling parameters to rows that have them already."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from specref.algorithms.decoding import Step
from specref.distributions import (
    Probabilities,
    Probability,
    is_exact,
    normalise,
    top_k,
    top_p,
    with_temperature,
)
from specref.zoo.entry import Entry
from specref.zoo.parts.standard import ratio, residual_or_p, speculative
from specref.zoo.standard import context
from specref.zoo.standard.draft import SHARP

ROUNDING = 1e-9
Row = Callable[[Probabilities], Probabilities]


def unchanged(row: Probabilities) -> Probabilities:
    return row


def reading(p: Row = unchanged, q: Row = unchanged) -> Step:
    """Speculative decoding whose verifier reads every row of p, or of q, through a function."""
    return speculative(
        accept=lambda at: ratio(p(at.p)[at.token], q(at.q)[at.token]),
        recover=lambda at: residual_or_p(p(at.p), q(at.q)),
        bonus=lambda at: p(at.p),
    )


def nucleus(row: Probabilities, mass: Probability) -> Probabilities:
    """As `top_p`; in floats a sum that rounding keeps just below the mass reaches it."""
    return top_p(row, mass if is_exact(row) else mass - ROUNDING)


def min_p(row: Probabilities, floor: Fraction | float) -> Probabilities:
    """Keep the tokens that have at least this share of the likeliest one's probability."""
    return normalise(np.where(row >= floor * row.max(), row, row * 0))


def in_bfloat16(row: Probabilities) -> Probabilities:
    """Each probability rounded to eight significant bits, ties to even, and not normalised."""
    return np.array([_in_eight_bits(x) for x in row], dtype=row.dtype)


def _in_eight_bits(x: Probability) -> Probability:
    if x == 0:
        return x
    unit = Fraction(1, 128)
    while x < 128 * unit:
        unit /= 2
    low, high = 128, 256  # low units <= x < high units, but for x = 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if x >= middle * unit else (low, middle)
    rest = 2 * (x - low * unit)
    up = rest > unit or (rest == unit and low % 2 == 1)
    return (low + up) * unit


of_operators = partial(Entry, stage="operator")
ENTRIES = (
    of_operators(
        "verifier-top-k",
        formula="p read as top-2(p) by the verifier, in tests, residuals and bonus tokens",
        symptom="Only the few likeliest tokens come out, whatever plain sampling gives.",
        hint="Filter once: rows that the verifier gets are already what is sampled from.",
        step=reading(p=partial(top_k, k=2)),
    ),
    of_operators(
        "verifier-top-p",
        formula="p read as top-p(p), mass 4/5, by the verifier",
        symptom="The unlikely tokens of flat rows are missing.",
        hint="Filter once: rows that the verifier gets are already what is sampled from.",
        step=reading(p=partial(nucleus, mass=Fraction(4, 5))),
    ),
    of_operators(
        "verifier-min-p",
        formula="p read by the verifier without the tokens below max(p) / 2",
        symptom="Tokens far below the likeliest are missing.",
        hint="Filter once: rows that the verifier gets are already what is sampled from.",
        step=reading(p=partial(min_p, floor=Fraction(1, 2))),
    ),
    of_operators(
        "verifier-temperature-of-q",
        formula="q read as norm(q^2) by the verifier, drafts drawn from q",
        symptom="Acceptance falls where the draft model is sure, and text drifts away from it.",
        hint="Declare the distribution that drafts were drawn from, temperature included, and "
        "leave it.",
        step=reading(q=partial(with_temperature, temperature=SHARP)),
    ),
    of_operators(
        "verifier-temperature-of-both",
        formula="p and q read as norm(p^2) and norm(q^2) by the verifier, drafts drawn from q",
        symptom="Sharper than plain sampling, and the ratio is not that of the drafts' "
        "distribution.",
        hint="Divide logits by the temperature once, before the verifier.",
        step=reading(
            p=partial(with_temperature, temperature=SHARP),
            q=partial(with_temperature, temperature=SHARP),
        ),
    ),
    of_operators(
        "verifier-q-never-written",
        formula="q read as 0 by the verifier: p / 0 accepts, and the residual is p",
        symptom="Every draft that p allows is kept, so the output is nearly the draft model's.",
        hint="Fill the buffer of draft probabilities before the verifier reads it.",
        step=reading(q=lambda row: 0 * row),
        cites=("zhongkaifu/TensorSharp#74",),
    ),
    of_operators(
        "verifier-q-in-bfloat16",
        formula="q read in bfloat16 by the verifier, p in full precision",
        symptom="Everything is off by parts in a thousand, as rounding to eight bits does it.",
        hint="Keep q in float32 from the draft to the ratio, or declare a tolerance.",
        step=reading(q=in_bfloat16),
    ),
)

TEMPERATURES = (0.6, 0.7, 0.8, 0.9, 1.25, 1.5, 2.0)
FAMILIES = {entry.id: entry for entry in (*ENTRIES, *context.ENTRIES)}


def variants() -> Iterator[Entry]:
    """The same, and `target-temperature-missing`, at other parameters and in floats.

    To compare samplers with; they are no entries of the zoo. Values that change next to
    nothing on the fixtures of the kit (top-p 0.95, min-p 0.2) are left out.
    """
    for k in (1, 3, 4):
        yield _at("verifier-top-k", k, reading(p=partial(top_k, k=k)))
    for mass in (0.7, 0.9):
        yield _at("verifier-top-p", mass, reading(p=partial(nucleus, mass=mass)))
    yield _at("verifier-min-p", 0.3, reading(p=partial(min_p, floor=0.3)))
    for t in TEMPERATURES:
        row = partial(heated, temperature=t)
        yield _at("target-temperature-missing", t, reading(p=row))
        yield _at("verifier-temperature-of-q", t, reading(q=row))
        yield _at("verifier-temperature-of-both", t, reading(p=row, q=row))


def heated(row: Probabilities, temperature: float) -> Probabilities:
    """The row at a temperature, in floats."""
    return with_temperature(row.astype(np.float64), temperature)


def _at(id_: str, parameter: float, step: Step) -> Entry:
    formula = f"{id_}, with parameter {parameter:g}"
    return replace(FAMILIES[id_], id=f"{id_} at {parameter:g}", formula=formula, step=step)
