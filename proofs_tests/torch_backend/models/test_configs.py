"""Published architectures, small and random: a cached model gives what its plain forward gives.

Texts are three to six windows long. A cache that drops what is outside a window, a mask that
does not hide it, and windows that count slots rather than tokens are noticed.
"""

from collections.abc import Mapping, Sequence

import pytest

pytest.importorskip("torch", reason="not_run (torch is not installed)")
pytest.importorskip("transformers", reason="not_run (transformers is not installed)")

import torch
from torch import Tensor
from transformers import PreTrainedModel

from proofs_tests.helpers.torch.families import (
    FAMILIES,
    ROUNDED,
    SLIDING,
    WINDOW,
    WITHOUT_CROPS,
)
from proofs_tests.helpers.torch.walks import TreeWalk, Walk, error, plain
from specref.torch_backend.models import slotted
from specref.torch_backend.models.cached import CachedModel
from specref.torch_backend.models.configs import windows
from specref.torch_backend.models.slotted import SlottedModel
from specref.torch_backend.models.trees import TreeModel

EXACT, ROUNDING = 1e-10, 1e-4
HALF = {torch.bfloat16: 2**-8, torch.float16: 2**-11}
UNITS = 32  # of rounding, for two layers: what is wrong with windows is hundreds of them


def precise(name: str) -> tuple[PreTrainedModel, float]:
    """A model in float64 if that is possible, and what rounding may be off by."""
    model = FAMILIES[name]()
    return (model, ROUNDING) if name in ROUNDED else (model.double(), EXACT)


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize("name", FAMILIES)
def test_rows_and_trees(name: str) -> None:
    """One row is read by the model's own masks, several by ours."""
    model, margin = precise(name)
    assert Walk(model, 1, seed=1).run(6) < margin
    assert Walk(model, 4, seed=1).run(8) < margin
    assert TreeWalk(model, 3, seed=1).run(2) < margin


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize("name", SLIDING)
def test_crops_of_every_depth(name: str) -> None:
    """A text three windows long is cut back by 1, 2, ... tokens and goes on otherwise."""
    model, margin = precise(name)
    text = [(7 * place**2) % 5 for place in range(3 * WINDOW)]
    rows = [[*text[:-depth], 6, 5] for depth in range(1, len(text))]
    alone, expected = CachedModel(model), plain(model, rows, 3)
    beside, short = CachedModel(model), plain(model, [[6, 5, 4]], 3)
    for row, logits in zip(rows, expected, strict=True):
        alone.logits([text])
        assert error(alone.logits([row], 3), logits[None]) < margin
        beside.logits([text, [6, 5, 4]])
        found = beside.logits([row, [6, 5, 4]], 3)
        assert error(found, torch.stack([logits, short[0]])) < margin


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("name", ["llama", "gemma2", "gemma3", "gpt-oss", "mistral"])
def test_half_precision(name: str, dtype: torch.dtype) -> None:
    model = FAMILIES[name]().to(dtype)
    margin = UNITS * HALF[dtype]
    assert Walk(model, 1, seed=2).run(6) < margin
    assert Walk(model, 4, seed=2).run(6) < margin
    assert TreeWalk(model, 3, seed=2).run(2) < margin


def forgetting(self: SlottedModel, lengths: Sequence[int]) -> None:
    """What was outside the window at the end of a text is lost, as in a cache of a window."""
    for layer in self._layers():
        layer.keys[:, :, : 1 - WINDOW] = 0
    CROP(self, lengths)


def by_slot(self: SlottedModel, seen: Tensor, places: Tensor) -> Tensor | dict[str, Tensor]:
    return MASKS(self, seen, torch.arange(places.shape[1]).expand_as(places))


def everything(config: object) -> Mapping[str, int | None]:
    return dict.fromkeys(windows(config))


def one_more(config: object) -> Mapping[str, int | None]:
    return {kind: size and size + 1 for kind, size in windows(config).items()}


