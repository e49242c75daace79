"""What Transformers' `generate` does on toy models: losslessness, acceptance, time a token.

Run as ``python -m proofs_tests.benchmarks.transformers_generate [tokens]``.
"""

import sys
import time

import numpy as np

from proofs_tests.helpers.chains import (
    DRAFTER,
    DRIFT,
    DRIFT_RELABELLED,
    OTHER,
    PAIRS,
    STILL,
    TARGET,
    kept_first,
    relabelled,
)
from specref.adapters import IMPLEMENTATIONS
from specref.conformance.markov import judge_markov
from specref.contrib.engines.transformers_generate import Generate
from specref.contrib.real_models.entropy import EntropyMartingale
from specref.models import Model
from specref.statistics.campaign.acceptance import binomial_interval

PATHS: tuple[tuple[str, dict, Model], ...] = (
    ("ar", {}, DRAFTER),
    ("sd", {}, DRAFTER),
    ("sd", {"temperature": 0.6}, DRAFTER),
    ("pld", {}, DRAFTER),
    ("tli", {}, OTHER),
    ("tli", {"order": "reversed"}, OTHER),
    ("tli", {"order": "sorted"}, OTHER),
)


def transitions(path: str, options: dict, drafter: Model, tokens: int) -> str:
    """The verdict on one path, and how long a token takes where nothing is found."""
    started = time.perf_counter()
    generate = Generate(path, **options)
    report = judge_markov(generate, TARGET, drafter, tokens=tokens, seed=5, alpha=1e-6)
    seconds = time.perf_counter() - started
    estimate = max(interval.estimate for interval in report.intervals)
    return (
        f"{path:4} {options!s:24} {report.verdict:12} evidence 10^{report.log10_evidence:<6.1f} "
        f"{report.trials:6,} transitions, largest TV {estimate:.3f}, {seconds:5.1f} s"
    )


def entropy(path: str, options: dict, drafter: Model, tokens: int) -> str:
    """The entropy martingale on one long text of a path."""
    text = Generate(path, **options)(TARGET, drafter, (0,), tokens, np.random.default_rng(5))
    martingale = EntropyMartingale()
    for before, token in zip((0, *text), text, strict=False):
        martingale.observe(TARGET.next_token((before,)), token)
    return f"{path:4} {options!s:24} {martingale.report()}"


def first_drafts(path: str, options: dict, drafter: Model, tokens: int) -> str:
    """How many first drafts are kept, with the exact interval, and sum min(p, q)."""
    generate = Generate(path, lookahead=1, **options)
    kept, drafted = kept_first(generate, STILL, drafter, tokens)
    low, high = binomial_interval(kept, drafted, 1e-6)
    formula = float(np.minimum(STILL.next_token(()), DRIFT.next_token(())).sum())
    return (
        f"{path:4} {options!s:24} first drafts kept {kept / drafted:.3f} [{low:.3f}, {high:.3f}], "
        f"sum min(p, q) {formula:.3f}"
    )


def self_draft(path: str, options: dict, model: Model, drafter: Model, label: str) -> str:
    """How many drafts of the target itself are kept."""
    generate = Generate(path, **options)
    generate(model, drafter, (0, 1), 500, np.random.default_rng(5))
    drafted = sum(block.drafted for block in generate.blocks)
    kept = sum(block.accepted for block in generate.blocks)
    return f"{path:4} {options!s:24} {label}: {kept / drafted:.3f} of {drafted:,} drafts kept"


def main(tokens: int) -> None:
    """Print everything."""
    print(IMPLEMENTATIONS["transformers-generate-sd"].title)
    for path, options, drafter in PATHS:
        print(transitions(path, options, drafter, tokens))
    for path, options, drafter in PATHS:
        print(entropy(path, options, drafter, min(tokens, 2_000)))
    for options in ({}, {"order": "reversed"}, {"order": "sorted"}):
        print(first_drafts("tli", options, DRIFT_RELABELLED, min(tokens, 2_000)))
    print(first_drafts("sd", {}, DRIFT, min(tokens, 2_000)))
    for label, model in (("order 1", TARGET), ("order 2", PAIRS)):
        print(self_draft("sd", {}, model, model, f"target as drafter, {label}"))
        for order in ("shipped", "reversed", "sorted"):
            drafter, options = relabelled(model), {"order": order}
            print(self_draft("tli", options, model, drafter, f"relabelled target, {label}"))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
