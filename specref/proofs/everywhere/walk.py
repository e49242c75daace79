"""The random paths of a rule at one sample, and which of them lead to an outcome."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, TypeAlias

from specref.algorithms import Step
from specref.chance import MAX_SITES, Chance, Exact, OutsideChanceError, TooManyPathsError
from specref.proofs.everywhere import signs
from specref.proofs.everywhere.number import NotForAllError, Number, Reading
from specref.proofs.everywhere.region import Event
from specref.proofs.everywhere.rows import Chart, Models, Sample, Space
from specref.vocabulary import Tokens

Choices: TypeAlias = tuple[int, ...]
DIFFERENT = (
    "the rule does something else with fractions than with numbers that stand for all rows "
    "(expected one that does not ask what kind of numbers it is given)"
)


class _NothingError(Exception):
    """No path begins with given choices."""


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
    doubtful : int
        How many branches of the prefix may turn out to have weight 0.
    """

    def __init__(
        self, reading: Reading, prefix: Choices, hopeful: set[Choices], doubtful: int
    ) -> None:
        self.reading, self.prefix, self.hopeful = reading, prefix, hopeful
        self.doubtful = doubtful
        self.raised: Exception | None = None
        self.choices: list[int] = []
        self.weights: list[Number] = []
        self.unexplored: list[Choices] = []

    def choose(self, weights: Sequence[Any], site: str) -> int:
        try:
            return self._chosen(weights, site)
        except Exception as error:
            self.raised = error  # the rule may hide it
            raise

    def _chosen(self, weights: Sequence[Any], site: str) -> int:
        depth = len(self.choices)
        if depth == MAX_SITES:
            raise TooManyPathsError(
                f"more than {MAX_SITES} random decisions on one path (at {site})"
            )
        numbers = [_exact(weight, self.reading, site) for weight in weights]
        self._check(numbers, site)
        if depth < len(self.prefix):
            choice = self.prefix[depth]
            if choice >= len(numbers) or not self.reading.sign(numbers[choice]) > 0:
                if depth < self.doubtful:
                    raise _NothingError
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

    def _check(self, numbers: Sequence[Number], site: str) -> None:
        """Raise unless weights are >= 0 and sum to 1, wherever the rule does the same.

        A rule that asks by `draw` and `accept` has met these checks before.
        """
        positive = all(self.reading.decide(number, signs.AT_LEAST_ZERO) for number in numbers)
        total = sum(numbers, self.reading.constant(-1))
        if not (positive and self.reading.decide(total, signs.ZERO)):
            raise NotForAllError(
                f"chance was asked at {site}, not by draw or accept, with weights that are "
                "negative or do not sum to 1"
            )


@dataclass(frozen=True)
class Path:
    """A path: its block, its weights, and what was compared on it."""

    block: Tokens
    choices: Choices
    weights: tuple[Number, ...]
    events: list[Event]


def paths(
    step: Step,
    models: Models,
    lookahead: int,
    hopeful: set[Choices],
    check: Callable[[], None],
    beginning: Choices = (),
    *,
    every: bool = True,
) -> Iterator[Path]:
    """Random paths of a step at a sample, those with a hopeful prefix first.

    Parameters
    ----------
    step : callable
    models : Models
    lookahead : int
    hopeful : set of tuples
        Prefixes of choices; the set may grow meanwhile.
    check : callable
        Called between two paths; may raise.
    beginning : tuple of int
        Only paths with these choices first; there may be none.
    every : bool
        False: only those with a hopeful prefix, and the first.
    """
    sooner: list[Choices] = [beginning]
    later: list[Choices] = []
    first: Path | None = None
    while sooner or (every and later):
        check()
        prefix = (sooner or later).pop()
        doubtful = len(beginning) if first is None else 0
        try:
            path, unexplored = _followed(step, models, lookahead, prefix, hopeful, doubtful)
        except _NothingError:
            return
        if path.choices[: len(beginning)] != beginning:
            return
        if first is None:
            for _ in range(2):
                first, _ = _followed(step, models, lookahead, path.choices, hopeful)
                _compare(path, first)
                different = _with_fractions(path, step, models, lookahead)
                if not different:
                    break
            else:
                raise NotForAllError(f"{DIFFERENT}: {different}")
        yield path
        for branch in unexplored:
            (sooner if branch in hopeful else later).append(branch)


