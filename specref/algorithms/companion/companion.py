"""Companion-guided verification: a third model decides how many drafts the target verifies.

Kim et al. 2025, "Speculative Verification" (arXiv:2509.24328), sections 4 and 5. As published, and
read for sampling (`step`), it judges each drafted token, and is lossy. Lossless are: to decide on
a position before its token is drawn (`predictable_step`), and to count a draft that is not
verified as rejected (`rejecting`).
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from specref.algorithms.lookahead import positions
from specref.algorithms.standard import Draft, verify
from specref.chance import Chance
from specref.distributions import Probabilities, Probability, is_exact, overlap
from specref.models import Model
from specref.vocabulary import Tokens

Judge: TypeAlias = Callable[[Probability, Probability], Probability]
Prior: TypeAlias = Callable[[Probability], Probability]
Length: TypeAlias = Callable[[Sequence[Probability]], int]


def step(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    *,
    companion: Model,
    estimate: Judge,
    length: Length,
) -> Tokens:
    """One iteration as published: lossy under sampling. Kim et al. 2025, sections 4.2 and 5.

    Whether draft k is verified depends on the token drafted at k: what is verified is not
    distributed as q, yet is verified as if it were. Exact if target or draft model is greedy.

    Parameters
    ----------
    target, drafter, companion : Model
        Over the same vocabulary.
    context, lookahead, chance
        As `standard.step`.
    estimate : callable
        (S, A) -> acceptance of a draft in [0, 1], such as an `AcceptanceTable`.
    length : callable
        Acceptances -> how many drafts are verified, such as `greedy_length` with latencies.

    Raises
    ------
    ValueError
        The vocabularies differ, `lookahead` < 0, an estimate is not in [0, 1], or a length is
        not between 0 and the number of acceptances.

    Examples
    --------
    >>> from specref import Vocabulary, exact_distribution
    >>> from specref.models import iid_model
    >>> p, c = (iid_model(Vocabulary("ab"), row) for row in (["1/2", "1/2"], ["1/3", "2/3"]))
    >>> keep = {"estimate": lambda s, a: a, "length": lambda rates: int(rates[0] == 1)}
    >>> blocks = exact_distribution(lambda chance: step(p, p, (), 1, chance, companion=c, **keep))
    >>> blocks[0,], blocks[1,], blocks[1, 0]  # (0,) should be 1/2
    (Fraction(1, 4), Fraction(1, 4), Fraction(1, 4))
    """
    check_vocabularies(target, drafter, companion)
    drafts: list[Draft] = []
    rates: list[Probability] = []
    seen = context
    for k in positions(lookahead):
        q, c = drafter.next_token(seen), companion.next_token(seen)
        token = chance.draw(q, f"draft[{k}]")
        rates.append(rate(estimate(similarity(q, c), companion_acceptance(q, c, token)), k))
        drafts.append(Draft(token, q))
        seen = (*seen, token)
        if drafter.vocabulary.ends(seen):
            break
    return verify(target, context, drafts[: checked_length(length, rates)], chance)


def predictable_step(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    *,
    companion: Model,
    estimate: Prior,
    length: Length,
) -> Tokens:
    """The first repair, lossless: position k is decided on before its token is drawn.

    As `step`, but `estimate` sees S alone, and draft k is drawn iff `length` of the acceptances
    up to k is all of them. `length` may see no later ones: they would tell of the token at k.
    """
    check_vocabularies(target, drafter, companion)
    drafts: list[Draft] = []
    rates: list[Probability] = []
    seen = context
    for k in positions(lookahead):
        q = drafter.next_token(seen)
        rates.append(rate(estimate(similarity(q, companion.next_token(seen))), k))
        if checked_length(length, rates) <= k:
            break
        token = chance.draw(q, f"draft[{k}]")
        drafts.append(Draft(token, q))
        seen = (*seen, token)
        if drafter.vocabulary.ends(seen):
            break
    return verify(target, context, drafts, chance)


def rate(value: Probability, position: int) -> Probability:
    """An estimated acceptance; `ValueError` if it is no probability."""
    if not 0 <= value <= 1:
        raise ValueError(f"estimate at position {position} = {value}: expected a number in [0, 1]")
    return value


def checked_length(length: Length, rates: Sequence[Probability]) -> int:
    """How many of the drafts are verified, checked."""
    chosen = length(rates)
    if chosen not in range(len(rates) + 1):
        raise ValueError(f"length = {chosen}: expected 0 to {len(rates)}, the number of drafts")
    return chosen


def check_vocabularies(target: Model, drafter: Model, companion: Model) -> None:
    """Raise `ValueError` unless all three have the target's vocabulary."""
    for name, model in (("drafter", drafter), ("companion", companion)):
        if model.vocabulary.tokens != target.vocabulary.tokens:
            raise ValueError(f"{name} has another vocabulary than target: expected the same")


def similarity(q: Probabilities, c: Probabilities) -> Probability:
    """S = sum min(q, c) = 1 - TV(q, c): what is known before the token is drawn.

    Kim et al. 2025, section 4.2. It is the mean of `companion_acceptance` over tokens from q.

    Raises
    ------
    ValueError
        The distributions have different lengths.

    Examples
    --------
    >>> from specref.distributions import as_distribution
    >>> similarity(as_distribution(["1/2", "1/2"]), as_distribution(["1/10", "9/10"]))
    Fraction(3, 5)
    """
    check_lengths(q, c)
    shared = overlap(q, c)
    exact = is_exact(q) and is_exact(c)
    return shared if exact else min(shared, 1.0)  # floats may add up to a little more


def companion_acceptance(q: Probabilities, c: Probabilities, token: int) -> Probability:
    """A = min(1, c / q) at the drafted token: a function of the token itself.

    Kim et al. 2025, section 4.2.

    Raises
    ------
    ValueError
        The distributions have different lengths, or q(token) = 0: it cannot have been drafted.

    Examples
    --------
    >>> from specref.distributions import as_distribution
    >>> companion_acceptance(as_distribution(["1/2", "1/2"]), as_distribution(["1/10", "9/10"]), 0)
    Fraction(1, 5)
    """
    check_lengths(q, c)
    if not 0 <= token < len(q):
        raise ValueError(f"token = {token}: expected 0 <= id < {len(q)}")
    if q[token] == 0:
        raise ValueError(f"token = {token} has q = 0: it cannot have been drafted")
    ratio: Probability = c[token] / q[token]
    return min(ratio, 1)


def check_lengths(q: Probabilities, c: Probabilities) -> None:
    """Raise `ValueError` unless two distributions have one length."""
    if len(q) != len(c):
        raise ValueError(f"laws of {len(q)} and {len(c)} tokens: expected one vocabulary")


def between(target: Model, drafter: Model) -> Model:
    """A companion for proofs: halfway between target and draft model."""

    def next_token(context: Tokens) -> Probabilities:
        row: Probabilities = (target.next_token(context) + drafter.next_token(context)) / 2
        return row

    return Model(target.vocabulary, next_token)


def verified_length_for_proofs(rates: Sequence[Probability]) -> int:
    """How many rates come before the first below 3/4."""
    return next((k for k, rate in enumerate(rates) if 4 * rate < 3), len(rates))


def guided(
    step: Callable[..., Tokens],
    estimate: Callable[..., Probability],
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
) -> Tokens:
    """One iteration of companion-guided verification, with a companion and a length for proofs."""
    third = between(target, drafter)
    told = {"companion": third, "estimate": estimate, "length": verified_length_for_proofs}
    return step(target, drafter, context, lookahead, chance, **told)
