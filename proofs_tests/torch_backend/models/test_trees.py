"""Tree attention gives every node what the model gives its path: ragged, grown, begun again."""

import random
from collections.abc import Sequence

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from torch import Tensor
from transformers import PreTrainedModel

from proofs_tests.helpers.torch.models import MODELS, POSITIONS, llama
from proofs_tests.helpers.torch.threads import single_thread
from specref.torch_backend.models import trees
from specref.torch_backend.models.slots import Slots
from specref.torch_backend.models.slotted import SlottedModel
from specref.torch_backend.models.tree import Tree
from specref.torch_backend.models.trees import TreeModel

one_thread = pytest.fixture(autouse=True, scope="module")(single_thread)

VOCABULARY = 7
EXACT = 1e-10


class Walk:
    """Random trees after random contexts, every node beside a plain forward of its path."""

    def __init__(self, model: PreTrainedModel, rows: int, seed: int, use_cache: bool = True):
        self.plain, self.model = model, TreeModel(model, use_cache)
        self.random, self.worst = random.Random(seed), 0.0
        self.contexts = [self.tokens(self.random.randint(1, 9)) for _ in range(rows)]
        self.begin()

    def tokens(self, count: int) -> list[int]:
        return [self.random.randrange(VOCABULARY) for _ in range(count)]

    def begin(self) -> None:
        self.texts = [[list(context)] for context in self.contexts]
        found = self.model.begin(self.contexts)
        self.compare([[text] for text in self.contexts], list(found[:, None]))

    def grow(self, most: int = 6) -> None:
        counts = [self.random.randint(0, most) for _ in self.texts]
        counts[self.random.randrange(len(counts))] = most
        parents: list[list[int]] = [[] for _ in self.texts]
        tokens = [self.tokens(count) for count in counts]
        for texts, above, ids in zip(self.texts, parents, tokens, strict=True):
            for token in ids:
                above.append(self.random.randrange(len(texts)))
                texts.append([*texts[above[-1]], token])
        found = self.model.grow(parents, tokens)
        new = [texts[len(texts) - n :] for texts, n in zip(self.texts, counts, strict=True)]
        self.compare(new, found)

    def go_on(self) -> None:
        """Contexts that are some node's text and more, or that share less, or are unrelated."""
        chosen = [self.random.choice(texts) for texts in self.texts]
        kept = [
            text[: self.random.randint(0, len(text))]
            if len(text) > 30 or self.random.random() < 0.3
            else text
            for text in chosen
        ]
        self.contexts = [text + self.tokens(self.random.randint(0, 3)) or [1] for text in kept]
        self.begin()

    def drop(self) -> None:
        kept = sorted(self.random.sample(range(len(self.texts)), len(self.texts) - 1))
        self.contexts = [self.contexts[row] for row in kept]
        self.texts = [self.texts[row] for row in kept]
        self.model.select(kept)

    def compare(self, texts: Sequence[list[list[int]]], found: Sequence[Tensor]) -> None:
        for rows, logits in zip(texts, found, strict=True):
            assert logits.shape == (len(rows), VOCABULARY)
            if rows:
                self.worst = max(self.worst, error(logits, plain(self.plain, rows)))

    def run(self, iterations: int = 6) -> float:
        for iteration in range(iterations):
            for _ in range(3):
                self.grow()
            if iteration % 2 and len(self.texts) > 2:
                self.drop()
                self.grow()
            self.go_on()
        return self.worst


def plain(model: PreTrainedModel, rows: list[list[int]]) -> Tensor:
    """The logits after each text: no cache, no mask; what stands to the right is not seen."""
    width = max(map(len, rows))
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    with torch.no_grad():
        logits = model(ids, use_cache=False).logits
    return torch.stack([row[len(text) - 1] for row, text in zip(logits, rows, strict=True)])


def error(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).abs().max() / expected.abs().max())


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> PreTrainedModel:
    return MODELS[request.param]().double()


@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("rows", [1, 4])
def test_every_node_is_its_path(model: PreTrainedModel, rows: int, use_cache: bool) -> None:
    """With scaled dot-product attention; eager attention takes its softmax in float32."""
    walk = Walk(model, rows, seed=rows, use_cache=use_cache)
    assert walk.run() < EXACT
    assert walk.model.begin(walk.contexts).dtype == torch.float64


