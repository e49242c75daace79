"""Whole generations of every method: their tokens and their accepted drafts have the right laws.

**Tokens** are drawn from the target: bets on each of them. Alpha is 1e-9 for each campaign,
decided once, at the end. p is computed again for the finished texts, in one pass without caches;
the bets are those of `specref.contrib.real_models`, directed by the drafter's
declared laws (lazy SLRS declares none). Power is shown, on the same pairs: three in four drafts
accepted unseen are found on a CPU, and one in ten on CUDA. What distance from p that is, and at
how many tokens, is printed.

**Drafts** are accepted as often as the pair's own laws say, at each position of the blocks. The
declared interval holds with probability 1 - 1e-6 at each position, for p computed again and q as
declared: sum min(p, q) for the standard rule, p(draft) for exact match. What it finds is printed:
about 5.5 standard deviations, 0.14 in a rate at 360 drafts. Verdicts of lazy SLRS are compared
with those of full psi in proofs_tests. Of drafts that are verified by block, at least k are
accepted with the probability P_k of the first k.

At least 100,000 iterations of each method on CUDA, and 300 on a CPU. SLRS has 10,000 and 256, the
first after prompts, since each new context costs it a walk of the prefix tree.
"""

from collections.abc import Iterable
from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch

from gpu_tests.judging import LOSSY, acceptance, chunks, jointly, log10_evidence, told
from gpu_tests.lab import Figure, Lab
from gpu_tests.pairs import CASES
from gpu_tests.recording import Record
from specref.contrib.real_models.tally import Rows, log_bets

SPECULATIVE = [name for name in CASES if name != "autoregressive"]
DRAFTING = [
    name
    for name, case in CASES.items()
    if case.method not in ("autoregressive", "slrs") and case.verification == "token"
]
BY_BLOCK = [name for name, case in CASES.items() if case.verification == "block"]
FEW = "standard"


def few(names: Iterable[str]) -> list[Any]:
    """All names, of which `FEW` runs by default: a case is generated once for all tests."""
    return [name if name == FEW else pytest.param(name, marks=pytest.mark.deep) for name in names]


@pytest.mark.parametrize("name", few(CASES))
def test_nothing_is_found(lab: Lab, name: str, figure: Figure) -> None:
    record = lab.record(name)
    evidence, iterations = log10_evidence(record, lab.device), len(record.generation.log)
    figure(
        f"{name}: {len(record.tokens):,} tokens, {iterations:,} iterations, "
        f"evidence 10^{evidence:.1f} (lossy from 10^{LOSSY:.0f} on)",
    )
    assert iterations >= lab.iterations(name)
    assert evidence < LOSSY


@pytest.mark.parametrize("name", few(SPECULATIVE))
def test_leniency_is_found(lab: Lab, name: str, figure: Figure) -> None:
    record = lab.buggy(name, "lenient")
    evidence, away = log10_evidence(record, lab.device), distance(record, lab.share)
    figure(
        f"{name}, {lab.share:.0%} accepted unseen: {len(record.tokens):,} tokens, "
        + (f"total variation {away:.3f} a token, " if away else "")
        + f"evidence 10^{evidence:.1f}",
    )
    assert evidence >= LOSSY or not lab.finds


@pytest.mark.deep
@pytest.mark.parametrize("bug", ["residual_is_p", "bonus_from_q", "row_before"])
def test_bugs_of_the_rule_are_found(lab: Lab, bug: str) -> None:
    found = log10_evidence(lab.buggy("standard", bug), lab.device)
    assert found >= LOSSY or not lab.finds


@pytest.mark.deep
def test_a_temperature_is_found_without_drafts(lab: Lab) -> None:
    found = log10_evidence(lab.buggy("autoregressive", "sharper"), lab.device)
    assert found >= LOSSY or not lab.finds


def test_bets_are_those_of_the_host(lab: Lab) -> None:
    """There they are compared with those of `specref.statistics`, in proofs_tests."""
    rows = Rows(*(tensor[:60] for tensor in next(chunks(lab.record("standard"), lab.device))))
    found = log_bets(rows).cpu()
    torch.testing.assert_close(found, log_bets(Rows(*(one.cpu() for one in rows))))


def distance(record: Record, share: float) -> float:
    """Total variation per token of a share of drafts being accepted unseen, for declared laws."""
    p, q = record.p[record.drafted], record.q[record.drafted]
    accepted = torch.where(p > 0, (1 - share) * torch.minimum(p, q) + share * q, 0)
    excess = (p - q).clamp(min=0)
    residual = excess / excess.sum(1, keepdim=True).clamp(min=1e-12)
    law = accepted + (1 - accepted.sum(1, keepdim=True)) * residual
    return float((law - p).abs().sum() / 2) / len(record.p)


@pytest.mark.parametrize("name", few(DRAFTING))
def test_acceptance_is_that_of_the_laws(lab: Lab, name: str, figure: Figure) -> None:
    record = lab.record(name)
    found = acceptance(record)
    assert sum(one.accepted for one in found) == record.generation.accepted
    for number, one in enumerate(found, 1):
        figure(f"{name}, position {number}: {told(one)}")
    assert found
    assert all(one.conforms for one in found)


@pytest.mark.deep
@pytest.mark.parametrize("name", BY_BLOCK)
def test_joint_acceptance_is_that_of_the_laws(lab: Lab, name: str, figure: Figure) -> None:
    record = lab.record(name)
    assert record.prefixes is not None
    found = jointly(record.prefixes)
    for number, one in enumerate(found, 1):
        figure(f"{name}, position {number}: {told(one)}")
    assert sum(one.reached for one in found) == sum(it.drafted for it in record.generation.log)
    assert sum(one.accepted for one in found) == sum(it.prefix for it in record.generation.log)
    assert all(one.conforms for one in found)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "bug"),
    [
        ("standard, block", "first_failure"),
        ("standard, block", "lenient"),
        ("tli, block", "lenient"),
    ],
)
def test_other_joint_rules_are_noticed(lab: Lab, name: str, bug: str) -> None:
    prefixes = lab.buggy(name, bug).prefixes
    assert prefixes is not None
    assert not all(one.conforms for one in jointly(prefixes)) or not lab.finds


@pytest.mark.parametrize("name", few(["standard", "union", "tli", "slem"]))
def test_leniency_is_noticed_by_acceptance(lab: Lab, name: str) -> None:
    found = acceptance(lab.buggy(name, "lenient"))
    assert not all(one.conforms for one in found) or not lab.finds


@pytest.mark.deep
def test_the_row_before_is_noticed_by_acceptance(lab: Lab) -> None:
    found = acceptance(lab.buggy("standard", "row_before"))
    assert not all(one.conforms for one in found) or not lab.finds
