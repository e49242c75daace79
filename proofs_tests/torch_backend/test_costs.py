"""What verification costs a device: one graph for a compiler, and the memory of a few rows.

That it waits for nothing is seen on a pretended device, in `test_pretend`.
"""

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from proofs_tests.helpers.torch.laws import LAST, ragged_batch
from proofs_tests.helpers.torch.tree_laws import RULES, batch, rows_of
from specref.torch_backend import ROOT, Coins, verify, verify_tree


@pytest.mark.deep
@pytest.mark.parametrize("rule", [None, *RULES])
def test_verification_is_one_graph(rule: str | None) -> None:
    function: Callable[..., Any] = verify
    given, coins, named = ragged_batch()[:3], ragged_batch()[3], {}
    if rule is not None:
        p, *others = (one[:8] for one in batch().given)
        given, coins = (
            (p[:, :4], *(one[:, :3] for one in others)),
            rows_of(batch().coins, slice(8)),
        )
        function, coins, named = (
            verify_tree,
            coins._replace(accept=coins.accept[:, :3]),
            {"rule": rule},
        )
    compiled = torch.compile(function, fullgraph=True, backend="eager")
    found = compiled(*given, **named, coins=coins)
    assert all(map(torch.equal, found, function(*given, **named, coins=coins)))


class Peak(TorchDispatchMode):
    """The most bytes that storages made by operations held at once."""

    def __init__(self, *known: Tensor) -> None:
        super().__init__()
        self.known = {one.untyped_storage().data_ptr() for one in known}
        self.held: dict[int, tuple[StorageWeakRef, int]] = {}
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in (leaf for leaf in tree_leaves(out) if isinstance(leaf, Tensor)):
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in self.known:
                self.held[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        self.held = {k: held for k, held in self.held.items() if not held[0].expired()}
        self.bytes = max(self.bytes, sum(size for _, size in self.held.values()))
        return out


def peak(function: Callable[..., Any], drafts: int, dtype: torch.dtype) -> float:
    """In rows of float32, one law for each row of the batch; the last token is of a residual."""
    p = torch.full((3, drafts + 1, 4000), 1 / 4000, dtype=dtype)
    q, tokens = p[:, 1:].clone(), torch.ones(3, drafts, dtype=torch.int64)
    uniforms, parents = torch.full((3, drafts), LAST).double(), torch.full_like(tokens, ROOT)
    coins = Coins(uniforms, final=uniforms[:, 0])
    with Peak(p, q, tokens, parents, uniforms) as counted:
        function(p, q, tokens, parents, coins)
    return counted.bytes / (3 * 4000 * 4)


def chains(p: Tensor, q: Tensor, tokens: Tensor, parents: Tensor, coins: Coins) -> Any:
    return verify(p, q, tokens, coins=coins)


def topdown(*given: Any) -> Any:
    return verify_tree(*given[:4], coins=given[4])


def traversal(*given: Any) -> Any:
    return verify_tree(*given[:4], rule="traversal", coins=given[4])


def every_row(p: Tensor, q: Tensor, *rest: Any) -> Any:
    residual = (p[:, :-1] - q).clamp(min=0)
    return residual, topdown(p, q, *rest)


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_memory_is_that_of_a_few_rows(dtype: torch.dtype) -> None:
    """Whatever the number of drafts; traversal keeps the target's laws in float32."""
    for rule in (chains, topdown):
        assert peak(rule, 2, dtype) < 3
        assert peak(rule, 16, dtype) - peak(rule, 2, dtype) < 0.1
    assert peak(traversal, 16, dtype) < 17 + 3
    assert peak(every_row, 16, dtype) > peak(topdown, 2, dtype) + (6 if dtype.itemsize < 4 else 14)
