"""What the pretended CUDA device refuses and sees, and verification on it."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from proofs_tests.helpers.torch.laws import ragged_batch
from proofs_tests.helpers.torch.models import llama
from proofs_tests.helpers.torch.pretend import CUDA, Generator, Pretender, placed
from proofs_tests.helpers.torch.tree_laws import RULES, batch, rows_of
from specref.torch_backend import (
    TreeModel,
    draw,
    row_coins,
    shape_logits,
    validate,
    verify,
    verify_block,
    verify_matching,
    verify_tree,
)
from specref.torch_backend.verification.chains import NO_DRAFT

X, INDEX = torch.tensor([[0.25, 0.75], [0.5, 0.5]]), torch.tensor([[1], [0]])
MISTAKES: Mapping[str, Callable[[Tensor], Any]] = MappingProxyType(
    {
        "gather": lambda x: x.gather(1, INDEX),
        "a number in gather": lambda x: x[0].gather(0, INDEX[0, 0]),
        "scatter": lambda x: x.scatter_(1, INDEX, 1.0),
        "cat": lambda x: torch.cat([x, X]),
        "stack": lambda x: torch.stack([X, x]),
        "plus": lambda x: x + X,
        "compare": lambda x: X[0] < x,
        "mask": lambda x: x.masked_fill(X > 0.5, 0),
        "where": lambda x: torch.where(X > 0.5, x, x),
        "take along": lambda x: x.take_along_dim(INDEX, 1),
        "clamp": lambda x: x.clamp(min=torch.tensor(0.1)),
        "out": lambda x: torch.add(x, x, out=X.clone()),
        "in place": lambda x: torch.tensor(1.0).add_(x[0, 0]),
        "index": lambda x: X[(x[:, 0] * 4).long()],
        "put": lambda x: x.__setitem__(INDEX[:, 0], X),
        "numpy": lambda x: x.numpy(),
        "generator": lambda x: torch.rand(2, generator=Generator("cpu"), device=x.device),
        "generator there": lambda x: torch.rand(2, generator=Generator("cuda")),
    }
)
OBSERVED: Mapping[str, tuple[Callable[[Tensor], Any], list[str]]] = MappingProxyType(
    {
        "item": (lambda x: x.sum().item(), ["wait"]),
        "float": (lambda x: float(x[0, 0]), ["wait"]),
        "bool": (lambda x: bool(x[0, 0]), ["wait"]),
        "list": (lambda x: x.tolist(), ["wait"]),
        "to the CPU": (lambda x: X.clone().copy_(x), ["wait"]),
        "nonzero": (lambda x: x.nonzero(), ["wait"]),
        "mask": (lambda x: x[x > 0.5], ["wait"]),
        "unique": (lambda x: torch.unique(x), ["wait"]),
        "equal": (lambda x: torch.equal(x, x), ["wait"]),
        "repeat": (lambda x: x[0].repeat_interleave((x[0] * 4).long()), ["wait"]),
        "select": (lambda x: x[(x[0, 1] * 0).long()], ["wait"]),
        "repeat so often": (
            lambda x: x[0].repeat_interleave((x[0] * 4).long(), output_size=4),
            [],
        ),
        "fill by a mask": (lambda x: x.__setitem__(x > 0.5, 0.0), []),
        "fill a part": (lambda x: x.__setitem__(0, 0.0), []),
        "fill a number": (lambda x: x[0].__setitem__(0, 0.0), ["blocking copy"]),
        "fill by an index": (
            lambda x: x.__setitem__((x[:, 0] * 4).long() % 2, 0.0),
            ["blocking copy"],
        ),
        "tensor": (lambda x: torch.tensor([1, 2], device=x.device), ["blocking copy"]),
        "new tensor": (lambda x: x.new_tensor([1, 2]), ["blocking copy"]),
        "list as index": (lambda x: x[[1, 0]], ["blocking copy"]),
        "index of the CPU": (lambda x: x[INDEX[:, 0]], ["blocking copy"]),
        "send": (lambda x: X.to(x.device, non_blocking=True), ["copy"]),
        "number of the CPU": (lambda x: x * torch.tensor(2.0), []),
        "factory": (lambda x: torch.zeros(2, device=x.device) + x.new_ones(2), []),
        "range": (lambda x: x[:, :1].expand(2, 3).cumsum(1).argmax(1), []),
    }
)


@pytest.mark.parametrize("inference", [True, False])
@pytest.mark.parametrize("name", MISTAKES)
def test_what_cuda_refuses(name: str, inference: bool) -> None:
    MISTAKES[name](X.clone()) if name not in ("index", "put") else None
    with Pretender(), torch.inference_mode(inference):
        x = X.to(CUDA)
        with pytest.raises(
            (RuntimeError, TypeError),
            match=r"same device|cuda:0 [dD]evice|device type for generator",
        ):
            MISTAKES[name](x)


@pytest.mark.parametrize("inference", [True, False])
@pytest.mark.parametrize("name", OBSERVED)
def test_what_waits(name: str, inference: bool) -> None:
    function, kinds = OBSERVED[name]
    expected = function(X.clone())
    with Pretender() as pretender, torch.inference_mode(inference):
        x = X.to(CUDA)
        pretender.events.clear()
        found = function(x)
        assert [event.kind for event in pretender.events] == kinds
        assert all(event.file == "test_pretend.py" for event in pretender.events)
        if isinstance(found, Tensor):
            assert found.cpu().equal(expected)


def verifications(device: Any) -> dict[str, Callable[[], Any]]:
    """All that verifies a batch with ragged rows, and shapes, draws and tosses for it."""
    p, q, drafts, coins = device(ragged_batch())
    race, lens = coins._replace(race=p[:, 0] + 1), (drafts != NO_DRAFT).sum(1)
    tree, nodes = device(
        (tuple(one[:9] for one in batch().given), rows_of(batch().coins, slice(9)))
    )
    return {
        "verify": lambda: verify(p, q, drafts, coins=coins),
        "verify, lens": lambda: verify(p, q, drafts, lens=lens, coins=race),
        "verify, certain": lambda: verify(p, None, drafts, coins=coins),
        "verify, bfloat16": lambda: verify(p.bfloat16(), q.bfloat16(), drafts, coins=coins),
        "verify_block": lambda: verify_block(p, q, drafts, lens=lens, coins=coins),
        "verify_block, race": lambda: verify_block(p, None, drafts, coins=race),
        "verify_matching": lambda: verify_matching(p, drafts, coins=coins),
        "verify_matching, lens": lambda: verify_matching(p, drafts, lens=lens, coins=coins),
        **{
            f"verify_tree, {rule}, {name}": partial(
                verify_tree, *tree[:1], laws, *tree[2:], rule=rule, coins=drawn
            )
            for rule in RULES
            for name, laws, drawn in (
                ("laws", tree[1], nodes),
                ("race", tree[1], nodes._replace(race=tree[0][:, 0] + 1)),
                ("certain", None, nodes),
            )
        },
        "greedy": lambda: shape_logits(p.log(), temperature=0),
        "shape_logits": lambda: shape_logits(p.log(), 0.7, top_k=3, top_p=0.8),
        "draw": lambda: draw(p[:, 0], coins.final),
        "draw of many": lambda: draw(p[:, 0].repeat(1, 999), coins.final),
        "row_coins": lambda: row_coins(drafts[:, 0], 3, 4),
    }


def test_verification_is_that_of_the_cpu_and_waits_for_nothing() -> None:
    expected = verifications(lambda batch: batch)
    with Pretender() as pretender:
        functions = verifications(placed)
        pretender.events.clear()
        found = {name: function() for name, function in functions.items()}
        assert not pretender.events
        found = tree_map_only(Tensor, Tensor.cpu, found)
    for name, values in found.items():
        torch.testing.assert_close(values, expected[name](), rtol=0, atol=0, equal_nan=True)


def test_validation_is_that_of_the_cpu() -> None:
    p, q, drafts = X.repeat(2, 2, 1)[:, :3], X.repeat(2, 1, 1), torch.tensor([[1, 0], [0, -1]])
    wrong = q.clone()
    wrong[1, 0, 0] = 0.5
    with Pretender() as pretender:
        validate(*placed((p, q, drafts)))
        with pytest.raises(ValueError, match=r"sum of draft_probs\[1, 0\] = 1.25: expected at"):
            validate(*placed((p, wrong, drafts)))
    assert ("validation.py", "refuse") in pretender.events.places("wait")


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("use_cache", [True, False])
def test_trees_are_those_of_the_cpu(use_cache: bool) -> None:
    def read(model: Any) -> list[Tensor]:
        trees = TreeModel(model, use_cache)
        found = [trees.begin([[1, 2, 3], [4]]), *trees.grow([[0, 0, 1], [0]], [[1, 2, 1], [5]])]
        found += trees.grow([[], [1]], [[], [3]])
        trees.forget()
        trees.select([1])
        return [*found, *trees.grow([[0, 1]], [[2, 6]]), trees.begin([[4, 2, 6]])]

    expected = read(llama().requires_grad_(False))
    with Pretender() as pretender:
        model = placed(llama().requires_grad_(False))
        pretender.events.clear()
        found = read(model)
        # Without a cache Transformers looks for several texts in a row.
        assert not use_cache or not pretender.events.places("wait", "blocking copy")
        found = [logits.cpu() for logits in found]
    assert all(map(torch.equal, found, expected))
