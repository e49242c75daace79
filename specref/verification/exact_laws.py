"""A step whose blocks are drawn from its exact laws: the same law, a hundred times as fast."""

import bisect
import itertools

import numpy as np

from specref.algorithms.decoding import Step
from specref.models import Model
from specref.proofs.lazy import Enumerator, ReadableModel
from specref.vocabulary import Tokens

MAX_PATHS = 200_000


class DrawnFromLaws:
    """The contract ``step``, from a step's law in each context: enumerated once, then drawn.

    * `step`: (target, drafter, context, lookahead, chance) -> block.

    Examples
    --------
    >>> from specref.algorithms import standard
    >>> from specref.zoo import FIXTURES
    >>> m = FIXTURES["m"]
    >>> DrawnFromLaws(standard.step)(m.target, m.drafter, (), 1, np.random.default_rng(1))
    (0,)
    """

    def __init__(self, step: Step) -> None:
        self.step = step
        self._laws: dict[tuple[int, int, Tokens, int], tuple[list[Tokens], list[float]]] = {}
        self._models: list[Model] = []

    def __call__(
        self,
        target: Model,
        drafter: Model,
        context: Tokens,
        lookahead: int,
        rng: np.random.Generator,
    ) -> Tokens:
        key = id(target), id(drafter), context, lookahead
        if key not in self._laws:
            self._models += [target, drafter]  # so that their ids stay theirs
            models = ReadableModel(target), ReadableModel(drafter)
            law = Enumerator(MAX_PATHS).law(self.step, *models, context, lookahead)
            self._laws[key] = list(law), list(itertools.accumulate(map(float, law.values())))
        blocks, ends = self._laws[key]
        return blocks[bisect.bisect_right(ends, rng.random() * ends[-1])]
