"""Greedy block verification: of one chain from q, as much is accepted as any rule can accept.

Sun et al. 2024 (arXiv:2403.10444), appendix. For the drafts x_1 … x_n let p(x_1 … x_i) and
q(x_1 … x_i) be joint probabilities since the block began, and W_i = p(x_1 … x_i) / q(x_1 … x_i).
The rule is as `block`, with A_i = min(1, W_i) and R_i = (W_i p - q)+: the ratio is capped where it
is used, and not handed on capped. So h_i = 1 where W_i >= 1. That accepts too much for p alone. So
the target of the next tokens is modified: with w the text since the block began, the token after w
is from norm((W p - q)+), W = p(w) / q(w), while w is shorter than n; then from p again. The first
token after the accepted drafts is from the same distribution.

Why it is lossless. Given that x is drafted, the walk back comes to x with probability
1 - sum min(W p, q) and stops there with min(1, W) - sum min(W p, q). So x is drafted, and at least
its tokens are accepted, with probability min(p, q)(x). Let F(w) be the probability that the text
starts with w, fewer drafts than w is long being accepted. Then F(w y) is the (p - q)+(w y) share
of what is left at w: F(w), and what stops at w, min(p, q)(w) - sum min(p, q)(w .). By induction
F(w) is (p - q)+(w), so that what is left is p(w) - sum min(p, q)(w .) = sum (p - q)+(w .), and
F(w y) = (p - q)+(w y). Together with min(p, q)(w y) from the drafts that is p(w y).

No lossless rule with one chain of drafts from q accepts more, whatever it does later: x is
drafted with probability q(x), and the text starts with x with probability p(x). With several
drafts of a token, or drafts that are no draws from q, a rule may accept more. The expected number
of accepted drafts is the sum over l of sum min(p, q)(x_1 … x_l), that is, of 1 - TV(p^l, q^l).

In the next iteration, the drafts are verified against the modified target, which is a target like
any other; that iteration modifies it in turn. Each modification ends `lookahead` tokens after the
place where its block began, so that fewer than `lookahead` hold at a time. W > 1 wherever one
holds, because the tokens came from such a distribution; so the distribution exists. Where the
draft model cannot draft w, nothing is owed and it is p.
"""

from typing import NamedTuple, TypeAlias

from specref.algorithms.block import Stop, stopping, walk_back
from specref.algorithms.standard import Draft, draft, drafted
from specref.chance import Chance
from specref.distributions import Probabilities, Probability, is_exact, residual
from specref.models import Model
from specref.vocabulary import Tokens

MOST = 2.0**1000


class Modification(NamedTuple):
    """The target is norm((ratio p - q)+), with this ratio now, up to `end` tokens of context."""

    ratio: Probability
    end: int


Modifications: TypeAlias = tuple[Modification, ...]


def step(target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance) -> Tokens:
    """One iteration and the tokens whose target it has modified, together distributed as p.

    Lossless alone, as the other algorithms are; for the loop without these draws, see `decode`.

    Parameters, returns and errors as `standard.step`. Sites as `block.step`; then ``modified`` for
    each token from a modified target.

    Examples
    --------
    >>> from specref import Vocabulary, is_lossless
    >>> from specref.models import iid_model
    >>> vocabulary = Vocabulary("ab")
    >>> p, q = iid_model(vocabulary, ["1/3", "2/3"]), iid_model(vocabulary, ["2/3", "1/3"])
    >>> is_lossless(step, p, q, (), 2).lossless
    True
    """
    return iterations(target, drafter, context, lookahead, 1, chance)


def iterations(
    target: Model, drafter: Model, context: Tokens, lookahead: int, count: int, chance: Chance
) -> Tokens:
    """So many iterations, which carry modifications along, and the tokens that are owed then."""
    block: Tokens = ()
    left: Modifications = ()
    while count and not target.vocabulary.ends(block):
        here = (*context, *block)
        more, left = iterate(target, drafter, here, lookahead, chance, left)
        block, count = (*block, *more), count - 1
    while left and not target.vocabulary.ends(block):
        here = (*context, *block)
        token = chance.draw(law(target, drafter, here, left), "modified")
        block, left = (*block, token), carry(target, drafter, here, (token,), left)
    return block


