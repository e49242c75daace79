"""Greedy decoding: blocks and texts are compared with the argmax of the target, one by one."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from specref.arrays import Ints
from specref.contracts.batch import ROOT, Batch, as_tree
from specref.contracts.calling import Verifier
from specref.contracts.functions import Generate
from specref.contracts.sampling import AFTER_EOS, giver
from specref.models import Model, as_float
from specref.vocabulary import Tokens

Likeliest = NDArray[np.bool_]


def likeliest(verifier: Verifier, batch: Batch) -> Likeliest:
    """Which tokens are an argmax of each row of the target, as the implementation gets it.

    All tied tokens are. With a claimed tolerance, so are those within twice as much:
    rounding may raise one token, and lower another, by that.
    """
    rows = verifier.read("target_probs", batch.target_probs)
    if verifier.kinds["target_probs"] != "probs":
        weights = np.exp(rows - rows.max(axis=2, keepdims=True))
        rows = weights / weights.sum(axis=2, keepdims=True)
    slack = 2 * verifier.capabilities.tolerance
    return np.asarray(rows >= rows.max(axis=2, keepdims=True) - slack)


def departures(batch: Batch, allowed: Likeliest, tokens: Ints, eos: int | None = None) -> Ints:
    """The rows whose blocks do not follow from greedy decoding.

    A block goes on while its tokens are drafts, and ends with the first that is not. What comes
    after EOS does not matter.

    Examples
    --------
    >>> p = np.array([[[0.2, 0.8], [0.7, 0.3]]] * 3)
    >>> one = np.ones(3, dtype=np.int64)
    >>> batch = Batch(p, None, one[:, None], one, one)
    >>> departures(batch, p > 0.5, np.array([[1, 0], [1, -1], [0, -1]])).tolist()
    [1, 2]
    """
    tree, row = as_tree(batch), np.arange(len(tokens))
    above = tree.parents + 1  # -1 where there is no node: there is no token to go on with, either
    # Where the tokens so far lead, the root first: to several nodes where siblings repeat.
    at = np.zeros((len(tokens), above.shape[1] + 1), dtype=bool)
    at[:, 0] = True
    goes_on, right = tokens[:, 0] >= 0, np.zeros(len(tokens), dtype=bool)
    for token, later in zip(tokens.T, [*tokens.T[1:], np.full(len(tokens), -1)], strict=True):
        goes_on = goes_on & allowed[row, at.argmax(axis=1), token]
        below = np.take_along_axis(at, above, axis=1) & (tree.draft_tokens == token[:, None])
        drafted = np.zeros_like(at)
        drafted[below.nonzero()[0], above[below]] = True
        ends = (later < 0) & (at & ~drafted).any(axis=1)
        right |= goes_on & (ends if eos is None else ends | (token == eos))
        at[:, 1:], at[:, 0] = below, False
        goes_on &= ~right & (later >= 0) & below.any(axis=1)
    return np.flatnonzero(~right)


def greedy_block(batch: Batch, row: int, allowed: Likeliest) -> Tokens:
    """A block of greedy decoding; of tied tokens one that was drafted, or the first."""
    tree, node = as_tree(batch), ROOT
    block: Tokens = ()
    while True:
        tokens = np.flatnonzero(allowed[node + 1]).tolist()
        children = np.flatnonzero(tree.parents[row] == node).tolist()
        drafted = [
            (x, child) for x in tokens for child in children if tree.draft_tokens[row, child] == x
        ]
        if not drafted:
            return (*block, tokens[0])
        token, node = drafted[0]
        block = (*block, token)


def greedy_text(target: Model, context: Tokens, tokens: int) -> Tokens:
    """The text of greedy decoding, up to EOS; of tied tokens the first is taken."""
    text: Tokens = ()
    while len(text) < tokens and not target.vocabulary.ends(text):
        row = target.next_token((*context, *text)).tolist()
        text = (*text, row.index(max(row)))
    return text


def first_departure(target: Model, context: Tokens, text: Tokens) -> str | None:
    """The first token of a text that is no argmax of the target, and one that is, in words.

    Examples
    --------
    >>> from specref.models import markov_model
    >>> from specref.vocabulary import Vocabulary
    >>> model = markov_model(Vocabulary("ab"), [0.5, 0.5], [[0.1, 0.9], [0.6, 0.4]])
    >>> first_departure(model, (0,), (1, 0)), first_departure(model, (0,), (1, 1))
    (None, 'token 1 at position 1, an argmax of the target is 0')
    """
    for position, token in enumerate(text):
        law = target.next_token((*context, *text[:position])).tolist()
        if law[token] < max(law):
            likeliest = law.index(max(law))
            return f"token {token} at position {position}, an argmax of the target is {likeliest}"
    return None


def greedy_difference(target: Model, context: Tokens, text: Tokens, tokens: int) -> str | None:
    """How a text departs from greedy decoding; None if each of its tokens is an argmax.

    It has to have so many `tokens`, unless EOS comes before.

    Examples
    --------
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> tied = iid_model(Vocabulary("abc", eos="c"), ["2/5", "2/5", "1/5"])
    >>> [greedy_difference(tied, (), text, 2) for text in ((0, 1), (0,), (0, 2))]
    [None, 'ends after 1 of 2 tokens', 'token 2 at position 1, an argmax of the target is 0']
    """
    if found := first_departure(target, context, text):
        return found
    vocabulary = target.vocabulary
    if any(vocabulary.ends(text[:at]) for at in range(1, len(text))):
        return AFTER_EOS
    if len(text) != tokens and not (len(text) < tokens and vocabulary.ends(text)):
        return f"ends after {len(text)} of {tokens} tokens"
    return None


def judge_greedy(
    generate: Generate,
    target: Model,
    drafter: Model,
    contexts: Sequence[Tokens],
    *,
    tokens: int,
    seed: int,
) -> str | None:
    """Generate after every context: the first text that departs from greedy decoding, and how.

    None if every text is the target's own.
    """
    rng, give = np.random.default_rng(seed), giver(generate)
    models = as_float(target), as_float(drafter)
    for context in contexts:
        text = tuple(give((*models, context, tokens), rng))
        if why := greedy_difference(models[0], context, text, tokens):
            return f"after {context}: {text}: {why}"
    return None
