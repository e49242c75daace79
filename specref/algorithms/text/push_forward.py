"""psi: the law of the target tokens that a drafted string becomes (Timor et al. 2025, 3.3)."""

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import product
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from specref.algorithms.lookahead import LookaheadRule, fixed, positions
from specref.distributions import Probabilities, Probability
from specref.models import Model
from specref.vocabulary import Text, Tokens, Vocabulary


def psi(
    vocabulary: Vocabulary,
    drafter: Model,
    context: Tokens = (),
    lookahead: int = 1,
    rule: LookaheadRule = fixed,
) -> Probabilities:
    """The distribution of T(d_1 + … + d_i)_1 under draft model and stopping rule: a push-forward.

    Timor et al. 2025, Theorem 3.2. It is not a sum over the exact decompositions of a token
    (Lemma 3.1 and the worked tree), nor a product of one fixed q: with those SLRS is lossy.

    Parameters
    ----------
    vocabulary : Vocabulary
        The target's, T.
    drafter : Model
        Any draft model, with its own vocabulary D.
    context : tuple of int
        What the draft model conditions on: ids of D.
    lookahead : int
        Passed to `rule`.
    rule : callable
        When to stop drafting.

    Returns
    -------
    ndarray, shape (len(vocabulary),)
        Sums to 1, or to 0 when nothing is drafted (`lookahead` 0).

    Raises
    ------
    UntokenisableError
        T cannot tokenise a string that the draft model can produce.

    Examples
    --------
    >>> from specref.models import iid_model
    >>> drafter = iid_model(Vocabulary(["a", "b", "ab"]), ["1/4", "1/4", "1/2"])
    >>> psi(Vocabulary("ab"), drafter)
    array([Fraction(3, 4), Fraction(1, 4)], dtype=object)
    """
    return conditional_psi(vocabulary, drafter, context, lookahead, rule)[()]


@lru_cache(maxsize=1024)
def conditional_psi(
    vocabulary: Vocabulary,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    rule: LookaheadRule = fixed,
) -> Mapping[Tokens, Probabilities]:
    """psi(. | t_1 … t_k) for every prefix t_1 … t_k that a drafted string can start with.

    Returns
    -------
    mapping
        {target tokens: ndarray, shape (len(vocabulary),)}. A row sums to less than 1 by the
        probability that the drafted string ends there.

    Examples
    --------
    >>> from specref.models import iid_model
    >>> drafter = iid_model(Vocabulary(["a", "b", "ab"]), ["1/4", "1/4", "1/2"])
    >>> conditional_psi(Vocabulary("ab"), drafter, (), 1)[0,]
    array([Fraction(0, 1), Fraction(2, 3)], dtype=object)
    """
    mass: dict[Tokens, Probability] = {}
    for tokens, weight in proposals(vocabulary, drafter, context, lookahead, rule).items():
        for length in range(len(tokens) + 1):
            mass[tokens[:length]] = mass.get(tokens[:length], 0) + weight
    rows = {prefix: np.full(len(vocabulary), 0 * weight) for prefix, weight in mass.items()}
    for tokens, weight in mass.items():
        if tokens:
            rows[tokens[:-1]][tokens[-1]] = weight / mass[tokens[:-1]]
    return MappingProxyType(rows)


def proposals(
    vocabulary: Vocabulary,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    rule: LookaheadRule = fixed,
) -> dict[Tokens, Probability]:
    """The distribution of the whole proposal T(d_1 + … + d_i), over the draft model's prefix tree.

    Returns
    -------
    dict
        {target tokens: probability}.

    Examples
    --------
    >>> from specref.models import iid_model
    >>> proposals(Vocabulary(["a", "aa"]), iid_model(Vocabulary("a"), [1]), (), 3)
    {(1, 0): Fraction(1, 1)}
    """
    stop = rule(vocabulary, drafter.vocabulary, lookahead)
    law: dict[Tokens, Probability] = {}
    pending: list[tuple[Tokens, Probability]] = [((), Fraction(1))]
    while pending:
        drafts, weight = pending.pop()
        if stop(drafts) or drafter.vocabulary.ends(drafts):
            tokens = vocabulary.encode(drafter.vocabulary.decode(drafts))
            law[tokens] = law.get(tokens, 0) + weight
            continue
        for token, probability in enumerate(drafter.next_token((*context, *drafts))):
            if probability > 0:
                pending.append(((*drafts, token), weight * probability))
    return law


def psi_iid(
    vocabulary: Vocabulary, drafter: Vocabulary, q: Probabilities, lookahead: int
) -> Probabilities:
    """psi for a draft model that ignores its context, by dynamic programming over texts.

    Drafts that spell the same undetermined text share a state, so there are at most as many
    states per draft as proper prefixes of target tokens, where the prefix tree grows as V^n.

    Returns
    -------
    ndarray, shape (len(vocabulary),)

    Raises
    ------
    ValueError
        The target's tokeniser normalises text, so prefixes determine nothing.

    Examples
    --------
    >>> from specref.distributions import as_distribution
    >>> psi_iid(Vocabulary(["a", "aa"]), Vocabulary("a"), as_distribution([1]), 2)
    array([Fraction(0, 1), Fraction(1, 1)], dtype=object)
    """
    if vocabulary.normalise is not None:
        raise ValueError("psi_iid needs a target vocabulary without normalise")
    law = np.full(len(vocabulary), q[0] * 0)
    texts: dict[Text, Probability] = {drafter.tokens[0][:0]: q.sum()}
    for _ in positions(lookahead):
        longer: dict[Text, Probability] = {}
        drafts = zip(drafter.tokens, q, strict=True)
        for (text, weight), (token, probability) in product(texts.items(), drafts):
            if not probability > 0:
                continue
            drafted, reached = cast(Text, cast(Any, text) + token), weight * probability
            if token == drafter.eos or not vocabulary.is_undetermined(drafted):
                law[vocabulary.first_token(drafted)] += reached
            else:
                longer[drafted] = longer.get(drafted, 0) + reached
        texts = longer
    for text, weight in texts.items():
        if text:
            law[vocabulary.first_token(text)] += weight
    return law
