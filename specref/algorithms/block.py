"""Block verification: drafts are accepted jointly, and more of them.

Sun et al. 2024 (arXiv:2403.10444), Algorithm 2. The drafts are x_1 … x_n. A_i is the probability
that the first i of them are accepted, once they are drafted: A_0 = 1, and with p and q at x_i

    A_i = min(1, A_{i-1} p(x_i) / q(x_i)).

R_i = (A_i p - q)+ is what the target has left after x_1 … x_i, with p and q the distributions
there. A random number is drawn for each i, and succeeds with probability

    h_i = sum R_i / (sum R_i + 1 - A_i),    h_n = A_n after all n drafts.

The largest i that succeeds is the number of accepted tokens; if none does, it is 0. A success
overrules all failures before it. So random numbers are drawn from the last draft back, until one
succeeds. The next token is from norm(R_i), or after all n drafts from p. For 0/0 any h_i will do:
then A_i = 1 and p = q, so A_{i+1} = 1, and the walk back never comes to i.

Why it is lossless, by induction from the last draft back. Given that x_1 … x_i is drafted, it is
accepted with probability A_i, and then p follows. A draft y comes next and is accepted with
probability min(q, A_i p)(y). The walk comes to i with 1 less their sum, which is
sum R_i + 1 - A_i. So it stops at i, with y next, with probability R_i(y). Together that is
A_i p(y); at i = 0, p(y). Full acceptance is the case q = 0, where R_n = A_n p. An accepted EOS is
followed by nothing, and nothing more is drafted.

The same holds for sub-distributions q. Their rest is the probability that drafting ends after
x_1 … x_i with nothing more to verify: END, which the target never says and which is accepted with
probability 0.
"""

from typing import NamedTuple

import numpy as np

from specref.algorithms.standard import Draft, acceptance, draft
from specref.chance import Chance
from specref.distributions import Probabilities, Probability, corrected
from specref.models import Model
from specref.vocabulary import Tokens


class Stop(NamedTuple):
    """A place where the accepted drafts may end: h_i, and R_i as (A_i p, q)."""

    block: Tokens
    probability: Probability
    p: Probabilities
    q: Probabilities


def step(target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance) -> Tokens:
    """One iteration: 1 to lookahead + 1 tokens of p; on average no fewer than `standard`.

    Parameters, returns and errors as `standard.step`. Sites ``draft[i]``; ``accept[i]``, the last
    draft first; then ``residual`` or ``bonus``.

    Examples
    --------
    >>> from specref import Vocabulary, exact_distribution
    >>> from specref.models import iid_model
    >>> vocabulary = Vocabulary("ab")
    >>> p, q = iid_model(vocabulary, ["1/3", "2/3"]), iid_model(vocabulary, ["2/3", "1/3"])
    >>> blocks = exact_distribution(lambda chance: step(p, q, (), 2, chance))
    >>> sum(len(block) * weight for block, weight in blocks.items())  # standard: 19/9
    Fraction(20, 9)
    """
    if target.vocabulary.tokens != drafter.vocabulary.tokens:
        raise ValueError("drafter has another vocabulary than target: use block_slrs")
    return verify(target, context, draft(drafter, context, lookahead, chance), chance)


def verify(target: Model, context: Tokens, drafts: list[Draft], chance: Chance) -> Tokens:
    """Accept a prefix of the drafts jointly; end with one more token, or an accepted EOS.

    `drafts` are those of any drafting rule (`standard`, `union`, `tli`, `block_slrs`) that is a
    function of the drafts and their random numbers; with `None` as its token, the last is END.

    Examples
    --------
    >>> from specref import Vocabulary, exact_distribution
    >>> from specref.distributions import as_distribution
    >>> from specref.models import iid_model
    >>> target = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
    >>> ended = [Draft(None, as_distribution(["1/2", "1/2"]) / 2)]
    >>> exact_distribution(lambda chance: verify(target, (), ended, chance))
    {(0,): Fraction(1, 2), (1,): Fraction(1, 2)}
    """
    block: Tokens = ()
    survival: Probability = 1
    stops: list[Stop] = []
    for token, q in drafts:
        p = survival * target.next_token((*context, *block))
        stops.append(Stop(block, stopping(p, q, survival), p, q))
        survival = 0 if token is None else acceptance(p, q, token)
        if token is None or survival == 0:
            return walk_back(stops, chance)
        block = (*block, token)
        if target.vocabulary.ends(block):
            break
    if block and not chance.accept(survival, f"accept[{len(block) - 1}]"):
        return walk_back(stops, chance)
    if target.vocabulary.ends(block):
        return block
    return (*block, chance.draw(target.next_token((*context, *block)), "bonus"))


def stopping(p: Probabilities, q: Probabilities, survival: Probability) -> Probability:
    """h_i, the probability to stop here once all longer prefixes are refused; 0 for 0/0."""
    total: Probability = np.maximum(p - q, 0).sum()
    return total / (total + (1 - survival)) if total else total


def walk_back(stops: list[Stop], chance: Chance) -> Tokens:
    """The longest of these prefixes that is accepted, or the first, and a residual token."""
    block, _, p, q = next(
        (s for s in stops[:0:-1] if chance.accept(s.probability, f"accept[{len(s.block) - 1}]")),
        stops[0],
    )
    return (*block, chance.draw(corrected(p, q), "residual"))