def decode(
    target: Model, drafter: Model, context: Tokens, lookahead: int, length: int, chance: Chance
) -> Tokens:
    """The first `length` tokens of the decode loop, in which modifications are carried along."""
    tokens: Tokens = ()
    carried: Modifications = ()
    while len(tokens) < length and not target.vocabulary.ends(tokens):
        here = (*context, *tokens)
        block, carried = iterate(target, drafter, here, lookahead, chance, carried)
        tokens += block
    return tokens[:length]


def iterate(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    carried: Modifications = (),
) -> tuple[Tokens, Modifications]:
    """One iteration: 1 to lookahead + 1 tokens, and the modifications that then hold.

    The block, continued by `modified` of the target with what is returned, has the distribution of
    `modified` of the target with what was `carried`.
    """
    if target.vocabulary.tokens != drafter.vocabulary.tokens:
        raise ValueError("drafter has another vocabulary than target: no greedy rule is defined")
    drafts = draft(drafter, context, lookahead, chance)
    block = verify(modified(target, drafter, context, carried), context, drafts, chance)
    own = Modification(1, len(context) + lookahead)
    return block, carry(target, drafter, context, block, (*carried, own))


def verify(target: Model, context: Tokens, drafts: list[Draft], chance: Chance) -> Tokens:
    """Accept a prefix of the drafts; end with one more token, or an accepted EOS."""
    block: Tokens = ()
    ratio: Probability = 1
    stops: list[Stop] = []
    for token, q in drafts:
        p = ratio * target.next_token((*context, *block))
        stops.append(Stop(block, stopping(p, q, min(1, ratio)), p, q))
        ratio = 0 if token is None else extended(p, q, token)
        if token is None or ratio == 0:
            return walk_back(stops, chance)
        block = (*block, token)
        if target.vocabulary.ends(block):
            break
    if block and not chance.accept(min(1, ratio), f"accept[{len(block) - 1}]"):
        return walk_back(stops, chance)
    if target.vocabulary.ends(block):
        return block
    return (*block, chance.draw(target.next_token((*context, *block)), "bonus"))


def modified(target: Model, drafter: Model, context: Tokens, carried: Modifications) -> Model:
    """The target of what follows `context`: a model of the contexts that start with it.

    Examples
    --------
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> p, q = (iid_model(Vocabulary("ab"), row) for row in (["1/3", "2/3"], ["2/3", "1/3"]))
    >>> after_b = modified(p, q, (1,), (Modification(2, end=2),))
    >>> [str(after_b.next_token(context)[1]) for context in [(1,), (1, 1)]]
    ['1', '2/3']
    """

    def next_token(longer: Tokens) -> Probabilities:
        left = carry(target, drafter, context, longer[len(context) :], carried)
        return law(target, drafter, longer, left)

    return Model(target.vocabulary, next_token) if carried else target


def law(target: Model, drafter: Model, context: Tokens, carried: Modifications) -> Probabilities:
    """The distribution of the next token: p, to which the modifications are applied one by one.

    In floats, one whose distribution does not exist by rounding alone is not applied.
    """
    p = target.next_token(context)
    for ratio, _ in carried:
        q = drafter.next_token(context)
        p = residual(ratio * p, q) if is_exact(p) or (ratio * p > q).any() else p
    return p


def carry(
    target: Model, drafter: Model, context: Tokens, tokens: Tokens, carried: Modifications
) -> Modifications:
    """The modifications that hold after more tokens; none once one cannot be drafted."""
    for token in tokens:
        if not carried or drafter.vocabulary.ends((token,)):
            return ()
        q = drafter.next_token(context)
        if q[token] == 0:
            return ()
        rows = [law(target, drafter, context, carried[:i]) for i in range(len(carried))]
        context = (*context, token)
        carried = tuple(
            Modification(extended(ratio * p, q, token), end)
            for (ratio, end), p in zip(carried, rows, strict=True)
            if end > len(context)
        )
    return carried


def extended(p: Probabilities, q: Probabilities, token: int) -> Probability:
    """p / q, the ratio with one more token; floats end at `MOST`, and do not overflow.

    From there on norm((W p - q)+) is p to rounding. Where a ratio so great would have fallen again
    to what matters, the text is one that has a probability below 1 / `MOST`.
    """
    drawn = drafted(q, token)
    if not is_exact(q):
        drawn = max(drawn, p[token] / MOST)
    ratio: Probability = p[token] / drawn
    return ratio
