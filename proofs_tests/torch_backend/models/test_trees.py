"""Tree attention gives every node what the model gives its path: ragged, grown, begun again."""

from functools import wraps

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from torch import Tensor
from transformers import PreTrainedModel

from proofs_tests.helpers.torch.models import MODELS, POSITIONS, llama
from proofs_tests.helpers.torch.walks import TreeWalk, error, plain
from specref.torch_backend.models import trees
from specref.torch_backend.models.slotted import Slots, SlottedModel
from specref.torch_backend.models.trees import Tree, TreeModel

EXACT = 1e-10


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> PreTrainedModel:
    return MODELS[request.param]().double()


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("rows", [1, 4])
def test_every_node_is_its_path(model: PreTrainedModel, rows: int, use_cache: bool) -> None:
    """With scaled dot-product attention; eager attention takes its softmax in float32."""
    walk = TreeWalk(model, rows, seed=rows, use_cache=use_cache)
    assert walk.run() < EXACT
    assert walk.model.begin(walk.contexts).dtype == torch.float64


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("kind", ["sdpa", "eager"])
def test_in_float32(model: PreTrainedModel, kind: str) -> None:
    model.float().set_attn_implementation(kind)
    walk = TreeWalk(model, 4, seed=4)
    assert walk.run() < 1e-4
    assert walk.model.begin(walk.contexts).dtype == torch.float32


@pytest.mark.parametrize("use_cache", [True, False])
def test_forgotten_nodes_take_no_place(model: PreTrainedModel, use_cache: bool) -> None:
    """New nodes are below the contexts alone, which are not read again."""
    walk = TreeWalk(model, 3, seed=6, use_cache=use_cache)
    longest = max(map(len, walk.contexts))
    for _ in range(4):
        walk.grow()
        walk.model.forget()
        walk.texts = [[list(context)] for context in walk.contexts]
        assert walk.model.slots.size == longest or not use_cache
    walk.grow()
    assert walk.worst < EXACT


@pytest.mark.deep
def test_holes_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed, compact = [], Slots.compact

    def counted(self: Slots) -> Tensor | None:
        closed.append(compact(self))
        return closed[-1]

    monkeypatch.setattr(Slots, "compact", counted)
    assert TreeWalk(llama().double(), 5, seed=3).run(40) < EXACT
    assert sum(order is not None for order in closed) > 2


def sibling(tree: Tree, count: int, end: int) -> list[tuple[int, ...]]:
    """Every node but the first sees the slot before its own too."""
    return [path if path[-1] == 0 else (*path, path[-1] - 1) for path in PLACE(tree, count, end)]


def orphan(tree: Tree, count: int, end: int) -> list[tuple[int, ...]]:
    """Nodes see themselves and the context only."""
    return [path[-1:] for path in PLACE(tree, count, end)]


def by_slot(tree: Tree, count: int) -> list[int]:
    """Positions count nodes, not depths."""
    ends = range(len(tree.tokens) - count, len(tree.tokens))
    return [min(POSITIONS - 1, len(tree.context) + number) for number in ends]


def late(tree: Tree, count: int) -> list[int]:
    """Positions one too far."""
    return [min(POSITIONS - 1, position + 1) for position in POSITIONS_OF(tree, count)]


PLACE, POSITIONS_OF = Tree.place, Tree.positions


@pytest.mark.parametrize(
    ("name", "bug"),
    [("place", sibling), ("place", orphan), ("positions", by_slot), ("positions", late)],
)
def test_a_wrong_tree_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
    model: PreTrainedModel,
    name: str,
    bug: object,
) -> None:
    monkeypatch.setattr(Tree, name, bug)
    assert TreeWalk(model, 3, seed=1).run(1) > 1e-6


