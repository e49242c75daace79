"""The contract ``tree``: drafted trees of a batch in, blocks out; and rules of trees under it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import ClassVar, Protocol

import numpy as np

from specref.algorithms.trees.topdown import Node, Tree, Verify
from specref.arrays import NO_TOKEN, Floats, Ints, one_hot_rows
from specref.chance import Chance, Sampled
from specref.coins import Coins
from specref.contracts.batch import NO_NODE, ROOT, Batch, TreeBatch, as_tree, batch_of_one
from specref.contracts.calling import Verifier
from specref.contracts.capabilities import Capabilities
from specref.contracts.contract import BatchContract, Subject
from specref.contracts.fixtures import (
    TOP,
    TREE_FIXTURES,
    WITH,
    Fixture,
    Rows,
    TreeFixture,
    TreePlace,
    ranked,
    rows,
    tree_place,
)
from specref.contracts.sampling import Batches, Drawn, Sampler, until_eos
from specref.contracts.timeout import Deadline
from specref.contracts.verify import draw_tokens, sample_batch
from specref.models import Model
from specref.proofs.lazy import Enumerator, ReadableModel
from specref.rules import RULES, declarable
from specref.vocabulary import Tokens, Vocabulary


def draw_trees(
    fixture: TreeFixture, tables: Rows, node: Ints, place: Ints, rng: np.random.Generator
) -> TreeBatch:
    """Draft a tree after each of the given nodes; code that reads missing nodes fails.

    Their laws put all mass on the last token. Nothing is drafted after EOS, and no sibling where
    the drafter has no token left, so that batches are ragged.
    """
    size, most, count = tables.p.shape[1], fixture.nodes, len(node)
    p, q = np.zeros((count, most + 1, size)), np.zeros((count, most, size))
    p[..., -1] = q[..., -1] = 1
    p[:, 0] = tables.p[node]
    tokens, parents = np.full((count, most), NO_TOKEN), np.full((count, most), NO_NODE)
    for index in np.unique(place).tolist():
        here = np.flatnonzero(place == index)
        drawn = DrawnTrees(fixture, fixture.places[index], tables, node[here], rng)
        drawn.put(here, p, q, tokens, parents)
    lens = (tokens >= 0).sum(axis=1)
    return TreeBatch(p, None if fixture.one_hot else q, tokens, lens, place, parents)


def sample_trees(fixture: TreeFixture, size: int, rng: np.random.Generator) -> TreeBatch:
    """A batch with rows of every place."""
    tables = rows(fixture, 0)
    place = np.arange(size) % len(fixture.places)
    return draw_trees(fixture, tables, tables.root[place], place, rng)


class DrawnTrees:
    """Drafted trees of one place, with a column for each node of its template.

    * `tokens` (ndarray of int, shape (rows, T)): -1 where a node is missing.
    * `order` (ndarray of int, shape (rows, T)): The column of each node in the batch; the missing
      ones come last.
    """

    def __init__(
        self,
        fixture: TreeFixture,
        place: TreePlace,
        tables: Rows,
        start: Ints,
        rng: np.random.Generator,
    ) -> None:
        self.fixture, self.place, self.tables, self.rng = fixture, place, tables, rng
        shape = len(start), len(place.template)
        self.start, self.tokens = start, np.full(shape, NO_TOKEN)
        self.node, self.laws = np.full(shape, NO_NODE), np.zeros((*shape, tables.p.shape[1]))
        for column, (parent, *elder) in enumerate(place.template):
            self._draw(column, parent, elder)
        self.order = self._order()

    def put(self, here: Ints, p: Floats, q: Floats, tokens: Ints, parents: Ints) -> None:
        """Write the trees into rows of a batch."""
        for column, (parent, *_) in enumerate(self.place.template):
            there = np.flatnonzero(self.tokens[:, column] >= 0)
            at = here[there], self.order[there, column]
            q[at], tokens[at] = self.laws[there, column], self.tokens[there, column]
            parents[at] = ROOT if parent == ROOT else self.order[there, parent]
            p[at[0], at[1] + 1] = self.tables.p[self.node[there, column]]

    def _draw(self, column: int, parent: int, elder: list[int]) -> None:
        if parent == ROOT:
            before, going = self.start, np.arange(len(self.start))
        else:
            before, above = self.node[:, parent], self.tokens[:, parent]
            going = np.flatnonzero((above >= 0) & (above != self.fixture.eos))
        law = self._law(self.tables.q[before[going]], going, elder)
        going, law = going[law.any(axis=1)], law[law.any(axis=1)]
        token = draw_tokens(law, self.rng)
        self.laws[going, column], self.tokens[going, column] = law, token
        self.node[going, column] = self.tables.child[before[going], token]

    def _law(self, q: Floats, going: Ints, elder: list[int]) -> Floats:
        if self.place.way == TOP:
            return np.eye(q.shape[1])[ranked(q)[:, len(elder)]]
        law = q.copy()
        for column in elder if self.place.way != WITH else ():
            law[np.arange(len(law)), self.tokens[going, column]] = 0
        total = law.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(law, total, out=np.zeros_like(law), where=total > 0))

    def _order(self) -> Ints:
        late = np.zeros(self.tokens.shape)
        for column, before in enumerate(self.place.template):
            known = [late[:, other] for other in before if other != ROOT]
            late[:, column] = np.max(known, axis=0, initial=0) if known else 0
            late[:, column] += self.rng.standard_exponential(len(late))
        late[self.tokens < 0] = np.inf
        return np.asarray(late.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable"))


class Trees(Batches):
    """One iteration on trees of all places of a fixture, mixed in each batch."""

    def __init__(self, verifier: Verifier, fixture: TreeFixture) -> None:
        super().__init__(verifier, fixture, 0)
        self.trees = fixture

    def _batch(self, place: Ints, rng: np.random.Generator, deadline: Deadline) -> Drawn:
        batch = draw_trees(self.trees, self.tables, self.tables.root[place], place, rng)
        tokens = self.verifier.answer(batch, rng, deadline=deadline).tokens[
            :, : self.fixture.lookahead + 1
        ]
        return place, until_eos(self.fixture, tokens), np.full((len(place), 1), NO_TOKEN)


class VerifyTree(Protocol):
    """Contract ``tree``: drafted trees of a batch in, blocks out.

    Takes its randomness as `Verify` does; `coins.accept` has one for each node.
    """

    def __call__(
        self,
        target_probs: Floats,
        draft_probs: Floats | None,
        draft_tokens: Ints,
        parents: Ints,
        *,
        rng: np.random.Generator = ...,
        coins: Coins = ...,
    ) -> tuple[Ints, Ints]:
        """Verify a batch.

        Parameters
        ----------
        target_probs : ndarray, shape (B, N + 1, V)
            Row 0 is the target's law after the context, row i + 1 after the path to node i.
        draft_probs : ndarray, shape (B, N, V), or None
            The law that each node was drawn from, given its elder siblings: without
            replacement, q without theirs, renormalised. None: nothing was drawn, and siblings
            differ.
        draft_tokens : ndarray of int, shape (B, N)
            Siblings in the order of drawing; -1 where a row has no node, after all others.
        parents : ndarray of int, shape (B, N)
            An earlier node, -1 for the root, -2 where there is no node.

        Returns
        -------
        tokens : ndarray of int, shape (B, columns)
            A path from the root and one more token, padded with -1; as many columns as the
            longest block needs, at most N + 1.
        counts : ndarray of int, shape (B,)
            How many tokens each row has.
        """
        ...


class TreeVerifier(Verifier):
    """An implementation of the contract ``tree``; drafts without parents are given as chains."""

    short_rows = ""  # trees differ in more than their number of nodes

    def shaped(self, batch: Batch) -> TreeBatch:
        return as_tree(batch)


class TreeContract(BatchContract):
    """The contract ``tree``; drafts without parents are given as chains."""

    fixtures: ClassVar[Mapping[str, Fixture]] = TREE_FIXTURES
    default_rule: ClassVar[str] = declarable(tree=True)[0]
    bets_on_bugs: ClassVar[bool] = False
    written: ClassVar[bool] = False
    one_hot_fixture: ClassVar[str] = next(
        name for name in TREE_FIXTURES if TREE_FIXTURES[name].one_hot
    )
    laws_optional: ClassVar[bool] = False
    kind: ClassVar[type[Verifier]] = TreeVerifier
    trees: ClassVar[bool] = True
    quick_checks: ClassVar[tuple[str, ...]] = (
        "smoke",
        "joint/siblings",
        "joint/probed",
        "boundary/zero-coin",
    )

    def refusal(self, name: str, capabilities: Capabilities) -> str:
        if TREE_FIXTURES[name].one_hot and not capabilities.one_hot:
            return "does not take draft_probs=None"
        if TREE_FIXTURES[name].eos is not None and not capabilities.ragged:
            return "does not take ragged batches, as they are below EOS"
        return ""

    def fixture(self, name: str, capabilities: Capabilities) -> Fixture:
        """A fixture, reduced to the trees that the implementation takes."""
        if name not in TREE_FIXTURES:
            return super().fixture(name, capabilities)
        fixture = TREE_FIXTURES[name]
        if not capabilities.repeats:
            fixture = fixture.distinct()
        if not capabilities.empty_trees:
            fixture = fixture.with_drafts()
        return fixture if capabilities.ragged else fixture.even()

    def fewest_drafts(self, capabilities: Capabilities) -> int:
        return 0 if capabilities.empty_trees else 1

    def sample(self, fixture: Fixture, size: int, rng: np.random.Generator) -> Batch:
        if isinstance(fixture, TreeFixture):
            return sample_trees(fixture, size, rng)
        return sample_batch(fixture, size, rng)

    def blocks(self, subject: Subject, fixture: Fixture, *, one_hot: bool = False) -> Sampler:
        assert isinstance(fixture, TreeFixture)
        return Trees(self.verifier(subject), fixture)


TREE = TreeContract(
    "tree",
    VerifyTree,
    ("target_probs", "draft_probs", "draft_tokens", "parents"),
    ("rng", "coins", "lens", "generator"),
)


def as_verifier(verify: Verify) -> Callable[..., tuple[Ints, Ints]]:
    """A rule on trees as an implementation of the contract ``tree``, row by row."""

    def contracted(
        target_probs: Floats,
        draft_probs: Floats | None,
        draft_tokens: Ints,
        parents: Ints,
        *,
        rng: np.random.Generator,
    ) -> tuple[Ints, Ints]:
        p = target_probs / target_probs.sum(axis=2, keepdims=True)
        q = one_hot_rows(draft_tokens, p.shape[2]) if draft_probs is None else draft_probs
        tokens = np.full((len(parents), parents.shape[1] + 1), -1)
        chance = Sampled(rng)
        for row, above in enumerate(parents.tolist()):
            target, tree = read(p[row], q[row], draft_tokens[row].tolist(), above)
            block = verify(target, (), tree, chance)
            tokens[row, : len(block)] = block
        return tokens, (tokens >= 0).sum(axis=1)

    return contracted


def read(p: Floats, q: Floats, tokens: list[int], parents: list[int]) -> tuple[Model, Tree]:
    """A model with the target's laws after each path, and the tree."""
    below: list[list[int]] = [[] for _ in range(len(parents) + 1)]
    paths: list[Tokens] = [()]
    for node, (token, parent) in enumerate(zip(tokens, parents, strict=True)):
        if parent < ROOT:
            break
        below[parent + 1].append(node)
        paths.append((*paths[parent + 1], token))

    def children(row: int) -> Tree:
        return tuple(Node(tokens[node], q[node], children(node + 1)) for node in below[row])

    return GivenRows(dict(zip(paths, p, strict=False))), children(0)


