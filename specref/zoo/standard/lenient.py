"""Mutants that relax the acceptance test: intended by some, lossless for none."""

from fractions import Fraction
from math import exp, log

from specref.algorithms.decoding import Step
from specref.distributions import Probability, normalise
from specref.zoo.entry import Entry
from specref.zoo.parts.standard import Position, argmax, one_hot, ratio, residual_or_p, speculative

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
