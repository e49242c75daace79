"""What verification costs a device: no waiting for it, and the memory of one row of laws.

Without CUDA the first is seen on tensors that have no values: whatever would have to wait for
one raises.
"""

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from proofs_tests.helpers.torch.devices import WAITS, reading_a_number, without_device
from proofs_tests.helpers.torch.laws import ragged_batch
from specref.torch_backend.verification.chains import (
    NO_DRAFT,
    Coins,
    validate,
    verify,
    verify_matching,
)


def verified(p: Tensor, q: Tensor | None, tokens: Tensor, coins: Coins) -> tuple[Tensor, Tensor]:
    return verify(p, q, tokens, coins=coins)


def asking_a_tensor(p: Tensor) -> Tensor:
    return p * 2 if p.sum() > 1 else p


def masking(p: Tensor) -> Tensor:
    return p[p > 0.5]


def listing(p: Tensor) -> Any:
    return p[0].tolist()


def places(p: Tensor) -> Tensor:
    return p.nonzero()


@pytest.mark.parametrize("waiting", [reading_a_number, asking_a_tensor, masking, listing, places])
def test_waiting_is_seen(waiting: Callable[[Tensor], Any]) -> None:
    with pytest.raises(WAITS):
        without_device(waiting, torch.rand(3, 2))


def test_verification_waits_for_nothing() -> None:
    p, q, tokens, coins = ragged_batch()
    lens = (tokens != NO_DRAFT).sum(dim=1)
    race = coins._replace(race=p[:, 0])
    for laws, drawn in ((q, coins), (None, coins), (q, race), (None, race)):
        found = without_device(
            lambda *a: verify(*a[:3], lens=a[3], coins=a[4]), p, laws, tokens, lens, drawn
        )
        assert found[0].shape == (len(p), 4)
    without_device(
        lambda *a: verify_matching(*a[:2], lens=a[2], coins=a[3]), p, tokens, lens, coins
    )
    with pytest.raises(WAITS):
        without_device(validate, p, q, tokens)


@pytest.mark.deep
def test_verification_is_one_graph() -> None:
    compiled = torch.compile(verify, fullgraph=True, backend="eager")
    p, q, tokens, coins = ragged_batch()
    found = compiled(p, q, tokens, coins=coins)
    assert all(map(torch.equal, found, verify(p, q, tokens, coins=coins)))


class Allocations(TorchDispatchMode):
    """The bytes of all storages that operations make; they are kept, so that none is reused."""

    def __init__(self, *known: Tensor) -> None:
        super().__init__()
        self.storages = {t.untyped_storage().data_ptr(): t.untyped_storage() for t in known}
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in (leaf for leaf in tree_leaves(out) if isinstance(leaf, Tensor)):
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in self.storages:
                self.storages[storage.data_ptr()] = storage
                self.bytes += storage.nbytes()
        return out


def allocated(
    function: Callable[..., Any], lookahead: int, rows: int = 3, size: int = 4000
) -> int:
    p = torch.full((rows, lookahead + 1, size), 1 / size)
    q, tokens = p[:, 1:].clone(), torch.ones(rows, lookahead, dtype=torch.int64)
    coins = Coins(torch.zeros(rows, lookahead).double(), final=torch.zeros(rows).double())
    with Allocations(p, q, tokens, coins.accept, coins.final) as counted:
        function(p, q, tokens, coins)
    return counted.bytes


def every_row(p: Tensor, q: Tensor, tokens: Tensor, coins: Coins) -> Any:
    residual = (p[:, :-1] - q).clamp(min=0)
    return residual, verify(p, q, tokens, coins=coins)


def test_memory_is_that_of_one_row() -> None:
    """All that is ever allocated: less than 7 float32 rows, whatever the lookahead."""
    row = 3 * 4000 * 4
    assert allocated(verified, 1) < 3 * (3 * row)
    assert allocated(verified, 9) < 7 * row
    assert allocated(verified, 9) - allocated(verified, 1) < 0.1 * row
    assert allocated(every_row, 9) > 2 * 9 * row
