"""Mutants of a block's last token, residual or bonus.

In place of a rejected draft comes a draw from something other than norm((p - q)+); or all is exact
until every draft is accepted, or a block ends twice.
"""

import numpy as np

from specref.chance import Chance
from specref.distributions import Probabilities, normalise
from specref.models import Model
from specref.vocabulary import Tokens
from specref.zoo.entry import Entry
from specref.zoo.parts.standard import (
    Position,
    Verification,
    argmax,
    one_hot,
    residual_or_p,
    speculative,
)
from specref.zoo.standard.printed import algorithm_5


def first_order_softmax(at: Position) -> Probabilities:
    """The softmax of (p - q)+ with exp(v) replaced by 1 + v, to stay rational."""
    return normalise(1 + np.maximum(at.p - at.q, 0))


def deficit_on_last(at: Position) -> Probabilities:
    """What a uniform on [0, 1) finds in the cumulative sum of (p - q)+, clamped to the last id."""
    excess: Probabilities = np.maximum(at.p - at.q, 0)
    excess[-1] += 1 - excess.sum()
    return excess


def deficit_on_least_likely(at: Position) -> Probabilities:
    """The same over tokens sorted by p, as top-k leaves them: clamped to the least likely."""
    excess: Probabilities = np.maximum(at.p - at.q, 0)
    kept = np.flatnonzero(at.p)
    excess[kept[at.p[kept].argmin()]] += 1 - excess.sum()
    return excess


def deficit_on_first(at: Position) -> Probabilities:
    """The same where nothing found is read as index 0, as argmax reads it."""
    excess: Probabilities = np.maximum(at.p - at.q, 0)
    excess[0] += 1 - excess.sum()
    return excess


def recovered_and_bonus(v: Verification) -> Tokens:
    """Emit the recovered token, then the bonus token as well."""
    accepted = v.prefix()
    block = v.block(accepted)
    return block if accepted == v.n else v.until_eos((*block, v.bonus_token()))


