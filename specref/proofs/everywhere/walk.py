"""The random paths of a rule at one sample, and which of them lead to an outcome."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from specref.algorithms import Step
from specref.chance import MAX_SITES, Chance, OutsideChanceError, TooManyPathsError
from specref.proofs.everywhere.number import Number, Reading
from specref.proofs.everywhere.region import Event
from specref.proofs.everywhere.rows import Models
from specref.vocabulary import Tokens

Choices: TypeAlias = tuple[int, ...]


class Walk(Chance):
    """One random path: follows `prefix`, then branches that are likely to lead to the outcome.

    Parameters
    ----------
    reading : Reading
        Where the weights are recorded.
    prefix : tuple of int
        Branches to follow first.
    hopeful : set of tuples
        Prefixes to follow where there is a choice.
    """

    def __init__(self, reading: Reading, prefix: Choices, hopeful: set[Choices]) -> None:
        self.reading, self.prefix, self.hopeful = reading, prefix, hopeful
        self.choices: list[int] = []
        self.weights: list[Number] = []
        self.unexplored: list[Choices] = []
        self.endless = False

    def _choose(self, weights: Sequence[Any], site: str) -> int:
        depth = len(self.choices)
        if depth == MAX_SITES:
            self.endless = True
            raise TooManyPathsError(f"more than {MAX_SITES} random decisions on a path (at {site})")
        numbers = [_exact(weight, self.reading, site) for weight in weights]
        if depth < len(self.prefix):
            choice = self.prefix[depth]
            if choice >= len(numbers) or not self.reading.sign(numbers[choice]) > 0:
                raise OutsideChanceError(
                    f"no function of chance: at {site}, after the same choices, branch {choice} "
                    "was possible in one run, and is not in another"
                )
        else:
            possible = [
                branch for branch, number in enumerate(numbers) if self.reading.sign(number) > 0
            ]
            here = tuple(self.choices)
            choice = next((b for b in possible if (*here, b) in self.hopeful), possible[0])
            self.unexplored += [(*here, b) for b in reversed(possible) if b != choice]
        self.choices.append(choice)
        if numbers[choice].residue != 1:
            self.weights.append(numbers[choice])
            self.reading.events.append(("weight", numbers[choice], 0))
        return choice


@dataclass(frozen=True)
class Path:
    """A path: its block, its weights, and what was compared on it."""

    block: Tokens
    choices: Choices
    weights: tuple[Number, ...]
    events: list[Event]


def paths(
    step: Step, models: Models, lookahead: int, hopeful: set[Choices], check: Callable[[], None]
) -> Iterator[Path]:
    """Every random path of a step at a sample, those with a hopeful prefix first.

    Parameters
    ----------
    step : callable
    models : Models
    lookahead : int
    hopeful : set of tuples
        Prefixes of choices; the set may grow meanwhile.
    check : callable
        Called between two paths; may raise.
    """
    reading = models.reading
    sooner: list[Choices] = [()]
    later: list[Choices] = []
    while sooner or later:
        check()
        prefix = (sooner or later).pop()
        walk = Walk(reading, prefix, hopeful)
        reading.events = []
        block = tuple(step(models.model("p"), models.model("q"), (), lookahead, walk))
        if reading.tie:
            raise reading.tie
        if walk.endless:
            raise TooManyPathsError(f"more than {MAX_SITES} random decisions on one path")
        yield Path(block, tuple(walk.choices), tuple(walk.weights), reading.events)
        for branch in walk.unexplored:
            (sooner if branch in hopeful else later).append(branch)


def prefixes(choices: Choices) -> Iterator[Choices]:
    """All prefixes of a path, itself included."""
    return (choices[:length] for length in range(1, len(choices) + 1))


def _exact(weight: Any, reading: Reading, site: str) -> Number:
    if isinstance(weight, Number):
        return weight
    if isinstance(weight, int | Fraction):
        return reading.constant(weight)
    raise TypeError(
        f"chance was asked at {site} with {weight!r}: a proof needs exact numbers throughout, "
        "such as Fraction(1, 2) for 1 / 2"
    )
