"""The law of a block in fewer paths: a drawn token is decided when something looks at it.

A rule seldom looks at the token it draws last (the residual or bonus token), nor at drafts
behind a rejected one. All values of such a token share one path; what is emitted unseen is
spread over its distribution at the end.
"""

import bisect
import itertools
import operator
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, TypeVar, cast

import numpy as np

from specref.algorithms.decoding import Step
from specref.chance import (
    MAX_SITES,
    Chance,
    Exact,
    TooManyPathsError,
    enumerate_paths,
)
from specref.distributions import Probabilities, Probability
from specref.laws import Law, first_tokens
from specref.models import Model, as_float
from specref.vocabulary import Tokens

Found = TypeVar("Found")
MOST_DRAWN = 200_000
"""Paths of the laws that blocks are drawn from."""


class Unseen:
    """A drawn token whose value is decided by the first operation on it."""

    __slots__ = ("decide", "value", "weights")

    def __init__(self, weights: Sequence[Probability], decide: Callable[[], int]) -> None:
        self.weights, self.decide = weights, decide
        self.value: int | None = None

    def __index__(self) -> int:
        if self.value is None:
            self.value = self.decide()
        return self.value


def _deciding(operation: Callable[..., Any]) -> Callable[..., Any]:
    """The operation on the value of a token, which it decides."""

    def method(self: Unseen, *others: object) -> Any:
        return operation(self.__index__(), *others)

    return method


_COMPARISONS = operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge
for _operation in (*_COMPARISONS, hash, bool, repr, str, format):
    setattr(Unseen, f"__{_operation.__name__}__", _deciding(_operation))


Integral.register(Unseen)


class _LazyPath(Exact):
    """One path with undecided draws; branches are recorded in the order of deciding."""

    def __init__(self, prefix: Sequence[int] = (), weight: Probability = 1.0) -> None:
        super().__init__(prefix, weight)
        self.sites = 0

    def draw(self, probabilities: Probabilities, site: str) -> int:
        return Chance.draw(self, probabilities, site)

    def choose(self, weights: Sequence[Probability], site: str) -> int:
        self.sites += 1
        if self.sites > MAX_SITES:
            raise TooManyPathsError(f"more than {MAX_SITES} random decisions (at {site})")
        return cast(int, Unseen(weights, lambda: Exact.choose(self, weights, site)))


class ReadableModel(Model):
    """The same model in float64, for contexts that may hold undecided tokens."""

    def __init__(self, model: Model) -> None:
        super().__init__(model.vocabulary, as_float(model).next_token)

    def next_token(self, context: Sequence[int]) -> Probabilities:
        """The distribution of the token after `context`; decides all its tokens."""
        return super().next_token(tuple(map(operator.index, context)))


class Enumerator:
    """Exact laws of blocks, for at most `max_paths` paths in all.

    * `max_paths`: A path may stand for many random paths, which differ in what nothing looked at.
    """

    def __init__(self, max_paths: int) -> None:
        self.max_paths, self.paths = max_paths, 0

    def law(
        self, step: Step, target: Model, drafter: Model, context: Tokens, lookahead: int
    ) -> Law:
        """The law of one block.

        * raises `TooManyPathsError`: More than `max_paths` paths, counting earlier laws, or an
          endless one.
        """

        def block(chance: Chance) -> Tokens:
            return step(target, drafter, context, lookahead, chance)

        try:
            return self._lazily(block)
        except TooManyPathsError:
            raise
        except Exception:
            # The step fails, or it insists on tokens of type int: draw them at once.
            law: Law = {}
            for path in enumerate_paths(block, max(1, self.max_paths - self.paths)):
                self.paths += 1
                law[path.outcome] = law.get(path.outcome, 0) + path.weight
            return law

    def first_tokens(
        self,
        step: Step,
        target: Model,
        drafter: Model,
        context: Tokens,
        lookahead: int,
        *,
        tokens: int | None,
        least: float = 0.0,
    ) -> Law:
        """The law of the first `tokens` tokens of a decode loop; of one block, if that is None.

        * `least`: Blocks with at most this mass are dropped.
        * raises `ValueError`: An iteration of a text emits nothing.
        """

        def after(text: Tokens) -> Law:
            law = self.law(step, target, drafter, (*context, *text), lookahead)
            return {block: mass for block, mass in law.items() if mass > least}

        if tokens is None:
            return after(())
        return first_tokens(after, target.vocabulary, tokens)

    def _lazily(self, block: Callable[[Chance], Tokens]) -> Law:
        law: Law = {}
        pending: list[tuple[tuple[int, ...], Probability]] = [((), 1.0)]
        while pending:
            self.paths += 1
            if self.paths > self.max_paths:
                raise TooManyPathsError(f"more than max_paths = {self.max_paths} paths")
            path = _LazyPath(*pending.pop())
            for tokens, share in _spread(block(path)):
                law[tokens] = law.get(tokens, 0) + path.weight * share
            pending += path.unexplored
        return law


class DrawnFromLaws:
    """The contract ``step``, from a step's law in each context: enumerated once, then drawn."""

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
            law = Enumerator(MOST_DRAWN).law(self.step, *models, context, lookahead)
            self._laws[key] = list(law), list(itertools.accumulate(map(float, law.values())))
        blocks, ends = self._laws[key]
        return blocks[bisect.bisect_right(ends, rng.random() * ends[-1])]


def or_reason(find: Callable[[], Found]) -> Found | str:
    """What is found of a mutant; if it crashes, which it may in any way, the error in a line."""
    try:
        return find()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _spread(block: Tokens) -> list[tuple[Tokens, Probability]]:
    """The blocks that a block stands for, each with its share."""
    tokens = tuple(map(operator.index, block[:-1]))
    last: object = block[-1] if block else None
    if isinstance(last, Unseen) and last.value is None:
        return [((*tokens, x), share) for x, share in enumerate(last.weights) if share > 0]
    return [((*tokens, *map(operator.index, block[-1:])), 1.0)]
