"""Whole generations of every method are drawn from the target: bets on each emitted token.

Alpha is 1e-9 for each campaign, decided once, at the end. p is computed again for the finished
texts, in one pass without caches; the bets are those of `Campaign.observe` and of
`EntropyMartingale`, directed by the drafter's declared laws (lazy SLRS declares none). Power is
shown, on the same pairs: three in four drafts accepted unseen are found on a CPU, and one in ten
on CUDA. What distance from p that is, and at how many tokens, is printed.

At least 100,000 iterations of each method on CUDA, and 300 on a CPU. SLRS has 10,000 and 256, the
first after prompts, since each new context costs it a walk of the prefix tree.
"""

import math

import numpy as np
import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch

from gpu_tests.betting import ALPHA, Rows, chunks, log10_evidence, log_bets
from gpu_tests.cases import CASES
from gpu_tests.lab import Figure, Lab
from gpu_tests.recording import Record
from specref.conformance.texts.entropy import EntropyMartingale
from specref.statistics import Campaign
from specref.statistics.campaign.bets import FEATURES

LOSSY = -math.log10(ALPHA)
SPECULATIVE = [name for name in CASES if name != "autoregressive"]


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_found(lab: Lab, name: str, figure: Figure) -> None:
    record = lab.record(name)
    evidence, iterations = log10_evidence(record, lab.device), len(record.generation.log)
    figure(
        f"{name}: {len(record.tokens):,} tokens, {iterations:,} iterations, "
        f"evidence 10^{evidence:.1f} (lossy from 10^{LOSSY:.0f} on)",
    )
    assert iterations >= lab.iterations(name)
    assert evidence < LOSSY


@pytest.mark.parametrize("name", SPECULATIVE)
def test_leniency_is_found(lab: Lab, name: str, figure: Figure) -> None:
    record = lab.buggy(name, "lenient")
    evidence, away = log10_evidence(record, lab.device), distance(record, lab.share)
    figure(
        f"{name}, {lab.share:.0%} accepted unseen: {len(record.tokens):,} tokens, "
        + (f"total variation {away:.3f} a token, " if away else "")
        + f"evidence 10^{evidence:.1f}",
    )
    assert evidence >= LOSSY


@pytest.mark.parametrize("bug", ["residual_is_p", "bonus_from_q", "row_before"])
def test_bugs_of_the_rule_are_found(lab: Lab, bug: str) -> None:
    assert log10_evidence(lab.buggy("standard", bug), lab.device) >= LOSSY


def test_a_temperature_is_found_without_drafts(lab: Lab) -> None:
    assert log10_evidence(lab.buggy("autoregressive", "sharper"), lab.device) >= LOSSY


def test_bets_are_those_of_the_engine(lab: Lab) -> None:
    record = lab.record("standard")
    rows = Rows(*(tensor[:60] for tensor in next(chunks(record, lab.device))))
    campaign, martingale = Campaign(eps=None), EntropyMartingale()
    p, q = (laws.cpu().numpy() for laws in (rows.p, rows.q / rows.q.sum(1, keepdim=True)))
    for place, token in enumerate(rows.tokens.tolist()):
        campaign.observe(p[place], token, q[place], last=bool(rows.last[place]))
        martingale.observe(p[place], token)
    observer = campaign.evidence.observer
    tilts = observer.tilts[: len(FEATURES) - 1, :, -1]
    expected = [observer.library.ravel(), tilts.ravel(), martingale.log_wealth]
    assert FEATURES[-1] == "last id"
    found = log_bets(rows).sum(0).cpu().numpy()
    np.testing.assert_allclose(found, np.concatenate(expected), atol=1e-6)


def distance(record: Record, share: float) -> float:
    """Total variation per token of a share of drafts being accepted unseen, for declared laws."""
    p, q = record.p[record.drafted], record.q[record.drafted]
    accepted = torch.where(p > 0, (1 - share) * torch.minimum(p, q) + share * q, 0)
    excess = (p - q).clamp(min=0)
    residual = excess / excess.sum(1, keepdim=True).clamp(min=1e-12)
    law = accepted + (1 - accepted.sum(1, keepdim=True)) * residual
    return float((law - p).abs().sum() / 2) / len(record.p)
