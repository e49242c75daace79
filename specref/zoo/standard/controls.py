"""Controls: an unusual drafter, whose declared q is the law of the draft, verifier, or length."""

from fractions import Fraction
from functools import partial

import numpy as np

from specref.algorithms import standard
from specref.algorithms.standard import Draft
from specref.chance import Chance
from specref.distributions import Probabilities, normalise, top_k, with_temperature
from specref.models import Model
from specref.vocabulary import Tokens
from specref.zoo.entry import Entry
from specref.zoo.parts.standard import Verification, argmax, one_hot, sampled, speculative
from specref.zoo.standard.context import P_MIN, lagging
from specref.zoo.standard.draft import SHARP

HALF = Fraction(1, 2)


def sampled_as_one_hot(q: Probabilities, chance: Chance, site: str) -> Draft:
    """A token of q, declared as if nothing else had been possible."""
    token = chance.draw(q, site)
    return Draft(token, one_hot(token, q))


def filtered(q: Probabilities, chance: Chance, site: str) -> Draft:
    """A token of q restricted to q >= 1/4 and renormalised."""
    kept = np.where(q >= P_MIN, q, q * 0)
    return sampled(normalise(kept) if kept.any() else q, chance, site)


def unfiltered(q: Probabilities, chance: Chance, site: str) -> Draft:
    """A token of q, submitted only if q(x) >= 1/4, with the sub-probability that results."""
    token, kept = chance.draw(q, site), np.where(q >= P_MIN, q, q * 0)
    return Draft(token if kept[token] > 0 else None, kept)


def unlikely(drafts: list[Draft], chance: Chance) -> bool:
    """Whether the latest draft had q(x) < 1/4."""
    token, q = drafts[-1]
    return bool(q[token] < P_MIN)


def sample_and_match(v: Verification) -> Tokens:
    """Draw the target's own tokens for as long as they are the drafted ones."""
    for i, token in enumerate(v.first.last.before):
        at = v.first.to(i)
        own = at.chance.draw(at.p, f"target[{i}]")
        if own != token:
            return (*at.before, own)
    return v.block(v.n)


def without_bonus(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    """The block cut to `lookahead` tokens, at least one."""
    return standard.step(target, drafter, context, lookahead, chance)[: max(lookahead, 1)]


def random_lookahead(
    target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
) -> Tokens:
    """A lookahead of 0 to `lookahead`, uniformly, chosen before anything is drafted."""
    uniform = np.full(lookahead + 1, Fraction(1, lookahead + 1))
    return standard.step(target, drafter, context, chance.draw(uniform, "lookahead"), chance)


lossless = partial(Entry, lossless=True)
ENTRIES = (
    lossless(
        "one-hot-q-argmax-draft",
        "draft",
        formula="x = argmax q, declared q = one-hot(x)",
        symptom="Looks like greedy-draft-soft-q: the draft model's probabilities are thrown away.",
        hint="The one-hot q is the distribution of x; p(x) accepts, and p without x recovers.",
        step=speculative(
            propose=lambda q, chance, site: Draft(int(np.argmax(q)), argmax(q)),
        ),
        cites=("SafeAILab/EAGLE#183", "SafeAILab/EAGLE#221", "sgl-project/sglang#9877"),
    ),
    lossless(
        "one-hot-q-sampled-draft",
        "draft",
        formula="x ~ q, declared q = one-hot(x)",
        symptom="The declared distribution is not the one that was drawn from.",
        hint="For each x alone the distribution is p, so it is p for any x independent of the "
        "random numbers.",
        step=speculative(propose=sampled_as_one_hot),
        cites=("vllm-project/vllm#40149", "vllm-project/vllm#16899", "SafeAILab/EAGLE#93"),
    ),
    lossless(
        "draft-temperature-declared",
        "draft",
        formula="x ~ norm(q^2), declared norm(q^2)",
        symptom="The draft model has another temperature than the target.",
        hint="q is arbitrary as long as it is the distribution of x.",
        step=speculative(propose=lambda q, *at: sampled(with_temperature(q, SHARP), *at)),
        cites=("vllm-project/vllm#10198", "NVIDIA/TensorRT-LLM#15775"),
    ),
    lossless(
        "draft-top-k-declared",
        "draft",
        formula="x ~ top-2(q), declared top-2(q)",
        symptom="The draft model cannot propose every token.",
        hint="What it cannot propose stays in the residual.",
        step=speculative(propose=lambda q, *at: sampled(top_k(q, 2), *at)),
        cites=("NVIDIA/TensorRT-LLM#15775",),
    ),
    lossless(
        "filter-before-sampling",
        "draft",
        formula="x ~ norm(q 1[q >= 1/4]), declared as such",
        symptom="Looks like drop-low-probability-draft: unlikely drafts never appear.",
        hint="The filter acts on the distribution before the draw, not on the token after it.",
        step=speculative(propose=filtered),
    ),
    lossless(
        "discard-declared",
        "length",
        formula="x with q(x) < 1/4 is discarded, then residual (p - q 1[q >= 1/4])+",
        symptom="Looks like drop-low-probability-draft: the token is evaluated, then dropped.",
        hint="The submitted token has the sub-probability distribution that the residual "
        "subtracts.",
        step=speculative(propose=unfiltered),
    ),
    lossless(
        "draft-cache-off-by-one",
        "context",
        formula="q(. | context, x_0 … x_(i-2)): the draft model lags one token behind",
        symptom="Acceptance decays: the draft model does not see its own latest token.",
        hint="q is arbitrary as long as it is the distribution of x; only the target's context "
        "matters.",
        step=lambda target, drafter, *others: standard.step(target, lagging(drafter), *others),
        cites=("lablup/mlxcel#994", "vllm-project/vllm#47930"),
    ),
    lossless(
        "sample-and-match",
        "accept",
        formula="t ~ p; accept iff t = x; emit t either way",
        symptom="There is no ratio, and acceptance is only sum p q.",
        hint="Every emitted token is a draw from the target.",
        step=speculative(verify=sample_and_match),
        cites=("lablup/mlxcel#992", "EricLBuehler/mistral.rs#1027"),
    ),
    lossless(
        "ratio-without-min",
        "accept",
        formula="accept iff u q(x) < p(x)",
        symptom="The ratio exceeds 1.",
        hint="u < 1, so a ratio above 1 accepts always.",
        step=speculative(accept=lambda at: 1 if at.px >= at.qx else at.px / at.qx),
    ),
    lossless(
        "no-bonus",
        "bonus",
        formula="the bonus token is dropped",
        symptom="Fully accepted blocks are one token short.",
        hint="The next iteration draws from the same row of the target.",
        step=without_bonus,
    ),
    lossless(
        "stop-after-low-probability",
        "length",
        formula="drafting stops after the first x with q(x) < 1/4, which is kept",
        symptom="The number of drafts depends on the drafts.",
        hint="Every submitted token is still distributed as its q, given those before it.",
        step=speculative(stop=unlikely),
    ),
    lossless(
        "random-stop",
        "length",
        formula="after each draft, stop with probability 1/2",
        symptom="The lookahead is random.",
        hint="The random number does not see the tokens.",
        step=speculative(stop=lambda drafts, chance: chance.accept(HALF, f"stop[{len(drafts)}]")),
    ),
    lossless(
        "random-lookahead",
        "length",
        formula="a lookahead of 0 … n, drawn before drafting",
        symptom="The lookahead is random, and 0 among its values.",
        hint="Each lookahead is lossless, so is their mixture.",
        step=random_lookahead,
    ),
)
