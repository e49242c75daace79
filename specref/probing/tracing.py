"""Probing by tracing comparisons: all paths of user code are enumerated.

Numbers are lazy: chance decides their comparisons, with exact probabilities. Comparisons of two
noisy numbers say which of two exponential arrivals comes first. An exponential race, argmin E / w,
and Gumbel's trick, argmax log w - log E, are made of such comparisons. The earlier of two arrivals
is exponential with the sum of their rates, whichever it was, so that comparing one after the other
is exact as long as losers are left alone.

Each path is replayed with numbers from inside its intervals. If that has another outcome, the
trace is wrong, and none of it is used.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from specref.chance import Chance, OutsideChanceError, TooManyPathsError, enumerate_paths
from specref.probing.lazy import Coin, Comparisons, Lazy, quiet
from specref.probing.program import Outcome, Program
from specref.probing.source import (
    READINGS,
    Call,
    CannotInterpretError,
    Decision,
    EscapedError,
    Given,
    Request,
    Source,
    counted,
    current,
    here,
)

EARLY, LATE = 2.0**-30, 2.0**6
NEARLY_CERTAIN = 2.0**-29
ANCHORS = (0.5, 1.0, 2.0)
PROPORTIONAL = 1e-7
WIDEST = 60.0


@dataclass(frozen=True)
class Duel:
    """Whether left < right, as a race.

    * `certain`: The answer, if it is the same for nearly all noise.
    * `factor`: Both arrive at once where right's noise is `factor` times left's.
    * `left_if_first`: Whether left < right means that left arrives first.
    """

    certain: bool | None
    factor: float = 1.0
    left_if_first: bool = True
    reading: str = ""

    def first(self, left: Coin, right: Coin) -> float:
        """The probability that left arrives first."""
        return left.rate / (left.rate + self.factor * right.rate)


def duel(left: Lazy, right: Lazy) -> Duel:
    """Read a comparison of two numbers of different coins as an exponential race.

    The caller is `quiet`.

    * raises `EscapedError`: Neither reading of their coins makes it a race, or one has lost or
      been bounded before.
    """
    for number in (left, right):
        number.check_defined()
        coin = number.coin
        if coin.lost:
            raise EscapedError(f"noise of {coin.call} is used again after a race")
        if coin.high - coin.low < 1 << coin.bits:
            raise EscapedError(f"a bounded number of {coin.call} races")
    known = {number.coin.reading for number in (left, right) if not number.coin.exponential}
    if len(known - {None}) == 2:
        raise EscapedError(f"numbers of {left.coin.call} race in two ways")
    for reading in known - {None} or READINGS:
        found = _as_race(left, right, str(reading))
        if found is not None:
            return found
    raise EscapedError(f"numbers of {left.coin.call} are compared, not in an exponential race")


def _value(number: Lazy, reading: str) -> Callable[[float], float]:
    if number.coin.exponential:
        return number.at
    return lambda noise: number.at(READINGS[reading](noise))


def _as_race(left: Lazy, right: Lazy, reading: str) -> Duel | None:
    """The race under a reading of uniforms as noise; None if it is not one."""
    left_value, right_value = _value(left, reading), _value(right, reading)

    def less(x: float, y: float) -> bool:
        return left_value(x) < right_value(y)

    def tie(noise: float) -> float | None:
        value = left_value(noise)
        return _tie(lambda y: value < right_value(y))

    rates = left.coin.rate, right.coin.rate
    lefts = [left_value(x / rates[0]) for x in (EARLY, LATE)]
    rights = [right_value(y / rates[1]) for y in (LATE, EARLY)]
    left_first, *others = (x < y for x in lefts for y in rights)
    if all(other == left_first for other in others):
        return Duel(left_first, reading=reading)
    rough = tie(2.0**-10)
    if rough is None:
        return None
    anchors = [anchor * min(1.0, 2.0**-10 / rough) for anchor in ANCHORS]
    found = tie(anchors[1])
    if found is None:
        return None
    factor = found / anchors[1]
    ends = 1 - PROPORTIONAL / 2, 1 + PROPORTIONAL / 2
    for anchor in (anchors[0], anchors[2]):
        if len({less(anchor, anchor * factor * end) for end in ends}) == 1:
            return None
    return Duel(None, factor, left_first, reading)


def _tie(is_less: Callable[[float], bool]) -> float | None:
    """The noise of right at which the order flips."""
    low, high = -WIDEST, WIDEST
    start = is_less(2.0**low)
    if start == is_less(2.0**high):
        return None
    while high - low > 2.0**-46:
        middle = (low + high) / 2
        low, high = (middle, high) if is_less(2.0**middle) == start else (low, middle)
    return float(2.0 ** ((low + high) / 2))


RARE = 2.0**-30


class ExactSource(Source, Comparisons):
    """Draws branches by chance, and leaves all other numbers undrawn until they are compared.

    * `error`: The total error of the probabilities of this path.
    * `decisions`: What was decided, in order.
    """

    dtype = object

    def __init__(self, chance: Chance) -> None:
        super().__init__()
        self.chance = chance
        self.error = 0.0
        self.decisions: list[Decision] = []
        self._spare = np.random.default_rng(0)
        self._seeds: list[int] = []
        self._branches: dict[int, int] = {}
        self._coins: dict[int, Coin] = {}
        self._races: list[tuple[Coin, Coin, float]] = []

    def _answer(self, index: int, request: Request) -> Any:
        if request.kind == "categorical":
            branch = self.chance.draw(np.array(request.weights), str(request.call))
            chance = float(request.weights[branch])
            self.decisions.append(
                Decision(request.call, request.call.where, branch, chance, index)
            )
            self._branches[index] = branch
            return branch
        if request.kind == "seed":
            self._seeds.append(index)
            return 0.5
        self._coins[index] = Coin(request.call, request.bits, request.kind == "exponential")
        return Lazy(self._coins[index], self)

    def is_running(self) -> bool:
        """Whether the run of this source goes on, in this thread."""
        interception = current()
        return interception is not None and interception.source is self

    def outside(self, number: Lazy) -> float | None:
        """The value of a number that is used outside its run; None within.

        * raises `CannotInterpretError`: Another run is active here: the code has kept the number.
        """
        interception = current()
        if interception is None:
            self.problem = CannotInterpretError(
                f"a number of {number.coin.call} is used in another thread"
            )
            return self.settled(number)
        if interception.source is self:
            return None
        interception.source.problem = CannotInterpretError(
            f"a random number of {number.coin.call}, is kept between calls"
        )
        raise interception.source.problem

    def settled(self, number: Lazy) -> float:
        """The value of a number, drawn now if needed; ignores decisions made during the run."""
        if number.constant is not None:
            return number.constant
        coin = number.coin
        if coin.settled is None:
            coin.settled = coin.value(int(self._spare.random() * 2.0**coin.bits))
        if not number.steps:
            return coin.settled
        with quiet():
            return number.at(coin.settled)

    def decide(self, number: Lazy, predicate: Callable[[float], bool]) -> bool:
        """Split the interval of a uniform where the predicate flips; chance chooses a side."""
        coin = number.coin
        if number.steps:
            number.check_defined()
        low, high = coin.ends
        with quiet():
            start = predicate(low)
            if start == predicate(high):
                return start
            if coin.reading is not None:
                raise EscapedError(f"noise of {coin.call} is compared with a number after a race")
            flip = first_other(lambda k: predicate(coin.value(k)) == start, coin.low, coin.high)
        probability = (flip - coin.low) / (coin.high - coin.low)
        if min(probability, 1 - probability) < RARE:
            self.error += RARE
            return start if probability > RARE else not start
        self.error += 2.0**-coin.bits
        below = self.chance.accept(probability, str(coin.call))
        side = probability if below else 1 - probability
        self._decided(coin, below, side)
        coin.low, coin.high = (coin.low, flip) if below else (flip, coin.high)
        return start if below else not start

    def less(self, left: Lazy, right: Lazy) -> bool:
        """Race two numbers; the noise of the winner gets the sum of both rates."""
        with quiet():
            race = duel(left, right)
        if race.certain is not None:
            self.error += NEARLY_CERTAIN
            return race.certain
        x, y = left.coin, right.coin
        x.reading = y.reading = race.reading
        self.error += 2.0**-x.bits + 2.0**-y.bits
        first = self.chance.accept(race.first(x, y), str(x.call))
        side = float(race.first(x, y)) if first else 1 - float(race.first(x, y))
        self._decided(x, first, side)
        if first:
            self._record(x, y, race.factor)
        else:
            self._record(y, x, 1 / race.factor)
        return first == race.left_if_first

    def _decided(self, coin: Coin, way: bool, chance: float) -> None:
        number = next(index for index, one in self._coins.items() if one is coin)
        where = here("compared").where
        self.decisions.append(Decision(coin.call, where, int(way), chance, number))

    def _record(self, winner: Coin, loser: Coin, factor: float) -> None:
        winner.rate += factor * loser.rate
        loser.lost = True
        self._races.append((winner, loser, factor))

    def numbers(self, fraction: float, seed: float) -> dict[int, float]:
        """Numbers that lead the code along this path, at a fraction of every interval."""
        noise: dict[Coin, float] = {}
        for winner, loser, factor in reversed(self._races):
            noise.setdefault(winner, 0.25)
            noise[loser] = noise[winner] * factor * (1 + fraction / 16)
        found: dict[int, float] = {**self._branches, **dict.fromkeys(self._seeds, seed)}
        for index, coin in self._coins.items():
            if coin not in noise:
                found[index] = coin.value(coin.low + int((coin.high - coin.low) * fraction))
            elif coin.exponential:
                found[index] = noise[coin]
            else:
                found[index] = READINGS[str(coin.reading)](noise[coin])
        return found


def first_other(is_start: Callable[[int], bool], low: int, high: int) -> int:
    """The first integer in (low, high) where a predicate that holds at low no longer does."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_start(middle) else (low, middle)
    return high


