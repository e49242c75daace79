"""Mutants of companion-guided verification: lengths that know the token they decide about.

They sit beside the kit's zoo, in `zoo.beside` and not in `zoo.ALL`: the clean rule is
`companion.predictable_step`, which no contract of the kit calls. Each comes with the smallest case
that refutes it. What else can go wrong here the kit's zoo has: `drop-low-probability-draft`,
`truncated-bonus-from-residual`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any

from specref.algorithms import Step, standard
from specref.algorithms.companion import Length, Prior
from specref.algorithms.companion import step as published
from specref.chance import Chance
from specref.distributions import Probability, Row
from specref.models import Model, iid_model, table_model
from specref.theory.companion import (
    companion_acceptance,
    greedy_length,
    optimal_length,
    similarity,
)
from specref.theory.latency import Rates, first_decline, goodputs
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo.entry import Described

AB = Vocabulary("ab")
HALF = ("1/2", "1/2")


def after(first: Row, rows: Mapping[Tokens, Row] | None = None) -> Model:
    """A model over a and b: rows after the contexts that have one, the first row elsewhere."""
    return table_model(AB, rows or {}, otherwise=first)


@dataclass(frozen=True)
class Case:
    """Three models, and what the rule is told.

    Attributes
    ----------
    target, drafter, companion : Model
    lookahead : int
    total_variation : Fraction
        Of the completed block from the target's law, exact.
    told : mapping
        The other keywords of the rule.
    """

    target: Model
    drafter: Model
    companion: Model
    lookahead: int
    total_variation: Fraction
    told: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CompanionEntry(Described):
    """A rule that departs from `companion.predictable_step` in one place.

    Attributes
    ----------
    rule : callable
        As `companion.step`.
    case : Case
        The smallest that refutes it.
    """

    rule: Callable[..., Tokens]
    case: Case

    @property
    def step(self) -> Step:
        """The rule with the companion of its case, and what it is told there."""
        return partial(self.rule, companion=self.case.companion, **self.case.told)


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
    """Draft everything, then choose the length from the similarities of all positions.

    Examples
    --------
    >>> from specref import is_lossless
    >>> entry = COMPANION["companion-looks-past-the-draft"]
    >>> case = entry.case
    >>> proof = is_lossless(entry.step, case.target, case.drafter, (), case.lookahead)
    >>> print(proof.difference)
    P(0,) = 17/20, the target's is 7/10
    """
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


COMPANION: Mapping[str, CompanionEntry] = MappingProxyType(
    {
        entry.id: entry
        for entry in (
            CompanionEntry(
                "companion-judges-the-draft",
                "length",
                formula="v from a_k(S_k, A_k), A_k = min(1, c_k / q_k)(x_k); token v ~ p_v",
                symptom="Tokens that the companion finds unlikely come out too rarely.",
                hint="Estimate from S_k alone, or reject unverified drafts: (p - q [passes])+.",
                cites=("arXiv:2509.24328",),
                rule=published,
                case=Case(
                    iid_model(AB, HALF),
                    iid_model(AB, HALF),
                    iid_model(AB, ("1/10", "9/10")),
                    lookahead=1,
                    total_variation=Fraction(1, 4),
                    told={
                        "estimate": mean,
                        "length": partial(greedy_length, latencies=(0, 1, Fraction(3, 2))),
                    },
                ),
                note="Exact if target or drafter is greedy.",
            ),
            CompanionEntry(
                "companion-looks-past-the-draft",
                "length",
                formula="v = argmax goodput(a_1, …, a_n), a_k from S_k(x_<k): v >= k sees x_k",
                symptom="Drafts that promise well for what follows come out too often.",
                hint="Stop at the first decline, or fix the number of drafts beforehand.",
                cites=("deepseek-ai/DeepSpec",),
                rule=look_past,
                case=Case(
                    after(("7/10", "3/10")),
                    after(HALF, {(1,): (1, 0)}),
                    after(("3/10", "7/10"), {(0,): ("2/5", "3/5"), (1,): (0, 1)}),
                    lookahead=2,
                    total_variation=Fraction(3, 20),
                    told={
                        "estimate": lambda alike: alike,
                        "length": partial(optimal_length, latencies=(0, 1, 2, Fraction(20, 9))),
                    },
                ),
                note="With `greedy_length` as the length it is lossless for all latencies.",
            ),
            CompanionEntry(
                "companion-steps-back-among-equals",
                "length",
                formula="walk until goodput declines, v = the first position with the last value",
                symptom="Only where two goodputs are equal: as looking past the draft.",
                hint="Let a tie end the walk, or keep what it passed.",
                rule=look_past,
                case=Case(
                    iid_model(AB, HALF),
                    after(HALF, {(1,): (1, 0)}),
                    after((1, 0), {(0,): HALF, (1,): (0, 1)}),
                    lookahead=2,
                    total_variation=Fraction(1, 4),
                    told={
                        "estimate": lambda alike: alike,
                        "length": partial(
                            declining_length, latencies=(0, 1, Fraction(3, 2), Fraction(19, 10))
                        ),
                    },
                ),
                note="Whether draft 0 stays depends on draft 1's estimate, a function of draft 0.",
            ),
        )
    }
)
