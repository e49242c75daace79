"""Figures of generations mean what `specref.theory.metrics` says they mean."""

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

from proofs_tests.helpers.torch.generations import arguments, prompts
from proofs_tests.helpers.torch.models import llama
from specref.theory import metrics
from specref.torch_backend import Generation, Iteration, generate


@pytest.mark.deep(one_in=3)
@pytest.mark.parametrize("method", ["standard", "union", "slem"])
def test_figures_are_those_of_the_definitions(method: str) -> None:
    found = generate(
        **arguments(method), prompts=prompts(6, 5), seeds=range(6), eos=3, max_new_tokens=20
    )
    log = [
        metrics.Iteration((True,) * i.prefix + (False,) * (i.drafted - i.prefix), i.emitted)
        for i in found.log
    ]
    for name in ("acceptance_rate", "mean_accepted_length", "tokens_per_iteration"):
        assert getattr(found, name) == float(metrics.METRICS[name](log))
    shares = metrics.acceptance_at_positions(log)
    assert found.acceptance_at_positions == tuple(map(float, shares))
    assert (found.drafted, found.accepted, found.emitted) == (
        sum(i.drafted for i in log),
        sum(i.accepted for i in log),
        sum(map(len, found.tokens)),
    )
    assert any(i.accepted < i.prefix or i.prefix < i.drafted for i in found.log)


def test_figures_notice_drafts_after_the_end() -> None:
    """The prefix is longer than what was emitted: EOS was the first of two accepted drafts."""
    right, wrong = Iteration(3, 2, 1), Iteration(3, 2, 3)
    logs = [metrics.Iteration((True, True, False), i.emitted) for i in (right, wrong)]
    shares = [float(metrics.acceptance_rate([log])) for log in logs]
    found = [Generation(((1,),), ((i,),), 1, 3, 0.0).acceptance_rate for i in (right, wrong)]
    assert found == shares == [1 / 3, 2 / 3]


def test_a_drafter_that_is_the_target_is_always_accepted() -> None:
    """Each block is lookahead + 1 tokens of one target forward and lookahead drafter forwards."""
    target = llama().double()
    found = generate(
        target, target, prompts(3), seeds=range(3), max_new_tokens=20, temperature=0.7, top_k=4
    )
    assert found.acceptance_rate == 1
    assert found.acceptance_at_positions == (1.0,) * 4
    assert (found.target_forwards, found.drafter_forwards) == (4, 16)
    assert found.tokens_per_iteration == 5
    assert found.tokens_per_target_forward == 15


def test_nothing_drafted_has_no_acceptance_rate() -> None:
    found = generate(**arguments("autoregressive"), prompts=[[1]], seeds=[0], max_new_tokens=3)
    assert found.acceptance_at_positions == ()
    assert found.tokens_per_target_forward == 1
    assert found.acceptance_rate is None


@pytest.mark.parametrize("drafted", [(2, 3, 1), (2, 1, 3), (2, 1, 0)])
def test_impossible_iterations_are_refused(drafted: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="expected"):
        Iteration(*drafted)
