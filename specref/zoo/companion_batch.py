"""Mutants of batch scheduling by a companion: drafts that compete, or make room for others.

They sit beside the kit's zoo, as `zoo.companion`; the clean rule is
`companion_batch.fixed_budget_step`. The distance is that of the *joint* law of the batch;
"batch-makes-room" is exact for each request by itself, and no test of single outputs sees it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

from specref.algorithms.companion import Judge
from specref.algorithms.companion_batch import BatchStep
from specref.algorithms.standard import draft, verify
from specref.chance import Chance
from specref.distributions import Probability
from specref.models import Model, iid_model
from specref.theory.latency import allocation
from specref.vocabulary import Tokens
from specref.zoo.companion import AB, HALF, Case, signals
from specref.zoo.entry import Described

Rates: TypeAlias = list[list[Probability]]
Lengths: TypeAlias = Callable[[Rates], Sequence[int]]


@dataclass(frozen=True, kw_only=True)
class BatchCompanionEntry(Described):
    """A rule that departs from `companion_batch.fixed_budget_step` in one place.

    Attributes
    ----------
    rule : callable
        As `draft_first`.
    case : Case
        The smallest that refutes it, with two requests.
    alone : Fraction
        How far each request by itself is off at most.
    """

    rule: Callable[..., tuple[Tokens, ...]]
    case: Case
    alone: Fraction

    @property
    def step(self) -> BatchStep:
        """The rule with the companion of its case, and what it is told there."""
        return partial(self.rule, companion=self.case.companion, **self.case.told)


def draft_first(
    target: Model,
    drafter: Model,
    contexts: Sequence[Tokens],
    lookahead: int,
    chance: Chance,
    *,
    companion: Model,
    estimate: Judge,
    lengths: Lengths,
) -> tuple[Tokens, ...]:
    """Draft everything for everybody, judge the drafts, then say how many of each are verified.

    Lossless with an estimate that leaves A out and a fixed total (`allocation`): what it then
    verifies is what `fixed_budget_step` would have drafted.

    Examples
    --------
    >>> from specref.losslessness.joint import is_jointly_lossless
    >>> entry = BATCH_COMPANION["batch-makes-room"]
    >>> proof = is_jointly_lossless(entry.step, entry.case.target, entry.case.drafter, [(), ()])
    >>> proof.total_variation, proof.alone(0), proof.alone(1)
    (Fraction(1, 8), Fraction(0, 1), Fraction(0, 1))
    """
    batch = [draft(drafter, context, lookahead, chance) for context in contexts]
    rates = [
        [estimate(*signal) for signal in signals(companion, context, drafts)]
        for context, drafts in zip(contexts, batch, strict=True)
    ]
    requests = zip(contexts, batch, lengths(rates), strict=True)
    return tuple(verify(target, x, drafts[:length], chance) for x, drafts, length in requests)


def room_left(rates: Rates) -> list[int]:
    """One draft at most in each request, and none where another one is sure of its own."""
    sure = [rate == 1 for (rate,) in rates]
    return [int(not any(sure[:r] + sure[r + 1 :])) for r in range(len(sure))]


COIN = iid_model(AB, HALF)
BIASED = iid_model(AB, ("1/4", "3/4"))

BATCH_COMPANION: Mapping[str, BatchCompanionEntry] = MappingProxyType(
    {
        entry.id: entry
        for entry in (
            BatchCompanionEntry(
                "batch-drafts-compete",
                "batch",
                formula="the K drafts of the batch with the greatest products of A_k(x_k)",
                symptom="Tokens that the companion finds unlikely come out too rarely.",
                hint="Let S_k compete, which is known before x_k is drawn.",
                cites=("arXiv:2509.24328",),
                rule=draft_first,
                case=Case(
                    COIN,
                    COIN,
                    BIASED,
                    lookahead=1,
                    total_variation=Fraction(1, 8),
                    told={
                        "estimate": lambda alike, acceptance: acceptance,
                        "lengths": partial(allocation, drafts=1),
                    },
                ),
                alone=Fraction(1, 8),
            ),
            BatchCompanionEntry(
                "batch-makes-room",
                "batch",
                formula="v_r = 1 iff no other request drafted x with A(x) = 1",
                symptom="Each request is exact, but their outputs are not independent.",
                hint="Draw a draft after its place is decided, from what is drawn by then.",
                rule=draft_first,
                case=Case(
                    COIN,
                    COIN,
                    BIASED,
                    lookahead=1,
                    total_variation=Fraction(1, 8),
                    told={
                        "estimate": lambda alike, acceptance: acceptance,
                        "lengths": room_left,
                    },
                ),
                alone=Fraction(0),
                note="No draft has a say about itself; two requests have it about each other.",
            ),
        )
    }
)
