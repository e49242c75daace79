"""SLRS on drafted paths, free of psi: a kernel says how the target would have drafted a token.

For any distribution kappa(path | t) over drafts whose text starts with the target token t, the
pairs (t, path) have the target p(t) kappa(path | t) and were drafted with Q(path): rejection
sampling of pairs is lossless, and forgetting the path leaves p. It reads the draft model along
single paths only, at most two in expectation: the drafted one, and those proposed for the
residual. In return it accepts no more than SLRS with psi, which it equals with the draft model's
conditional distribution (`specref.algorithms.text.path_kernels`).
"""

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from specref.algorithms.lookahead import LookaheadRule, until_determined
from specref.algorithms.text.path_kernels import Drafting, Kernel, canonical
from specref.algorithms.text.slem import draft
from specref.chance import Chance
from specref.distributions import Probabilities, Probability, corrected, is_one, normalise
from specref.models import Model
from specref.vocabulary import Tokens


def step(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    *,
    kernel: Callable[[Drafting], Kernel] = canonical,
    rule: LookaheadRule = until_determined,
) -> Tokens:
    """One iteration: the drafted text's first token and a bonus token, or one of the residual.

    Parameters
    ----------
    target, drafter, context, lookahead
        As `slrs.step`.
    chance : Chance
        Sites ``draft[i]``, ``accept[0]``, then ``bonus``, or ``residual``, ``path`` and ``keep``
        in turn.
    kernel : callable
        `canonical`, `uniform`, `posterior`, or any other that maps a `Drafting` to a function
        from a target token to {path: probability}. It must not depend on what was drafted.
    rule : callable
        When to stop drafting. What is drafted after the first token is determined only spreads
        the kernel over more paths.

    Returns
    -------
    tuple of int
        One or two tokens; an accepted EOS ends the block.

    Raises
    ------
    UntokenisableError
        A vocabulary cannot tokenise the other's text.
    ValueError
        A token id is out of range, `lookahead` < 0, or the kernel gives no distribution over paths
        of its token.

    Examples
    --------
    >>> from specref import Vocabulary, exact_distribution
    >>> from specref.models import iid_model
    >>> target = iid_model(Vocabulary(["a", "b", "ab"]), ["1/2", "1/4", "1/4"])
    >>> drafter = iid_model(Vocabulary("ab"), ["3/4", "1/4"])
    >>> blocks = exact_distribution(lambda chance: step(target, drafter, (), 2, chance))
    >>> blocks[0, 0], blocks[1, 0]
    (Fraction(1, 4), Fraction(1, 8))
    """
    seen = drafter.vocabulary.encode(target.vocabulary.decode(context))
    stop = rule(target.vocabulary, drafter.vocabulary, lookahead)
    path, p = draft(drafter, seen, stop, chance), target.next_token(context)
    if not path:
        return (chance.draw(p, "bonus"),)
    drafting = Drafting(target.vocabulary, drafter, seen, stop)
    token, law = drafting.token(path), cache(checked(kernel(drafting), drafting))
    share, weight = p[token] * law(token).get(path, 0), drafting.weight(path)
    if not chance.accept(min(1, share / weight), "accept[0]"):
        return (residual(p, law, drafting, {path: weight}, chance),)
    if target.vocabulary.ends((token,)):
        return (token,)
    return (token, chance.draw(target.next_token((*context, token)), "bonus"))


def residual(
    p: Probabilities,
    law: Kernel,
    drafting: Drafting,
    known: Mapping[Tokens, Probability],
    chance: Chance,
) -> int:
    """The token of a pair from norm((p kappa - Q)+), by rejection; `known` are the Q at hand.

    A pair is proposed from p kappa less what is known of Q, and kept with probability
    (p kappa - Q)+ / p kappa, or 1 where Q was known: no path is read twice.
    """
    while True:
        spent = np.full(len(p), p[0] * 0)
        for path, weight in known.items():
            token = drafting.token(path)
            spent[token] += min(p[token] * law(token).get(path, 0), weight)
        token = chance.draw(corrected(p, spent), "residual")
        paths = law(token)
        left = [max(p[token] * k - known.get(path, 0), 0) for path, k in paths.items()]
        # In floats, rounding alone can leave nothing of a token that is drawn.
        if not any(left):
            return token
        path = list(paths)[chance.draw(normalise(np.array(left)), "path")]
        if path in known:
            return token
        weight = drafting.weight(path)
        if chance.accept(max(0, 1 - weight / (p[token] * paths[path])), "keep"):
            return token
        known = {**known, path: weight}


def checked(law: Kernel, drafting: Drafting) -> Kernel:
    """The same kernel; raises where it gives no distribution over paths of its token."""

    def kernel(token: int) -> Mapping[Tokens, Probability]:
        paths = law(token)
        total = sum(paths.values())
        if not is_one(total) or min(paths.values()) < 0:
            raise ValueError(f"kernel({token}) = {paths}: expected probabilities that sum to 1")
        for path in paths:
            if path and drafting.ends(path) and drafting.token(path) != token:
                raise ValueError(
                    f"kernel({token}) has path {path}, whose first token is {drafting.token(path)}"
                )
        return paths

    return kernel