class GivenRows(Model):
    """The target, limited to given laws {context: law}."""

    def __init__(self, laws: Mapping[Tokens, Floats]) -> None:
        super().__init__(numbered(len(laws[()])), laws.__getitem__)
        self.laws = laws

    def next_token(self, context: Sequence[int]) -> Floats:
        return self.laws[tuple(context)]


@cache
def numbered(size: int) -> Vocabulary:
    """A vocabulary of `size` tokens."""
    return Vocabulary([f"{token}," for token in range(size)])


def one_row(target: Model, context: Tokens, tree: Tree, *, one_hot: bool = False) -> TreeBatch:
    """A tree as a batch of one row, parents first and siblings in draw order."""
    flat = list(_flat(tree, ROOT, context))
    p = np.stack([target.next_token(path) for path in (context, *(path for _, _, path in flat))])
    laws = np.array([node.q for node, _, _ in flat]).reshape(len(flat), p.shape[1])
    tokens, parents = [node.token for node, _, _ in flat], [parent for _, parent, _ in flat]
    return batch_of_one(tokens, parents, p, None if one_hot else laws)


def _flat(tree: Tree, parent: int, context: Tokens) -> Iterator[tuple[Node, int, Tokens]]:
    """Each node with the index of its parent and its text, by depth."""
    level = [(node, parent, context) for node in tree]
    start = 0
    while level:
        found = [(node, above, (*text, node.token)) for node, above, text in level]
        yield from found
        level = [
            (child, start + index, text)
            for index, (node, _, text) in enumerate(found)
            for child in node.children
        ]
        start += len(found)


