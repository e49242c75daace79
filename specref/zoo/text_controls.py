"""Controls of SLEM and SLRS: poor proposals, other endings, and sub-laws declared as they are."""

from functools import lru_cache
from typing import cast

import numpy as np

from specref.algorithms import slem, slrs
from specref.algorithms.lookahead import fixed, until_determined
from specref.algorithms.standard import Draft
from specref.chance import Chance, exact_distribution
from specref.distributions import Probabilities
from specref.models import Model
from specref.vocabulary import Text, Tokens, Vocabulary
from specref.zoo.entry import Entry
from specref.zoo.parts.standard import verified
from specref.zoo.slem import matched, reencoded


def with_bos(target: Model, drafter: Model, context: Tokens) -> Tokens:
    """The context in drafter ids, after a token that is not in the text."""
    return (0, *reencoded(target, drafter, context))


def by_text(target: Model, context: Tokens, proposal: Tokens, chance: Chance) -> Tokens:
    """Target samples for as long as their text is the start of the proposed one."""
    decode, block = target.vocabulary.decode, cast(Tokens, ())
    for j in range(len(proposal) + 1):
        row = target.next_token((*context, *block))
        block = (*block, chance.draw(row, f"target[{j}]"))
        text, proposed = decode(block), decode(proposal)
        if text != proposed[: len(text)] or target.vocabulary.ends(block):
            break
    return block


def without_bonus(target: Model, context: Tokens, proposal: Tokens, chance: Chance) -> Tokens:
    """The block cut to the length of the proposal, at least one token."""
    return slem.match(target, context, proposal, chance)[: max(len(proposal), 1)]


def halved(vocabulary: Vocabulary, context: Tokens, text: Text) -> Tokens:
    """The first half of the proposal."""
    tokens = vocabulary.encode(text)
    return tokens[: len(tokens) // 2]


def backwards(vocabulary: Vocabulary, context: Tokens, text: Text) -> Tokens:
    """The proposal in reverse."""
    return vocabulary.encode(text)[::-1]


def exactly_spelled(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> list[Draft]:
    """The first token of the drafted text if some drafts spell exactly it, else nothing."""
    seen = reencoded(target, drafter, context)
    token = spelled(target.vocabulary, drafter, seen, lookahead, chance)
    return [Draft(token, law_of_spelled(target.vocabulary, drafter, seen, lookahead))]


def spelled(
    vocabulary: Vocabulary, drafter: Model, seen: Tokens, lookahead: int, chance: Chance
) -> int | None:
    """Draft; the first target token if the drafts up to its end spell exactly it."""
    stop, decode = fixed(vocabulary, drafter.vocabulary, lookahead), drafter.vocabulary.decode
    drafts = slem.draft(drafter, seen, stop, chance)
    starts = {decode(drafts[:k]) for k in range(1, len(drafts) + 1)}
    token = next(iter(vocabulary.encode(decode(drafts))), None)
    return token if token is not None and vocabulary.tokens[token] in starts else None


@lru_cache(maxsize=256)
def law_of_spelled(
    vocabulary: Vocabulary, drafter: Model, seen: Tokens, lookahead: int
) -> Probabilities:
    """What `spelled` returns, None left out."""
    law = exact_distribution(lambda c: spelled(vocabulary, drafter, seen, lookahead, c))
    zero = 0 * next(iter(law.values()))
    return np.array([law.get(token, zero) for token in range(len(vocabulary))])


ENTRIES = (
    Entry(
        "slem-context-with-bos",
        "vocabulary",
        formula="the draft model's context starts with a token that is not in the text",
        symptom="Each new encoding of the context puts another <s> into it.",
        hint="What is proposed never changes the distribution of what the target samples.",
        step=matched(read=with_bos),
        rule="slem",
        cites=("huggingface/transformers#46124",),
        lossless=True,
    ),
    Entry(
        "slem-match-by-text",
        "vocabulary",
        formula="target samples are kept while their text starts the proposed text",
        symptom="Looks like slem-prefix-match: texts are compared, not ids.",
        hint="What is emitted are the target's own tokens, in its own context.",
        step=matched(by_text),
        rule="slem",
        lossless=True,
    ),
    Entry(
        "slem-shorter-proposal",
        "vocabulary",
        formula="half of the proposal is dropped",
        symptom="Blocks are shorter than what was drafted.",
        hint="What is proposed never changes the distribution of what the target samples.",
        step=matched(propose=halved),
        rule="slem",
        lossless=True,
    ),
    Entry(
        "slem-proposal-backwards",
        "vocabulary",
        formula="the proposal is reversed, as a failed alignment might leave it",
        symptom="Next to nothing matches.",
        hint="What is proposed never changes the distribution of what the target samples.",
        step=matched(propose=backwards),
        rule="slem",
        lossless=True,
    ),
    Entry(
        "slem-no-bonus",
        "vocabulary",
        formula="after m matches no further target token is drawn",
        symptom="Fully matched blocks are one token short.",
        hint="The next iteration draws from the same row of the target.",
        step=matched(without_bonus),
        rule="slem",
        lossless=True,
    ),
    Entry(
        "slrs-single-token",
        "vocabulary",
        formula="one token per iteration: t_1 with min(1, p / psi), or norm((p - psi)+)",
        symptom="Every block has one token.",
        hint="It is Algorithm 3 with its missing otherwise, once.",
        step=slrs.single_token_step,
        rule="slrs",
        cites=("arXiv:2502.05202",),
        lossless=True,
    ),
    Entry(
        "slrs-ending-bonus",
        "vocabulary",
        formula="psi normalised without the text's end, the token after the last ~ p",
        symptom="Looks like slrs-end-ignored: the text's end has no row.",
        hint="Given that the text goes on, t_k has exactly the normalised distribution.",
        step=lambda *arguments: slrs.step(*arguments, ending="bonus"),
        rule="slrs",
        lossless=True,
    ),
    Entry(
        "slrs-stop-when-determined",
        "vocabulary",
        formula="drafting stops once t_1 is determined",
        symptom="The number of drafts depends on the drafts.",
        hint="psi is the distribution of what that very rule lets through.",
        step=lambda *arguments: slrs.step(*arguments, rule=until_determined),
        rule="slrs",
        cites=("arXiv:2502.05202",),
        lossless=True,
    ),
    Entry(
        "slrs-exact-decompositions-submitted",
        "vocabulary",
        formula="t_1 is submitted only if drafts spell exactly it, with that sub-distribution",
        symptom="Looks like slrs-exact-decompositions: overshooting drafts are not summed over.",
        hint="Overshooting drafts submit nothing, so the sub-distribution is that of the "
        "submitted token.",
        step=verified(exactly_spelled),
        rule="slrs",
        lossless=True,
    ),
)