@pytest.mark.parametrize("kind", ["sdpa", "eager"])
def test_in_float32(model: PreTrainedModel, kind: str) -> None:
    model.float().set_attn_implementation(kind)
    walk = Walk(model, 4, seed=4)
    assert walk.run() < 1e-4
    assert walk.model.begin(walk.contexts).dtype == torch.float32


@pytest.mark.parametrize("use_cache", [True, False])
def test_forgotten_nodes_take_no_place(model: PreTrainedModel, use_cache: bool) -> None:
    """New nodes are below the contexts alone, which are not read again."""
    walk = Walk(model, 3, seed=6, use_cache=use_cache)
    longest = max(map(len, walk.contexts))
    for _ in range(4):
        walk.grow()
        walk.model.forget()
        walk.texts = [[list(context)] for context in walk.contexts]
        assert walk.model.slots.size == longest or not use_cache
    walk.grow()
    assert walk.worst < EXACT


def test_holes_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed, compact = [], Slots.compact

    def counted(self: Slots) -> Tensor | None:
        closed.append(compact(self))
        return closed[-1]

    monkeypatch.setattr(Slots, "compact", counted)
    assert Walk(llama().double(), 5, seed=3).run(40) < EXACT
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


@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize(
    ("name", "bug"),
    [("place", sibling), ("place", orphan), ("positions", by_slot), ("positions", late)],
)
def test_a_wrong_tree_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
    model: PreTrainedModel,
    name: str,
    bug: object,
    use_cache: bool,
) -> None:
    monkeypatch.setattr(Tree, name, bug)
    assert Walk(model, 3, seed=1, use_cache=use_cache).run(1) > 1e-6


@pytest.mark.parametrize("rows", [1, 3])
def test_a_tree_that_is_not_forgotten_is_noticed(
    monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(Slots, "crop", lambda self, lengths: None)
    assert Walk(llama().double(), rows, seed=1).run(2) > 1e-6


def test_a_wrong_prefix_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One token that differs is taken for the same."""
    shared = trees.common_prefix

    def too_long(held: list[int], row: list[int]) -> int:
        return min(shared(held, row) + 1, len(held))

    monkeypatch.setattr(trees, "common_prefix", too_long)
    assert Walk(llama().double(), 3, seed=1).run(8) > 1e-6


def test_dropping_other_rows_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    select = SlottedModel.select

    def others(model: SlottedModel, rows: list[int]) -> None:
        select(model, [row + 1 for row in rows[:-1]] + [0])

    monkeypatch.setattr(SlottedModel, "select", others)
    assert Walk(llama().double(), 4, seed=1).run(4) > 1e-6


@pytest.mark.parametrize("use_cache", [True, False])
def test_reads_count_what_is_read(monkeypatch: pytest.MonkeyPatch, use_cache: bool) -> None:
    """With a cache: what is new of a context, at least one token, and new nodes; else all."""
    made, shapes = llama(), []
    forward = made.forward

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
    assert reads == ([5, 3, 3, 3, 2, 3] if use_cache else [5, 8, 11, 7, 9, 5])
    widths = [4, 3, 2, 2, 1, 2] if use_cache else [4, 7, 8, 6, 7, 3]
    assert shapes == [(2, width) for width in widths]
    assert tree.forwards == 6


def test_up_to_the_last_position(model: PreTrainedModel) -> None:
    """A path may fill the model; a node more is refused, and changes nothing."""
    tree = TreeModel(model)
    contexts = [[1] * (POSITIONS - 2), [2, 3]]
    tree.begin(contexts)
    found = tree.grow([[0, 1], [0]], [[4, 5], [6]])
    assert error(found[0][1:], plain(model, [[*contexts[0], 4, 5]])) < EXACT
    message = rf"parents\[0\]\[1\] = 2: its child would be token {POSITIONS + 1} of a text"
    with pytest.raises(ValueError, match=message):
        tree.grow([[0, 2], []], [[1, 1], []])
    found = tree.grow([[0], [1]], [[3], [3]])
    assert error(found[0], plain(model, [[*contexts[0], 3]])) < EXACT
    assert error(found[1], plain(model, [[2, 3, 6, 3]])) < EXACT


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "rows is empty"),
        ([[1], []], rf"rows\[1\] has 0 tokens: expected 1 to {POSITIONS}"),
        ([[1] * 65], rf"rows\[0\] has 65 tokens: expected 1 to {POSITIONS}"),
        ([[1], [1, 7]], r"rows\[1\]\[1\] = 7: expected a token id below 7"),
    ],
)
def test_bad_contexts_are_named(rows: list[list[int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TreeModel(llama()).begin(rows)


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
