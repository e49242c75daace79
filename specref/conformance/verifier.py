"""A first judge: somebody's verification of drafts, run on toy p and q, against the target."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from specref.algorithms import decode
from specref.algorithms.autoregressive import step as target_step
from specref.chance import Sampled
from specref.losslessness.exact import completed
from specref.losslessness.statistics import ALPHA, TestResult, chi_square_test
from specref.models import Model, as_float
from specref.pairs import Pair, toy_pairs
from specref.vocabulary import Tokens

CASES = ("four tokens", "order 1, zeros", "disjoint supports", "equal", "same vocabulary #0")
LOOKAHEAD = 2
Floats = NDArray[np.float64]


class Verify(Protocol):
    """Somebody's verification: p [lookahead + 1, V], q [lookahead, V], drafts -> the block."""

    def __call__(self, p: Floats, q: Floats, drafts: Tokens) -> Tokens:
        """Accept a prefix of the drafts and add one token."""
        ...


@dataclass(frozen=True)
class CaseResult:
    """One toy pair and the test of the joint law on it."""

    name: str
    result: TestResult


@dataclass(frozen=True)
class VerifierReport:
    """What the toy pairs say of one verification function, and how to repeat it."""

    implementation: str
    cases: tuple[CaseResult, ...]
    trials: int
    alpha: float
    seed: int
    seconds: float

    @property
    def rejected(self) -> bool:
        """Whether any case rejects."""
        return any(case.result.rejected for case in self.cases)


def judge(
    verify: Verify,
    implementation: str,
    *,
    trials: int = 20_000,
    alpha: float = ALPHA,
    seed: int = 0,
    advance: Callable[[int], None] = lambda trials: None,
) -> VerifierReport:
    """Run a verification function on toy pairs whose rows differ by position and context.

    Drafts are sampled from q; the block is completed by the target; its joint law of three
    tokens is compared with the target's by a chi-square test.

    Parameters
    ----------
    verify : callable
        p rows, q rows and drafted tokens in, accepted tokens and one more out.
    implementation : str
        Its name, for the report.
    trials : int
        For each case.
    alpha : float
        For each case.
    seed : int
        Of the drafts and completions; the implementation has randomness of its own.
    advance : callable
        Told how many trials are done, now and then.

    Raises
    ------
    ValueError
        `trials` is too small to leave two cells, or `alpha` is not in (0, 1).
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha = {alpha}: expected a number in (0, 1)")
    started = time.perf_counter()
    chosen = [pair for pair in toy_pairs() if pair.name in CASES]
    results: list[CaseResult] = []
    for index, pair in enumerate(chosen):
        rng = np.random.default_rng([seed, index])
        counts = _completed_blocks(verify, pair, trials, rng, advance)
        law = completed({(): 1}, pair.target, (), LOOKAHEAD + 1)
        results.append(CaseResult(pair.name, chi_square_test(counts, law, alpha)))
    seconds = time.perf_counter() - started
    return VerifierReport(implementation, tuple(results), trials, alpha, seed, seconds)


def _completed_blocks(
    verify: Verify,
    pair: Pair,
    trials: int,
    rng: np.random.Generator,
    advance: Callable[[int], None],
) -> Counter[Tokens]:
    target, drafter = as_float(pair.target), as_float(pair.drafter)
    chance = Sampled(rng)
    counts: Counter[Tokens] = Counter()
    for trial in range(trials):
        drafts = decode(target_step, drafter, drafter, (), 0, LOOKAHEAD, chance)
        p = rows(target, drafts)
        block = verify(p, rows(drafter, drafts)[:-1], drafts)
        missing = LOOKAHEAD + 1 - len(block)
        counts[block + decode(target_step, target, target, block, 0, missing, chance)] += 1
        if trial % 500 == 499:
            advance(500)
    return counts


def rows(model: Model, drafts: Tokens) -> Floats:
    """The next-token rows after each prefix of the drafts, shape (len(drafts) + 1, V)."""
    return np.stack([model.next_token(drafts[:length]) for length in range(len(drafts) + 1)])
