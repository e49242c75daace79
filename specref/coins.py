"""Coins: all randomness of a verification as an argument.

Tokens are drawn by an exponential race, argmin noise / weight, since two samplers that run the
same race with nearly equal weights nearly always agree. With an inverse CDF they do not.
"""

from dataclasses import dataclass

import numpy as np

from specref.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Coins:
    """The randomness of verifying a batch of drafts.

    * `accept` (ndarray, shape (trials, lookahead)): Uniforms in [0, 1): draft i is accepted iff
      accept[i] < p / q.
    * `race` (ndarray, shape (trials, V)): Exponential noise: the last token, residual or bonus, is
      argmin race / weight.
    """

    accept: Floats
    race: Floats

    def __getitem__(self, trials: "slice | Ints") -> "Coins":
        """The coins of some trials."""
        return Coins(self.accept[trials], self.race[trials])

    @property
    def final(self) -> Floats:
        """Uniforms in [0, 1) for a last token drawn by an inverse CDF instead of a race.

        Examples
        --------
        >>> Coins(np.zeros((1, 0)), np.log([[2.0, 3.0]])).final
        array([0.5])
        """
        return np.asarray(-np.expm1(-self.race[:, 0]))


def draw_coins(trials: int, lookahead: int, size: int, rng: np.random.Generator) -> Coins:
    """Fresh coins for `trials` rows of `lookahead` drafts over `size` tokens."""
    return Coins(rng.random((trials, lookahead)), rng.standard_exponential((trials, size)))


def race_winner(weights: Floats, race: Floats) -> Ints:
    """The token argmin race / weight: law norm(weights) if the race is exponential noise.

    * `weights` (ndarray, shape (..., V)): Non-negative, not all 0; need not sum to 1.
    * `race` (ndarray, shape (..., V))

    Examples
    --------
    >>> race_winner(np.array([0.5, 0.5, 0.0]), np.array([2.0, 1.0, 0.0]))
    array(1)
    """
    arrival = np.full(np.broadcast_shapes(weights.shape, race.shape), np.inf)
    np.divide(race, weights, out=arrival, where=weights > 0)
    return np.asarray(arrival.argmin(axis=-1))
