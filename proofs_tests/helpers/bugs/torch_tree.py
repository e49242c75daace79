"""Planted bugs of batched tree verification: each is one function of the module, replaced."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from specref.torch_backend.verification import trees as module
from specref.torch_backend.verification.trees import ROOT


def not_renormalised(rest: Any, trees: Any, i: int, here: Tensor) -> Any:
    return CLEAN["_refused"](rest, trees, i, here)._replace(total=rest.total)


def without_duplicates(rest: Any, trees: Any, i: int, here: Tensor) -> Any:
    left = rest.law.gather(1, trees.drafts[:, i, None].clamp(min=0)) > 0
    return CLEAN["_refused"](rest, trees, i, here & left)


def survival_kept(rest: Any, trees: Any, i: int, here: Tensor) -> Any:
    return CLEAN["_refused"](rest, trees, i, here)._replace(chance=rest.chance)


def token_by_token(rest: Any, trees: Any, i: int, here: Tensor) -> Any:
    """(p' - q)+ without A."""
    found = CLEAN["_refused"](rest, trees, i, here)
    alone = rest._replace(law=rest.law.clone(), chance=torch.ones_like(rest.chance))
    other = CLEAN["_refused"](alone, trees, i, here)
    return other._replace(chance=found.chance)


def row_of_the_node_before(rest: Any, trees: Any, i: int, passed: Tensor) -> Any:
    return CLEAN["_entered"](rest, trees, i - 1, passed)


def row_of_the_root(rest: Any, trees: Any, i: int, passed: Tensor) -> Any:
    return CLEAN["_entered"](rest, trees, ROOT, passed)


def going_on(trees: Any, place: Tensor, i: int) -> Tensor:
    """A row that is finished takes the next node there is, below a refused one."""
    return trees.parents[:, i, None] >= place


def ratio_unbounded(rest: Any, trees: Any, i: int) -> Tensor:
    """min(1, .) forgotten where a child is entered."""
    found: Tensor = CLEAN["_chance"](rest, trees, i)
    found.clamp = lambda **_: found  # type: ignore[method-assign]
    return found


CLEAN = {name: getattr(module, name) for name in ("_refused", "_entered", "_chance")}
BUGS: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "residual not renormalised": ("topdown", "_refused", not_renormalised),
    "duplicates skipped": ("topdown", "_refused", without_duplicates),
    "row of the node before": ("topdown", "_entered", row_of_the_node_before),
    "row of the root": ("topdown", "_entered", row_of_the_root),
    "a finished row goes on": ("topdown", "_Trees.below", going_on),
    "a is not updated": ("traversal", "_refused", survival_kept),
    "residual without a": ("traversal", "_refused", token_by_token),
    "residual not renormalised, traversal": ("traversal", "_refused", not_renormalised),
    "duplicates skipped, traversal": ("traversal", "_refused", without_duplicates),
    "a above 1": ("traversal", "_chance", ratio_unbounded),
}


def planted(bug: str, set_attribute: Callable[[str, Any], None]) -> str:
    """Plant a bug, and say in which rule it is."""
    rule, place, broken = BUGS[bug]
    set_attribute(f"{module.__name__}.{place}", broken)
    return rule
