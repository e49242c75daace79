"""Drafting by walking down a tree of continuations, target token after target token."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

import torch
from torch import Tensor

from specref.torch_backend.drafters.psi_bounds import LawTrees, PsiBounds
from specref.torch_backend.shaping import draw, moved, sent
from specref.torch_backend.validation import OUTSIDE
from specref.torch_backend.vocabularies.contexts import Reader


@dataclass
class Path:
    """The state of drafting one row.

    Attributes
    ----------
    room : int
        At how many tokens after the context a target token can still be drafted.
    rest : bytes
        Of what was drafted, what the drafter cannot spell yet.
    laws : list of Tensor
        The drafter's laws after the nodes that were read, 0 being the context.
    drafts : list of int
        The target tokens that are settled, or ``OUTSIDE``.
    root, depth : int
        The node that spells them, and how many tokens of the drafter that takes.
    node, ahead : int, list of int
        The node that is being gone to, as far as it is read, and the drafter's tokens beyond.
    place, mass, step : int, float, int
        Of the text since `root`: its place in the prefix tree, its probability, and how many
        drafter tokens it has.
    ended : bool
        Whether all is drafted.
    children : dict
        {(node, token): node}, of those that were read.
    """

    room: int
    rest: bytes
    laws: list[Tensor]
    drafts: list[int] = field(default_factory=list)
    root: int = 0
    depth: int = 0
    node: int = 0
    ahead: list[int] = field(default_factory=list)
    place: int = 0
    mass: float = 1.0
    step: int = 0
    ended: bool = False
    children: dict[tuple[int, int], int] = field(default_factory=dict)

    def go(self, ids: Sequence[int]) -> None:
        """Go on from `node` through the nodes that were read before."""
        self.ahead = list(ids)
        while self.ahead and (self.node, self.ahead[0]) in self.children:
            self.node = self.children[self.node, self.ahead.pop(0)]

    def restart(self, ids: Sequence[int], rest: bytes) -> None:
        """Go on from `root` with the spelling of a target token, to draft the next."""
        self.node, self.rest, self.place, self.mass, self.step = self.root, rest, 0, 1.0, 0
        self.depth += len(ids)
        self.ended |= self.depth > self.room
        self.go(() if self.ended else ids)
        self.root = -1 if self.ahead else self.node  # -1 until what is ahead is read


class Drafting:
    """Drafts `lookahead` target tokens for every row, and bounds psi by what that reads.

    Parameters
    ----------
    trees : LawTrees
    bounds : PsiBounds
        With `lookahead` searches for each row.
    reader : Reader
        What read the contexts, and spells target tokens for the drafter.
    rooms : sequence of int
        Of each row, at how many tokens after the context a target token can be drafted.
    coins : Tensor of float64, shape (B, lookahead, depth of the prefix tree)
    """

    def __init__(
        self,
        trees: LawTrees,
        bounds: PsiBounds,
        reader: Reader,
        rooms: Sequence[int],
        coins: Tensor,
    ) -> None:
        self.trees, self.bounds, self.reader, self.coins = trees, bounds, reader, coins
        rests = [row.rest for row in reader.rows]
        given = zip(rooms, rests, trees.roots, strict=True)
        self.paths = [Path(room, rest, [law]) for room, rest, law in given]

    def run(self) -> list[list[int]]:
        """The drafts of each row, which end with a special token, or where there is no room."""
        while going := [row for row, path in enumerate(self.paths) if not path.ended]:
            ready = [row for row in going if not self.paths[row].ahead]
            if ready:
                self._draw(ready)
            else:
                self._grow(going)
        return [path.drafts for path in self.paths]

    def _draw(self, rows: list[int]) -> None:
        """One drafter token for each of some rows, whose laws are known."""
        paths, lookahead = [self.paths[row] for row in rows], self.coins.shape[1]
        laws = torch.stack([path.laws[path.node] for path in paths])
        numbers = [
            (row, len(path.drafts), path.step, path.node)
            for row, path in zip(rows, paths, strict=True)
        ]
        row, site, step, nodes = sent(numbers, laws.device).unbind(1)
        masses = moved(torch.tensor([path.mass for path in paths], dtype=laws.dtype), laws.device)
        places, tokens = [path.place for path in paths], draw(laws, self.coins[row, site, step])
        search = row * lookahead + site
        pieces = self.bounds.absorb(search, nodes, places, masses, laws, tokens)
        codes = self.bounds.settling.codes(pieces, tokens)
        chosen = masses * laws.gather(1, tokens[:, None])[:, 0]
        found = torch.stack([tokens.double(), codes.double(), chosen], 1)
        for path, (token, code, mass) in zip(paths, found.tolist(), strict=True):
            self._follow(path, int(token), int(code), mass)

    def _follow(self, path: Path, token: int, code: int, mass: float) -> None:
        end = self.bounds.settling.end
        if code < end:
            path.place, path.mass, path.step = code, mass, path.step + 1
            path.go([token])
            return
        path.drafts.append(OUTSIDE if code == end else code - end - 1)
        special = code == end or self.reader.target.spelled[path.drafts[-1]] is None
        path.ended = special or len(path.drafts) == self.coins.shape[1]
        if not path.ended:
            path.restart(*self.reader.continued(path.rest, path.drafts[-1]))

    def _grow(self, rows: list[int]) -> None:
        """Read the tokens that some rows have ahead."""
        parents = []
        for row in rows:
            path, first = self.paths[row], self.trees.next_number(row)
            parents += [path.node, *range(first, first + len(path.ahead) - 1)]
        ahead = [self.paths[row].ahead for row in rows]
        of = [row for row in rows for _ in self.paths[row].ahead]
        nodes, laws = self.trees.grow(of, parents, list(chain.from_iterable(ahead)))
        for row, node, law in zip(of, nodes, laws, strict=True):
            path = self.paths[row]
            path.children[path.node, path.ahead.pop(0)] = node
            path.laws.append(law)
            path.node = node
            path.root = node if path.root < 0 and not path.ahead else path.root