MAX_PATHS = 100_000


@dataclass(frozen=True)
class TreeStep:
    """A step with correct drafts and a given verification, for the tree of a place."""

    verify: Verify

    def __call__(
        self,
        target: Model,
        drafter: Model,
        context: Tokens,
        lookahead: int,
        chance: Chance,
        *,
        place: TreePlace | None = None,
    ) -> Tokens:
        """One iteration; by default with two siblings at each depth."""
        where = place or tree_place(context, (2,) * lookahead)
        return self.verify(target, context, where.tree(drafter, chance), chance)


def tree_step(rule: str) -> TreeStep:
    """The step of a rule of trees."""
    verify = RULES[rule].verify_tree
    if verify is None:
        raise ValueError(f"rule = {rule!r}: expected one of {declarable(tree=True)}")
    return TreeStep(verify)


@cache
def law(fixture: TreeFixture, place: TreePlace, rule: str) -> Mapping[Tokens, float]:
    """The law of the block of a rule at a place."""
    target, drafter = ReadableModel(fixture.target), ReadableModel(fixture.drafter)
    step = partial(tree_step(rule), place=place)
    found = Enumerator(MAX_PATHS).law(step, target, drafter, place.context, place.lookahead)
    return {block: float(weight) for block, weight in found.items()}


def lengths(fixture: TreeFixture, place: TreePlace, rule: str) -> tuple[float, ...]:
    """The probability of a block of 1, 2, … tokens; an EOS ends it."""
    counted = [0.0] * (place.lookahead + 1)
    for block, weight in law(fixture, place, rule).items():
        counted[len(block) - 1] += weight
    return tuple(counted)
