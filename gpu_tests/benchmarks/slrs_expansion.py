"""psi of real drafters at several temperatures at once, with bounds on what is not expanded.

A node is a path of drafter tokens whose text leaves the first target token undetermined, with
its probability at each temperature. The likeliest nodes are read first. A token's law after a
path is read once, as logits, and shaped for every temperature.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from specref.torch_backend.drafters.drafts import Shape
from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary
from specref.vocabulary import Tokens

Logits: TypeAlias = Callable[[Sequence[Tokens]], Tensor]
AT_ONCE = 256


class Law(NamedTuple):
    """What is known of psi, one row for each shape.

    Attributes
    ----------
    known : Tensor of float64, shape (S, V)
        Lower bounds of psi.
    open : Tensor of float64, shape (S,)
        The mass of drafts that are not expanded: psi has at most that more, in all.
    nodes : int
        After how many paths the drafter's law was read, the empty one among them.
    """

    known: Tensor
    open: Tensor
    nodes: int


class Steps(NamedTuple):
    """Where each drafter token leads from an undetermined text.

    Attributes
    ----------
    owners : Tensor of int64, shape (len(drafter),)
        The first target token of the text; V where there is none, V + 1 where it is undetermined.
    longer : dict
        {drafter token: the text it makes} where it is undetermined.
    """

    owners: Tensor
    longer: dict[int, bytes]


class Expansion:
    """Expands psi for a target's and a drafter's vocabulary.

    Parameters
    ----------
    target, drafter : TokenVocabulary
        Text is read by longest match over the target's `by_bytes`. Where a token would start,
        EOS is EOS and any other special token no token of the target; elsewhere both end it.
    shapes : sequence of callable
        From logits to laws, one for each temperature.
    tolerance : float
        The open mass that may be left at each shape; at 0 all is expanded.
    at_once : int
        How many paths are read in one forward.
    """

    def __init__(
        self,
        target: TokenVocabulary,
        drafter: TokenVocabulary,
        shapes: Sequence[Shape],
        tolerance: float = 1e-3,
        at_once: int = AT_ONCE,
    ) -> None:
        self.target, self.drafter, self.shapes = target, drafter, shapes
        self.tolerance, self.at_once = tolerance, at_once
        self.steps = cache(self._find)
        self._owners: list[int] = target.trie.owners.tolist()
        self._inner = frozenset(target.trie.inner.tolist())

    def __call__(self, logits: Logits) -> Law:
        """psi after a context, from the logits after each path of drafter tokens."""
        size, nodes = len(self.target), 0
        known = torch.zeros(len(self.shapes), size + 2, dtype=torch.float64)
        paths: list[tuple[Tokens, bytes]] = [((), b"")]
        weights = torch.ones(1, len(self.shapes), dtype=torch.float64)
        while paths and bool((unfinished := weights.sum(0) > self.tolerance).any()):
            order = (weights * unfinished).amax(1).argsort(descending=True, stable=True)
            now, later = order[: self.at_once].tolist(), order[self.at_once :].tolist()
            laws = self._laws(logits([paths[i][0] for i in now]), weights[now])
            grown, more = self._grown([paths[i] for i in now], laws, known)
            paths = [*(paths[i] for i in later), *grown]
            weights, nodes = torch.cat([weights[later], more]), nodes + len(now)
        return Law(known[:, :size], weights.sum(0), nodes)

    def _laws(self, logits: Tensor, weights: Tensor) -> Tensor:
        """The probability of each longer path, shape (n, S, len(drafter))."""
        self.drafter.check_logits(logits)
        shaped = torch.stack([shape(logits.double()) for shape in self.shapes], 1)
        return shaped * weights[:, :, None]

    def _grown(
        self, paths: Sequence[tuple[Tokens, bytes]], laws: Tensor, known: Tensor
    ) -> tuple[list[tuple[Tokens, bytes]], Tensor]:
        """Add what is determined to `known`; the rest are new nodes and their weights."""
        grown: list[tuple[Tokens, bytes]] = []
        weights = [laws.new_zeros(0, len(self.shapes))]
        for (path, text), law in zip(paths, laws, strict=True):
            steps = self.steps(text)
            known.index_add_(1, steps.owners, law)
            possible = law.amax(0)
            alive = [token for token in steps.longer if possible[token] > 0]
            grown += [((*path, token), steps.longer[token]) for token in alive]
            weights.append(law[:, alive].T)
        return grown, torch.cat(weights)

    def _find(self, text: bytes) -> Steps:
        """Where each drafter token leads from an undetermined text."""
        size, longer = len(self.target), dict[int, bytes]()
        owners = [self._owner(self.target.trie.nodes[text])] * len(self.drafter)
        if not text and self.drafter.eos is not None and self.target.eos is not None:
            owners[self.drafter.eos] = self.target.eos
        for token, piece in enumerate(self.drafter.spelled):
            if piece is not None:
                node, whole = self._walk(text, piece)
                undetermined = whole and node in self._inner
                owners[token] = size + 1 if undetermined else self._owner(node)
                if undetermined:
                    longer[token] = text + piece
        return Steps(torch.tensor(owners), longer)

    def _walk(self, text: bytes, piece: bytes) -> tuple[int, bool]:
        """The last node of the prefix tree on the way, and whether all of the text is on it."""
        nodes = self.target.trie.nodes
        for end in range(len(piece)):
            if text + piece[: end + 1] not in nodes:
                return nodes[text + piece[:end]], False
        return nodes[text + piece], True

    def _owner(self, node: int) -> int:
        owner = self._owners[node]
        return owner if owner >= 0 else len(self.target)


@dataclass(frozen=True)
class Reading:
    """A context that a model has read, to go on from along many paths."""

    model: PreTrainedModel
    context: Sequence[int]

    def __call__(self, paths: Sequence[Tokens]) -> Tensor:
        """The logits after the context and each path, shape (n, V)."""
        rows = [[self.context[-1], *path] for path in paths]
        longest = max(map(len, rows))
        # What stands to the right of a path is not attended to.
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
        cache = self._copies(len(rows))
        model: Any = self.model
        logits: Tensor = model(input_ids=ids, past_key_values=cache, use_cache=True).logits
        return logits[torch.arange(len(rows)), torch.tensor([len(row) - 1 for row in rows])]

    @cached_property
    def _keys(self) -> list[tuple[Tensor, Tensor]]:
        cache: Any = DynamicCache()
        model: Any = self.model
        model(input_ids=torch.tensor([self.context[:-1]]), past_key_values=cache, use_cache=True)
        return [(layer.keys, layer.values) for layer in cache.layers]

    def _copies(self, count: int) -> Any:
        cache: Any = DynamicCache()
        if len(self.context) > 1:
            for place, both in enumerate(self._keys):
                cache.update(*(held.expand(count, -1, -1, -1) for held in both), place)
        return cache
