"""Blocks for a diagnosis, drawn from the exact laws of rules on three fixtures."""

import numpy as np

from specref.algorithms import standard
from specref.algorithms.decoding import Step
from specref.conformance.diagnosis import Observed
from specref.conformance.diagnosis.laws import Law, law_of
from specref.zoo import FIXTURES, ExactFixture

CASES = ("wide", "deep", "eos")


def drawn(law: Law, trials: int, rng: np.random.Generator) -> dict[tuple[int, ...], int]:
    """Counts of blocks drawn from a law."""
    weights = np.array(list(law.values()))
    counts = rng.multinomial(trials, weights / weights.sum()).tolist()
    return {block: count for block, count in zip(law, counts, strict=True) if count}


def mixed(clean: Law, law: Law, strength: float) -> Law:
    blocks = {**clean, **law}
    return {b: (1 - strength) * clean.get(b, 0) + strength * law.get(b, 0) for b in blocks}


def observe(step: Step, trials: int, seed: int, strength: float = 1.0) -> list[Observed]:
    """Blocks on every case, `trials` in all; with probability `strength` one is the step's."""
    rng = np.random.default_rng(seed)
    cases = []
    for index, name in enumerate(CASES):
        share = trials // len(CASES) + (index < trials % len(CASES))
        empty = of_fixture(FIXTURES[name], {(0,): 1})
        law = mixed(law_of(standard.step, empty), law_of(step, empty), strength)
        cases.append(of_fixture(FIXTURES[name], drawn(law, share, rng)))
    return cases


def of_fixture(fixture: ExactFixture, blocks: dict[tuple[int, ...], int]) -> Observed:
    return Observed(fixture.name, fixture.target, fixture.drafter, (), fixture.lookahead, blocks)