FRACTIONS = (0.3, 0.9)
SEEDS = 16


@dataclass(frozen=True)
class Cell:
    """A set of random numbers that all lead to one outcome.

    * `weight`: Their probability.
    * `numbers`: {index of the request: number}, one point of the cell.
    * `requests`: The requests on this path.
    * `error`: Bound on the relative error of the probability.
    * `decisions`: What random numbers decided on this path, in order.
    """

    outcome: Outcome
    weight: float
    numbers: dict[int, float]
    requests: tuple[Request, ...]
    error: float = 0.0
    decisions: tuple[Decision, ...] = ()

    def __hash__(self) -> int:
        return hash(self.outcome)


def traced_cells(program: Program, max_paths: int, *, known: bool = False) -> list[Cell]:
    """The cells of a program, from its comparisons.

    * `known`: Replays and seeds were tried on other arguments: each path is replayed once.
    * raises `EscapedError`: The code uses a number in a way that is not traced, a replay differs
      from the trace, or it has more than `max_paths` paths.
    """

    tried = count()

    def run(chance: Chance) -> Cell:
        source = ExactSource(chance)
        outcome = program(source)
        first = next(tried)
        fractions = [FRACTIONS[first % 2]] if known else FRACTIONS
        seeds = [first, *(next(tried) for _ in fractions[1:])]
        points = [source.numbers(x, _seed(seed)) for x, seed in zip(fractions, seeds, strict=True)]
        for point in points:
            _check(program, outcome, source.requests, point)
        return Cell(
            outcome, 1.0, points[0], tuple(source.requests), source.error, tuple(source.decisions)
        )

    try:
        paths = enumerate_paths(run, max_paths)
        cells = [replace(path.outcome, weight=float(path.weight)) for path in paths]
    except (TooManyPathsError, OutsideChanceError) as error:
        raise EscapedError(str(error)) from None
    if not known and any(request.kind == "seed" for cell in cells for request in cell.requests):
        _try_seeds(program, cells, range(next(tried), SEEDS))
    return cells


def _seed(probe: int) -> float:
    """The middle of one of `SEEDS` equal parts of all that a seed may be."""
    return (probe % SEEDS + 0.5) / SEEDS


def _try_seeds(program: Program, cells: list[Cell], probes: range) -> None:
    """Replay paths with the seeds that no replay of a path has tried yet."""
    for probe in probes:
        cell = cells[probe % len(cells)]
        kinds = [request.kind for request in cell.requests]
        seeds = {i: _seed(probe) for i, kind in enumerate(kinds) if kind == "seed"}
        _check(program, cell.outcome, cell.requests, cell.numbers | seeds)


def _check(
    program: Program, outcome: Outcome, requests: Sequence[Request], numbers: dict[int, float]
) -> None:
    source = Given(lambda index, request: numbers.get(index, 0.5))
    replayed = program(source)
    if replayed != outcome:
        raise EscapedError(f"traced {outcome}, but a replay with numbers gives {replayed}")
    if _calls(source.requests) != _calls(requests):
        raise EscapedError("a replay with numbers asks for others")


def _calls(requests: Sequence[Request]) -> list[tuple[Call, int]]:
    return [(request.call, count) for request, count in counted(requests)]
