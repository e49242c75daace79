"""The contract ``tree``: drafted trees of a batch in, blocks out."""

from collections.abc import Mapping
from typing import ClassVar, Protocol

import numpy as np

from specref.arrays import NO_TOKEN, Floats, Ints
from specref.coins import Coins
from specref.contracts.batch import NO_NODE, ROOT, Batch, TreeBatch, as_tree
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
)
from specref.contracts.sampling import Batches, Drawn, Sampler, until_eos
from specref.contracts.timeout import Deadline
from specref.contracts.verify import draw_tokens, sample_batch
from specref.rules import declarable


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

    def verifier(self, subject: Subject) -> Verifier:
        return TreeVerifier(subject.function, subject.capabilities, subject.timeout)

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
