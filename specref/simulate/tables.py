"""The states of a machine as numbers, and one step of many trials through them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from specref.arrays import Floats
from specref.machines.machines import Machine
from specref.machines.states import END, NOWHERE, Branches, State
from specref.models import Model
from specref.rules import RULES, rule_of
from specref.vocabulary import Tokens

MAX_NODES = 1_000_000
NOTHING = -1
Integers = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Site:
    """The states of one random decision, numbered from `first`.

    Attributes
    ----------
    name : str
        As the reference algorithms call it, such as ``draft[0]``.
    first : int
        The number of its first state; those of later sites are larger.
    thresholds : ndarray of float64, shape (states, width)
        Ascending in each row; outcome i is the number of entries that a uniform reaches.
    successors : ndarray of int, shape (states, width)
        The state after each outcome. The width is a power of two.
    """

    name: str
    first: int
    thresholds: Floats
    successors: Integers

    @property
    def beyond(self) -> int:
        """The number of the first state of later sites."""
        return self.first + len(self.successors)

    def follow(self, states: Integers, uniforms: Floats) -> Integers:
        """The next state of each trial: a bisection of its row, the same steps for all."""
        half = self.successors.shape[1]
        cells = (states - self.first) * half
        while half := half // 2:
            cells += half * (uniforms >= self.thresholds.take(cells + (half - 1)))
        followers: Integers = self.successors.take(cells)
        return followers


@dataclass(frozen=True, eq=False)
class Tables:
    """A pair of models under an algorithm, as numbers alone: it can be sent to other processes.

    Attributes
    ----------
    sites : tuple of Site
        In an order in which no trial comes back to an earlier one.
    blocks : ndarray of int, shape (blocks, longest)
        Every possible block, padded with -1, in ascending order.
    counts : ndarray of int, shape (blocks,)
        The number of tokens in each.
    """

    sites: tuple[Site, ...]
    blocks: Integers
    counts: Integers

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the sites: column j of a matrix of uniforms feeds columns[j]."""
        return tuple(site.name for site in self.sites)

    @cached_property
    def outcomes(self) -> list[Tokens]:
        """The blocks as tuples of tokens."""
        pairs = zip(self.blocks.tolist(), self.counts.tolist(), strict=True)
        return [tuple(tokens[:count]) for tokens, count in pairs]


def tabulate(
    algorithm: str,
    target: Model,
    drafter: Model,
    context: Tokens = (),
    lookahead: int = 1,
    *,
    limit: int = MAX_NODES,
) -> Tables:
    """Compile an algorithm and a pair of models into tables over the tree of contexts.

    Parameters
    ----------
    algorithm : str
        A rule in `specref.rules.RULES` that has a machine.
    target, drafter : Model
    context : tuple of int
        Target token ids.
    lookahead : int
        How many tokens to draft.
    limit : int
        The most nodes (states and blocks) that the tree may have.

    Returns
    -------
    Tables

    Raises
    ------
    ValueError
        An unknown algorithm, or one without a machine; a tree with more than `limit` nodes; or
        an argument that the algorithm refuses.

    Examples
    --------
    >>> from specref.models import iid_model
    >>> from specref.vocabulary import Vocabulary
    >>> target = iid_model(Vocabulary("ab"), ["1/2", "1/2"])
    >>> tabulate("standard", target, target).columns
    ('draft[0]', 'accept[0]', 'bonus')
    """
    machine = rule_of(algorithm).machine
    if machine is None:
        twins = ", ".join(rule.name for rule in RULES.values() if rule.machine)
        raise ValueError(f"algorithm = {algorithm!r}: it has no batched twin, as {twins} have")
    return compiled(machine(target, drafter, context, lookahead), limit)


def compiled(machine: Machine, limit: int = MAX_NODES) -> Tables:
    """The tables of any machine, with states numbered site by site and blocks last."""
    found = _explored(machine, limit)
    states: dict[str, list[State]] = {site: [] for site in _ordered_sites(found)}
    for state in found:
        states[state.site].append(state)
    blocks = sorted(states.pop(END))
    ordered = [*chain.from_iterable(states.values()), *blocks]
    numbers: dict[State | None, int] = {None: NOTHING}
    numbers |= {state: number for number, state in enumerate(ordered)}
    sites = [_site(name, members, found, numbers) for name, members in states.items()]
    counts = np.array([len(block.kept) for block in blocks])
    padded = np.full((len(blocks), counts.max()), NOTHING)
    tokens = chain.from_iterable(block.kept for block in blocks)
    padded[np.arange(counts.max()) < counts[:, None]] = list(tokens)
    return Tables(tuple(sites), padded, counts)


def _explored(machine: Machine, limit: int) -> dict[State, Branches]:
    """Every reachable state, and what follows it."""
    queue = [machine.start()]
    known = set(queue)
    found: dict[State, Branches] = {}
    for state in queue:
        found[state] = NOWHERE if state.site == END else machine.branches(state)
        for after in found[state].possible:
            if after not in known:
                known.add(after)
                queue.append(after)
        if len(known) > limit:
            raise ValueError(
                f"the tree has more nodes than limit = {limit}: {len(known)} so far, at {state}"
            )
    return found


def _ordered_sites(found: Mapping[State, Branches]) -> tuple[str, ...]:
    """The sites, each after all those that lead to it."""
    edges = {
        (state.site, after.site): None
        for state, branches in found.items()
        for after in branches.possible
    }
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for before, after in edges:
        sorter.add(after, before)
    return tuple(sorter.static_order())


def _site(
    name: str,
    states: list[State],
    found: Mapping[State, Branches],
    numbers: Mapping[State | None, int],
) -> Site:
    rows = [found[state] for state in states]
    width = 1 << (max(len(row.states) for row in rows) - 1).bit_length()
    thresholds = np.full((len(rows), width), np.inf)
    successors = np.full((len(rows), width), NOTHING)
    for index, row in enumerate(rows):
        thresholds[index, : len(row.thresholds)] = row.thresholds
        successors[index, : len(row.states)] = [numbers[after] for after in row.states]
    return Site(name, numbers[states[0]], thresholds, successors)
