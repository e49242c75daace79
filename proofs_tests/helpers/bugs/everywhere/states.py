"""Rules that keep something between calls, most of them in order to be called proved.

The lossy ones are wrong where p(a) is between 990/1000 and 995/1000 alone, and remember a
comparison: a path that takes its answer from there has a region that lacks a condition.
"""

import contextvars
import functools
import itertools
import os
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from specref.algorithms import standard
from specref.algorithms.decoding import Step
from specref.chance import Chance
from specref.models import Model
from specref.vocabulary import Tokens, Vocabulary

LOW, HIGH = Fraction(990, 1000), Fraction(995, 1000)
FILE = Path(tempfile.gettempdir()) / f"specref-state-{os.getpid()}"
Remembers = Callable[[Any, int, Model], bool]
"""(row, branch of the last draw, target) -> whether p(a) is in the interval, or was once."""


@dataclass(frozen=True)
class State:
    """A rule, where it keeps what, and what may come of it: verdicts, or ``error``."""

    step: Step
    keeps: str
    comes: tuple[str, ...]


def inside(p: Any) -> bool:
    return bool(LOW < p[0] < HIGH)


def lossy(remembers: Remembers) -> Step:
    """Lossless, but where what is remembered is true."""

    def step(
        target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> Tokens:
        p = target.next_token(context)
        if not chance.accept(Fraction(1, 2), "how"):
            return (chance.draw(p, "plain"),)
        order = [0, 1] if p[0] < p[1] else [1, 0]
        rank = chance.draw(p[order], "rank")
        return (order[0] if remembers(p, rank, target) else order[rank],)

    return step


def by_key(key: Callable[[Any, Model], Any], store: MutableMapping[Any, bool]) -> Step:
    """Remembers by a key."""

    def remembers(p: Any, rank: int, target: Model) -> bool:
        name = key(p, target)
        if name not in store:
            store[name] = inside(p)
        return store[name]

    return lossy(remembers)


def by_identity(of: Callable[[Any, Model], Any]) -> Step:
    """Remembers by what an object is, and keeps the object."""
    kept: list[tuple[Any, bool]] = []

    def remembers(p: Any, rank: int, target: Model) -> bool:
        one = of(p, target)
        for other, answer in kept:
            if other is one:
                return answer
        kept.append((one, inside(p)))
        return kept[-1][1]

    return lossy(remembers)


def by_calls(compares: Iterator[bool]) -> Step:
    """Compares in some calls, and keeps the answer for others."""
    kept: list[bool] = []

    def remembers(p: Any, rank: int, target: Model) -> bool:
        if next(compares) or not kept:
            kept[:] = [inside(p)]
        return kept[0]

    return lossy(remembers)


def by_attribute(of: Callable[[Model], Any]) -> Step:
    """Keeps the first answer as an attribute of an object."""

    def remembers(p: Any, rank: int, target: Model) -> bool:
        keeper = of(target)
        if not hasattr(keeper, "remembered"):
            frozen = isinstance(keeper, Vocabulary)
            (object.__setattr__ if frozen else setattr)(keeper, "remembered", inside(p))
        return bool(keeper.remembered)

    return lossy(remembers)


def by_default(p: Any, rank: int, target: Model, kept: list[bool] = []) -> bool:  # noqa: B006
    kept += [inside(p)] * (not kept)
    return kept[0]


def by_cache() -> Step:
    row: list[Any] = []

    @functools.lru_cache
    def cached(size: int) -> bool:
        return inside(row[0])

    def remembers(p: Any, rank: int, target: Model) -> bool:
        row[:] = [p]
        return cached(len(p))

    return lossy(remembers)


def by_choice(compared: int) -> Step:
    """Compares on one branch, and takes the answer from there on the other."""
    kept: dict[str, bool] = {}

    def remembers(p: Any, rank: int, target: Model) -> bool:
        if rank == compared or not kept:
            kept["answer"] = inside(p)
        return kept["answer"]

    return lossy(remembers)


def by_file(p: Any, rank: int, target: Model) -> bool:
    if not FILE.exists():
        FILE.write_text(str(inside(p)))
    return FILE.read_text() == "True"


def by_variable() -> Step:
    kept: contextvars.ContextVar[bool] = contextvars.ContextVar("kept")

    def remembers(p: Any, rank: int, target: Model) -> bool:
        if kept.get(None) is None:
            kept.set(inside(p))
        return kept.get()

    return lossy(remembers)


def by_environment(p: Any, rank: int, target: Model) -> bool:
    return os.environ.setdefault("SPECREF_STATE", str(inside(p))) == "True"


def by_old_rows(hides: bool) -> Step:
    """Compares the row of the call before."""
    rows: list[Any] = []

    def remembers(p: Any, rank: int, target: Model) -> bool:
        rows.append(p)
        try:
            return inside(rows[-2:][0])
        except TypeError:
            if not hides:
                raise
            return inside(p)

    return lossy(remembers)


class Planned:
    """Lossless: plans anew whenever its rows are other objects than those it has."""

    p: Any = None
    q: Any = None

    def __call__(
        self, target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> Tokens:
        p, q = target.next_token(context), drafter.next_token(context)
        if p is not self.p or q is not self.q:
            self.p, self.q, self.residual = p, q, np.maximum(p - q, 0)
        return followed(p, q, self.residual, chance)


class Pool:
    """Keeps plans by the ids of rows, and the rows with them, or not: then ids come again."""

    def __init__(self, *, rows: bool) -> None:
        self.rows = rows
        self.plans: dict[tuple[int, int], tuple[Any, ...]] = {}

    def __call__(
        self, target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> Tokens:
        p, q = target.next_token(context), drafter.next_token(context)
        if (id(p), id(q)) not in self.plans:
            kept = (p, q) if self.rows else ()
            self.plans[id(p), id(q)] = (np.maximum(p - q, 0), *kept)
        return followed(p, q, self.plans[id(p), id(q)][0], chance)


def followed(p: Any, q: Any, residual: Any, chance: Chance) -> Tokens:
    draft = chance.draw(q, "draft")
    if chance.accept(min(Fraction(1), p[draft] / q[draft]), "accept"):
        return (draft,)
    return (chance.draw(residual / residual.sum(), "residual"),)


class Statistics:
    """Lossless: counts what it emits."""

    def __init__(self) -> None:
        self.emitted: list[Tokens] = []

    def __call__(
        self, target: Model, drafter: Model, context: Tokens, lookahead: int, chance: Chance
    ) -> Tokens:
        self.emitted.append(standard.step(target, drafter, context, lookahead, chance))
        return self.emitted[-1]


INSTANCE, THREAD = SimpleNamespace(), threading.local()
INSTANCE, THREAD = SimpleNamespace(), threading.local()
LATER = itertools.chain(itertools.repeat(False, 100), itertools.repeat(True))
LOSSY, REFUSED, EITHER, PROVED = ("lossy",), ("error",), ("lossy", "error"), ("proved",)
STATES = {
    "row": State(by_identity(lambda p, target: p), "by a row", LOSSY),
    "number": State(by_identity(lambda p, target: p[0]), "by a number", LOSSY),
    "constant": State(by_identity(lambda p, target: p[0] * 0), "by a constant", LOSSY),
    "model": State(by_identity(lambda p, target: target), "by a model", LOSSY),
    "weak": State(by_key(lambda p, t: t, weakref.WeakKeyDictionary()), "by a weak model", LOSSY),
    "id of a row": State(by_key(lambda p, target: id(p), {}), "by the id of a row", REFUSED),
    "id of a number": State(by_key(lambda p, t: id(p[0]), {}), "by a number's id", EITHER),
    "id of a model": State(by_key(lambda p, t: id(t), {}), "by the id of a model", EITHER),
    "first call": State(by_key(lambda p, target: 0, {}), "its first answer", REFUSED),
    "every other": State(by_calls(itertools.cycle([True, False])), "answers, by calls", REFUSED),
    "every seventh": State(by_calls(itertools.cycle([True, *[False] * 6])), "the same", REFUSED),
    "default": State(lossy(by_default), "in a default argument", REFUSED),
    "lru_cache": State(by_cache(), "in lru_cache", REFUSED),
    "first branch": State(by_choice(0), "what another path compared", REFUSED),
    "second branch": State(by_choice(1), "the same, the other way", REFUSED),
    "function": State(by_attribute(lambda target: inside), "on a function", REFUSED),
    "module": State(by_attribute(lambda target: itertools), "on a module", REFUSED),
    "class": State(by_attribute(lambda target: State), "on a class", REFUSED),
    "instance": State(by_attribute(lambda target: INSTANCE), "on an instance", REFUSED),
    "vocabulary": State(by_attribute(lambda t: t.vocabulary), "on the vocabulary", REFUSED),
    "thread": State(by_attribute(lambda target: THREAD), "with a thread", REFUSED),
    "variable": State(by_variable(), "in a context variable", REFUSED),
    "environment": State(lossy(by_environment), "in the environment", REFUSED),
    "old rows": State(by_old_rows(hides=False), "rows of earlier calls", REFUSED),
    "hidden old rows": State(by_old_rows(hides=True), "rows, and hides the error", LOSSY),
    "a hundred calls": State(
        lossy(lambda p, rank, target: next(LATER)), "how often it was called", REFUSED
    ),
    "file": State(lossy(by_file), "in a file", PROVED),
    "plan": State(Planned(), "a plan, by its rows", PROVED),
    "pool": State(Pool(rows=True), "plans by the ids of rows, and the rows", PROVED),
    "unsafe pool": State(Pool(rows=False), "plans by the ids of rows alone", REFUSED),
    "statistics": State(Statistics(), "what it emitted", PROVED),
}
