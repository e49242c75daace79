"""Whether the batched twin has the law, or the blocks, of the program itself."""

import math
from dataclasses import dataclass

from specref.chance import Chance, Sampled
from specref.distributions import Probabilities, Probability, total_variation
from specref.vocabulary import Tokens

ALPHA = 1e-9


TRIALS = 1_000_000


BELOW_ONE = math.nextafter(1, 0)


@dataclass
class Column:
    uniform: float

    def random(self) -> float:
        return self.uniform


class BySite(Chance):
    """`Sampled`, except that each site reads a uniform of its own."""

    def __init__(self, uniforms: dict[str, float]) -> None:
        self.uniforms = uniforms

    def draw(self, probabilities: Probabilities, site: str) -> int:
        return Sampled(self._column(site)).draw(probabilities, site)

    def accept(self, probability: Probability, site: str) -> bool:
        return Sampled(self._column(site)).accept(probability, site)

    def _column(self, site: str) -> Column:
        # The twin has no column for a draft that no iteration looks at: any coin will do.
        return Column(self.uniforms.get(site, 0.5))

    def choose(self, weights, site):
        raise AssertionError("draw and accept are both overridden")


def rejection_threshold(outcomes: int) -> float:
    """TV_hat exceeds this with probability at most ALPHA, whatever the law.

    E TV_hat <= sqrt((k - 1) / n) / 2 by Cauchy-Schwarz; one trial moves TV_hat by at most 1/n,
    so McDiarmid's inequality bounds the excess by sqrt(ln(1 / ALPHA) / 2n).
    """
    return 0.5 * math.sqrt((outcomes - 1) / TRIALS) + math.sqrt(-math.log(ALPHA) / (2 * TRIALS))


def detectable(outcomes: int) -> float:
    """A twin this far off is missed with probability at most ALPHA, by the same inequality."""
    return rejection_threshold(outcomes) + math.sqrt(-math.log(ALPHA) / (2 * TRIALS))


def is_rejected(counts: dict[Tokens, int], expected: dict[Tokens, Probability]) -> bool:
    assert sum(counts.values()) == TRIALS
    empirical = {block: count / TRIALS for block, count in counts.items()}
    return total_variation(empirical, expected) > rejection_threshold(len(expected))
