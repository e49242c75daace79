"""The pieces that samplers of the second attack share, all of them right.

Loops, steps, engines and requests of `ragged` are taken one token at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from specref import Model

Law = NDArray[np.floating]
Propose = Callable[[list[int], int], tuple[list[int], list[Law]]]


def drawn_by(weights: Law, uniform: float) -> int:
    """The token at which the sums of weights pass a uniform's share of their total."""
    ends = np.cumsum(weights)
    return int(np.searchsorted(ends, uniform * ends[-1], side="right"))


def draw(weights: Law, rng: np.random.Generator) -> int:
    token = drawn_by(weights, rng.random())
    return token if token < len(weights) else int(np.flatnonzero(weights)[-1])


def residual(p: Law, q: Law) -> Law:
    """(p - q)+, or p where rounding alone rejected."""
    left = np.maximum(p - q, 0)
    return left if left.any() else p


def one_hot(v: int, token: int) -> Law:
    law = np.zeros(v)
    law[token] = 1
    return law


def eos_of(model: Model) -> int | None:
    words = model.vocabulary
    return None if words.eos is None else words.ids[words.eos]


def verified(
    p_after: Callable[[list[int]], Law],
    laws: Sequence[Law],
    drafts: list[int],
    rng: np.random.Generator,
) -> tuple[list[int], int]:
    """The drafts that are kept, and the token after them."""
    for i, (x, q) in enumerate(zip(drafts, laws, strict=True)):
        p = p_after(drafts[:i])
        if rng.random() * q[x] >= p[x]:
            return drafts[:i], draw(residual(p, q), rng)
    return drafts, draw(p_after(drafts), rng)


def drafting(
    drafter: Model, context: Sequence[int], eos: int | None, rng: np.random.Generator
) -> Propose:
    """Drafts after a text and their laws: as many as asked for, fewer after EOS."""

    def propose(text: list[int], count: int) -> tuple[list[int], list[Law]]:
        drafts: list[int] = []
        laws: list[Law] = []
        while len(drafts) < count and not (drafts and drafts[-1] == eos):
            laws.append(drafter.next_token((*context, *text, *drafts)))
            drafts.append(draw(laws[-1], rng))
        return drafts, laws

    return propose


def ended(text: list[int], block: Sequence[int], tokens: int, eos: int | None) -> bool:
    """Appends a block up to EOS or the budget; whether one of them was reached."""
    for x in block:
        text.append(x)
        if x == eos or len(text) == tokens:
            return True
    return False


def decode(
    tokens: int,
    eos: int | None,
    rng: np.random.Generator,
    propose: Propose,
    p_of: Callable[[list[int], list[int]], Law],
    lookahead: int = 4,
) -> tuple[int, ...]:
    """A text; `p_of(text, drafts)` is the target's law after them."""
    text: list[int] = []
    while len(text) < tokens:
        drafts, laws = propose(text, min(lookahead, tokens - len(text) - 1))
        kept, last = verified(partial(p_of, text), laws, drafts, rng)
        if ended(text, (*kept, last), tokens, eos):
            break
    return tuple(text)


def ordinary(
    target: Model,
    drafter: Model,
    context: Sequence[int],
    tokens: int,
    rng: np.random.Generator,
    p_of: Callable[[list[int], list[int]], Law],
) -> tuple[int, ...]:
    """`decode` with drafts of the drafter."""
    eos = eos_of(target)
    return decode(tokens, eos, rng, drafting(drafter, context, eos, rng), p_of)


def greedy_text(
    tokens: int,
    eos: int | None,
    best_draft: Callable[[tuple[int, ...]], int],
    best: Callable[[tuple[int, ...]], int],
    context: Sequence[int],
    lookahead: int,
) -> tuple[int, ...]:
    """A text by argmax: a draft is kept if it is the target's."""
    text: list[int] = []
    while len(text) < tokens:
        drafts: list[int] = []
        while len(drafts) < min(lookahead, tokens - len(text) - 1):
            drafts.append(best_draft((*context, *text, *drafts)))
        matched(text, drafts, lambda: best((*context, *text)), tokens, eos)
        if text[-1] == eos:
            break
    return tuple(text)


def matched(
    text: list[int],
    drafts: Sequence[int],
    pick: Callable[[], int],
    tokens: int,
    eos: int | None,
) -> int:
    """Appends own tokens while they are the drafts, and one more; how many drafts were."""
    for hits, x in enumerate(drafts):
        own = pick()
        if ended(text, (own,), tokens, eos) or own != x:
            return hits + (own == x)
    ended(text, (pick(),), tokens, eos)
    return len(drafts)


def lookup(whole: Sequence[int], count: int, longest: int = 3) -> list[int]:
    """What followed the last tokens where they were seen last; longer matches first."""
    for size in range(min(longest, len(whole) - 1), 0, -1):
        for at in range(len(whole) - size - 1, -1, -1):
            if whole[at : at + size] == whole[-size:]:
                return list(whole[at + size : at + size + count])
    return []


def requests(ends: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Each request's number, the place of its first draft, and of the one after its last."""
    start = 0
    for request, end in enumerate(np.asarray(ends).tolist()):
        yield request, start, end
        start = end


def softmax(logits: Law, temperature: float = 1.0) -> Law:
    scaled = np.asarray(logits, dtype=np.float64) / temperature
    powers = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    law: Law = powers / powers.sum(axis=-1, keepdims=True)
    return law


def bfloat16(values: Law) -> NDArray[np.float32]:
    """Rounded to bfloat16, as float32."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    with np.errstate(over="ignore"):
        rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return (rounded & np.uint32(0xFFFF0000)).view(np.float32)
