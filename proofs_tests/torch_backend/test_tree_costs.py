"""What batched verification of token trees costs: no waiting for the device, and a few rows."""

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from proofs_tests.helpers.torch.devices import WAITS, without_device
from proofs_tests.helpers.torch.laws import LAST
from proofs_tests.helpers.torch.pretend import Pretender, placed
from proofs_tests.helpers.torch.threads import single_thread
from proofs_tests.helpers.torch.tree_batches import EACH_RULE, batch, rows_of
from proofs_tests.helpers.torch.tree_laws import Verified
from specref.torch_backend import ROOT, Coins, validate_tree, verify_tree

one_thread = pytest.fixture(autouse=True, scope="module")(single_thread)


def verifications(given: tuple[Tensor, ...], coins: Coins, rule: str) -> dict[str, Any]:
    p, q, tokens, parents = given
    race = coins._replace(race=p[:, 0] + 1)
    return {
        "laws": lambda: verify_tree(p, q, tokens, parents, rule=rule, coins=coins),
        "race": lambda: verify_tree(p, q, tokens, parents, rule=rule, coins=race),
        "certain": lambda: verify_tree(p, None, tokens, parents, rule=rule, coins=coins),
        "bfloat16": lambda: verify_tree(
            p.bfloat16(), q.bfloat16(), tokens.int(), parents.int(), rule=rule, coins=coins
        ),
    }


@pytest.mark.deep(one_in=2)
@EACH_RULE
def test_verification_on_a_pretended_device_waits_for_nothing(rule: str) -> None:
    given, coins = tuple(one[:9] for one in batch().given), rows_of(batch().coins, slice(9))
    expected = verifications(given, coins, rule)
    with Pretender() as pretender:
        functions = verifications(placed(given), placed(coins), rule)
        pretender.events.clear()
        found = {name: function() for name, function in functions.items()}
        assert not pretender.events
        found = {name: [one.cpu() for one in both] for name, both in found.items()}
    for name, both in found.items():
        assert all(map(torch.equal, both, expected[name]()))


@pytest.mark.deep(one_in=2)
@EACH_RULE
def test_verification_asks_no_tensor_for_a_value(rule: str) -> None:
    found = without_device(
        lambda *given: verify_tree(*given[:4], rule=rule, coins=given[4]),
        *(*batch().given, batch().coins),
    )
    assert found[0].shape == (len(batch().rows), batch().tokens.shape[1] + 1)
    with pytest.raises(WAITS):
        without_device(validate_tree, *batch().given)


@pytest.mark.deep(one_in=2)
@EACH_RULE
def test_verification_is_one_graph(rule: str) -> None:
    p, *others = (one[:8] for one in batch().given)
    given, coins = (p[:, :4], *(one[:, :3] for one in others)), rows_of(batch().coins, slice(8))
    coins = coins._replace(accept=coins.accept[:, :3])
    compiled = torch.compile(verify_tree, fullgraph=True, backend="eager")
    found = compiled(*given, rule=rule, coins=coins)
    assert all(map(torch.equal, found, verify_tree(*given, rule=rule, coins=coins)))


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


def peak(function: Callable[..., Verified], nodes: int, dtype: torch.dtype) -> float:
    """In rows of float32, one law for each row of the batch."""
    p = torch.full((3, nodes + 1, 4000), 1 / 4000, dtype=dtype)
    q, tokens = p[:, 1:].clone(), torch.ones(3, nodes, dtype=torch.int64)
    uniforms, parents = torch.full((3, nodes), LAST).double(), torch.full_like(tokens, ROOT)
    coins = Coins(uniforms, final=uniforms[:, 0])
    with Peak(p, q, tokens, parents, uniforms) as counted:
        function(p, q, tokens, parents, coins)
    return counted.bytes / (3 * 4000 * 4)


def every_row(p: Tensor, q: Tensor, *tree: Any) -> Any:
    residual = (p[:, :-1] - q).clamp(min=0)
    return residual, verify_tree(p, q, *tree[:2], coins=tree[2])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_memory_is_that_of_a_few_rows(dtype: torch.dtype) -> None:
    """Top-down, whatever the number of nodes; traversal keeps the target's laws in float32."""

    def topdown(*given: Any) -> Verified:
        return verify_tree(*given[:4], coins=given[4])

    def traversing(*given: Any) -> Verified:
        return verify_tree(*given[:4], rule="traversal", coins=given[4])

    assert peak(topdown, 2, dtype) < 3
    assert peak(topdown, 16, dtype) - peak(topdown, 2, dtype) < 0.1
    assert peak(traversing, 16, dtype) < 17 + 3
    assert peak(every_row, 16, dtype) > peak(topdown, 2, dtype) + (6 if dtype.itemsize < 4 else 14)
