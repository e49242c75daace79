"""Drafts are accepted as often as the pair's own laws say, at each position of the blocks.

The declared interval holds with probability 1 - 1e-6 at each position, for p computed again by
teacher forcing and q as declared: sum min(p, q) for the standard rule, p(draft) for exact match.
What it finds is printed: about 5.5 standard deviations, 0.14 in a rate at 360 drafts. Lazy SLRS
declares no law: its verdicts are compared with those of full psi in proofs_tests. Of drafts that
are verified by block, at least k are accepted with the probability P_k of the first k.
"""

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch

from gpu_tests.acceptance import ALPHA, acceptance, interval, jointly
from gpu_tests.cases import CASES
from gpu_tests.lab import Figure, Lab
from specref.theory import metrics

DRAFTING = [
    name
    for name, case in CASES.items()
    if case.method not in ("autoregressive", "lazy-slrs") and case.verification == "token"
]
BY_BLOCK = [name for name, case in CASES.items() if case.verification == "block"]


@pytest.mark.parametrize("name", DRAFTING)
def test_acceptance_is_that_of_the_laws(lab: Lab, name: str, figure: Figure) -> None:
    found = list(acceptance(lab.record(name)))
    for one in found:
        figure(f"{name}, {one}")
    assert found
    assert all(one.conforms for one in found)


@pytest.mark.parametrize("name", BY_BLOCK)
def test_joint_acceptance_is_that_of_the_laws(lab: Lab, name: str, figure: Figure) -> None:
    record = lab.record(name)
    assert record.prefixes is not None
    found = list(jointly(record.prefixes))
    for one in found:
        figure(f"{name}, {one}")
    assert sum(one.reached for one in found) == sum(it.drafted for it in record.generation.log)
    assert sum(one.accepted for one in found) == sum(it.prefix for it in record.generation.log)
    assert all(one.conforms for one in found)


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
    assert not all(one.conforms for one in jointly(prefixes))


@pytest.mark.parametrize("name", DRAFTING)
def test_figures_are_those_of_the_definitions(lab: Lab, name: str) -> None:
    generation = lab.record(name).generation
    log = [
        metrics.Iteration(
            (True,) * one.prefix + (False,) * (one.drafted - one.prefix), one.emitted
        )
        for one in generation.log
    ]
    for figure in ("acceptance_rate", "mean_accepted_length", "tokens_per_iteration"):
        assert getattr(generation, figure) == pytest.approx(float(getattr(metrics, figure)(log)))
    at_positions = [float(share) for share in metrics.acceptance_at_positions(log)]
    assert generation.acceptance_at_positions == pytest.approx(at_positions)
    reached = list(acceptance(lab.record(name)))
    assert sum(one.accepted for one in reached) == generation.accepted


@pytest.mark.parametrize("name", ["standard", "union", "tli", "slem"])
def test_leniency_is_noticed(lab: Lab, name: str) -> None:
    assert not all(one.conforms for one in acceptance(lab.buggy(name, "lenient")))


def test_the_row_before_is_noticed(lab: Lab) -> None:
    assert not all(one.conforms for one in acceptance(lab.buggy("standard", "row_before")))


def test_intervals_hold() -> None:
    """Exactly, for 40 coins of two kinds: the law of their number of heads is a convolution."""
    chances = torch.tensor([0.2] * 20 + [0.9] * 20, dtype=torch.float64)
    law = torch.ones(1, dtype=torch.float64)
    for chance in chances:
        law = torch.cat([law * (1 - chance), law.new_zeros(1)]) + torch.cat(
            [law.new_zeros(1), law * chance]
        )
    for alpha in (ALPHA, 0.01):
        low, high = interval(chances, alpha)
        outside = float(law[:low].sum() + law[high + 1 :].sum())
        assert alpha / 1e4 < outside <= alpha