CROP, MASKS = SlottedModel.crop, SlottedModel.masks
BUGS = (
    (SlottedModel, "masks", by_slot),
    (slotted, "windows", everything),
    (slotted, "windows", one_more),
)


@pytest.mark.deep(one_in=6)
@pytest.mark.parametrize("name", ["gemma3", "mistral"])
@pytest.mark.parametrize(("owner", "part", "bug"), BUGS)
def test_wrong_masks_are_noticed(
    monkeypatch: pytest.MonkeyPatch, name: str, owner: object, part: str, bug: object
) -> None:
    model, margin = precise(name)
    monkeypatch.setattr(owner, part, bug)
    assert Walk(model, 4, seed=1).run(12) > 1000 * margin
    assert TreeWalk(model, 3, seed=1).run(3) > 1000 * margin


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("bug", [everything, one_more])
def test_half_precision_notices_too(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, bug: object
) -> None:
    monkeypatch.setattr(slotted, "windows", bug)
    assert Walk(FAMILIES["mistral"]().to(dtype), 4, seed=2).run(8) > UNITS * HALF[dtype]


@pytest.mark.parametrize("rows", [1, 4])
def test_a_cache_that_drops_what_is_old_is_noticed(
    monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    model, margin = precise("mistral")
    monkeypatch.setattr(SlottedModel, "crop", forgetting)
    assert Walk(model, rows, seed=1).run(12) > 1000 * margin


@pytest.mark.parametrize("name", WITHOUT_CROPS)
def test_without_a_cache_every_text_is_read_alone(name: str) -> None:
    make, reason = WITHOUT_CROPS[name]
    model = make()
    message = f"^model: {type(model).__name__} has {reason}, so that .* pass use_cache=False"
    for kind in (CachedModel, TreeModel):
        with pytest.raises(ValueError, match=message):
            kind(model)
    rows, drafts = [[1, 2, 3] * 7, [4, 5], [6]], torch.tensor([[3, 3], [2, 2], [1, 1]])
    reader = CachedModel(model, use_cache=False)
    found = [reader.logits(rows, 3, drafts), reader.extend(drafts[:, :1])]
    texts = [row + draft for row, draft in zip(rows, drafts.tolist(), strict=True)]
    assert error(found[0], alone(model, texts, 3)) < ROUNDING
    longer = [text + text[-1:] for text in texts]
    assert error(found[1], alone(model, longer, 1)) < ROUNDING
    trees = TreeModel(model, use_cache=False)
    trees.begin(rows)
    first, second, third = trees.grow([[0, 0, 1], [], [0]], [[5, 4, 3], [], [2]])
    paths = [[*rows[0], 5], [*rows[0], 4], [*rows[0], 5, 3], [6, 2]]
    assert not len(second)
    assert error(torch.cat([first, third]), alone(model, paths, 1)[:, 0]) < ROUNDING


def test_padding_that_is_seen_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Padding to the left, which a state-space model reads."""
    model, rows = WITHOUT_CROPS["mamba"][0](), [[1, 2, 3] * 7, [4, 5]]
    monkeypatch.setattr(SlottedModel, "whole", left)
    found = CachedModel(model, use_cache=False).logits(rows)
    assert error(found, alone(model, rows, 1)) > 100 * ROUNDING


def left(self: SlottedModel, rows: list[list[int]], last: int, drafts: Tensor) -> Tensor:
    return self.call(self.padded(rows), last)


def alone(model: PreTrainedModel, texts: list[list[int]], last: int) -> Tensor:
    return torch.cat([plain(model, [text], last) for text in texts])


def test_attention_that_takes_no_mask_is_refused() -> None:
    model = FAMILIES["gemma3"]()
    model.config._attn_implementation = "flex_attention"
    message = "has attention 'flex_attention', which takes no mask: call set_attn_implementation"
    for kind in (CachedModel, TreeModel):
        with pytest.raises(ValueError, match=message):
            kind(model)
        kind(model, use_cache=False)
