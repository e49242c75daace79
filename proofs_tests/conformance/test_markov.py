"""The judge of long texts: lossy loops are found, lossless ones are not.

alpha is 1e-6 a run. Power: 3,000 transitions find a distance of 0.1 (12 / 0.1^2 = 1,200) and
20,000 tokens one of 0.03 (13,000 of the 15,000 counted).
"""

import re
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from scipy import stats

from proofs_tests.helpers.first_order import chain
from specref.algorithms.decoding import Step, decode
from specref.chance import Sampled
from specref.conformance.greedy import greedy_text, judge_greedy
from specref.conformance.markov import Chain, judge_markov
from specref.contracts.functions import Generate
from specref.models import Model, hashed_model, markov_model
from specref.rules import RULES
from specref.statistics.campaign.verdict import Verdict
from specref.vocabulary import Tokens, Vocabulary
from specref.zoo import CONTROLS, MUTANTS

pytestmark = pytest.mark.usefixtures("undiagnosed")

ALPHA, TOKENS = 1e-6, 4_000
FAR = [
    "greedy-draft-soft-q",
    "d2t-not-applied-to-q",
    "always-accept-u0",
    "inverted-ratio",
    "argmax-verify",
    "first-draft-unverified",
    "typical-acceptance",
    "residual-is-p",
    "residual-is-q",
    "residual-argmax",
    "algorithm-5-as-printed",
    "bonus-always",
    "recovery-reuses-accept-u",
    "target-temperature-missing",
    "rejected-draft-kept",
    "drop-low-probability-draft",
]
NEAR = ["draft-temperature-mismatch", "stale-q-row", "exact-match-resample"]


FIVE = Vocabulary("abcde")
TARGET, DRAFTER = chain(FIVE, "p"), chain(FIVE, "q")


def by(step: Step) -> Generate:
    def generate(
        target: Model, drafter: Model, context: Tokens, tokens: int, rng: np.random.Generator
    ) -> Tokens:
        return decode(step, target, drafter, context, 2, tokens, Sampled(rng))

    return generate


def judged(generate: Generate, tokens: int = TOKENS, seed: int = 1):
    return judge_markov(generate, TARGET, DRAFTER, tokens=tokens, seed=seed, alpha=ALPHA)


LOSSLESS = {name: rule.step for name, rule in RULES.items() if rule.sampled}
LOSSLESS |= {name: entry.step for name, entry in CONTROLS.items()}


@pytest.mark.deep(one_in=16)
@pytest.mark.parametrize("name", LOSSLESS)
def test_lossless_rules_are_not_found(name: str) -> None:
    assert judged(by(LOSSLESS[name])).verdict == Verdict.INCONCLUSIVE


@pytest.mark.parametrize("id_", FAR)
def test_mutants_are_found(id_: str) -> None:
    assert judged(by(MUTANTS[id_].step)).verdict == Verdict.LOSSY


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("id_", NEAR)
def test_mutants_close_to_the_target_need_more_tokens(id_: str) -> None:
    assert judged(by(MUTANTS[id_].step)).verdict == Verdict.INCONCLUSIVE
    assert judged(by(MUTANTS[id_].step), tokens=20_000).verdict == Verdict.LOSSY


def sampled(row: Callable[[Tokens], np.ndarray]) -> Generate:
    """A sampler of the chain itself, or of something near it."""

    ends = cache(lambda last: np.cumsum(row(last)))

    def generate(target, drafter, context, tokens, rng):
        text = list(context)
        for u in rng.random(tokens):
            text.append(int(ends(tuple(text[-1:])).searchsorted(u)))
        return tuple(text[len(context) :])

    return generate


def test_false_alarms() -> None:
    """At alpha 0.1, 100 runs of a right sampler give more than 25 once in 100,000 times."""
    most = stats.binom.ppf(1 - 1e-5, 100, 0.1)
    assert most == 25
    alarms = [
        judge_markov(
            sampled(TARGET.next_token), TARGET, DRAFTER, tokens=300, seed=seed, alpha=0.1
        ).verdict
        == Verdict.LOSSY
        for seed in range(100)
    ]
    assert sum(alarms) <= most


