"""Batched decode loops: which give every row the target's law, all rows jointly, exactly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

import numpy as np
import pytest

from specref.chance import Chance, Sampled, Traced, exact_distribution
from specref.distributions import Probability, total_variation
from specref.models import Model, hashed_model
from specref.proofs.batches import is_jointly_lossless
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo import Entry
from specref.zoo.batch_loops import CONTROLS, ENTRIES, NEUTRAL, batched
from specref.zoo.entry import GenerateBatch, Setting

JointLaw = Mapping[tuple[Tokens, ...], Probability]
HALF, ROUNDING = Fraction(1, 2), 1e-12
AB, END = Vocabulary("ab"), Vocabulary("a$", eos="$")


@dataclass(frozen=True)
class Case:
    """Rows and a budget, small enough for every random path to be enumerated."""

    vocabulary: Vocabulary
    contexts: tuple[Tokens, ...]
    tokens: int
    settings: tuple[Setting, ...] = ()
    key: int = 0

    @property
    def models(self) -> tuple[Model, Model]:
        p, q = (hashed_model(self.vocabulary, f"{role} {self.key}") for role in "pq")
        return p, q

    def law(self, loop: GenerateBatch, lookahead: int) -> JointLaw:
        given = *self.models, self.contexts, lookahead, self.tokens
        return exact_distribution(lambda chance: loop(*given, chance, self.settings))

    def off(self, loop: GenerateBatch) -> Probability:
        """The total variation from texts that are drawn token by token."""
        return total_variation(self.law(loop, 1), self.law(batched(), 0))


CASES: Mapping[str, Case] = MappingProxyType(
    {
        "equal": Case(AB, ((0,), (0,)), 3),
        "prompts": Case(AB, ((1, 0), (0,)), 3, key=1),
        "settings": Case(Vocabulary("abc"), ((0,), (1,)), 2, ((HALF, 1), (1, Fraction(3, 4)))),
        "ending": Case(Vocabulary("ab$", eos="$"), ((0,), (0, 1)), 2, (NEUTRAL, (HALF, 1))),
        "three": Case(END, ((0,), (0, 0), ()), 3, key=1),
    }
)
ALONE = Case(AB, ((0,),), 3)
SHOWN: Mapping[str, set[str]] = {
    "top-p-of-first-row": {"settings"},
    "temperature-of-row-before": {"settings", "ending"},
    "settings-stay-in-slot": {"settings", "ending"},
    "slot-keeps-its-cache": {"three"},
    "late-row-reads-another": {"three"},
    "text-written-to-next-row": {"three"},
    "padding-returned-after-end": {"ending", "three"},
    "padding-attended": {"prompts", "ending", "three"},
}
"""Mutants that need a situation, and the cases that have it."""


@pytest.mark.deep(one_in=12)
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda one: one.id)
def test_mutants_are_lossy_in_their_situation_alone(entry: Entry) -> None:
    loop = entry.generate_batch
    assert loop is not None
    found = {name: case.off(loop) for name, case in CASES.items()}
    assert ALONE.off(loop) < ROUNDING
    shown = {name for name, off in found.items() if off > ROUNDING}
    assert shown
    assert shown == SHOWN.get(entry.id, shown)


@pytest.mark.deep
@pytest.mark.parametrize("entry", CONTROLS, ids=lambda one: one.id)
def test_controls_are_lossless_and_not_the_clean_loop(entry: Entry) -> None:
    loop = entry.generate_batch
    assert loop is not None
    for case in CASES.values():
        assert case.off(loop) == 0
    assert runs(loop) != runs(batched())


def runs(loop: GenerateBatch) -> list[list[tuple[str, int]]]:
    """The decisions of some runs, longer than those that are enumerated."""
    case, found = CASES["settings"], []
    for seed in range(20):
        traced = Traced(Sampled(np.random.default_rng(seed)))
        loop(*case.models, [*case.contexts, (0, 1)], 3, 8, traced)
        found.append([(one.site, int(one.choice)) for one in traced.steps])
    return found


@pytest.mark.parametrize("name", ["equal", "prompts"])
def test_the_clean_loop_is_proved_by_another_program(name: str) -> None:
    case = CASES[name]

    def step(
        target: Model, drafter: Model, contexts: Sequence[Tokens], lookahead: int, chance: Chance
    ) -> tuple[Tokens, ...]:
        return batched()(target, drafter, contexts, lookahead, lookahead + 1, chance)

    assert is_jointly_lossless(step, *case.models, case.contexts, 2).lossless
