"""Mutants of string-level exact match: what is emitted is not the target's own sample."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, cast

from specref.algorithms import slem
from specref.algorithms.decoding import Step
from specref.algorithms.lookahead import fixed
from specref.chance import Chance
from specref.models import Model
from specref.vocabulary import Text, Tokens, Vocabulary
from specref.zoo.entry import Entry

Match: TypeAlias = Callable[[Model, Tokens, Tokens, Chance], Tokens]
Read: TypeAlias = Callable[[Model, Model, Tokens], Tokens]


def reencoded(target: Model, drafter: Model, context: Tokens) -> Tokens:
    """The context's text in drafter ids."""
    return drafter.vocabulary.encode(target.vocabulary.decode(context))


def matched(
    match: Match = slem.match, *, read: Read = reencoded, propose: slem.Propose = slem.retokenised
) -> Step:
    """`slem.step` with another reading of the context, proposal, or match."""

    def step(
        target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> Tokens:
        stop = fixed(target.vocabulary, drafter.vocabulary, lookahead)
        seen = read(target, drafter, context)
        text = drafter.vocabulary.decode(slem.draft(drafter, seen, stop, chance))
        return match(target, context, propose(target.vocabulary, context, text), chance)

    return step


def matched_if(same: Callable[[Any, Any], bool]) -> Match:
    """Keep the proposed token wherever its text is the same as the sample's, in some sense."""

    def match(target: Model, context: Tokens, proposal: Tokens, chance: Chance) -> Tokens:
        texts, block = target.vocabulary.tokens, cast(Tokens, ())
        for j, proposed in enumerate(proposal):
            token = chance.draw(target.next_token((*context, *block)), f"target[{j}]")
            if not same(texts[token], texts[proposed]):
                return (*block, token)
            block = (*block, proposed)
            if target.vocabulary.ends(block):
                return block
        return (*block, chance.draw(target.next_token((*context, *block)), "target"))

    return match


def resampled(target: Model, context: Tokens, proposal: Tokens, chance: Chance) -> Tokens:
    """Match, then replace the first mismatch by another draw from the same row."""
    block = slem.match(target, context, proposal, chance)
    if block == proposal[: len(block)] or len(block) > len(proposal):
        return block
    again = chance.draw(target.next_token((*context, *block[:-1])), "again")
    return (*block[:-1], again)


def kept(target: Model, context: Tokens, proposal: Tokens, chance: Chance) -> Tokens:
    """Match, then append the proposed tokens after the mismatch."""
    block = slem.match(target, context, proposal, chance)
    return block if target.vocabulary.ends(block) else (*block, *proposal[len(block) :])


def first_match(target: Model, context: Tokens, proposal: Tokens, chance: Chance) -> Tokens:
    """Line 10 read literally: j is the first match, and the first position if there is none."""
    row = target.next_token
    samples = tuple(
        chance.draw(row((*context, *proposal[:j])), f"target[{j}]")
        for j in range(len(proposal) + 1)
    )
    hits = [j for j, token in enumerate(proposal) if samples[j] == token]
    j = hits[0] if hits else 0
    return (*proposal[:j], samples[j])


def reread(target: Model, context: Tokens, proposal: Tokens, chance: Chance) -> Tokens:
    """Match against a target whose context is tokenised anew from its text."""
    vocabulary = target.vocabulary

    def next_token(seen: Tokens) -> Any:
        return target.next_token(vocabulary.encode(vocabulary.decode(seen)))

    return slem.match(Model(vocabulary, next_token), context, proposal, chance)


def rewritten(target: Model, context: Tokens, proposal: Tokens, chance: Chance) -> Tokens:
    """Match, then emit the block's text, tokenised anew."""
    vocabulary: Vocabulary = target.vocabulary
    return vocabulary.encode(vocabulary.decode(slem.match(target, context, proposal, chance)))


line_10 = matched(first_match)
"""Algorithm 2 of Timor et al. 2025 by the formula of its line 10, to be refuted."""

SHORT = frozenset({"unread"})
CANONICAL = frozenset({"pieces", "letters", "text end"})


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


of_slem = partial(Entry, stage="vocabulary", rule="slem")
ENTRIES = (
    of_slem(
        "slem-fresh-resample",
        formula="t ~ p is compared; on a mismatch another token is drawn from p",
        symptom="Proposed tokens are over-weighted: they have two chances.",
        hint="Emit the very t that was compared.",
        step=matched(resampled),
    ),
    of_slem(
        "slem-prefix-match",
        formula="the proposed token is emitted if its text starts with that of t ~ p",
        symptom="The target's short tokens are swallowed by the draft's longer ones.",
        hint="Compare token ids, and emit the target's token.",
        step=matched(matched_if(lambda sample, proposed: proposed.startswith(sample))),
        blind=SHORT,
        note="The one draft of unread starts no longer token.",
    ),
    of_slem(
        "slem-first-character-match",
        formula="the proposed token is emitted if it starts with the same character as t ~ p",
        symptom="Tokens that share a first character trade places, towards the draft's.",
        hint="Compare token ids, and emit the target's token.",
        step=matched(matched_if(lambda sample, proposed: proposed[:1] == sample[:1])),
    ),
    of_slem(
        "slem-keeps-rest",
        formula="after the first mismatch the rest of the proposal is kept",
        symptom="Text after a mismatch is the draft model's, unverified.",
        hint="End the block with the mismatch.",
        step=matched(kept),
        blind=SHORT,
        note="The one draft of unread leaves no rest.",
    ),
    of_slem(
        "slem-first-match",
        formula="j = argmin of (t'_j != t_j): the first match instead of the first mismatch",
        symptom="Proposed tokens before a match are emitted though the target chose others.",
        hint="Take the smallest j with t'_j != t_j, where t_(m+1) matches nothing.",
        step=line_10,
        cites=("arXiv:2502.05202",),
        blind=SHORT,
        note="Algorithm 2, line 10, by its formula, not its words. With one proposed token the "
        "sample is emitted.",
    ),
    of_slem(
        "slem-context-retokenised",
        formula="p(. | T(text of the context)) instead of p(. | context)",
        symptom="Exact while the target's tokens are those of its tokeniser; else another text.",
        hint="Keep the accepted ids; never take T of the text again.",
        step=matched(reread),
        cites=("arXiv:2502.05202",),
        blind=CANONICAL,
        note="Algorithm 2 read literally. Needs a context that the tokeniser would not write.",
    ),
    of_slem(
        "slem-output-retokenised",
        formula="the block emitted is T(text of the block)",
        symptom="The text is right, its tokens are not: the target goes on from other ids.",
        hint="Keep the accepted ids; never take T of the text again.",
        step=matched(rewritten),
        cites=("huggingface/transformers#33383",),
    ),
)
CONTROLS = (
    of_slem(
        "slem-context-with-bos",
        formula="the draft model's context starts with a token that is not in the text",
        symptom="Each new encoding of the context puts another <s> into it.",
        hint="What is proposed never changes the distribution of what the target samples.",
        step=matched(read=with_bos),
        cites=("huggingface/transformers#46124",),
        lossless=True,
    ),
    of_slem(
        "slem-match-by-text",
        formula="target samples are kept while their text starts the proposed text",
        symptom="Looks like slem-prefix-match: texts are compared, not ids.",
        hint="What is emitted are the target's own tokens, in its own context.",
        step=matched(by_text),
        lossless=True,
    ),
    of_slem(
        "slem-shorter-proposal",
        formula="half of the proposal is dropped",
        symptom="Blocks are shorter than what was drafted.",
        hint="What is proposed never changes the distribution of what the target samples.",
        step=matched(propose=halved),
        lossless=True,
    ),
    of_slem(
        "slem-proposal-backwards",
        formula="the proposal is reversed, as a failed alignment might leave it",
        symptom="Next to nothing matches.",
        hint="What is proposed never changes the distribution of what the target samples.",
        step=matched(propose=backwards),
        lossless=True,
    ),
    of_slem(
        "slem-no-bonus",
        formula="after m matches no further target token is drawn",
        symptom="Fully matched blocks are one token short.",
        hint="The next iteration draws from the same row of the target.",
        step=matched(without_bonus),
        lossless=True,
    ),
)
