"""A target with sampling parameters, and standard speculative decoding from it.

Plain sampling applies the parameters to every row: penalty of tokens in the text, temperature,
top-k and top-p by one criterion, min-p. The law that speculative decoding must keep is that one.
Where real parameters would be irrational (temperatures, logit penalties) these are powers and
factors of probabilities, so that everything stays exact.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from specref.algorithms import standard
from specref.algorithms.decoding import Step
from specref.chance import Chance
from specref.distributions import Probabilities, normalise, top_k_top_p, with_temperature
from specref.models import Model, hashed_model
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo.fixtures import ExactFixture, by_name
from specref.zoo.parts.standard import Position, Verification, ratio, residual_or_p, speculative

Row: TypeAlias = Callable[[Position], Probabilities]


@dataclass(frozen=True)
class Parameters:
    """Sampling parameters.

    * `penalty`: Tokens of the text have their probability multiplied by it.
    * `mass`: Of top-p.
    * `chained`: Whether top-k renormalises before top-p.
    * `floor`: Of min-p: tokens below this share of the likeliest are dropped.
    """

    penalty: Fraction = Fraction(1, 2)
    temperature: Fraction = Fraction(1, 2)
    k: int = 3
    mass: Fraction = Fraction(4, 5)
    chained: bool = False
    floor: Fraction = Fraction(1, 8)

    def applied(self, row: Probabilities, text: Tokens) -> Probabilities:
        """The row that is sampled from after `text`."""
        factors = [self.penalty if token in text else 1 for token in range(len(row))]
        penalised = np.array([p * factor for p, factor in zip(row, factors, strict=True)])
        sharp = with_temperature(normalise(penalised), self.temperature)
        kept = top_k_top_p(sharp, self.k, self.mass, chained=self.chained)
        return normalise(np.where(kept >= self.floor * kept.max(), kept, kept * 0))


PARAMETERS = Parameters()
NEUTRAL = Parameters(Fraction(1), Fraction(1), 1000, Fraction(1), False, Fraction(0))


@lru_cache(maxsize=256)
def warped(model: Model, parameters: Parameters = PARAMETERS) -> Model:
    """The model that plain sampling draws from.

    Examples
    --------
    >>> from specref.models import iid_model
    >>> model = iid_model(Vocabulary("abc"), ["1/2", "1/4", "1/4"])
    >>> warped(model).next_token((0,))
    array([Fraction(1, 3), Fraction(1, 3), Fraction(1, 3)], dtype=object)
    """

    def next_token(context: Tokens) -> Probabilities:
        return parameters.applied(model.next_token(context), context)

    return Model(model.vocabulary, next_token)


def step(target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance) -> Tokens:
    """Standard speculative decoding with both models warped: the clean rule of this stage.

    Parameters and returns as `standard.step`; the target is the one before the parameters.
    """
    return standard.step(warped(target), warped(drafter), context, lookahead, chance)


def with_parameters(target_has: Parameters, drafter_has: Parameters = PARAMETERS) -> Step:
    """Standard speculative decoding, each model with parameters of its own."""
    return lambda target, drafter, *others: standard.step(
        warped(target, target_has), warped(drafter, drafter_has), *others
    )


def history(at: Position) -> Tokens:
    """The text that a position continues."""
    return (*at.context, *at.before)


def right(at: Position) -> Probabilities:
    """The row that plain sampling would draw from."""
    return PARAMETERS.applied(at.p, history(at))


def with_rows(row: Row, recovered_from: Row | None = None, after: Row | None = None) -> Step:
    """Verification against a target row computed at each position.

    * `row`: Position (of the target without parameters) -> the row that drafts are tested with.
    * `recovered_from`: The row in the residual, if another.
    * `after`: The row of one more token after a recovered one.
    """
    tested = speculative(
        accept=lambda at: ratio(row(at)[at.token], at.qx),
        recover=lambda at: residual_or_p((recovered_from or row)(at), at.q),
        bonus=row,
        verify=lambda v: v.block(v.prefix()) if after is None else _continued(v, after),
    )
    return lambda target, drafter, *others: tested(target, warped(drafter), *others)


def _continued(v: Verification, after: Row) -> Tokens:
    accepted = v.prefix()
    block = v.block(accepted)
    if accepted == v.n or v.ends(block):
        return block
    at = replace(v.first, context=(*v.first.context, *block), drafts=v.first.drafts)
    return (*block, at.chance.draw(after(at), "next"))


def _warped(name: str, key: int, vocabulary: Vocabulary, context: Tokens) -> ExactFixture:
    target, drafter = (hashed_model(vocabulary, f"{name} {role} {key}", 9) for role in "pq")
    return ExactFixture(name, target, drafter, 2, context, plain=warped(target))


# The keys were found by search: every mutant of the stage shows on both fixtures.
WARPED_FIXTURES: Mapping[str, ExactFixture] = by_name(
    _warped("parameters", 294, Vocabulary("abcde"), (0,)),
    _warped("parameters, EOS", 434, Vocabulary(["a", "b", "c", "d", "$"], eos="$"), (1,)),
)