def one_unsubmitted(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    """Submit all drafts but the last, and subtract its row from the bonus token's."""
    step = speculative(bonus=lambda at: residual_or_p(at.p, at.q))
    return step(target, drafter, context, max(lookahead - 1, 0), chance)


ENTRIES = (
    Entry(
        "residual-is-p",
        "residual",
        formula="recovered token ~ p",
        symptom="Tokens that the draft model likes are over-weighted: they were offered already.",
        hint="Subtract q before drawing.",
        step=speculative(recover=lambda at: at.p),
        cites=("romsto/Speculative-Decoding", "ShopeeLLM/Spec-RL#14"),
    ),
    Entry(
        "residual-abs",
        "residual",
        formula="recovered token ~ norm(|p - q|)",
        symptom="Tokens with q > p come back after they were rejected.",
        hint="Clamp the difference at zero instead of taking its absolute value.",
        step=speculative(recover=lambda at: normalise(abs(at.p - at.q))),
    ),
    Entry(
        "residual-softmax-first-order",
        "residual",
        formula="recovered token ~ norm(1 + (p - q)+), a rational stand-in for softmax((p - q)+)",
        symptom="Nearly uniform tokens after a rejection, impossible ones among them.",
        hint="Divide (p - q)+ by its sum; it is a probability already, not a logit.",
        step=speculative(recover=first_order_softmax),
        cites=("huggingface/transformers#28508",),
        note="The reported code has exp where this has 1 + v; the exact distribution would be "
        "irrational.",
    ),
    Entry(
        "residual-zero-drafted-only",
        "residual",
        formula="recovered token ~ norm(p without x), after a test with p / q",
        symptom="Other tokens that the draft model likes are over-weighted.",
        hint="Zero x alone only if the test was p(x), the one of a one-hot q.",
        step=speculative(recover=lambda at: normalise(at.p - one_hot(at.token, at.p) * at.px)),
        cites=("SafeAILab/EAGLE#20",),
    ),
    Entry(
        "residual-unnormalised-cdf",
        "residual",
        formula="recovered token by u in [0, 1) on the cumulative sum of (p - q)+, or V - 1",
        symptom="The last token id comes out far too often.",
        hint="Scale u by the sum of the residual.",
        step=speculative(recover=deficit_on_last),
    ),
    Entry(
        "residual-unnormalised-sorted",
        "residual",
        formula="tokens sorted by p; recovered by u in [0, 1) on the sum of (p - q)+, or the last",
        symptom="The least likely token that top-k or top-p keeps comes out far too often.",
        hint="Scale u by the sum of the residual.",
        step=speculative(recover=deficit_on_least_likely),
    ),
    Entry(
        "residual-unnormalised-argmax",
        "residual",
        formula="recovered token = argmax of cumulative sum of (p - q)+ > u, u in [0, 1)",
        symptom="Token 0 comes out far too often: it stands for nothing found.",
        hint="Scale u by the sum of the residual.",
        step=speculative(recover=deficit_on_first),
    ),
    Entry(
        "residual-row-off-by-one",
        "residual",
        formula="recovered token ~ norm((p_(i+1) - q_(i+1))+)",
        symptom="Exact while rows are alike; biased where the next token depends on this one.",
        hint="Index the residual with the position of the rejection, not of the token after it.",
        step=speculative(recover=lambda at: residual_or_p(at.next.p, at.next.q)),
        cites=("NVIDIA/TensorRT-LLM#15098",),
        blind=frozenset({"m"}),
        note="The rows of m are all alike.",
    ),
    Entry(
        "residual-q-row-off-by-one",
        "residual",
        formula="recovered token ~ norm((p_i - q_(i+1))+)",
        symptom="Acceptance is exact, the replaced token is not.",
        hint="Slice p and q by the same index.",
        step=speculative(recover=lambda at: residual_or_p(at.p, at.next.q)),
        blind=frozenset({"m"}),
        note="The rows of m are all alike.",
    ),
    Entry(
        "residual-is-q",
        "residual",
        formula="recovered token ~ q",
        symptom="A rejected token can come straight back.",
        hint="Draw from what the target has in excess of the draft model.",
        step=speculative(recover=lambda at: at.q),
    ),
    Entry(
        "residual-reversed",
        "residual",
        formula="recovered token ~ norm((q - p)+)",
        symptom="Only tokens that the target wants less of come out after a rejection.",
        hint="Subtract the draft model from the target, not the other way round.",
        step=speculative(recover=lambda at: residual_or_p(at.q, at.p)),
    ),
    Entry(
        "residual-argmax",
        "residual",
        formula="recovered token = argmax (p - q)",
        symptom="After a rejection always the same token.",
        hint="Sample the residual unless the target decodes greedily.",
        step=speculative(recover=lambda at: argmax(residual_or_p(at.p, at.q))),
        cites=("romsto/Speculative-Decoding",),
        note="Needs a residual with two tokens or more.",
    ),
    Entry(
        "algorithm-5-as-printed",
        "bonus",
        formula="last token ~ norm((p_n - q_n)+) even if every draft was accepted",
        symptom="First n tokens exact, the next one biased against the draft model; 0 / 0 when "
        "q = p.",
        hint="Draw the bonus token from p_n: no other distribution is lossless.",
        step=algorithm_5,
        cites=("arXiv:2502.05202",),
    ),
    Entry(
        "bonus-from-stale-residual",
        "bonus",
        formula="bonus token ~ norm((p_n - q_(n-1))+)",
        symptom="First n tokens exact, the bonus token biased against the last draft's row.",
        hint="Reset the adjusted row after each accepted draft.",
        step=speculative(bonus=lambda at: residual_or_p(at.p, at.previous.q)),
        cites=("SafeAILab/EAGLE#47", "SafeAILab/EAGLE#50"),
    ),
    Entry(
        "bonus-from-drafter",
        "bonus",
        formula="bonus token ~ q_n",
        symptom="First n tokens exact, the bonus token is the draft model's.",
        hint="Draw the bonus token from the target's row n.",
        step=speculative(bonus=lambda at: at.q),
    ),
    Entry(
        "bonus-wrong-row",
        "bonus",
        formula="bonus token ~ p_(n-1)",
        symptom="Exact while rows are alike; otherwise the bonus token ignores the last draft.",
        hint="Verify n + 1 rows, and take the last.",
        step=speculative(bonus=lambda at: at.previous.p),
        cites=("huggingface/transformers#28166", "vllm-project/tpu-inference#514"),
        blind=frozenset({"m"}),
        note="The rows of m are all alike.",
    ),
    Entry(
        "bonus-argmax",
        "bonus",
        formula="bonus token = argmax p_n",
        symptom="Every fully accepted block ends greedily.",
        hint="Give the bonus token the sampler of all other tokens.",
        step=speculative(bonus=lambda at: argmax(at.p)),
        cites=("shreyansh26/Speculative-Decoding",),
    ),
    Entry(
        "bonus-plus-recovered",
        "bonus",
        formula="after a rejection: the recovered token, then a bonus token ~ p_n",
        symptom="One token too many after a rejection, in a context that was rejected.",
        hint="Emit the bonus token only if every draft was accepted.",
        step=speculative(verify=recovered_and_bonus),
        cites=("vllm-project/vllm#8320",),
        blind=frozenset({"m"}),
        note="The rows of m are all alike, so any context will do.",
    ),
    Entry(
        "bonus-always",
        "bonus",
        formula="after a rejection: the bonus token ~ p_n instead of the recovered one",
        symptom="The token after a rejection is drawn in a context that was rejected.",
        hint="Replace the first rejected draft from its own residual.",
        step=speculative(recover=lambda at: at.last.p),
    ),
    Entry(
        "truncated-bonus-from-residual",
        "bonus",
        formula="n - 1 of n drafts submitted, bonus token ~ norm((p_(n-1) - q_(n-1))+)",
        symptom="The unsubmitted draft is treated as if it had been rejected.",
        hint="A draft that was never tested leaves no residual: draw from p.",
        step=one_unsubmitted,
    ),
)
