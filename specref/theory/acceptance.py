"""Acceptance in closed form: no chance, no enumeration of random numbers.

Every algorithm submits, at each position, a token from a (sub-)distribution mu over T, and keeps
it with min(1, p / mu), or, for exact match, with p. So position k after t_1 … t_k accepts with

    sum_t min(p, mu)(t . | t_<=k)        standard, union, TLI, SLRS
    sum_t (p mu)(t | t_<=k)              SLEM

with mu = q (standard), q on T ∩ D (union), the same renormalised (TLI), psi (SLEM, SLRS):
Timor et al. 2025, Table 2 (3 in the later edition), extended to later positions and models that
depend on the context. Block verification accepts jointly: the first draft as standard does, and
more of the later ones (`theory.block`).
"""

import operator
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np

from specref.algorithms.lookahead import LookaheadRule, fixed, positions
from specref.algorithms.text.push_forward import conditional_psi
from specref.distributions import Probabilities, Probability, normalise, relabel
from specref.models import Model
from specref.theory import block as jointly
from specref.vocabulary import Tokens, UntokenisableError, intersection, translate

Submitted: TypeAlias = Callable[[Tokens], Probabilities]
Lengths: TypeAlias = tuple[Probability, ...]


def autoregressive(
    target: Model, drafter: Model, context: Tokens = (), lookahead: int = 1
) -> Lengths:
    """P(number of accepted tokens = 0), P(= 1), … of one iteration: nothing is ever submitted.

    As all functions here, as far as it is positive: (1,) where nothing can be submitted.
    """
    nothing = target.next_token(context) * 0
    return _lengths(target, context, lambda prefix: nothing)


def standard(target: Model, drafter: Model, context: Tokens = (), lookahead: int = 1) -> Lengths:
    """With mu = q, over one vocabulary: Leviathan et al. 2023, Theorem 3.5."""
    if target.vocabulary.tokens != drafter.vocabulary.tokens:
        raise ValueError("drafter has another vocabulary than target: standard is not defined")
    return union(target, drafter, context, lookahead)


def union(target: Model, drafter: Model, context: Tokens = (), lookahead: int = 1) -> Lengths:
    """With mu = q on T ∩ D."""
    return _lengths(target, context, _by_token(target, drafter, context, lookahead))


def tli(target: Model, drafter: Model, context: Tokens = (), lookahead: int = 1) -> Lengths:
    """With mu = q on T ∩ D, renormalised."""
    mu = _by_token(target, drafter, context, lookahead, renormalised=True)
    return _lengths(target, context, mu)


def slem(target: Model, drafter: Model, context: Tokens = (), lookahead: int = 1) -> Lengths:
    """Of exact match with mu = psi."""
    psi = _psi(target, drafter, context, lookahead)
    return _lengths(target, context, psi.__getitem__, operator.mul)


def slrs(
    target: Model,
    drafter: Model,
    context: Tokens = (),
    lookahead: int = 1,
    rule: LookaheadRule = fixed,
) -> Lengths:
    """With mu = psi, under a lookahead rule; SLRS has its `ending` "residual"."""
    psi = _psi(target, drafter, context, lookahead, rule)
    return _lengths(target, context, psi.__getitem__)


def block(target: Model, drafter: Model, context: Tokens = (), lookahead: int = 1) -> Lengths:
    """Of block verification, over one vocabulary."""
    rows = jointly.draft_rows(target, drafter, context, lookahead)
    return jointly.length_law(jointly.accepted_prefixes(target, context, rows))


def block_by_text(
    target: Model, drafter: Model, context: Tokens = (), lookahead: int = 1
) -> Lengths:
    """Of block verification of text, with mu = psi."""
    psi = _psi(target, drafter, context, lookahead)
    return jointly.length_law(jointly.accepted_prefixes(target, context, psi))


def rate(lengths: Lengths) -> Probability:
    """The probability that the first submitted token is accepted, from P(= 0), P(= 1), …."""
    return sum(lengths[1:], start=Fraction(0))


def by_position(lengths: Lengths) -> tuple[Probability, ...]:
    """The probability of each acceptance given the earlier ones, from P(= 0), P(= 1), …."""
    survival = [*accumulate(lengths[::-1])][::-1]
    return tuple(after / before for before, after in pairwise(survival))


def expected_tokens(acceptance: Probability, lookahead: int) -> Probability:
    """Tokens per iteration when each draft is accepted independently with one probability.

    Leviathan et al. 2023, Equation 1: (1 - a^(lookahead + 1)) / (1 - a), and lookahead + 1
    at a = 1. It counts the residual or bonus token; without it (and with the bonus-less
    loop of some explainers) the exponent is `lookahead`.

    Raises
    ------
    ValueError
        `acceptance` is not in [0, 1], or `lookahead` < 0.

    Examples
    --------
    >>> expected_tokens(Fraction(1, 2), 2)
    Fraction(7, 4)
    """
    if not 0 <= acceptance <= 1:
        raise ValueError(f"acceptance = {acceptance}: expected a number in [0, 1]")
    return sum((acceptance**i for i in positions(lookahead)), start=acceptance**lookahead)


def _lengths(
    target: Model,
    context: Tokens,
    submitted: Submitted,
    kept: Callable[[Probabilities, Probabilities], Probabilities] = np.minimum,
) -> Lengths:
    """The numbers of accepted tokens, where the next token t is accepted with kept(p, mu)(t)."""
    reached: dict[Tokens, Probability] = {(): Fraction(1)}
    survival: list[Probability] = []
    while reached:
        survival.append(sum(reached.values(), start=Fraction(0)))
        longer: dict[Tokens, Probability] = {}
        for prefix, weight in reached.items():
            if not target.vocabulary.ends(prefix):
                p = target.next_token((*context, *prefix))
                for token, mass in enumerate(kept(p, submitted(prefix))):
                    if mass > 0:
                        longer[(*prefix, token)] = weight * mass
        reached = longer
    return tuple(now - later for now, later in pairwise((*survival, 0)))


def _by_token(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    *,
    renormalised: bool = False,
) -> Submitted:
    """mu of drafts that are tokens of both vocabularies."""
    nothing = target.next_token(context) * 0
    shared = intersection(target.vocabulary, drafter.vocabulary)
    size, limit = len(target.vocabulary), len(positions(lookahead))

    def submitted(prefix: Tokens) -> Probabilities:
        try:
            seen = translate((*context, *prefix), target.vocabulary, drafter.vocabulary)
        except UntokenisableError:
            return nothing
        mu = relabel(drafter.next_token(seen), shared, size)
        if renormalised and mu.any():
            mu = normalise(mu)
        drafted = seen[len(seen) - len(prefix) :]
        return mu * 0 if len(prefix) == limit or drafter.vocabulary.ends(drafted) else mu

    return submitted


def _psi(
    target: Model, drafter: Model, context: Tokens, lookahead: int, rule: LookaheadRule = fixed
) -> jointly.Rows:
    """mu of drafts that are what the target reads in the draft model's text."""
    seen = drafter.vocabulary.encode(target.vocabulary.decode(context))
    return conditional_psi(target.vocabulary, drafter, seen, lookahead, rule)
