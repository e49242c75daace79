"""Planted bugs of `Slots`, the cache of a batch of rows."""

from collections.abc import Callable
from typing import Any

import torch

from specref.torch_backend.models.slotted import Layout, Slots

CROP: Callable[..., None] = Slots.crop
APPEND: Callable[..., Layout | None] = Slots.append


def as_the_fullest(slots: Slots, lengths: list[int]) -> None:
    """Every row keeps as many tokens as the one that accepted the most, if it has them."""
    CROP(slots, [min(have, max(lengths)) for have in slots.lengths])


def without_holes(slots: Slots, *given: Any) -> Layout | None:
    """All slots are attended to, padding, too."""
    layout = APPEND(slots, *given)
    return layout and Layout(torch.ones_like(layout.mask), layout.positions)


def from_the_first(slots: Slots, *given: Any) -> Layout | None:
    """Positions of row 0 for all rows."""
    layout = APPEND(slots, *given)
    return layout and Layout(layout.mask, layout.positions[:1].expand_as(layout.positions))


def first_rows(slots: Slots, rows: list[int]) -> None:
    """Of rows that remain the slots of the first ones."""
    used = slots.used
    slots._used, slots.lengths = used[: len(rows)], slots.lengths[: len(rows)]