def one_run(step: Step, space: Space, lookahead: int) -> None:
    """Run a step once, at random rows; raises what is refused, and nothing else."""
    chart = Chart(space, {})
    sample = Sample(chart, {}, f"{space.seed} first")
    models = Models(chart, Reading(space.prime, sample.value))
    try:
        _followed(step, models, lookahead, (), set())
    except TypeError:
        raise
    except Exception:
        return  # it is run again, with fractions


def _followed(
    step: Step,
    models: Models,
    lookahead: int,
    prefix: Choices,
    hopeful: set[Choices],
    doubtful: int = 0,
) -> tuple[Path, list[Choices]]:
    """The path of a prefix, and the branches left open on the way."""
    reading = models.reading
    walk = Walk(reading, prefix, hopeful, doubtful)
    reading.events, reading.shown = [], None
    target, drafter = models.model("p"), models.model("q")
    raised: Exception | None = None
    block: Tokens = ()
    try:
        block = tuple(step(target, drafter, (), lookahead, walk))
    except Exception as error:
        raised = error
    # A rule may have hidden what was raised here.
    raised = reading.raised or walk.raised or raised
    if raised:
        raise raised
    if reading.shown:
        error = NotForAllError(
            "a number is made a text (str, repr, print, a format): expected a rule that reads "
            "nothing from the text of a probability; compare it instead"
        )
        error.stack = reading.shown
        raise error
    target.vocabulary.check(block, "block")
    if not block:
        raise ValueError("step returned an empty block")
    path = Path(block, tuple(walk.choices), tuple(walk.weights), reading.events)
    return path, walk.unexplored


def _compare(one: Path, again: Path) -> None:
    """Raise unless two runs with the same choices did the same."""
    for before, now in (
        (one.block, again.block),
        ([w.residue for w in one.weights], [w.residue for w in again.weights]),
        ([e[1].residue for e in one.events], [e[1].residue for e in again.events]),
    ):
        if before != now:
            shown = (
                ("block", one.block, again.block)
                if one.block != again.block
                else ("requests", *(_values(run.weights) for run in (one, again)))
            )
            raise OutsideChanceError(
                f"no function of chance and rows: of two runs with the same choices, one has "
                f"{shown[0]} {shown[1]} and the other {shown[2]}"
            )


def _values(weights: Sequence[Number]) -> str:
    return f"({', '.join(str(weight.value) for weight in weights)})"


def _with_fractions(path: Path, step: Step, models: Models, lookahead: int) -> str:
    """How a path differs with the fractions of the sample; nothing if it does not."""
    chance = Exact(path.choices)
    rows = models.sampled("p"), models.sampled("q")
    try:
        block = tuple(step(*rows, (), lookahead, chance))
    except Exception as error:
        return f"with fractions it raises {type(error).__name__}: {error}"
    pairs = zip(chance.requests, chance.choices, strict=True)
    weight = prod((request.weights[choice] for request, choice in pairs), start=Fraction(1))
    expected = prod((one.value for one in path.weights), start=Fraction(1))
    if (block, tuple(chance.choices), weight) == (path.block, path.choices, expected):
        return ""
    return (
        f"with the same choices it returns {block} with probability {weight} with fractions, and "
        f"{path.block} with {expected} with the others"
    )


def prefixes(choices: Choices) -> Iterator[Choices]:
    """All prefixes of a path, itself included."""
    return (choices[:length] for length in range(1, len(choices) + 1))


def _exact(weight: Any, reading: Reading, site: str) -> Number:
    if isinstance(weight, Number):
        return weight
    if isinstance(weight, int | Fraction):
        return reading.constant(weight)
    raise NotForAllError(
        f"chance was asked at {site} with {weight!r}: a proof needs exact numbers throughout, "
        "such as Fraction(1, 2) for 1 / 2"
    )
