"""The samplers of the attack are what they are said to be.

Lossless ones: the joint law of the completed block on one small case, 20,000 rows (5,000 where a
call has one row), by a chi-squared test with alpha = 1e-6 each and a fixed seed. At 0.05 in total
variation 4 n TV^2 is 200 for 20,000 rows, and the power above 0.999 with 35 degrees of freedom; a
draw from p in place of the residual is found.
"""

import numpy as np
import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

import torch
from scipy.stats import chi2

from proofs_tests.helpers.attack.lossless import LOSSLESS, fresh
from proofs_tests.helpers.attack.parts import standard
from proofs_tests.helpers.attack.situations import Batch, drawn

ALPHA, ROWS, CALLS = 1e-6, 500, 40
TARGET = np.array([[0.5, 0.25, 0.25, 0], [0.125, 0.5, 0, 0.375], [0.25, 0.25, 0.25, 0.25]])
DRAFT = np.array([[0.125, 0.625, 0.125, 0.125], [0.5, 0.25, 0.25, 0]])


def p_value(verify, *, ragged: bool = True, rows: int = ROWS, calls: int = CALLS) -> float:
    """Of the law of three tokens, against independent draws from the target's rows."""
    lens = np.arange(rows) % 3 if ragged else np.full(rows, 2)
    batch = Batch(
        np.repeat(TARGET[None], rows, axis=0), np.repeat(DRAFT[None], rows, axis=0), lens
    )
    rng = np.random.default_rng(0)
    claims = getattr(verify, "specref_capabilities", None)
    counts = np.zeros((4, 4, 4))
    for call in range(calls):
        drafts = batch.drafts(rng)
        arguments = [batch.target.copy(), batch.draft.copy(), drafts]
        if claims is not None and claims.arrays == "torch":
            torch.manual_seed(call)
            arguments = [torch.tensor(a) for a in arguments]
        tokens, n = verify(*arguments, **randomness_for(verify, drafts, rng))
        block = batch.completed(np.array(tokens), np.array(n), rng)
        np.add.at(counts, tuple(block.T), 1)
    expected = np.einsum("i,j,k->ijk", *TARGET) * rows * calls
    assert not counts[expected == 0].any()
    possible = expected > 0
    statistic = ((counts - expected)[possible] ** 2 / expected[possible]).sum()
    return float(chi2.sf(statistic, possible.sum() - 1))


class Coins:
    def __init__(self, shape: tuple[int, int], rng: np.random.Generator) -> None:
        self.accept, self.race = rng.random(shape), rng.standard_exponential((shape[0], 4))


def randomness_for(verify, drafts, rng) -> dict:
    names = verify.__code__.co_varnames[
        : verify.__code__.co_argcount + verify.__code__.co_kwonlyargcount
    ]
    if "coins" in names:
        return {"coins": Coins(drafts.shape, rng)}
    if "generator" in names:
        return {"generator": torch.Generator().manual_seed(int(rng.integers(2**62)))}
    return {"rng": np.random.default_rng(rng.integers(2**63))} if "rng" in names else {}


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("name", LOSSLESS)
def test_lossless(name: str) -> None:
    verify = fresh(name)
    claims = getattr(verify, "specref_capabilities", None)
    if claims is not None and claims.batch == 1:
        assert p_value(verify, ragged=False, rows=1, calls=5000) > ALPHA
    else:
        assert p_value(verify, ragged=claims is None or claims.ragged) > ALPHA


def test_a_draw_from_p_in_place_of_the_residual_is_noticed() -> None:
    def verify(target_probs, draft_probs, draft_tokens, *, rng):
        return standard(target_probs, draft_probs, draft_tokens, rng, rest=lambda p, q: p)

    assert p_value(verify) < ALPHA


def test_drawn_has_the_law() -> None:
    ends = [np.cumsum(TARGET[0])] * 4000
    tokens = drawn(ends, (4000,), np.random.default_rng(1))
    assert np.allclose(np.bincount(tokens, minlength=4) / 4000, TARGET[0], atol=0.04)  # 5 sigma
