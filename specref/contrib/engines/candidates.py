"""Functions that are given a tree as its paths from the root, as those of EAGLE and Medusa are."""

from collections.abc import Callable
from typing import Any

from specref.adapters.needs import require, require_parameters
from specref.contracts.capabilities import capable
from specref.contrib.engines.checkouts import from_checkout

PACKAGES = ("torch", "transformers")
REMEDY = "pip install torch transformers"
ROOT, NONE = 0, -1
"""The token of the root, which was accepted before; no token."""
MEDUSA = ("temperature", "posterior_threshold", "posterior_alpha", "top_p", "sampling", "fast")
CLAIMS: dict[str, Any] = {
    "inputs": "logits", "arrays": "torch", "dtype": "float32", "repeats": False,
    "empty_trees": False,
}  # fmt: skip


def load_eagle(
    repository: str = "SafeAILab/EAGLE", under: str = "", **own: Any
) -> Callable[..., Any]:
    """EAGLE's `evaluate_posterior` at temperature 1, under the contract ``tree``.

    * `repository`, `under`: Another clone that has it, and its folder there.
    """
    evaluate = loaded(repository, "eagle.model.utils", ("logits_processor", *own), under)

    def choose(logits: Any, paths: Any) -> tuple[int, int, Any]:
        best, kept, last = evaluate(logits, paths, lambda ids, scores: scores, **own)
        return int(best), int(kept), last

    return on_paths(choose, NONE)


def load_medusa(sampling: str) -> Callable[..., Any]:
    """Medusa's `evaluate_posterior` at temperature 1; the next token is drawn as it draws it."""
    evaluate = loaded("FasterDecoding/Medusa", "medusa.model.utils", MEDUSA)

    def choose(logits: Any, paths: Any) -> tuple[int, int, Any]:
        best, kept = evaluate(logits, paths, 1.0, top_p=1.0, sampling=sampling)
        return int(best), int(kept), logits[best, kept].softmax(-1)

    return on_paths(choose, 0)


def loaded(
    repository: str, module: str, more: tuple[str, ...], under: str = ""
) -> Callable[..., Any]:
    """A function of a clone, with these parameters beside the usual two."""
    require(PACKAGES, REMEDY)
    (function,) = from_checkout(repository, module, "evaluate_posterior", under=under)
    given = ("logits", "candidates", *more)
    require_parameters(function, "evaluate_posterior", given, by_position=3)
    return function  # type: ignore[no-any-return]


def on_paths(choose: Callable[[Any, Any], tuple[int, int, Any]], pad: int) -> Callable[..., Any]:
    """A function under the contract ``tree``, row by row; drafts are taken as certain.

    * `choose`: (logits after each node of each path, tokens of each path with the root's) -> the
      path, how many of its drafts are kept, the law of the last token.
    * `pad`: What stands after the end of a path, beside the logits of the last node.
    """
    from torch import full, multinomial, tensor

    @capable(**CLAIMS)
    def verify_tree(p: Any, q: Any, x: Any, parents: Any) -> Any:
        blocks = full((len(x), x.shape[1] + 1), NONE)
        for row, above in enumerate(parents.tolist()):
            paths = paths_of([one for one in above if one >= NONE])
            longest, nodes = max(map(len, paths)), int((x[row] >= 0).sum())
            index = tensor([[*path, *[NONE] * (longest - len(path))] for path in paths])
            tokens = tensor([ROOT, *x[row, :nodes].tolist(), pad])[index]
            best, kept, last = choose(p[row, : nodes + 1][index], tokens)
            block = [*tokens[best, 1 : kept + 1].tolist(), int(multinomial(last, 1))]
            blocks[row, : len(block)] = tensor(block)
        return blocks, (blocks >= 0).sum(dim=1)

    return verify_tree


def paths_of(parents: list[int]) -> list[list[int]]:
    """The path from the root, 0, to each leaf; node i of `parents` is i + 1."""
    paths = [[0]]
    for node, parent in enumerate(parents, start=1):
        paths.append([*paths[parent + 1], node])
    return [path for node, path in enumerate(paths) if node - 1 not in parents]
