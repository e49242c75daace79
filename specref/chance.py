"""Chance, the only source of randomness: one program, read exactly, by sampling, or by replay.

An algorithm asks `chance.draw(probabilities, site)` for a token index and
`chance.accept(probability, site)` for a yes or no. What the answer is depends on the reading.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import nlargest
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from specref.distributions import Probabilities, Probability, is_one
from specref.spoiled import unspoiled

__all__ = [
    "Chance",
    "Exact",
    "OutsideChanceError",
    "Replayed",
    "Sampled",
    "Step",
    "TooManyPathsError",
    "Traced",
    "Uniforms",
    "exact_distribution",
]

Outcome = TypeVar("Outcome", bound=Hashable)
MAX_PATHS = 1_000_000
MAX_SITES = 1_000
ROUNDING = 1e-9
SHOWN = 8
LARGE = 64
LONG_ROW = 12
FIRST_AGAIN, EVERY_AGAIN = 32, 16


class TooManyPathsError(ValueError):
    """A program has more random paths, or decisions on one path, than may be enumerated."""


class OutsideChanceError(ValueError):
    """What a program does is no function of its chance, or takes no decision from it."""


class Uniforms(Protocol):
    """Anything with `random()`: numbers in [0, 1), such as `numpy.random.Generator`."""

    def random(self) -> float:
        """The next number in [0, 1)."""
        ...


class Chance(ABC):
    """Where an algorithm asks for every random decision, at a named site."""

    def draw(self, probabilities: Probabilities, site: str) -> int:
        """Draw a token index.

        Parameters
        ----------
        probabilities : ndarray, shape (V,)
            Exact or float64, non-negative, sum 1.
        site : str
            The place in the algorithm, such as ``draft[0]``.

        Raises
        ------
        ValueError
            The probabilities are all zero, negative somewhere, or do not sum to 1.
        """
        weights = np.asarray(probabilities).tolist()
        for token, probability in enumerate(weights):
            if not probability >= 0:
                raise ValueError(f"draw at {site}: probability {probability} of token {token}")
        total = sum(weights)
        if total == 0:
            raise ValueError(f"draw at {site}: probabilities are all zero, nothing to draw from")
        if not is_one(total):
            raise ValueError(f"draw at {site}: probabilities sum to {total}, expected 1")
        return self.choose(weights, site)

    def accept(self, probability: Probability, site: str) -> bool:
        """Say yes with the given probability; a float may be 1e-9 outside of [0, 1], by rounding.

        Raises
        ------
        ValueError
            The probability is not in [0, 1].
        """
        probability = _in_unit(probability, site)
        return bool(self.choose((1 - probability, probability), site))

    @abstractmethod
    def choose(self, weights: Sequence[Probability], site: str) -> int:
        """Choose a branch; an accept has the branches 0 (no) and 1 (yes)."""


def _in_unit(probability: Probability, site: str) -> Probability:
    if 0 <= probability <= 1:
        return probability
    if isinstance(probability, float) and -ROUNDING <= probability <= 1 + ROUNDING:
        return float(probability > 0)
    raise ValueError(f"accept at {site}: probability {probability} is not in [0, 1]")


class Request(NamedTuple):
    """A request to chance: a choice among weights, at a site."""

    weights: tuple[Probability, ...]
    site: str

    def same(self, other: "Request") -> bool:
        """Whether the weights are equal, floats up to rounding; a site is only a name.

        Examples
        --------
        >>> Request((0.1 + 0.2, 0.7), "draft[0]").same(Request((0.3, 0.7), "draft[1]"))
        True
        """
        if self.weights == other.weights:
            return True
        if len(self.weights) != len(other.weights):
            return False
        return all(
            a == b or (isinstance(a, float) and abs(a - b) <= ROUNDING)
            for a, b in zip(self.weights, other.weights, strict=True)
        )

    def beside(self, other: "Request") -> str:
        """The request in words, with the first weight in which it differs if that is not shown.

        Examples
        --------
        >>> one, other = (Request((1,) * 9 + last, "x") for last in ((1, 2), (2, 1)))
        >>> one.beside(other)
        'x of (1, 1, 1, 1, 1, 1, 1, 1, …), weight 9 is 1'
        """
        if str(self) != str(other):
            return str(self)
        pairs = zip(self.weights, other.weights, strict=False)
        place = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
        told = (
            f"{len(self.weights)} weights"
            if place is None
            else (f"weight {place} is {self.weights[place]}")
        )
        return f"{self}, {told}"

    def __str__(self) -> str:
        more = ", …" * (len(self.weights) > SHOWN)
        return f"{self.site} of ({', '.join(map(str, self.weights[:SHOWN]))}{more})"


class Exact(Chance):
    """One random path with its weight: follows `prefix`, then the first possible branches.

    Parameters
    ----------
    prefix : sequence of int
        Branches to follow first, as an earlier path of the same program recorded them.
    weight : Fraction or float
        The probability of the prefix.
    recorded : sequence of Request
        What was asked on the prefix then; what is asked otherwise now is validated again.

    Attributes
    ----------
    weight : Fraction or float
        The probability of the path.
    choices : list of int
        The branches taken.
    requests : list of Request
        What was asked for each of them.
    unexplored : list of (tuple of int, Fraction or float)
        Prefixes of the paths left open on the way, with their weights.
    endless : TooManyPathsError or None
        Raised where there were too many decisions; kept for programs that hide it.
    ended : bool
        Whether the run is over, after which nothing may be asked.
    """

    def __init__(
        self,
        prefix: Sequence[int] = (),
        weight: Probability = Fraction(1),
        recorded: "Sequence[Request]" = (),
    ) -> None:
        self.prefix, self.recorded = tuple(prefix), recorded
        self.weight = weight
        self.choices: list[int] = []
        self.requests: list[Request] = []
        self.unexplored: list[tuple[tuple[int, ...], Probability]] = []
        self.endless: TooManyPathsError | None = None
        self.ended = False

    def draw(self, probabilities: Probabilities, site: str) -> int:
        """Draw the next branch; a request that is the recorded one is not validated again."""
        depth = len(self.choices)
        if depth < min(len(self.prefix), len(self.recorded)):
            weights = np.asarray(probabilities).tolist()
            if tuple(weights) == self.recorded[depth].weights:
                return self.choose(weights, site)
        return super().draw(probabilities, site)

    def choose(self, weights: Sequence[Probability], site: str) -> int:
        if self.ended:
            raise OutsideChanceError(f"chance was asked at {site} after its run had ended")
        depth = len(self.choices)
        if depth == MAX_SITES:
            self.endless = TooManyPathsError(
                f"more than {MAX_SITES} random decisions on one path (at {site})"
            )
            raise self.endless
        self.requests.append(Request(tuple(weights), site))
        choice = self.prefix[depth] if depth < len(self.prefix) else self._open(weights)
        self.choices.append(choice)
        return choice

    def _open(self, weights: Sequence[Probability]) -> int:
        first, *others = (branch for branch, weight in enumerate(weights) if weight > 0)
        for branch in reversed(others):
            self.unexplored.append(((*self.choices, branch), self.weight * weights[branch]))
        self.weight *= weights[first]
        return first


class Sampled(Chance):
    """An ordinary sampler: inverse CDF on `rng.random()`; accepts iff u < probability.

    Examples
    --------
    >>> Sampled(np.random.default_rng(7)).draw(np.array([0.0, 1.0]), "bonus")
    1
    """

    def __init__(self, rng: Uniforms) -> None:
        self.rng = rng

    def accept(self, probability: Probability, site: str) -> bool:
        """Say yes iff the next uniform is below `probability` (never at 0, always at 1)."""
        return bool(self.rng.random() < _in_unit(probability, site))

    def draw(self, probabilities: Probabilities, site: str) -> int:
        """As for `Chance`; large vectors of float64 are validated without a loop."""
        weights = np.asarray(probabilities)
        large = weights.dtype == np.float64 and weights.ndim == 1 and weights.size > LARGE
        if large and (weights >= 0).all() and is_one(weights.sum()):
            return self.choose(weights, site)
        return super().draw(probabilities, site)

    def choose(self, weights: Sequence[Probability] | Probabilities, site: str) -> int:
        cumulative = np.cumsum(np.asarray(weights, dtype=np.float64))
        point = self.rng.random() * cumulative[-1]
        # A product that rounds up to the total must not pass the last possible token.
        last = int(np.searchsorted(cumulative, cumulative[-1]))
        return min(int(np.searchsorted(cumulative, point, side="right")), last)


class Replayed(Chance):
    """A deterministic run: every decision is read from `choices` (a token index, or 0/1).

    Raises
    ------
    ValueError
        A choice is missing, or impossible at its site.

    Examples
    --------
    >>> Replayed([True]).accept(Fraction(1, 2), "accept[0]")
    True
    >>> Replayed([1]).draw(np.array([1.0, 0.0]), "bonus")
    Traceback (most recent call last):
    ValueError: replay at bonus: choice 1 is impossible, expected one of [0]
    """

    def __init__(self, choices: Sequence[int]) -> None:
        self.unused = list(choices)

    def choose(self, weights: Sequence[Probability], site: str) -> int:
        if not self.unused:
            raise ValueError(f"replay at {site}: no choice left")
        possible = [branch for branch, weight in enumerate(weights) if weight > 0]
        choice = self.unused.pop(0)
        if choice not in possible:
            raise ValueError(
                f"replay at {site}: choice {choice} is impossible, expected one of {possible}"
            )
        return choice


@dataclass(frozen=True)
class Step:
    """One random decision: its site, the weights, and the choice."""

    site: str
    weights: tuple[Probability, ...]
    choice: int | bool

    @property
    def weight(self) -> Probability:
        """The probability of the choice."""
        return self.weights[self.choice]

    def __str__(self) -> str:
        return f"{self.site:<12} {self.said:<4} {self.likely}"

    @property
    def said(self) -> str:
        """The choice in words: a token, or "yes" or "no"."""
        return ("no", "yes")[self.choice] if isinstance(self.choice, bool) else str(self.choice)

    @property
    def likely(self) -> str:
        """How likely the choice was, in words."""
        told = f"with probability {self.weight}"
        if isinstance(self.choice, bool):
            return told
        return f"{told} from ({shown(self.weights, self.choice)})"


def shown(
    weights: Iterable[Probability], drawn: int | None = None, words: Sequence[str] = ()
) -> str:
    """A row for people: of a long one, the largest entries and their tokens.

    * `drawn`: A token that is shown of a long row, too.
    * `words`: How each entry is written, by default as it is.

    Examples
    --------
    >>> shown([Fraction(1, 2), Fraction(1, 2)])
    '1/2, 1/2'
    >>> shown([0] * 98 + [Fraction(1, 3), Fraction(2, 3)])
    '98: 1/3, 99: 2/3, otherwise 0'
    >>> shown([0.25, *[0.5 / 94] * 94, 0.25, *[0] * 4], drawn=99).split(", ")[-4:]
    ['95: 0.25', '99: 0', 'and 88 more', 'otherwise 0']
    """
    row = list(weights)
    words = words or list(map(str, row))
    if len(row) <= LONG_ROW:
        return ", ".join(words)
    most = largest(row, drawn)
    more = sum(map(bool, row)) - sum(bool(row[token]) for token in most)
    return entries_text({token: words[token] for token in most}, len(row), more)


def largest(row: Sequence[Probability], drawn: int | None = None) -> list[int]:
    """The tokens that are shown of a long row, in order: the likeliest, and the one drawn."""
    positive = [token for token, weight in enumerate(row) if weight]
    most = {*nlargest(SHOWN, positive, key=row.__getitem__), *([] if drawn is None else [drawn])}
    return sorted(most)


def entries_text(entries: Mapping[int, str], size: int, more: int) -> str:
    """Entries of a row of so many, of which so many more are positive.

    Examples
    --------
    >>> entries_text({3: "1/2", 7: "1/4"}, 100, 2)
    '3: 1/2, 7: 1/4, and 2 more, otherwise 0'
    """
    parts = [f"{token}: {word}" for token, word in entries.items()]
    if more:
        parts.append(f"and {more:,} more")
    if size > len(entries) + more:
        parts.append("otherwise 0")
    return ", ".join(parts)


@dataclass
class Traced(Chance):
    """Any reading, with a record of each decision in `steps`; `str()` prints it line by line.

    Examples
    --------
    >>> chance = Traced(Replayed([0, True]))
    >>> _ = chance.draw(np.array([0.5, 0.5]), "draft[0]"), chance.accept(0.25, "accept[0]")
    >>> print(chance)
    draft[0]     0    with probability 0.5 from (0.5, 0.5)
    accept[0]    yes  with probability 0.25
    """

    inner: Chance
    steps: list[Step] = field(default_factory=list)

    def draw(self, probabilities: Probabilities, site: str) -> int:
        """Draw as the inner reading does, and record it."""
        choice = self.inner.draw(probabilities, site)
        self.steps.append(Step(site, tuple(np.asarray(probabilities).tolist()), choice))
        return choice

    def accept(self, probability: Probability, site: str) -> bool:
        """Accept as the inner reading does, and record it."""
        choice = self.inner.accept(probability, site)
        self.steps.append(Step(site, (1 - probability, probability), choice))
        return choice

    def choose(self, weights: Sequence[Probability], site: str) -> int:
        return self.inner.choose(weights, site)

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))


@dataclass(frozen=True)
class Path(Generic[Outcome]):
    """One random path of a program: its outcome, its probability, and the branches taken."""

    outcome: Outcome
    weight: Probability
    choices: tuple[int, ...]


def enumerate_paths(
    program: Callable[[Chance], Outcome], max_paths: int = MAX_PATHS, *, twice: bool = False
) -> Iterator[Path[Outcome]]:
    """Run a program once for every random path that has positive probability.

    Enumeration by replay: re-run the program, follow a recorded prefix, take the next open
    branch. The program must be a function of its chance alone: of the first 32 paths and every
    16th later one, what it asks on the prefix is compared with what it asked when the prefix was
    recorded.

    * `program`: Takes a `Chance`, returns a hashable outcome.
    * `max_paths`: Where to give up.
    * `twice`: Run these paths again as a whole, and compare what they return, too.
    * raises `TooManyPathsError`: More than `max_paths` paths, or more than 1,000 decisions on one
      path.
    * raises `OutsideChanceError`: Two runs with the same choices ask, or return, different things.
    """
    pending: list[tuple[Sequence[int], Probability, Sequence[Request]]]
    pending = [((), Fraction(1), ())]
    for number in range(max_paths):
        prefix, weight, requests = pending.pop()
        compared = number < FIRST_AGAIN or number % EVERY_AGAIN == 0
        chance, outcome = _followed(program, prefix, weight, requests, compared)
        if twice and compared:
            again, other = _followed(program, chance.choices, chance.weight, chance.requests)
            if len(again.choices) > len(chance.choices):
                asked = again.requests[len(chance.choices)]
                raise _differ(chance, f"returned {outcome!r}", f"asked at {asked}")
            if other != outcome and not chance.requests:
                raise OutsideChanceError(
                    "takes no decision from chance: it asked for nothing, and returned "
                    f"{outcome!r} in one run and {other!r} in another"
                )
            if other != outcome:
                raise _differ(chance, f"returned {outcome!r}", f"returned {other!r}")
        yield Path(outcome, chance.weight, tuple(chance.choices))
        pending += [(*branch, chance.requests) for branch in chance.unexplored]
        if not pending:
            return
    raise TooManyPathsError(f"the program has more than max_paths = {max_paths} random paths")


def _followed(
    program: Callable[[Chance], Outcome],
    prefix: Sequence[int],
    weight: Probability,
    requests: Sequence[Request],
    compared: bool = True,
) -> tuple[Exact, Outcome]:
    """One run along a prefix; raises unless it makes as many requests on it as recorded.

    If `compared`, the requests must also be the recorded ones.
    """
    chance = Exact(prefix, weight, requests)
    try:
        outcome = program(chance)
    except Exception:
        _compare(chance, requests[: len(prefix)])
        raise
    finally:
        chance.ended = True
    if compared:
        _compare(chance, requests[: len(prefix)])
    if chance.endless:
        raise chance.endless
    if isinstance(outcome, (Awaitable, Iterator)):
        raise TypeError(f"program returned a {type(outcome).__name__}, which has not run yet")
    if len(chance.choices) < len(prefix):
        asked = requests[len(chance.choices)]
        raise _differ(chance, f"asked at {asked}", f"returned {outcome!r}")
    return chance, outcome


def _compare(chance: Exact, requests: Sequence[Request]) -> None:
    for place, (now, before) in enumerate(zip(chance.requests, requests, strict=False)):
        if not now.same(before):
            sides = f"asked at {before.beside(now)}", f"asked at {now.beside(before)}"
            raise _differ(chance, *sides, place)


def _differ(chance: Exact, one: str, other: str, place: int | None = None) -> OutsideChanceError:
    made = list(zip(chance.requests, chance.choices, strict=True))[:place]
    shown = [f"{request.site} = {choice}" for request, choice in made[-SHOWN:]]
    after = ", ".join(["…"] * (len(made) > SHOWN) + shown) or "none"
    return OutsideChanceError(
        f"no function of chance: of two runs with the same choices ({after}), one {one} and the "
        f"other {other}"
    )


def exact_distribution(
    program: Callable[[Chance], Outcome], max_paths: int = MAX_PATHS
) -> dict[Outcome, Probability]:
    """The exact output distribution of a program, by enumerating every random path.

    Parameters
    ----------
    program : callable
        Takes a `Chance`, returns a hashable outcome; a function of its chance alone.
    max_paths : int
        Where to give up.

    Returns
    -------
    dict
        {outcome: probability}; `Fraction` when the program draws from exact vectors.

    Raises
    ------
    TooManyPathsError, OutsideChanceError
        As `enumerate_paths`.
    SpoiledError
        The program replaced a part of this package, of NumPy or of Python.
    ValueError
        As `Chance.draw` and `Chance.accept`.

    Examples
    --------
    >>> coins = lambda chance: sum(chance.accept(Fraction(1, 2), f"flip[{i}]") for i in range(2))
    >>> exact_distribution(coins)
    {0: Fraction(1, 4), 1: Fraction(1, 2), 2: Fraction(1, 4)}
    """
    distribution: dict[Outcome, Probability] = {}
    with unspoiled():
        for path in enumerate_paths(program, max_paths, twice=True):
            distribution[path.outcome] = distribution.get(path.outcome, 0) + path.weight
    return distribution
