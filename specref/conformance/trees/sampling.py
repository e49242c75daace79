"""Blocks of an implementation of the contract ``tree``, for the statistics."""

import numpy as np

from specref.conformance.calling import Verifier
from specref.conformance.contract import Ints
from specref.conformance.fixtures import NO_TOKEN
from specref.conformance.patience import Pulse
from specref.conformance.sampling import Batches, Drawn, until_eos
from specref.conformance.trees.drawing import draw_trees
from specref.conformance.trees.places import Grove


class Trees(Batches):
    """One iteration on trees of all places of a grove, mixed in each batch."""

    def __init__(self, verifier: Verifier, grove: Grove) -> None:
        super().__init__(verifier, grove, grove.lookahead)
        self.grove = grove

    def _batch(self, place: Ints, rng: np.random.Generator, pulse: Pulse) -> Drawn:
        batch = draw_trees(self.grove, self.tables, self.tables.root[place], place, rng)
        tokens = self.verifier.answer(batch, rng, pulse=pulse).tokens[
            :, : self.grove.lookahead + 1
        ]
        return place, until_eos(self.grove, tokens), np.full((len(place), 1), NO_TOKEN)
