"""Planted bugs: wrong steps and formulas, each a small patch of a right one.

A check is worth something only if it rejects some of them. The names say what is wrong.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from specref.algorithms import slem, slrs, standard, tli, union
from specref.algorithms.decoding import Step
from specref.algorithms.lookahead import LookaheadRule, Stop
from specref.algorithms.standard import Draft, acceptance
from specref.chance import Chance, Sampled
from specref.distributions import Probabilities, Probability, normalise, relabel, residual, top_k
from specref.models import Model
from specref.theory import decompositions, fixed, proposals, psi
from specref.vocabulary import (
    Text,
    Tokens,
    UntokenisableError,
    Vocabulary,
    inexpressible,
    intersection,
    is_expressible,
)

Rule = Callable[[Probabilities, Probabilities], Probabilities]


def verify(
    target: Model,
    context: Tokens,
    drafts: list[Draft],
    chance: Chance,
    accept: Callable[[Probabilities, Probabilities, int], Probability] = acceptance,
    correct: Rule = residual,
    bonus: Callable[[Tokens], Probabilities] | None = None,
) -> Tokens:
    """`standard.verify` with holes for the bugs; without patches it is right."""
    block: Tokens = ()
    for i, (token, q) in enumerate(drafts):
        p = target.next_token((*context, *block))
        if token is None or not chance.accept(accept(p, q, token), f"accept[{i}]"):
            return (*block, chance.draw(correct(p, q), "residual"))
        block = (*block, token)
        if target.vocabulary.ends(block):
            return block
    return (*block, chance.draw((bonus or target.next_token)((*context, *block)), "bonus"))


def standard_with(**patches: Any) -> Step:
    def step(
        target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> Tokens:
        drafts = standard.draft(drafter, context, lookahead, chance)
        return verify(target, context, drafts, chance, **patches)

    return step


def one_hot(token: int, like: Probabilities) -> Probabilities:
    hot = like * 0
    hot[token] += 1
    return hot


def drafter_token(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    return (chance.draw(drafter.next_token(context), "target[0]"),)


always_accepted = standard_with(accept=lambda p, q, token: 1)
residual_is_target = standard_with(correct=lambda p, q: p)
residual_is_absolute = standard_with(correct=lambda p, q: normalise(abs(p - q)))
lenient = standard_with(accept=lambda p, q, token: min(2 * p[token] / q[token], 1))
lenient_with_its_residual = standard_with(
    accept=lambda p, q, token: min(2 * p[token] / q[token], 1),
    correct=lambda p, q: residual(p, q / 2),
)
argmax_match = standard_with(
    accept=lambda p, q, token: int(token == np.argmax(p)), correct=lambda p, q: p
)
accepts_half = standard_with(
    accept=lambda p, q, token: acceptance(p, q, token) * Fraction(1, 2),
    correct=lambda p, q: residual(p, np.minimum(p, q) / 2),
)


def residual_bonus(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    drafts = standard.draft(drafter, context, lookahead, chance)
    return verify(
        target,
        context,
        drafts,
        chance,
        bonus=lambda seen: residual(target.next_token(seen), drafter.next_token(seen)),
    )


def drafter_bonus(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    drafts = standard.draft(drafter, context, lookahead, chance)
    return verify(target, context, drafts, chance, bonus=drafter.next_token)


def argmax_bonus(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    def likeliest(seen: Tokens) -> Probabilities:
        p = target.next_token(seen)
        return one_hot(int(np.argmax(p)), p)

    drafts = standard.draft(drafter, context, lookahead, chance)
    return verify(target, context, drafts, chance, bonus=likeliest)


def stale_bonus(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    drafts = standard.draft(drafter, context, lookahead, chance)
    return verify(target, context, drafts, chance, bonus=lambda seen: target.next_token(context))


def one_coin(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    lowest = [Fraction(1)]

    def accept(p: Probabilities, q: Probabilities, token: int) -> Probability:
        lowest.append(min(lowest[-1], acceptance(p, q, token)))
        return lowest[-1] / lowest[-2]

    drafts = standard.draft(drafter, context, lookahead, chance)
    return verify(target, context, drafts, chance, accept=accept)


def unlikely_draft_dropped(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    drafts = standard.draft(drafter, context, lookahead, chance)
    kept = [draft for draft in drafts if draft.q[draft.token] >= Fraction(1, 4)]
    return verify(target, context, kept, chance)


def top_3_drafted_raw_q_tested(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    q = drafter.next_token(context)
    kept = normalise(np.where(q >= sorted(q)[-3], q, 0))
    return verify(target, context, [Draft(chance.draw(kept, "draft[0]"), q)], chance)


def argmax_drafted_soft_q_tested(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    q = drafter.next_token(context)
    return verify(target, context, [Draft(int(np.argmax(q)), q)], chance)


def foreign_draft_dropped(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    drafts = union.draft(target, drafter, context, lookahead, chance)
    shared = [draft for draft in drafts if draft.token is not None]
    return verify(target, context, shared, chance)


def intersection_drafted_raw_q_tested(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    shared = intersection(target.vocabulary, drafter.vocabulary)
    raw: list[Draft] = []
    for token, _ in tli.draft(target, drafter, context, lookahead, chance):
        seen = union.read(target, drafter, (*context, *(draft.token for draft in raw)))
        q = relabel(drafter.next_token(seen), shared, len(target.vocabulary))
        raw.append(Draft(token, q))
    return verify(target, context, raw, chance)


def first_match(target: Model, context: Tokens, proposal: Tokens, chance: Chance) -> Tokens:
    samples: Tokens = ()
    for j in range(len(proposal) + 1):
        p = target.next_token((*context, *proposal[:j]))
        samples = (*samples, chance.draw(p, f"target[{j}]"))
    matches = [j for j, token in enumerate(proposal) if samples[j] == token]
    j = matches[0] if matches else 0
    return (*proposal[:j], samples[j])


def slem_first_match(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    seen = drafter.vocabulary.encode(target.vocabulary.decode(context))
    stop = fixed(target.vocabulary, drafter.vocabulary, lookahead)
    text = drafter.vocabulary.decode(slem.draft(drafter, seen, stop, chance))
    return first_match(target, context, target.vocabulary.encode(text), chance)


def slem_context_retokenised(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    again = target.vocabulary.encode(target.vocabulary.decode(context))
    return slem.step(target, drafter, again, lookahead, chance)


def slem_proposal_kept(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    block = slem.step(target, drafter, context, lookahead, chance)
    return target.vocabulary.encode(target.vocabulary.decode(block))


def slrs_first_psi_everywhere(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    tokens, laws = slrs.propose(target, drafter, context, lookahead, chance, fixed)
    return verify(target, context, [Draft(token, laws[()]) for token in tokens], chance)


def slrs_single_with(law: Callable[..., Probabilities], rule: LookaheadRule = fixed) -> Step:
    """Algorithm 3 with another law in the place of psi."""

    def step(
        target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> Tokens:
        (token, *_), _ = slrs.propose(target, drafter, context, lookahead, chance, rule)
        p, q = target.next_token(context), law(target.vocabulary, drafter, context, lookahead)
        if chance.accept(acceptance(p, q, token), "accept[0]"):
            return (token,)
        return (chance.draw(residual(p, q), "residual"),)

    return step


def psi_by_decompositions(
    vocabulary: Vocabulary, drafter: Model, context: Tokens = (), lookahead: int = 1
) -> Probabilities:
    law = np.full(len(vocabulary), Fraction(0))
    for token, text in enumerate(vocabulary.tokens):
        for spelling in decompositions(text, drafter.vocabulary):
            law[token] += path_weight(drafter, context, spelling)
    return law


def path_weight(drafter: Model, context: Tokens, drafts: Tokens) -> Probability:
    weight: Probability = Fraction(1)
    for i, token in enumerate(drafts):
        weight *= drafter.next_token((*context, *drafts[:i]))[token]
    return weight


def psi_of_fixed_q(
    vocabulary: Vocabulary, drafter: Model, context: Tokens = (), lookahead: int = 1
) -> Probabilities:
    q = drafter.next_token(context)
    return psi(vocabulary, Model(drafter.vocabulary, lambda _: q), context, lookahead)


def one_draft_more(target: Vocabulary, drafter: Vocabulary, lookahead: int) -> Stop:
    return fixed(target, drafter, lookahead + 1)


slrs_psi_by_decompositions = slrs_single_with(psi_by_decompositions)
slrs_psi_of_fixed_q = slrs_single_with(psi_of_fixed_q)
slrs_one_draft_more = slrs_single_with(psi, rule=one_draft_more)


def slrs_falls_through(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    p, q = target.next_token(context), psi(target.vocabulary, drafter, context, lookahead)
    return (chance.draw(residual(p, q), "residual"),)


def longer_of_two(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    blocks = [standard.step(target, drafter, context, lookahead, chance) for _ in range(2)]
    return max(blocks, key=len)


def proposals_forgetting_context(
    vocabulary: Vocabulary, drafter: Model, context: Tokens, lookahead: int
) -> dict[Tokens, Probability]:
    return proposals(vocabulary, drafter, (), lookahead)


def stop_at_first_draft(target: Vocabulary, drafter: Vocabulary, lookahead: int) -> Stop:
    return fixed(target, drafter, min(lookahead, 1))


def shortest_match(vocabulary: Vocabulary, text: str) -> Tokens:
    encoded: Tokens = ()
    while text:
        lengths = [n for n in range(1, len(text) + 1) if text[:n] in vocabulary.ids]
        if not lengths:
            raise UntokenisableError(f"cannot tokenise {text!r}")
        encoded, text = (*encoded, vocabulary.ids[text[: lengths[0]]]), text[lengths[0] :]
    return encoded


def first_inexpressible(source: Vocabulary, vocabulary: Vocabulary) -> Text | None:
    return next(iter(inexpressible(source, vocabulary)), None)


def greedy_decomposition(text: Text, vocabulary: Vocabulary) -> tuple[Tokens, ...]:
    return (vocabulary.encode(text),) if is_expressible(text, vocabulary) else ()


class LeftSearch(Sampled):
    """Inverse CDF with the wrong side: at u = 0 it draws a token of probability 0."""

    def choose(self, weights: Sequence[Probability] | Probabilities, site: str) -> int:
        cumulative = np.cumsum(np.asarray(weights, dtype=np.float64))
        return int(np.searchsorted(cumulative, self.rng.random(), side="left"))


class SquaredUniforms:
    """Uniforms squared: small numbers come out too often."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def random(self) -> float:
        return float(self.rng.random() ** 2)


def top_k_with_ties_to_the_higher_id(p: Probabilities, k: int) -> Probabilities:
    return top_k(p[::-1], k)[::-1]


def top_p_without_the_crossing_token(p: Probabilities, mass: Probability) -> Probabilities:
    ranked = sorted(range(len(p)), key=lambda token: (-p[token], token))
    kept = p * 0
    for token in ranked:
        if not kept.any() or kept.sum() + p[token] <= mass:
            kept[token] = p[token]
    return normalise(kept)
