"""Batches of token trees, some of them random, and the exact laws of their verification."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from proofs_tests.helpers.torch.laws import CELLS, LAST, Law, cells
from proofs_tests.helpers.tree_cases import top_tree
from specref import Vocabulary
from specref.algorithms import traversal
from specref.algorithms.trees import topdown
from specref.algorithms.trees.topdown import Node, Tree
from specref.chance import Sampled
from specref.distributions import Probabilities, Probability
from specref.models import Model, as_float, hashed_model
from specref.torch_backend.randomness import Coins
from specref.torch_backend.validation import NO_DRAFT
from specref.torch_backend.verification.trees import NO_NODE, ROOT
from specref.vocabulary import Tokens

Verified = tuple[Tensor, Tensor]
Verify = Callable[..., Verified]
Pick = Callable[[int], int]


class Flat(NamedTuple):
    """A tree as a row of a batch: nodes in some order, parents before children, elders first."""

    tokens: list[int]
    parents: list[int]
    laws: list[Probabilities]
    sites: list[str]

    def path(self, node: int) -> Tokens:
        """The text to a node, the node included; () for the root."""
        if node == ROOT:
            return ()
        return (*self.path(self.parents[node]), self.tokens[node])

    def ancestors(self, node: int) -> list[int]:
        """The nodes of this path, from the node upwards."""
        return [] if node == ROOT else [node, *self.ancestors(self.parents[node])]

    def children(self, node: int) -> list[int]:
        return [i for i, parent in enumerate(self.parents) if parent == node]

    def leaves_first(self, node: int = ROOT) -> Iterator[int]:
        """A node after everything below it."""
        for child in self.children(node):
            yield from self.leaves_first(child)
        yield node


def breadth_first(families: int) -> int:
    return 0


def depth_first(families: int) -> int:
    return families - 1


def flattened(tree: Tree, pick: Pick = breadth_first) -> Flat:
    """The tree in the order in which its families, of one parent each, are picked."""
    flat, families = Flat([], [], [], []), [(ROOT, "accept", 0, tree)]
    while families := [one for one in families if len(one[3]) > one[2]]:
        chosen = pick(len(families))
        parent, site, j, nodes = families[chosen]
        families[chosen] = parent, site, j + 1, nodes
        token, q, below = nodes[j]
        for column, value in zip(flat, (token, parent, q, f"{site}[{j}]"), strict=True):
            column.append(value)
        families.append((len(flat.tokens) - 1, f"{site}[{j}]", 0, below))
    return flat


class Row(NamedTuple):
    """One row of a batch."""

    target: Model
    context: Tokens
    tree: Tree


class Batch:
    """Arguments of `verify_tree` in float64; what is not read is NaN."""

    def __init__(self, rows: Sequence[Row], pick: Pick = breadth_first) -> None:
        self.rows, self.flats = rows, [flattened(row.tree, pick) for row in rows]
        most = max(len(flat.tokens) for flat in self.flats)
        size = max(len(row.target.vocabulary) for row in rows)
        shape = len(rows), most
        self.p = torch.full((len(rows), most + 1, size), torch.nan, dtype=torch.float64)
        self.q = torch.full((*shape, size), torch.nan, dtype=torch.float64)
        self.tokens, self.parents = torch.full(shape, NO_DRAFT), torch.full(shape, NO_NODE)
        for row in range(len(rows)):
            self._fill(row)

    def _fill(self, row: int) -> None:
        (target, context, _), flat = self.rows[row], self.flats[row]
        count = len(flat.tokens)
        self.tokens[row, :count] = torch.tensor(flat.tokens, dtype=torch.int64)
        self.parents[row, :count] = torch.tensor(flat.parents, dtype=torch.int64)
        for node in range(ROOT, count):
            _set(self.p[row, node + 1], target.next_token((*context, *flat.path(node))))
        for node, q in enumerate(flat.laws):
            _set(self.q[row, node], q)

    @property
    def given(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.p, self.q, self.tokens, self.parents

    @cached_property
    def coins(self) -> Coins:
        """Coins of a fixed seed."""
        generator = torch.Generator().manual_seed(3)
        uniforms = torch.rand(self.p.shape[:2], generator=generator, dtype=torch.float64)
        return Coins(uniforms[:, 1:], final=uniforms[:, 0])


def _set(row: Tensor, law: Sequence[Probability]) -> None:
    row[:] = 0
    row[: len(law)] = torch.tensor([float(mass) for mass in law], dtype=torch.float64)


class Tossed(Sampled):
    """A reading of chance in which each node has a coin, as in torch."""

    def __init__(self, flat: Flat, accept: Sequence[float], final: float) -> None:
        self.coins = dict(zip(flat.sites, accept, strict=False))
        self.final = final

    def accept(self, probability: Probability, site: str) -> bool:
        return bool(self.coins[site] < probability)

    @property
    def rng(self) -> Any:
        return self

    def random(self) -> float:
        return self.final


def tree_laws(verify: Verify, batch: Batch, rule: str) -> list[Law]:
    """The law of the block of each row."""
    chances, ends = _chances(verify, batch, rule), _ends(verify, batch, rule)
    return [
        _law(flat, rule, [chances[row, i] for i in range(len(flat.tokens))],
             lambda node, row=row: ends[row, node])
        for row, flat in enumerate(batch.flats)
    ]  # fmt: skip


def _chances(verify: Verify, batch: Batch, rule: str) -> dict[Any, float]:
    """How likely the coin of a node succeeds, if it is the one that decides."""
    places = [(row, i) for row, flat in enumerate(batch.flats) for i in range(len(flat.tokens))]
    if not places:
        return {}
    rows, nodes = torch.tensor(places).T
    given, accept = [one[rows] for one in batch.given], _leading_to(batch, places, rule)
    paths = [batch.flats[row].path(i) for row, i in places]
    depth = torch.tensor([len(path) for path in paths])
    size = max(map(len, paths))
    path = torch.tensor([[*path, *[NO_DRAFT] * (size - len(path))] for path in paths])

    def accepted(u: Tensor) -> Tensor:
        coins = Coins(accept.scatter(1, nodes[:, None], u[:, None]), torch.zeros_like(u))
        found, counts = verify(*given, coins)
        return (counts > depth) & ((found[:, :size] == path) | (path == NO_DRAFT)).all(dim=1)

    found = (cells(accepted, len(places)).double() / CELLS).tolist()
    return dict(zip(places, found, strict=True))


def _ends(verify: Verify, batch: Batch, rule: str) -> dict[Any, list[float]]:
    """Where each token ends in `final`, if the accepted path ends at a node."""
    size = batch.p.shape[2]
    places = [(row, i) for row, flat in enumerate(batch.flats) for i in range(ROOT, len(flat[0]))]
    accept = _leading_to(batch, places, rule).repeat_interleave(size, 0)
    rows = torch.tensor([row for row, _ in places]).repeat_interleave(size)
    depth = torch.tensor([len(batch.flats[row].path(i)) for row, i in places])
    depth, token = depth.repeat_interleave(size)[:, None], torch.arange(size).repeat(len(places))
    given = [one[rows] for one in batch.given]

    def at_most(u: Tensor) -> Tensor:
        found, _ = verify(*given, Coins(accept, u))
        return found.gather(1, depth)[:, 0] <= token

    ends = cells(at_most, len(rows)).double() / CELLS
    return dict(zip(places, ends.view(len(places), size).tolist(), strict=True))


def _leading_to(batch: Batch, places: Sequence[tuple[int, int]], rule: str) -> Tensor:
    """Coins with which the node is accepted, if any; top-down it takes those above it as well."""
    accept = torch.full((len(places), batch.p.shape[1] - 1), LAST, dtype=torch.float64)
    for place, (row, node) in enumerate(places):
        above = batch.flats[row].ancestors(node)
        accept[place, above if rule == "topdown" else above[:1]] = 0.0
    return accept


def _law(flat: Flat, rule: str, chances: list[float], ends: Callable[[int], list[float]]) -> Law:
    law: Law = {}
    for node, weight in (_topdown if rule == "topdown" else _traversal)(flat, chances):
        start = 0.0
        for token, end in enumerate(ends(node) if weight else ()):
            if end > start:
                block = (*flat.path(node), token)
                law[block] = law.get(block, 0.0) + weight * (end - start)
            start = end
    return law


def _topdown(flat: Flat, chances: list[float]) -> Iterator[tuple[int, float]]:
    """How likely the accepted path ends at each node: siblings one after another."""
    reached = {ROOT: 1.0}
    for node in range(ROOT, len(flat.tokens)):
        for child in flat.children(node):
            reached[child] = reached[node] * chances[child]
            reached[node] *= 1 - chances[child]
        yield node, reached[node]


def _traversal(flat: Flat, chances: list[float]) -> Iterator[tuple[int, float]]:
    """The same, if the first success decides, leaves before their parents."""
    order = list(flat.leaves_first())
    for place, node in enumerate(order):
        refused = prod(1 - chances[other] for other in order[:place])
        yield node, refused * (1.0 if node == ROOT else chances[node])


def up_to_eos(law: Mapping[Tokens, Probability], target: Model) -> Law:
    """The law of the blocks, each up to its first end-of-sequence token."""
    found: Law = {}
    for block, chance in law.items():
        ends = (n for n in range(1, len(block)) if target.vocabulary.ends(block[:n]))
        shorter = block[: next(ends, len(block))]
        found[shorter] = found.get(shorter, 0.0) + float(chance)
    return found


def pruned(tree: Tree, rng: np.random.Generator) -> Tree:
    """Without some of the youngest siblings."""
    few = tree[: rng.integers(len(tree) + 1)] if rng.random() < 0.3 else tree
    return tuple(Node(node.token, node.q, pruned(node.children, rng)) for node in few)


RULES = {"topdown": topdown, "traversal": traversal}


EACH_RULE = pytest.mark.parametrize("rule", RULES)


TARGET, DRAFTER = (hashed_model(Vocabulary("abcdef"), key) for key in ("target", "drafter"))


def random_tree(rng: np.random.Generator) -> Any:
    """A tree of up to three depths, with or without replacement or the likeliest, pruned."""
    branching = tuple(int(width) for width in rng.integers(1, 4, size=rng.integers(4)))
    drafter, kind = as_float(DRAFTER), rng.integers(3)
    if kind == 2:
        return pruned(top_tree(drafter, (), branching), rng)
    return pruned(topdown.draft(drafter, (), branching, Sampled(rng), replacement=bool(kind)), rng)


@cache
def batch(rows: int = 150) -> Batch:
    """Ragged, in an order of nodes that is mixed."""
    rng = np.random.default_rng(7)
    target = as_float(TARGET)
    return Batch(
        [Row(target, (), random_tree(rng)) for _ in range(rows)],
        lambda families: int(rng.integers(families)),
    )


def rows_of(given: Any, chosen: Any) -> Any:
    if isinstance(given, Coins):
        return Coins(*(None if one is None else one[chosen] for one in given))
    return None if given is None else given[chosen]
