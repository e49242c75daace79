"""Mutants that are exact until every draft is accepted, or that end a block twice."""

from specref.chance import Chance
from specref.models import Model
from specref.vocabulary import Tokens
from specref.zoo.entry import Entry
from specref.zoo.parts.standard import Verification, argmax, residual_or_p, speculative
from specref.zoo.standard.printed import algorithm_5


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
