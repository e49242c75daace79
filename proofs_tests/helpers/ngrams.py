"""What calls of the target emit of a text, with learning-free drafts.

Exact match emits the target's own text whatever is drafted, so a text is all that this needs.
"""

from collections.abc import Sequence
from itertools import takewhile

from specref.algorithms.ngrams.drafts import Propose, mixed_drafts


def emitted_by_calls(
    strategies: Sequence[Propose],
    text: Sequence[int],
    drafts: int,
    lookahead: int,
    prompt: int = 0,
) -> list[int]:
    """How many tokens each call emits; the first `prompt` are given, and nothing is cut beyond."""
    tokens, calls = tuple(text), list[int]()
    propose, position = mixed_drafts(*strategies, drafts=drafts), min(prompt, len(tokens))
    while position < len(tokens):
        ahead = tokens[position:]
        matches = [
            len(list(takewhile(lambda pair: pair[0] == pair[1], zip(draft, ahead, strict=False))))
            for draft in propose(tokens[:position], lookahead)
        ]
        calls.append(min(max(matches, default=0) + 1, len(ahead)))
        position += calls[-1]
    return calls
