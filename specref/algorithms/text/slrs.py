"""String-level rejection sampling (SLRS): Timor et al. 2025, Algorithm 3.

The drafted text, read by the target's tokeniser, is a draft from an autoregressive distribution
psi over T, and is verified as one: the sum that Theorem 3.2 prints, with q given what was drafted,
of the actual drafting and stopping rule. A sum over exact decompositions, which the paper counts,
is another. Corrected here: S_1 stops at n drafts, not n + 1; line 8 has an "otherwise"; and the
listing yields one token per target evaluation (`single_token_step`), so `step` goes on to verify
t_2, t_3, … with psi(. | t_<k).
"""

from collections.abc import Mapping
from typing import Literal

from specref.algorithms.lookahead import LookaheadRule, fixed
from specref.algorithms.standard import Draft, acceptance, verify
from specref.algorithms.text.push_forward import conditional_psi
from specref.algorithms.text.slem import draft
from specref.chance import Chance
from specref.distributions import Probabilities, corrected, normalise
from specref.models import Model
from specref.vocabulary import Tokens


def step(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    *,
    rule: LookaheadRule = fixed,
    ending: Literal["residual", "bonus"] = "residual",
) -> Tokens:
    """One iteration of multi-token SLRS: accepted tokens of the drafted text and one more.

    Parameters
    ----------
    target, drafter : Model
        Over any two vocabularies in which the drafted texts can be tokenised.
    context : tuple of int
        Target token ids, kept as they are.
    lookahead : int
        Passed to `rule`.
    chance : Chance
        Sites ``draft[i]``, ``accept[k]``, then ``residual`` or ``bonus``.
    rule : callable
        When to stop drafting: `fixed`, `at_most_n_max` or `until_determined`.
    ending : {"residual", "bonus"}
        Where the text ends, psi(. | t_<k) may have mass left on longer texts. Draw the last
        token from norm((p - psi)+) (accepts more), or verify with psi given that the text
        goes on, and draw the last token from p. Both are lossless.

    Returns
    -------
    tuple of int
        The block; an accepted EOS ends it.

    Raises
    ------
    UntokenisableError
        A vocabulary cannot tokenise the other's text.
    ValueError
        A token id is out of range, `lookahead` < 0, or an unknown `ending`.

    Examples
    --------
    >>> from specref import Vocabulary, exact_distribution
    >>> from specref.models import iid_model
    >>> target = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
    >>> drafter = iid_model(Vocabulary(["a", "b", "ab"]), ["1/4", "1/4", "1/2"])
    >>> blocks = exact_distribution(lambda chance: step(target, drafter, (), 1, chance))
    >>> blocks[1,], blocks[0, 1, 0]
    (Fraction(1, 4), Fraction(1, 8))
    """
    if ending not in ("residual", "bonus"):
        raise ValueError(f"ending = {ending!r}: expected residual or bonus")
    tokens, psi = propose(target, drafter, context, lookahead, chance, rule)
    drafts = with_end(tokens, psi)
    if ending == "bonus":
        drafts = [Draft(token, normalise(law)) for token, law in drafts[: len(tokens)]]
    return verify(target, context, drafts, chance)


def single_token_step(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    *,
    rule: LookaheadRule = fixed,
) -> Tokens:
    """Algorithm 3 as listed: one target token, accepted with min(1, p / psi) or residual.

    Parameters as `step`; with `lookahead` 0 the token is drawn from p.

    Examples
    --------
    >>> from specref import Vocabulary, exact_distribution
    >>> from specref.models import iid_model
    >>> target = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
    >>> drafter = iid_model(Vocabulary(["a", "b", "ab"]), ["1/4", "1/4", "1/2"])
    >>> exact_distribution(lambda chance: single_token_step(target, drafter, (), 1, chance))
    {(1,): Fraction(1, 2), (0,): Fraction(1, 2)}
    """
    tokens, psi = propose(target, drafter, context, lookahead, chance, rule)
    p, q = target.next_token(context), psi[()]
    if tokens and chance.accept(acceptance(p, q, tokens[0]), "accept[0]"):
        return tokens[:1]
    return (chance.draw(corrected(p, q), "residual"),)


def propose(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    rule: LookaheadRule,
) -> tuple[Tokens, Mapping[Tokens, Probabilities]]:
    """Draft a text; return its target tokens, and psi for each of their prefixes."""
    seen = drafter.vocabulary.encode(target.vocabulary.decode(context))
    stop = rule(target.vocabulary, drafter.vocabulary, lookahead)
    text = drafter.vocabulary.decode(draft(drafter, seen, stop, chance))
    psi = conditional_psi(target.vocabulary, drafter, seen, lookahead, rule)
    return target.vocabulary.encode(text), psi


def with_end(tokens: Tokens, psi: Mapping[Tokens, Probabilities]) -> list[Draft]:
    """The tokens of a drafted text with their distributions; END, if longer ones have mass."""
    laws = [psi[tokens[:k]] for k in range(len(tokens) + 1)]
    drafts = [Draft(token, law) for token, law in zip((*tokens, None), laws, strict=True)]
    return drafts if laws[-1].any() else drafts[:-1]
