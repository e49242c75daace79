"""Blocks of an implementation of the contract ``tree``, for the statistics."""

import numpy as np

from specref.arrays import NO_TOKEN, Ints
from specref.contracts.calling import Verifier
from specref.contracts.sampling import Batches, Drawn, until_eos
from specref.contracts.timeout import Deadline
from specref.contracts.tree.drawing import draw_trees
from specref.contracts.tree.fixtures import TreeFixture


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
