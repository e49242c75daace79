"""String-level rejection sampling (SLRS), without psi: Timor et al. 2025, Algorithm 3.

The drafter writes text until the longest target token that starts it is determined: that token
is the draft. One iteration repeats this for each of its draft tokens, after the tokens drafted so
far; text written past t_k is dropped. So t_k has the law psi(. | context t_<k), the push-forward
of the law of drafter *tokens*: a text that can be written in several ways is drafted in any of
them, and has the mass of all. Verification is that of Algorithm 3, by p and psi.

But nobody needs the law psi: a verdict asks on which side of a number psi(t) is. So the drafter's
continuations are read, likeliest first, until bounds of psi(t) tell (`psi_bounds`), and the token
after a rejection is drawn by rejection as well (`lazy_verification`). Every verdict is that of the
whole psi with the same coin.

(The text that was dropped may be what showed that t_1 is not longer. To keep it, psi of t_2 would
have to be conditioned on that event. It is lossless without, and accepts less where the drafter
would have gone on with a longer token.)
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

import torch
from torch import Tensor

from specref.torch_backend.drafters.drafts import Drafts, Shape
from specref.torch_backend.drafters.lazy_verification import LazyVerifier
from specref.torch_backend.drafters.mapped import inverse
from specref.torch_backend.drafters.psi_bounds import LawTrees, PsiBounds
from specref.torch_backend.drafters.settling import Settling
from specref.torch_backend.models.trees import TreeModel
from specref.torch_backend.randomness import DRAFT, uniforms
from specref.torch_backend.shaping import draw, moved, sent
from specref.torch_backend.validation import NO_DRAFT, OUTSIDE
from specref.torch_backend.vocabularies.contexts import Reader, windowed
from specref.torch_backend.vocabularies.token_vocabulary import TokenVocabulary, id_map

WIDTH = 8


class SlrsDrafter:
    """Drafts the target tokens that a draft model's text starts with, and verifies them by bounds.

    Parameters
    ----------
    model : TreeModel
        The draft model.
    target, drafter : TokenVocabulary
        Of any kind: the text of a draft model's token is what `spelled` says. Where the tokeniser
        normalises, that is not quite what it would write, which costs acceptance and no more.
        Where several target tokens have the same bytes, text becomes that of `by_bytes`.
    shape : callable
        From the draft model's logits to the distribution of its next token.
    width : int
        How many continuations of a row are read in one forward, at most, while a verdict is open.
        More than a few hardly save forwards: the likeliest ones decide.

    Attributes
    ----------
    reads : int
        After how many contexts and continuations the draft model's distribution was asked for.

    Raises
    ------
    ValueError
        `width` < 1, or a vocabulary has no token that is text.

    Notes
    -----
    EOS of the draft model where a token would start is EOS of the target; anywhere else it ends
    the token before it, as do other special tokens. What starts no token of the target is
    ``OUTSIDE``.

    After a draft the draft model goes on from what `contexts.Reader` makes of it: text that it
    wrote beyond the draft is dropped. A row has fewer drafts where the model's positions end.
    """

    def __init__(
        self,
        model: TreeModel,
        target: TokenVocabulary,
        drafter: TokenVocabulary,
        shape: Shape,
        width: int = WIDTH,
    ) -> None:
        if width < 1:
            raise ValueError(f"width = {width}: expected at least 1")
        self.model, self.target, self.drafter, self.shape = model, target, drafter, shape
        self.width, self.trie = width, target.trie
        self.settling = Settling(target, drafter, model.device)
        self._read = Reader(target, drafter, inverse(id_map(target, drafter), drafter))
        self._before = 0
        self._trees: LawTrees | None = None

    @property
    def reads(self) -> int:
        return self._before + (0 if self._trees is None else self._trees.reads)

    @torch.inference_mode()
    def draft(
        self, contexts: Sequence[Sequence[int]], lookahead: int, seeds: Tensor, iteration: int
    ) -> Drafts:
        """Draft up to `lookahead` target tokens for every row, and what verifies them.

        A row ends with EOS or with text that is no token of the target; after that its tokens
        are ``NO_DRAFT``.

        Raises
        ------
        ValueError
            The draft model's logits are not of its vocabulary's size, or its positions too few.
        """
        seeds, before = seeds.to(self.model.device), self.model.forwards
        most = self.model.positions + 1 - self.trie.depth
        rows = [windowed(ids, most) for ids in self._read(contexts)]
        coins = uniforms(seeds, iteration, DRAFT, lookahead * self.trie.depth)
        coins = coins.view(len(rows), lookahead, self.trie.depth)
        trees = LawTrees(self.model, self.drafter, self.shape, rows)
        bounds = PsiBounds(self.settling, len(rows) * lookahead, len(self.target))
        rooms = [most - len(row) for row in rows]
        drafted = Drafting(trees, bounds, self._read, rooms, coins).run()
        self._before, self._trees = self.reads, trees
        padded = [row + [NO_DRAFT] * (lookahead - len(row)) for row in drafted]
        tokens = sent(padded, self.model.device)
        verifier = LazyVerifier(trees, bounds, lookahead, seeds, iteration, self.width)
        return Drafts(tokens, None, self.model.forwards - before, verifier)

    def select(self, rows: Sequence[int]) -> None:
        self._read.select(rows)
        self.model.select(rows)


@dataclass
class Path:
    """The state of drafting one row, by walking down a tree of continuations.

    * `room`: At how many tokens after the context a target token can still be drafted.
    * `rest`: Of what was drafted, what the drafter cannot spell yet.
    * `laws`: The drafter's, after the nodes that were read, 0 being the context.
    * `drafts`: The target tokens that are settled, or ``OUTSIDE``.
    * `root`, `depth`: The node that spells them, and how many tokens of the drafter that takes.
    * `node`, `ahead`: The node that is being gone to, as far as it is read, and the tokens beyond.
    * `place`, `mass`, `step`: Of the text since `root`: its place in the prefix tree, its
      probability, and how many drafter tokens it has.
    * `ended`: Whether all is drafted.
    * `children`: {(node, token): node}, of those that were read.
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

    The bounds have `lookahead` searches for each row; the reader read the contexts. `rooms` are
    those of each `Path`, and coins have shape (B, lookahead, depth of the prefix tree).
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
