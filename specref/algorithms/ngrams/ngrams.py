"""Learning-free batched speculation: k deterministic drafts, verified on their trie.

Stewart et al. 2024, "The N-Grammys", section 4, for greedy targets; here also for sampling.
One target draw for each position, shared by all drafts: what is kept are always the target's
own samples, so any drafts are lossless that do not depend on these. No lossless rule accepts
more of them. A draw for each row of the batch is lossy: `specref.zoo.ngrams`.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from specref.algorithms.lookahead import positions
from specref.algorithms.ngrams.drafts import Propose, context_drafts, mixed_drafts, table_drafts
from specref.algorithms.ngrams.tables import bigram_rows, bigrams, extended
from specref.chance import Chance
from specref.distributions import Probability
from specref.models import Model
from specref.vocabulary import Tokens

Trie: TypeAlias = "dict[int, Trie]"
DRAFTS, QUERY = 3, 1


def step(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    *,
    propose: Propose | None = None,
) -> Tokens:
    """One iteration of learning-free speculation: the longest matching draft, one more token.

    Parameters
    ----------
    target, drafter : Model
        Over the same vocabulary. Only the draft model's bigrams p(. | x) are read, once, and not
        even these where `propose` is given; in the paper it is the target itself.
    context : tuple of int
        Target token ids.
    lookahead : int
        w, the longest draft; 0 draws one token from the target.
    chance : Chance
        Sites ``target[j]``.
    propose : callable, optional
        (context, lookahead) -> drafts, a function of these alone; by default `learning_free`.

    Returns
    -------
    tuple of int
        The block. EOS ends it.

    Raises
    ------
    ValueError
        The vocabularies differ, a token id is out of range, `lookahead` < 0, or a longer draft.

    Examples
    --------
    >>> from specref import Vocabulary, exact_distribution
    >>> from specref.models import iid_model
    >>> target = iid_model(Vocabulary("ab"), ["1/4", "3/4"])
    >>> exact_distribution(lambda chance: step(target, target, (), 1, chance,
    ...                                        propose=lambda context, lookahead: ((1,),)))
    {(0,): Fraction(1, 4), (1, 0): Fraction(3, 16), (1, 1): Fraction(9, 16)}
    """
    if target.vocabulary.tokens != drafter.vocabulary.tokens:
        raise ValueError("drafter has another vocabulary than target: drafts are target tokens")
    return match(target, context, proposals(drafter, context, lookahead, propose), chance)


def proposals(
    drafter: Model, context: Tokens, lookahead: int, propose: Propose | None = None
) -> tuple[Tokens, ...]:
    """The drafts of a context, checked: token ids, at most `lookahead` of them."""
    drafter.vocabulary.check(context, "context")
    longest = len(positions(lookahead))
    drafts = tuple((propose or learning_free(drafter, longest))(context, longest))
    for index, draft in enumerate(drafts):
        drafter.vocabulary.check(draft, f"drafts[{index}]")
        if len(draft) > longest:
            raise ValueError(f"drafts[{index}] = {draft}: expected at most {longest} tokens")
    return drafts


@lru_cache(maxsize=16)
def learning_free(drafter: Model, lookahead: int) -> Propose:
    """Up to 3 drafts: what followed the last token before, then the draft model's bigrams."""
    table = bigrams(bigram_rows(drafter), min(DRAFTS, len(drafter.vocabulary)))
    chained = table_drafts(extended(table, max(1, lookahead)))
    return mixed_drafts(context_drafts(QUERY), chained, drafts=DRAFTS)


def trie(drafts: Sequence[Tokens]) -> Trie:
    """The drafts as one tree {token: subtree}: equal prefixes, and duplicates, are merged.

    Examples
    --------
    >>> trie([(0, 1), (0, 2), (0, 1), (0,)])
    {0: {1: {}, 2: {}}}
    """
    root: Trie = {}
    for draft in drafts:
        node = root
        for token in draft:
            node = node.setdefault(token, {})
    return root


def match(target: Model, context: Tokens, drafts: Sequence[Tokens], chance: Chance) -> Tokens:
    """Target samples, up to and with the first that leaves the trie of the drafts."""
    node = trie(drafts)
    block: Tokens = ()
    while True:
        token = chance.draw(target.next_token((*context, *block)), f"target[{len(block)}]")
        block = (*block, token)
        if token not in node or target.vocabulary.ends(block):
            return block
        node = node[token]


def expected_accepted(target: Model, context: Tokens, drafts: Sequence[Tokens]) -> Probability:
    """E[accepted draft tokens]: the sum of p(node | context) over the nodes of the trie.

    No lossless rule accepts more: what it accepts it emits, and a lossless output starts with
    a node with probability p(node). For w = 1 it is p(S), S the distinct drafted tokens.

    Examples
    --------
    >>> from specref import Vocabulary
    >>> from specref.models import iid_model
    >>> target = iid_model(Vocabulary("ab"), ["1/4", "3/4"])
    >>> expected_accepted(target, (), [(1, 0), (1, 1), (1, 1)])
    Fraction(3, 2)
    """
    return _mass_below(target, context, trie(drafts))


def _mass_below(target: Model, context: Tokens, node: Trie) -> Probability:
    p = target.next_token(context)
    total: Probability = p[0] * 0
    for token, below in node.items():
        if p[token] > 0:
            last = not below or target.vocabulary.ends((token,))
            total += p[token] * (
                1 + (0 if last else _mass_below(target, (*context, token), below))
            )
    return total
