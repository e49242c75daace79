"""Mutants that test the drafts wrongly: another ratio, order or stop, or a laxer one.

Lenient tests are intended by some, and lossless for none.
"""

from fractions import Fraction
from math import exp, log

from specref.algorithms.decoding import Step
from specref.distributions import Probability, normalise
from specref.vocabulary import Tokens
from specref.zoo.entry import Entry
from specref.zoo.parts.standard import (
    Position,
    Verification,
    acceptance,
    argmax,
    one_hot,
    ratio,
    residual_or_p,
    speculative,
)

TINY = Fraction(1, 8)


def underflowing(at: Position) -> Probability:
    """The ratio of p and q with all below 1/8 flushed to 0, where anything / 0 accepts."""
    p, q = (x if x >= TINY else 0 * x for x in (at.px, at.qx))
    return ratio(p, q) if q else 1


def count_accepted(v: Verification) -> Tokens:
    """Decide every draft, and keep as many as were accepted."""
    return v.block(sum(v.accepts(i) for i in range(v.n)))


def second_chance(v: Verification) -> Tokens:
    """After a rejection, test another draw from q before falling back to the residual."""
    at = v.first.to(v.prefix())
    if at.i < v.n:
        y = at.chance.draw(at.q, "second draft")
        if at.chance.accept(ratio(at.p[y], at.q[y]), "second accept"):
            return (*at.before, y)
    return v.block(at.i)


RATE = Fraction(3, 4)
SINGLE = Fraction(1, 4)


def lenient(factor: Fraction | int) -> Step:
    """Accept with probability min(1, factor p / q); the residual stays (p - q)+.

    >>> from specref import Vocabulary, exact_distribution
    >>> from specref.models import iid_model
    >>> target = iid_model(Vocabulary("ab"), ["1/4", "3/4"])
    >>> drafter = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
    >>> exact_distribution(lambda chance: lenient(2)(target, drafter, (), 1, chance))[0, 0]
    Fraction(1, 8)
    """
    return speculative(accept=lambda at: ratio(factor * at.px, at.qx))


def scaled(factor: Fraction | int) -> Step:
    """As `lenient`, with the residual (p - q / factor)+."""
    return speculative(
        accept=lambda at: ratio(factor * at.px, at.qx),
        recover=lambda at: residual_or_p(at.p, at.q / factor),
    )


def typical(at: Position) -> int:
    """Medusa's test: p(x) > min(0.09, 0.3 exp(-H(p)))."""
    entropy = -sum(float(p) * log(p) for p in at.p if p > 0)
    return int(at.px > min(0.09, 0.3 * exp(-entropy)))


def above_threshold(at: Position) -> Probability:
    """1 for a draft with p(x) >= 1/4, otherwise p(x)."""
    return 1 if at.px >= SINGLE else at.px


