"""Mutants of companion-guided verification, of one request and of a batch.

The clean rules are `companion.predictable_step` and, for batches, `fixed_budget_step`. Each mutant
comes with the smallest case that refutes it; of a batch, two requests with that case. Lengths know
the token that they decide about; in a batch drafts compete, or make room for others.
"batch-makes-room" is exact for each request by itself, and no test of single outputs sees it. What
else can go wrong here others have: `drop-low-probability-draft`, `truncated-bonus-from-residual`.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

from specref.algorithms import standard
from specref.algorithms.companion.companion import (
    Judge,
    Length,
    Prior,
    companion_acceptance,
    similarity,
)
from specref.algorithms.companion.companion import step as published
from specref.chance import Chance
from specref.distributions import Probability, Row
from specref.models import Model, iid_model, table_model
from specref.theory.goodput import (
    Rates,
    allocation,
    first_decline,
    goodputs,
    greedy_length,
    optimal_length,
)
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo.entry import Entry, exactly
from specref.zoo.fixtures import ExactFixture

AB = Vocabulary("ab")
HALF = ("1/2", "1/2")
COIN = iid_model(AB, HALF)
BIASED = iid_model(AB, ("1/4", "3/4"))
BatchRates: TypeAlias = list[list[Probability]]


def after(first: Row, rows: Mapping[Tokens, Row] | None = None) -> Model:
    """A model over a and b: rows after the contexts that have one, the first row elsewhere."""
    return table_model(AB, rows or {}, otherwise=first)


def guided(
    name: str, target: Model, drafter: Model, companion: Model, lookahead: int, **told: Any
) -> ExactFixture:
    """A pair with a companion, and what else the rule is told."""
    return ExactFixture(name, target, drafter, lookahead, options={"companion": companion, **told})


def look_past(
    target: Model,
    drafter: Model,
    context: Tokens,
    lookahead: int,
    chance: Chance,
    *,
    companion: Model,
    estimate: Prior,
    length: Length,
) -> Tokens:
    """Draft everything, then choose the length from the similarities of all positions."""
    drafts = standard.draft(drafter, context, lookahead, chance)
    rates = [estimate(alike) for alike, _ in signals(companion, context, drafts)]
    return standard.verify(target, context, drafts[: length(rates)], chance)


def signals(
    companion: Model, context: Tokens, drafts: Sequence[standard.Draft]
) -> list[tuple[Probability, Probability]]:
    """(S, A) of every draft, in the context of those before it."""
    tokens = tuple(token for token, _ in drafts if token is not None)
    laws = [companion.next_token((*context, *tokens[:k])) for k in range(len(drafts))]
    return [
        (similarity(q, c), companion_acceptance(q, c, x))
        for x, (_, q), c in zip(tokens, drafts, laws, strict=True)
    ]


def mean(alike: Fraction, acceptance: Fraction) -> Fraction:
    """The simplest estimate: (S + A) / 2."""
    return (alike + acceptance) / 2


def declining_length(rates: Rates, latencies: Rates) -> int:
    """The first decline of goodput, the first among equals."""
    return first_decline(goodputs([rates], latencies))


def draft_first(
    target: Model,
    drafter: Model,
    contexts: Sequence[Tokens],
    lookahead: int,
    chance: Chance,
    *,
    companion: Model,
    estimate: Judge,
    lengths: Callable[[BatchRates], Sequence[int]],
) -> tuple[Tokens, ...]:
    """Draft for all requests, judge the drafts, then decide how many of each are verified.

    Lossless with an estimate that leaves A out and a fixed total (`allocation`): what it then
    verifies is what `fixed_budget_step` would have drafted.
    """
    batch = [standard.draft(drafter, context, lookahead, chance) for context in contexts]
    rates = [
        [estimate(*signal) for signal in signals(companion, context, drafts)]
        for context, drafts in zip(contexts, batch, strict=True)
    ]
    requests = zip(contexts, batch, lengths(rates), strict=True)
    return tuple(
        standard.verify(target, x, drafts[:length], chance) for x, drafts, length in requests
    )


def room_left(rates: BatchRates) -> list[int]:
    """One draft at most in each request, and none where another one is sure of its own."""
    sure = [rate == 1 for (rate,) in rates]
    return [int(not any(sure[:r] + sure[r + 1 :])) for r in range(len(sure))]


of_companion = partial(Entry, rule="companion")
ENTRIES = (
    of_companion(
        "companion-judges-the-draft",
        "length",
        formula="v from a_k(S_k, A_k), A_k = min(1, c_k / q_k)(x_k); token v ~ p_v",
        symptom="Tokens that the companion finds unlikely come out too rarely.",
        hint="Estimate from S_k alone, or reject unverified drafts: (p - q [passes])+.",
        cites=("arXiv:2509.24328",),
        step=published,
        case=guided(
            "an unlikely draft",
            COIN,
            COIN,
            iid_model(AB, ("1/10", "9/10")),
            lookahead=1,
            estimate=mean,
            length=partial(greedy_length, latencies=(0, 1, Fraction(3, 2))),
        ),
        distances=exactly(**{"an unlikely draft": "1/4"}),
        note="Exact if target or draft model is greedy.",
    ),
    of_companion(
        "companion-looks-past-the-draft",
        "length",
        formula="v = argmax goodput(a_1, …, a_n), a_k from S_k(x_<k): v >= k sees x_k",
        symptom="Drafts that promise well for what follows come out too often.",
        hint="Stop at the first decline, or fix the number of drafts beforehand.",
        cites=("deepseek-ai/DeepSpec",),
        step=look_past,
        case=guided(
            "a promising draft",
            after(("7/10", "3/10")),
            after(HALF, {(1,): (1, 0)}),
            after(("3/10", "7/10"), {(0,): ("2/5", "3/5"), (1,): (0, 1)}),
            lookahead=2,
            estimate=lambda alike: alike,
            length=partial(optimal_length, latencies=(0, 1, 2, Fraction(20, 9))),
        ),
        distances=exactly(**{"a promising draft": "3/20"}),
        note="With `greedy_length` as the length it is lossless for all latencies.",
    ),
    of_companion(
        "companion-steps-back-among-equals",
        "length",
        formula="walk until goodput declines, v = the first position with the last value",
        symptom="Only where two goodputs are equal: as looking past the draft.",
        hint="Let a tie end the walk, or keep what it passed.",
        step=look_past,
        case=guided(
            "equal goodputs",
            COIN,
            after(HALF, {(1,): (1, 0)}),
            after((1, 0), {(0,): HALF, (1,): (0, 1)}),
            lookahead=2,
            estimate=lambda alike: alike,
            length=partial(declining_length, latencies=(0, 1, Fraction(3, 2), Fraction(19, 10))),
        ),
        distances=exactly(**{"equal goodputs": "1/4"}),
        note="Whether draft 0 stays depends on draft 1's estimate, a function of draft 0.",
    ),
    of_companion(
        "batch-drafts-compete",
        "batch",
        formula="the K drafts of the batch with the greatest products of A_k(x_k)",
        symptom="Tokens that the companion finds unlikely come out too rarely.",
        hint="Let S_k compete, which is known before x_k is drawn.",
        cites=("arXiv:2509.24328",),
        batch_step=draft_first,
        case=guided(
            "one draft for two",
            COIN,
            COIN,
            BIASED,
            lookahead=1,
            estimate=lambda alike, acceptance: acceptance,
            lengths=partial(allocation, drafts=1),
        ),
        distances=exactly(**{"one draft for two": "1/8"}),
    ),
    of_companion(
        "batch-makes-room",
        "batch",
        formula="v_r = 1 iff no other request drafted x with A(x) = 1",
        symptom="Each request is exact, but their outputs are not independent.",
        hint="Draw a draft after its place is decided, from what is drawn by then.",
        batch_step=draft_first,
        case=guided(
            "room for two",
            COIN,
            COIN,
            BIASED,
            lookahead=1,
            estimate=lambda alike, acceptance: acceptance,
            lengths=room_left,
        ),
        distances=exactly(**{"room for two": "1/8"}),
        note="No draft has a say about itself; two requests have it about each other.",
    ),
)
