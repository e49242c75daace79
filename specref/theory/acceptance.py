"""Acceptance in closed form: no chance, no enumeration of coins.

Every algorithm submits, at each position, a token from a (sub-)law mu over T, and keeps it with
min(1, p / mu), or, for exact match, with p. So position k after t_1 … t_k accepts with

    sum_t min(p, mu)(t . | t_<=k)        standard, union, TLI, SLRS
    sum_t (p mu)(t | t_<=k)              SLEM

with mu = q (standard), q on T ∩ D (union), the same renormalised (TLI), psi (SLEM, SLRS):
Timor et al. 2025, Table 3, extended to later positions and context-dependent models. Block
verification accepts jointly: the first draft as standard does, and more of the later ones
(`theory.block`).
"""

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from specref.distributions import Probabilities, Probability, normalise, relabel
from specref.models import Model
from specref.theory import block
from specref.theory.lookahead import LookaheadRule, fixed, positions
from specref.theory.push_forward import conditional_psi
from specref.vocabulary import Tokens, UntokenisableError, intersection, translate

ALGORITHMS = ("autoregressive", "standard", "union", "tli", "slem", "slrs", "block")
ONE_VOCABULARY = ("standard", "block")
Submitted: TypeAlias = Callable[[Tokens], Probabilities]


def acceptance_rate(
    algorithm: str,
    target: Model,
    drafter: Model,
    context: Tokens = (),
    lookahead: int = 1,
    rule: LookaheadRule = fixed,
) -> Probability:
    """The probability that the first submitted target token is accepted.

    Timor et al. 2025, Table 3; Leviathan et al. 2023, Theorem 3.5.

    Parameters
    ----------
    algorithm : str
        One of autoregressive, standard, union, tli, slem, slrs, block.
    target, drafter : Model
    context : tuple of int
        Target token ids.
    lookahead : int
        Matters for slem and slrs only, where psi depends on it (if it is not 0).
    rule : callable
        The lookahead rule of slrs (with its `ending` "residual").

    Returns
    -------
    Fraction or float
        0 where nothing can be submitted (empty intersection, lookahead 0).

    Raises
    ------
    ValueError
        An unknown algorithm; bad models, context or lookahead.

    Examples
    --------
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> target = iid_model(Vocabulary("ab"), ["2/3", "1/3"])
    >>> drafter = iid_model(Vocabulary("abc"), ["1/3", "1/3", "1/3"])
    >>> acceptance_rate("union", target, drafter), acceptance_rate("tli", target, drafter)
    (Fraction(2, 3), Fraction(5, 6))
    """
    submitted = _submitted(algorithm, target, drafter, context, lookahead, rule)
    return _total(_accepted(algorithm, target.next_token(context), submitted(())))


def acceptance_by_position(
    algorithm: str,
    target: Model,
    drafter: Model,
    context: Tokens = (),
    lookahead: int = 1,
    rule: LookaheadRule = fixed,
) -> tuple[Probability, ...]:
    """The probability of each acceptance given the earlier ones, while it is positive.

    Parameters and errors as `acceptance_rate`.

    Examples
    --------
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> vocabulary = Vocabulary("ab")
    >>> p, q = iid_model(vocabulary, ["1/3", "2/3"]), iid_model(vocabulary, ["2/3", "1/3"])
    >>> acceptance_by_position("standard", p, q, lookahead=2)
    (Fraction(2, 3), Fraction(2, 3))
    """
    survival = _survival(algorithm, target, drafter, context, lookahead, rule)
    return tuple(after / before for before, after in pairwise(survival))


def accepted_length_distribution(
    algorithm: str,
    target: Model,
    drafter: Model,
    context: Tokens = (),
    lookahead: int = 1,
    rule: LookaheadRule = fixed,
) -> tuple[Probability, ...]:
    """P(accepted length = 0), P(= 1), … of one iteration, for context-dependent models.

    Parameters and errors as `acceptance_rate`.

    Examples
    --------
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> vocabulary = Vocabulary("ab")
    >>> p, q = iid_model(vocabulary, ["1/3", "2/3"]), iid_model(vocabulary, ["2/3", "1/3"])
    >>> [str(x) for x in accepted_length_distribution("standard", p, q, lookahead=2)]
    ['1/3', '2/9', '4/9']
    """
    survival = (*_survival(algorithm, target, drafter, context, lookahead, rule), 0)
    return tuple(now - later for now, later in pairwise(survival))


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


def _survival(
    algorithm: str,
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    rule: LookaheadRule,
) -> tuple[Probability, ...]:
    """P(at least k accepted) for k = 0, 1, …, while positive."""
    submitted = _submitted(algorithm, target, drafter, context, lookahead, rule)
    if algorithm == "block":
        rows = block.draft_rows(target, drafter, context, lookahead)
        return block.survival(target, context, rows)
    reached: dict[Tokens, Probability] = {(): Fraction(1)}
    survival: list[Probability] = []
    while reached:
        survival.append(sum(reached.values(), start=Fraction(0)))
        longer: dict[Tokens, Probability] = {}
        for prefix, weight in reached.items():
            if not target.vocabulary.ends(prefix):
                p = target.next_token((*context, *prefix))
                for token, mass in enumerate(_accepted(algorithm, p, submitted(prefix))):
                    if mass > 0:
                        longer[(*prefix, token)] = weight * mass
        reached = longer
    return tuple(survival)


def _accepted(algorithm: str, p: Probabilities, mu: Probabilities) -> Probabilities:
    return p * mu if algorithm == "slem" else np.minimum(p, mu)


def _submitted(
    algorithm: str,
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    rule: LookaheadRule,
) -> Submitted:
    """mu: accepted tokens -> the (sub-)law over T of the next submitted token."""
    nothing = target.next_token(context) * 0
    if algorithm == "autoregressive":
        return lambda prefix: nothing
    if algorithm in ("slem", "slrs"):
        seen = drafter.vocabulary.encode(target.vocabulary.decode(context))
        used_rule = rule if algorithm == "slrs" else fixed
        psi = conditional_psi(target.vocabulary, drafter, seen, lookahead, used_rule)
        return lambda prefix: psi[prefix]
    if algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm = {algorithm!r}: expected one of {ALGORITHMS}")
    other = target.vocabulary.tokens != drafter.vocabulary.tokens
    if algorithm in ONE_VOCABULARY and other:
        raise ValueError(f"drafter has another vocabulary than target: {algorithm} is not defined")
    lift = _normalised if algorithm == "tli" else _unchanged
    return _token_level(target, drafter, context, lookahead, lift, nothing)


def _token_level(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    lift: Callable[[Probabilities], Probabilities],
    nothing: Probabilities,
) -> Submitted:
    shared = intersection(target.vocabulary, drafter.vocabulary)
    size, limit = len(target.vocabulary), len(positions(lookahead))

    def submitted(prefix: Tokens) -> Probabilities:
        try:
            seen = translate((*context, *prefix), target.vocabulary, drafter.vocabulary)
        except UntokenisableError:
            return nothing
        mu = lift(relabel(drafter.next_token(seen), shared, size))
        drafted = seen[len(seen) - len(prefix) :]
        return mu * 0 if len(prefix) == limit or drafter.vocabulary.ends(drafted) else mu

    return submitted


def _normalised(weights: Probabilities) -> Probabilities:
    """The weights normalised; all-zero ones as they are."""
    return normalise(weights) if weights.any() else weights


def _unchanged(weights: Probabilities) -> Probabilities:
    return weights


def _total(masses: Probabilities) -> Probability:
    total: Probability = masses.sum()
    return total
