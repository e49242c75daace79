"""Blocks drawn from an enumerated law have that law: by uniforms that are evenly spread."""

from collections import Counter
from functools import partial
from typing import Any

from specref.algorithms import standard
from specref.chance import exact_distribution
from specref.verification.exact import DrawnFromLaws
from specref.zoo import FIXTURES

EACH = 1_000


class Even:
    """The middles of so many intervals of [0, 1), in turn."""

    def __init__(self) -> None:
        self.next = 0

    def random(self) -> float:
        self.next += 1
        return (self.next - 0.5) / EACH


def test_blocks_are_drawn_from_their_law() -> None:
    pair, runs = FIXTURES["m"], []

    def step(*arguments: Any) -> Any:
        runs.append(arguments)
        return standard.step(*arguments)

    drawn, models = DrawnFromLaws(step), (pair.target, pair.drafter)
    for context, lookahead in (((), 1), ((0,), 1), ((), 2)):
        rng: Any = Even()
        found = Counter(drawn(*models, context, lookahead, rng) for _ in range(EACH))
        law = exact_distribution(partial(standard.step, *models, context, lookahead))
        assert set(found) <= set(law)
        assert all(abs(found[block] - EACH * mass) <= 1 for block, mass in law.items())
    enumerated = len(runs)
    rng = Even()
    drawn(*models, (0,), 1, rng)
    assert len(runs) == enumerated
