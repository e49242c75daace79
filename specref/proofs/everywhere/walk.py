"""The random paths of a rule at one sample, and which of them lead to an outcome."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Any, TypeAlias

from specref.algorithms.decoding import Step
from specref.chance import MAX_SITES, Chance, Exact, OutsideChanceError, TooManyPathsError
from specref.proofs.everywhere import signs
from specref.proofs.everywhere.number import STALE, NotForAllError, Number, Reading
from specref.proofs.everywhere.region import Event
from specref.proofs.everywhere.rows import Chart, Models, Sample, Space
from specref.vocabulary import Tokens

Choices: TypeAlias = tuple[int, ...]
OWED = "modified"
"""The site of tokens that follow an iteration's last one."""
DIFFERENT = (
    "the rule does something else with fractions than with numbers that stand for all rows "
    "(expected one that does not ask what kind of numbers it is given, and keeps nothing between "
    "two calls)"
)


class _NothingError(Exception):
    """No path begins with given choices."""


class Walk(Chance):
    """One random path: follows `prefix`, then branches that are likely to lead to the outcome.

    * `hopeful`: Prefixes to follow where there is a choice.
    * `doubtful`: How many branches of the prefix may turn out to have weight 0.
    """

    def __init__(
        self, reading: Reading, prefix: Choices, hopeful: set[Choices], doubtful: int
    ) -> None:
        self.reading, self.prefix, self.hopeful = reading, prefix, hopeful
        self.doubtful = doubtful
        self.raised: Exception | None = None
        self.choices: list[int] = []
        self.owed: list[bool] = []
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
        self.owed.append(site == OWED)
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
class Trace:
    """What a rule did on a path, as it is compared with another run, which may be elsewhere.

    Two traces are equal if the same functions were compared, with the same answers, and asked of
    chance. Of the names of sites only those that owe tokens count.
    """

    block: Tokens
    choices: Choices
    owed: tuple[bool, ...]
    weights: tuple[int, ...]
    events: tuple[tuple[str, int, int], ...]
    values: tuple[Fraction, ...] = field(compare=False)


@dataclass(frozen=True)
class Path:
    """A path: its block, its weights, what was compared on it, and where it owes tokens."""

    block: Tokens
    choices: Choices
    weights: tuple[Number, ...]
    events: list[Event]
    owed: tuple[bool, ...] = ()

    @property
    def trace(self) -> Trace:
        return Trace(
            self.block,
            self.choices,
            self.owed,
            tuple(weight.residue for weight in self.weights),
            tuple((kind, number.residue, wanted) for kind, number, wanted in self.events),
            tuple(weight.value for weight in self.weights),
        )


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

    * `hopeful`: Prefixes of choices; the set may grow meanwhile.
    * `check`: Called between two paths; may raise.
    * `beginning`: Only paths with these choices first; there may be none.
    * `every`: False: only those with a hopeful prefix, and the first.
    """
    sooner: list[Choices] = [beginning]
    later: list[Choices] = []
    first: Path | None = None
    while sooner or (every and later):
        check()
        prefix = (sooner or later).pop()
        doubtful = len(beginning) if first is None else 0
        try:
            path, unexplored = followed(step, models, lookahead, prefix, hopeful, doubtful)
        except _NothingError:
            return
        if path.choices[: len(beginning)] != beginning:
            return
        if first is None:
            for _ in range(2):
                first, _ = followed(step, models, lookahead, path.choices, hopeful)
                _compare(path.trace, first.trace)
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
        followed(step, models, lookahead, (), set())
    except TypeError:
        raise
    except Exception:
        return  # it is run again, with fractions


def followed(
    step: Step,
    models: Models,
    lookahead: int,
    prefix: Choices,
    hopeful: set[Choices],
    doubtful: int = 0,
) -> tuple[Path, list[Choices]]:
    """The path of a prefix, and the branches left open on the way."""
    reading = models.path = models.reading.of_path()
    walk = Walk(reading, prefix, hopeful, doubtful)
    target, drafter = models.model("p", reading), models.model("q", reading)
    raised: Exception | None = None
    block: Tokens = ()
    try:
        block = tuple(step(target, drafter, (), lookahead, walk))
    except Exception as error:
        raised = error
    finally:
        reading.ended = True
    # A rule may have hidden what was raised here.
    raised = reading.raised or walk.raised or raised
    if raised:
        raise raised
    if reading.shown:
        written = NotForAllError(
            "a number is made a text (str, repr, print, a format): expected a rule that reads "
            "nothing from the text of a probability; compare it instead"
        )
        written.stack = reading.shown
        raise written
    target.vocabulary.check(block, "block")
    if not block:
        raise ValueError("step returned an empty block")
    weights = tuple(map(models.reading.taken, walk.weights))
    path = Path(block, tuple(walk.choices), weights, reading.events, tuple(walk.owed))
    return path, walk.unexplored


def _compare(one: Trace, again: Trace) -> None:
    """Raise unless two runs with the same choices did the same."""
    if one != again:
        raise OutsideChanceError(
            "no function of chance and rows: of two runs with the same choices, "
            f"{unlike(one, again, ('one', 'the other'))}"
        )


def unlike(one: Trace, again: Trace, names: tuple[str, str]) -> str:
    """How two runs that differ do: both sides, if they can be told apart in words."""
    for said in (
        lambda trace: f"block {trace.block}",
        lambda trace: f"the choices {trace.choices}",
        lambda trace: f"requests {_listed(trace.values)}",
        _comparisons,
    ):
        left, right = said(one), said(again)
        if left != right:
            return f"{names[0]} has {left}, {names[1]} has {right}"
    return f"{names[0]} compares or asks for something that {names[1]} does not"


def _comparisons(trace: Trace) -> str:
    number = sum(kind != "weight" for kind, _, _ in trace.events)
    several = "s" * (number != 1)
    return f"{number} comparison{several} or division{several}"


def _listed(values: Sequence[Fraction]) -> str:
    return f"({', '.join(map(str, values))})"


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
    if (block, weight) != (path.block, expected):
        return (
            f"with the same choices it returns {block} with probability {weight} with fractions, "
            f"and {path.block} with {expected} with the others"
        )
    if (now := tuple(chance.choices)) != path.choices:
        return f"it takes the choices {now} with fractions, and {path.choices} with the others"
    return ""


def prefixes(choices: Choices) -> Iterator[Choices]:
    """All prefixes of a path, itself included."""
    return (choices[:length] for length in range(1, len(choices) + 1))


def _exact(weight: Any, reading: Reading, site: str) -> Number:
    if isinstance(weight, Number):
        return weight if weight.reading is reading else reading.refuse(STALE)
    if isinstance(weight, int | Fraction):
        return reading.constant(weight)
    raise NotForAllError(
        f"chance was asked at {site} with {weight!r}: a proof needs exact numbers throughout, "
        "such as Fraction(1, 2) for 1 / 2"
    )
