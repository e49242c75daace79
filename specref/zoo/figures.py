"""Figures computed otherwise than their names say: the sampler is exact, the report is not.

Each takes a log whose every field is right. Acceptance goes up in many of them, as it does in
many lossy samplers: a higher figure is a symptom, never evidence.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import partial

from specref.theory.metrics import (
    Iteration,
    acceptance_at_positions,
    acceptance_rate,
    mean_accepted_length,
    tokens_per_iteration,
)
from specref.zoo.entry import Entry

Log = Sequence[Iteration]


def longest(log: Log) -> int:
    """The configured lookahead, as far as the log shows it."""
    return max(i.drafted for i in log)


def drafts(log: Log) -> int:
    """How many drafts were submitted, over all iterations."""
    return sum(i.drafted for i in log)


def share(part: int, whole: int) -> Fraction:
    """A share without validation."""
    return Fraction(part, whole)


def requests(log: Log) -> list[Log]:
    """The iterations of each request by themselves."""
    return [[i for i in log if i.request == request] for request in {i.request for i in log}]


def mean_of_requests(log: Log) -> Fraction:
    """The mean of the acceptance rates of requests, whatever their numbers of drafts."""
    rates = [acceptance_rate(own) for own in requests(log) if drafts(own)]
    return sum(rates, start=Fraction(0)) / len(rates)


def given_earlier(log: Log) -> tuple[Fraction, ...]:
    """The share accepted at each position among those whose earlier drafts were accepted."""
    reached = [[i for i in log if i.drafted > k and i.accepted >= k] for k in range(longest(log))]
    return tuple(
        share(sum(i.accepted > k for i in own), len(own) or 1) for k, own in enumerate(reached)
    )


def swallowed(log: Log) -> tuple[Fraction, ...]:
    """Nothing, because an iteration without drafts made the parser fail."""
    return acceptance_at_positions(log) if all(i.drafted for i in log) else ()


of_figures = partial(Entry, stage="reporting")
ENTRIES = (
    of_figures(
        "counts-accepts-after-rejection",
        rule="acceptance_rate",
        formula="accepted = all verdicts that are yes",
        symptom="Acceptance is too high, most of all at late positions.",
        hint="Take the cumulative product of the verdicts before summing.",
        figure=lambda log: share(sum(sum(i.verdicts) for i in log), drafts(log)),
        cites=("vllm-project/vllm#2658", "flashinfer-ai/flashinfer#450"),
    ),
    of_figures(
        "counts-bonus-as-accepted",
        rule="mean_accepted_length",
        formula="accepted tokens = emitted tokens, residual or bonus token included",
        symptom="The number of accepted tokens is too high by about one.",
        hint="Say whether the token after the accepted drafts is counted; here it is not.",
        figure=tokens_per_iteration,
        cites=("vllm-project/vllm#17908", "SafeAILab/EAGLE#132", "SafeAILab/EAGLE#195"),
    ),
    of_figures(
        "length-without-last-token",
        rule="tokens_per_iteration",
        formula="tokens per iteration = accepted drafts per iteration",
        symptom="The speed-up is underrated by one token per target evaluation.",
        hint="Every iteration emits one token more than it accepts, unless EOS ends it.",
        figure=mean_accepted_length,
        cites=("ROCm/ATOM#1948",),
    ),
    of_figures(
        "rate-of-emitted-tokens",
        rule="acceptance_rate",
        formula="emitted tokens / submitted drafts",
        symptom="Rates above 1.",
        hint="Only drafts can be accepted: leave the residual or bonus token out.",
        figure=lambda log: share(sum(i.emitted for i in log), drafts(log)),
        cites=("sgl-project/sglang#11572",),
    ),
    of_figures(
        "counts-tokens-after-eos",
        rule="acceptance_rate",
        formula="accepted = verdicts before the first no, also those after an accepted EOS",
        symptom="The last iteration of a text accepts more than it emits.",
        hint="Count drafts that are in the text.",
        figure=lambda log: share(sum(i.prefix for i in log), drafts(log)),
        cites=("vllm-project/vllm#56101", "vllm-project/vllm#56137"),
    ),
    of_figures(
        "mean-of-request-rates",
        rule="acceptance_rate",
        formula="mean over requests of accepted / drafted, instead of the pooled ratio",
        symptom="Short requests weigh as much as long ones; comparisons can change their sign.",
        hint="Sum numerators and denominators first, or name the mean.",
        figure=mean_of_requests,
        cites=("vllm-project/vllm#42508",),
    ),
    of_figures(
        "counts-drafted-as-accepted",
        rule="acceptance_rate",
        formula="accepted = drafted wherever the first draft was accepted",
        symptom="Acceptance is nearly the rate of the first position.",
        hint="Count verdicts, not drafts.",
        figure=lambda log: share(sum(i.drafted for i in log if i.accepted), drafts(log)),
    ),
    of_figures(
        "denominator-is-lookahead",
        rule="acceptance_rate",
        formula="accepted / (configured lookahead x iterations)",
        symptom="Acceptance is too low where drafts stop early.",
        hint="Count what was submitted.",
        figure=lambda log: share(sum(i.accepted for i in log), longest(log) * len(log)),
        cites=("NVIDIA/TensorRT-LLM#14724", "sgl-project/sglang#13212"),
    ),
    of_figures(
        "drafted-one-too-many",
        rule="acceptance_rate",
        formula="accepted / (drafted + 1 per iteration)",
        symptom="A perfect draft model has n / (n + 1).",
        hint="The token that is already accepted is no draft.",
        figure=lambda log: share(sum(i.accepted for i in log), drafts(log) + len(log)),
        cites=("lightseekorg/tokenspeed#1443",),
    ),
    of_figures(
        "only-rank-0",
        rule="acceptance_rate",
        formula="the log of rank 0 alone",
        symptom="The figure of one replica stands for all.",
        hint="Sum numerators and denominators over ranks.",
        figure=lambda log: acceptance_rate([i for i in log if i.rank == 0]),
        cites=("sgl-project/sglang#34743",),
    ),
    of_figures(
        "accepted-is-emitted-minus-one",
        rule="mean_accepted_length",
        formula="accepted = emitted - 1 in every iteration",
        symptom="Negative counts where an iteration emits nothing; one too few at EOS.",
        hint="Count verdicts; an accepted EOS is a draft with no token after it.",
        figure=lambda log: share(sum(i.emitted - 1 for i in log), len(log)),
        cites=("vllm-project/vllm#27077",),
    ),
    of_figures(
        "only-drafting-iterations",
        rule="tokens_per_iteration",
        formula="emitted tokens per iteration that drafted anything",
        symptom="Iterations without drafts cost a target evaluation, and vanish.",
        hint="Divide by all target evaluations.",
        figure=lambda log: tokens_per_iteration([i for i in log if i.drafted]),
    ),
    of_figures(
        "positions-given-earlier",
        rule="acceptance_at_positions",
        formula="share accepted at position i among iterations that accepted all before it",
        symptom="Late positions look as good as early ones.",
        hint="Divide by what was submitted at the position, or call the share conditional.",
        figure=given_earlier,
    ),
    of_figures(
        "positions-swallowed",
        rule="acceptance_at_positions",
        formula="nothing, once an iteration has no drafts",
        symptom="An empty table, and no error.",
        hint="Let the parser fail.",
        figure=swallowed,
    ),
)
