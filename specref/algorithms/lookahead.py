"""Lookahead rules: when to stop drafting, as a function of the drafts alone.

Timor et al. 2025, section 3.3, "Lookahead". A rule maps the two vocabularies and a number to
a predicate on the drafts so far. Any such rule keeps SLRS lossless, because psi is the law of
what the rule lets through; a rule that also sees the verifier's coins would not.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from specref.vocabulary import Text, Tokens, Vocabulary

Stop: TypeAlias = Callable[[Tokens], bool]
LookaheadRule: TypeAlias = Callable[[Vocabulary, Vocabulary, int], Stop]


def positions(lookahead: int) -> range:
    """The draft positions 0 … lookahead - 1.

    Raises
    ------
    ValueError
        `lookahead` is negative or not an integer.
    """
    if isinstance(lookahead, bool) or not isinstance(lookahead, int) or lookahead < 0:
        raise ValueError(f"lookahead = {lookahead!r}: expected an integer >= 0")
    return range(lookahead)


def fixed(target: Vocabulary, drafter: Vocabulary, lookahead: int) -> Stop:
    """Stop after exactly n = `lookahead` drafts.

    The printed indicator ``S_1(i) := 1[i > n]`` draws n + 1; the same paragraph's general
    rule, and its example, stop at n.

    Examples
    --------
    >>> stop = fixed(Vocabulary("ab"), Vocabulary("ab"), 2)
    >>> [stop(drafts) for drafts in [(), (0,), (0, 1)]]
    [False, False, True]
    """
    n = len(positions(lookahead))
    return lambda drafts: len(drafts) >= n


def at_most_n_max(target: Vocabulary, drafter: Vocabulary, lookahead: int) -> Stop:
    """Stop after n = min(`lookahead`, n_max) drafts: more cannot change the first token."""
    return fixed(target, drafter, min(len(positions(lookahead)), n_max(target, drafter)))


def until_determined(target: Vocabulary, drafter: Vocabulary, lookahead: int) -> Stop:
    """Stop once the first target token is determined, after `lookahead` drafts at the latest.

    Examples
    --------
    >>> stop = until_determined(Vocabulary(["a", "b", "ab"]), Vocabulary("ab"), 5)
    >>> [stop(drafts) for drafts in [(), (0,), (1,), (0, 1)]]
    [False, False, True, True]
    """
    n = len(positions(lookahead))

    def stop(drafts: Tokens) -> bool:
        return len(drafts) >= n or not target.is_undetermined(drafter.decode(drafts))

    return stop


@lru_cache(maxsize=256)
def n_max(target: Vocabulary, drafter: Vocabulary) -> int:
    """How many drafts can be needed until the first target token is determined.

    Timor et al. 2025, section 3.3: one more than the most draft tokens that spell a proper
    prefix of a target token. Never more than the longest target token has characters.

    Raises
    ------
    ValueError
        The target's tokeniser normalises text, so prefixes determine nothing.

    Examples
    --------
    >>> drafter = Vocabulary(["hello_", "world", "wo", "rld"])
    >>> n_max(Vocabulary([*drafter.tokens, "hello_world"]), drafter)
    3
    """
    if target.normalise is not None:
        raise ValueError("n_max needs a target vocabulary without normalise")
    most: dict[Text, int] = {}
    for text in sorted(target.proper_prefixes, key=len):
        halves = [(text[:cut], text[cut:]) for cut in range(len(text))]
        counts = [most[head] + 1 for head, tail in halves if head in most and tail in drafter.ids]
        if counts or not text:
            most[text] = max(counts, default=0)
    return 1 + max(most.values())