@pytest.mark.parametrize("rows", [1, 3])
def test_a_tree_that_is_not_forgotten_is_noticed(
    monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(Slots, "crop", lambda self, lengths: None)
    assert TreeWalk(llama().double(), rows, seed=1).run(2) > 1e-6


def test_a_wrong_prefix_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One token that differs is taken for the same."""
    shared = trees.common_prefix

    def too_long(held: list[int], row: list[int]) -> int:
        return min(shared(held, row) + 1, len(held))

    monkeypatch.setattr(trees, "common_prefix", too_long)
    assert TreeWalk(llama().double(), 3, seed=1).run(8) > 1e-6


def test_dropping_other_rows_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    select = SlottedModel.select

    def others(model: SlottedModel, rows: list[int]) -> None:
        select(model, [row + 1 for row in rows[:-1]] + [0])

    monkeypatch.setattr(SlottedModel, "select", others)
    assert TreeWalk(llama().double(), 4, seed=1).run(4) > 1e-6


@pytest.mark.parametrize("use_cache", [True, False])
def test_reads_count_what_is_read(monkeypatch: pytest.MonkeyPatch, use_cache: bool) -> None:
    """With a cache: what is new of a context, at least a token, and new nodes; else texts."""
    made, shapes = llama(), []
    forward = made.forward

    @wraps(forward)
    def counted(*args: object, **kwargs: object) -> object:
        shapes.append(tuple(kwargs["input_ids"].shape))
        return forward(*args, **kwargs)

    monkeypatch.setattr(made, "forward", counted)
    tree, reads = TreeModel(made, use_cache), []

    def took(_: object) -> None:
        reads.append(tree.reads - sum(reads))

    took(tree.begin([[1, 2, 3, 4], [5]]))
    took(tree.grow([[0, 0, 1], []], [[1, 2, 3], []]))
    took(tree.grow([[2], [0, 1]], [[6], [6, 6]]))
    took(tree.begin([[1, 2, 3, 4, 1, 3], [5]]))
    took(tree.grow([[0], [0]], [[6], [6]]))
    took(tree.begin([[1, 2, 0], [3, 3]]))
    assert reads == ([5, 3, 3, 3, 2, 3] if use_cache else [5, 16, 11, 7, 9, 5])
    cached, whole = [4, 3, 2, 2, 1, 2], [(2, 4), (3, 6), (3, 6), (2, 6), (2, 7), (2, 3)]
    assert shapes == ([(2, width) for width in cached] if use_cache else whole)
    assert tree.forwards == 6


def test_up_to_the_last_position(model: PreTrainedModel) -> None:
    """A path may fill the model; a node more is refused, and changes nothing."""
    tree = TreeModel(model)
    contexts = [[1] * (POSITIONS - 2), [2, 3]]
    tree.begin(contexts)
    found = tree.grow([[0, 1], [0]], [[4, 5], [6]])
    assert error(found[0][1:], plain(model, [[*contexts[0], 4, 5]], 1)[:, 0]) < EXACT
    message = rf"parents\[0\]\[1\] = 2: its child would be token {POSITIONS + 1} of a text"
    with pytest.raises(ValueError, match=message):
        tree.grow([[0, 2], []], [[1, 1], []])
    found = tree.grow([[0], [1]], [[3], [3]])
    assert error(found[0], plain(model, [[*contexts[0], 3]], 1)[:, 0]) < EXACT
    assert error(found[1], plain(model, [[2, 3, 6, 3]], 1)[:, 0]) < EXACT


@pytest.mark.parametrize(
    ("parents", "tokens", "message"),
    [
        ([[0]], [[1]], "parents has 1 rows: expected 2, as many as contexts"),
        ([[0], []], [[1]], "tokens has 1 rows: expected 2, as many as contexts"),
        ([[], []], [[], []], "tokens: no row has any"),
        ([[0], [0]], [[1], [1, 2]], r"tokens\[1\] has 2: expected 1, as many as parents"),
        ([[0, 2], []], [[1, 1], []], r"parents\[0\]\[1\] = 2: expected a node, 0 to 1"),
        ([[], [-1]], [[], [1]], r"parents\[1\]\[0\] = -1: expected a node, 0 to 0"),
        ([[], [0, 0]], [[], [1, -1]], r"tokens\[1\]\[1\] = -1: expected a token id below 7"),
    ],
)
def test_bad_nodes_are_named(
    parents: list[list[int]], tokens: list[list[int]], message: str
) -> None:
    tree = TreeModel(llama())
    tree.begin([[1, 2], [3]])
    with pytest.raises(ValueError, match=message):
        tree.grow(parents, tokens)
