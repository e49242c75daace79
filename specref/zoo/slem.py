"""Mutants of string-level exact match: what is emitted is not the target's own sample."""

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from specref.algorithms import slem
from specref.algorithms.decoding import Step
from specref.algorithms.lookahead import fixed
from specref.chance import Chance
from specref.models import Model
from specref.vocabulary import Tokens, Vocabulary
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

ENTRIES = (
    Entry(
        "slem-fresh-resample",
        "vocabulary",
        formula="t ~ p is compared; on a mismatch another token is drawn from p",
        symptom="Proposed tokens are over-weighted: they have two chances.",
        hint="Emit the very t that was compared.",
        step=matched(resampled),
        rule="slem",
    ),
    Entry(
        "slem-prefix-match",
        "vocabulary",
        formula="the proposed token is emitted if its text starts with that of t ~ p",
        symptom="The target's short tokens are swallowed by the draft's longer ones.",
        hint="Compare token ids, and emit the target's token.",
        step=matched(matched_if(lambda sample, proposed: proposed.startswith(sample))),
        rule="slem",
        blind=SHORT,
        note="The one draft of unread starts no longer token.",
    ),
    Entry(
        "slem-first-character-match",
        "vocabulary",
        formula="the proposed token is emitted if it starts with the same character as t ~ p",
        symptom="Tokens that share a first character trade places, towards the draft's.",
        hint="Compare token ids, and emit the target's token.",
        step=matched(matched_if(lambda sample, proposed: proposed[:1] == sample[:1])),
        rule="slem",
    ),
    Entry(
        "slem-keeps-rest",
        "vocabulary",
        formula="after the first mismatch the rest of the proposal is kept",
        symptom="Text after a mismatch is the draft model's, unverified.",
        hint="End the block with the mismatch.",
        step=matched(kept),
        rule="slem",
        blind=SHORT,
        note="The one draft of unread leaves no rest.",
    ),
    Entry(
        "slem-first-match",
        "vocabulary",
        formula="j = argmin of (t'_j != t_j): the first match instead of the first mismatch",
        symptom="Proposed tokens before a match are emitted though the target chose others.",
        hint="Take the smallest j with t'_j != t_j, where t_(m+1) matches nothing.",
        step=line_10,
        rule="slem",
        cites=("arXiv:2502.05202",),
        blind=SHORT,
        note="Algorithm 2, line 10, by its formula, not its words. With one proposed token the "
        "sample is emitted.",
    ),
    Entry(
        "slem-context-retokenised",
        "vocabulary",
        formula="p(. | T(text of the context)) instead of p(. | context)",
        symptom="Exact while the target's tokens are those of its tokeniser; else another text.",
        hint="Keep the accepted ids; never take T of the text again.",
        step=matched(reread),
        rule="slem",
        cites=("arXiv:2502.05202",),
        blind=CANONICAL,
        note="Algorithm 2 read literally. Needs a context that the tokeniser would not write.",
    ),
    Entry(
        "slem-output-retokenised",
        "vocabulary",
        formula="the block emitted is T(text of the block)",
        symptom="The text is right, its tokens are not: the target goes on from other ids.",
        hint="Keep the accepted ids; never take T of the text again.",
        step=matched(rewritten),
        rule="slem",
        cites=("huggingface/transformers#33383",),
    ),
)
