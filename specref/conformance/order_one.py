"""Models of order 1 in tables: as quick after a long text as after a short one."""

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from specref.models import Model, as_float

Floats = NDArray[np.float64]


class Chain(Model):
    """An order-1 model, in float64, that is asked about the last token of a context alone.

    Parameters
    ----------
    model : Model
        Whose next token depends on the last one.

    Raises
    ------
    ValueError
        It depends on more.

    Examples
    --------
    >>> from specref.models import markov_model
    >>> from specref.vocabulary import Vocabulary
    >>> Chain(markov_model(Vocabulary("ab"), [1, 0], [[0, 1], ["1/4", "3/4"]])).rows
    array([[0.  , 1.  ],
           [0.25, 0.75]])
    """

    def __init__(self, model: Model) -> None:
        super().__init__(model.vocabulary, as_float(model).next_token)
        size = range(len(model.vocabulary))
        for before, last in itertools.product(size, size):
            if (model.next_token((before, last)) != model.next_token((last,))).any():
                raise ValueError(f"model depends on more than the last token of {(before, last)}")
        self.rows = np.stack([self.next_token((last,)) for last in size])

    def next_token(self, context: Sequence[int]) -> Floats:
        """The law after a context, in a time that does not grow with it."""
        return super().next_token(tuple(context[-1:]))