ENTRIES = (
    Entry(
        "always-accept-u0",
        "accept",
        formula="u = 0, so that every draft is accepted",
        symptom="The output is the draft model's.",
        hint="Draw a fresh uniform in [0, 1) for every draft, and check that it varies.",
        step=speculative(accept=lambda at: 1),
        cites=("vllm-project/vllm-ascend#13730", "vllm-project/vllm-ascend#13766"),
    ),
    Entry(
        "inverted-ratio",
        "accept",
        formula="accept with probability min(1, q / p)",
        symptom="Unlikely tokens pass, likely ones are rejected.",
        hint="Divide the target's probability by the draft model's; papers swap the two letters.",
        step=speculative(accept=lambda at: ratio(at.qx, at.px)),
    ),
    Entry(
        "accept-with-p",
        "accept",
        formula="accept with probability p(x), then residual (p - q)+",
        symptom="Low acceptance, and the residual takes mass away that was never accepted.",
        hint="Accept with p(x) only if the residual is p without x (a one-hot q); else use p / q.",
        step=speculative(accept=lambda at: at.px, recover=lambda at: residual_or_p(at.p, at.q)),
    ),
    Entry(
        "exact-match-resample",
        "accept",
        formula="accept if t = x for some t ~ p, otherwise draw a second token from p",
        symptom="Drafted tokens are over-weighted: they have two chances.",
        hint="Emit the very t that was compared, on a mismatch as well.",
        step=speculative(accept=lambda at: at.px, recover=lambda at: at.p),
    ),
    Entry(
        "match-or-ratio",
        "accept",
        formula="accept if t = x for some t ~ p, or else with probability min(1, p / q)",
        symptom="Drafted tokens are over-weighted: each has two chances to be kept.",
        hint="Decide once: by comparing with t, and then emit t, or by u q < p, never by both.",
        step=speculative(
            accept=lambda at: 1 - (1 - at.px) * (1 - ratio(at.px, at.qx)),
            recover=lambda at: residual_or_p(at.p, at.q),
        ),
        cites=("alibaba/rtp-llm#1295",),
    ),
    Entry(
        "argmax-verify",
        "accept",
        formula="accept iff x = argmax p, otherwise emit argmax p",
        symptom="Greedy text and loops at any temperature.",
        hint="Check that sampling parameters reach the verifier, not only the plain path.",
        step=speculative(
            accept=lambda at: argmax(at.p)[at.token],
            recover=lambda at: argmax(at.p),
        ),
        cites=(
            "ROCm/ATOM#2318",
            "sgl-project/sglang#39253",
            "EricLBuehler/mistral.rs#2424",
        ),
    ),
    Entry(
        "greedy-match",
        "accept",
        formula="accept iff x = argmax p, otherwise draw from p",
        symptom="The modal token is over-weighted.",
        hint="Use this test only when the target decodes greedily.",
        step=speculative(accept=lambda at: argmax(at.p)[at.token], recover=lambda at: at.p),
    ),
    Entry(
        "first-draft-unverified",
        "accept",
        formula="x_0 is committed, x_i is tested for i >= 1",
        symptom="A single draft is emitted verbatim.",
        hint="Test draft 0 with the row of the last committed token.",
        step=speculative(accept=lambda at: acceptance(at) if at.i else 1),
        cites=("ohdearquant/lattice#243",),
    ),
    Entry(
        "accept-after-rejection",
        "accept",
        formula="accepted tokens = sum of accepts instead of the first rejection",
        symptom="Drafts after a rejection are kept, and a rejected one with them.",
        hint="Take the cumulative product of the verdicts before summing.",
        step=speculative(verify=count_accepted, recover=lambda at: residual_or_p(at.p, at.q)),
        cites=("vllm-project/vllm#2658",),
        blind=frozenset({"m"}),
        note="With one draft there is nothing after a rejection.",
    ),
    Entry(
        "best-of-two",
        "accept",
        formula="two draws from q, each tested with min(1, p / q), then residual (p - q)+",
        symptom="Tokens that the draft model likes are over-weighted.",
        hint="Update p to the residual, and q to the distribution of the next draw, after each "
        "rejection.",
        step=speculative(verify=second_chance),
        cites=("apple/ml-recurrent-drafter",),
        note="On a rejection min(p, q) + (1 - overlap) residual = p: the distribution of "
        "residual-is-p.",
    ),
    Entry(
        "underflow-accepts",
        "accept",
        formula="p, q below 1/8 are read as 0, and p / 0 or 0 / 0 accepts",
        symptom="Tokens that both models find unlikely come out too often.",
        hint="Compute the ratio in float32 or in logarithms, and test u q < p.",
        step=speculative(accept=underflowing, recover=lambda at: residual_or_p(at.p, at.q)),
        cites=("lablup/mlxcel#992",),
        blind=frozenset({"c"}),
        note="Half precision underflows near 6e-8; 1/8 shows on small rows, but c has no such p.",
    ),
    Entry(
        "lenience-5-4",
        "accept",
        formula="accept with probability min(1, 5/4 p / q)",
        symptom="Higher acceptance, paid for with a bias towards the draft model.",
        hint="Multiply neither side of the ratio, or declare the rule lossy.",
        step=lenient(Fraction(5, 4)),
        cites=("arXiv:2211.17192", "lucidrains/speculative-decoding"),
    ),
    Entry(
        "lenience-10-9",
        "accept",
        formula="accept with probability min(1, 10/9 p / q)",
        symptom="A small bias towards the draft model, too small for most sample sizes.",
        hint="Multiply neither side of the ratio, or declare the rule lossy.",
        step=lenient(Fraction(10, 9)),
        cites=("arXiv:2211.17192", "lucidrains/speculative-decoding"),
    ),
    Entry(
        "lenience-scaled-residual",
        "accept",
        formula="accept with probability min(1, 2 p / q), then residual (p - q / 2)+",
        symptom="Even further from p than with the residual (p - q)+ on many rows.",
        hint="No residual repairs a lenient test: what is over-accepted cannot be taken back.",
        step=scaled(2),
        cites=("arXiv:2211.17192",),
    ),
    Entry(
        "threshold-accept",
        "accept",
        formula="accept iff p(x) >= q(x)",
        symptom="Tokens with q > p come out only from residuals, where they have no mass: never.",
        hint="Compare p / q with a uniform, not with 1.",
        step=speculative(accept=lambda at: int(at.px >= at.qx)),
        cites=("vllm-project/vllm-project.github.io#80",),
    ),
    Entry(
        "typical-acceptance",
        "accept",
        formula="accept iff p(x) > min(0.09, 0.3 exp(-H(p))), otherwise emit argmax p",
        symptom="Almost the draft model's output, without the target's least likely tokens.",
        hint="Declare it lossy; the target's temperature has no meaning under it.",
        step=speculative(accept=typical, recover=lambda at: argmax(at.p)),
        cites=("arXiv:2401.10774", "vllm-project/vllm#5131"),
    ),
    Entry(
        "forced-acceptance",
        "accept",
        formula="accept with probability 3/4 whatever was drafted",
        symptom="The acceptance rate is the configured one, exactly.",
        hint="Switch the benchmark's synthetic acceptance off.",
        step=speculative(accept=lambda at: RATE, recover=lambda at: residual_or_p(at.p, at.q)),
        cites=(
            "NVIDIA/TensorRT-LLM#15098",
            "vllm-project/vllm#41035",
            "ROCm/ATOM#1948",
        ),
    ),
    Entry(
        "threshold-single",
        "accept",
        formula="accept if p(x) >= 1/4, otherwise with probability p(x); then p without x",
        symptom="Likely tokens of the target come out too often, if the draft model likes them.",
        hint="Set the thresholds to 1, or declare the rule lossy.",
        step=speculative(
            accept=above_threshold,
            recover=lambda at: normalise(at.p - one_hot(at.token, at.p) * at.px),
        ),
        cites=("sgl-project/sglang",),
    ),
    Entry(
        "ensemble-target",
        "accept",
        formula="drafts are tested against (p + q) / 2",
        symptom="The output is half the draft model's.",
        hint="Set the ensemble weight to 1, or declare the rule lossy.",
        step=speculative(
            accept=lambda at: ratio(at.px + at.qx, 2 * at.qx),
        ),
        cites=("huggingface/transformers",),
        note="The residual of (p + q) / 2 and q is that of p and q.",
    ),
)
