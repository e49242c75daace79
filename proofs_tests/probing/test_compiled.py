"""Samplers that torch compiles are probed as others are."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

import torch

from specref import check
from specref.probing import probe

ROOT = Path(__file__).resolve().parents[2]


def core(p: Any, q: Any, drafts: Any, lossy: bool) -> tuple[Any, Any]:
    rows, place = torch.arange(len(drafts)), torch.arange(drafts.shape[1] + 1)
    x, given = drafts.clamp(min=0)[..., None], drafts >= 0
    ratio = p[:, :-1].gather(2, x)[..., 0] / q.gather(2, x)[..., 0]
    kept = ((torch.rand(drafts.shape) < ratio) & given).long().cumprod(1).sum(1)
    q = torch.cat([q, torch.zeros_like(p[:, :1])], 1)[rows, kept]
    rejected = kept < given.sum(1)
    left = p[rows, kept] - q * (rejected & (not lossy))[:, None]
    last = torch.multinomial(left.clamp(min=0), 1)
    tokens = torch.cat([drafts, -torch.ones_like(last)], 1)
    after = torch.where(place == kept[:, None], last, -1)
    return torch.where(place < kept[:, None], tokens, after), kept + 1


def sampler(before: bool, lossy: bool) -> Callable[..., Any]:
    """Compiled before the first call, or in it."""
    compiled = [torch.compile(core, backend="eager")] if before else []

    def verify(target_probs: Any, draft_probs: Any, draft_tokens: Any) -> tuple[Any, Any]:
        if not compiled:
            compiled.append(torch.compile(core, backend="eager"))
        answer: tuple[Any, Any] = compiled[0](target_probs, draft_probs, draft_tokens, lossy)
        return answer

    return verify


def test_the_law_of_a_compiled_sampler_is_exact() -> None:
    p, q = torch.tensor([[[0.25, 0.75], [0.5, 0.5]]]), torch.tensor([[[0.5, 0.5]]])
    found = {}
    for lossy in (False, True):
        verify = sampler(lossy, lossy)
        probed = probe(lambda verify=verify: blocks(verify(p, q, torch.tensor([[0]]))))
        assert probed.uninterpreted is None
        found[lossy] = {block: round(mass, 6) for block, mass in probed.distribution.items()}
    assert found[False] == {(0, 0): 0.25, (0, 1): 0.25, (1,): 0.5}
    assert found[True] == {(0, 0): 0.25, (0, 1): 0.25, (0,): 0.125, (1,): 0.375}


@pytest.mark.deep
@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("lossy", [False, True])
def test_a_compiled_sampler_is_probed(before: bool, lossy: bool) -> None:
    report = check(
        sampler(before, lossy), arrays="torch", dtype="float32", one_hot=False,
        only=["joint/probed"],
    )  # fmt: skip
    assert (report.exit_code, report.lossy) == (int(lossy), lossy), report


def blocks(answer: tuple[Any, Any]) -> tuple[int, ...]:
    tokens, counts = answer
    return tuple(tokens[0, : int(counts[0])].tolist())


ALONE = """
import sys, torch
from proofs_tests.probing.test_compiled import core, sampler
from specref import check

def plain(target_probs, draft_probs, draft_tokens):
    return core(target_probs, draft_probs, draft_tokens, lossy=False)

asked = {"arrays": "torch", "dtype": "float32", "one_hot": False, "only": ["joint/probed"]}
assert check(plain, **asked).exit_code == 0
assert "torch._dynamo" not in sys.modules
assert check(sampler(False, lossy=True), **asked).lossy
assert "torch._dynamo" in sys.modules
"""


@pytest.mark.deep
def test_the_compiler_is_imported_by_what_is_compiled_alone() -> None:
    subprocess.run([sys.executable, "-c", ALONE], cwd=ROOT, check=True)
