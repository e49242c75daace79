"""The cached model gives what the model gives: with ragged rows, rejections, holes, few rows."""

import copy
from functools import wraps

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from transformers import PreTrainedModel

from proofs_tests.helpers.torch.models import MODELS, POSITIONS, gpt2, llama
from proofs_tests.helpers.torch.walks import Walk, error, plain
from specref.torch_backend.models import cached
from specref.torch_backend.models.cached import CachedModel, common_prefix
from specref.torch_backend.models.slotted import Slots
from specref.torch_backend.models.trees import TreeModel

MARGIN = {torch.float32: 1e-4, torch.float64: 1e-10}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> PreTrainedModel:
    return MODELS[request.param]()


@pytest.mark.deep(one_in=8)
@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("kind", ["sdpa", "eager"])
def test_equals_the_model_in_float32(model: PreTrainedModel, kind: str, use_cache: bool) -> None:
    model.set_attn_implementation(kind)
    assert Walk(model, 4, seed=4, use_cache=use_cache).run(40) < MARGIN[torch.float32]


@pytest.mark.deep(one_in=4)
@pytest.mark.parametrize("rows", [1, 5])
def test_equals_the_model_in_float64(model: PreTrainedModel, rows: int) -> None:
    """With scaled dot-product attention; eager attention takes its softmax in float32."""
    walk = Walk(model.double(), rows, seed=rows)
    assert walk.run(60) < MARGIN[torch.float64]
    assert walk.cached.logits(walk.rows).dtype == torch.float64


def test_holes_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five ragged rows, 60 steps of up to 4 tokens: they grow past what is left open."""
    closed, compact = [], Slots.compact

    def counted(self: Slots) -> Tensor | None:
        closed.append(compact(self))
        return closed[-1]

    monkeypatch.setattr(Slots, "compact", counted)
    assert Walk(llama().double(), 5, seed=3).run(60) < MARGIN[torch.float64]
    assert sum(order is not None for order in closed) > 2


@pytest.mark.parametrize("rows", [1, 5])
def test_a_cache_that_is_not_cropped_is_noticed(
    monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """Rejected drafts stay, and are attended to."""
    monkeypatch.setattr(Slots, "crop", lambda self, lengths: None)
    assert Walk(llama().double(), rows, seed=1).run(4) > MARGIN[torch.float64]


@pytest.mark.deep(one_in=2)
@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("lost", [-1, 1])
def test_a_wrong_prefix_is_noticed(monkeypatch: pytest.MonkeyPatch, rows: int, lost: int) -> None:
    """One token too many is wrong where a text is rewritten; one too few is only slow.

    With several rows the mask no longer fits the cache then.
    """
    monkeypatch.setattr(cached, "common_prefix", lambda *rows: max(0, common_prefix(*rows) - lost))
    walk = Walk(llama().double(), rows, seed=1)
    if lost < 0 and rows > 1:
        with pytest.raises(RuntimeError, match="must match the size of tensor"):
            walk.run(40)
    else:
        assert (walk.run(40) > MARGIN[torch.float64]) == (lost < 0)


@pytest.mark.parametrize("bug", ["mask", "positions"])
def test_a_wrong_layout_is_noticed(monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    append = Slots.append

    def wrong(self: Slots, *arguments: int) -> object:
        layout = append(self, *arguments)
        if layout is None:
            return None
        if bug == "mask":
            return layout._replace(mask=torch.ones_like(layout.mask))
        return layout._replace(positions=(layout.positions + 1).clamp(max=POSITIONS - 1))

    monkeypatch.setattr(Slots, "append", wrong)
    made = gpt2() if bug == "positions" else llama()
    assert Walk(made.double(), 5, seed=1).run(10) > MARGIN[torch.float64]


def test_reads_each_token_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read: the prompt, then the rejected part and what is new; never the rest."""
    made, widths = llama(), []
    forward = made.forward

    @wraps(forward)
    def counted(*args: object, **kwargs: object) -> object:
        widths.append(kwargs["input_ids"].shape[1])
        return forward(*args, **kwargs)

    monkeypatch.setattr(made, "forward", counted)
    wrapped = CachedModel(made)
    wrapped.logits([[1, 2, 3, 4, 5]])
    wrapped.logits([[1, 2, 3, 4, 5]], 3, torch.tensor([[6, 6]]))
    wrapped.logits([[1, 2, 3, 4, 5, 6, 0]], 3, torch.tensor([[1, 1]]))
    wrapped.extend(torch.tensor([[3]]))
    wrapped.logits([[1, 2, 3, 4, 5, 6, 0, 1, 1, 3, 0, 0]], 2)
    assert widths == [5, 3, 3, 1, 2]
    assert wrapped.forwards == 5


def test_more_logits_of_one_row_than_of_another() -> None:
    made, rows = llama().double(), [[1, 2, 3, 4], [5]]
    wrapped = CachedModel(made)
    for _ in range(2):
        found = wrapped.logits(rows, [3, 1])
        assert error(found[0], plain(made, rows[:1], 3)[0]) < MARGIN[torch.float64]
        assert error(found[1, -1:], plain(made, rows[1:], 1)[0]) < MARGIN[torch.float64]


