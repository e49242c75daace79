"""Planted bugs: steps of the zoo under the names of tests, and wrong formulas.

A check is worth something only if it rejects some of them. The names say what is wrong.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from specref.algorithms import slrs, standard
from specref.algorithms.decoding import Step
from specref.algorithms.lookahead import LookaheadRule, Stop
from specref.algorithms.standard import Draft, acceptance
from specref.chance import Chance, Sampled
from specref.distributions import Probabilities, Probability, normalise, residual, top_k
from specref.models import Model
from specref.theory import decompositions, fixed, proposals, psi
from specref.vocabulary import (
    Text,
    Tokens,
    UntokenisableError,
    Vocabulary,
    inexpressible,
    is_expressible,
)
from specref.zoo import ALL
from specref.zoo.parts.standard import speculative

always_accepted = ALL["always-accept-u0"].step
residual_is_target = ALL["residual-is-p"].step
residual_is_absolute = ALL["residual-abs"].step
lenient_with_its_residual = ALL["lenience-scaled-residual"].step
argmax_match = ALL["greedy-match"].step
residual_bonus = ALL["algorithm-5-as-printed"].step
drafter_bonus = ALL["bonus-from-drafter"].step
argmax_bonus = ALL["bonus-argmax"].step
one_coin = ALL["shared-u"].step
unlikely_draft_dropped = ALL["drop-low-probability-draft"].step
argmax_drafted_soft_q_tested = ALL["greedy-draft-soft-q"].step
foreign_draft_dropped = ALL["oov-draft-dropped"].step
intersection_drafted_raw_q_tested = ALL["tli-q-not-renormalised"].step
slem_first_match = ALL["slem-first-match"].step
slem_context_retokenised = ALL["slem-context-retokenised"].step
slem_proposal_kept = ALL["slem-output-retokenised"].step
slrs_first_psi_everywhere = ALL["slrs-psi-of-first-token"].step

lenient = speculative(accept=lambda at: min(2 * at.px / at.qx, 1))
stale_bonus = speculative(bonus=lambda at: at.to(0).p)
accepts_half = speculative(
    accept=lambda at: acceptance(at.p, at.q, at.token) * Fraction(1, 2),
    recover=lambda at: residual(at.p, np.minimum(at.p, at.q) / 2),
)


def top_3_declared_whole(q: Probabilities, chance: Chance, site: str) -> Draft:
    kept = normalise(np.where(q >= sorted(q)[-3], q, 0))
    return Draft(chance.draw(kept, site), q)


top_3_drafted_raw_q_tested = speculative(propose=top_3_declared_whole)


def drafter_token(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    return (chance.draw(drafter.next_token(context), "target[0]"),)


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