def test_an_impossible_token_decides_at_once() -> None:
    rows = ["1/2", "1/2", 0], ["1/6", "1/2", "1/3"], ["1/3", "2/3", 0]
    zeros = markov_model(Vocabulary("abc"), rows[0], rows)
    report = judge_markov(
        sampled(lambda context: np.full(3, 1 / 3)), zeros, zeros, tokens=600, seed=1
    )
    assert report.verdict == Verdict.LOSSY
    assert re.fullmatch(r"token 2 after '[ac]': the target excludes it", str(report.impossible))


@pytest.mark.parametrize(
    ("generate", "stopped"),
    [
        (lambda *arguments: (0, 1), "generate gave 2 tokens, not 500"),
        (lambda *arguments: (0,) * 501, "generate gave 501 tokens, not 500"),
        (lambda *arguments: (5,) * 500, "expected token ids < 5"),
        (lambda *arguments: (0.5,) * 500, "expected token ids < 5"),
        (lambda *arguments: 1 / 0, "generate raised ZeroDivisionError"),
        (lambda *arguments: None, "generate raised TypeError"),
    ],
)
def test_bad_texts_stop_the_campaign(generate: Generate, stopped: str) -> None:
    report = judged(generate)
    assert report.verdict == Verdict.INCONCLUSIVE
    assert stopped in str(report.stopped)


def test_bad_arguments() -> None:
    generate = by(RULES["autoregressive"].step)
    with pytest.raises(ValueError, match="depends on more than the last token"):
        judge_markov(generate, hashed_model(FIVE, "p"), DRAFTER, tokens=100, seed=1)
    ends = chain(Vocabulary("abcde", eos="e"), "p")
    with pytest.raises(ValueError, match="target has EOS 'e'"):
        judge_markov(generate, ends, DRAFTER, tokens=100, seed=1)


def test_greedy_text_ends_with_eos_and_takes_the_first_of_equals() -> None:
    ends = Vocabulary("abc", eos="c")
    model = markov_model(ends, ["1/2", "1/2", 0], [[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    assert greedy_text(model, (), 9) == (0, 1, 2)


def test_greedy_judge_names_the_first_difference() -> None:
    def generate(target, drafter, context, tokens, rng):
        return greedy_text(drafter if context else target, context, tokens)

    contexts = [(), (0,), (1,)]
    found = judge_greedy(generate, TARGET, DRAFTER, contexts, tokens=9, seed=1)
    assert str(found).startswith("after (0,): ")
    assert judge_greedy(generate, TARGET, DRAFTER, [()], tokens=9, seed=1) is None


def test_three_quarters_of_the_expected_transitions_are_counted() -> None:
    """From token 0 every second token is 0, whatever comes; 601 tokens are two texts."""
    swinging = Chain(markov_model(Vocabulary("ab"), [1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]]))
    asked: list[tuple[Tokens, int]] = []

    def generate(target: Model, drafter: Model, context: Tokens, tokens: int, rng: object) -> list:
        asked.append((context, tokens))
        return [(context[-1] + i + 1) % 2 for i in range(tokens)]

    report = judge_markov(generate, swinging, swinging, tokens=601, seed=1)
    assert asked == [((0,), 500), ((0,), 101)]
    assert [(found.case, found.trials) for found in report.intervals] == [
        ("after 'a'", 225),  # of 301
        ("after 'b'", 225),  # of 300
    ]


def test_a_transition_that_is_too_rare_is_not_counted() -> None:
    alone = Chain(markov_model(Vocabulary("ab"), [1.0, 0.0], [[1.0, 0.0], [0.5, 0.5]]))

    def generate(target: Model, drafter: Model, context: Tokens, tokens: int, rng: object) -> list:
        return [0] * tokens

    report = judge_markov(generate, alone, alone, tokens=2, seed=1)
    assert [(found.case, found.trials) for found in report.intervals] == [("after 'a'", 1)]
    with pytest.raises(ValueError, match="tokens = 1: expected more, to count any transition"):
        judge_markov(generate, alone, alone, tokens=1, seed=1)
