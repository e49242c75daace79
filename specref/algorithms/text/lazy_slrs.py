"""SLRS without psi: every decision from bounds of it, the output distribution unchanged.

String-level rejection sampling (Timor et al. 2025, Algorithm 3) compares psi(t) with numbers that
are known. Bounds decide as psi would (`specref.algorithms.text.lazy_psi`), mostly with fewer
forwards of the draft model. For the residual, a token is proposed from norm((p - l)+), l the lower
bounds that are known by then, and kept with probability (p - psi)+ / (p - l): with l = 0, x ~ p
kept with (1 - psi / p)+. Only a forward that raises l can refuse, so there are fewer refusals than
forwards.

A round keeps its proposal with probability at least sum (p - psi)+, the probability that it comes
to a residual: at most two evaluations of psi in expectation for a token, two where l stays 0.
"""

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from specref.algorithms.lookahead import LookaheadRule, fixed
from specref.algorithms.text.lazy_psi import Bounds, DraftTree
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
) -> Tokens:
    """One iteration of multi-token SLRS, distributed as `slrs.step`: tokens and residual.

    Parameters and returns as `slrs.step`. Sites ``draft[i]``; ``accept[k]``, drawn as in `decide`;
    then ``residual`` and ``keep`` in turn, also after the whole text: longer ones have mass.

    Raises
    ------
    UntokenisableError
        A vocabulary cannot tokenise a text of the other's that it needs.
    ValueError
        A token id is out of range, or `lookahead` < 0.

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
    tree, tokens = propose(target, drafter, context, lookahead, chance, rule)
    block: Tokens = ()
    for k, token in enumerate(tokens):
        p = target.next_token((*context, *block))
        if not accepts(tree, p, block, token, chance, f"accept[{k}]"):
            break
        block = (*block, token)
        if target.vocabulary.ends(block):
            return block
    return (*block, residual(tree, target.next_token((*context, *block)), block, chance))


def single_token_step(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    *,
    rule: LookaheadRule = fixed,
) -> Tokens:
    """Algorithm 3 as listed, distributed as `slrs.single_token_step`; parameters as `step`."""
    tree, tokens = propose(target, drafter, context, lookahead, chance, rule)
    p = target.next_token(context)
    if tokens and accepts(tree, p, (), tokens[0], chance, "accept[0]"):
        return tokens[:1]
    return (residual(tree, p, (), chance),)


def propose(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    rule: LookaheadRule,
) -> tuple[DraftTree, Tokens]:
    """Draft a text; return the tree grown along it, and its target tokens."""
    seen = drafter.vocabulary.encode(target.vocabulary.decode(context))
    stop = rule(target.vocabulary, drafter.vocabulary, lookahead)
    drafts = draft(drafter, seen, stop, chance)
    tree = DraftTree(target.vocabulary, drafter, seen, lookahead, rule)
    tree.follow(drafts)
    return tree, tree.nodes[drafts].settled


def accepts(
    tree: DraftTree, p: Probabilities, prefix: Tokens, token: int, chance: Chance, site: str
) -> bool:
    """Accept a token of the drafted text with probability min(1, p / psi(token | prefix))."""
    bounds = tree.bounds(prefix, token)
    rates = (Bounds(min(1, p[token] / b.upper), min(1, p[token] / b.lower)) for b in bounds)
    return decide(rates, chance, site)


def residual(tree: DraftTree, p: Probabilities, prefix: Tokens, chance: Chance) -> int:
    """Draw from norm((p - psi(. | prefix))+), by rejection."""
    while True:
        known = tree.known(prefix)
        token = chance.draw(corrected(p, known), "residual")
        room = p[token] - known[token]
        excess = (p[token] - np.array(b) for b in tree.bounds(prefix, token))
        rates = (Bounds(max(0, low / room), max(0, high / room)) for high, low in excess)
        # In floats, rounding alone can leave no room for a token that is drawn.
        if room <= 0 or decide(rates, chance, "keep"):
            return token


def decide(bounds: Iterable[Bounds], chance: Chance, site: str) -> bool:
    """Say yes with a probability that is given by bounds, ever tighter, the last of them equal.

    A uniform that is revealed as far as needed: below the lower bound it says yes, above the
    upper no, between them it is drawn again, within tighter bounds. Each draw has the branches
    yes, undecided, no, with known probabilities, so that every reading of chance can make it.

    Examples
    --------
    >>> from specref import exact_distribution
    >>> bounds = [Bounds(0, Fraction(3, 4)), Bounds(Fraction(1, 3), Fraction(1, 3))]
    >>> exact_distribution(lambda chance: decide(bounds, chance, "accept[0]"))[True]
    Fraction(1, 3)
    """
    low, high = Bounds(Fraction(0), Fraction(1))
    for bound in bounds:
        lower = max(low, bound.lower)  # in floats, rounding must not let the interval grow
        upper = max(lower, min(high, bound.upper))
        if (lower, upper) != (low, high):
            weights = np.array([lower - low, upper - lower, high - upper])
            branch = chance.draw(normalise(weights), site)
            if branch != 1:
                return branch == 0
            low, high = lower, upper
    raise ValueError(f"bounds at {site} end with {low} <= probability <= {high}: undecided")