@pytest.mark.parametrize("name", MODELS)
def test_drafts_past_the_last_position_do_no_harm(name: str) -> None:
    """The short row's drafts count; the long row, at its end, has none to be read."""
    made = MODELS[name]().double()
    rows = [[1] * POSITIONS, [2, 3]]
    drafts = torch.tensor([[-1, -1], [4, 5]])
    wrapped = CachedModel(made)
    for found in (wrapped.logits(rows, 3, drafts), wrapped.logits(rows, 3, drafts)):
        assert error(found[:1, 0], plain(made, rows[:1], 1)[:, 0]) < MARGIN[torch.float64]
        assert error(found[1:], plain(made, [[2, 3, 4, 5]], 3)) < MARGIN[torch.float64]


def test_another_number_of_rows_starts_anew() -> None:
    made = llama().double()
    wrapped = CachedModel(made)
    wrapped.logits([[1, 2, 3], [4, 5]])
    found = wrapped.logits([[4, 5, 6]])
    assert error(found, plain(made, [[4, 5, 6]], 1)) < MARGIN[torch.float64]


def test_model_is_untouched() -> None:
    made = llama()
    before = {name: tensor.clone() for name, tensor in made.state_dict().items()}
    config = copy.deepcopy(made.config.to_dict())
    Walk(made, 3, seed=1).run(6)
    assert all(torch.equal(tensor, before[name]) for name, tensor in made.state_dict().items())
    assert made.config.to_dict() == config
    assert all(parameter.grad is None for parameter in made.parameters())


@pytest.mark.parametrize(
    ("rows", "last", "message"),
    [
        ([[1, 2]], 3, r"last = 3 for rows\[0\]: expected 1 to 2"),
        ([[1, 2], [3]], [1, 0], r"last = 0 for rows\[1\]: expected 1 to 1"),
    ],
)
def test_bad_input_is_named(rows: list[list[int]], last: int | list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CachedModel(llama()).logits(rows, last)


@given(st.lists(st.integers(0, 1), max_size=9), st.lists(st.integers(0, 1), max_size=9))
def test_common_prefix(first: list[int], second: list[int]) -> None:
    shared = common_prefix(first, second)
    assert first[:shared] == second[:shared]
    assert shared == min(len(first), len(second)) or first[shared] != second[shared]


STEPS = st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4)), min_size=3, max_size=3))


@given(STEPS, st.booleans())
def test_slots_hold_each_row_in_order(steps: list[list[tuple[int, int]]], compacts: bool) -> None:
    """A model of the cache: each row's slots, in order, hold its tokens and nothing else."""
    slots, fresh = Slots(3), iter(range(10**6))
    rows: list[list[int]] = [[], [], []]
    columns = torch.empty(3, 0, dtype=torch.int64)
    for step in steps:
        keep = [min(kept, len(row)) for (kept, _), row in zip(step, rows, strict=True)]
        slots.crop(keep)
        columns = columns[:, : slots.size]
        order = slots.compact() if compacts else None
        columns = columns if order is None else columns.take_along_dim(order, 1)
        width = max(count for _, count in step)
        tokens = [[next(fresh) for _ in range(count)] for _, count in step]
        padded = [[-1] * (width - len(new)) + new for new in tokens]
        layout = slots.append([len(new) for new in tokens], width)
        columns = torch.cat([columns, torch.tensor(padded)], 1)
        rows = [row[:kept] + new for row, kept, new in zip(rows, keep, tokens, strict=True)]
        assert [
            line[used].tolist() for line, used in zip(columns, slots.used, strict=True)
        ] == rows
        assert columns.shape[1] == slots.size
        assert slots.lengths == [len(row) for row in rows]
        if layout is not None:
            for row, positions, new in zip(rows, layout.positions, tokens, strict=True):
                assert positions[-len(new) :].tolist() == list(range(len(row)))[-len(new) :]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "rows is empty: expected at least one"),
        ([[1], []], rf"rows\[1\] has 0 tokens: expected 1 to {POSITIONS}"),
        ([[1] * (POSITIONS + 1)], rf"rows\[0\] has 65 tokens: expected 1 to {POSITIONS}"),
        ([[1, 6, 7]], r"rows\[0\]\[2\] = 7: expected a token id below 7"),
        ([[0], [0, -1]], r"rows\[1\]\[1\] = -1: expected a token id below 7"),
    ],
)
def test_bad_rows_are_named(rows: list[list[int]], message: str) -> None:
    for read in (CachedModel(llama()).logits, TreeModel(llama()).begin):
        with pytest.raises(ValueError, match=f"^{message}$"):
            read(rows)


@pytest.mark.parametrize("kind", [CachedModel, TreeModel])
def test_a_model_that_has_read_nothing_has_no_rows_to_drop(
    kind: type[CachedModel | TreeModel],
) -> None:
    model = kind(llama())
    model.select([])
    with pytest.raises(IndexError):
        model.select([0])
    assert model.forwards == 0
